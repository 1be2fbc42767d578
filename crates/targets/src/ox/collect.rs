//! Garbage collection: the chunk with the fewest valid sectors is read, copied within its group, and reset once the copies
//! are committed.
//!
//! A group in which garbage is collected is marked, and users' new writes avoid it (CIDR 2020 section 3.2): with one marked
//! group of N, 1 - 1/N of all I/O meets none of it. A copy is a transaction of its own, true only where the block still is
//! where it was copied from. A frame of copies goes out full; in part only if the chunks it empties give more than is
//! filled. Deliberately not here: which chunk is chosen (`ocssd_ftl::VictimPolicy`), how reads are tried again (`retry`).

use super::flight::Purpose;
use super::retry::Whose;
use super::space::Live;
use super::state::{Ending, Ox};
use super::store::Store;
use super::write_buffer::StreamIndex;
use crate::read_again::Failed;
use ocssd_base::{Prng, Slab, SlabKey, usize_of};
use ocssd_ftl::{Append, Candidate, ChunkIndex, ChunkUse, LineId, Place};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op};

/// Reads of victims in flight (chosen: two keep a unit busy, and four groups may be marked).
pub(crate) const READS_MAX: u32 = 8;
/// Victims of a group that are being read at a time (chosen: the next is read while copies of the first are written).
const VICTIMS_READ_MAX: usize = 2;

/// A chunk that is being emptied.
#[derive(Clone, Copy, Debug)]
struct Victim {
    chunk: ChunkIndex,
    group: u32,
    /// The next place to look at.
    next: Place,
    /// Nothing behind `next` is valid.
    is_read: bool,
    reads: u32,
}

/// A read of a victim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub first: Place,
    pub count: u32,
    pub buffer: BufId,
}

/// What garbage collection is doing.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    victims: Vec<Victim>,
    pub reads: Slab<Read>,
    pub spare: Vec<BufId>,
    /// Nothing is begun until the victims there are have ended: the next is better chosen in another group.
    is_leaving: bool,
    /// By group: what its victims give back beyond what was filled, in the measure of `Live`.
    credit: Vec<u64>,
    prng: Prng,
}

impl Collector {
    /// Nothing to do; buffers for reads of `unit` sectors are taken now.
    pub fn new(unit: u32, groups: u32, seed: u64, take: &mut dyn FnMut(u32) -> BufId) -> Self {
        Self {
            victims: Vec::new(),
            is_leaving: false,
            reads: Slab::new(READS_MAX),
            spare: (0..READS_MAX).map(|_| take(unit)).collect(),
            credit: vec![0; usize_of(groups)],
            prng: Prng::new(seed).split("victims"),
        }
    }

    fn has(&self, chunk: ChunkIndex) -> bool {
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
        let is_short = self.space.spare() < self.gc_start();
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
        let victims = &self.collector.victims;
        let copies = &self.data_points[1..=usize_of(self.space.pool.groups())];
        let has_landed = copies.iter().all(|point| point.in_flight() == 0);
        !victims.is_empty()
            && victims.iter().all(is_copied)
            && has_landed
            && self.logged.iter().any(|logged| !logged.is_applied())
    }

    /// Spare chunks at which garbage collection begins: users may open one on each unit before they wait.
    fn gc_start(&self) -> u32 {
        self.space.shape.units() + 1
    }

    /// Forgets victims that are empty. Groups without one are not marked any more.
    fn end_victims(&mut self) -> bool {
        let before = self.collector.victims.len();
        let space = &self.space;
        self.collector.victims.retain(|victim| {
            let is_empty =
                space.live_count(victim.chunk) == 0 || space.pool.get(victim.chunk) != ChunkUse::Closed;
            // What cannot be read is left where it is.
            let is_left = victim.is_read && space.is_stuck(victim.chunk);
            victim.reads > 0 || !is_empty && !is_left
        });
        let ended = before - self.collector.victims.len();
        self.stats.victims += u64::try_from(ended).expect("an index");
        if ended > 0 {
            for group in 0..self.space.pool.groups() {
                let has_one = self.collector.victims.iter().any(|victim| victim.group == group);
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
            let reading = self.collector.victims.iter().filter(|victim| !victim.is_read).count();
            // What is being emptied or reset will be free: more at a time would keep for itself what users wait for.
            let soon = self.collector.victims.len() + self.space.dead_count();
            let is_enough = soon >= usize_of(self.gc_start());
            let is_idle = self.flight.len() == 0 && !self.collection_waits_for_log();
            if is_enough && reading == 0 && self.space.dead_count() == 0 && is_idle {
                return any | self.choose_victim(|_| true);
            }
            let is_over = is_enough || reading >= VICTIMS_READ_MAX || self.is_leaving();
            if is_over || !self.choose_victim(|_| true) {
                return any;
            }
            any = true;
        }
    }

    /// Chooses a chunk to be emptied among those of groups that `wanted` names.
    fn choose_victim(&mut self, wanted: impl Fn(u32) -> bool) -> bool {
        let groups_max = self.options.gc_groups_max;
        let candidates = self.candidates(|group| wanted(group) && self.space.may_collect(group, groups_max));
        let Some(line) = self.options.victim.pick(&mut self.collector.prng, &candidates) else {
            return false;
        };
        self.begin_victim(ChunkIndex(line.0));
        true
    }

    /// True if the marked groups are being left. Looked at anew when none is marked, and when nothing is going on.
    fn is_leaving(&mut self) -> bool {
        let is_waiting = !self.collector.victims.is_empty() && self.flight.len() > 0;
        self.collector.is_leaving = is_waiting && (self.collector.is_leaving || self.is_better_elsewhere());
        self.collector.is_leaving
    }

    /// True if a group that may not be marked now has a chunk that gives clearly more than any of the marked ones: by an eighth
    /// of a chunk, so that groups do not take turns for nothing (chosen). No more is begun in the marked ones then, they end,
    /// and the next is chosen anywhere: a group that stays marked is emptied of garbage, for users write elsewhere.
    fn is_better_elsewhere(&self) -> bool {
        let groups_max = self.options.gc_groups_max;
        let is_allowed = |group| self.space.may_collect(group, groups_max);
        if (0..self.space.pool.groups()).all(is_allowed) {
            return false;
        }
        let least = |of: Vec<Candidate>| of.into_iter().map(|candidate| candidate.valid).min();
        let inside = least(self.candidates(is_allowed)).unwrap_or(u64::MAX);
        let beside = least(self.candidates(|group| !is_allowed(group)));
        beside.is_some_and(|valid| valid.saturating_add(self.space.live.per_chunk() / 8) < inside)
    }

    /// Closed chunks of data that may be emptied, in groups that `wanted` names.
    fn candidates(&self, wanted: impl Fn(u32) -> bool) -> Vec<Candidate> {
        let chunk_live = self.space.live.per_chunk();
        let now = self.applied.0;
        let (space, collector) = (&self.space, &self.collector);
        let may = |chunk: ChunkIndex| {
            let group = space.pool.group_of(chunk);
            let has_room = self.data_points[StreamIndex::of_group(group).index()].room() > 0
                || space.pool.free_of_group(group) > 0;
            wanted(group)
                && has_room
                && space.role(chunk) == super::space::Role::Data
                && space.pins(chunk) == 0
                && !space.is_stuck(chunk)
                && !collector.has(chunk)
        };
        space
            .pool
            .iter()
            .filter(|&(chunk, of)| of == ChunkUse::Closed && may(chunk))
            .map(|(chunk, _)| Candidate {
                line: LineId(chunk.0),
                valid: space.live_count(chunk),
                sectors: chunk_live,
                age: now.saturating_sub(space.live.last_change(chunk)),
            })
            .collect()
    }

    /// A chunk is emptied from now on, and its group marked.
    fn begin_victim(&mut self, chunk: ChunkIndex) {
        let (chunk_live, valid) = (self.space.live.per_chunk(), self.space.live_count(chunk));
        let group = self.space.pool.group_of(chunk);
        assert!(valid < chunk_live, "chunk {} gives nothing", chunk.0);
        self.collector.credit[usize_of(group)] += chunk_live - valid;
        self.space.mark(group, true);
        let next = self.space.shape.first_place(chunk);
        self.collector.victims.push(Victim { chunk, group, next, is_read: false, reads: 0 });
    }

    /// Reads the next valid sectors of victims, as far as there are buffers and frames.
    fn read_victims(&mut self) -> bool {
        let mut any = false;
        for index in 0..self.collector.victims.len() {
            while self.flight.has_room(1) && self.read_victim(index) {
                any = true;
            }
        }
        any
    }

    fn read_victim(&mut self, index: usize) -> bool {
        let Victim { chunk, next, is_read, .. } = self.collector.victims[index];
        // Each read fills what is left of a frame and begins as many others at most.
        let needed = S::FRAMES_PER_READ * (self.collector.reads.len() + 1);
        let has_frames = self.buffer.free(StreamIndex::of_group(0)) >= needed;
        if is_read || self.collector.spare.is_empty() || !has_frames || self.refuses_changes().is_some() {
            return false;
        }
        let Some((first, count)) = S::next_run(self, chunk, next, self.sizes.unit) else {
            self.collector.victims[index].is_read = true;
            return true;
        };
        let end = Place(first.0 + u64::from(count));
        let chunk_end = self.space.shape.first_place(chunk).0 + u64::from(self.sizes.chunk);
        assert!(count > 0 && end.0 <= chunk_end, "a victim is read beyond its end");
        let victim = &mut self.collector.victims[index];
        (victim.next, victim.is_read) = (end, end.0 == chunk_end);
        victim.reads += 1;
        self.space.hold(chunk);
        self.stats.gc_read += u64::from(count);
        let buffer = self.collector.spare.pop().expect("it was looked at");
        let read = self.collector.reads.insert(Read { first, count, buffer });
        let read = read.unwrap_or_else(|_| unreachable!("there are as many places as buffers"));
        let sector = self.space.shape.chunk_of(first).1;
        let addresses = self.run_at(Append { chunk, sector }, count);
        self.flight.send(Purpose::Collect { read }, Op::Read, addresses, Some(buffer), 0);
        true
    }

    /// Sectors of a victim were read.
    pub(crate) fn collected(&mut self, read: SlabKey, completion: &Completion, buffers: &mut Buffers) {
        let Read { first, count, buffer } = *self.collector.reads.get(read);
        let mut bad = 0;
        for offset in 0..count {
            let is_failed = completion.failed >> offset & 1 == 1 && !completion.status.has_data();
            let is_sound = !is_failed && S::is_sound((buffer, offset), buffers);
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

    /// What was read of a victim, `lost` sectors excepted, goes to frames.
    pub(crate) fn copied(&mut self, read: SlabKey, lost: u64, buffers: &mut Buffers) {
        let Read { first, count, buffer } = self.collector.reads.remove(read);
        assert!(count == 64 || lost >> count == 0, "sectors beyond a read were lost");
        let (chunk, _) = self.space.shape.chunk_of(first);
        if self.refuses_changes().is_none() {
            S::copy(self, first, count, buffer, lost, buffers);
        }
        self.collector.spare.push(buffer);
        self.space.let_go(chunk);
        let victim = self.collector.victims.iter_mut().find(|victim| victim.chunk == chunk);
        let victim = victim.expect("a chunk that is read is a victim");
        assert!(victim.reads > 0, "a read of chunk {} ended twice", chunk.0);
        victim.reads -= 1;
        self.work_due = true;
    }

    /// Frames of copies that nothing is about to fill go out as they are, where that pays.
    fn close_copies(&mut self) -> bool {
        let mut any = false;
        for group in 0..self.space.pool.groups() {
            let stream = StreamIndex::of_group(group);
            let filled = self.buffer.partial(stream);
            let of_group = |victim: &&Victim| victim.group == group;
            let is_read = self
                .collector
                .victims
                .iter()
                .filter(of_group)
                .all(|victim| victim.is_read && victim.reads == 0);
            if filled == 0 || !is_read {
                continue;
            }
            let fill = u64::from(self.sizes.unit - filled) * self.space.live.per_sector();
            let credit = &mut self.collector.credit[usize_of(group)];
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

    /// Gives up copies that nothing fills: what they were made of is still where it was. True if there was any.
    pub(crate) fn drop_copies(&mut self) -> bool {
        let mut any = false;
        for group in 0..self.space.pool.groups() {
            let dropped = self.buffer.drop_filling(StreamIndex::of_group(group));
            any |= !dropped.is_empty();
            S::dropped(self, &dropped);
        }
        let is_idle = self.collector.reads.is_empty();
        if any && is_idle {
            self.collector.victims.clear();
            (0..self.space.pool.groups()).for_each(|group| self.space.mark(group, false));
        }
        any
    }
}
