//! A request for a file's content that has not been answered: which jobs it wants, and what came of them.
//!
//! Files are read and written byte by byte, targets block by block. What begins or ends within a block is read, changed and
//! written as a whole: a *merge*, one at a time for a request. Deliberately not here: which request goes first.

use crate::dispatcher::Dispatcher;
use crate::exports::{Export, ExportId};
use crate::job::{Done, Job, JobOwner, Work};
use crate::pool::{PIECE_BYTES_MAX, PoolPiece};
use crate::shares::Want;
use ocssd_base::usize_of;
use ocssd_lightnvm::Status;
use rustix::io::Errno;
use std::ops::Range;

/// What is to be done with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// They are read.
    Read,
    /// They are written.
    Write,
    /// They become zeroes, and the target is told that they are, or that they are not needed.
    Clear(Work),
    /// What was answered is made durable.
    Flush,
}

/// Where a merge is.
#[derive(Debug)]
enum Merge {
    /// There is none.
    None,
    /// Its blocks are read.
    Reading,
    /// They are changed, and wait for a place for the job that writes them.
    Changed { piece: PoolPiece, blocks: Range<u64> },
    /// They are written.
    Writing,
}

/// What is to be known of a request.
#[derive(Debug)]
pub struct Asked {
    /// The kernel's name for it.
    pub unique: u64,
    /// Of which file.
    pub export: ExportId,
    /// What.
    pub task: Task,
    /// Its bytes, within the file.
    pub bytes: Range<u64>,
    /// What is to be written, from the first byte of the piece on.
    pub payload: Option<PoolPiece>,
}

/// A request.
#[derive(Debug)]
pub struct OpenRequest {
    /// What was asked.
    pub asked: Asked,
    /// The first byte that nothing is done about.
    at: u64,
    running: u32,
    /// The flush was given out.
    flushed: bool,
    merge: Merge,
    /// The first error.
    error: Option<Errno>,
    /// What was read: the first byte of each part, which may lie before the first that was asked for.
    held: Vec<(u64, PoolPiece)>,
}

/// A part of what was read: bytes of a piece.
#[derive(Debug)]
pub struct FilePart {
    /// The piece.
    pub piece: PoolPiece,
    /// The first of the bytes that were asked for.
    pub first: usize,
    /// How many.
    pub count: usize,
}

/// What a request came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It waits for jobs.
    Waits,
    /// It waits for a piece or a place for a job.
    NoRoom,
    /// All is done.
    Over,
}

impl OpenRequest {
    /// A request of which nothing is done.
    pub fn new(asked: Asked) -> Self {
        let at = asked.bytes.start;
        Self { asked, at, running: 0, flushed: false, merge: Merge::None, error: None, held: Vec::new() }
    }

    /// Some of its blocks are changed in part.
    pub fn merges(&self, block_bytes: u32) -> bool {
        let Range { start, end } = self.asked.bytes;
        let block = u64::from(block_bytes);
        self.changes() && !(start.is_multiple_of(block) && end.is_multiple_of(block))
    }

    /// It changes the file.
    pub fn changes(&self) -> bool {
        matches!(self.asked.task, Task::Write | Task::Clear(_))
    }

    /// Gives out as many jobs as it can.
    pub fn step(&mut self, owner: JobOwner, dispatcher: &mut Dispatcher) -> Step {
        loop {
            if let Some(step) = self.settled() {
                return step;
            }
            if !self.give(owner, dispatcher) {
                return Step::NoRoom;
            }
        }
    }

    /// What it came to, if no more jobs can be given out now.
    fn settled(&self) -> Option<Step> {
        let serial = self.changes();
        let is_changed = matches!(self.merge, Merge::Changed { .. });
        if self.running > 0 && (serial || self.at == self.asked.bytes.end) {
            return Some(Step::Waits);
        }
        if self.error.is_some() && !is_changed {
            return Some(if self.running == 0 { Step::Over } else { Step::Waits });
        }
        let wants_flush = self.asked.task == Task::Flush && !self.flushed;
        let over = self.at == self.asked.bytes.end && !is_changed && !wants_flush;
        (over && self.running == 0).then_some(Step::Over)
    }

    /// Gives out the next job. False if there is no room for it.
    fn give(&mut self, owner: JobOwner, dispatcher: &mut Dispatcher) -> bool {
        if !dispatcher.has_room(owner.client()) {
            return false;
        }
        let block = u64::from(dispatcher.exports.get(self.asked.export).block_bytes);
        let end = self.asked.bytes.end;
        let whole = self.at.is_multiple_of(block) && end - self.at >= block;
        let aligned = !self.merges(dispatcher.exports.get(self.asked.export).block_bytes);
        let (work, blocks, piece) = match (std::mem::replace(&mut self.merge, Merge::None), self.asked.task) {
            (Merge::Changed { piece, blocks }, _) => {
                self.merge = Merge::Writing;
                (Work::Write { fua: false }, blocks, Some(piece))
            }
            (_, Task::Flush) => {
                self.flushed = true;
                (Work::Flush, 0..0, None)
            }
            (_, Task::Clear(work)) if whole => {
                let (work, last) = self.clear(work, dispatcher.exports.get(self.asked.export));
                let blocks = self.at / block..last;
                self.at = last * block;
                (work, blocks, None)
            }
            (_, Task::Write) if aligned => {
                let piece = self.asked.payload.take().expect("a write is given out once");
                let blocks = self.at / block..end / block;
                self.at = end;
                (Work::Write { fua: false }, blocks, Some(piece))
            }
            (_, task) => {
                let blocks = self.span(block, task);
                // What is read to be changed comes back by itself, and with it the payload that waits for it.
                let want = if task == Task::Read { Want::Share } else { Want::Last };
                let piece = dispatcher.pool.take(owner.client(), bytes_of(&blocks, block), want);
                let Some(piece) = piece else { return false };
                if task == Task::Read {
                    self.at = end.min(blocks.end * block);
                } else {
                    self.merge = Merge::Reading;
                }
                (Work::Read, blocks, Some(piece))
            }
        };
        let count = u32::try_from(blocks.end - blocks.start).expect("a job has at most 2^32 - 1 blocks");
        self.running += 1;
        dispatcher.give(Job {
            owner,
            export: self.asked.export,
            work,
            block: blocks.start,
            count,
            piece,
            beside: Vec::new(),
        });
        true
    }

    /// How the next whole blocks are cleared, and the one behind the last. Targets discard whole sectors only, so the blocks
    /// beside those are written as zeroes.
    fn clear(&self, work: Work, export: &Export) -> (Work, u64) {
        let (block, sector) = (u64::from(export.block_bytes), u64::from(export.preferred_bytes));
        let most = self.at / block + u64::from(u32::MAX / export.preferred_bytes * export.preferred_bytes);
        let end = self.asked.bytes.end;
        let (work, last) = match work {
            Work::Discard if !self.at.is_multiple_of(sector) => {
                (Work::WriteZeroes, end.min(self.at.next_multiple_of(sector)))
            }
            Work::Discard if end - self.at < sector => (Work::WriteZeroes, end),
            Work::Discard => (work, end / sector * sector),
            _ => (work, end),
        };
        (work, (last / block).min(most))
    }

    /// Blocks of the next read: those that hold what comes next, as far as a piece holds them; when a range is cleared, the
    /// one block of which a part is.
    fn span(&self, block: u64, task: Task) -> Range<u64> {
        let first = self.at / block;
        let most = match task {
            Task::Clear(_) => 1,
            _ => u64::try_from(PIECE_BYTES_MAX).expect("it is small") / block,
        };
        first..self.asked.bytes.end.div_ceil(block).min(first + most)
    }

    /// A job of it ended.
    pub fn on_done(&mut self, done: Done, dispatcher: &mut Dispatcher) {
        self.running -= 1;
        let block = u64::from(dispatcher.exports.get(self.asked.export).block_bytes);
        let blocks = done.job.block..done.job.block + u64::from(done.job.count);
        let failed = errno_of(done.status);
        self.error = self.error.or(failed);
        match (done.job.work, done.job.piece) {
            (Work::Read, Some(piece)) if failed.is_some() => {
                self.merge = Merge::None;
                dispatcher.pool.give_back(piece);
            }
            (Work::Read, Some(piece)) if self.asked.task == Task::Read => {
                self.held.push((blocks.start * block, piece));
            }
            (Work::Read, Some(piece)) => {
                self.change(&piece, &blocks, block, dispatcher);
                self.merge = Merge::Changed { piece, blocks };
            }
            (_, Some(piece)) => {
                if matches!(self.merge, Merge::Writing) {
                    self.merge = Merge::None;
                    self.at = self.asked.bytes.end.min(blocks.end * block);
                }
                dispatcher.pool.give_back(piece);
            }
            (_, None) => {}
        }
    }

    /// Puts what is to be written into blocks that were read.
    fn change(&self, piece: &PoolPiece, blocks: &Range<u64>, block: u64, dispatcher: &mut Dispatcher) {
        let end = self.asked.bytes.end.min(blocks.end * block);
        let into = as_usize(self.at - blocks.start * block);
        let count = as_usize(end - self.at);
        let Some(payload) = &self.asked.payload else {
            dispatcher.buffers.bytes_mut(piece.buffer, into, count).fill(0);
            return;
        };
        let from = as_usize(self.at - self.asked.bytes.start);
        // Twice, since two buffers cannot be had at once.
        let bytes = dispatcher.buffers.bytes(payload.buffer, from, count).to_vec();
        dispatcher.buffers.bytes_mut(piece.buffer, into, count).copy_from_slice(&bytes);
        dispatcher.stats.received_copied_bytes += 2 * (end - self.at);
    }

    /// How it ended: with an error, or with what was read, in order.
    pub fn end(mut self, block_bytes: u32, dispatcher: &mut Dispatcher) -> Result<Vec<FilePart>, Errno> {
        assert!(self.running == 0, "a request ends while jobs run");
        if let Some(payload) = self.asked.payload.take() {
            dispatcher.pool.give_back(payload);
        }
        if let Some(error) = self.error {
            self.held.drain(..).for_each(|(_, piece)| dispatcher.pool.give_back(piece));
            return Err(error);
        }
        self.held.sort_unstable_by_key(|(first, _)| *first);
        let piece_bytes = u64::try_from(PIECE_BYTES_MAX).expect("it is small") / u64::from(block_bytes)
            * u64::from(block_bytes);
        let asked = self.asked.bytes.clone();
        let parts = self.held.into_iter().map(|(first, piece)| {
            let begin = asked.start.max(first);
            let end = asked.end.min(first + piece_bytes);
            FilePart { piece, first: as_usize(begin - first), count: as_usize(end - begin) }
        });
        Ok(parts.collect())
    }
}

/// Whether one must wait for the other: they change the same block, and one of them changes only a part of it.
pub fn collide(one: &OpenRequest, other: &OpenRequest, export: &Export) -> bool {
    let block = u64::from(export.block_bytes);
    let blocks =
        |request: &OpenRequest| request.asked.bytes.start / block..request.asked.bytes.end.div_ceil(block);
    let (a, b) = (blocks(one), blocks(other));
    one.asked.export == other.asked.export
        && one.changes()
        && other.changes()
        && (one.merges(export.block_bytes) || other.merges(export.block_bytes))
        && a.start < b.end
        && b.start < a.end
}

/// What a program hears of a status that is no success: what a block device would say.
pub fn errno_of(status: Status) -> Option<Errno> {
    match status {
        Status::SUCCESS | Status::HIGH_ECC | Status::HIGH_ECC_12 => None,
        Status::WRITE_TO_READ_ONLY => Some(Errno::ROFS),
        Status::CAPACITY_EXCEEDED => Some(Errno::NOSPC),
        Status::LBA_OUT_OF_RANGE | Status::INVALID_FIELD => Some(Errno::INVAL),
        Status::INVALID_OPCODE => Some(Errno::OPNOTSUPP),
        _ => Some(Errno::IO),
    }
}

fn bytes_of(blocks: &Range<u64>, block: u64) -> usize {
    as_usize((blocks.end - blocks.start) * block)
}

fn as_usize(bytes: u64) -> usize {
    usize_of(u32::try_from(bytes).expect("no more than a piece"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_that_is_no_success_is_an_error() {
        for status in Status::all() {
            assert_eq!(errno_of(status).is_none(), status.has_data(), "{status}");
        }
    }

    #[test]
    fn only_changes_of_parts_of_the_same_block_wait_for_each_other() {
        let export = Export::example();
        let request = |task, bytes, file| {
            OpenRequest::new(Asked { unique: 0, export: ExportId(file), task, bytes, payload: None })
        };
        let part = request(Task::Write, 100..700, 0);
        for (task, bytes, file, expected) in [
            (Task::Write, 512..1024, 0, true),
            (Task::Write, 1024..2048, 0, false),
            (Task::Clear(Work::Discard), 700..701, 0, true),
            (Task::Read, 0..1024, 0, false),
            (Task::Write, 512..1024, 1, false),
        ] {
            let other = request(task, bytes.clone(), file);
            assert_eq!(collide(&part, &other, &export), expected, "{task:?} {bytes:?} of {file}");
        }
        let whole = request(Task::Write, 0..1024, 0);
        assert!(
            !collide(&whole, &request(Task::Write, 512..1024, 0), &export),
            "the target orders whole blocks"
        );
    }
}
