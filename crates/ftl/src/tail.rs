//! The last units of a chunk: the tags of all its sectors (pblk's emeta), so that a full chunk is recovered by reading
//! one unit and not all of it.
//!
//! pblk kept one list at the end of a line and, when a chunk of the line failed, had to find it again. Here each chunk
//! carries its own. A chunk too small for that, where the list would take more than an eighth of it, has none and is
//! scanned instead. Content: magic, version, count, CRC-32 of what follows, then 12 bytes a sector. Deliberately not
//! here: reading a chunk without one.

use crate::tag::{Corrupt, SectorTag};
use ocssd_base::usize_of;
use ocssd_lightnvm::VECTOR_MAX;

const MAGIC: [u8; 4] = *b"tags";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 16;
/// Bytes of a tag in a list.
pub const ENTRY_BYTES: usize = 12;
/// A tail takes at most this part of a chunk (chosen: a scan of so small a chunk costs no more than reading its tail).
const PART_MAX: u32 = 8;

/// Sectors a chunk's tail takes, in whole units; 0 if the chunk is too small to have one, or so large that its list does not
/// fit one vector command.
#[must_use]
pub fn tail_sectors(sectors_per_chunk: u32, unit: u32, sector_bytes: u32) -> u32 {
    let sectors = list_sectors(sectors_per_chunk, sector_bytes).next_multiple_of(unit);
    if sectors * PART_MAX > sectors_per_chunk || sectors > VECTOR_MAX { 0 } else { sectors }
}

/// Of a chunk's tail, the sectors that its list takes; behind them there is nothing but padding.
#[must_use]
pub fn list_sectors(sectors_per_chunk: u32, sector_bytes: u32) -> u32 {
    let bytes = HEADER_BYTES + usize_of(sectors_per_chunk) * ENTRY_BYTES;
    u32::try_from(bytes.div_ceil(usize_of(sector_bytes))).expect("a list is shorter than its chunk")
}

/// Writes the list of `entries`, 12 bytes each, into the first sectors of a tail ([`list_sectors`]); what is behind it is left
/// as it is.
///
/// # Panics
/// If the list does not fit.
pub fn encode(entries: &[u8], out: &mut [u8]) {
    assert!(entries.len().is_multiple_of(ENTRY_BYTES), "a list holds whole tags");
    assert!(HEADER_BYTES + entries.len() <= out.len(), "a list does not fit its tail");
    let count = u32::try_from(entries.len() / ENTRY_BYTES).expect("fewer sectors than 2^32");
    let (header, body) = out.split_at_mut(HEADER_BYTES);
    body[..entries.len()].copy_from_slice(entries);
    header[..4].copy_from_slice(&MAGIC);
    header[4..8].copy_from_slice(&VERSION.to_le_bytes());
    header[8..12].copy_from_slice(&count.to_le_bytes());
    let crc = crc32fast::hash(&body[..entries.len()]);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
}

/// The tags in a tail's sectors.
///
/// # Errors
/// [`Corrupt`] if it is no list, or a damaged one.
pub fn decode(bytes: &[u8]) -> Result<Vec<SectorTag>, Corrupt> {
    let (header, body) = bytes.split_at_checked(HEADER_BYTES).ok_or(Corrupt)?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if header[..4] != MAGIC || word(4) != VERSION {
        return Err(Corrupt);
    }
    let entries =
        usize_of(word(8)).checked_mul(ENTRY_BYTES).and_then(|length| body.get(..length)).ok_or(Corrupt)?;
    if crc32fast::hash(entries) != word(12) {
        return Err(Corrupt);
    }
    let (entries, _) = entries.as_chunks::<ENTRY_BYTES>();
    entries.iter().map(SectorTag::from_list_entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::{Kind, Sequence};

    #[test]
    fn a_westlake_chunk_gives_one_unit_and_a_tiny_one_nothing() {
        assert_eq!(tail_sectors(4096, 16, 4096), 16);
        assert_eq!(tail_sectors(6144, 24, 4096), 24);
        assert_eq!(tail_sectors(48, 24, 4096), 0);
        assert_eq!(tail_sectors(192, 24, 4096), 24);
        assert_eq!(tail_sectors(16_384, 64, 4096), 64);
        assert_eq!(tail_sectors(65_536, 16, 4096), 0, "193 sectors are no one command");
        // An eighth of a chunk is not too much.
        assert_eq!((tail_sectors(8, 1, 4096), tail_sectors(7, 1, 4096)), (1, 0));
        assert_eq!((list_sectors(340, 4096), list_sectors(341, 4096)), (1, 2), "16 bytes and 12 a sector");
    }

    fn encode_of(entries: &[u8], bytes: usize) -> Vec<u8> {
        let mut out = vec![0xFF; bytes];
        encode(entries, &mut out);
        out
    }

    #[test]
    fn a_list_comes_back_and_damage_is_found() {
        let tags: Vec<SectorTag> =
            (0..50).map(|n| SectorTag { kind: Kind::Data, block: n * 7, sequence: Sequence(n) }).collect();
        let entries: Vec<u8> = tags.iter().flat_map(|tag| tag.to_list_entry()).collect();
        let mut out = encode_of(&entries, 4096);
        assert!(out[HEADER_BYTES + entries.len()..].iter().all(|&byte| byte == 0xFF), "it is left as it is");
        assert_eq!(decode(&out), Ok(tags));
        let whole = encode_of(&entries, HEADER_BYTES + entries.len());
        assert_eq!(decode(&whole).map(|tags| tags.len()), Ok(50), "nothing need be behind it");
        assert_eq!(whole[..12], [b't', b'a', b'g', b's', 1, 0, 0, 0, 50, 0, 0, 0]);
        for at in [0, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 16, 600] {
            let mut damaged = out.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged), Err(Corrupt), "byte {at}");
        }
        assert_eq!(decode(&out[..8]), Err(Corrupt));
        out[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(decode(&out), Err(Corrupt));
    }
}
