//! Structures of the Open-Channel SSD specification 1.2 (April 2016), for hosts that only speak that.
//!
//! The only place for its words: channel, lun, plane, page. `docs/ppa.md` has the glossary to 2.0.
//! Deliberately not here: the drive-side mapping table (hybrid commands, Get L2P), which no open-channel host used.

mod bbt;
mod group_descriptor;
mod identify;
mod io_flags;
mod media_table;
mod ppa_format;

pub use bbt::{BadBlockTable, BbtError, BlockFlags, BlockFlagsError};
pub use group_descriptor::{FlashKind, GroupDescriptor, GroupError, Mccap, PlaneOperations, PlaneSupport};
pub use identify::{Capabilities, DeviceModel, Identify, IdentifyError};
pub use io_flags::{IoFlags, PlaneMode, PlaneModeError};
pub use media_table::{MediaTable, PagePair};
pub use ppa_format::{BitField, PageAddress, Ppa, PpaError, PpaField, PpaFields, PpaFormat, PpaFormatError};
