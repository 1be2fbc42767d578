//! A request that has not ended: how much of it is given out as jobs, and how it ends when they have.
//!
//! Deliberately not here: which request comes next, and where jobs go.

use super::memory::Segment;
use super::plan::{Range, Step};
use super::request::BlkStatus;
use crate::pool::PIECE_BYTES_MAX;

/// A request; kept and used again, so that its lists are allocated once.
#[derive(Debug, Default)]
pub struct OpenRequest {
    /// Which ring it came by.
    pub ring: usize,
    /// The first descriptor of its chain: the guest's name for it.
    pub head: u16,
    /// Where its status goes.
    pub status: Option<Segment>,
    /// Where its payload lies.
    pub payload: Vec<Segment>,
    /// What is to be done.
    pub ranges: Vec<Range>,
    /// A flush belongs to it: it is one, or must be durable when it ends.
    pub flushes: bool,
    /// Its writes are durable when they end.
    pub durable: bool,
    /// It waits for room.
    pub queued: bool,
    /// Bytes of the payload that were written.
    pub written: u32,
    /// Ranges that are given out whole.
    given: usize,
    /// Bytes of the next that are given out.
    issued: u64,
    /// Jobs that have not ended.
    running: u32,
    flushed: bool,
    failed: Option<BlkStatus>,
}

/// What a request wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// A job over these bytes.
    Job(Range),
    /// A flush.
    Flush,
    /// The ends of its jobs.
    Wait,
    /// Nothing: it has ended.
    Over(BlkStatus),
}

/// Sectors of drives have at most this many bytes (docs/drive.md, `sector_bytes`).
const SECTOR_BYTES_MAX: u64 = 64 << 10;

impl OpenRequest {
    /// As new, with its lists empty.
    pub fn clear(&mut self) {
        let (mut payload, mut ranges) = (std::mem::take(&mut self.payload), std::mem::take(&mut self.ranges));
        payload.clear();
        ranges.clear();
        *self = Self { payload, ranges, ..Self::default() };
    }

    /// What it wants next.
    #[must_use]
    pub fn next_step(&self) -> NextStep {
        if let Some(range) = self.ranges.get(self.given) {
            let (offset, left) = (range.offset + self.issued, range.bytes - self.issued);
            return NextStep::Job(Range { step: range.step, offset, bytes: span(range.step, offset, left) });
        }
        match (self.running, self.failed) {
            (1.., _) => NextStep::Wait,
            (0, Some(failed)) => NextStep::Over(failed),
            (0, None) if self.flushes && !self.flushed => NextStep::Flush,
            (0, None) => NextStep::Over(BlkStatus::Ok),
        }
    }

    /// The job it wished for was given out.
    pub fn on_issued(&mut self, bytes: u64) {
        let range = self.ranges[self.given];
        self.issued += bytes;
        self.running += 1;
        assert!(self.issued <= range.bytes, "{} of {} bytes were given out", self.issued, range.bytes);
        if self.issued == range.bytes {
            (self.given, self.issued) = (self.given + 1, 0);
        }
    }

    /// The flush it wished for was given out.
    pub fn on_flush_issued(&mut self) {
        assert!(self.flushes && !self.flushed, "a flush was given out that nobody wished for");
        self.flushed = true;
        self.running += 1;
    }

    /// Jobs that have not ended.
    #[must_use]
    pub const fn running(&self) -> u32 {
        self.running
    }

    /// It fails, and nothing more of it is given out.
    pub fn fail(&mut self, status: BlkStatus) {
        self.failed = self.failed.or(Some(status));
        self.given = self.ranges.len();
    }

    /// A job ended.
    pub fn on_ended(&mut self, status: BlkStatus) {
        assert!(self.running > 0, "a job ended that was not given out");
        self.running -= 1;
        if status != BlkStatus::Ok {
            self.fail(status);
        }
    }

    /// Where byte `offset` of the device lies in the payload, of a request with one range.
    #[must_use]
    pub fn payload_offset(&self, offset: u64) -> usize {
        usize::try_from(offset - self.ranges[0].offset).expect("a request with payload is small")
    }
}

/// Bytes of the job that begins at `offset`: all, or to the last sector boundary that fits a piece, so that only the ends of
/// a request share a sector with others.
fn span(step: Step, offset: u64, left: u64) -> u64 {
    match step {
        Step::Discard | Step::WriteZeroes => left,
        Step::Read | Step::Write | Step::Zeroes => {
            let most = u64::try_from(PIECE_BYTES_MAX).expect("it is small");
            left.min(most - offset % SECTOR_BYTES_MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    fn request(ranges: &[Range]) -> OpenRequest {
        OpenRequest { ranges: ranges.to_vec(), ..OpenRequest::default() }
    }

    fn jobs(request: &mut OpenRequest) -> Vec<(u64, u64)> {
        let mut jobs = Vec::new();
        while let NextStep::Job(Range { offset, bytes, .. }) = request.next_step() {
            request.on_issued(bytes);
            jobs.push((offset, bytes));
        }
        jobs
    }

    #[test]
    fn long_payload_is_cut_where_sectors_end_and_what_has_none_is_not_cut() {
        let mut read = request(&[Range { step: Step::Read, offset: 4 * KIB, bytes: 600 * KIB }]);
        assert_eq!(jobs(&mut read), [(4 * KIB, 252 * KIB), (256 * KIB, 256 * KIB), (512 * KIB, 92 * KIB)]);
        assert_eq!(read.payload_offset(512 * KIB), 508 << 10);
        let whole = Range { step: Step::Discard, offset: 512, bytes: 1 << 31 };
        let zeroes = Range { step: Step::Zeroes, offset: 0, bytes: 512 };
        assert_eq!(jobs(&mut request(&[whole, zeroes])), [(512, 1 << 31), (0, 512)]);
    }

    #[test]
    fn it_ends_when_its_jobs_have_and_flushes_last() {
        let mut write = request(&[Range { step: Step::WriteZeroes, offset: 0, bytes: 512 }]);
        write.flushes = true;
        jobs(&mut write);
        assert_eq!(write.next_step(), NextStep::Wait);
        write.on_ended(BlkStatus::Ok);
        assert_eq!(write.next_step(), NextStep::Flush);
        write.on_flush_issued();
        assert_eq!(write.next_step(), NextStep::Wait);
        write.on_ended(BlkStatus::Ok);
        assert_eq!(write.next_step(), NextStep::Over(BlkStatus::Ok));
    }

    #[test]
    fn the_first_failure_ends_it_without_a_flush() {
        let range = Range { step: Step::Write, offset: 0, bytes: 1 << 20 };
        let mut write = request(&[range]);
        write.flushes = true;
        write.on_issued(256 << 10);
        write.on_issued(256 << 10);
        write.on_ended(BlkStatus::Unsupp);
        assert_eq!(write.next_step(), NextStep::Wait, "nothing more is given out");
        write.on_ended(BlkStatus::IoErr);
        assert_eq!(write.next_step(), NextStep::Over(BlkStatus::Unsupp));
        write.clear();
        assert_eq!(write.next_step(), NextStep::Over(BlkStatus::Ok));
    }
}
