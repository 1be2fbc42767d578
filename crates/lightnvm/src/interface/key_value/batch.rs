//! What a batch holds: stores and deletions, each of one key, with values that lie in one piece.

use super::super::Piece;
use super::super::list::{Entry, u32_at};
use super::key::{KEY_INLINE_MAX, Key};
use super::{AbsentKey, StoreCondition};
use crate::buffers::BufId;

/// What one entry of a batch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchChange {
    /// The key holds this value.
    Store {
        /// The value; `None` is an empty one.
        value: Option<Piece>,
        /// What must be so, with the entries above applied.
        condition: StoreCondition,
    },
    /// The key does not exist.
    Delete {
        /// What it is if it did not exist before.
        absent: AbsentKey,
    },
}

/// One entry of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchEntry {
    /// The key. A key named twice ends with the last change.
    pub key: Key,
    /// What happens to it.
    pub change: BatchChange,
}

/// Marks a key that lies in a buffer; other values are lengths.
const PLACED: u8 = 0xFF;

impl Entry for BatchEntry {
    const BYTES: usize = 40;

    fn encode(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        let (kind, value) = match self.change {
            BatchChange::Store { value, condition: StoreCondition::Always } => (1, value),
            BatchChange::Store { value, condition: StoreCondition::MustExist } => (2, value),
            BatchChange::Store { value, condition: StoreCondition::MustNotExist } => (3, value),
            BatchChange::Delete { absent: AbsentKey::Success } => (4, None),
            BatchChange::Delete { absent: AbsentKey::Refused } => (5, None),
        };
        (bytes[0], bytes[2]) = (kind, u8::from(value.is_some()));
        match self.key {
            Key::Inline { length, bytes: key } => {
                bytes[1] = length;
                bytes[4..20].copy_from_slice(&key);
            }
            Key::Placed(piece) => {
                bytes[1] = PLACED;
                piece.encode(&mut bytes[4..20]);
            }
        }
        if let Some(value) = value {
            value.encode(&mut bytes[24..40]);
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let value = if bytes[2] == 0 { None } else { Some(Piece::decode(&bytes[24..40])?) };
        let store = |condition| BatchChange::Store { value, condition };
        let change = match bytes[0] {
            1 => store(StoreCondition::Always),
            2 => store(StoreCondition::MustExist),
            3 => store(StoreCondition::MustNotExist),
            4 => BatchChange::Delete { absent: AbsentKey::Success },
            5 => BatchChange::Delete { absent: AbsentKey::Refused },
            _ => return None,
        };
        let key = match bytes[1] {
            PLACED => {
                let (buffer, first_byte) = (BufId(u32_at(bytes, 4)), u32_at(bytes, 8));
                Key::Placed(Piece { buffer, first_byte, bytes: u32_at(bytes, 12) })
            }
            length => {
                let key: [u8; KEY_INLINE_MAX] = bytes[4..20].try_into().expect("sixteen bytes");
                Key::Inline { length, bytes: key }
            }
        };
        Some(Self { key, change })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_entry_survives_its_encoding() {
        let piece = Piece { buffer: BufId(9), first_byte: 5, bytes: 1 << 20 };
        let store = |value, condition| BatchChange::Store { value, condition };
        for key in [Key::inline(b"key").expect("short"), Key::EMPTY, Key::Placed(piece)] {
            for change in [
                store(None, StoreCondition::Always),
                store(Some(piece), StoreCondition::MustExist),
                store(Some(piece), StoreCondition::MustNotExist),
                BatchChange::Delete { absent: AbsentKey::Success },
                BatchChange::Delete { absent: AbsentKey::Refused },
            ] {
                let (entry, mut bytes) = (BatchEntry { key, change }, [0xFF; BatchEntry::BYTES]);
                entry.encode(&mut bytes);
                assert_eq!(BatchEntry::decode(&bytes), Some(entry));
            }
        }
        assert_eq!(BatchEntry::decode(&[0; BatchEntry::BYTES]), None);
    }
}
