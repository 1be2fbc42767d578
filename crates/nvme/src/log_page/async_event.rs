//! Dword 0 of an Asynchronous Event Request's completion.
//!
//! ```text
//! bit  23:16        15:8   2:0
//!      log page id  info   type
//! ```
//! Source: NVMe base 1.4 section 5.2.1; OCSSD 2.0 section 3.3 (type 7, log page D0h).

use super::LogPageId;
use crate::wire::byte;

/// What happened, and where to read about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncEvent {
    /// Type.
    pub kind: AsyncEventKind,
    /// Information; depends on the type.
    pub info: u8,
    /// The log page to read, which also clears the event.
    pub log_page: LogPageId,
}

/// Event types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncEventKind {
    /// 0: an error of the controller.
    Error,
    /// 1: SMART or health.
    Smart,
    /// 2: a notice.
    Notice,
    /// 6: of the command set.
    CommandSet,
    /// 7: of the vendor; open-channel 2.0 chunk notifications.
    Vendor,
    /// 3 to 5.
    Reserved(u8),
}

impl AsyncEvent {
    /// The event that announces chunk notifications.
    pub const CHUNK_NOTIFICATION: Self =
        Self { kind: AsyncEventKind::Vendor, info: 0, log_page: LogPageId::CHUNK_NOTIFICATION };

    /// The event that announces changed zones (ZNS 1.1: Zone Descriptor Changed).
    pub const CHANGED_ZONES: Self =
        Self { kind: AsyncEventKind::Notice, info: 0xEF, log_page: LogPageId::CHANGED_ZONES };

    /// From the dword; reserved bits are ignored.
    pub fn from_dword(dword: u32) -> Self {
        let kind = match byte(dword, 0) & 7 {
            0 => AsyncEventKind::Error,
            1 => AsyncEventKind::Smart,
            2 => AsyncEventKind::Notice,
            6 => AsyncEventKind::CommandSet,
            7 => AsyncEventKind::Vendor,
            reserved => AsyncEventKind::Reserved(reserved),
        };
        Self { kind, info: byte(dword, 1), log_page: LogPageId(byte(dword, 2)) }
    }

    /// The dword.
    pub fn to_dword(self) -> u32 {
        let kind = match self.kind {
            AsyncEventKind::Error => 0,
            AsyncEventKind::Smart => 1,
            AsyncEventKind::Notice => 2,
            AsyncEventKind::CommandSet => 6,
            AsyncEventKind::Vendor => 7,
            AsyncEventKind::Reserved(bits) => bits & 7,
        };
        u32::from_le_bytes([kind, self.info, self.log_page.0, 0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_notification_is_d0_00_07() {
        assert_eq!(AsyncEvent::CHUNK_NOTIFICATION.to_dword(), 0x00D0_0007);
        assert_eq!(AsyncEvent::from_dword(0xFFD0_00FF), AsyncEvent::CHUNK_NOTIFICATION);
    }

    #[test]
    fn changed_zones_are_bf_ef_02() {
        assert_eq!(AsyncEvent::CHANGED_ZONES.to_dword(), 0x00BF_EF02);
    }

    #[test]
    fn every_type_round_trips() {
        for dword in (0..8).map(|kind| kind | 0x0002_0500) {
            assert_eq!(AsyncEvent::from_dword(dword).to_dword(), dword);
        }
    }
}
