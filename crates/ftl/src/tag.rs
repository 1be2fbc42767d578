//! The sixteen bytes beside every sector: what it holds, for whom, and since when.
//!
//! pblk kept the logical address there, so that lost maps can be rebuilt and garbage collection needs no reverse map
//! (FAST'17 section 4.2.2). Here a sequence number joins it: the newest version of a block wins wherever it lies, so streams may
//! be written and recovered in any order; a copy made by garbage collection keeps the number of the write it copies. A
//! CRC covers tag and content, so that corruption is found and never returned as data.
//!
//! Layout, little endian: block 5 bytes, sequence 6, kind 1, CRC-32 4. Deliberately not here: who may be stale.

use crate::short_checksum::{self, BODY_BYTES};
use ocssd_lightnvm::STAMP_BYTES;
use std::fmt;

/// Bytes of a tag: what pblk's drives had beside a sector.
pub const TAG_BYTES: usize = 16;
/// Largest block number a tag can hold, 2^40 - 1: 4 PiB of 4 KiB blocks.
pub const BLOCK_MAX: u64 = (1 << 40) - 1;
/// Largest sequence number: 2^48 - 1 sector writes, 1 ZiB.
pub const SEQUENCE_MAX: u64 = (1 << 48) - 1;

/// When a block was written: counts every block written to the instance, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// What a sector holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing: fills a unit.
    Pad,
    /// A block's content.
    Data,
    /// A block whose content the media lost: reading it is an error until it is written again.
    Lost,
    /// Blocks that were discarded: the content says which.
    Discard,
    /// The first sector of a chunk: whose it is, and of which generation.
    Head,
    /// The tags of a chunk, in its last sectors.
    Tail,
    /// A piece of a checkpoint: of the map, or of another state.
    Map,
    /// A page of a write-ahead log.
    Log,
    /// A block's content, written out of order: blocks before it may be missing.
    Placed,
    /// A block that was never written, before others that were: it reads as unwritten ones do.
    Unwritten,
    /// A page of a map that is larger than memory; the block is its number.
    MapPage,
}

impl Kind {
    /// The number on media. Zero is none of them: media that were never written hold zeroes.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Pad => 1,
            Self::Data => 2,
            Self::Lost => 3,
            Self::Discard => 4,
            Self::Head => 5,
            Self::Tail => 6,
            Self::Map => 7,
            Self::Log => 8,
            Self::Placed => 9,
            Self::Unwritten => 10,
            Self::MapPage => 11,
        }
    }

    /// The kind of a number on media.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Pad,
            2 => Self::Data,
            3 => Self::Lost,
            4 => Self::Discard,
            5 => Self::Head,
            6 => Self::Tail,
            7 => Self::Map,
            8 => Self::Log,
            9 => Self::Placed,
            10 => Self::Unwritten,
            11 => Self::MapPage,
            _ => return None,
        })
    }

    /// A block of a zone in its own place, whether it was ever written or not.
    #[must_use]
    pub const fn is_of_zone(self) -> bool {
        matches!(self, Self::Data | Self::Placed | Self::Unwritten)
    }
}

/// A sector's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorTag {
    /// What it holds.
    pub kind: Kind,
    /// The block, or what the kind makes of it.
    pub block: u64,
    /// Since when.
    pub sequence: Sequence,
}

/// Why a sector is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a sector's checksum should match its tag and content, but does not: the media changed it",
        )
    }
}

impl SectorTag {
    /// A tag that fills.
    pub const PAD: Self = Self { kind: Kind::Pad, block: 0, sequence: Sequence(0) };

    fn body(self) -> [u8; 12] {
        assert!(self.block <= BLOCK_MAX, "block {} does not fit a tag", self.block);
        assert!(self.sequence.0 <= SEQUENCE_MAX, "sequence {} does not fit a tag", self.sequence.0);
        let packed = u128::from(self.block)
            | u128::from(self.sequence.0) << 40
            | u128::from(self.kind.to_byte()) << 88;
        let mut body = [0; 12];
        body.copy_from_slice(&packed.to_le_bytes()[..12]);
        body
    }

    /// The tag as it goes beside `content`.
    ///
    /// # Panics
    /// If a number does not fit: who makes tags keeps to the bounds.
    #[must_use]
    pub fn encode(self, content: &[u8]) -> [u8; TAG_BYTES] {
        let body = self.body();
        let mut bytes = [0; TAG_BYTES];
        bytes[..12].copy_from_slice(&body);
        bytes[12..].copy_from_slice(&checksum_of(&body, content).to_le_bytes());
        bytes
    }

    /// The tag of a sector read from media.
    ///
    /// # Errors
    /// [`Corrupt`] if tag and content do not belong together.
    #[inline]
    pub fn decode(bytes: &[u8], content: &[u8]) -> Result<Self, Corrupt> {
        let bytes: &[u8; TAG_BYTES] =
            bytes.get(..TAG_BYTES).and_then(|b| b.try_into().ok()).ok_or(Corrupt)?;
        let (body, crc) = bytes.split_first_chunk::<BODY_BYTES>().ok_or(Corrupt)?;
        let crc: [u8; 4] = crc.try_into().map_err(|_| Corrupt)?;
        if checksum_of(body, content) != u32::from_le_bytes(crc) {
            return Err(Corrupt);
        }
        Self::from_body(body)
    }

    /// The block a tag names, whether or not it belongs to its content: good for a guess.
    #[must_use]
    pub fn peek_block(bytes: &[u8]) -> Option<u64> {
        let bytes: [u8; 8] = bytes.get(..8).and_then(|bytes| bytes.try_into().ok())?;
        Some(u64::from_le_bytes(bytes) & BLOCK_MAX)
    }

    fn from_body(body: &[u8; BODY_BYTES]) -> Result<Self, Corrupt> {
        let [a, b, c, d, high @ ..] = *body;
        let high = u64::from_le_bytes(high);
        let kind = Kind::from_byte(body[11]).ok_or(Corrupt)?;
        let block = u64::from(u32::from_le_bytes([a, b, c, d])) | (high & 0xFF) << 32;
        Ok(Self { kind, block, sequence: Sequence(high >> 8 & SEQUENCE_MAX) })
    }

    /// The tag without its checksum, as lists of tags hold it.
    #[must_use]
    pub fn to_list_entry(self) -> [u8; 12] {
        self.body()
    }

    /// A tag out of a list whose checksum was verified.
    ///
    /// # Errors
    /// [`Corrupt`] if it is of no known kind.
    pub fn from_list_entry(bytes: &[u8; 12]) -> Result<Self, Corrupt> {
        Self::from_body(bytes)
    }
}

/// The CRC-32 of what a target keeps about itself.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// The CRC-32 of parts, one after the other.
pub(crate) fn checksum_of_parts(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

#[inline]
fn checksum_of(body: &[u8; BODY_BYTES], content: &[u8]) -> u32 {
    if let Ok(stamp) = <&[u8; STAMP_BYTES]>::try_from(content) {
        return short_checksum::checksum(body, stamp);
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(body);
    hasher.update(content);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;

    #[test]
    fn a_tag_comes_back_and_no_flipped_bit_passes() {
        let seed = 11;
        let mut prng = Prng::new(seed);
        for _ in 0..200 {
            let tag = SectorTag {
                kind: Kind::from_byte(u8::try_from(1 + prng.below(11)).expect("small")).expect("a kind"),
                block: prng.below(BLOCK_MAX + 1),
                sequence: Sequence(prng.below(SEQUENCE_MAX + 1)),
            };
            let mut content = [7; 16];
            let mut bytes = tag.encode(&content);
            assert_eq!(SectorTag::decode(&bytes, &content), Ok(tag), "seed {seed}");
            assert_eq!(SectorTag::peek_block(&bytes), Some(tag.block), "seed {seed}");
            assert_eq!(SectorTag::from_list_entry(&tag.to_list_entry()), Ok(tag));
            let bit = usize::try_from(prng.below(32 * 8)).expect("small");
            let place = if bit < 128 { &mut bytes[bit / 8] } else { &mut content[bit / 8 - 16] };
            *place ^= 1 << (bit % 8);
            assert_eq!(SectorTag::decode(&bytes, &content), Err(Corrupt), "seed {seed}, bit {bit}");
        }
    }

    #[test]
    fn every_kind_has_a_number_of_its_own_and_no_other_number_is_one() {
        let kinds = [
            Kind::Pad,
            Kind::Data,
            Kind::Lost,
            Kind::Discard,
            Kind::Head,
            Kind::Tail,
            Kind::Map,
            Kind::Log,
            Kind::Placed,
            Kind::Unwritten,
            Kind::MapPage,
        ];
        assert_eq!(kinds.map(Kind::to_byte), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], "as they lie on media");
        let of_zone: Vec<Kind> = kinds.into_iter().filter(|kind| kind.is_of_zone()).collect();
        assert_eq!(of_zone, [Kind::Data, Kind::Placed, Kind::Unwritten]);
        for byte in 0..=u8::MAX {
            let kind = kinds.into_iter().find(|kind| kind.to_byte() == byte);
            assert_eq!(Kind::from_byte(byte), kind, "{byte}");
        }
    }

    #[test]
    fn tags_lie_as_they_are_documented_beside_content_of_any_length() {
        let tag = SectorTag { kind: Kind::Data, block: 0x01_0203_0405, sequence: Sequence(0x1112_1314_1516) };
        let body = [5, 4, 3, 2, 1, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 2];
        assert_eq!(tag.to_list_entry(), body);
        for length in [0, 1, 15, 16, 17, 4096] {
            let content: Vec<u8> = (0..length).map(|n: u32| n.to_le_bytes()[0]).collect();
            let bytes = tag.encode(&content);
            let sum = crc32fast::hash(&[&body[..], &content].concat());
            assert_eq!((&bytes[..12], &bytes[12..]), (&body[..], &sum.to_le_bytes()[..]), "{length} bytes");
            assert_eq!(SectorTag::decode(&bytes, &content), Ok(tag));
        }
        let mut unknown = body;
        unknown[11] = 12;
        assert_eq!(SectorTag::from_list_entry(&unknown), Err(Corrupt));
        assert_eq!(checksum(b"123456789"), 0xCBF4_3926, "the check value of CRC-32");
        assert!(Corrupt.to_string().contains("the media changed it"));
    }

    #[test]
    fn what_was_never_written_has_no_tag() {
        assert_eq!(SectorTag::decode(&[0; 16], &[0; 16]), Err(Corrupt));
        assert_eq!(SectorTag::decode(&[0; 3], &[]), Err(Corrupt));
        assert_eq!(SectorTag::peek_block(&[0; 3]), None);
    }
}
