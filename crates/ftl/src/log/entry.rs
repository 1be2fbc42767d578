//! One entry of the log: 24 bytes, little endian.
//!
//! Kind 1 byte, the owner's code 1 (0 but in records of the owner), count 4, then three numbers of 6 bytes: OX's records had
//! 64 bytes for one sector each (in `ox-ctrl` 2.7); an entry here is a run of sectors. [`LogEntry`] is what targets of blocks keep;
//! who maps something else brings entries of its own ([`Record`]), as long as these. Deliberately not here: what an entry does
//! to a map, or what an owner's record means.

use crate::instance_geometry::PhysicalAddress;
use std::fmt::Debug;

/// Bytes of an entry.
pub const ENTRY_BYTES: usize = 24;

/// Sectors of a run, or entries of a transaction.
pub type Count = u32;

/// A transaction of an instance: counts from 1, never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub u64);

/// An entry of a log, whatever it changes: some bytes, and among its kinds one that ends a transaction.
pub trait Record: Copy + Debug + PartialEq + Eq {
    /// The entry as it goes to media.
    ///
    /// # Panics
    /// If a number does not fit: no instance is so large.
    fn encode(&self) -> [u8; ENTRY_BYTES];

    /// The entry in these bytes; `None` if there is none of a kind that is known.
    fn decode(bytes: &[u8; ENTRY_BYTES]) -> Option<Self>;

    /// The end of a transaction: the `entries` before it are true from now on, all of them or none.
    fn commit(transaction: TransactionId, entries: Count) -> Self;

    /// Which transaction ends here, and how many entries it has; `None` of any other entry.
    fn as_commit(&self) -> Option<(TransactionId, Count)>;
}

/// What a transaction changed, or that it ends here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEntry {
    /// Logical sectors from `lba` on are at the places from `place` on.
    Write {
        /// The first logical sector.
        lba: u64,
        /// Where it is.
        place: PhysicalAddress,
        /// How many.
        count: Count,
    },
    /// The same, of those that are at the places from `from` on when this is applied; others stay where they are.
    Move {
        /// The first logical sector.
        lba: u64,
        /// Where it was.
        from: PhysicalAddress,
        /// Where its copy is.
        to: PhysicalAddress,
        /// How many.
        count: Count,
    },
    /// Logical sectors from `lba` on are nowhere.
    Discard {
        /// The first logical sector.
        lba: u64,
        /// How many.
        count: Count,
    },
    /// What the owner of the log makes of it: a target that keeps more than a map has records of its own.
    Owner {
        /// Which record, by the owner's own numbers.
        code: u8,
        /// A count, if the record has one.
        count: Count,
        /// Numbers below 2^48.
        numbers: [u64; 3],
    },
    /// The entries before this one are true from now on, all of them or none.
    Commit {
        /// Which transaction ends.
        transaction: TransactionId,
        /// How many entries it has.
        entries: Count,
    },
}

const WRITE: u8 = 1;
const MOVE: u8 = 2;
const DISCARD: u8 = 3;
const COMMIT: u8 = 4;
const OWNER: u8 = 5;

fn put(out: &mut [u8], number: u64) {
    assert!(number < 1 << 48, "{number} does not fit 6 bytes");
    out.copy_from_slice(&number.to_le_bytes()[..6]);
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |high, &byte| high << 8 | u64::from(byte))
}

impl Record for LogEntry {
    fn encode(&self) -> [u8; ENTRY_BYTES] {
        let (kind, count, numbers) = match *self {
            Self::Write { lba, place, count } => (WRITE, count, [lba, place.0, 0]),
            Self::Move { lba, from, to, count } => (MOVE, count, [lba, to.0, from.0]),
            Self::Discard { lba, count } => (DISCARD, count, [lba, 0, 0]),
            Self::Owner { count, numbers, .. } => (OWNER, count, numbers),
            Self::Commit { transaction, entries } => (COMMIT, entries, [transaction.0, 0, 0]),
        };
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0] = kind;
        if let Self::Owner { code, .. } = *self {
            bytes[1] = code;
        }
        bytes[2..6].copy_from_slice(&count.to_le_bytes());
        for (out, number) in bytes[6..].chunks_exact_mut(6).zip(numbers) {
            put(out, number);
        }
        bytes
    }

    fn decode(bytes: &[u8; ENTRY_BYTES]) -> Option<Self> {
        let count = u32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]);
        let [first, second, third] = [6, 12, 18].map(|at| number(&bytes[at..at + 6]));
        Some(match bytes[0] {
            WRITE => Self::Write { lba: first, place: PhysicalAddress(second), count },
            MOVE => {
                Self::Move { lba: first, from: PhysicalAddress(third), to: PhysicalAddress(second), count }
            }
            DISCARD => Self::Discard { lba: first, count },
            OWNER => Self::Owner { code: bytes[1], count, numbers: [first, second, third] },
            COMMIT => Self::Commit { transaction: TransactionId(first), entries: count },
            _ => return None,
        })
    }
    fn commit(transaction: TransactionId, entries: Count) -> Self {
        Self::Commit { transaction, entries }
    }

    fn as_commit(&self) -> Option<(TransactionId, Count)> {
        match *self {
            Self::Commit { transaction, entries } => Some((transaction, entries)),
            Self::Write { .. } | Self::Move { .. } | Self::Discard { .. } | Self::Owner { .. } => None,
        }
    }
}
