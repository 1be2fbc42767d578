//! A chunk's record: 32 bytes with their own checksum, written by one aligned write.
//!
//! Thirty-two zero bytes are a record that was never written: the chunk is as the drive left the factory. So a fresh
//! image of any size is formatted without writing a table.

use super::layout::RECORD_BYTES;
use super::tail::{Digest, Tail};
use ocssd_flash::ChunkRecord;
use ocssd_lightnvm::{ChunkId, ChunkState};

/// Bytes of a record.
pub(super) const BYTES: usize = 32;

const _: () = assert!(RECORD_BYTES == 32 && BYTES == 32, "one size under two types");

/// Where the fields begin.
mod at {
    pub(super) const CHUNK: usize = 0;
    pub(super) const STATE: usize = 4;
    pub(super) const MARKED: usize = 5;
    pub(super) const WHOLE: usize = 6;
    pub(super) const ZERO: usize = 7;
    pub(super) const WRITE_POINTER: usize = 8;
    pub(super) const CYCLES: usize = 12;
    pub(super) const TAIL_FIRST: usize = 16;
    pub(super) const TAIL_DIGEST: usize = 20;
    pub(super) const CRC: usize = 28;
}

/// What the file keeps of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) record: ChunkRecord,
    /// Marks of unreadable sectors were written at some time; their pages say for which life of the chunk.
    pub(super) marked: bool,
    /// Flags of whole sectors were written in this life of the chunk.
    pub(super) whole: bool,
    /// What no sync had covered when the record was written.
    pub(super) tail: Tail,
}

/// Zero is left to records that were never written.
const STATES: [(u8, ChunkState); 4] =
    [(1, ChunkState::Free), (2, ChunkState::Open), (3, ChunkState::Closed), (4, ChunkState::Offline)];

impl Kept {
    /// A chunk that was never touched.
    pub(super) const fn fresh(initial_cycles: u32) -> Self {
        let record = ChunkRecord { state: ChunkState::Free, write_pointer: 0, cycles: initial_cycles };
        Self { record, marked: false, whole: false, tail: Tail::empty(0) }
    }

    /// The bytes.
    pub(super) fn encode(&self, chunk: ChunkId) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let state =
            STATES.iter().find(|(_, state)| *state == self.record.state).expect("every state has a code").0;
        bytes[at::CHUNK..at::STATE].copy_from_slice(&chunk.0.to_le_bytes());
        bytes[at::STATE] = state;
        bytes[at::MARKED] = self.marked.into();
        bytes[at::WHOLE] = self.whole.into();
        bytes[at::WRITE_POINTER..at::CYCLES].copy_from_slice(&self.record.write_pointer.to_le_bytes());
        bytes[at::CYCLES..at::TAIL_FIRST].copy_from_slice(&self.record.cycles.to_le_bytes());
        bytes[at::TAIL_FIRST..at::TAIL_DIGEST].copy_from_slice(&self.tail.first.to_le_bytes());
        bytes[at::TAIL_DIGEST..at::CRC].copy_from_slice(&self.tail.digest.0.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..at::CRC]);
        bytes[at::CRC..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the bytes; `fresh` is what a record of zeros stands for.
    ///
    /// # Errors
    /// What is wrong with them, to complete "the record of chunk 5 ...".
    pub(super) fn decode(
        bytes: &[u8; BYTES],
        chunk: ChunkId,
        fresh: Self,
        sectors: u32,
    ) -> Result<Self, String> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(fresh);
        }
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let (found, expected) = (number(at::CRC), crc32fast::hash(&bytes[..at::CRC]));
        if found != expected {
            return Err(format!("has checksum {found:08x}, but its bytes give {expected:08x}"));
        }
        if number(at::CHUNK) != chunk.0 {
            return Err(format!("says that it belongs to chunk {}", number(at::CHUNK)));
        }
        let code = bytes[at::STATE];
        let Some((_, state)) = STATES.iter().find(|(known, _)| *known == code) else {
            return Err(format!("has state {code}, but states are 1 to 4"));
        };
        if bytes[at::MARKED] > 1 || bytes[at::WHOLE] > 1 || bytes[at::ZERO..at::WRITE_POINTER] != [0] {
            return Err("has bytes set that this version does not know".to_owned());
        }
        let (state, write_pointer, cycles) = (*state, number(at::WRITE_POINTER), number(at::CYCLES));
        let possible = match state {
            ChunkState::Free | ChunkState::Offline => write_pointer == 0,
            ChunkState::Open => (1..sectors).contains(&write_pointer),
            ChunkState::Closed => write_pointer <= sectors,
        };
        if !possible {
            return Err(format!(
                "says {state} with write pointer {write_pointer} of {sectors}, which is impossible"
            ));
        }
        let digest = bytes[at::TAIL_DIGEST..at::CRC].try_into().expect("eight bytes");
        let tail = Tail { first: number(at::TAIL_FIRST), digest: Digest(u64::from_le_bytes(digest)) };
        if tail.first > write_pointer {
            return Err(format!(
                "says that sectors up to {} were synced, but ends at {write_pointer}, which is impossible",
                tail.first
            ));
        }
        let record = ChunkRecord { state, write_pointer, cycles };
        Ok(Self { record, marked: bytes[at::MARKED] == 1, whole: bytes[at::WHOLE] == 1, tail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Kept = Kept::fresh(7);

    fn decode(bytes: &[u8; BYTES]) -> Result<Kept, String> {
        Kept::decode(bytes, ChunkId(5), FRESH, 64)
    }

    fn kept(state: ChunkState, write_pointer: u32) -> Kept {
        let whole = state == ChunkState::Closed;
        let tail = Tail { first: write_pointer / 2, digest: Digest(0x0123_4567_89AB_CDEF) };
        Kept { record: ChunkRecord { state, write_pointer, cycles: 9 }, marked: true, whole, tail }
    }

    #[test]
    fn records_are_read_back_and_zeros_are_a_fresh_chunk() {
        for (state, pointer) in [
            (ChunkState::Free, 0),
            (ChunkState::Open, 63),
            (ChunkState::Closed, 64),
            (ChunkState::Offline, 0),
        ] {
            assert_eq!(decode(&kept(state, pointer).encode(ChunkId(5))), Ok(kept(state, pointer)));
        }
        assert_eq!(decode(&[0; BYTES]), Ok(FRESH));
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        for index in 0..BYTES {
            for bit in 0..8 {
                let mut bytes = kept(ChunkState::Open, 8).encode(ChunkId(5));
                bytes[index] ^= 1 << bit;
                assert!(decode(&bytes).is_err(), "byte {index} bit {bit}");
            }
        }
    }

    #[test]
    fn an_impossible_record_with_a_right_checksum_is_refused_with_its_cause() {
        type Change = fn(&mut [u8; BYTES]);
        let table: [(Change, &str); 8] = [
            (|b| b[0] = 6, "belongs to chunk 6"),
            (|b| b[4] = 5, "state 5"),
            (|b| b[5] = 2, "does not know"),
            (|b| b[6] = 2, "does not know"),
            (|b| b[7] = 1, "does not know"),
            (|b| b[16] = 9, "up to 9 were synced, but ends at 8"),
            (|b| b[8] = 64, "OPEN with write pointer 64 of 64"),
            (|b| b[4] = 1, "FREE with write pointer 8 of 64"),
        ];
        for (change, expected) in table {
            let mut bytes = kept(ChunkState::Open, 8).encode(ChunkId(5));
            change(&mut bytes);
            let crc = crc32fast::hash(&bytes[..28]);
            bytes[28..].copy_from_slice(&crc.to_le_bytes());
            let error = decode(&bytes).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }
}
