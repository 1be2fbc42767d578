//! What is in a block: a stamp of where it belongs and which write it came from, so that any mix-up is seen.
//!
//! With stamp payload the stamp is all there is. With real bytes it is the first 16 bytes of every block, and what
//! follows is zeroes, a pattern, or bytes that follow from the stamp, so that a verifying read compares all of them.

use ocssd_base::Prng;
use ocssd_lightnvm::{BufId, Buffers, Payload};
use std::ops::Range;

/// What fills blocks of real bytes behind the stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filler {
    /// Whatever the buffer held: random bytes from the start (fio's default reuses buffers too).
    Kept,
    /// Zeroes.
    Zeroes,
    /// These bytes over and over.
    Pattern(Vec<u8>),
    /// New bytes for every write, reproducible from the stamp.
    Derived,
    /// In every chunk first such new bytes, then bytes that compress.
    Compressible(Compressible),
}

/// Content of which a part compresses (fio `buffer_compress_percentage`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compressible {
    /// Bytes of a chunk; one that does not fit a block is the whole block.
    pub(super) chunk: usize,
    /// Of which so many percent compress, at the chunk's end.
    pub(super) percent: u8,
    /// What the compressible part repeats; zeroes if empty.
    pub(super) pattern: Vec<u8>,
}

impl Compressible {
    /// Bytes of a chunk, and how many of them are new.
    fn parts(&self, block: usize) -> (usize, usize) {
        let chunk = if self.chunk == 0 { block } else { self.chunk.min(block) };
        (chunk, chunk * (100 - usize::from(self.percent)) / 100)
    }

    /// Makes a whole block; what it held is lost.
    fn fill(&self, block: u64, sequence: u64, place: &mut [u8]) {
        let (chunk, fresh) = self.parts(place.len());
        derive(block, sequence, place);
        for part in place.chunks_mut(chunk) {
            let fresh = fresh.min(part.len());
            let rest = &mut part[fresh..];
            if self.pattern.is_empty() { rest.fill(0) } else { repeat(&self.pattern, rest) }
        }
    }
}

/// Bytes of a stamp.
const STAMP: usize = 16;

/// The content of a job's blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) filler: Filler,
    /// The pattern stands alone, without a stamp (fio `verify=pattern`).
    pub(super) bare_pattern: bool,
}

fn stamp(block: u64, sequence: u64) -> [u8; STAMP] {
    let mut bytes = [0; STAMP];
    bytes[..8].copy_from_slice(&block.to_le_bytes());
    bytes[8..].copy_from_slice(&sequence.to_le_bytes());
    bytes
}

fn repeat(pattern: &[u8], place: &mut [u8]) {
    for chunk in place.chunks_mut(pattern.len()) {
        chunk.copy_from_slice(&pattern[..chunk.len()]);
    }
}

fn derive(block: u64, sequence: u64, place: &mut [u8]) {
    let mut prng = Prng::new(block.rotate_left(32) ^ sequence);
    for chunk in place.chunks_mut(8) {
        let word = prng.next_u64().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

/// What real buffers hold at first: bytes that do not compress.
pub(super) fn fill_noise(buffers: &mut Buffers, buffer: BufId, prng: &mut Prng) {
    let sectors = buffers.sectors(buffer);
    for chunk in buffers.data_mut(buffer, 0, sectors).chunks_mut(8) {
        let word = prng.next_u64().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

impl Content {
    /// Fills a buffer with blocks of a target, `unit` bytes of the buffer each.
    pub(super) fn fill(
        &self,
        buffers: &mut Buffers,
        buffer: BufId,
        unit: usize,
        blocks: Range<u64>,
        sequence: u64,
    ) {
        let format = buffers.format();
        let count = usize::try_from(blocks.end - blocks.start).expect("a buffer fits memory");
        let data = buffers.bytes_mut(buffer, 0, count * unit);
        for (block, place) in blocks.zip(data.chunks_exact_mut(unit)) {
            let stamped = format.payload == Payload::Stamp || !self.bare_pattern;
            if let Filler::Compressible(parts) = &self.filler {
                parts.fill(block, sequence, place);
            }
            let (head, rest) = place.split_at_mut(if stamped { STAMP } else { 0 });
            match &self.filler {
                Filler::Zeroes => rest.fill(0),
                Filler::Pattern(pattern) => repeat(pattern, rest),
                Filler::Derived => derive(block, sequence, rest),
                Filler::Kept | Filler::Compressible(_) => {}
            }
            if stamped {
                head.copy_from_slice(&stamp(block, sequence));
            }
        }
    }

    /// True if a block holds what write `sequence` put there; 0 if any write to that block will do.
    #[inline(always)]
    pub(super) fn matches(&self, payload: Payload, place: &[u8], block: u64, sequence: u64) -> bool {
        if payload == Payload::Bytes && self.bare_pattern {
            let Filler::Pattern(pattern) = &self.filler else { return true };
            return place.chunks(pattern.len()).all(|chunk| chunk == &pattern[..chunk.len()]);
        }
        let (head, rest) = place.split_at(STAMP);
        if sequence == 0 {
            return head[..8] == block.to_le_bytes();
        }
        head == stamp(block, sequence) && self.filled(rest, block, sequence)
    }

    /// True if what follows the stamp is what the write left there.
    #[inline(never)]
    fn filled(&self, rest: &[u8], block: u64, sequence: u64) -> bool {
        match &self.filler {
            Filler::Kept => true,
            Filler::Zeroes => rest.iter().all(|&byte| byte == 0),
            Filler::Pattern(pattern) => {
                rest.chunks(pattern.len()).all(|chunk| chunk == &pattern[..chunk.len()])
            }
            Filler::Derived => {
                let mut expected = vec![0; rest.len()];
                derive(block, sequence, &mut expected);
                rest == expected
            }
            Filler::Compressible(parts) => {
                let mut expected = vec![0; STAMP + rest.len()];
                parts.fill(block, sequence, &mut expected);
                *rest == expected[STAMP..]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{Geometry, PayloadFormat};

    #[test]
    fn a_block_matches_only_its_own_write_whatever_fills_it() {
        let pattern = Filler::Pattern(vec![1, 2, 3]);
        for payload in [Payload::Stamp, Payload::Bytes] {
            let compressible = Compressible { chunk: 512, percent: 30, pattern: Vec::new() };
            let compressible = Filler::Compressible(compressible);
            for filler in [Filler::Kept, Filler::Zeroes, pattern.clone(), Filler::Derived, compressible] {
                let content = Content { filler, bare_pattern: false };
                let mut buffers =
                    Buffers::new(PayloadFormat::new(payload, &Geometry::example(1, 1, 1, 8, 8)));
                let buffer = buffers.take(2);
                let unit = buffers.format().data_bytes;
                content.fill(&mut buffers, buffer, unit, 70..72, 5);
                let second = buffers.data(buffer, 1, 1).to_vec();
                assert!(content.matches(payload, &second, 71, 5));
                assert!(content.matches(payload, &second, 71, 0));
                assert!(!content.matches(payload, &second, 70, 5));
                assert!(!content.matches(payload, &second, 71, 4));
                let mut broken = second;
                broken[unit - 1] ^= 1;
                let noticed = !content.matches(payload, &broken, 71, 5);
                assert!(noticed || content.filler == Filler::Kept, "{payload:?} {:?}", content.filler);
            }
        }
    }

    #[test]
    fn a_bare_pattern_has_no_stamp() {
        let content = Content { filler: Filler::Pattern(b"ab".to_vec()), bare_pattern: true };
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Bytes, &Geometry::example(1, 1, 1, 8, 8)));
        let buffer = buffers.take(1);
        content.fill(&mut buffers, buffer, 4096, 3..4, 9);
        assert!(buffers.data(buffer, 0, 1).chunks(2).all(|pair| pair == b"ab"));
        assert!(content.matches(Payload::Bytes, buffers.data(buffer, 0, 1), 3, 9));
    }

    #[test]
    fn so_much_of_every_chunk_compresses() {
        for (chunk, percent, pattern) in
            [(512, 50, ""), (512, 75, "ab"), (0, 20, ""), (1 << 20, 90, "x"), (100, 33, "")]
        {
            let parts = Compressible { chunk, percent, pattern: pattern.as_bytes().to_vec() };
            let mut block = vec![0; 4096];
            parts.fill(7, 9, &mut block);
            let length = if chunk == 0 || chunk > 4096 { 4096 } else { chunk };
            let fresh = length * (100 - usize::from(percent)) / 100;
            for part in block.chunks(length) {
                let rest = &part[fresh.min(part.len())..];
                let unit = if pattern.is_empty() { "\0" } else { pattern };
                let repeats = rest.iter().copied().eq(unit.bytes().cycle().take(rest.len()));
                assert!(repeats, "{chunk} {percent}");
                let zeroes = part[..fresh.min(part.len())].iter().filter(|&&byte| byte == 0).count();
                assert!(zeroes <= fresh / 20, "{chunk} {percent}: {zeroes} zeroes of {fresh} bytes");
            }
        }
    }
}
