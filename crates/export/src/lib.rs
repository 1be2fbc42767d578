//! Targets for real clients: the protocols they speak, and the reactor that serves them.
//!
//! A protocol is a plain state machine ([`Protocol`]): bytes of a client in, bytes for it out, jobs for targets between. It
//! knows no socket and no clock. What it needs lies on the [`Dispatcher`]: buffers, exports, and the jobs themselves. The
//! [`reactor`] owns sockets, dispatcher and [`ocssd_engine::Host`], in one thread; it is the only file that waits.
//!
//! ```text
//!   socket ──bytes──► Protocol ──jobs──► Dispatcher ──requests──► Host (target, drive)
//!   socket ◄─slices── SendQueue   ◄──ends── Dispatcher ◄──replies─── Host
//! ```
//!
//! A protocol that is no stream of bytes (rings in shared memory) uses the dispatcher in the same way and brings its own
//! transport. A drive in a PCI slot needs none of this: [`pci_nvme`] is its controller, and [`vfio_user`] the transport of
//! that. Deliberately not here: opening drives and making targets (the caller does), and anything about command lines.

mod as_request;
#[cfg(test)]
mod changing_zones;
mod dispatcher;
mod exports;
mod fair_queue;
pub mod fuse;
pub mod fuzz;
mod job;
mod memory_disk;
mod metrics_page;
#[cfg(test)]
mod model_targets;
pub mod nbd;
pub mod nvme_subsystem;
pub mod nvme_tcp;
pub mod pci_nvme;
mod pool;
mod protocol;
mod raw_drive;
mod raw_lane;
pub mod reactor;
pub mod resp;
mod send_queue;
mod served_target;
mod shared_bytes;
mod shares;
mod stages;
mod stats;
mod survey;
pub mod vfio_user;
pub mod vhost_user_blk;

pub use dispatcher::Dispatcher;
pub use exports::{Export, ExportId, ExportKind, Exports};
pub use job::{Answer, Done, Extent, Job, JobOwner, Work};
pub use metrics_page::{MetricsPage, Page};
pub use pool::{PIECE_BYTES_MAX, Pool, PoolPiece, WHOLE_BYTES_MAX};
pub use protocol::{Phase, Protocol, ProtocolError, Space};
pub use raw_drive::{RawBuffers, RawBusy, RawDrive, RawShape};
pub use raw_lane::RawLane;
pub use send_queue::SendQueue;
pub use served_target::ServedTarget;
pub use shares::{ClientId, Supply, Want};
pub use stages::{Granted, NotGranted, StageOwner, Stages};
pub use stats::{DROP_REASONS, DropReason, Stats};
