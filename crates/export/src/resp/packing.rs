//! A store request as an operation on a key-value target, with what it names laid out in pieces of memory.
//!
//! Keys that do not fit a request lie in the piece of their value. A value in one piece is one part; a longer one is a list of
//! parts. Values are copied to their pieces, which of megabytes takes a while: as much at once as the caller has time for.
//! Deliberately not here: when a request is given (`lane`).

use super::database::{COPY_BYTES_OF_TURN, KEYS_OF_TURN};
use super::store::StoreOp;
use super::stored::Stored;
use super::view::Change;
use crate::dispatcher::Dispatcher;
use crate::job::Work;
use crate::pool::{PIECE_BYTES_MAX, PoolPiece};
use crate::shares::{ClientId, Want};
use ocssd_lightnvm::interface::key_value::{
    AbsentKey, BatchChange, BatchEntry, KEY_INLINE_MAX, Key, KvOp, StoreCondition,
};
use ocssd_lightnvm::interface::{self, Content, Durability, Entry, List};
use ocssd_lightnvm::{BufId, Buffers};

/// Pieces of one request (chosen: half of those that are common to all clients).
pub const PIECES_MAX: usize = 63;

/// Bytes of a value that one request carries.
pub const VALUE_BYTES_MAX: usize = (PIECES_MAX - 1) * PIECE_BYTES_MAX;

/// Room for any key (`KEY_BYTES_MAX` is 255) in the piece that something is read to.
pub const KEY_ROOM: usize = 256;

/// What a change counts beside its bytes when it is copied, in bytes: a turn deals with so many keys.
pub const CHANGE_BYTES: usize = COPY_BYTES_OF_TURN / KEYS_OF_TURN;

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
            StoreOp::Change(changes) => {
                let mut packing = self.lay_out(changes)?;
                packing.copy(changes, &mut self.dispatcher.buffers, usize::MAX);
                Ok(packing.finish(changes, self))
            }
        }
    }

    /// Takes the pieces of a change, to which nothing is copied yet.
    ///
    /// # Errors
    /// As [`Unpacked`] says; nothing is kept then.
    pub fn lay_out(&mut self, changes: &[Change]) -> Result<Packing, Unpacked> {
        let ((places, count, bytes), is_spread) = match changes {
            [(key, value)] => {
                let bytes = placed_bytes(key) + value.as_ref().map_or(0, Stored::len);
                // The first piece has the list of the others, and the key behind it.
                let more = value.as_ref().map_or(0, |value| value.len().div_ceil(PIECE_BYTES_MAX));
                let is_spread = bytes > PIECE_BYTES_MAX;
                let count = if is_spread { 1 + more } else { usize::from(bytes > 0) };
                ((vec![(0, 0)], count, bytes), is_spread)
            }
            _ => (places(changes)?, false),
        };
        let pieces = if count == 0 { Vec::new() } else { self.take(count, bytes)? };
        Ok(Packing { places, pieces, is_spread, next: (0, 0), entries: Vec::new() })
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

    fn key(&mut self, key: &[u8], buffer: BufId, first: usize) -> Key {
        named(&mut self.dispatcher.buffers, key, buffer, first)
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
}

/// A change on its way into pieces of memory.
#[derive(Debug)]
pub struct Packing {
    /// Of each change where key and value lie: in which piece, and from which byte on.
    places: Vec<(usize, usize)>,
    pieces: Vec<PoolPiece>,
    /// The one value lies in all pieces but the first.
    is_spread: bool,
    /// The change whose value is copied next, and from which byte of it on.
    next: (usize, usize),
    /// The list of a batch, as far as changes are copied.
    entries: Vec<BatchEntry>,
}

impl Packing {
    /// Where byte `from` of a value lies, and how many of those behind it lie there too.
    fn place(&self, number: usize, key: &[u8], from: usize) -> (usize, usize, usize) {
        if self.is_spread {
            let first = from % PIECE_BYTES_MAX;
            return (1 + from / PIECE_BYTES_MAX, first, PIECE_BYTES_MAX - first);
        }
        let (piece, first) = self.places[number];
        (piece, first + placed_bytes(key) + from, usize::MAX)
    }

    /// Goes on copying values, at most so many bytes, each change counted as [`CHANGE_BYTES`] more; returns how many.
    ///
    /// # Panics
    /// If `changes` are not those that were laid out.
    pub fn copy(&mut self, changes: &[Change], buffers: &mut Buffers, most: usize) -> usize {
        let mut copied = 0;
        while copied < most && !self.is_copied(changes) {
            let (number, from) = self.next;
            let (key, value) = &changes[number];
            let Some(value) = value.as_ref().filter(|value| from < value.len()) else {
                if changes.len() > 1 {
                    self.list(&changes[number], self.places[number], buffers);
                }
                self.next = (number + 1, 0);
                copied += CHANGE_BYTES;
                continue;
            };
            let (piece, first, room) = self.place(number, key, from);
            let count = (value.len() - from).min(room).min(most - copied);
            value.copy_to(from, buffers.bytes_mut(self.pieces[piece].buffer, first, count));
            self.next = (number, from + count);
            copied += count;
        }
        copied
    }

    /// All is copied.
    #[must_use]
    pub const fn is_copied(&self, changes: &[Change]) -> bool {
        self.next.0 == changes.len()
    }

    /// The change as a job has it.
    ///
    /// # Panics
    /// If not all is copied.
    #[must_use]
    pub fn finish(self, changes: &[Change], packer: &mut Packer<'_>) -> Packed {
        assert!(self.is_copied(changes), "change {} of {} is not copied", self.next.0, changes.len());
        let (condition, durability) = (StoreCondition::Always, packer.durability);
        let op = match changes {
            [(key, None)] => {
                let key = match self.pieces.first() {
                    Some(piece) => packer.key(key, piece.buffer, 0),
                    None => Key::inline(key).expect("a key without a place is short"),
                };
                KvOp::Delete { key, absent: AbsentKey::Success, durability }
            }
            [(key, Some(value))] if self.is_spread => {
                let part_at = |(piece, first): (&PoolPiece, usize)| {
                    part(piece.buffer, 0, (value.len() - first).min(PIECE_BYTES_MAX))
                };
                let firsts = (0..value.len()).step_by(PIECE_BYTES_MAX);
                let parts: Vec<_> = self.pieces[1..].iter().zip(firsts).map(part_at).collect();
                let buffer = self.pieces[0].buffer;
                let list = List::write(&mut packer.dispatcher.buffers, buffer, &parts);
                let key = packer.key(key, buffer, PIECES_MAX * interface::Piece::BYTES);
                let content = Content::Pieces { list, bytes: narrow(value.len()) };
                KvOp::Store { key, content, condition, durability }
            }
            [(key, Some(value))] => {
                let buffer = self.pieces[0].buffer;
                let content = Content::Piece(part(buffer, placed_bytes(key), value.len()));
                KvOp::Store { key: packer.key(key, buffer, 0), content, condition, durability }
            }
            _ => {
                let entries =
                    List::write(&mut packer.dispatcher.buffers, self.pieces[0].buffer, &self.entries);
                KvOp::Batch { entries, durability }
            }
        };
        Packed { work: Work::KeyValue(op), pieces: self.pieces }
    }

    /// Adds a change that is copied to the list of a batch.
    fn list(&mut self, (key, value): &Change, (piece, first): (usize, usize), buffers: &mut Buffers) {
        let buffer = self.pieces[piece].buffer;
        let change = match value {
            Some(value) => BatchChange::Store {
                value: Some(part(buffer, first + placed_bytes(key), value.len())),
                condition: StoreCondition::Always,
            },
            None => BatchChange::Delete { absent: AbsentKey::Success },
        };
        self.entries.push(BatchEntry { key: named(buffers, key, buffer, first), change });
    }
}

/// A key, written to a buffer if it is too long for a request.
fn named(buffers: &mut Buffers, key: &[u8], buffer: BufId, first: usize) -> Key {
    Key::inline(key).unwrap_or_else(|| {
        buffers.bytes_mut(buffer, first, key.len()).copy_from_slice(key);
        Key::Placed(part(buffer, first, key.len()))
    })
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
        let bytes = placed_bytes(key) + value.as_ref().map_or(0, Stored::len);
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
    use super::super::stored::{Expiry, HEAD_BYTES};
    use super::*;
    use crate::memory_disk::MemoryDisks;

    #[test]
    fn changes_lie_one_behind_the_other_and_none_across_two_pieces() {
        let of = |bytes: usize| Stored { expiry: Expiry::Never, value: vec![0; bytes - HEAD_BYTES].into() };
        let change = |key: &str, bytes: usize| (key.as_bytes().to_vec(), Some(of(bytes)));
        let long = "k".repeat(20);
        let few = [change("a", 10), change(&long, 15), (b"b".to_vec(), None), change("c", 11)];
        assert_eq!(places(&few).unwrap(), (vec![(0, 160), (0, 170), (0, 205), (0, 205)], 1, 216));
        let many = [change("a", 200_000), change("b", 200_000), change("c", 60_000)];
        assert_eq!(places(&many).unwrap(), (vec![(0, 120), (1, 0), (1, 200_000)], 2, 260_000));
        for too_large in [vec![change("a", PIECE_BYTES_MAX + 1); 2], vec![change("a", 10); 7000]] {
            assert!(matches!(places(&too_large), Err(Unpacked::TooLarge(_))));
        }
    }

    /// All changes of a batch were listed at once, and short values copied as if keys cost nothing: 4096 in one turn.
    #[test]
    fn a_batch_is_packed_in_turns_as_it_is_at_once() {
        let change = |number: usize| {
            let value = if number % 5 == 4 { None } else { Some(vec![b'v'; number % 90].into()) };
            let key = format!("{number:0width$}", width = 1 + number % 40).into_bytes();
            (key, value.map(|value| Stored { expiry: Expiry::Never, value }))
        };
        let changes: Vec<Change> = (0..1000).map(change).collect();
        let packed = |most: usize| {
            let (mut dispatcher, _) = MemoryDisks::new(&[("", 8)], [4, 4, 4]);
            let client = ClientId(ClientId::FIRST_TRANSPORT);
            let mut packer = Packer { dispatcher: &mut dispatcher, client, durability: Durability::AtReply };
            let (mut packing, mut turns) = (packer.lay_out(&changes).unwrap(), 0);
            while !packing.is_copied(&changes) {
                packing.copy(&changes, &mut packer.dispatcher.buffers, most);
                turns += 1;
            }
            let Packed { work, pieces } = packing.finish(&changes, &mut packer);
            let Work::KeyValue(KvOp::Batch { entries, .. }) = work else { panic!("{work:?} is no batch") };
            let listed: Vec<BatchEntry> =
                (0..1000).map(|at| entries.get(&dispatcher.buffers, at).unwrap()).collect();
            let bytes: Vec<Vec<u8>> = pieces
                .iter()
                .map(|piece| dispatcher.buffers.bytes(piece.buffer, 0, PIECE_BYTES_MAX / 2).to_vec())
                .collect();
            pieces.into_iter().for_each(|piece| dispatcher.pool.give_back(piece));
            (listed, bytes, turns)
        };
        let (at_once, in_turns) = (packed(usize::MAX), packed(COPY_BYTES_OF_TURN));
        assert!(at_once.0 == in_turns.0 && at_once.1 == in_turns.1, "it is packed otherwise");
        assert_eq!(at_once.2, 1);
        assert!(in_turns.2 >= 1000 / KEYS_OF_TURN, "{} turns for 1000 keys", in_turns.2);
    }
}
