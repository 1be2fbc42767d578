//! What a device says of itself: feature bits and configuration space, with the limits of requests.
//!
//! Source: VIRTIO 1.2, sections 5.2.3 and 5.2.4, and 6 for the bits all devices share.

use super::request::SECTOR_BYTES;
use crate::exports::Export;
use crate::pool::PIECE_BYTES_MAX;
use ocssd_base::usize_of;

/// Rings of a device (chosen: one per processor of the machines QEMU usually runs; one thread serves them all).
pub const QUEUES_MAX: u16 = 16;

/// Descriptors of a ring (chosen: the most QEMU makes, VIRTQUEUE_MAX_SIZE).
pub const RING_SIZE_MAX: u16 = 1024;

/// Segments of a request that guests are told to keep to (chosen: QEMU's own, for rings of 128 less header and status).
pub const SEGMENTS_MAX: u32 = 126;

/// Bytes of a segment that guests are told to keep to: as many as a job carries.
pub const SEGMENT_BYTES_MAX: u32 = 256 << 10;

const _: () = assert!(PIECE_BYTES_MAX == 256 << 10);

/// Bytes of a read or write; one beyond is an error (chosen: as NBD's here, and just above what the two limits above make).
pub const REQUEST_BYTES_MAX: u64 = 32 << 20;

const _: () = assert!((SEGMENTS_MAX as u64) * (SEGMENT_BYTES_MAX as u64) <= REQUEST_BYTES_MAX);

/// Ranges of a discard or of zeroes (chosen: what Linux joins by itself is 256 at most, and few in practice).
pub const RANGES_MAX: usize = 16;

/// Sectors of a range that is discarded (chosen: 2 GiB; it is one job, and NBD's may be twice as long).
pub const DISCARD_SECTORS_MAX: u32 = 4 << 20;

/// Sectors of a range that is zeroed (chosen: 64 MiB, because zeroes that must not be unmapped are written as data).
pub const ZEROES_SECTORS_MAX: u32 = 128 << 10;

/// Bytes of the configuration space that can be asked for (vhost-user: VHOST_USER_MAX_CONFIG_SIZE).
pub const CONFIG_BYTES: usize = 256;

/// Where `writeback` lies in the configuration space: the only byte a guest may change.
pub const WRITEBACK_OFFSET: usize = 32;

/// Feature bits.
pub mod feature {
    /// VIRTIO_BLK_F_SIZE_MAX.
    pub const SIZE_MAX: u64 = 1 << 1;
    /// VIRTIO_BLK_F_SEG_MAX.
    pub const SEG_MAX: u64 = 1 << 2;
    /// VIRTIO_BLK_F_RO.
    pub const RO: u64 = 1 << 5;
    /// VIRTIO_BLK_F_BLK_SIZE.
    pub const BLK_SIZE: u64 = 1 << 6;
    /// VIRTIO_BLK_F_FLUSH.
    pub const FLUSH: u64 = 1 << 9;
    /// VIRTIO_BLK_F_TOPOLOGY.
    pub const TOPOLOGY: u64 = 1 << 10;
    /// VIRTIO_BLK_F_CONFIG_WCE.
    pub const CONFIG_WCE: u64 = 1 << 11;
    /// VIRTIO_BLK_F_MQ.
    pub const MQ: u64 = 1 << 12;
    /// VIRTIO_BLK_F_DISCARD.
    pub const DISCARD: u64 = 1 << 13;
    /// VIRTIO_BLK_F_WRITE_ZEROES.
    pub const WRITE_ZEROES: u64 = 1 << 14;
    /// VIRTIO_F_INDIRECT_DESC.
    pub const INDIRECT_DESC: u64 = 1 << 28;
    /// VIRTIO_F_EVENT_IDX.
    pub const EVENT_IDX: u64 = 1 << 29;
    /// VHOST_USER_F_PROTOCOL_FEATURES.
    pub const PROTOCOL_FEATURES: u64 = 1 << 30;
    /// VIRTIO_F_VERSION_1.
    pub const VERSION_1: u64 = 1 << 32;
}

/// What a device of this export offers.
#[must_use]
pub fn features(export: &Export) -> u64 {
    use feature::{
        BLK_SIZE, CONFIG_WCE, DISCARD, EVENT_IDX, FLUSH, INDIRECT_DESC, MQ, PROTOCOL_FEATURES, RO, SEG_MAX,
        SIZE_MAX, TOPOLOGY, VERSION_1, WRITE_ZEROES,
    };
    let all = SIZE_MAX | SEG_MAX | BLK_SIZE | FLUSH | TOPOLOGY | CONFIG_WCE | MQ;
    let rings = INDIRECT_DESC | EVENT_IDX | PROTOCOL_FEATURES | VERSION_1;
    all | rings | if export.read_only { RO } else { DISCARD | WRITE_ZEROES }
}

/// The configuration space of a device of this export, as bytes.
#[must_use]
pub fn space(export: &Export, writeback: bool) -> [u8; CONFIG_BYTES] {
    let mut bytes = [0; CONFIG_BYTES];
    let mut put = |at: usize, value: &[u8]| bytes[at..][..value.len()].copy_from_slice(value);
    let block_sectors =
        u32::try_from(u64::from(export.block_bytes) / SECTOR_BYTES).expect("a block is small");
    put(0, &(export.bytes() / SECTOR_BYTES).to_le_bytes());
    put(8, &SEGMENT_BYTES_MAX.to_le_bytes());
    put(12, &SEGMENTS_MAX.to_le_bytes());
    put(20, &export.block_bytes.to_le_bytes());
    // Blocks that are best written at once: physical_block_exp, min_io_size and opt_io_size.
    let preferred = (export.preferred_bytes / export.block_bytes).max(1);
    let exponent = u8::try_from(preferred.ilog2()).expect("a logarithm of 32 bits is small");
    put(24, &[exponent, 0]);
    put(26, &u16::try_from(preferred).unwrap_or(u16::MAX).to_le_bytes());
    put(28, &preferred.to_le_bytes());
    put(WRITEBACK_OFFSET, &[u8::from(writeback)]);
    put(34, &QUEUES_MAX.to_le_bytes());
    if !export.read_only {
        let ranges = u32::try_from(RANGES_MAX).expect("few");
        put(36, &DISCARD_SECTORS_MAX.to_le_bytes());
        put(40, &ranges.to_le_bytes());
        put(44, &block_sectors.to_le_bytes());
        put(48, &ZEROES_SECTORS_MAX.to_le_bytes());
        put(52, &ranges.to_le_bytes());
        put(56, &[1]);
    }
    bytes
}

/// `count` bytes of a space from byte `first` on; `None` beyond its end.
#[must_use]
pub fn part(space: &[u8; CONFIG_BYTES], first: u32, count: u32) -> Option<&[u8]> {
    let first = usize_of(first);
    space.get(first..first.checked_add(usize_of(count))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(read_only: bool) -> Export {
        Export { block_count: 1000, read_only, ..Export::example() }
    }

    #[test]
    fn the_space_says_what_the_specification_puts_there() {
        let space = space(&export(false), true);
        let le32 = |at: usize| u32::from_le_bytes(space[at..][..4].try_into().unwrap());
        assert_eq!((le32(0), le32(4), le32(8), le32(12)), (1000, 0, SEGMENT_BYTES_MAX, SEGMENTS_MAX));
        assert_eq!((le32(20), &space[24..32], space[32]), (512, &[3, 0, 8, 0, 8, 0, 0, 0][..], 1));
        assert_eq!((u16::from_le_bytes([space[34], space[35]]), le32(44), space[56]), (QUEUES_MAX, 1, 1));
        assert_eq!(part(&space, 34, 2), Some(&QUEUES_MAX.to_le_bytes()[..]));
        assert_eq!((part(&space, 250, 7), part(&space, u32::MAX, 1)), (None, None));
    }

    #[test]
    fn a_read_only_export_offers_no_changes() {
        let (sound, read_only) = (features(&export(false)), features(&export(true)));
        assert_eq!(sound ^ read_only, feature::RO | feature::DISCARD | feature::WRITE_ZEROES);
        assert_eq!(read_only & feature::RO, feature::RO);
        assert_eq!(space(&export(true), false)[32..60].iter().filter(|byte| **byte != 0).count(), 1);
    }
}
