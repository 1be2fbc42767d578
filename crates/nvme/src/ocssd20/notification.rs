//! Chunk notifications: 64-byte entries of log page D0h, announced by an asynchronous event.
//!
//! Source: OCSSD 2.0 section 3.3, table "Chunk Notification Log Page".

use crate::address::Lba;
use crate::wire::{ShortInput, fixed, put, u16_at, u32_at, u64_at};

/// One thing the drive noticed about its media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkNotification {
    /// NC: counts events from 1 and never repeats; 0 marks an entry that holds nothing.
    pub nc: u64,
    /// Where it was noticed.
    pub lba: Lba,
    /// The namespace.
    pub nsid: u32,
    /// What was noticed.
    pub state: NotificationState,
    /// How far around `lba` it reaches.
    pub mask: NotificationMask,
    /// NLB + 1: blocks from `lba` on, 1 to 65,536. Counts only if the mask says logical blocks; stays inside the
    /// chunk.
    pub block_count: u32,
}

/// What was noticed: a set of bits. Reserved bits are kept as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotificationState(pub u16);

impl NotificationState {
    /// Bit 0: the error rate is low.
    pub const ERROR_RATE_LOW: Self = Self(1);
    /// Bit 1: the error rate is medium.
    pub const ERROR_RATE_MEDIUM: Self = Self(1 << 1);
    /// Bit 2: the error rate is high.
    pub const ERROR_RATE_HIGH: Self = Self(1 << 2);
    /// Bit 3: the data cannot be recovered.
    pub const UNRECOVERABLE: Self = Self(1 << 3);
    /// Bit 4: the drive refreshed the chunk itself.
    pub const REFRESHED: Self = Self(1 << 4);
    /// Bit 8: the wear-level index left its threshold (WIT).
    pub const WEAR_OUTSIDE_THRESHOLD: Self = Self(1 << 8);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// How far a notification reaches: a set of bits. Reserved bits are kept as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotificationMask(pub u8);

impl NotificationMask {
    /// Bit 0: the logical blocks counted by NLB.
    pub const LOGICAL_BLOCKS: Self = Self(1);
    /// Bit 1: the chunk.
    pub const CHUNK: Self = Self(1 << 1);
    /// Bit 2: the whole parallel unit.
    pub const PARALLEL_UNIT: Self = Self(1 << 2);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl ChunkNotification {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 64;

    /// From the first 64 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("a chunk notification", bytes)?;
        Ok(Self {
            nc: u64_at(bytes, 0),
            lba: Lba(u64_at(bytes, 8)),
            nsid: u32_at(bytes, 16),
            state: NotificationState(u16_at(bytes, 20)),
            mask: NotificationMask(bytes[22]),
            block_count: u32::from(u16_at(bytes, 32)) + 1,
        })
    }

    /// The 64 bytes.
    ///
    /// # Panics
    /// If `block_count` is not 1 to 65,536.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let nlb = self.block_count.checked_sub(1).and_then(|nlb| u16::try_from(nlb).ok());
        let nlb = nlb.unwrap_or_else(|| panic!("1 to 65536 blocks, not {}", self.block_count));
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.nc.to_le_bytes());
        put(&mut bytes, 8, &self.lba.0.to_le_bytes());
        put(&mut bytes, 16, &self.nsid.to_le_bytes());
        put(&mut bytes, 20, &self.state.0.to_le_bytes());
        bytes[22] = self.mask.0;
        put(&mut bytes, 32, &nlb.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let mut bytes = [0; 64];
        bytes[0] = 5;
        bytes[15] = 0x80;
        bytes[16] = 1;
        bytes[20..23].copy_from_slice(&[0x04, 0x01, 0x01]);
        bytes[32..34].copy_from_slice(&[0xFF, 0x01]);
        let notification = ChunkNotification {
            nc: 5,
            lba: Lba(1 << 63),
            nsid: 1,
            state: NotificationState(0x0104),
            mask: NotificationMask::LOGICAL_BLOCKS,
            block_count: 512,
        };
        assert_eq!(ChunkNotification::decode(&bytes), Ok(notification));
        assert_eq!(notification.encode(), bytes);
        assert!(notification.state.contains(NotificationState::ERROR_RATE_HIGH));
        assert!(notification.state.contains(NotificationState::WEAR_OUTSIDE_THRESHOLD));
        assert!(!notification.mask.contains(NotificationMask::CHUNK));
        assert!(ChunkNotification::decode(&bytes[..63]).is_err());
    }
}
