//! A store request as an operation on a key-value target, with what it names laid out in pieces of memory.
//!
//! Keys that do not fit a request lie in the piece of their value. A value in one piece is one part; a longer one is a list of
//! parts. Deliberately not here: when a request is given (`lane`).

use super::store::StoreOp;
use super::view::Change;
use crate::dispatcher::Dispatcher;
use crate::job::Work;
use crate::pool::{PIECE_BYTES_MAX, PoolPiece};
use crate::shares::{ClientId, Want};
use ocssd_lightnvm::BufId;
use ocssd_lightnvm::interface::key_value::{
    AbsentKey, BatchChange, BatchEntry, KEY_INLINE_MAX, Key, KvOp, StoreCondition,
};
use ocssd_lightnvm::interface::{self, Content, Durability, Entry, List};

/// Pieces of one request (chosen: half of those that are common to all clients).
pub const PIECES_MAX: usize = 63;

/// Bytes of a value that one request carries.
pub const VALUE_BYTES_MAX: usize = (PIECES_MAX - 1) * PIECE_BYTES_MAX;

/// Room for any key (`KEY_BYTES_MAX` is 255) in the piece that something is read to.
pub const KEY_ROOM: usize = 256;

/// A request as a job has it.
#[derive(Debug)]
pub struct Packed {
    /// What.
    pub work: Work,
    /// Where what it names lies.
    pub pieces: Vec<PoolPiece>,
}

/// Why a request cannot be given.
#[derive(Debug, PartialEq, Eq)]
pub enum Unpacked {
    /// There are not enough pieces now.
    NoRoom,
    /// It never fits, in a sentence.
    TooLarge(String),
}

/// Lays requests out.
pub struct Packer<'a> {
    /// Where pieces are.
    pub dispatcher: &'a mut Dispatcher,
    /// Whose share they count towards.
    pub client: ClientId,
    /// When changes are durable.
    pub durability: Durability,
}

fn narrow(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a piece is small")
}

impl Packer<'_> {
    /// Lays a request out.
    ///
    /// # Errors
    /// As [`Unpacked`] says; nothing is kept then.
    pub fn pack(&mut self, op: &StoreOp) -> Result<Packed, Unpacked> {
        match op {
            StoreOp::Flush => Ok(Packed { work: Work::Flush, pieces: Vec::new() }),
            StoreOp::Retrieve { key, offset, bytes } => {
                let (name, into, pieces) = self.reading(key, *bytes)?;
                let op = KvOp::Retrieve { key: name, offset: narrow(*offset), into };
                Ok(Packed { work: Work::KeyValue(op), pieces })
            }
            StoreOp::List { from, bytes } => {
                let (from, into, pieces) = self.reading(from, *bytes)?;
                Ok(Packed { work: Work::KeyValue(KvOp::List { from, prefix_bytes: 0, into }), pieces })
            }
            StoreOp::Change(changes) => match changes.as_slice() {
                [(key, None)] => self.delete(key),
                [(key, Some(value))] => self.store(key, value),
                _ => self.batch(changes),
            },
        }
    }

    /// So many pieces of the largest size, or one that holds `bytes` bytes.
    fn take(&mut self, count: usize, bytes: usize) -> Result<Vec<PoolPiece>, Unpacked> {
        let (client, pool) = (self.client, &mut self.dispatcher.pool);
        if count == 1 {
            return pool.take(client, bytes, Want::Share).map(|piece| vec![piece]).ok_or(Unpacked::NoRoom);
        }
        if count > PIECES_MAX {
            let most = PIECES_MAX * PIECE_BYTES_MAX;
            return Err(Unpacked::TooLarge(format!(
                "keys and values of one command or transaction have at most {most} bytes together on this drive"
            )));
        }
        if !pool.claim(client, narrow(count)) {
            return Err(Unpacked::NoRoom);
        }
        let mut pieces = Vec::with_capacity(count);
        while pieces.len() < count {
            let Some(piece) = pool.take(client, PIECE_BYTES_MAX, Want::Claimed) else {
                // The claim stands: those that come back are kept for it.
                pieces.into_iter().for_each(|piece| pool.give_back(piece));
                return Err(Unpacked::NoRoom);
            };
            pieces.push(piece);
        }
        pool.end_claim(client);
        Ok(pieces)
    }

    /// A key, written to a buffer if it is too long for a request.
    fn key(&mut self, key: &[u8], buffer: BufId, first: usize) -> Key {
        Key::inline(key).unwrap_or_else(|| {
            self.dispatcher.buffers.bytes_mut(buffer, first, key.len()).copy_from_slice(key);
            Key::Placed(part(buffer, first, key.len()))
        })
    }

    /// A value, written to a buffer.
    fn value(&mut self, value: &[u8], buffer: BufId, first: usize) -> interface::Piece {
        self.dispatcher.buffers.bytes_mut(buffer, first, value.len()).copy_from_slice(value);
        part(buffer, first, value.len())
    }

    /// A key and a place for `bytes` bytes that are read.
    fn reading(&mut self, key: &[u8], bytes: usize) -> Result<(Key, Content, Vec<PoolPiece>), Unpacked> {
        assert!(bytes <= PIECE_BYTES_MAX, "{bytes} bytes were to be read at once");
        let placed = placed_bytes(key);
        let is_apart = bytes + placed > PIECE_BYTES_MAX;
        let mut pieces = self.take(1, if is_apart { bytes } else { bytes + placed })?;
        let buffer = pieces[0].buffer;
        let into = Content::Piece(part(buffer, 0, bytes));
        if !is_apart {
            return Ok((self.key(key, buffer, bytes), into, pieces));
        }
        match self.take(1, placed) {
            Ok(more) => {
                let name = self.key(key, more[0].buffer, 0);
                pieces.extend(more);
                Ok((name, into, pieces))
            }
            Err(error) => {
                pieces.into_iter().for_each(|piece| self.dispatcher.pool.give_back(piece));
                Err(error)
            }
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<Packed, Unpacked> {
        let (absent, durability) = (AbsentKey::Success, self.durability);
        let (key, pieces) = match Key::inline(key) {
            Some(key) => (key, Vec::new()),
            None => {
                let pieces = self.take(1, key.len())?;
                (self.key(key, pieces[0].buffer, 0), pieces)
            }
        };
        Ok(Packed { work: Work::KeyValue(KvOp::Delete { key, absent, durability }), pieces })
    }

    fn store(&mut self, key: &[u8], value: &[u8]) -> Result<Packed, Unpacked> {
        let placed = placed_bytes(key);
        let bytes = placed + value.len();
        let count = if bytes <= PIECE_BYTES_MAX { 1 } else { 1 + value.len().div_ceil(PIECE_BYTES_MAX) };
        let pieces = self.take(count, bytes)?;
        let first = pieces[0].buffer;
        let (key, content) = if count == 1 {
            let value = self.value(value, first, placed);
            (self.key(key, first, 0), Content::Piece(value))
        } else {
            // The first piece has the list of the others, and the key behind it.
            let chunks = pieces[1..].iter().zip(value.chunks(PIECE_BYTES_MAX));
            let parts: Vec<_> = chunks.map(|(piece, chunk)| self.value(chunk, piece.buffer, 0)).collect();
            let list = List::write(&mut self.dispatcher.buffers, first, &parts);
            let key = self.key(key, first, PIECES_MAX * interface::Piece::BYTES);
            (key, Content::Pieces { list, bytes: narrow(value.len()) })
        };
        let (condition, durability) = (StoreCondition::Always, self.durability);
        Ok(Packed { work: Work::KeyValue(KvOp::Store { key, content, condition, durability }), pieces })
    }

    /// Changes as a batch: first the list, then keys and values, each in one piece.
    fn batch(&mut self, changes: &[Change]) -> Result<Packed, Unpacked> {
        let (places, count, bytes) = places(changes)?;
        let pieces = self.take(count, bytes)?;
        let mut entries = Vec::with_capacity(changes.len());
        for ((key, value), (piece, first)) in changes.iter().zip(places) {
            let buffer = pieces[piece].buffer;
            let change = match value {
                Some(value) => BatchChange::Store {
                    value: Some(self.value(value, buffer, first + placed_bytes(key))),
                    condition: StoreCondition::Always,
                },
                None => BatchChange::Delete { absent: AbsentKey::Success },
            };
            entries.push(BatchEntry { key: self.key(key, buffer, first), change });
        }
        let entries = List::write(&mut self.dispatcher.buffers, pieces[0].buffer, &entries);
        let op = KvOp::Batch { entries, durability: self.durability };
        Ok(Packed { work: Work::KeyValue(op), pieces })
    }
}

/// Bytes of a key that lie in a piece.
fn placed_bytes(key: &[u8]) -> usize {
    if key.len() <= KEY_INLINE_MAX { 0 } else { key.len() }
}

fn part(buffer: BufId, first: usize, bytes: usize) -> interface::Piece {
    interface::Piece { buffer, first_byte: narrow(first), bytes: narrow(bytes) }
}

/// Where key and value of each change lie, behind the list: in which piece, and from which byte on; then how many pieces that
/// are, and how many bytes of the last.
type Places = (Vec<(usize, usize)>, usize, usize);

fn places(changes: &[Change]) -> Result<Places, Unpacked> {
    let (mut piece, mut first) = (0, changes.len() * BatchEntry::BYTES);
    if first > PIECE_BYTES_MAX {
        return Err(Unpacked::TooLarge(format!(
            "{} keys are too many for one command or transaction",
            changes.len()
        )));
    }
    let mut places = Vec::with_capacity(changes.len());
    for (key, value) in changes {
        let bytes = placed_bytes(key) + value.as_ref().map_or(0, Vec::len);
        if bytes > PIECE_BYTES_MAX {
            return Err(Unpacked::TooLarge(format!(
                "a value beside others in one command or transaction has at most {} bytes on this drive",
                PIECE_BYTES_MAX - KEY_ROOM
            )));
        }
        if first + bytes > PIECE_BYTES_MAX {
            (piece, first) = (piece + 1, 0);
        }
        places.push((piece, first));
        first += bytes;
    }
    Ok((places, piece + 1, first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_lie_one_behind_the_other_and_none_across_two_pieces() {
        let change = |key: &str, bytes: usize| (key.as_bytes().to_vec(), Some(vec![0; bytes]));
        let long = "k".repeat(20);
        let few = [change("a", 10), change(&long, 5), (b"b".to_vec(), None), change("c", 1)];
        assert_eq!(places(&few).unwrap(), (vec![(0, 160), (0, 170), (0, 195), (0, 195)], 1, 196));
        let many = [change("a", 200_000), change("b", 200_000), change("c", 60_000)];
        assert_eq!(places(&many).unwrap(), (vec![(0, 120), (1, 0), (1, 200_000)], 2, 260_000));
        for too_large in [vec![change("a", PIECE_BYTES_MAX + 1); 2], vec![change("a", 1); 7000]] {
            assert!(matches!(places(&too_large), Err(Unpacked::TooLarge(_))));
        }
    }
}
