//! The zones of one target as its workers see them: how far each is written, who writes it, what can be read.
//!
//! Writes land at a zone's write pointer; a full zone is reset before it is written again, as with fio's
//! `zonemode=zbd`. A worker writes at most as many zones at a time as it may keep open, and no two write the same. A
//! target without zones can be used as if it had some: then a reset moves the write pointer and asks nothing.
//! Deliberately not here: asking the target; the runner does, and reports back.

use super::early_resets::EarlyResets;
use super::region::Region;
use ocssd_base::{Divisor, Prng};
use ocssd_lightnvm::block::BlockTarget;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Zone {
    /// Blocks written or on their way.
    written: u64,
    owner: Option<u32>,
    resetting: bool,
    /// Its reset failed: it is written no more.
    dead: bool,
}

/// What a worker that wants to write has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteStep {
    /// Write `count` blocks at `block`: they are reserved.
    Write { block: u64, count: u32 },
    /// Reset the zone that starts at `block` first: it is marked.
    Reset { block: u64 },
    /// Every zone is being reset, or belongs to somebody else.
    Blocked,
    /// No zone of the region can ever be written again.
    Gone,
}

/// How many zones may be written at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenLimits {
    /// By all workers of the target (`max_open_zones`); 0 is no bound.
    pub(super) target: u32,
    /// By one worker (`job_max_open_zones`); 0 is the target's bound, or one.
    pub(super) worker: u32,
}

/// The zones a worker writes.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenZones {
    zones: Vec<u64>,
    max: usize,
    target_max: u32,
    /// Where a sequential worker looks for its next zone.
    cursor: u64,
}

impl OpenZones {
    pub(super) fn new(limits: OpenLimits, region: Region, zone_blocks: u64) -> Self {
        let max = if limits.worker > 0 { limits.worker } else { limits.target.max(1) };
        let max = usize::try_from(max).expect("32 bits fit an index");
        let target_max = if limits.target > 0 { limits.target } else { u32::MAX };
        Self { zones: Vec::with_capacity(max), max, target_max, cursor: region.first / zone_blocks }
    }
}

/// Zones a target has not: sizes in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EmulatedZones {
    pub(super) blocks: u64,
    /// Blocks that can be written, from a zone's start; at most all.
    pub(super) capacity: u64,
}

/// All zones of a target.
#[derive(Clone, Debug)]
pub(super) struct ZoneTable {
    zone_blocks: u64,
    capacity: u64,
    by_zone: Divisor,
    tail: u64,
    zones: Vec<Zone>,
    emulated: bool,
    /// Zones that somebody writes.
    open: u32,
    /// Who waits to open one, first come first served.
    waiting: VecDeque<u32>,
    early: Option<EarlyResets>,
}

fn index(zone: u64) -> usize {
    usize::try_from(zone).expect("a zone is an index")
}

impl ZoneTable {
    /// The target's own zones, or else the emulated ones of blocks up to `end`; `None` without either.
    pub(super) fn new(
        target: &dyn BlockTarget,
        emulated: Option<EmulatedZones>,
        end: u64,
        early: Option<EarlyResets>,
    ) -> Option<Self> {
        let (shape, count) = match (target.zones(), emulated) {
            (Some(own), _) => (EmulatedZones { blocks: own.blocks, capacity: own.blocks }, own.count),
            (None, Some(emulated)) => (emulated, end.div_ceil(emulated.blocks)),
            (None, None) => return None,
        };
        let emulated = target.zones().is_none();
        let written = |zone| if emulated { 0 } else { target.zone_written(zone) };
        let zone = |zone| Zone { written: written(zone), owner: None, resetting: false, dead: false };
        let mut table = Self {
            zone_blocks: shape.blocks,
            capacity: shape.capacity,
            by_zone: Divisor::new(shape.blocks),
            tail: if emulated { 0 } else { target.unreadable_tail() },
            zones: (0..count).map(zone).collect(),
            emulated,
            open: 0,
            waiting: VecDeque::new(),
            early,
        };
        if let Some(early) = &mut table.early {
            early.start(|zone| table.zones[index(zone)].written);
        }
        Some(table)
    }

    /// True if the target knows nothing of these zones.
    pub(super) const fn is_emulated(&self) -> bool {
        self.emulated
    }

    pub(super) const fn zone_blocks(&self) -> u64 {
        self.zone_blocks
    }

    /// Blocks from the zone's start that can be read now.
    #[inline(always)]
    pub(super) fn readable(&self, zone: u64) -> u64 {
        let zone = &self.zones[index(zone)];
        if zone.written == self.capacity { zone.written } else { zone.written.saturating_sub(self.tail) }
    }

    /// True if these blocks of one zone can be read now.
    pub(super) fn holds(&self, block: u64, count: u32) -> bool {
        block % self.zone_blocks + u64::from(count) <= self.readable(block / self.zone_blocks)
    }

    /// Where `count` blocks can be read: at `block` if they lie within what is written, else elsewhere in the same
    /// zone, else in the next zone that holds enough, never outside of the region. `None` if none does.
    #[inline(always)]
    pub(super) fn place_read(&self, block: u64, count: u32, region: Region, prng: &mut Prng) -> Option<u64> {
        let (zone, within) = self.by_zone.div_rem(block);
        let count = u64::from(count);
        if within + count <= self.readable(zone) {
            Some(block)
        } else {
            self.find_read(zone, count, region, prng)
        }
    }

    /// Where else than it was drawn something can be read.
    #[inline(never)]
    fn find_read(&self, zone: u64, count: u64, region: Region, prng: &mut Prng) -> Option<u64> {
        let zones = region.zones(self.zone_blocks);
        let (first, total) = (zones.start, zones.end - zones.start);
        let inside = |zone: u64| {
            let start = zone * self.zone_blocks;
            (start.max(region.first), (start + self.readable(zone)).min(region.end))
        };
        let found = (0..total).map(|step| inside(first + (zone - first + step) % total));
        let (from, to) = found.into_iter().find(|&(from, to)| to >= from + count)?;
        Some(from + prng.below((to - from) / count) * count)
    }

    /// The next write of `worker`: `count` blocks at most, fewer at the end of a zone.
    pub(super) fn place_write(
        &mut self,
        worker: u32,
        open: &mut OpenZones,
        count: u32,
        region: Region,
        draw: Option<&mut Prng>,
    ) -> WriteStep {
        if self.early.is_some()
            && let Some(block) = self.reset_early(worker)
        {
            return WriteStep::Reset { block };
        }
        let mut draw = draw;
        self.open_more(worker, open, region, draw.as_deref_mut());
        let ready = |zone: &u64| !self.zones[index(*zone)].resetting;
        let choices = open.zones.iter().filter(|zone| ready(zone)).count();
        if choices == 0 {
            let zones = &self.zones[index(region.first / self.zone_blocks)..];
            let touched = region.zones(self.zone_blocks);
            let alive = zones.iter().take(index(touched.end - touched.start)).any(|zone| !zone.dead);
            return if alive { WriteStep::Blocked } else { WriteStep::Gone };
        }
        let nth = draw.map_or(0, |prng| index(prng.below(choices as u64)));
        let zone = *open.zones.iter().filter(|zone| ready(zone)).nth(nth).expect("as many as were counted");
        self.write_in(zone, open, count)
    }

    /// Takes zones for a worker until it has as many as it may.
    fn open_more(&mut self, worker: u32, open: &mut OpenZones, region: Region, mut draw: Option<&mut Prng>) {
        while open.zones.len() < open.max {
            if !self.may_open(worker, open) {
                return;
            }
            let Some(zone) = self.find_free(open, region, draw.as_deref_mut()) else { return };
            if self.waiting.front() == Some(&worker) {
                self.waiting.pop_front();
            }
            self.zones[index(zone)].owner = Some(worker);
            self.open += 1;
            open.zones.push(zone);
        }
    }

    /// True if a worker may open one more; one that may not and has none waits for its turn.
    fn may_open(&mut self, worker: u32, open: &OpenZones) -> bool {
        if open.target_max == u32::MAX {
            return true;
        }
        let first = self.waiting.front().is_none_or(|&first| first == worker);
        let may = self.open < open.target_max && first;
        if !may && open.zones.is_empty() && !self.waiting.contains(&worker) {
            self.waiting.push_back(worker);
        }
        may
    }

    /// Nobody writes the zone any more.
    fn disown(&mut self, zone: u64) {
        if self.zones[index(zone)].owner.take().is_some() {
            assert!(self.open > 0, "a zone is closed that was not counted as open");
            self.open -= 1;
        }
    }

    fn write_in(&mut self, zone: u64, open: &mut OpenZones, count: u32) -> WriteStep {
        let block = zone * self.zone_blocks;
        let (capacity, emulated) = (self.capacity, self.emulated);
        let entry = &mut self.zones[index(zone)];
        if entry.written == capacity {
            let held = std::mem::take(&mut entry.written);
            entry.resetting = !emulated;
            self.forget(zone, held);
            if !emulated {
                return WriteStep::Reset { block };
            }
        }
        let entry = &mut self.zones[index(zone)];
        let left = capacity - entry.written;
        let count = u32::try_from(left.min(u64::from(count))).expect("no more than was asked for");
        let block = block + entry.written;
        entry.written += u64::from(count);
        if entry.written == capacity {
            self.disown(zone);
            open.zones.retain(|&other| other != zone);
        }
        if let Some(early) = &mut self.early {
            early.on_written(zone, u64::from(count));
        }
        WriteStep::Write { block, count }
    }

    /// Resets a full zone that nobody writes, if one is due; its start, if the target must be asked to.
    fn reset_early(&mut self, worker: u32) -> Option<u64> {
        let early = self.early.as_mut().filter(|early| early.is_due())?;
        let (zones, capacity) = (&self.zones, self.capacity);
        let is_full = |zone: u64| {
            let zone = &zones[index(zone)];
            zone.owner.is_none() && !zone.dead && !zone.resetting && zone.written == capacity
        };
        let zone = early.take_next(is_full)?;
        let entry = &mut self.zones[index(zone)];
        let held = std::mem::take(&mut entry.written);
        if self.emulated {
            self.forget(zone, held);
            return None;
        }
        (entry.resetting, entry.owner) = (true, Some(worker));
        self.open += 1;
        self.forget(zone, held);
        Some(zone * self.zone_blocks)
    }

    /// What a zone held counts no more.
    fn forget(&mut self, zone: u64, blocks: u64) {
        if let Some(early) = &mut self.early {
            early.on_emptied(zone, blocks);
        }
    }

    /// A zone of the region nobody writes: drawn, or the next one.
    fn find_free(&self, open: &mut OpenZones, region: Region, draw: Option<&mut Prng>) -> Option<u64> {
        let zones = region.zones(self.zone_blocks);
        let total = zones.end - zones.start;
        let from = match draw {
            Some(prng) => zones.start + prng.below(total),
            None => open.cursor,
        };
        let found = (0..total)
            .map(|step| zones.start + (from - zones.start + step) % total)
            .find(|&zone| self.is_free(zone))?;
        open.cursor = if found + 1 == zones.end { zones.start } else { found + 1 };
        Some(found)
    }

    fn is_free(&self, zone: u64) -> bool {
        let zone = &self.zones[index(zone)];
        zone.owner.is_none() && !zone.dead
    }

    /// True if anybody may write the zone of `block` next.
    pub(super) fn is_released(&self, block: u64) -> bool {
        self.is_free(block / self.zone_blocks)
    }

    /// The reset of the zone at `block` by a worker ended; a failed one leaves a zone nobody writes any more.
    pub(super) fn on_reset(&mut self, block: u64, success: bool, open: &mut OpenZones) {
        let zone = block / self.zone_blocks;
        let entry = &mut self.zones[index(zone)];
        assert!(entry.resetting, "a zone's reset ended that was not begun");
        entry.resetting = false;
        if !success {
            (entry.written, entry.dead) = (0, true);
        }
        let kept = success && open.zones.contains(&zone);
        if !kept {
            self.disown(zone);
            open.zones.retain(|&other| other != zone);
        }
    }

    /// A write of the zone at `block` failed: its end is unknown, so nothing more is written or read there.
    pub(super) fn on_write_failed(&mut self, block: u64, worker: u32, open: &mut OpenZones) {
        let zone = block / self.zone_blocks;
        let entry = &mut self.zones[index(zone)];
        // Somebody else who took the full zone since then resets it, which makes it whole again.
        if entry.owner.is_none_or(|owner| owner == worker) && !entry.resetting {
            let held = std::mem::take(&mut entry.written);
            entry.dead = true;
            self.forget(zone, held);
            self.disown(zone);
            open.zones.retain(|&other| other != zone);
        }
    }

    /// The worker writes no more.
    pub(super) fn release(&mut self, worker: u32, open: &mut OpenZones) {
        while let Some(zone) = open.zones.pop() {
            self.disown(zone);
        }
        self.waiting.retain(|&other| other != worker);
    }
}
