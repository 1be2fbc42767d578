//! Retrieves: where the value is, is looked up once; then its record, or those of its pieces that are asked for, are read.
//!
//! Every record from media is judged: the right key or piece, content that matches its checksum; what fails is read again
//! before the host hears of it. A value of one record takes one read. Deliberately not here: garbage collection's reads.

use super::flight::Purpose;
use super::index::Location;
use super::key_bytes::KeyBytes;
use super::record::{RECORD_HEADER_BYTES, Record, RecordHeader, RecordKind};
use super::sizes::Sizes;
use super::state::{Kv, record_bytes};
use crate::read_again::ReadTries;
use ocssd_base::{Slab, SlabKey, usize_of};
use ocssd_ftl::{Append, PhysicalAddress};
use ocssd_lightnvm::interface::Content;
use ocssd_lightnvm::interface::key_value::{Key, KvAnswer, KvRefusal, KvReply};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op, Status, Tag};
use std::collections::VecDeque;

/// Reads of records in flight (chosen: two on each unit of a drive with 64, with a margin).
const READS_MAX: u32 = 160;
/// Retrieves under way (as many as requests may be).
const JOBS_MAX: u32 = 4096;

/// A retrieve under way.
#[derive(Clone, Debug)]
struct Job {
    tag: Tag,
    key: KeyBytes,
    into: Content,
    /// What is asked for of a value in pieces, as far as it was read; empty of one that is copied from its record.
    gathered: Vec<u8>,
    /// Reads that are not over.
    parts: u32,
    status: Status,
    /// Bytes of the value.
    bytes: u32,
}

/// What a record must be.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// The job's key with its value.
    Key,
    /// This piece of a long value.
    Piece(u64, u32),
}

impl Expected {
    /// The record at the begin of `bytes`, if it is the one that is expected, of a job that asks for `key`, and as it was written.
    fn find<'a>(self, key: &[u8], bytes: &'a [u8]) -> Option<Record<'a>> {
        let found = Record::decode(bytes)?;
        let RecordHeader { kind, value, offset, .. } = found.header;
        let is_it = match self {
            Self::Key => kind == RecordKind::Whole && found.key == key,
            Self::Piece(of, at) => kind == RecordKind::Piece && (value, offset) == (of, at),
        };
        (is_it && found.is_sound(bytes)).then_some(found)
    }
}

/// A record to be read for a job.
#[derive(Clone, Copy, Debug)]
struct Part {
    job: SlabKey,
    /// The byte of the instance it begins at, and its bytes.
    at: u64,
    bytes: u32,
    expected: Expected,
    /// Bytes of its payload: from where, how many, and where in the job's content they go.
    skip: u32,
    count: u32,
    to: u32,
    tries: ReadTries,
}

/// Retrieves and their reads.
#[derive(Clone, Debug)]
pub(super) struct Reads {
    jobs: Slab<Job>,
    waiting: VecDeque<Part>,
    in_flight: Slab<(Part, BufId)>,
    spare: Vec<BufId>,
}

impl Reads {
    /// None; buffers are taken now.
    pub fn new(sizes: &Sizes, buffers: &mut Buffers) -> Self {
        let sectors = (sizes.record_bytes_max.div_ceil(sizes.sector_bytes) + 1).min(sizes.unit);
        Self {
            jobs: Slab::new(JOBS_MAX),
            waiting: VecDeque::new(),
            in_flight: Slab::new(READS_MAX),
            spare: (0..READS_MAX).map(|_| buffers.take_whole(sectors)).collect(),
        }
    }

    /// Retrieves under way.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }
}

impl Kv {
    /// Takes a retrieve: it is answered now, or once its reads are over.
    pub(super) fn retrieve(
        &mut self,
        tag: Tag,
        key: Key,
        offset: u32,
        into: Content,
        buffers: &mut Buffers,
    ) -> Result<(), KvRefusal> {
        if matches!(into, Content::Staged { .. }) || !into.lies_within(buffers) {
            return Err(KvRefusal::BadContent);
        }
        let key = self.key(key, buffers)?;
        let found = self.index.get(&key).ok_or(KvRefusal::NoSuchKey)?;
        self.stats.retrieves += 1;
        let count = found.bytes.saturating_sub(offset).min(into.bytes());
        let (bytes, key_bytes) = (found.bytes, key.len());
        let is_long = matches!(found.location, Location::Long(_));
        let gathered = if is_long { vec![0; usize_of(count)] } else { Vec::new() };
        let job = Job { tag, key, into, gathered, parts: 1, status: Status::SUCCESS, bytes };
        let job = self.reads.jobs.insert(job);
        let job = job.unwrap_or_else(|_| unreachable!("there are as many places as requests"));
        let part = |at, bytes, expected, (skip, count, to)| Part {
            job,
            at,
            bytes,
            expected,
            skip,
            count,
            to,
            tries: ReadTries::FIRST,
        };
        match found.location {
            Location::Lost => self.job_failed(job, Status::UNRECOVERED_READ),
            _ if count == 0 => {}
            Location::Record(at) => {
                let bytes = record_bytes(key_bytes, bytes);
                self.read_part(part(at, bytes, Expected::Key, (offset, count, 0)), buffers);
            }
            Location::Long(value) => {
                let (from, end) = (u64::from(offset), u64::from(offset) + u64::from(count));
                for piece in self.long.pieces(value).to_vec() {
                    let (first, last) =
                        (u64::from(piece.offset), u64::from(piece.offset) + u64::from(piece.bytes));
                    let (begin, stop) = (first.max(from), last.min(end));
                    let Some(at) = piece.at.filter(|_| begin < stop) else {
                        if begin < stop {
                            self.job_failed(job, Status::UNRECOVERED_READ);
                        }
                        continue;
                    };
                    let narrow = |number: u64| u32::try_from(number).expect("within a value");
                    let what = (narrow(begin - first), narrow(stop - begin), narrow(begin - from));
                    let expected = Expected::Piece(value, piece.offset);
                    self.read_part(part(at, record_bytes(0, piece.bytes), expected, what), buffers);
                }
            }
        }
        self.part_over(job, buffers);
        Ok(())
    }

    fn job_failed(&mut self, job: SlabKey, status: Status) {
        let job = self.reads.jobs.get_mut(job);
        if job.status.is_success() {
            job.status = status;
        }
    }

    /// Reads a part: from its buffer unit, if it is in one, else from media as soon as there is a buffer.
    fn read_part(&mut self, part: Part, buffers: &mut Buffers) {
        assert!(part.count > 0, "a part of nothing is read: {part:?}");
        let payload = self.payload_bytes(&part);
        assert!(usize_of(part.skip + part.count) <= payload, "{part:?} of {payload} bytes");
        let (place, byte) = self.place_of(part.at);
        let (chunk, sector) = self.space.shape.chunk_of(place);
        let unit = PhysicalAddress(place.0 - u64::from(sector % self.sizes.unit));
        if let Some(buffer_unit) = self.buffer_units.find(unit) {
            let begin = (place.0 - unit.0) * u64::from(self.sizes.sector_bytes) + u64::from(byte);
            let begin = usize::try_from(begin).expect("within a unit");
            let payload = begin + usize_of(part.bytes) - self.payload_bytes(&part);
            self.give_part(&part, (self.buffer_units.buffer(buffer_unit), payload), buffers);
            self.stats.retrieves_buffered += 1;
            return;
        }
        self.space.hold(chunk);
        self.reads.jobs.get_mut(part.job).parts += 1;
        self.reads.waiting.push_back(part);
        self.send_reads(buffers);
    }

    /// Gives a part to its job: the payload of its record lies in a buffer from a byte on.
    fn give_part(&mut self, part: &Part, (buffer, payload): (BufId, usize), buffers: &mut Buffers) {
        let (from, count) = (payload + usize_of(part.skip), usize_of(part.count));
        let job = self.reads.jobs.get_mut(part.job);
        if job.gathered.is_empty() {
            assert_eq!(part.to, 0, "a value of one record is read in parts");
            job.into.scatter_from(buffers, (buffer, from), count);
        } else {
            let all = buffers.whole(buffer, 0, buffers.sectors(buffer));
            job.gathered[usize_of(part.to)..][..count].copy_from_slice(&all[from..][..count]);
        }
    }

    /// Bytes of the payload of a part's record.
    fn payload_bytes(&self, part: &Part) -> usize {
        let key = match part.expected {
            Expected::Key => self.reads.jobs.get(part.job).key.len(),
            Expected::Piece(..) => 0,
        };
        usize_of(part.bytes) - RECORD_HEADER_BYTES - key
    }

    /// Sends reads that wait, as far as there are buffers. True if any was.
    pub(super) fn send_reads(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while self.flight.has_room(1)
            && !self.reads.spare.is_empty()
            && let Some(part) = self.reads.waiting.pop_front()
        {
            let buffer = self.reads.spare.pop().expect("it was looked at");
            let read = self.reads.in_flight.insert((part, buffer));
            let read = read.unwrap_or_else(|_| unreachable!("there are as many places as buffers"));
            self.send_read(read, buffers);
            any = true;
        }
        any
    }

    fn send_read(&mut self, read: SlabKey, buffers: &mut Buffers) {
        let (part, buffer) = *self.reads.in_flight.get(read);
        let (place, byte) = self.place_of(part.at);
        let (chunk, sector) = self.space.shape.chunk_of(place);
        let count = (byte + part.bytes).div_ceil(self.sizes.sector_bytes);
        assert!(
            sector % self.sizes.unit + count <= self.sizes.unit,
            "a record of {} bytes leaves its unit",
            part.bytes
        );
        buffers.want(buffer, usize_of(byte)..usize_of(byte + part.bytes));
        self.stats.retrieve_reads += 1;
        let (first, count) = part.tries.sector().map_or((0, count), |failed| (failed, 1));
        let addresses = self.run_at(Append { chunk, sector: sector + first }, count);
        self.flight.send(Purpose::Read { read }, Op::Read, addresses, Some(buffer), first);
    }

    /// A read ended.
    pub(super) fn read_done(&mut self, read: SlabKey, completion: &Completion, buffers: &mut Buffers) {
        let (part, buffer) = *self.reads.in_flight.get(read);
        let (place, byte) = self.place_of(part.at);
        let count = (byte + part.bytes).div_ceil(self.sizes.sector_bytes);
        let Some(status) = self.reads.in_flight.get_mut(read).0.tries.on_end(completion, count) else {
            self.stats.read_again += 1;
            return self.send_read(read, buffers);
        };
        let record = &buffers.whole(buffer, 0, count)[usize_of(byte)..usize_of(byte + part.bytes)];
        let key = &self.reads.jobs.get(part.job).key;
        let found = if status.has_data() { part.expected.find(key, record) } else { None };
        if let Some(found) = found {
            assert!(found.payload.len() >= usize_of(part.skip + part.count), "{part:?} is beyond its record");
            let payload = usize_of(byte) + found.header.bytes() - found.payload.len();
            self.give_part(&part, (buffer, payload), buffers);
        } else if status.has_data() && self.reads.in_flight.get_mut(read).0.tries.again() {
            self.stats.read_again += 1;
            return self.send_read(read, buffers);
        } else {
            self.stats.read_failed += 1;
            let of_media = status.has_data() || status == Status::UNWRITTEN;
            self.job_failed(part.job, if of_media { Status::UNRECOVERED_READ } else { status });
        }
        self.reads.in_flight.free(read);
        self.reads.spare.push(buffer);
        let may_reset = self.space.let_go(self.space.shape.chunk_of(place).0);
        self.part_over(part.job, buffers);
        self.send_reads(buffers);
        // Whoever waits for anything but this read is told by what it waits for; or by nobody, once nothing is in flight.
        let was_full = !self.flight.has_room(2);
        self.work_due |= may_reset || was_full || self.shutdown.is_some() || self.flight.len() == 0;
    }

    /// A part of a retrieve is over: the last one answers it.
    fn part_over(&mut self, key: SlabKey, buffers: &mut Buffers) {
        let job = self.reads.jobs.get_mut(key);
        assert!(job.parts > 0, "a part of a retrieve ended twice");
        job.parts -= 1;
        if job.parts > 0 {
            return;
        }
        let job = self.reads.jobs.remove(key);
        assert!(job.gathered.len() <= usize_of(job.into.bytes()), "more was read than asked for");
        if job.status.is_success() {
            if !job.gathered.is_empty() {
                job.into.scatter(buffers, &job.gathered);
            }
            self.replies.push_back(KvReply::success(job.tag, KvAnswer::Value { bytes: job.bytes }));
        } else {
            self.fail(job.tag, job.status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: RecordKind, key: &[u8], (value, offset): (u64, u32)) -> Vec<u8> {
        let key_bytes = u8::try_from(key.len()).expect("short");
        let header =
            RecordHeader { kind, key_bytes, payload_bytes: 5, sequence: 3, value, offset, part: 0, parts: 1 };
        let mut bytes = vec![0; header.bytes()];
        header.encode(key, b"value", &mut bytes);
        bytes
    }

    #[test]
    fn what_is_read_is_the_value_of_its_key_or_a_piece_of_its_value_and_nothing_else() {
        let (whole, piece) =
            (record(RecordKind::Whole, b"key", (0, 0)), record(RecordKind::Piece, b"", (7, 9)));
        let payload = |expected: Expected, key: &[u8], bytes: &[u8]| {
            expected.find(key, bytes).map(|found| found.payload.to_vec())
        };
        assert_eq!(payload(Expected::Key, b"key", &whole), Some(b"value".to_vec()));
        assert_eq!(payload(Expected::Piece(7, 9), b"key", &piece), Some(b"value".to_vec()));
        assert_eq!(payload(Expected::Key, b"kez", &whole), None, "of another key");
        assert_eq!(payload(Expected::Key, b"key", &record(RecordKind::Lost, b"key", (0, 0))), None);
        assert_eq!(payload(Expected::Key, b"", &piece), None, "a piece has no key");
        assert_eq!(payload(Expected::Piece(0, 0), b"key", &whole), None, "no piece");
        assert_eq!(payload(Expected::Piece(8, 9), b"key", &piece), None, "of another value");
        assert_eq!(payload(Expected::Piece(7, 8), b"key", &piece), None, "another piece");
        for (expected, mut bytes) in [(Expected::Key, whole), (Expected::Piece(7, 9), piece)] {
            *bytes.last_mut().expect("a record") ^= 1;
            assert_eq!(payload(expected, b"key", &bytes), None, "{expected:?} is not as it was written");
        }
    }
}
