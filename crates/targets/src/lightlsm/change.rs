//! What changes which tables and logs there are, as bytes: in the log, and in a checkpoint, which is the changes that make
//! what there is.
//!
//! A change begins with its kind, then little-endian numbers, then bytes with their length. In the log bytes go in records of
//! the owner, eighteen in each. Deliberately not here: what a change does (`catalog`).

use super::layout::Run;
use ocssd_ftl::ChunkIndex;
use ocssd_ftl::log::LogEntry;
use ocssd_lightnvm::interface::table::{TableId, TableKind};

/// The number of a table or log: counts up, never used again, and fits a sector's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(pub u64);

/// Bytes in a record of the log: three numbers of 48 bits.
const RECORD_BYTES: usize = 18;
/// The only record of this owner.
const CODE: u8 = 1;

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A table or log begins: unpublished, empty.
    Begin {
        /// Which.
        number: Number,
        /// Which of the two.
        kind: TableKind,
        /// As the host calls it.
        name: TableId,
        /// Columns of its units.
        width: u32,
    },
    /// Units of it are on media. Of a log they go before what `Bytes` said of the same bytes.
    Rows {
        /// Which.
        number: Number,
        /// The column.
        column: u32,
        /// The units.
        run: Run,
    },
    /// The next bytes of a log, which fill no unit yet.
    Bytes {
        /// Which.
        number: Number,
        /// The first of them.
        from: u64,
        /// Their content.
        bytes: Vec<u8>,
    },
    /// A table is complete.
    Publish {
        /// Which.
        number: Number,
        /// Its length.
        bytes: u64,
        /// What the host says of it.
        attributes: Vec<u8>,
    },
    /// Other attributes.
    Describe {
        /// Which.
        number: Number,
        /// What the host says of it.
        attributes: Vec<u8>,
    },
    /// It is gone.
    Delete {
        /// Which.
        number: Number,
    },
}

/// Bytes of a change without those of variable length, at most.
pub const CHANGE_BYTES: usize = 40;

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&u32::try_from(bytes.len()).expect("a change is short").to_le_bytes());
    out.extend_from_slice(bytes);
}

impl Change {
    /// Appends the change to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        let head = |out: &mut Vec<u8>, kind: u8, number: Number| {
            out.push(kind);
            out.extend_from_slice(&number.0.to_le_bytes());
        };
        let mut variable = 0;
        match self {
            Self::Begin { number, kind, name, width } => {
                head(out, if *kind == TableKind::Table { 1 } else { 2 }, *number);
                out.extend_from_slice(&name.0.to_le_bytes());
                out.extend_from_slice(&width.to_le_bytes());
            }
            Self::Rows { number, column, run } => {
                head(out, 3, *number);
                out.extend_from_slice(&run.row.to_le_bytes());
                for part in [*column, run.rows, run.chunk.0, run.sector] {
                    out.extend_from_slice(&part.to_le_bytes());
                }
            }
            Self::Bytes { number, from, bytes } => {
                head(out, 4, *number);
                out.extend_from_slice(&from.to_le_bytes());
                put_bytes(out, bytes);
                variable = bytes.len();
            }
            Self::Publish { number, bytes, attributes } => {
                head(out, 5, *number);
                out.extend_from_slice(&bytes.to_le_bytes());
                put_bytes(out, attributes);
                variable = attributes.len();
            }
            Self::Describe { number, attributes } => {
                head(out, 6, *number);
                put_bytes(out, attributes);
                variable = attributes.len();
            }
            Self::Delete { number } => head(out, 7, *number),
        }
        assert!(out.len() - begin <= CHANGE_BYTES + variable, "{self:?} is longer than it may be");
    }
}

/// Bytes that are read from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (now, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(now)
    }

    fn small(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn large(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let count = usize::try_from(self.small()?).ok()?;
        self.take(count).map(<[u8]>::to_vec)
    }

    fn change(&mut self) -> Option<Change> {
        let kind = self.take(1)?[0];
        let number = Number(self.large()?);
        Some(match kind {
            1 | 2 => Change::Begin {
                number,
                kind: if kind == 1 { TableKind::Table } else { TableKind::Log },
                name: TableId(self.large()?),
                width: self.small()?,
            },
            3 => {
                let row = self.large()?;
                let column = self.small()?;
                let (rows, chunk, sector) = (self.small()?, ChunkIndex(self.small()?), self.small()?);
                Change::Rows { number, column, run: Run { row, rows, chunk, sector } }
            }
            4 => Change::Bytes { number, from: self.large()?, bytes: self.bytes()? },
            5 => Change::Publish { number, bytes: self.large()?, attributes: self.bytes()? },
            6 => Change::Describe { number, attributes: self.bytes()? },
            7 => Change::Delete { number },
            _ => return None,
        })
    }
}

/// The changes in these bytes, in order; `None` if they are none.
pub fn decode(bytes: &[u8]) -> Option<Vec<Change>> {
    let mut reader = Reader(bytes);
    let mut changes = Vec::new();
    while !reader.0.is_empty() {
        changes.push(reader.change()?);
    }
    Some(changes)
}

/// Records of the log that these bytes take.
pub const fn records_of(bytes: usize) -> usize {
    bytes.div_ceil(RECORD_BYTES)
}

/// Bytes as records of the log.
pub fn to_records(bytes: &[u8]) -> Vec<LogEntry> {
    let record = |piece: &[u8]| {
        let mut padded = [0; RECORD_BYTES];
        padded[..piece.len()].copy_from_slice(piece);
        let number =
            |at: usize| padded[at..at + 6].iter().rev().fold(0, |high, &byte| high << 8 | u64::from(byte));
        let count = u32::try_from(piece.len()).expect("a record is short");
        LogEntry::Owner { code: CODE, count, numbers: [number(0), number(6), number(12)] }
    };
    bytes.chunks(RECORD_BYTES).map(record).collect()
}

/// The bytes in records of the log; `None` if one of them is of another owner.
pub fn from_records(records: &[LogEntry]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(records.len() * RECORD_BYTES);
    for record in records {
        let &LogEntry::Owner { code: CODE, count, numbers } = record else { return None };
        let all: Vec<u8> =
            numbers.iter().flat_map(|number| number.to_le_bytes().into_iter().take(6)).collect();
        bytes.extend_from_slice(all.get(..usize::try_from(count).ok()?)?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_ftl::log::Record;

    fn all() -> Vec<Change> {
        let number = Number((1 << 40) - 1);
        let run = Run { row: 1 << 33, rows: 7, chunk: ChunkIndex(9), sector: 24 };
        vec![
            Change::Begin { number, kind: TableKind::Table, name: TableId(u64::MAX), width: 32 },
            Change::Begin { number, kind: TableKind::Log, name: TableId(0), width: 1 },
            Change::Rows { number, column: 3, run },
            Change::Bytes { number, from: 5, bytes: vec![1; 100] },
            Change::Publish { number, bytes: 1 << 40, attributes: vec![2; 19] },
            Change::Describe { number, attributes: Vec::new() },
            Change::Delete { number },
        ]
    }

    #[test]
    fn changes_survive_the_log_and_torn_ones_are_none() {
        let mut bytes = Vec::new();
        all().iter().for_each(|change| change.encode(&mut bytes));
        let records = to_records(&bytes);
        assert_eq!(records.len(), records_of(bytes.len()));
        let read: Vec<LogEntry> =
            records.iter().filter_map(|record| LogEntry::decode(&record.encode())).collect();
        let back = from_records(&read).expect("they are the owner's");
        assert_eq!((decode(&back), back.len()), (Some(all()), bytes.len()));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None, "the last is torn");
        assert_eq!(decode(&[9; 20]), None, "no such kind");
        let other = LogEntry::Owner { code: CODE + 1, count: 1, numbers: [0; 3] };
        assert_eq!(from_records(&[other]), None);
        let long = LogEntry::Owner { code: CODE, count: 19, numbers: [0; 3] };
        assert_eq!(from_records(&[long]), None, "more bytes than a record has");
    }
}
