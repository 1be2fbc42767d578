//! vhost-user-blk: a block device in the memory of a virtual machine, or of a program that has none.
//!
//! A frontend (QEMU, libblkio) connects to a socket, sends descriptors of its memory, and then asks by rings of virtio in that
//! memory; the socket is for setting up and tearing down only. [`Device`] is the machine: rings and requests over mapped
//! memory, without sockets, eventfds and clock; [`guest`] is its other side, for tests. `backend` carries out the messages of
//! the socket on it, `frontend` is who sends them, with eventfds, [`VhostUserBlk`] is the transport: who may come, and when.
//! `inflight` is the memory by which a server finds what the one before it was killed over.
//!
//! Sources: VIRTIO 1.2, sections 2.7 (split rings) and 5.2 (block device); vhost-user as QEMU documents it
//! (docs/interop/vhost-user). Deliberately not here: packed rings, migration (dirty logs, state transfer), zoned devices, memory
//! behind an IOMMU, requests of the device to the frontend.

mod backend;
mod chain;
mod config;
mod device;
mod frontend;
pub mod guest;
mod inflight;
mod memory;
mod message;
mod open_request;
mod plan;
mod request;
mod ring;
#[cfg(test)]
mod tests;
mod transport;
mod walk;

pub use config::{QUEUES_MAX, RING_SIZE_MAX};
pub use device::Device;
pub use memory::{Memory, Segment};
pub use request::{BlkStatus, Header, kind};
pub use transport::VhostUserBlk;
