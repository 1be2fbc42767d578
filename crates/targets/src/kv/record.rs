//! What lies on media: units that say which they are, and records that say what they hold.
//!
//! A unit begins with 40 bytes: magic 4, version 2, stream 1, spare 1, instance 8, number 8, bytes filled 4, spare 8, CRC-32
//! of these 4. Records follow one after the other, at any byte; a zero where a record would begin ends them. A record is 40
//! bytes, its key, its payload: magic 1, kind 1, bytes of the key 1, spare 1, bytes of the payload 4, sequence 8, value 8,
//! offset 4, part 2, parts 2, CRC-32 of the payload 4, CRC-32 of all before it and the key 4. So everything that is kept can
//! be found again by reading media alone. All numbers are little endian. Deliberately not here: which of several records of
//! a key counts (`mount`), and where units lie.

use ocssd_base::usize_of;
use ocssd_ftl::{InstanceId, checksum, checksum_of_short};

/// Bytes before the first record of a unit.
pub const UNIT_HEADER_BYTES: usize = 40;
/// Bytes before the key of a record.
pub const RECORD_HEADER_BYTES: usize = 40;
/// "OKVU" in ASCII.
const UNIT_MAGIC: [u8; 4] = *b"OKVU";
/// The layout; raised when an older reader would misread it.
const VERSION: u16 = 1;
/// The first byte of a record (chosen: neither what erased nor what zeroed media hold).
const RECORD_MAGIC: u8 = 0xB5;

/// The number of a unit: counts every unit written to the instance, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnitNumber(pub u64);

/// What a unit says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitHeader {
    pub instance: InstanceId,
    pub number: UnitNumber,
    /// Which stream wrote it.
    pub stream: u8,
    /// Bytes of header and records.
    pub filled: u32,
}

impl UnitHeader {
    /// Writes the header to the first bytes of a unit.
    pub fn encode(&self, out: &mut [u8]) {
        let out = &mut out[..UNIT_HEADER_BYTES];
        assert!(usize_of(self.filled) >= UNIT_HEADER_BYTES, "a unit of {} bytes", self.filled);
        out.fill(0);
        out[..4].copy_from_slice(&UNIT_MAGIC);
        out[4..6].copy_from_slice(&VERSION.to_le_bytes());
        out[6] = self.stream;
        out[8..16].copy_from_slice(&self.instance.bits().to_le_bytes());
        out[16..24].copy_from_slice(&self.number.0.to_le_bytes());
        out[24..28].copy_from_slice(&self.filled.to_le_bytes());
        let crc = checksum(&out[..36]);
        out[36..].copy_from_slice(&crc.to_le_bytes());
    }

    /// The header in the first bytes of a unit; `None` if it is none of this layout.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<UNIT_HEADER_BYTES>()?;
        let is_ours = bytes[..4] == UNIT_MAGIC && bytes[4..6] == VERSION.to_le_bytes();
        if !is_ours || checksum(&bytes[..36]) != u32_at(bytes, 36) {
            return None;
        }
        Some(Self {
            instance: InstanceId::new(u64_at(bytes, 8)),
            number: UnitNumber(u64_at(bytes, 16)),
            stream: bytes[6],
            filled: u32_at(bytes, 24),
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A key and its whole value.
    Whole,
    /// A piece of a long value, which has no key yet.
    Piece,
    /// A key, and the long value it holds.
    Long,
    /// A key that does not exist any more.
    Delete,
    /// A key whose value the media lost.
    Lost,
    /// A piece of a long value that the media lost.
    PieceLost,
    /// A page of the index, which only the index and checkpoints name.
    Index,
}

impl RecordKind {
    const fn to_byte(self) -> u8 {
        match self {
            Self::Whole => 1,
            Self::Piece => 2,
            Self::Long => 3,
            Self::Delete => 4,
            Self::Lost => 5,
            Self::PieceLost => 6,
            Self::Index => 7,
        }
    }

    const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Whole,
            2 => Self::Piece,
            3 => Self::Long,
            4 => Self::Delete,
            5 => Self::Lost,
            6 => Self::PieceLost,
            7 => Self::Index,
            _ => return None,
        })
    }

    /// True of a record whose bytes are needed as long as a map names them; the others are needed until a checkpoint.
    pub const fn is_kept(self) -> bool {
        matches!(self, Self::Whole | Self::Piece | Self::Index)
    }
}

/// What a record says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    pub kind: RecordKind,
    pub key_bytes: u8,
    pub payload_bytes: u32,
    /// Counts every record of the instance, from 1: of two of a key the later one counts.
    pub sequence: u64,
    /// Of a piece and of a long value: its number.
    pub value: u64,
    /// Of a piece: where it lies in its value. Of a long or a lost value: its bytes.
    pub offset: u32,
    /// Which record of a batch this is, from 0; those of a batch have sequences one after the other.
    pub part: u16,
    /// Records of the batch.
    pub parts: u16,
}

impl RecordHeader {
    /// Bytes of the record.
    pub fn bytes(&self) -> usize {
        RECORD_HEADER_BYTES + usize::from(self.key_bytes) + usize_of(self.payload_bytes)
    }

    /// Writes the record to `out`, which is as long as it.
    pub fn encode(&self, key: &[u8], payload: &[u8], out: &mut [u8]) {
        assert_eq!(key.len(), usize::from(self.key_bytes), "a key of another length");
        assert_eq!(payload.len(), usize_of(self.payload_bytes), "a payload of another length");
        let (to_key, to_payload) = out[RECORD_HEADER_BYTES..].split_at_mut(key.len());
        to_key.copy_from_slice(key);
        to_payload.copy_from_slice(payload);
        self.encode_around(checksum(payload), out);
    }

    /// Writes the header of a record whose key and payload lie in `out` already. The payload has this [checksum].
    pub fn encode_around(&self, payload_checksum: u32, out: &mut [u8]) {
        assert_eq!(out.len(), self.bytes(), "a record goes to a place of another length");
        assert!(self.part < self.parts && self.sequence > u64::from(self.part), "{self:?} is of no batch");
        let (head, rest) = out.split_at_mut(RECORD_HEADER_BYTES);
        head[0] = RECORD_MAGIC;
        head[1] = self.kind.to_byte();
        head[2] = self.key_bytes;
        head[3] = 0;
        head[4..8].copy_from_slice(&self.payload_bytes.to_le_bytes());
        head[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        head[16..24].copy_from_slice(&self.value.to_le_bytes());
        head[24..28].copy_from_slice(&self.offset.to_le_bytes());
        head[28..30].copy_from_slice(&self.part.to_le_bytes());
        head[30..32].copy_from_slice(&self.parts.to_le_bytes());
        head[32..36].copy_from_slice(&payload_checksum.to_le_bytes());
        let crc = header_checksum(head, &rest[..usize::from(self.key_bytes)]);
        head[36..].copy_from_slice(&crc.to_le_bytes());
    }
}

/// The CRC-32 of a header without its own, and a key.
fn header_checksum(head: &[u8], key: &[u8]) -> u32 {
    checksum_of_short(&[&head[..36], key])
}

/// A record that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub header: RecordHeader,
    pub key: &'a [u8],
    pub payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record at the begin of `bytes`; `None` if there is none, or its header and key are not as they were written.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<RECORD_HEADER_BYTES>()?;
        if head[0] != RECORD_MAGIC {
            return None;
        }
        let header = RecordHeader {
            kind: RecordKind::from_byte(head[1])?,
            key_bytes: head[2],
            payload_bytes: u32_at(head, 4),
            sequence: u64_at(head, 8),
            value: u64_at(head, 16),
            offset: u32_at(head, 24),
            part: u16::from_le_bytes([head[28], head[29]]),
            parts: u16::from_le_bytes([head[30], head[31]]),
        };
        let (key, rest) = rest.split_at_checked(usize::from(header.key_bytes))?;
        let payload = rest.get(..usize_of(header.payload_bytes))?;
        let is_sound = header_checksum(head, key) == u32_at(head, 36);
        let is_of_batch = header.part < header.parts && header.sequence > u64::from(header.part);
        (is_sound && is_of_batch).then_some(Self { header, key, payload })
    }

    /// True if the payload is as it was written, `bytes` being the record's.
    pub fn is_sound(&self, bytes: &[u8]) -> bool {
        checksum(self.payload) == self.payload_checksum(bytes)
    }

    /// The checksum that the payload had when it was written, `bytes` being the record's.
    pub fn payload_checksum(&self, bytes: &[u8]) -> u32 {
        assert!(
            bytes.len() >= self.header.bytes(),
            "{} bytes are no record of {:?}",
            bytes.len(),
            self.header
        );
        u32_at(bytes, 32)
    }
}

/// The records of a unit with the byte each begins at, up to the first that is not there.
pub fn records(unit: &[u8]) -> impl Iterator<Item = (usize, Record<'_>)> {
    let mut at = UNIT_HEADER_BYTES;
    std::iter::from_fn(move || {
        let record = Record::decode(unit.get(at..)?)?;
        let begin = at;
        at += record.header.bytes();
        Some((begin, record))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: RecordKind, key: &[u8], payload: &[u8]) -> RecordHeader {
        RecordHeader {
            kind,
            key_bytes: u8::try_from(key.len()).expect("short"),
            payload_bytes: u32::try_from(payload.len()).expect("short"),
            sequence: 77,
            value: 1 << 50,
            offset: 9,
            part: 2,
            parts: 3,
        }
    }

    #[test]
    fn records_of_a_unit_are_read_as_they_were_written() {
        let mut unit = vec![0; 600];
        let kinds = [RecordKind::Whole, RecordKind::Piece, RecordKind::Long, RecordKind::Delete];
        let mut at = UNIT_HEADER_BYTES;
        let contents: [(&[u8], &[u8]); 4] =
            [(b"key", b"value"), (b"", &[7; 200]), (&[1; 16], b""), (b"x", b"")];
        for (kind, (key, payload)) in kinds.into_iter().zip(contents) {
            let header = header(kind, key, payload);
            header.encode(key, payload, &mut unit[at..at + header.bytes()]);
            at += header.bytes();
        }
        let of_unit = UnitHeader {
            instance: InstanceId::new(5),
            number: UnitNumber(6),
            stream: 1,
            filled: u32::try_from(at).expect("short"),
        };
        of_unit.encode(&mut unit);
        assert_eq!(UnitHeader::decode(&unit), Some(of_unit));
        let found: Vec<(usize, Record<'_>)> = records(&unit).collect();
        assert_eq!(found.len(), 4);
        for ((kind, (key, payload)), (begin, record)) in kinds.into_iter().zip(contents).zip(found) {
            assert_eq!(
                (record.header, record.key, record.payload),
                (header(kind, key, payload), key, payload)
            );
            assert!(record.is_sound(&unit[begin..]));
        }
    }

    #[test]
    fn no_flipped_bit_passes() {
        let header = header(RecordKind::Whole, b"key", b"value");
        let mut bytes = vec![0; header.bytes()];
        header.encode(b"key", b"value", &mut bytes);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let passes = Record::decode(&flipped).is_some_and(|record| record.is_sound(&flipped));
            // The spare byte is covered like any other.
            assert!(!passes, "bit {bit}");
        }
        let mut unit = [0; UNIT_HEADER_BYTES];
        let of_unit =
            UnitHeader { instance: InstanceId::new(1), number: UnitNumber(2), stream: 0, filled: 40 };
        of_unit.encode(&mut unit);
        for bit in 0..unit.len() * 8 {
            let mut flipped = unit;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(UnitHeader::decode(&flipped), None, "bit {bit}");
        }
    }

    #[test]
    fn what_is_cut_short_is_no_record() {
        let header = header(RecordKind::Whole, b"key", b"value");
        let mut bytes = vec![0; header.bytes()];
        header.encode(b"key", b"value", &mut bytes);
        assert!((0..bytes.len()).all(|length| Record::decode(&bytes[..length]).is_none()));
        assert!(Record::decode(&[0; 100]).is_none() && UnitHeader::decode(&[0xFF; 100]).is_none());
    }
}
