//! Where a part of a page lies: a run of bytes within one buffer unit, found by a number of 40 bits.
//!
//! Parts begin at multiples of 64 bytes, as OX-ELEOS' do, so 40 bits reach 64 TiB. Deliberately not here: which part is
//! whose (`page_map`).

use ocssd_base::usize_of;
use ocssd_ftl::{ChunkIndex, InstanceGeometry, PhysicalAddress};

/// What parts of pages begin at multiples of, in bytes (OX-ELEOS: 64 B).
pub const GRAIN_BYTES: u32 = 64;
/// Spots of an instance at most: what fits 5 bytes.
pub const SPOT_MAX: u64 = (1 << 40) - 1;
/// Bytes of a part at most: what fits 3 bytes. A part is never longer than a buffer unit.
pub const PART_BYTES_MAX: u32 = (1 << 24) - 1;

/// A place by grains: `place * grains of a sector + grain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot(pub u64);

/// A part of a page on media.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// Where it begins.
    pub spot: Spot,
    /// Its bytes, at least 1.
    pub bytes: u32,
}

/// Grains that so many bytes take.
pub const fn grains(bytes: u32) -> u32 {
    bytes.div_ceil(GRAIN_BYTES)
}

impl Extent {
    /// Where what follows it would begin.
    pub fn end(self) -> Spot {
        Spot(self.spot.0 + u64::from(grains(self.bytes)))
    }
}

/// How spots lie in an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Grains of a sector.
    pub per_sector: u32,
    /// Grains of a chunk.
    pub per_chunk: u64,
}

impl Grid {
    /// The grid of sectors of `sector_bytes`.
    pub fn new(shape: &InstanceGeometry, sector_bytes: u32) -> Self {
        assert!(sector_bytes.is_multiple_of(GRAIN_BYTES), "sectors of {sector_bytes} bytes");
        let per_sector = sector_bytes / GRAIN_BYTES;
        assert!(per_sector > 0 && shape.sectors_per_chunk() > 0, "an instance without grains");
        Self { per_sector, per_chunk: u64::from(per_sector) * u64::from(shape.sectors_per_chunk()) }
    }

    /// The spot `byte` bytes behind the start of a place.
    pub fn spot(self, place: PhysicalAddress, byte: u32) -> Spot {
        assert!(byte.is_multiple_of(GRAIN_BYTES), "a part begins at byte {byte}");
        Spot(place.0 * u64::from(self.per_sector) + u64::from(byte / GRAIN_BYTES))
    }

    /// The sector a spot is in, and the bytes before it there.
    pub fn place(self, spot: Spot) -> (PhysicalAddress, u32) {
        let per_sector = u64::from(self.per_sector);
        assert!(spot.0 <= SPOT_MAX, "{spot:?} is beyond any instance");
        let grain = u32::try_from(spot.0 % per_sector).expect("less than a sector has");
        (PhysicalAddress(spot.0 / per_sector), grain * GRAIN_BYTES)
    }

    /// The chunk a spot is in.
    pub fn chunk(self, spot: Spot) -> ChunkIndex {
        ChunkIndex(u32::try_from(spot.0 / self.per_chunk).expect("a spot of the instance"))
    }

    /// Sectors that bytes touch which begin so many bytes behind the start of a sector.
    pub const fn sectors(self, byte: u32, bytes: u32) -> u32 {
        (byte + bytes).div_ceil(self.per_sector * GRAIN_BYTES)
    }
}

/// As an index.
pub fn index(bytes: u32) -> usize {
    usize_of(bytes)
}

/// How much of a part of `bytes` goes to a buffer unit that has `room` left: all, or so much that neither piece is less than a
/// sixteenth of a buffer unit, or nothing. So a page has few parts however often it is moved, and at most an eighth of a buffer
/// unit stays empty.
pub fn share(bytes: u32, room: u32, buffer_unit_bytes: u32) -> u32 {
    assert!(bytes > 0, "a part of nothing");
    assert!(room <= buffer_unit_bytes, "a room of {room} in buffer units of {buffer_unit_bytes}");
    assert!(room.is_multiple_of(GRAIN_BYTES), "a room of {room} begins within a grain");
    let least = (buffer_unit_bytes / 16).next_multiple_of(GRAIN_BYTES);
    if bytes <= room {
        return bytes;
    }
    let most = room.min(bytes.saturating_sub(least)) / GRAIN_BYTES * GRAIN_BYTES;
    if most >= least { most } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_cut_only_where_both_pieces_are_long() {
        let buffer_unit = 16_384;
        for (bytes, room, taken) in [
            (100, 16_384, 100),
            (100, 64, 0),
            (16_384, 16_384, 16_384),
            (16_384, 8_192, 8_192),
            (20_000, 16_384, 16_384),
            (17_000, 16_384, 15_936),
            (2_000, 1_984, 0),
            (5_000, 960, 0),
        ] {
            assert_eq!(share(bytes, room, buffer_unit), taken, "{bytes} bytes in {room}");
        }
        for bytes in 1..40_000 {
            for room in (0..=buffer_unit).step_by(64) {
                let taken = share(bytes, room, buffer_unit);
                assert!(taken <= room && taken <= bytes);
                assert!(taken == bytes || taken.is_multiple_of(GRAIN_BYTES));
                assert!(taken > 0 || room < buffer_unit / 8, "{bytes} bytes leave a room of {room}");
            }
        }
    }
}
