//! Writing what will be read, before anything is measured: fio lays out its files, and a read of nothing measures
//! nothing.
//!
//! Zones are written in order with large writes; one that holds something already is continued from where it is. Of
//! other targets, the blocks that hold nothing are written. Deliberately not here: measuring.

use super::content::{Content, Filler};
use super::plan::{JobPlan, TargetShape, reads_before_writing};
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::{BufId, Buffers, Source, Tag, TargetId};
use std::ops::Range;

/// Most blocks of one write: 64 sectors, one vector command; fewer where the write unit does not divide them.
const WRITE_BLOCKS: u32 = 64;
/// Writes in flight per target: enough for 128 units with two in the queue of each (chosen).
const DEPTH: u32 = 256;

struct Zone {
    target: TargetId,
    next: u64,
    end: u64,
    /// Blocks of one write: whole write units.
    step: u64,
    /// Bytes of a block in a buffer.
    unit: usize,
}

/// What is to be written.
struct Needed {
    /// Zones that are read.
    zones: Vec<(TargetId, u64)>,
    /// Blocks of targets without zones that are read and hold nothing.
    unmapped: Vec<(TargetId, Range<u64>)>,
}

/// The source that lays out.
pub struct LayOut {
    zones: Vec<Zone>,
    /// The zone being written.
    at: usize,
    buffers: Vec<BufId>,
    free: Vec<u32>,
    refused: Option<(TargetId, BlockRequest)>,
    written: u64,
    total: u64,
    failed: Option<BlockReply>,
    is_stopped: bool,
    bytes: u64,
    sequence: u64,
}

impl LayOut {
    /// Everything the plan's readers need that is not written yet.
    #[must_use]
    pub fn new(plan: &JobPlan, targets: &[TargetShape<'_>], buffers: &mut Buffers) -> Self {
        let Needed { zones: needed, unmapped } = needed(plan, targets);
        let unit_of = |id: TargetId| unit_in(buffers, targets[id.index()].0);
        let zone_of = |&(target, zone): &(TargetId, u64)| {
            let shape = targets[target.index()].0;
            let blocks = shape.zones()?.blocks;
            let written = shape.zone_written(zone);
            let unit = shape.write_unit();
            assert!((1..=WRITE_BLOCKS).contains(&unit), "a write unit fits a vector command");
            let step = u64::from(WRITE_BLOCKS - WRITE_BLOCKS % unit);
            let zone = Zone {
                target,
                next: zone * blocks + written,
                end: (zone + 1) * blocks,
                step,
                unit: unit_of(target),
            };
            (written < blocks).then_some(zone)
        };
        let mut zones: Vec<Zone> = needed.iter().filter_map(zone_of).collect();
        let mut end = (TargetId(0), 0);
        for (target, run) in unmapped {
            // Regions may overlap in part; what the one before covers is not written again.
            let next = if end.0 == target { run.start.max(end.1) } else { run.start };
            if next < run.end {
                zones.push(Zone {
                    target,
                    next,
                    end: run.end,
                    step: u64::from(WRITE_BLOCKS),
                    unit: unit_of(target),
                });
                end = (target, run.end);
            }
        }
        let total = zones.iter().map(|zone| zone.end - zone.next).sum();
        let bytes = bytes_of(&zones, targets);
        let depth = if total == 0 { 0 } else { DEPTH };
        Self {
            zones,
            at: 0,
            buffers: (0..depth).map(|_| buffers.take(WRITE_BLOCKS)).collect(),
            free: (0..depth).rev().collect(),
            refused: None,
            written: 0,
            total,
            failed: None,
            is_stopped: false,
            bytes,
            sequence: 0,
        }
    }

    /// Blocks written, and blocks to write.
    #[must_use]
    pub const fn progress(&self) -> (u64, u64) {
        (self.written, self.total)
    }

    /// Begins no more writes; it is finished when those in flight have ended.
    pub const fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Bytes of all blocks to write.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first write that failed; nothing more is written then.
    #[must_use]
    pub const fn failed(&self) -> Option<&BlockReply> {
        self.failed.as_ref()
    }

    /// Returns the buffers.
    pub fn release(self, buffers: &mut Buffers) {
        for buffer in self.buffers {
            buffers.give_back(buffer);
        }
    }
}

/// Everything the plan's readers need, in order, each once.
fn needed(plan: &JobPlan, targets: &[TargetShape<'_>]) -> Needed {
    let mut needed: Vec<(TargetId, u64)> = Vec::new();
    let mut unmapped: Vec<(TargetId, Range<u64>)> = Vec::new();
    for worker in &plan.workers {
        let operations = plan.jobs[worker.job].job.options.rw.operations;
        if !reads_before_writing(operations) {
            continue;
        }
        match targets[worker.target.index()].0.zones() {
            Some(zones) => {
                needed.extend(worker.region.zones(zones.blocks).map(|zone| (worker.target, zone)));
            }
            None => unmapped.extend(
                empty_runs(targets[worker.target.index()].0, worker.region.zones(1))
                    .map(|run| (worker.target, run)),
            ),
        }
    }
    // Readers may share a region: each block once.
    unmapped.sort_unstable_by_key(|(target, run)| (*target, run.start));
    unmapped.dedup();
    needed.sort_unstable();
    needed.dedup();
    Needed { zones: needed, unmapped }
}

/// Bytes of all blocks to write.
fn bytes_of(zones: &[Zone], targets: &[TargetShape<'_>]) -> u64 {
    let block_bytes = |zone: &Zone| u64::from(targets[zone.target.index()].0.block_bytes());
    zones.iter().map(|zone| (zone.end - zone.next) * block_bytes(zone)).sum()
}

/// Bytes of a target's block in a buffer.
fn unit_in(buffers: &Buffers, target: &dyn BlockTarget) -> usize {
    buffers.format().block_place_bytes(target.block_bytes())
}

/// Blocks asked of a range to learn whether its target has a map (chosen: a map in memory in part knows some of them).
const ASKED: u64 = 64;

/// The blocks of a range that are known to hold nothing, as runs; none of a target without a map.
fn empty_runs(target: &dyn BlockTarget, blocks: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let step = usize::try_from((blocks.end - blocks.start) / ASKED).unwrap_or(usize::MAX).max(1);
    let knows = blocks.clone().step_by(step).any(|block| target.is_mapped(block).is_some());
    let mut at = if knows { blocks.start } else { blocks.end };
    std::iter::from_fn(move || {
        while at < blocks.end && target.is_mapped(at) != Some(false) {
            at += 1;
        }
        let start = at;
        while at < blocks.end && target.is_mapped(at) == Some(false) {
            at += 1;
        }
        (start < at).then_some(start..at)
    })
}

/// Layout's content: a stamp, and bytes that follow from it.
const CONTENT: Content = Content { filler: Filler::Kept, bare_pattern: false };

impl Source for LayOut {
    fn next_arrival(&self) -> Option<Nanos> {
        None
    }

    fn poll_request(&mut self, _now: Nanos, buffers: &mut Buffers) -> Option<(TargetId, BlockRequest)> {
        if let Some(refused) = self.refused.take() {
            return Some(refused);
        }
        if self.failed.is_some() || self.is_stopped {
            return None;
        }
        let zone = self.zones.get_mut(self.at)?;
        let slot = self.free.pop()?;
        let buffer = self.buffers[usize::try_from(slot).expect("32 bits fit an index")];
        let count = u32::try_from((zone.end - zone.next).min(zone.step)).expect("at most 64");
        self.sequence += 1;
        CONTENT.fill(buffers, buffer, zone.unit, zone.next..zone.next + u64::from(count), self.sequence);
        let request = BlockRequest {
            tag: Tag(slot),
            op: BlockOp::Write { fua: false },
            block: zone.next,
            count,
            buffer: Some(buffer),
        };
        let target = zone.target;
        zone.next += u64::from(count);
        self.written += u64::from(count);
        if zone.next == zone.end {
            self.at += 1;
        }
        Some((target, request))
    }

    fn on_refused(&mut self, _now: Nanos, target: TargetId, request: BlockRequest) {
        self.refused = Some((target, request));
    }

    fn on_reply(&mut self, _now: Nanos, _target: TargetId, reply: BlockReply, _buffers: &mut Buffers) {
        self.free.push(reply.tag.0);
        if !reply.status.is_success() {
            self.failed.get_or_insert(reply);
        }
    }

    fn is_finished(&self) -> bool {
        let idle = self.free.len() == self.buffers.len() && self.refused.is_none();
        idle && (self.at == self.zones.len() || self.failed.is_some() || self.is_stopped)
    }
}
