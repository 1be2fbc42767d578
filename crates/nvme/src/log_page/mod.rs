//! Log pages that every NVMe controller has, and the completion that announces news.
//!
//! The open-channel pages are in [`crate::ocssd20`]. Source: NVMe base 1.4 section 5.14; OCSSD 2.0 sections 3.2 and
//! 3.3.

mod async_event;
mod command_effects;
mod error_information;
mod firmware_slot;
mod smart;

pub use async_event::{AsyncEvent, AsyncEventKind};
pub use command_effects::{CommandEffects, EffectsLog};
pub use error_information::ErrorLogEntry;
pub use firmware_slot::FirmwareSlots;
pub use smart::SmartLog;

/// A log page identifier (LID).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPageId(pub u8);

impl LogPageId {
    /// 01h: [`ErrorLogEntry`] repeated.
    pub const ERROR_INFORMATION: Self = Self(0x01);
    /// 02h: [`SmartLog`].
    pub const SMART: Self = Self(0x02);
    /// 03h: [`FirmwareSlots`].
    pub const FIRMWARE_SLOT: Self = Self(0x03);
    /// 05h: [`EffectsLog`].
    pub const COMMAND_EFFECTS: Self = Self(0x05);
    /// 70h: [`crate::fabrics::DiscoveryHeader`], then [`crate::fabrics::DiscoveryEntry`] repeated.
    pub const DISCOVERY: Self = Self(0x70);
    /// BFh: [`crate::zns::ChangedZoneList`].
    pub const CHANGED_ZONES: Self = Self(0xBF);
    /// CAh: [`crate::ocssd20::ChunkDescriptor`] repeated, one per chunk.
    pub const CHUNK_INFORMATION: Self = Self(0xCA);
    /// D0h: [`crate::ocssd20::ChunkNotification`] repeated.
    pub const CHUNK_NOTIFICATION: Self = Self(0xD0);
}
