//! A whole server with a drive's controller or with targets, in a thread; guests over its socket, sound ones and hostile ones.

mod drive;
mod guest;
mod hostile;
#[path = "../../../cli/src/serve/pci_drive.rs"]
mod pci_drive;
mod sound;
mod targets;
mod world;
