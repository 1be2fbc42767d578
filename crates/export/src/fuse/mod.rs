//! Block targets as files: a directory with a file for each export, mounted by FUSE, so that `losetup` makes a block device of
//! one on a machine without any module for network disks.
//!
//! The reactor waits for the mount's device as for its sockets and answers in its own thread: a [`FuseMount`] is a
//! [`Transport`](crate::reactor::Transport). `wire` is the kernel's protocol as bytes, `plan` judges a message, `open_request`
//! reads and writes blocks for it, `session` is the machine over messages, `transport` has the device, `mount` the directory.
//!
//! The protocol is read here and not by the crate `fuser`, whose loop and messages are its own: it reads in a thread that it
//! blocks, so every payload would be copied twice more and every request would cross between threads twice.
//!
//! Deliberately not here: caches. Those are the kernel's, and it keeps none for what is written.

mod directory;
mod mount;
mod open_request;
mod plan;
mod session;
#[cfg(test)]
mod tests;
mod transport;
mod unmounter;
mod wire;

pub use directory::file_name;
pub use transport::FuseMount;

// The machine without its transport, for the fuzzer.
pub(crate) use directory::Directory;
pub(crate) use session::{Answer, Session};
pub(crate) use wire::{HEADER_BYTES, Header, opcode};
