//! The first unit of every chunk in use: whose it is and of which generation (pblk's smeta).
//!
//! pblk wrote one smeta per line, on its first good chunk, and had to wait for it before data. Here every chunk says so
//! itself: a chunk is written in order, so its head is durable before its data without waiting, and a line whose reset
//! was cut short cannot be taken for a whole one. It fits the 16 bytes of a stamp: instance 6 bytes, the line's resets 2,
//! stream 1, version 1, blocks of the instance 5, resets again 1 (their highest bits). Version 1 had 8 bytes of instance, 6
//! of blocks and no resets; it is read as a line of no resets. The generation is the tag's block number. Deliberately not
//! here: where the lists of tags are.

use crate::Stream;
use crate::lines::LineSequence;
use crate::tag::{BLOCK_MAX, Corrupt, Kind, SectorTag, Sequence};

/// Bytes of a head's content; the rest of the sector is zero.
pub const HEAD_BYTES: usize = 16;
/// The layout of what is on media; raised when an older reader would misread it.
const VERSION: u8 = 2;
/// The layout before, without resets.
const VERSION_WITHOUT_RESETS: u8 = 1;
/// Most resets a head can count; more stay at that (chosen: what is left of 16 bytes; NAND of one bit a cell bears 100 000).
const RESETS_MAX: u32 = (1 << 24) - 1;

/// The instance a chunk belongs to: drawn when the instance is made. 48 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(u64);

impl InstanceId {
    /// The instance named by the low 48 bits.
    #[must_use]
    pub const fn new(bits: u64) -> Self {
        Self(bits & ((1 << 48) - 1))
    }

    /// The 48 bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

/// A chunk's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Whose chunk it is.
    pub instance: InstanceId,
    /// Which stream writes it.
    pub stream: Stream,
    /// The generation of its line.
    pub line: LineSequence,
    /// Blocks of the instance: bad chunks found later must not change its size.
    pub blocks: u64,
    /// How often the line was reset before.
    pub resets: u32,
}

impl Head {
    /// The tag beside the head; it also says how many writes came before.
    #[must_use]
    pub fn tag(&self, newest: Sequence) -> SectorTag {
        assert!(self.line.0 <= BLOCK_MAX, "more lines were opened than a head can count");
        SectorTag { kind: Kind::Head, block: self.line.0, sequence: newest }
    }

    /// The content.
    #[must_use]
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        assert!(self.blocks <= BLOCK_MAX, "an instance of {} blocks does not fit a head", self.blocks);
        let resets = self.resets.min(RESETS_MAX).to_le_bytes();
        bytes[..6].copy_from_slice(&self.instance.bits().to_le_bytes()[..6]);
        bytes[6..8].copy_from_slice(&resets[..2]);
        bytes[8] = self.stream.0;
        bytes[9] = VERSION;
        bytes[10..15].copy_from_slice(&self.blocks.to_le_bytes()[..5]);
        bytes[15] = resets[2];
        bytes
    }

    /// The head in a sector whose tag was verified, if it is one.
    ///
    /// # Errors
    /// [`Corrupt`] if it is no head this version can read.
    pub fn decode(tag: SectorTag, content: &[u8]) -> Result<Self, Corrupt> {
        let bytes: &[u8; HEAD_BYTES] =
            content.get(..HEAD_BYTES).and_then(|bytes| bytes.try_into().ok()).ok_or(Corrupt)?;
        if tag.kind != Kind::Head || !matches!(bytes[9], VERSION | VERSION_WITHOUT_RESETS) {
            return Err(Corrupt);
        }
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |high, &byte| high << 8 | u64::from(byte));
        let has_resets = bytes[9] == VERSION;
        let blocks = number(&bytes[10..if has_resets { 15 } else { 16 }]);
        let resets = u32::from_le_bytes([bytes[6], bytes[7], bytes[15], 0]);
        Ok(Self {
            instance: InstanceId::new(number(&bytes[..6])),
            stream: Stream(bytes[8]),
            line: LineSequence(tag.block),
            blocks,
            resets: if has_resets { resets } else { 0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_and_nothing_else_passes_for_one() {
        let head = Head {
            instance: InstanceId::new(77 << 40),
            stream: Stream(3),
            line: LineSequence(1 << 33),
            blocks: BLOCK_MAX,
            resets: 0x12_3456,
        };
        let bytes = head.encode();
        let tag = head.tag(Sequence(5));
        assert_eq!(Head::decode(tag, &bytes), Ok(head));
        assert_eq!(Head::decode(tag, &bytes[..9]), Err(Corrupt));
        assert_eq!(Head::decode(SectorTag { kind: Kind::Data, ..tag }, &bytes), Err(Corrupt));
        let mut other = bytes;
        other[9] = 3;
        assert_eq!(Head::decode(tag, &other), Err(Corrupt));
        let worn = Head { resets: u32::MAX, ..head };
        assert_eq!(Head::decode(tag, &worn.encode()), Ok(Head { resets: RESETS_MAX, ..head }));
    }

    #[test]
    fn a_head_of_the_version_before_is_read_as_one_without_resets() {
        let tag = SectorTag { kind: Kind::Head, block: 9, sequence: Sequence(5) };
        let mut bytes = [0; HEAD_BYTES];
        bytes[..8].copy_from_slice(&0x1122_3344_5566_7788_u64.to_le_bytes());
        bytes[8..10].copy_from_slice(&[2, 1]);
        bytes[10..].copy_from_slice(&70_000_u64.to_le_bytes()[..6]);
        let instance = InstanceId::new(0x1122_3344_5566_7788);
        let (stream, line) = (Stream(2), LineSequence(9));
        assert_eq!(instance.bits(), 0x3344_5566_7788, "48 bits are kept");
        assert_eq!(Head::decode(tag, &bytes), Ok(Head { instance, stream, line, blocks: 70_000, resets: 0 }));
    }
}
