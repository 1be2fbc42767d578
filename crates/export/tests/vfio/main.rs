//! A whole server with a drive's controller or with targets, in a thread; guests over its socket, sound ones and rude ones.

mod drive;
mod guest;
#[path = "../../../cli/src/serve/pci_drive.rs"]
mod pci_drive;
mod rude;
mod sound;
mod targets;
mod world;
