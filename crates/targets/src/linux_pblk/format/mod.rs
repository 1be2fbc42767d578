//! What Linux's pblk has on media, as plain code: where the parts of a line lie, and what is in them.
//!
//! Bytes come in and go out; decoders take any bytes. `docs/pblk-format.md` is the description. Source: Linux 5.10,
//! `drivers/lightnvm/pblk.h`, `pblk-core.c`, `pblk-init.c`, `pblk-recovery.c`. Deliberately not here: reading media, and
//! what a mount makes of it.

mod crc;
mod emeta;
mod error;
mod header;
mod layout;
mod oob;
mod parts;
mod smeta;

pub use crc::of as crc_of;
pub use emeta::{EMETA_VERSION_MINOR, Emeta, WaCounters, lba_list_mut};
pub use error::FormatError;
pub use header::{Header, Uuid};
pub use layout::{LineLayout, LineOffset, Position};
pub use oob::{ADDR_EMPTY, SECTOR_META_BYTES, SectorMeta, entry_lba, put_entries};
pub use parts::LineParts;
pub use smeta::{SEQUENCE_MAX, SMETA_VERSION_MINOR, Smeta};
