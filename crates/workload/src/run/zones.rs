//! The zones of one target as its workers see them: how far each is written, who writes it, what can be read.
//!
//! Writes land at a zone's write pointer; a full zone is reset before it is written again, as with fio's
//! `zonemode=zbd`. A worker writes at most as many zones at a time as it may keep open, and no two write the same.
//! Deliberately not here: asking the target; the runner does, and reports back.

use super::region::Region;
use ocssd_base::{Divisor, Prng};
use ocssd_lightnvm::block::BlockTarget;

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

/// The zones a worker writes.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenZones {
    zones: Vec<u64>,
    max: usize,
    /// Where a sequential worker looks for its next zone.
    cursor: u64,
}

impl OpenZones {
    /// At most `max` at a time; 0 is one.
    pub(super) fn new(max: u32, region: Region, zone_blocks: u64) -> Self {
        let max = usize::try_from(max.max(1)).expect("32 bits fit an index");
        Self { zones: Vec::with_capacity(max), max, cursor: region.first / zone_blocks }
    }
}

/// All zones of a target.
#[derive(Clone, Debug)]
pub(super) struct ZoneTable {
    zone_blocks: u64,
    by_zone: Divisor,
    tail: u64,
    zones: Vec<Zone>,
}

fn index(zone: u64) -> usize {
    usize::try_from(zone).expect("a zone is an index")
}

impl ZoneTable {
    pub(super) fn new(target: &dyn BlockTarget) -> Option<Self> {
        let shape = target.zones()?;
        let zone =
            |zone| Zone { written: target.zone_written(zone), owner: None, resetting: false, dead: false };
        Some(Self {
            zone_blocks: shape.blocks,
            by_zone: Divisor::new(shape.blocks),
            tail: target.unreadable_tail(),
            zones: (0..shape.count).map(zone).collect(),
        })
    }

    pub(super) const fn zone_blocks(&self) -> u64 {
        self.zone_blocks
    }

    /// Blocks from the zone's start that can be read now.
    pub(super) fn readable(&self, zone: u64) -> u64 {
        let zone = &self.zones[index(zone)];
        if zone.written == self.zone_blocks { zone.written } else { zone.written.saturating_sub(self.tail) }
    }

    /// True if these blocks of one zone can be read now.
    pub(super) fn holds(&self, block: u64, count: u32) -> bool {
        block % self.zone_blocks + u64::from(count) <= self.readable(block / self.zone_blocks)
    }

    /// Where `count` blocks can be read: at `block` if they lie within what is written, else elsewhere in the same
    /// zone, else in the next zone that holds enough, never outside of the region. `None` if none does.
    pub(super) fn place_read(&self, block: u64, count: u32, region: Region, prng: &mut Prng) -> Option<u64> {
        let (zone, within) = self.by_zone.div_rem(block);
        let count = u64::from(count);
        if within + count <= self.readable(zone) {
            return Some(block);
        }
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
        let mut draw = draw;
        while open.zones.len() < open.max {
            let Some(zone) = self.find_free(open, region, draw.as_deref_mut()) else { break };
            self.zones[index(zone)].owner = Some(worker);
            open.zones.push(zone);
        }
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

    fn write_in(&mut self, zone: u64, open: &mut OpenZones, count: u32) -> WriteStep {
        let block = zone * self.zone_blocks;
        let entry = &mut self.zones[index(zone)];
        if entry.written == self.zone_blocks {
            (entry.written, entry.resetting) = (0, true);
            return WriteStep::Reset { block };
        }
        let left = self.zone_blocks - entry.written;
        let count = u32::try_from(left.min(u64::from(count))).expect("no more than was asked for");
        let block = block + entry.written;
        entry.written += u64::from(count);
        if entry.written == self.zone_blocks {
            entry.owner = None;
            open.zones.retain(|&other| other != zone);
        }
        WriteStep::Write { block, count }
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

    /// The reset of the zone at `block` by a worker that keeps it open ended; a failed one leaves a zone nobody writes
    /// any more.
    pub(super) fn on_reset(&mut self, block: u64, success: bool, open: &mut OpenZones) {
        let zone = block / self.zone_blocks;
        let entry = &mut self.zones[index(zone)];
        assert!(entry.resetting, "a zone's reset ended that was not begun");
        entry.resetting = false;
        if !success {
            (entry.written, entry.dead, entry.owner) = (0, true, None);
            open.zones.retain(|&other| other != zone);
        }
    }

    /// A write of the zone at `block` failed: its end is unknown, so nothing more is written or read there.
    pub(super) fn on_write_failed(&mut self, block: u64, worker: u32, open: &mut OpenZones) {
        let zone = block / self.zone_blocks;
        let entry = &mut self.zones[index(zone)];
        // Somebody else who took the full zone since then resets it, which makes it whole again.
        if entry.owner.is_none_or(|owner| owner == worker) && !entry.resetting {
            (entry.written, entry.dead, entry.owner) = (0, true, None);
            open.zones.retain(|&other| other != zone);
        }
    }

    /// The worker writes no more.
    pub(super) fn release(&mut self, open: &mut OpenZones) {
        for zone in open.zones.drain(..) {
            self.zones[index(zone)].owner = None;
        }
    }
}
