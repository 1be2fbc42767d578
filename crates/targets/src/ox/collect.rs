//! Garbage collection: the chunk with the fewest valid sectors is read, copied within its group, and reset once the copies
//! are committed.
//!
//! A group in which garbage is collected is marked, and users' new writes avoid it (CIDR 2020 section 3.2): with one marked
//! group of N, 1 - 1/N of all I/O meets none of it. A copy is a transaction of its own, true only where the block still is
//! where it was copied from. A buffer unit of copies goes out full; in part only if the chunks it empties give more than is
//! filled. Deliberately not here: which chunk is chosen (`ocssd_ftl::VictimPolicy`), how reads are tried again (`retry`).

use super::flight::Purpose;
use super::options::Options;
use super::retry::Whose;
use super::space::Live;
use super::state::{Ending, Ox};
use super::store::Store;
use super::write_buffer::StreamIndex;
use crate::in_vain::InVain;
use crate::read_again::Failed;
use ocssd_base::{Prng, Slab, SlabKey, usize_of};
use ocssd_ftl::{
    Append, Candidate, ChunkIndex, ChunkUse, InstanceGeometry, LineId, PhysicalAddress, VictimPolicy,
};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op};

/// Reads of victims in flight for each unit of a group that is marked (chosen: two keep a unit busy).
const READS_PER_UNIT: u32 = 2;
/// Reads of victims in flight at least and at most (chosen: four small groups may be marked; and a buffer each, of a write unit).
const READS_RANGE: (u32, u32) = (8, 64);
/// Victims of a group that are being read at a time at least (chosen: the next is read while copies of the first are written). In
/// a group of more units as many, for a chunk lies on one unit: with two at a time eight units give what two can read.
const VICTIMS_READ_MIN: u32 = 2;

/// Copies of this part of the victims that are read at a time share a page of the log (chosen: of eight, four; a page for each
/// took four fifths of a sector of log for each that users wrote in 64 KiB).
const VICTIMS_PER_PAGE_PART: usize = 2;

/// Times that copies are given up with no data programmed and no chunk reset in between (chosen: victims that are drawn are others
/// the next time).
const GIVEN_UP_MAX: u32 = 8;

/// A chunk that is being emptied.
#[derive(Clone, Copy, Debug)]
struct Victim {
    chunk: ChunkIndex,
    group: u32,
    /// The next place to look at.
    next: PhysicalAddress,
    /// Nothing behind `next` is valid.
    is_read: bool,
    reads: u32,
}

/// Copies of a chunk: they outlive the victim, if what is copied is written meanwhile.
#[derive(Clone, Copy, Debug, Default)]
struct Copies {
    /// The group they go to: the chunk's own, but where that has no room.
    to: u32,
    /// Of these, how many were not programmed.
    on_their_way: u32,
}

/// A read of a victim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub first: PhysicalAddress,
    pub count: u32,
    pub buffer: BufId,
}

/// What garbage collection is doing.
#[derive(Clone, Debug)]
pub(crate) struct GarbageCollection {
    victims: Vec<Victim>,
    pub reads: Slab<Read>,
    pub spare: Vec<BufId>,
    /// Nothing is begun until the victims there are have ended: the next is better chosen in another group.
    is_leaving: bool,
    /// Victims that are being read at most.
    victims_read_max: usize,
    /// By chunk, of victims.
    copies: Vec<Copies>,
    /// By group: what its victims give back beyond what was filled, in the measure of `Live`.
    credit: Vec<u64>,
    given_up: InVain,
    prng: Prng,
}

impl GarbageCollection {
    /// Nothing to do; buffers for reads of `unit` sectors are taken now.
    pub fn new(
        unit: u32,
        shape: &InstanceGeometry,
        groups: u32,
        options: &Options,
        take: &mut dyn FnMut(u32) -> BufId,
    ) -> Self {
        assert!(groups > 0 && unit > 0, "{groups} groups are read by {unit} sectors");
        let of_group = shape.units().div_ceil(groups);
        let marked = options.gc_groups_max.min(groups);
        let reads = (READS_PER_UNIT * of_group * marked).clamp(READS_RANGE.0, READS_RANGE.1);
        Self {
            victims: Vec::new(),
            is_leaving: false,
            victims_read_max: usize_of(of_group.max(VICTIMS_READ_MIN)),
            reads: Slab::new(reads),
            spare: (0..reads).map(|_| take(unit)).collect(),
            copies: vec![Copies::default(); usize_of(shape.chunks())],
            credit: vec![0; usize_of(groups)],
            given_up: InVain::new(GIVEN_UP_MAX),
            prng: Prng::new(options.seed).split("victims"),
        }
    }

    /// The group that copies of a victim go to.
    fn to(&self, victim: &Victim) -> u32 {
        self.copies[victim.chunk.index()].to
    }

    /// True of a chunk that is being emptied.
    pub fn has(&self, chunk: ChunkIndex) -> bool {
        self.victims.iter().any(|victim| victim.chunk == chunk)
    }
}

impl<S: Store> Ox<S> {
    /// Goes on with garbage collection, if free chunks are short. True if anything was done.
    pub(crate) fn collect(&mut self) -> bool {
        let mut any = self.end_victims();
        let is_over = self.ending != Ending::No && S::is_idle(self);
        if is_over || self.is_mounting {
            return any;
        }
        let is_short = self.is_short_of_chunks();
        if is_short {
            any |= self.choose_victims();
        }
        any |= self.read_victims();
        if is_short {
            any |= self.close_copies();
        }
        any
    }

    /// True if all that is left to do for victims is to make their copies true: without it more and more chunks would be copied,
    /// and none be given back.
    pub(super) fn collection_waits_for_log(&self) -> bool {
        let is_copied = |victim: &Victim| victim.is_read && victim.reads == 0;
        let victims = &self.gc.victims;
        !victims.is_empty()
            && victims.iter().all(is_copied)
            && !self.are_copies_programmed()
            && self.logged.iter().any(|logged| !logged.is_applied())
    }

    /// True if garbage is collected: there are few spare chunks.
    pub(crate) fn is_short_of_chunks(&self) -> bool {
        self.space.spare() < self.gc_start()
    }

    /// Spare chunks at which garbage collection begins: users may open one on each unit before they wait.
    fn gc_start(&self) -> u32 {
        self.space.shape.units() + 1
    }

    /// Forgets victims that are empty. Groups without one are not marked any more.
    fn end_victims(&mut self) -> bool {
        let before = self.gc.victims.len();
        let space = &self.space;
        self.gc.victims.retain(|victim| {
            let is_empty =
                space.live_count(victim.chunk) == 0 || space.pool.get(victim.chunk) != ChunkUse::Closed;
            // What cannot be read is left where it is.
            let is_left = victim.is_read && space.is_stuck(victim.chunk);
            victim.reads > 0 || !is_empty && !is_left
        });
        let ended = before - self.gc.victims.len();
        self.stats.victims += u64::try_from(ended).expect("an index");
        if ended > 0 {
            for group in 0..self.space.pool.groups() {
                let gc = &self.gc;
                let is_of = |victim: &Victim| victim.group == group || gc.to(victim) == group;
                let has_one = gc.victims.iter().any(is_of);
                if !has_one {
                    self.space.mark(group, false);
                }
            }
        }
        ended > 0
    }

    fn choose_victims(&mut self) -> bool {
        let mut any = false;
        loop {
            let reading = self.gc.victims.iter().filter(|victim| !victim.is_read).count();
            // What is being emptied or reset will be free: more at a time would keep for itself what users wait for.
            let soon = self.gc.victims.len() + self.space.dead_count();
            let is_enough = soon >= usize_of(self.gc_start());
            let is_idle = self.flight.len() == 0 && !self.collection_waits_for_log();
            if is_enough && reading == 0 && self.space.dead_count() == 0 && is_idle {
                return any | self.choose_victim(|_| true);
            }
            if is_enough || reading >= self.gc.victims_read_max || self.is_leaving() {
                return any;
            }
            if !self.choose_victim(|_| true) {
                return any | (is_idle && self.gc.victims.is_empty() && self.choose_for_another_group());
            }
            any = true;
        }
    }

    /// Chooses a chunk to be emptied among those of groups that `wanted` names.
    fn choose_victim(&mut self, wanted: impl Fn(u32) -> bool) -> bool {
        let groups_max = self.options.gc_groups_max;
        let groups = self.space.pool.groups();
        let allowed: Vec<u32> =
            (0..groups).filter(|&group| wanted(group) && self.space.may_collect(group, groups_max)).collect();
        let candidates = match self.options.victim {
            VictimPolicy::Greedy => self.fewest_with_room(&allowed),
            VictimPolicy::CostBenefit | VictimPolicy::DChoices { .. } => self.candidates(&allowed),
        };
        let Some(line) = self.options.victim.pick(&mut self.gc.prng, &candidates) else {
            return false;
        };
        let chunk = ChunkIndex(line.0);
        self.begin_victim(chunk, self.space.pool.group_of(chunk));
        true
    }

    /// Chooses a chunk whose copies go to the group that has most room: no group has both garbage and room for what is copied
    /// from it. That happens where others than garbage collection took a group's last chunk.
    fn choose_for_another_group(&mut self) -> bool {
        let groups: Vec<u32> = (0..self.space.pool.groups()).collect();
        let to = groups.iter().copied().max_by_key(|&group| self.room(group)).expect("there is a group");
        let mut candidates = self.fewest(&groups);
        candidates.retain(|candidate| self.has_room(to, candidate.valid));
        let picked = VictimPolicy::Greedy.pick(&mut self.gc.prng, &candidates);
        if let Some(line) = picked {
            self.begin_victim(ChunkIndex(line.0), to);
        }
        picked.is_some()
    }

    /// True if the marked groups are being left. Looked at anew when none is marked, and when nothing is going on.
    fn is_leaving(&mut self) -> bool {
        let is_waiting = !self.gc.victims.is_empty() && self.flight.len() > 0;
        self.gc.is_leaving = is_waiting && (self.gc.is_leaving || self.is_better_elsewhere());
        self.gc.is_leaving
    }

    /// True if a group that may not be marked now has a chunk that gives clearly more than any of the marked ones: by an eighth
    /// of a chunk, so that groups do not take turns for nothing (chosen). No more is begun in the marked ones then, they end,
    /// and the next is chosen anywhere: a group that stays marked is emptied of garbage, for users write elsewhere.
    fn is_better_elsewhere(&mut self) -> bool {
        let groups_max = self.options.gc_groups_max;
        let is_allowed = |group: &u32| self.space.may_collect(*group, groups_max);
        let (allowed, beside): (Vec<u32>, Vec<u32>) = (0..self.space.pool.groups()).partition(is_allowed);
        if beside.is_empty() {
            return false;
        }
        let least = |of: Vec<Candidate>| of.into_iter().map(|candidate| candidate.valid).min();
        let inside = least(self.fewest_with_room(&allowed)).unwrap_or(u64::MAX);
        let beside = least(self.fewest_with_room(&beside));
        beside.is_some_and(|valid| valid.saturating_add(self.space.live.per_chunk() / 8) < inside)
    }

    /// Sectors that copies may still be written to in a group.
    fn room(&self, group: u32) -> u64 {
        let free = self.space.pool.free_of_group(group).min(self.space.left_to_gc());
        let open = self.data_points[StreamIndex::of_group(group).index()].room();
        open + u64::from(free) * u64::from(self.sizes.chunk)
    }

    /// True if a group has room for copies of a chunk of which so much is needed, beside those of the victims there are: one that
    /// is begun without would wait for room that only its own end gives.
    fn has_room(&self, group: u32, needed: u64) -> bool {
        let victims = self.gc.victims.iter().filter(|victim| self.gc.to(victim) == group);
        let begun: u64 = victims.map(|victim| self.space.live_count(victim.chunk)).sum();
        let sectors = (begun + needed).div_ceil(self.space.live.per_sector());
        sectors.next_multiple_of(u64::from(self.sizes.unit)) <= self.room(group)
    }

    /// True if the chunk's own group has room for copies of it.
    fn fits(&self, candidate: &Candidate) -> bool {
        self.has_room(self.space.pool.group_of(ChunkIndex(candidate.line.0)), candidate.valid)
    }

    fn candidate(&self, chunk: ChunkIndex) -> Candidate {
        Candidate {
            line: LineId(chunk.0),
            valid: self.space.live_count(chunk),
            sectors: self.space.live.per_chunk(),
            age: self.applied.0.saturating_sub(self.space.live.last_change(chunk)),
        }
    }

    /// Closed chunks of data that may be emptied, in these groups: some, and of each group those of which the least is needed
    /// among them.
    fn fewest(&mut self, groups: &[u32]) -> Vec<Candidate> {
        let mut chunks = Vec::new();
        let Self { space, gc, .. } = self;
        for &group in groups {
            space.fewest(group, |chunk| !gc.has(chunk), &mut chunks);
        }
        chunks.into_iter().map(|chunk| self.candidate(chunk)).collect()
    }

    /// Of these, those whose groups have room for their copies.
    fn fewest_with_room(&mut self, groups: &[u32]) -> Vec<Candidate> {
        let mut candidates = self.fewest(groups);
        candidates.retain(|candidate| self.fits(candidate));
        candidates
    }

    /// All closed chunks of data that may be emptied, in these groups, with room for their copies. Cost: a look at every chunk.
    fn candidates(&self, groups: &[u32]) -> Vec<Candidate> {
        let (space, gc) = (&self.space, &self.gc);
        let may = |chunk: ChunkIndex| {
            groups.contains(&space.pool.group_of(chunk))
                && space.role(chunk) == super::space::Role::Data
                && space.pins(chunk) == 0
                && !space.is_stuck(chunk)
                && !gc.has(chunk)
        };
        let closed = space.pool.iter().filter(|&(chunk, of)| of == ChunkUse::Closed && may(chunk));
        closed.map(|(chunk, _)| self.candidate(chunk)).filter(|candidate| self.fits(candidate)).collect()
    }

    /// A chunk is emptied from now on, and its group marked, and that of its copies.
    fn begin_victim(&mut self, chunk: ChunkIndex, to: u32) {
        let (chunk_live, valid) = (self.space.live.per_chunk(), self.space.live_count(chunk));
        let group = self.space.pool.group_of(chunk);
        assert!(valid < chunk_live, "chunk {} gives nothing", chunk.0);
        assert!(self.has_room(to, valid), "copies of chunk {} have no place in group {to}", chunk.0);
        self.gc.credit[usize_of(to)] += chunk_live - valid;
        self.space.mark(group, true);
        self.space.mark(to, true);
        let next = self.space.shape.first_place(chunk);
        self.gc.copies[chunk.index()].to = to;
        self.gc.victims.push(Victim { chunk, group, next, is_read: false, reads: 0 });
    }

    /// Reads the next valid sectors of victims, as far as there are buffers and buffer units.
    fn read_victims(&mut self) -> bool {
        let mut any = false;
        for index in 0..self.gc.victims.len() {
            while self.flight.has_room(1) && self.read_victim(index) {
                any = true;
            }
        }
        any
    }

    fn read_victim(&mut self, index: usize) -> bool {
        let Victim { chunk, next, is_read, .. } = self.gc.victims[index];
        // Each read fills what is left of a buffer unit and begins as many others at most.
        let needed = S::BUFFER_UNITS_PER_READ * (self.gc.reads.len() + 1);
        let has_buffer_units = self.buffer.free(StreamIndex::of_group(0)) >= needed;
        if is_read || self.gc.spare.is_empty() || !has_buffer_units || self.refuses_changes().is_some() {
            return false;
        }
        let Some((first, count)) = S::next_run(self, chunk, next, self.sizes.unit) else {
            self.gc.victims[index].is_read = true;
            return true;
        };
        let end = PhysicalAddress(first.0 + u64::from(count));
        let chunk_end = self.space.shape.first_place(chunk).0 + u64::from(self.sizes.chunk);
        assert!(count > 0 && end.0 <= chunk_end, "a victim is read beyond its end");
        let victim = &mut self.gc.victims[index];
        (victim.next, victim.is_read) = (end, end.0 == chunk_end);
        victim.reads += 1;
        self.space.hold(chunk);
        self.stats.gc_read += u64::from(count);
        let buffer = self.gc.spare.pop().expect("it was looked at");
        let read = self.gc.reads.insert(Read { first, count, buffer });
        let read = read.unwrap_or_else(|_| unreachable!("there are as many places as buffers"));
        let sector = self.space.shape.chunk_of(first).1;
        let addresses = self.run_at(Append { chunk, sector }, count);
        self.flight.send(Purpose::Collect { read }, Op::Read, addresses, Some(buffer), 0);
        true
    }

    /// Sectors of a victim were read.
    pub(crate) fn collected(&mut self, read: SlabKey, completion: &Completion, buffers: &mut Buffers) {
        let Read { first, count, buffer } = *self.gc.reads.get(read);
        let mut bad = 0;
        for offset in 0..count {
            let has_data = completion.status_of(offset).has_data();
            let is_sound = has_data && S::is_sound((buffer, offset), buffers);
            bad |= u64::from(!is_sound) << offset;
        }
        if completion.status.is_drive_failure() {
            self.stop(completion.status);
        }
        if bad == 0 || self.refuses_changes().is_some() {
            return self.copied(read, if self.refuses_changes().is_some() { bad } else { 0 }, buffers);
        }
        let status = if completion.status.has_data() {
            ocssd_lightnvm::Status::UNRECOVERED_READ
        } else {
            completion.status
        };
        assert!(first.0 < self.space.shape.places(), "a read beyond the instance");
        self.retry(Whose::Victim { read }, Failed::new(bad, status), buffers);
    }

    /// What was read of a victim, `lost` sectors excepted, goes to buffer units.
    pub(crate) fn copied(&mut self, read: SlabKey, lost: u64, buffers: &mut Buffers) {
        let Read { first, count, buffer } = self.gc.reads.remove(read);
        assert!(count == 64 || lost >> count == 0, "sectors beyond a read were lost");
        let (chunk, _) = self.space.shape.chunk_of(first);
        if self.refuses_changes().is_none() {
            S::copy(self, first, count, buffer, lost, buffers);
        }
        self.gc.spare.push(buffer);
        self.space.let_go(chunk);
        let victim = self.gc.victims.iter_mut().find(|victim| victim.chunk == chunk);
        let victim = victim.expect("a chunk that is read is a victim");
        assert!(victim.reads > 0, "a read of chunk {} ended twice", chunk.0);
        victim.reads -= 1;
        self.work_due = true;
    }

    /// Buffer units of copies that nothing is about to fill go out as they are, where that pays.
    fn close_copies(&mut self) -> bool {
        let mut any = false;
        for group in 0..self.space.pool.groups() {
            let stream = StreamIndex::of_group(group);
            let filled = self.buffer.partial(stream);
            let of_group = |victim: &&Victim| self.gc.to(victim) == group;
            let is_read =
                self.gc.victims.iter().filter(of_group).all(|victim| victim.is_read && victim.reads == 0);
            if filled == 0 || !is_read {
                continue;
            }
            let fill = self.space.live.of_sectors(self.sizes.unit - filled);
            let credit = &mut self.gc.credit[usize_of(group)];
            // What was gained since the last fill must pay for this one, or chunks would be moved for nothing.
            if *credit > fill {
                *credit = 0;
                self.buffer.close(stream);
                any = true;
            } else {
                any |= self.choose_victim(|other| other == group);
            }
        }
        any
    }

    /// The stream that copies of a victim go to.
    pub(crate) fn copies_of(&self, chunk: ChunkIndex) -> StreamIndex {
        StreamIndex::of_group(self.gc.copies[chunk.index()].to)
    }

    /// Something of a victim goes to a buffer unit: the chunk is held until the copy is true, or given up.
    pub(crate) fn copy_begun(&mut self, chunk: ChunkIndex) {
        self.space.hold(chunk);
        self.gc.copies[chunk.index()].on_their_way += 1;
    }

    /// A copy of something in a chunk was programmed, or was given up.
    pub(crate) fn copy_ended(&mut self, chunk: ChunkIndex) {
        let copies = &mut self.gc.copies[chunk.index()];
        assert!(copies.on_their_way > 0, "a copy from chunk {} ended twice", chunk.0);
        copies.on_their_way -= 1;
    }

    /// True while copies are on their way to media.
    fn are_copies_programmed(&self) -> bool {
        let copies = &self.data_points[1..=usize_of(self.space.pool.groups())];
        copies.iter().any(|point| point.in_flight() > 0)
    }

    /// True if all that some victims hold lies elsewhere, and only the log must still say so: enough to share its page, or all
    /// there are, or the others do not go on, as they may wait for the room that these give.
    pub(super) fn are_victims_copied(&self) -> bool {
        let is_copied = |victim: &&Victim| {
            let on_their_way = self.gc.copies[victim.chunk.index()].on_their_way;
            victim.is_read && victim.reads == 0 && on_their_way == 0
        };
        let victims = &self.gc.victims;
        let copied = victims.iter().filter(is_copied).count();
        assert!(copied <= victims.len(), "{copied} of {} victims are copied", victims.len());
        let is_enough = copied == victims.len() || copied >= self.gc.victims_read_max / VICTIMS_PER_PAGE_PART;
        let goes_on = victims.iter().any(|victim| victim.reads > 0) || self.are_copies_programmed();
        copied > 0 && (is_enough || !goes_on)
    }

    /// Gives up copies that nothing fills, and those whose group lost its room to others: what they were made of is still where it
    /// was. True if there was any, and not too often with nothing done in between.
    pub(crate) fn drop_copies(&mut self) -> bool {
        let mut streams = (0..self.space.pool.groups()).map(StreamIndex::of_group);
        let is_any = streams.any(|stream| self.buffer.partial(stream) > 0 || self.buffer.ready(stream) > 0);
        let done = self.stats.resets + self.stats.data_written + self.stats.gc_written;
        if !is_any || !self.gc.given_up.once_more(done) {
            return false;
        }
        let mut any = false;
        for group in 0..self.space.pool.groups() {
            let dropped = self.buffer.drop_waiting_of(StreamIndex::of_group(group));
            any |= !dropped.is_empty();
            S::dropped(self, &dropped);
        }
        let is_idle = self.gc.reads.is_empty();
        if any && is_idle {
            self.gc.victims.clear();
            (0..self.space.pool.groups()).for_each(|group| self.space.mark(group, false));
        }
        any
    }
}
