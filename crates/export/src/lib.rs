//! Targets for real clients: the protocols they speak, and the reactor that serves them.
//!
//! A protocol is a plain state machine ([`Protocol`]): bytes of a client in, bytes for it out, jobs for targets between. It
//! knows no socket and no clock. What it needs lies on the [`Desk`]: buffers, exports, and the jobs themselves. The
//! [`reactor`] owns sockets, desk and [`ocssd_engine::Host`], in one thread; it is the only file that waits.
//!
//! ```text
//!   socket ──bytes──► Protocol ──jobs──► Desk ──requests──► Host (target, drive)
//!   socket ◄─slices── Outbox   ◄──ends── Desk ◄──replies─── Host
//! ```
//!
//! A protocol that is no stream of bytes (rings in shared memory) uses the desk in the same way and brings its own edge. A
//! drive in a PCI slot needs none of this: [`pci_nvme`] is its controller, and [`vfio_user`] the edge of that.
//! Deliberately not here: opening drives and making targets (the caller does), and anything about command lines.

mod desk;
mod exports;
mod fair_queue;
pub mod fuse;
pub mod fuzz;
mod job;
mod memory_disk;
pub mod nbd;
pub mod nvme_tcp;
mod outbox;
pub mod pci_nvme;
mod pool;
mod protocol;
mod raw_drive;
mod raw_lane;
pub mod reactor;
mod shares;
mod stats;
mod survey;
pub mod vfio_user;
pub mod vhost_user_blk;

pub use desk::Desk;
pub use exports::{Export, ExportId, Exports};
pub use job::{Done, Extent, Job, JobOwner, Work};
pub use outbox::Outbox;
pub use pool::{PIECE_BYTES_MAX, Piece, Pool};
pub use protocol::{Phase, Protocol, Rude, Space};
pub use raw_drive::{RawBusy, RawDrive, RawShape};
pub use raw_lane::RawLane;
pub use shares::{ClientId, Supply, Want};
pub use stats::{DROP_REASONS, DropReason, Stats};
