//! The first unit of every chunk in use: whose it is and of which generation (pblk's smeta).
//!
//! pblk wrote one smeta per line, on its first good chunk, and had to wait for it before data. Here every chunk says so
//! itself: a chunk is written in order, so its head is durable before its data without waiting, and a line whose erase
//! was cut short cannot be taken for a whole one. It fits the 16 bytes of a stamp: instance 8 bytes, stream 1, version 1,
//! blocks of the instance 6. The generation is the tag's block number. Deliberately not here: where the lists of tags
//! are.

use crate::Stream;
use crate::lines::LineSequence;
use crate::tag::{BLOCK_MAX, Corrupt, Kind, SectorTag, Sequence};

/// Bytes of a head's content; the rest of the sector is zero.
pub const HEAD_BYTES: usize = 16;
/// The layout of what is on media; raised when an older reader would misread it.
const VERSION: u8 = 1;

/// The instance a chunk belongs to: drawn when the instance is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub u64);

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
        bytes[..8].copy_from_slice(&self.instance.0.to_le_bytes());
        bytes[8] = self.stream.0;
        bytes[9] = VERSION;
        assert!(self.blocks < 1 << 48, "an instance of {} blocks does not fit a head", self.blocks);
        bytes[10..].copy_from_slice(&self.blocks.to_le_bytes()[..6]);
        bytes
    }

    /// The head in a sector whose tag was verified, if it is one.
    ///
    /// # Errors
    /// [`Corrupt`] if it is no head this version can read.
    pub fn decode(tag: SectorTag, content: &[u8]) -> Result<Self, Corrupt> {
        let bytes: &[u8; HEAD_BYTES] =
            content.get(..HEAD_BYTES).and_then(|bytes| bytes.try_into().ok()).ok_or(Corrupt)?;
        if tag.kind != Kind::Head || bytes[9] != VERSION {
            return Err(Corrupt);
        }
        let mut instance = [0; 8];
        instance.copy_from_slice(&bytes[..8]);
        let mut blocks = [0; 8];
        blocks[..6].copy_from_slice(&bytes[10..]);
        Ok(Self {
            instance: InstanceId(u64::from_le_bytes(instance)),
            stream: Stream(bytes[8]),
            line: LineSequence(tag.block),
            blocks: u64::from_le_bytes(blocks),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_and_nothing_else_passes_for_one() {
        let head = Head {
            instance: InstanceId(77),
            stream: Stream(3),
            line: LineSequence(1 << 33),
            blocks: 1 << 40,
        };
        let bytes = head.encode();
        let tag = head.tag(Sequence(5));
        assert_eq!(Head::decode(tag, &bytes), Ok(head));
        assert_eq!(Head::decode(tag, &bytes[..9]), Err(Corrupt));
        assert_eq!(Head::decode(SectorTag { kind: Kind::Data, ..tag }, &bytes), Err(Corrupt));
        let mut other = bytes;
        other[9] = 2;
        assert_eq!(Head::decode(tag, &other), Err(Corrupt));
    }
}
