//! Values that are too long for one record: by number, where each of their pieces is.
//!
//! A value is here from its first piece on, whether a key holds it yet or not. Deliberately not here: whose it is (`index`).

use std::collections::BTreeMap;

/// Bytes of a piece in a checkpoint: offset 4, bytes 4, address 8.
const PIECE_BYTES: usize = 16;
/// Bytes of a value beside its pieces.
const VALUE_BYTES: usize = 16;
/// The address of a piece that the media lost.
const LOST: u64 = u64::MAX;

/// A piece of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuePiece {
    /// Where it lies in the value.
    pub offset: u32,
    pub bytes: u32,
    /// The byte of the instance its record begins at; `None` if the media lost it.
    pub at: Option<u64>,
}

/// All long values.
#[derive(Clone, Debug, Default)]
pub struct LongValues {
    /// Pieces in order of their offsets.
    values: BTreeMap<u64, Vec<ValuePiece>>,
}

impl LongValues {
    /// Most bytes a piece costs a checkpoint: its own, and those of a value of one piece.
    #[expect(clippy::as_conversions, reason = "two small constants")]
    pub const PIECE_BYTES_MAX: u64 = (PIECE_BYTES + VALUE_BYTES) as u64;

    /// The pieces of a value; none of one that has none.
    pub fn pieces(&self, value: u64) -> &[ValuePiece] {
        self.values.get(&value).map_or(&[], Vec::as_slice)
    }

    /// A piece is there, or is somewhere else than before: where it was.
    pub fn set(&mut self, value: u64, piece: ValuePiece) -> Option<ValuePiece> {
        assert!(piece.bytes > 0, "piece {} of value {value} is empty", piece.offset);
        assert!(piece.offset.checked_add(piece.bytes).is_some(), "{piece:?} ends beyond any value");
        let pieces = self.values.entry(value).or_default();
        match pieces.binary_search_by_key(&piece.offset, |other| other.offset) {
            Ok(place) => {
                assert_eq!(pieces[place].bytes, piece.bytes, "a piece changed its length");
                Some(std::mem::replace(&mut pieces[place], piece))
            }
            Err(place) => {
                let end = |before: &ValuePiece| before.offset + before.bytes;
                let is_behind = place == 0 || end(&pieces[place - 1]) <= piece.offset;
                assert!(is_behind, "{piece:?} of value {value} lies within another");
                pieces.insert(place, piece);
                None
            }
        }
    }

    /// The piece of a value at an offset.
    pub fn get(&self, value: u64, offset: u32) -> Option<ValuePiece> {
        let pieces = self.pieces(value);
        pieces.binary_search_by_key(&offset, |piece| piece.offset).ok().map(|place| pieces[place])
    }

    /// A value is not needed any more: its pieces.
    pub fn remove(&mut self, value: u64) -> Vec<ValuePiece> {
        self.values.remove(&value).unwrap_or_default()
    }

    /// True if the pieces are all of a value of so many bytes.
    pub fn is_whole(&self, value: u64, bytes: u32) -> bool {
        let mut end = 0_u64;
        let follows = |piece: &ValuePiece| {
            let is_next = u64::from(piece.offset) == end;
            end += u64::from(piece.bytes);
            is_next
        };
        self.pieces(value).iter().all(follows) && end == u64::from(bytes)
    }

    /// Forgets values for which `is_needed` is false.
    pub fn retain(&mut self, is_needed: impl Fn(u64) -> bool) {
        self.values.retain(|&value, _| is_needed(value));
    }

    /// Every piece with its value.
    pub fn iter(&self) -> impl Iterator<Item = (u64, ValuePiece)> {
        self.values.iter().flat_map(|(&value, pieces)| pieces.iter().map(move |&piece| (value, piece)))
    }

    /// Values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Every piece, as a checkpoint has them.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (&value, pieces) in &self.values {
            out.extend_from_slice(&value.to_le_bytes());
            out.extend_from_slice(&u64::try_from(pieces.len()).expect("an index").to_le_bytes());
            for piece in pieces {
                out.extend_from_slice(&piece.offset.to_le_bytes());
                out.extend_from_slice(&piece.bytes.to_le_bytes());
                out.extend_from_slice(&piece.at.unwrap_or(LOST).to_le_bytes());
            }
        }
        out
    }

    /// The values in these bytes; `None` if they are none.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut found = Self::default();
        while !bytes.is_empty() {
            let (head, rest) = bytes.split_first_chunk::<16>()?;
            let (value, count) = head.split_first_chunk::<8>()?;
            let (value, count) = (u64::from_le_bytes(*value), u64::from_le_bytes(count.try_into().ok()?));
            let length = usize::try_from(count).ok()?.checked_mul(PIECE_BYTES)?;
            let (pieces, rest) = rest.split_at_checked(length)?;
            for piece in pieces.chunks_exact(PIECE_BYTES) {
                let number =
                    |at: usize| u32::from_le_bytes(piece[at..at + 4].try_into().expect("four bytes"));
                let at = u64::from_le_bytes(piece[8..].try_into().expect("eight bytes"));
                let piece =
                    ValuePiece { offset: number(0), bytes: number(4), at: (at != LOST).then_some(at) };
                found.set(value, piece);
            }
            bytes = rest;
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_whole_once_its_pieces_are_there_in_any_order() {
        let mut values = LongValues::default();
        let piece = |offset, bytes, at| ValuePiece { offset, bytes, at: Some(at) };
        for (piece, whole) in
            [(piece(100, 100, 9), false), (piece(0, 100, 5), false), (piece(200, 50, 7), true)]
        {
            assert_eq!(values.set(3, piece), None);
            assert_eq!(values.is_whole(3, 250), whole);
        }
        assert_eq!(values.set(3, piece(100, 100, 77)), Some(piece(100, 100, 9)), "it was moved");
        assert_eq!(values.get(3, 100), Some(piece(100, 100, 77)));
        values.set(4, ValuePiece { offset: 0, bytes: 1, at: None });
        let again = LongValues::decode(&values.encode()).expect("it was encoded");
        assert_eq!(again.iter().collect::<Vec<_>>(), values.iter().collect::<Vec<_>>());
        assert!(LongValues::decode(&values.encode()[1..]).is_none());
        assert_eq!((values.remove(3).len(), values.len(), values.pieces(3).len()), (3, 1, 0));
        assert!(!values.is_whole(3, 250) && values.is_whole(3, 0));
    }
}
