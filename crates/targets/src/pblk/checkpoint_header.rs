//! What a map checkpoint says of the instance, beside the map: the first pieces of every checkpoint.
//!
//! Little endian, field by field: magic, version, instance, number, pieces, sizes, the shards present, a row per line, how
//! far open lines are written, in version 4 the shards that older checkpoints have, CRC-32. Deliberately not here:
//! how pieces lie on media (`checkpoint`).

use ocssd_ftl::{InstanceId, LineSequence, LineState, Lines, Sequence, ShardSize, Stream};

const MAGIC: [u8; 4] = *b"snap";
/// Raised when valid bits came to mean something else: those of version 1 are in checkpoints of a shutdown only, and count the
/// records of discards.
const VERSION: u32 = 2;
/// The version of those whose map is not in shards of the usual size. Others are not told apart from version 2.
const VERSION_OF_SHARDS: u32 = 3;
/// The version of those that leave shards where older checkpoints have them. One that has all of its shards is of version 2 or 3.
const VERSION_OF_KEPT: u32 = 4;
/// The oldest version that is read.
const VERSION_MIN: u32 = 1;

/// A line as a checkpoint knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRow {
    pub state: RowState,
    pub stream: Stream,
    pub sequence: LineSequence,
    pub opened_at: Sequence,
    pub data_sectors: u64,
    pub resets: u32,
    /// The row of valid bits is among the pieces.
    pub has_bits: bool,
}

/// What a line was when the checkpoint was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowState {
    Free,
    Open,
    Closed,
    Bad,
}

/// A shard that is not among the pieces, since an older checkpoint has it as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptShard {
    pub shard: u32,
    /// Its first piece in that checkpoint.
    pub first_piece: u32,
    /// The number of that checkpoint.
    pub number: u64,
}

/// Everything but the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointHeader {
    pub instance: InstanceId,
    /// Counts the instance's checkpoints.
    pub number: u64,
    /// Taken at shutdown: nothing was written after it.
    pub clean: bool,
    /// The newest write before it.
    pub sequence: Sequence,
    pub next_line: LineSequence,
    /// Logical sectors of the instance.
    pub sectors: u64,
    pub entry_bytes: u32,
    /// How the map is parted.
    pub shard: ShardSize,
    /// Pieces of the whole checkpoint, those of the header included.
    pub pieces: u64,
    /// Shards of the map that are among the pieces, in order.
    pub shards: Vec<u32>,
    pub lines: Vec<LineRow>,
    /// Open lines, and how far each of their chunks was written.
    pub open: Vec<(u32, Vec<u32>)>,
    /// Shards of the map that older checkpoints have, in order.
    pub kept: Vec<KeptShard>,
}

impl LineRow {
    /// What a checkpoint says of a line.
    pub fn of(lines: &Lines, line: ocssd_ftl::LineId, has_bits: bool) -> Self {
        let entry = lines.get(line);
        let state = match entry.state {
            LineState::Free { .. } | LineState::Erasing => RowState::Free,
            LineState::Open => RowState::Open,
            LineState::Closed => RowState::Closed,
            LineState::Bad => RowState::Bad,
        };
        Self {
            state,
            stream: entry.stream,
            sequence: entry.sequence,
            opened_at: entry.opened_at,
            data_sectors: entry.data_sectors,
            resets: entry.resets,
            has_bits,
        }
    }

    /// Bytes of a row.
    const BYTES: usize = 32;

    fn encode(&self, out: &mut Vec<u8>) {
        let state = match self.state {
            RowState::Free => 0,
            RowState::Open => 1,
            RowState::Closed => 2,
            RowState::Bad => 3,
        };
        let mut row = [0; Self::BYTES];
        row[..4].copy_from_slice(&[state, self.stream.0, u8::from(self.has_bits), 0]);
        row[4..8].copy_from_slice(&self.resets.to_le_bytes());
        let values = [self.sequence.0, self.opened_at.0, self.data_sectors];
        for (place, value) in row[8..].chunks_exact_mut(8).zip(values) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&row);
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        let [state, stream, has_bits, _] = reader.array::<4>()?;
        let state = match state {
            0 => RowState::Free,
            1 => RowState::Open,
            2 => RowState::Closed,
            3 => RowState::Bad,
            _ => return None,
        };
        Some(Self {
            state,
            stream: Stream(stream),
            has_bits: has_bits == 1,
            resets: reader.u32()?,
            sequence: LineSequence(reader.u64()?),
            opened_at: Sequence(reader.u64()?),
            data_sectors: reader.u64()?,
        })
    }
}

impl KeptShard {
    /// Bytes on media: shard, piece, number.
    const BYTES: usize = 16;
}

impl CheckpointHeader {
    /// Bytes before the lists: magic, version, length and whether it is clean; six numbers; the size of entries and three
    /// counts.
    const FIXED_BYTES: usize = 16 + 6 * 8 + 4 * 4;

    /// Bytes it takes; they do not depend on `pieces`.
    pub fn encoded_bytes(&self) -> usize {
        let open: usize = self.open.iter().map(|(_, pointers)| 8 + 4 * pointers.len()).sum();
        let kept = if self.kept.is_empty() { 0 } else { 4 + KeptShard::BYTES * self.kept.len() };
        Self::FIXED_BYTES + 4 * self.shards.len() + LineRow::BYTES * self.lines.len() + open + kept + 4
    }

    /// Bytes that so many shards take at most.
    pub const fn bytes_of_shards(shards: usize) -> usize {
        4 + (4 + KeptShard::BYTES) * shards
    }

    fn version(&self) -> u32 {
        match (self.kept.is_empty(), self.shard == ShardSize::default()) {
            (false, _) => VERSION_OF_KEPT,
            (true, false) => VERSION_OF_SHARDS,
            (true, true) => VERSION,
        }
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.encoded_bytes());
        out.extend(MAGIC);
        let is_usual = self.shard == ShardSize::default();
        out.extend(self.version().to_le_bytes());
        out.extend([0; 4]); // the length, filled in below
        out.extend([u8::from(self.clean), if is_usual { 0 } else { self.shard_bits() }, 0, 0]);
        for value in
            [self.instance.bits(), self.number, self.sequence.0, self.next_line.0, self.sectors, self.pieces]
        {
            out.extend(value.to_le_bytes());
        }
        out.extend(self.entry_bytes.to_le_bytes());
        for count in [self.shards.len(), self.lines.len(), self.open.len()] {
            out.extend(narrow(count).to_le_bytes());
        }
        self.shards.iter().for_each(|shard| out.extend(shard.to_le_bytes()));
        self.lines.iter().for_each(|line| line.encode(&mut out));
        for (line, pointers) in &self.open {
            out.extend(line.to_le_bytes());
            out.extend(narrow(pointers.len()).to_le_bytes());
            pointers.iter().for_each(|pointer| out.extend(pointer.to_le_bytes()));
        }
        self.encode_kept(&mut out);
        let length = narrow(out.len() + 4);
        out[8..12].copy_from_slice(&length.to_le_bytes());
        let crc = ocssd_ftl::checksum(&out);
        out.extend(crc.to_le_bytes());
        assert_eq!(out.len(), self.encoded_bytes(), "a header has another length than was said");
        out
    }

    fn encode_kept(&self, out: &mut Vec<u8>) {
        if self.kept.is_empty() {
            return;
        }
        out.extend(narrow(self.kept.len()).to_le_bytes());
        for kept in &self.kept {
            assert!(0 < kept.number && kept.number < self.number, "{kept:?} of no older checkpoint");
            out.extend(kept.shard.to_le_bytes());
            out.extend(kept.first_piece.to_le_bytes());
            out.extend(kept.number.to_le_bytes());
        }
    }

    /// The size of a shard, as a power of two.
    fn shard_bits(&self) -> u8 {
        u8::try_from(self.shard.bits()).expect("a shard is small")
    }

    /// The length of a header, from its first bytes; `None` if it is none.
    pub fn length(bytes: &[u8]) -> Option<usize> {
        let mut reader = Reader(bytes);
        let sound = reader.array::<4>()? == MAGIC && (VERSION_MIN..=VERSION_OF_KEPT).contains(&reader.u32()?);
        let length = usize::try_from(reader.u32()?).ok()?;
        sound.then_some(length)
    }

    /// The version of a header that a newer program wrote, from its first bytes.
    pub fn newer_version(bytes: &[u8]) -> Option<u32> {
        let mut reader = Reader(bytes);
        let is_header = reader.array::<4>()? == MAGIC;
        Some(reader.u32()?).filter(|&version| is_header && version > VERSION_OF_KEPT)
    }

    /// A header out of its bytes; `None` if they are damaged.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..Self::length(bytes)?)?;
        let (body, crc) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        if ocssd_ftl::checksum(body).to_le_bytes() != *crc {
            return None;
        }
        let has_kept = body.get(4..8)? == VERSION_OF_KEPT.to_le_bytes();
        let mut reader = Reader(body.get(12..)?);
        let [clean, bits, ..] = reader.array::<4>()?;
        let shard = if bits == 0 { ShardSize::default() } else { ShardSize::of_bits(bits.into())? };
        let (instance, number) = (InstanceId::new(reader.u64()?), reader.u64()?);
        let (sequence, next_line) = (Sequence(reader.u64()?), LineSequence(reader.u64()?));
        let (sectors, pieces, entry_bytes) = (reader.u64()?, reader.u64()?, reader.u32()?);
        let (shards, lines, open) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let shards = (0..shards).map(|_| reader.u32()).collect::<Option<Vec<_>>>()?;
        let lines = (0..lines).map(|_| LineRow::decode(&mut reader)).collect::<Option<Vec<_>>>()?;
        let mut chunks = || {
            let (line, count) = (reader.u32()?, reader.u32()?);
            Some((line, (0..count).map(|_| reader.u32()).collect::<Option<Vec<_>>>()?))
        };
        let open = (0..open).map(|_| chunks()).collect::<Option<Vec<_>>>()?;
        let kept = if has_kept { reader.u32()? } else { 0 };
        let kept = (0..kept).map(|_| reader.kept_shard()).collect::<Option<Vec<_>>>()?;
        Some(Self {
            instance,
            number,
            clean: clean == 1,
            sequence,
            next_line,
            sectors,
            entry_bytes,
            shard,
            pieces,
            shards,
            lines,
            open,
            kept,
        })
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn kept_shard(&mut self) -> Option<KeptShard> {
        Some(KeptShard { shard: self.u32()?, first_piece: self.u32()?, number: self.u64()? })
    }
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).expect("fewer than 2^32 of anything")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_and_damage_is_found() {
        let row = LineRow {
            state: RowState::Closed,
            stream: Stream(1),
            sequence: LineSequence(7),
            opened_at: Sequence(99),
            data_sectors: 1 << 33,
            resets: 5,
            has_bits: true,
        };
        let header = CheckpointHeader {
            instance: InstanceId::new(3),
            number: 8,
            clean: true,
            sequence: Sequence(1000),
            next_line: LineSequence(9),
            sectors: 1 << 30,
            entry_bytes: 4,
            shard: ShardSize::default(),
            pieces: 77,
            shards: vec![0, 3],
            lines: vec![row, LineRow { state: RowState::Free, has_bits: false, ..row }],
            open: vec![(1, vec![16, 32])],
            kept: Vec::new(),
        };
        let bytes = header.encode();
        assert_eq!(CheckpointHeader::length(&bytes), Some(bytes.len()));
        for (version, length) in [(0, None), (1, Some(bytes.len())), (2, Some(bytes.len())), (5, None)] {
            let mut other = bytes.clone();
            other[4] = version;
            assert_eq!(CheckpointHeader::length(&other), length, "version {version}");
            assert_eq!(CheckpointHeader::newer_version(&other).is_some(), version == 5, "version {version}");
        }
        assert_eq!(CheckpointHeader::decode(&bytes), Some(header.clone()));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(CheckpointHeader::decode(&damaged), None, "byte {at}");
            assert_eq!(CheckpointHeader::decode(&bytes[..at]), None, "cut at {at}");
        }
        assert_eq!((bytes[4], bytes[12..16].to_vec()), (2, vec![1, 0, 0, 0]), "as older programs read it");
        let kept = vec![KeptShard { shard: 1, first_piece: 9, number: 5 }];
        let other = CheckpointHeader { kept, ..header.clone() };
        let bytes = other.encode();
        assert_eq!((bytes[4], CheckpointHeader::decode(&bytes)), (4, Some(other)), "a newer version");
        let other = CheckpointHeader { shard: ShardSize::new(64).expect("a size"), ..header };
        let bytes = other.encode();
        assert_eq!(
            (bytes[4], CheckpointHeader::decode(&bytes)),
            (3, Some(other)),
            "older programs refuse it"
        );
    }
}
