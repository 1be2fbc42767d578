//! The virtual open-channel SSD: every rule of the specification, NAND timing, wear, bad media, faults, a volatile
//! write-back cache, power cuts, and content that is really there.
//!
//! A [`Flash`] is a [`Device`](ocssd_lightnvm::Device): plain data, no clock, no thread. Content and chunk states are
//! settled when a command is taken, in the order commands come; the media then decide when it ends. A power cut undoes
//! what had not reached the media by then.
//!
//! Deliberately not here: FTLs (`targets`), files of settings (`drive`), any file but the image store's.

mod addresses;
mod chunk_notifications;
mod chunks;
pub mod config;
pub mod controller;
mod death;
mod deferred_copies;
mod drive;
mod exec;
mod faults;
mod flow;
mod media;
mod misplaced;
mod power_cut;
pub mod presets;
mod rules;
mod shelf;
pub mod store;

pub use addresses::AddressList;
pub use chunk_notifications::{Notification, NotificationKind};
pub use chunks::ChunkRecord;
pub use config::Config;
pub use drive::{Flash, FlashCounters, OpenError};
pub use exec::{Operation, OperationKind, ReadPolicy};
pub use faults::{FailedOp, FaultKind, ScheduledFault};
pub use media::{MediaCounters, SlowCommand, Wait, WaitFor};
pub use power_cut::PowerCutReport;
pub use shelf::Shelf;
