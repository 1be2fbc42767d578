//! What written blocks carry, so that reads can be checked at little cost: where they belong.
//!
//! At the beginning of every block of a write lies its own place in the file and the number of its write, mixed with a
//! constant, so that neither zeroes nor foreign data pass for a stamp. Reads of any size look at the first place that is a
//! multiple of 4 KiB. The rest of a block is noise that does not compress.

use ocssd_base::Prng;

/// Places that are always stamped, in bytes.
pub(super) const STAMPED_EVERY: u64 = 4096;
/// Bytes of a stamp.
pub(super) const BYTES: usize = 16;
/// Mixed into both words of a stamp (chosen: the fractional digits of the golden ratio, and of the square root of 2).
const MIX: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0x6A09_E667_F3BC_C908];

/// A stamp for the byte `offset` of the file and write number `sequence`.
pub(super) fn stamp(offset: u64, sequence: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&(offset ^ MIX[0]).to_le_bytes());
    bytes[8..].copy_from_slice(&(sequence ^ MIX[1]).to_le_bytes());
    bytes
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(word)
}

/// Which byte of the file, and which write, a stamp names; any numbers of what is no stamp.
pub(super) fn read(bytes: &[u8]) -> (u64, u64) {
    (word(bytes) ^ MIX[0], word(&bytes[8..]) ^ MIX[1])
}

/// Whether data read from `offset` names its own place; `None` if it has no place where a stamp must be.
pub(super) fn is_own(data: &[u8], offset: u64) -> Option<bool> {
    let at = offset.next_multiple_of(STAMPED_EVERY);
    let first = usize::try_from(at - offset).ok()?;
    let found = data.get(first..first + BYTES)?;
    Some(read(found).0 == at)
}

/// Fills memory with bytes that do not compress.
pub(super) fn fill_noise(memory: &mut [u8], prng: &mut Prng) {
    for chunk in memory.chunks_mut(8) {
        let word = prng.next_u64().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_names_its_place_and_neither_zeroes_nor_another_place_do() {
        let mut data = vec![0; 8192];
        assert_eq!(is_own(&data, 0), Some(false), "zeroes");
        data[..BYTES].copy_from_slice(&stamp(40_960, 7));
        assert_eq!(is_own(&data, 40_960), Some(true));
        assert_eq!(is_own(&data, 45_056), Some(false));
        assert_eq!(read(&data), (40_960, 7));
    }

    #[test]
    fn a_read_between_stamps_is_not_judged() {
        let mut data = vec![0; 1024];
        assert_eq!(is_own(&data[..512], 512), None);
        data[512..512 + BYTES].copy_from_slice(&stamp(8192, 1));
        assert_eq!(is_own(&data, 7680), Some(true), "the stamp lies in its second half");
    }
}
