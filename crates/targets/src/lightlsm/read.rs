//! Reads: of any bytes, from memory or from the sectors that hold them, whatever the write unit is.
//!
//! Whole sectors that have whole sectors of the request's own buffer to go to are read into it; all else goes to a buffer of a
//! unit's length first, and is copied. A read keeps what it reads, deleted or not, until it is over. Every sector from media is
//! judged by its tag: the right table, the right place in it, content that matches its checksum; one that failed is asked for
//! again, alone. Deliberately not here: how often (`read_again`).

use super::append::tag_of;
use super::change::Number;
use super::flight::Purpose;
use super::options::ReadUnit;
use super::state::LightLsm;
use crate::read_again::Failed;
use ocssd_base::{Slab, SlabKey, usize_of};
use ocssd_ftl::{SectorTag, UnitIndex};
use ocssd_lightnvm::interface::Content;
use ocssd_lightnvm::{Addresses, BufId, Buffers, Completion, Op, Ppa, Status};
use std::collections::VecDeque;
use std::ops::Range;

/// Reads of media at once (chosen: four for each unit of a drive with 32).
pub(super) const PARTS_MAX: u32 = 128;

/// A host's read.
#[derive(Clone, Debug)]
struct Job {
    key: SlabKey,
    number: Number,
    into: Content,
    begin: u64,
    end: u64,
    /// The first byte that was not asked for.
    next: u64,
    /// The bytes read, if their places are not in a row; else none.
    gathered: Vec<u8>,
    /// Parts in flight.
    parts: u32,
    status: Status,
}

impl Job {
    /// Where sectors of the media that hold bytes `from..to`, and no other, can be read to in the request's own buffer.
    fn own_place(
        &self,
        (from, to): (u64, u64),
        sector_bytes: u64,
        buffers: &Buffers,
    ) -> Option<(BufId, u32)> {
        let (buffer, begin) = self.into.row(buffers)?;
        assert!(self.begin <= from && to <= self.end, "bytes {from}..{to} were not asked for");
        let place = u64::try_from(begin).expect("a buffer is short") + (from - self.begin);
        let is_whole = place.is_multiple_of(sector_bytes) && (to - from).is_multiple_of(sector_bytes);
        // Where a host wants some bytes only, reads bring no tags.
        (is_whole && buffers.wanted(buffer).is_none())
            .then(|| (buffer, u32::try_from(place / sector_bytes).expect("a buffer is short")))
    }

    /// Puts bytes `from..to` of a table, which lie from a byte of a buffer on, to their place.
    fn place(&mut self, (from, to): (u64, u64), (buffer, first): (BufId, u64), buffers: &mut Buffers) {
        assert!(self.begin <= from && to <= self.end, "bytes {from}..{to} were not asked for");
        let (at, count, first) = (index(from - self.begin), index(to - from), index(first));
        match self.into.row(buffers) {
            Some((to, begin)) => buffers.copy_whole((buffer, first), (to, begin + at), count),
            None => {
                let all = buffers.whole(buffer, 0, buffers.sectors(buffer));
                self.gathered[at..at + count].copy_from_slice(&all[first..first + count]);
            }
        }
    }
}

/// Sectors of a unit.
#[derive(Clone, Copy, Debug)]
struct Part {
    job: SlabKey,
    buffer: BufId,
    /// Where they go in it.
    buffer_first: u32,
    /// It is the request's own: what was read is in its place.
    is_own: bool,
    /// Where it is read.
    at: UnitIndex,
    unit: u64,
    first: Ppa,
    /// The first sector in the unit, and how many.
    sector: u32,
    count: u32,
    /// The bytes wanted.
    from: u64,
    to: u64,
    failed: Option<Failed>,
}

/// The reads of an instance.
#[derive(Clone, Debug)]
pub(super) struct Reads {
    jobs: Slab<Job>,
    /// Those of which not all was asked for, in order.
    queue: VecDeque<SlabKey>,
    parts: Slab<Part>,
    spare: Vec<BufId>,
}

impl Reads {
    /// None; `most` at once from hosts. Buffers of a unit are taken now.
    pub fn new(most: u32, unit: u32, buffers: &mut Buffers) -> Self {
        let spare = (0..PARTS_MAX).map(|_| buffers.take_whole(unit)).collect();
        Self { jobs: Slab::new(most), queue: VecDeque::new(), parts: Slab::new(PARTS_MAX), spare }
    }

    /// Takes a read of `bytes` bytes from `begin` on.
    pub fn begin(
        &mut self,
        key: SlabKey,
        number: Number,
        (begin, bytes): (u64, u32),
        into: Content,
        buffers: &Buffers,
    ) {
        let end = begin + u64::from(bytes);
        let gathered = if into.row(buffers).is_some() { Vec::new() } else { vec![0; usize_of(bytes)] };
        let job =
            Job { key, number, into, begin, end, next: begin, gathered, parts: 0, status: Status::SUCCESS };
        let job = self.jobs.insert(job);
        self.queue.push_back(job.unwrap_or_else(|_| unreachable!("there are as many places as requests")));
    }
}

impl LightLsm {
    /// Goes on with reads, as far as they can: each that is over, and each part that ends, says itself what is due then.
    pub(super) fn serve_reads(&mut self, buffers: &mut Buffers) {
        for _ in 0..self.reads.queue.len() {
            let key = self.reads.queue.pop_front().expect("it was counted");
            let job = self.reads.jobs.get(key);
            let is_there = self.shelf.get(job.number).taken >= job.end;
            if !is_there && let Some(status) = self.refuses_changes() {
                let job = self.reads.jobs.get_mut(key);
                (job.next, job.status) = (job.end, status);
            }
            let is_asked =
                is_there && self.ask_for(key, buffers) || self.reads.jobs.get(key).status != Status::SUCCESS;
            let job = self.reads.jobs.get(key);
            if !is_asked {
                self.reads.queue.push_back(key);
            } else if job.parts == 0 {
                self.end_read(key, buffers);
            }
        }
    }

    /// Asks for the rest of a read. False if there is no room for all.
    fn ask_for(&mut self, key: SlabKey, buffers: &mut Buffers) -> bool {
        let unit_bytes = self.sizes.unit_bytes;
        loop {
            let job = self.reads.jobs.get_mut(key);
            if job.next == job.end {
                return true;
            }
            let (from, unit) = (job.next, job.next / unit_bytes);
            let to = ((unit + 1) * unit_bytes).min(job.end);
            if let Some(&buffer) = self.shelf.get(job.number).memory.get(&unit) {
                job.place((from, to), (buffer, from - unit * unit_bytes), buffers);
                job.next = to;
                self.stats.read_cached_bytes += to - from;
            } else if !self.ask_media(key, unit, (from, to), buffers) {
                return false;
            }
        }
    }

    fn ask_media(&mut self, job: SlabKey, unit: u64, (from, to): (u64, u64), buffers: &Buffers) -> bool {
        if self.reads.parts.is_full() || !self.flight.has_room(1) {
            return false;
        }
        let begin = unit * self.sizes.unit_bytes;
        assert!(begin <= from && from < to, "bytes {from}..{to} are not of unit {unit}");
        let sector_bytes = u64::from(self.geometry.sector_bytes);
        let (sector, behind) = match self.options.read_unit {
            ReadUnit::Sector => ((from - begin) / sector_bytes, (to - begin).div_ceil(sector_bytes)),
            ReadUnit::WriteUnit => (0, u64::from(self.sizes.unit)),
        };
        let narrow = |number: u64| u32::try_from(number).expect("a unit is small");
        let (sector, count) = (narrow(sector), narrow(behind - sector));
        assert!(
            count > 0 && sector + count <= self.sizes.unit,
            "sectors {sector} + {count} leave their unit"
        );
        let number = self.reads.jobs.get(job).number;
        let (chunk, start) =
            self.shelf.get(number).layout.find(unit).expect("what was taken is in memory or on media");
        let first = Ppa::new(self.space.shape.chunk_id(chunk), start + sector);
        let is_exact = bytes_of((sector, count), sector_bytes) == (from - begin..to - begin);
        // A block request uses a buffer from its start.
        let is_sent_anywhere = self.options.medium.has_tags();
        let own = self.reads.jobs.get(job).own_place((from, to), sector_bytes, buffers);
        let own = own.filter(|&(_, first)| is_exact && (first == 0 || is_sent_anywhere));
        let (buffer, buffer_first) =
            own.unwrap_or_else(|| (self.reads.spare.pop().expect("as many buffers as places"), 0));
        assert!(buffer_first + count <= buffers.sectors(buffer), "a part is read beyond its buffer");
        let at = self.space.shape.split_chunk(chunk).1;
        self.meetings.read(at);
        let is_own = own.is_some();
        let part = Part {
            job,
            buffer,
            buffer_first,
            is_own,
            at,
            unit,
            first,
            sector,
            count,
            from,
            to,
            failed: None,
        };
        let part = self.reads.parts.insert(part).unwrap_or_else(|_| unreachable!("it was looked at"));
        let addresses = Addresses::Run { first, count };
        self.flight.send(Purpose::Read { part }, Op::Read, addresses, Some(buffer), buffer_first);
        self.stats.read_sectors += u64::from(count);
        let job = self.reads.jobs.get_mut(job);
        (job.next, job.parts) = (to, job.parts + 1);
        true
    }

    /// A command of a part ended.
    pub(super) fn part_done(&mut self, key: SlabKey, completion: &Completion, buffers: &mut Buffers) {
        let part = *self.reads.parts.get(key);
        if !self.options.medium.has_tags() {
            // A block target has asked for its sectors again.
            assert!(part.failed.is_none(), "a read of an extent is asked for once");
            return self.part_over(key, completion.status, buffers);
        }
        let mut failed = part.failed;
        if let Some(failed) = failed.as_mut() {
            let sector = failed.next().expect("a sector was asked for");
            failed.on_try(self.judge(&part, sector, completion.status, buffers));
        } else {
            let (mut bad, mut how) = (0, Status::SUCCESS);
            for sector in 0..part.count {
                if let Err(status) = self.judge(&part, sector, completion.status_of(sector), buffers) {
                    (bad, how) = (bad | 1 << sector, status);
                }
            }
            self.stats.read_again += u64::from(u64::count_ones(bad));
            failed = (bad != 0).then(|| Failed::new(bad, how));
        }
        if let Some(sector) = failed.and_then(|failed| failed.next()) {
            self.reads.parts.get_mut(key).failed = failed;
            let first = Ppa::new(part.first.chunk, part.first.sector + sector);
            let addresses = Addresses::Run { first, count: 1 };
            return self.flight.send(
                Purpose::Read { part: key },
                Op::Read,
                addresses,
                Some(part.buffer),
                part.buffer_first + sector,
            );
        }
        self.part_over(key, failed.map_or(Status::SUCCESS, |failed| failed.given_up().1), buffers);
    }

    /// Judges a sector of a part.
    fn judge(&self, part: &Part, sector: u32, status: Status, buffers: &Buffers) -> Result<(), Status> {
        if !status.has_data() {
            return Err(status);
        }
        if !self.options.medium.has_tags() {
            return Ok(());
        }
        let number = self.reads.jobs.get(part.job).number;
        let at = part.buffer_first + sector;
        let content = buffers.data(part.buffer, at, 1);
        let found = SectorTag::decode(buffers.oob(part.buffer, at, 1), content);
        let expected = tag_of(number, part.unit, part.sector + sector, self.sizes.unit);
        if found == Ok(expected) { Ok(()) } else { Err(Status::UNRECOVERED_READ) }
    }

    fn part_over(&mut self, key: SlabKey, status: Status, buffers: &mut Buffers) {
        let Part { job: job_key, buffer, is_own, at, unit, sector, count, from, to, .. } =
            self.reads.parts.remove(key);
        self.meetings.was_read(at);
        let within = bytes_of((sector, count), u64::from(self.geometry.sector_bytes));
        let begin = unit * self.sizes.unit_bytes + within.start;
        assert!(begin <= from && count > 0, "a part begins behind what was wanted of it");
        let job = self.reads.jobs.get_mut(job_key);
        if !is_own {
            job.place((from, to), (buffer, from - begin), buffers);
            self.reads.spare.push(buffer);
        }
        if !status.has_data() && job.status.is_success() {
            job.status = status;
        }
        assert!(job.parts > 0, "a part of a read ended twice");
        job.parts -= 1;
        if status.is_drive_failure() {
            self.stop(status);
        }
        let job = self.reads.jobs.get(job_key);
        let is_asked = job.next == job.end || !job.status.is_success();
        if job.parts == 0 && is_asked && !self.reads.queue.contains(&job_key) {
            self.end_read(job_key, buffers);
        }
        self.reads_due |= !self.reads.queue.is_empty();
    }

    fn end_read(&mut self, key: SlabKey, buffers: &mut Buffers) {
        let Job { key, number, into, begin, end, gathered, status, .. } = self.reads.jobs.remove(key);
        if status.is_success() {
            if into.row(buffers).is_none() {
                let is_all = gathered.len() as u64 == end - begin;
                assert!(is_all, "a read brings other bytes than it was taken for");
                into.scatter(buffers, &gathered);
            }
            self.stats.read_bytes += end - begin;
        } else {
            self.stats.read_failed += 1;
        }
        self.requests.end(key, status);
        let object = self.shelf.get_mut(number);
        assert!(object.holds > 0, "number {} is held by nobody", number.0);
        object.holds -= 1;
        self.work_due |= object.is_gone || self.shutdown.is_some();
    }
}

/// The bytes of so many sectors from one of a unit on, counted from the begin of the unit.
fn bytes_of((sector, count): (u32, u32), sector_bytes: u64) -> Range<u64> {
    let begin_of = |sector: u32| u64::from(sector) * sector_bytes;
    begin_of(sector)..begin_of(sector + count)
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a read is short")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_of_a_unit_have_their_bytes_one_behind_the_other() {
        assert_eq!(bytes_of((0, 1), 4_096), 0..4_096);
        assert_eq!(bytes_of((3, 5), 4_096), 12_288..32_768);
        assert_eq!(bytes_of((2, 0), 512), 1_024..1_024);
    }
}
