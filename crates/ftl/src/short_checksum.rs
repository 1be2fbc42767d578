//! CRC-32 of few bytes: of a tag and a stamp, made for every sector written and checked for every sector moved, and of the heads
//! of records.
//!
//! A general CRC is quick over kilobytes and goes byte by byte over so few. This is the same sum (the one of zlib) up to sixteen
//! bytes at a time: a table for each place of a byte says what it does to the sum, so that all loads of a step
//! are independent (Kounavis and Berry, "slicing-by-8", 2005, at more bytes). Deliberately not here: kilobytes
//! (`tag::checksum`).

use ocssd_lightnvm::STAMP_BYTES;

/// Bytes of a tag without its checksum.
pub(crate) const BODY_BYTES: usize = 12;

/// The polynomial of CRC-32 (ISO 3309), lowest bit first.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// `TABLES[after][byte]`: what a byte adds to the sum when `after` bytes follow it in the step.
static TABLES: [[u32; 256]; STAMP_BYTES] = tables();

const fn tables() -> [[u32; 256]; STAMP_BYTES] {
    let mut tables = [[0; 256]; STAMP_BYTES];
    let (mut byte, mut number) = (0, 0);
    while byte < 256 {
        let (mut sum, mut after) = (number, 0);
        while after < STAMP_BYTES {
            // Another byte, of zeros, passes behind it.
            let mut bit = 0;
            while bit < 8 {
                sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
                bit += 1;
            }
            tables[after][byte] = sum;
            after += 1;
        }
        byte += 1;
        number += 1;
    }
    tables
}

/// The sum after a step of `N` bytes.
#[inline(always)]
fn step<const N: usize>(sum: u32, bytes: &[u8; N]) -> u32 {
    const {
        assert!(
            N >= 4 && N <= STAMP_BYTES,
            "a step is as long as the sum, and there is a table for each byte"
        )
    }
    let old = sum.to_le_bytes();
    let mut new = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        let byte = if at < 4 { byte ^ old[at] } else { byte };
        new ^= TABLES[N - 1 - at][usize::from(byte)];
    }
    new
}

/// The CRC-32 of `body` and `stamp`, one after the other. Cost: some 15 ns.
pub(crate) fn checksum(body: &[u8; BODY_BYTES], stamp: &[u8; STAMP_BYTES]) -> u32 {
    !step(step(u32::MAX, body), stamp)
}

/// The CRC-32 of parts, one after the other, that are a hundred bytes together or less: as [`crate::checksum`], which is quicker
/// beyond that. Cost: some 10 ns, and 5 for every sixteen bytes.
#[must_use]
pub fn checksum_of_short(parts: &[&[u8]]) -> u32 {
    let mut sum = u32::MAX;
    for part in parts {
        let (rows, rest) = part.as_chunks::<STAMP_BYTES>();
        let (words, bytes) = rest.as_chunks::<4>();
        sum = rows.iter().fold(sum, step);
        sum = words.iter().fold(sum, step);
        for byte in bytes {
            sum = sum >> 8 ^ TABLES[0][usize::from(sum.to_le_bytes()[0] ^ byte)];
        }
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;

    #[test]
    fn it_is_the_sum_of_the_library() {
        let seed = 28;
        let mut prng = Prng::new(seed);
        for round in 0..2_000 {
            let mut bytes = [0; BODY_BYTES + STAMP_BYTES];
            bytes.iter_mut().for_each(|byte| *byte = prng.next_u64().to_le_bytes()[0]);
            let (body, stamp) = bytes.split_at(BODY_BYTES);
            let sum = checksum(body.try_into().expect("12"), stamp.try_into().expect("16"));
            assert_eq!(sum, crc32fast::hash(&bytes), "seed {seed}, round {round}");
        }
    }

    #[test]
    fn parts_of_any_length_have_the_sum_of_the_library() {
        let seed = 29;
        let mut prng = Prng::new(seed);
        for length in 0..200 {
            let bytes: Vec<u8> = (0..length).map(|_| prng.next_u64().to_le_bytes()[0]).collect();
            let cut = usize::try_from(prng.below(length + 1)).expect("short");
            let (first, second) = bytes.split_at(cut);
            let found = [checksum_of_short(&[&bytes]), checksum_of_short(&[first, &[], second])];
            assert_eq!(found, [crc32fast::hash(&bytes); 2], "seed {seed}, {length} bytes cut at {cut}");
        }
    }
}
