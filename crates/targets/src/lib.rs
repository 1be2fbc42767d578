//! Targets: host-side logic above an open-channel device, and the registry that makes them by name.
//!
//! Deliberately not here: the parts FTLs are made of (`ftl`), and any particular device.

mod block_io;
pub mod block_ssd;
mod chunk_reports;
mod chunk_wear;
pub mod eleos;
mod flight;
mod in_vain;
mod journal;
mod kept_size;
pub mod kv;
pub mod kv_block;
pub mod lightlsm;
pub mod linear;
pub mod linux_pblk;
mod mount_error;
pub mod named_target;
mod null;
mod option_value;
mod over_blocks;
mod ox;
pub mod ox_block;
pub mod parts;
pub mod pblk;
mod plane_reads;
mod planted;
mod read_again;
mod recovery;
mod refusal;
pub mod registry;
mod request_table;
mod send_again;
#[cfg(test)]
mod size_table;
pub mod small_blocks;
mod staging;
pub mod table_block;
mod tag_scan;
mod target_text;
mod unit_writer;
mod vector_reset;
pub mod zns;
mod zones_as_blocks;

pub use linear::{Layout, Linear};
pub use mount_error::MountError;
pub use null::Null;
pub use plane_reads::PlaneReads;
pub use send_again::SENDS_MAX;
pub use small_blocks::SmallBlocks;
