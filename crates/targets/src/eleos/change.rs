//! What was asked for and is not durable yet: sessions that begin and end, and flushes, in the order in which they were taken.
//!
//! A flush is cut into parts as its buffer units are filled; it can be logged when all of them have been programmed, and
//! everything before it is. Deliberately not here: buffer units (`write`), what becomes true (`map`).

use super::entry::Entry;
use super::extent::{Extent, Spot, index};
use ocssd_lightnvm::BufId;
use ocssd_lightnvm::interface::Piece;
use ocssd_lightnvm::interface::log_structured::{PageEntry, SessionId, Wsn};
use std::collections::VecDeque;

/// Which change, from 1, over all sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Number(pub u64);

/// What happens to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It begins.
    Opened,
    /// It ends.
    Closed,
    /// It flushes.
    Flushed(Wsn),
}

/// How far a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// It waits for room.
    Waiting,
    /// Its pages go to buffer units.
    Packing,
    /// All of it is in buffer units.
    Packed,
    /// It is in the log, or on its way there.
    Committed,
}

/// A part of a page of a flush.
#[derive(Clone, Copy, Debug)]
pub struct PagePart {
    /// The row of the page.
    pub row: u32,
    /// Its bytes.
    pub bytes: u32,
    /// Where it was programmed.
    pub spot: Option<Spot>,
}

/// The buffer of a flush.
#[derive(Clone, Debug)]
pub enum FlushBuffer {
    /// Memory of the target: its flush may be answered before all of it is in buffer units.
    Own(Vec<u8>),
    /// The host's, which keeps it until the flush is answered, and so until it is durable.
    Host(Piece),
}

/// Bytes on their way to a buffer unit.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// In memory.
    Bytes(&'a [u8]),
    /// In a whole buffer, from this byte on.
    Whole(BufId, usize),
}

impl FlushBuffer {
    /// Some of it.
    pub fn part(&self, first: u32, bytes: u32) -> Source<'_> {
        match self {
            Self::Own(content) => Source::Bytes(&content[index(first)..index(first + bytes)]),
            Self::Host(piece) => {
                assert!(first + bytes <= piece.bytes, "bytes behind the end of {piece:?}");
                Source::Whole(piece.buffer, index(piece.first_byte + first))
            }
        }
    }

    /// Memory it takes of the target.
    fn own_bytes(&self) -> u64 {
        match self {
            Self::Own(content) => u64::try_from(content.len()).expect("an index"),
            Self::Host(_) => 0,
        }
    }
}

/// A change.
#[derive(Clone, Debug)]
pub struct Change {
    pub session: SessionId,
    /// Which life of the session.
    pub life: u64,
    pub what: What,
    /// The pages of a flush.
    pub rows: Vec<PageEntry>,
    /// Its buffer.
    pub content: FlushBuffer,
    pub progress: Progress,
    /// Sectors it may take.
    pub sectors: u32,
    /// The row that goes to buffer units next, and how many of its bytes are there.
    pub next: (u32, u32),
    pub parts: Vec<PagePart>,
    /// Parts that were not programmed.
    pub flying: u32,
}

impl Change {
    /// The next row with bytes that are in no buffer unit: the row, and how many are.
    pub fn next_piece(&mut self) -> Option<(u32, u32)> {
        while let Some(row) = self.rows.get(index(self.next.0)) {
            if self.next.1 < row.bytes {
                return Some(self.next);
            }
            self.next = (self.next.0 + 1, 0);
        }
        None
    }

    /// So many bytes of the next row go to a buffer unit as a part. Gives the part's number.
    pub fn take(&mut self, bytes: u32) -> u32 {
        let (row, done) = self.next;
        assert!(bytes > 0 && done + bytes <= self.rows[index(row)].bytes, "a part beyond row {row}");
        self.next.1 += bytes;
        self.parts.push(PagePart { row, bytes, spot: None });
        self.flying += 1;
        u32::try_from(self.parts.len() - 1).expect("fewer parts than bytes")
    }

    /// A part was programmed.
    pub fn programmed(&mut self, part: u32, spot: Spot) {
        let of = &mut self.parts[index(part)];
        assert!(of.spot.is_none() && self.flying > 0, "part {part} was programmed twice");
        of.spot = Some(spot);
        self.flying -= 1;
    }

    /// True if it can be logged.
    pub fn is_ready(&self) -> bool {
        self.progress == Progress::Packed && self.flying == 0
    }

    /// What makes it true: of each row its parts in order, then how far the session is.
    pub fn entries(&self) -> Vec<Entry> {
        assert_eq!(self.flying, 0, "{:?} is logged with parts in flight", self.what);
        let mut entries = Vec::with_capacity(self.parts.len() + 1);
        // Parts that a planted bug made true before are of no row.
        let mut parts = self.parts.iter().filter(|part| part.row != u32::MAX).peekable();
        for (row, of) in (0..).zip(&self.rows) {
            if of.bytes == 0 {
                entries.push(Entry::Deleted(of.page));
            }
            let mut is_first = true;
            while let Some(part) = parts.next_if(|part| part.row == row) {
                let spot = part.spot.expect("every part was programmed");
                let extent = Extent { spot, bytes: part.bytes };
                entries.push(if is_first {
                    Entry::First(of.page, extent)
                } else {
                    Entry::Next(of.page, extent)
                });
                is_first = false;
            }
        }
        assert!(parts.next().is_none(), "a part of no row");
        entries.push(match self.what {
            What::Opened => Entry::Session(self.session, Wsn(0)),
            What::Flushed(wsn) => Entry::Session(self.session, wsn),
            What::Closed => Entry::Closed(self.session),
        });
        entries
    }
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    queue: VecDeque<Change>,
    /// The last one that is durable.
    durable: Number,
    /// Bytes of the target's own buffers.
    bytes: u64,
}

impl Changes {
    /// Takes one.
    pub fn push(&mut self, change: Change) -> Number {
        assert_eq!(change.progress, Progress::Waiting, "{:?} is on its way before it is taken", change.what);
        assert!(
            change.parts.is_empty() && change.flying == 0,
            "{:?} has parts before it is taken",
            change.what
        );
        self.bytes += change.content.own_bytes();
        self.queue.push_back(change);
        self.last()
    }

    /// The last one taken.
    pub fn last(&self) -> Number {
        Number(self.durable.0 + u64::try_from(self.queue.len()).expect("an index"))
    }

    /// The last one that is durable.
    pub const fn durable(&self) -> Number {
        self.durable
    }

    fn at(&self, number: Number) -> usize {
        let behind =
            number.0.checked_sub(self.durable.0 + 1).expect("a change that is durable was asked for");
        usize::try_from(behind).expect("an index")
    }

    /// A change that is not durable.
    pub fn get(&self, number: Number) -> &Change {
        &self.queue[self.at(number)]
    }

    /// The same, to change.
    pub fn get_mut(&mut self, number: Number) -> &mut Change {
        let at = self.at(number);
        &mut self.queue[at]
    }

    /// The first that is not so far.
    pub fn first_before(&self, progress: Progress) -> Option<Number> {
        let at = self.queue.partition_point(|change| change.progress >= progress);
        (at < self.queue.len()).then(|| Number(self.durable.0 + 1 + u64::try_from(at).expect("an index")))
    }

    /// The oldest is durable.
    pub fn pop(&mut self) -> (Number, Change) {
        let change = self.queue.pop_front().expect("a change became durable that was not taken");
        assert_eq!(change.progress, Progress::Committed, "{:?} is durable before it is logged", change.what);
        self.durable.0 += 1;
        let bytes = change.content.own_bytes();
        assert!(self.bytes >= bytes, "a buffer of {bytes} bytes is given back twice");
        self.bytes -= bytes;
        (self.durable, change)
    }

    /// Bytes of buffers that are kept.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if all are durable.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Forgets all that is not durable.
    pub fn clear(&mut self) {
        self.queue.clear();
        self.bytes = 0;
    }

    /// Asserts that changes are logged in order.
    pub fn check(&self) {
        assert!(self.queue.iter().map(|change| change.progress).is_sorted_by(|a, b| a >= b), "out of order");
        for change in &self.queue {
            let flying = change.parts.iter().filter(|part| part.spot.is_none()).count();
            assert_eq!(u32::try_from(flying), Ok(change.flying), "parts in flight are counted wrong");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_takes_memory_for_its_own_bytes_and_none_for_the_hosts() {
        assert_eq!(FlushBuffer::Own(vec![7; 300]).own_bytes(), 300);
        let piece = Piece { buffer: BufId(1), first_byte: 0, bytes: 300 };
        assert_eq!(FlushBuffer::Host(piece).own_bytes(), 0);
    }
}
