//! How much users may put into the buffer now, and what is kept for garbage collection.
//!
//! Deliberately not here: the rules of either limiter (`ftl::rate_limiter`).

use super::Pblk;
use super::canary::Canary;
use super::capacity::Capacity;
use super::due::Due;
use super::options::{Mode, Options};
use super::waits::WaitCause;
use super::write::Evicted;
use ocssd_base::Nanos;
use ocssd_ftl::{
    Admission, BufferUnitId, ContinuousLimiter, ContinuousLimits, InstanceGeometry, Line, LineId, LineState,
    PblkLimiter, PblkLimits, RateLimiter, Situation, Stream,
};

/// The smallest ring pblk's limiter can divide: one window of 64 entries.
const BUDGET_MIN: u32 = 64;

/// The limiter of a mode.
pub fn limiter(options: &Options, capacity: &Capacity, shape: &InstanceGeometry) -> RateLimiter {
    let line_sectors = u64::from(shape.units()) * u64::from(capacity.layout.data_sectors());
    match options.mode {
        Mode::Faithful => {
            let slots = capacity.slots();
            let budget = slots.next_power_of_two().max(BUDGET_MIN);
            let chunks = u64::from(shape.lines()) * u64::from(shape.units());
            // pblk kept one line; what checkpoints take comes on top here.
            let reserve_chunks = u64::from(capacity.reserve_lines) * u64::from(shape.units());
            let high_chunks_min = u64::from(capacity.reserve_lines + 2) * u64::from(shape.units());
            RateLimiter::Pblk(PblkLimiter::new(PblkLimits {
                budget,
                chunks,
                reserve_chunks,
                high_chunks_min,
            }))
        }
        Mode::Improved => {
            let stop_lines = u64::from(capacity.reserve_lines);
            let start_lines = u64::from(capacity.start_lines).max(stop_lines + 2);
            let target_lines = stop_lines.midpoint(start_lines).max(stop_lines + 1);
            let burst_sectors = line_sectors;
            let limits =
                ContinuousLimits { line_sectors, stop_lines, target_lines, start_lines, burst_sectors };
            RateLimiter::Continuous(ContinuousLimiter::new(limits))
        }
    }
}

/// What the limiter was told last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told {
    pub gc_has_work: bool,
    /// Good chunks checkpoints hold of the lines kept for them.
    pub map_chunks: u32,
    /// Free chunks, those checkpoints hold included.
    pub free_chunks: Option<u32>,
    /// Sectors of lines that will be free without a further victim, but for what is moved of the present one.
    pub coming_sectors: u64,
    /// Free lines, in whole ones.
    pub free_lines: u64,
    /// It is so no longer.
    pub is_stale: bool,
    /// Sectors were written or moved since, and no line changed its state.
    pub is_moved: bool,
    /// When the procedures last went on, and asked it.
    pub at: Nanos,
}

impl Pblk {
    /// Sectors a user may insert in this step, who has `wanted` left: at most a unit, halved until the limiter grants it.
    pub(super) fn limit_user(&mut self, wanted: u32) -> u32 {
        assert!(wanted > 0, "a user inserts nothing");
        if self.checkpoints.is_behind(self.capacity.checkpoint_interval) {
            self.stats.waits_for_checkpoint += 1;
            self.waits_for(WaitCause::Checkpoint);
            return 0;
        }
        let mut sectors = self.write_buffer.unit();
        // A buffer unit may hold nothing but what was collected, and give users nothing.
        while self.is_faithful()
            && self.limiter.may_insert_user(1) != Admission::Granted
            && self.evict_for_users()
        {}
        // What would be granted beyond that is not used, and asking is work for every write.
        while sectors / 2 >= wanted {
            sectors /= 2;
        }
        while sectors > 0 && self.limiter.may_insert_user(sectors) != Admission::Granted {
            sectors /= 2;
        }
        if sectors == 0 {
            self.stats.waits_for_limiter += 1;
            self.waits_for(WaitCause::Limiter);
        }
        assert!(sectors <= self.write_buffer.unit(), "more than a unit was let in");
        sectors
    }

    /// pblk counts what is in the ring until its place is taken, so users advance only as garbage collection pushes them
    /// on; with nothing to collect they would stand still for ever (OpenChannelSSD/linux issue 41). Then the oldest buffer unit
    /// goes. False if none does.
    fn evict_for_users(&mut self) -> bool {
        // Both at their share exactly: neither would push the other on.
        let gc_goes_on = self.is_space_low() && self.has_victims() && self.limiter.may_insert_gc(self.now);
        if gc_goes_on {
            return false;
        }
        let mut evicted = Evicted::default();
        self.versions().evict_oldest(|entry| evicted.count(entry));
        let Evicted { of_users, of_gc } = evicted;
        assert!(of_users + of_gc <= self.write_buffer.unit(), "more was evicted than a buffer unit holds");
        self.limiter.on_evicted(of_users, of_gc);
        self.due.add(Due::GC);
        of_users + of_gc > 0
    }

    pub(super) fn limiter_user(&mut self, sectors: u32) {
        assert!((1..=self.write_buffer.unit()).contains(&sectors), "{sectors} sectors were let in at once");
        self.limiter.on_user_inserted(self.now, sectors);
    }

    /// A buffer unit is on media.
    pub(super) fn limiter_written(&mut self, buffer_unit: BufferUnitId) {
        let (filled, copies) =
            (self.write_buffer.filled(buffer_unit), self.write_buffer.copies(buffer_unit).count_ones());
        assert!(filled > 0, "an empty buffer unit was programmed");
        assert!(copies <= filled, "{copies} copies are in a buffer unit of {filled} sectors");
        self.stats.units_programmed += 1;
        // What garbage collection copies changes no content: a mount finds it as quickly by its tails.
        self.checkpoints.note_written(filled - copies);
    }

    /// Free space or the work of garbage collection changed.
    pub(super) fn limiter_update(&mut self) {
        let map_chunks = self.map_chunks_in_use();
        let mut free_chunks = self.lines.free_chunks() + map_chunks;
        assert!(
            free_chunks <= self.shape.lines() * self.shape.units(),
            "{free_chunks} chunks are free, more than there are"
        );
        if self.has_canary(Canary::SpaceNotGivenBack) {
            free_chunks = free_chunks.min(self.told.free_chunks.unwrap_or(u32::MAX));
        }
        let gc_has_work = self.has_victims();
        self.told = Told {
            gc_has_work,
            map_chunks,
            free_chunks: Some(free_chunks),
            coming_sectors: self.sectors_to_reset(),
            free_lines: 0,
            is_stale: false,
            is_moved: false,
            at: self.told.at,
        };
        self.told.free_lines = u64::from(self.free_lines_worth());
        self.tell_limiter();
        self.judge_spare();
        self.call(Due::ALL);
    }

    /// Sectors were written or moved: as [`Self::limiter_update`], but what only changes by lines is as it was. Cost: a look at
    /// each stream's line.
    pub(super) fn limiter_follow(&mut self) {
        let is_moved = std::mem::take(&mut self.told.is_moved);
        if is_moved && self.limiter.gc_should_run() && !self.is_faithful() {
            self.tell_limiter();
        }
    }

    fn tell_limiter(&mut self) {
        self.due.add(Due::GC | Due::ADMISSION);
        let streams = u8::try_from(self.streams_count()).expect("few streams");
        let room = |stream: Stream| {
            let line = self.streams[stream.index()].line;
            line.and_then(|line| self.open[line.index()].as_ref()).map_or(0, |open| open.room())
        };
        assert!(self.user_streams > 0 && self.user_streams <= streams, "users have no stream");
        let of_gc: u64 = (self.user_streams..streams).map(Stream).map(room).sum();
        let moved = self.gc.relocator.victim().map_or(0, |victim| {
            let worth = self.worth(self.lines.get(victim.line));
            worth * victim.moved.min(victim.valid) / victim.valid
        });
        self.limiter.update(Situation {
            free_chunks: u64::from(self.told.free_chunks.expect("it is told before")),
            free_lines: self.told.free_lines,
            open_user_sectors: (0..self.user_streams).map(Stream).map(room).sum(),
            coming_sectors: of_gc + moved + self.told.coming_sectors,
            gc_has_work: self.told.gc_has_work,
        });
    }

    /// Sectors of data in lines that will be reset without anything more being read of them: being reset, empty, or emptied by
    /// copies that have not all been programmed. A line of checkpoints that is in use counts as free, or is no space of users.
    fn sectors_to_reset(&self) -> u64 {
        let is_coming = |&(id, line): &(LineId, &Line)| match line.state {
            LineState::Erasing => true,
            LineState::Closed if self.is_map_stream(line.stream) => {
                self.reclaimer.is_due(id) || self.awaits_barrier(id)
            }
            LineState::Closed => self.valid.count(id) == 0 || self.gc.relocator.awaits(id),
            LineState::Free { .. } | LineState::Open | LineState::Bad => false,
        };
        self.lines.iter().filter(is_coming).map(|(_, line)| self.worth(line)).sum()
    }

    /// Whole lines that the good chunks of free ones make up, those included that checkpoints hold of the lines kept for them:
    /// a line with bad chunks takes less.
    pub(super) fn free_lines_worth(&self) -> u32 {
        (self.lines.free_chunks() + self.told.map_chunks) / self.shape.units()
    }

    /// Good chunks of lines that hold checkpoints, as far as lines are kept for these. The reserve counts such a line whether it
    /// is free or in use: asked for as free it would be asked for twice, and small instances would have no space to work in.
    /// A line on its way to be reset is counted there.
    fn map_chunks_in_use(&self) -> u32 {
        let (mut lines, mut chunks) = (0, 0);
        for (id, line) in self.lines.iter().filter(|(_, line)| self.is_map_stream(line.stream)) {
            let is_used = matches!(line.state, LineState::Open | LineState::Closed);
            if is_used
                && lines < self.capacity.map_lines
                && !self.reclaimer.is_due(id)
                && !self.awaits_barrier(id)
            {
                (lines, chunks) = (lines + 1, chunks + line.good_chunks);
            }
        }
        assert!(chunks <= lines * self.shape.units(), "{lines} lines of checkpoints have {chunks} chunks");
        chunks
    }

    pub(super) fn limiter_deadline(&self, now: Nanos) -> Option<Nanos> {
        self.limiter.deadline(now).filter(|_| !self.gc.is_idle() && self.stopped().is_none())
    }

    /// Buffer units users leave free, so that garbage collection can always go on.
    pub(super) fn buffer_units_kept(&self) -> usize {
        let streams = u8::try_from(self.streams_count()).expect("few streams");
        let held: u32 = (self.user_streams..streams).map(|n| self.write_buffer.held_by(Stream(n))).sum();
        usize::try_from(self.gc_buffer_units.saturating_sub(held)).expect("32 bits fit an index")
    }

    /// Lines users leave free. Where garbage collection shares their stream, the limiter alone holds users back.
    pub(super) fn lines_kept(&self) -> u32 {
        let Capacity { map_lines, reserve_lines, buffer_lines, .. } = self.capacity;
        assert!(
            reserve_lines > buffer_lines + map_lines,
            "a reserve of {reserve_lines} lines holds too little"
        );
        // Buffer units that were let in hold the versions before them: lines drain only once they are written, reserve or not.
        let is_stuck = !self.is_programming() && self.gc.has_awaiting();
        if self.streams_count() == 1 || is_stuck { map_lines } else { reserve_lines - buffer_lines - 1 }
    }

    /// Lines that users' streams leave free when they open one: fewer where an empty line waits for a record in their buffer
    /// units, and none if nothing else goes on; the lines that wait are worth more than room for a checkpoint.
    pub(super) fn lines_left_by_users(&self) -> u32 {
        let kept = self.lines_kept();
        if !self.is_record_awaited() {
            return kept;
        }
        if self.is_programming() { kept.min(self.capacity.map_lines) } else { 0 }
    }

    /// True while a write to some line is in flight. Cost: a pass over the open lines.
    pub(super) fn is_programming(&self) -> bool {
        self.open.iter().flatten().any(|open| open.in_flight() > 0)
    }

    /// True if an empty line is kept from its reset by the record of a discard that is not on media: the record is in a buffer
    /// unit of users. Cost: a pass over the lines that wait, if a record does.
    fn is_record_awaited(&self) -> bool {
        let Some(pending) = self.discards.oldest_pending() else { return false };
        self.reclaimer.empty().iter().any(|empty| self.waits_for_record(empty, pending))
    }

    /// Notes whether the instance can still take writes: bad chunks may have used up what is spare.
    pub(super) fn judge_spare(&mut self) {
        let data = u64::from(self.capacity.layout.data_sectors());
        let usable = self.lines.iter().filter(|(_, line)| line.state != LineState::Bad);
        let good: u64 = usable.map(|(_, line)| u64::from(line.good_chunks) * data).sum();
        let line_sectors = u64::from(self.shape.units()) * data;
        let need = u64::from(self.streams_count() + self.capacity.map_lines + 1) * line_sectors;
        if good < self.l2p.count_mapped() + need {
            self.end_changes();
        }
    }
}
