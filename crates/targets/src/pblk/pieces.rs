//! The pieces a checkpoint is cut into: how much of it each holds, and how a piece says that it is whole.
//!
//! A piece is a sector: the checkpoint's number (8 bytes), CRC-32 of the rest (4), the content bytes in use, 0 for all (4), then
//! content. Deliberately not here: what the content is (`checkpoint`, `checkpoint_header`).

use ocssd_base::usize_of;
use ocssd_ftl::{L2p, ShardSize};

/// Bytes of a piece before its content.
pub const PIECE_HEADER_BYTES: usize = 16;

/// Fewest content bytes of a piece (chosen: a header's first bytes, and some entries of the map).
pub const PIECE_BYTES_MIN: u32 = 64;

/// How a checkpoint is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceLayout {
    /// Content bytes of a piece.
    pub content_bytes: usize,
    /// Bytes of a map entry.
    entry_bytes: usize,
    /// Map entries of a shard, or of the whole map if that is less.
    shard_entries: usize,
}

impl PieceLayout {
    /// Pieces with so many content bytes, of a map in such shards.
    pub fn new(content_bytes: usize, shard: ShardSize, map: &L2p) -> Self {
        let shard_entries = map.sectors().min(shard.sectors());
        let entry_bytes = usize_of(map.entry_bytes());
        assert!(content_bytes >= usize_of(PIECE_BYTES_MIN), "pieces of {content_bytes} bytes are too small");
        let shard_entries = usize::try_from(shard_entries).expect("a shard is small");
        Self { content_bytes, entry_bytes, shard_entries }
    }

    /// Map entries in a piece.
    pub const fn entries(&self) -> usize {
        self.content_bytes / self.entry_bytes
    }

    /// Bytes of a piece's entries.
    pub const fn entries_bytes(&self) -> usize {
        self.entries() * self.entry_bytes
    }

    /// Pieces of a shard; a map of less than one has fewer.
    pub const fn per_shard(&self) -> usize {
        self.shard_entries.div_ceil(self.entries())
    }
}

/// Content bytes of a piece, if at most `most` are to be used.
pub fn content_bytes(sector_bytes: usize, most: Option<u32>) -> usize {
    let all = sector_bytes - PIECE_HEADER_BYTES;
    most.map_or(all, |most| all.min(usize_of(most)))
}

/// Says in a piece's header whose it is, and that its `used` content bytes are whole.
pub fn encode_tags(number: u64, used: usize, bytes: &mut [u8]) {
    let (header, content) = bytes.split_at_mut(PIECE_HEADER_BYTES);
    assert!(used <= content.len(), "{used} bytes in a piece of {}", content.len());
    assert!(used >= usize_of(PIECE_BYTES_MIN), "{used} bytes in a piece are too few to be read");
    let used = if used == content.len() { 0 } else { u32::try_from(used).expect("a sector is small") };
    header[..8].copy_from_slice(&number.to_le_bytes());
    header[12..16].copy_from_slice(&used.to_le_bytes());
    let crc = ocssd_ftl::checksum(content);
    header[8..12].copy_from_slice(&crc.to_le_bytes());
}

/// A piece's content, if it is whole and of checkpoint `number`.
pub fn content(number: u64, bytes: &[u8]) -> Option<&[u8]> {
    let (header, content) = bytes.split_at_checked(PIECE_HEADER_BYTES)?;
    let sound =
        header[..8] == number.to_le_bytes() && header[8..12] == ocssd_ftl::checksum(content).to_le_bytes();
    sound.then(|| unchecked(bytes)).flatten()
}

/// A piece's content, whatever it is.
pub fn unchecked(bytes: &[u8]) -> Option<&[u8]> {
    let (header, content) = bytes.split_at_checked(PIECE_HEADER_BYTES)?;
    let used = usize_of(u32::from_le_bytes(header[12..16].try_into().ok()?));
    let content = if used == 0 { Some(content) } else { content.get(..used) };
    content.filter(|content| content.len() >= usize_of(PIECE_BYTES_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_gives_what_is_used_of_it_and_damage_is_found() {
        for used in [64, 100, 496] {
            let mut bytes = vec![7; 512];
            encode_tags(9, used, &mut bytes);
            assert_eq!(content(9, &bytes).map(<[u8]>::len), Some(used));
            assert_eq!(content(8, &bytes), None, "of another checkpoint");
            bytes[100] ^= 1;
            assert_eq!(content(9, &bytes), None, "damaged");
        }
        let mut all = vec![7; 512];
        encode_tags(9, 496, &mut all);
        assert_eq!(all[12..16], [0; 4], "as it was before pieces could be smaller");
    }

    #[test]
    fn a_shard_takes_as_many_pieces_as_its_entries_need() {
        let map = L2p::new(100, 1000, 10);
        let shard = ShardSize::new(32).expect("the smallest");
        let layout = PieceLayout::new(content_bytes(512, Some(64)), shard, &map);
        assert_eq!((layout.entries(), layout.per_shard()), (16, 2));
        let layout = PieceLayout::new(content_bytes(4096, None), ShardSize::default(), &map);
        assert_eq!((layout.entries(), layout.per_shard()), (1020, 1));
    }
}
