//! A request that has not been answered: how much of it is given out as jobs, and the answer when they have ended.
//!
//! Deliberately not here: which request comes next, and where jobs go.

use super::answer;
use super::plan::{Kind, NbdPlan, error_of};
use super::wire::{NbdError, RequestHeader, allocation, chunk, chunk_header, simple_reply};
use crate::exports::Export;
use crate::job::{Answer, Done, Extent};
use crate::pool::{PIECE_BYTES_MAX, Pool, PoolPiece};
use crate::send_queue::SendQueue;

/// A part of a read that waits for the others.
#[derive(Debug)]
struct Held {
    offset: u64,
    piece: PoolPiece,
    bytes: usize,
}

/// A request.
#[derive(Debug)]
pub struct OpenRequest {
    /// What is to be done.
    pub plan: NbdPlan,
    /// The client's name for it.
    cookie: u64,
    /// First byte.
    offset: u64,
    /// Bytes; those of a flush mean nothing.
    length: u32,
    /// Bytes given out as jobs.
    issued: u32,
    /// Jobs that have not ended.
    running: u32,
    /// The first error.
    error: Option<NbdError>,
    /// The flush that makes it durable was given out.
    flushed: bool,
    /// What was read and waits for the rest.
    held: Vec<Held>,
}

/// What a request wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// A job over these bytes.
    Job {
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u32,
    },
    /// A flush.
    Flush,
    /// The ends of its jobs.
    Wait,
    /// Nothing: it is over and its answer is in the send queue.
    Over,
}

impl OpenRequest {
    /// A request of which nothing is done.
    #[must_use]
    pub fn new(header: &RequestHeader, plan: NbdPlan) -> Self {
        let length = if plan.kind == Kind::Flush { 0 } else { header.length };
        Self {
            plan,
            cookie: header.cookie,
            offset: header.offset,
            length,
            issued: 0,
            running: 0,
            error: None,
            flushed: false,
            held: Vec::new(),
        }
    }

    /// Its parts are sent together and are more than one.
    #[must_use]
    pub fn gathers(&self) -> bool {
        matches!(self.plan.kind, Kind::Read { whole: true }) && self.span(0) < self.length
    }

    /// How many pieces it takes at most to send its parts together.
    #[must_use]
    pub fn pieces(&self) -> u32 {
        let most = u32::try_from(PIECE_BYTES_MAX).expect("it is small");
        // The first may be shorter, so that the others begin where sectors do.
        1 + self.length.div_ceil(most)
    }

    /// Everything of it is given out as jobs.
    #[must_use]
    pub const fn is_issued(&self) -> bool {
        self.issued == self.length
    }

    /// Bytes of the job that begins after `issued` bytes: to the end, or to the last sector boundary that fits a piece.
    fn span(&self, issued: u32) -> u32 {
        let left = self.length - issued;
        if matches!(self.plan.kind, Kind::Range(_) | Kind::Map { .. }) {
            return left;
        }
        let most = u32::try_from(PIECE_BYTES_MAX).expect("it is small");
        // Pieces end where sectors do, so that only the ends of a request share a sector with others.
        let into = (self.offset + u64::from(issued)) % SECTOR_BYTES_MAX;
        left.min(most - u32::try_from(into).expect("less than a sector"))
    }

    /// What it wants next.
    #[must_use]
    pub fn next_step(&self) -> NextStep {
        if self.issued < self.length {
            let offset = self.offset + u64::from(self.issued);
            return NextStep::Job { offset, bytes: self.span(self.issued) };
        }
        let durable = self.plan.fua && self.plan.kind != Kind::Write;
        let wants_flush = !self.flushed && self.error.is_none() && (durable || self.plan.kind == Kind::Flush);
        match self.running {
            1.. => NextStep::Wait,
            0 if wants_flush => NextStep::Flush,
            0 => NextStep::Over,
        }
    }

    /// A job over the next `bytes` bytes was given out; 0 for a flush.
    pub fn on_issued(&mut self, bytes: u32) {
        self.issued += bytes;
        self.flushed |= bytes == 0;
        self.running += 1;
        assert!(self.issued <= self.length, "more was given out than was asked for");
    }

    /// A job ended. Its part of the answer goes to the send queue, or is held.
    pub fn on_done(&mut self, done: Done, export: &Export, send_queue: &mut SendQueue, pool: &mut Pool) {
        self.running -= 1;
        let failed = error_of(done.status);
        self.error = self.error.or(failed);
        let offset = done.job.block * u64::from(export.block_bytes);
        let bytes = usize::try_from(u64::from(done.job.count) * u64::from(export.block_bytes));
        match (self.plan.kind, done.job.piece) {
            (Kind::Read { whole: true }, Some(piece)) => {
                let bytes = bytes.expect("it fits a piece");
                self.held.push(Held { offset, piece, bytes });
            }
            (Kind::Read { whole: false }, Some(piece)) if failed.is_none() => {
                let is_last = self.error.is_none() && self.next_step() == NextStep::Over;
                let flags = if is_last { chunk::FLAG_DONE } else { 0 };
                let bytes = bytes.expect("it fits a piece");
                push_data_header(send_queue, flags, self.cookie, offset, bytes);
                send_queue.push_payload(piece, 0, bytes);
            }
            (kind, Some(piece)) => {
                pool.give_back(piece);
                if let (Kind::Read { .. }, Some(error)) = (kind, failed) {
                    answer::failure_at(send_queue, self.cookie, error, offset);
                }
            }
            (Kind::Map { .. }, None) => {
                let Answer::Extents(extents) = &done.answer else { return };
                push_extents(send_queue, self.cookie, export, extents);
            }
            (_, None) => {}
        }
    }

    /// Puts the end of the answer into the send queue. `structured`: as the connection agreed on.
    pub fn answer(
        mut self,
        structured: bool,
        send_queue: &mut SendQueue,
        pool: &mut Pool,
    ) -> Option<NbdError> {
        assert_eq!(self.next_step(), NextStep::Over, "an answer to a request that goes on");
        match (self.plan.kind, self.error) {
            (Kind::Read { whole: false }, Some(_)) => answer::success(send_queue, true, self.cookie),
            (Kind::Read { whole: false } | Kind::Map { .. }, _) => {}
            (Kind::Read { whole: true }, None) => self.push_gathered(structured, send_queue),
            (Kind::Read { whole: true }, Some(error)) => {
                self.release(pool);
                answer::failure(send_queue, structured, self.cookie, error);
            }
            (_, None) => answer::success(send_queue, false, self.cookie),
            (_, Some(error)) => answer::failure(send_queue, false, self.cookie, error),
        }
        self.error
    }

    fn push_gathered(&mut self, structured: bool, send_queue: &mut SendQueue) {
        self.held.sort_by_key(|held| held.offset);
        if structured {
            let bytes = usize::try_from(self.length).expect("32 bits fit an index");
            push_data_header(send_queue, chunk::FLAG_DONE, self.cookie, self.offset, bytes);
        } else {
            send_queue.push_text(&simple_reply(0, self.cookie));
        }
        for Held { piece, bytes, .. } in self.held.drain(..) {
            send_queue.push_payload(piece, 0, bytes);
        }
    }

    /// The connection is over: what was read and not sent comes back.
    pub fn release(&mut self, pool: &mut Pool) {
        self.held.drain(..).for_each(|held| pool.give_back(held.piece));
    }
}

/// Sectors of drives have at most this many bytes (docs/drive.md, `sector_bytes`).
const SECTOR_BYTES_MAX: u64 = 64 << 10;

fn push_data_header(send_queue: &mut SendQueue, flags: u16, cookie: u64, offset: u64, bytes: usize) {
    let length = u32::try_from(bytes + 8).expect("a request has at most 32 MiB");
    send_queue.push_text(&chunk_header(flags, chunk::OFFSET_DATA, cookie, length));
    send_queue.push_text(&offset.to_be_bytes());
}

/// The answer to a question about what holds data. It may cover less than was asked for.
fn push_extents(send_queue: &mut SendQueue, cookie: u64, export: &Export, extents: &[Extent]) {
    let length = u32::try_from(4 + 8 * extents.len()).expect("few");
    send_queue.push_text(&chunk_header(chunk::FLAG_DONE, chunk::BLOCK_STATUS, cookie, length));
    send_queue.push_text(&answer::ALLOCATION_ID.to_be_bytes());
    for extent in extents {
        let flags = if extent.mapped { 0 } else { allocation::HOLE | allocation::ZERO };
        send_queue.push_text(&(extent.blocks * export.block_bytes).to_be_bytes());
        send_queue.push_text(&flags.to_be_bytes());
    }
}
