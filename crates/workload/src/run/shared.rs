//! What the workers of one target share: its zones, what it must hold, who waits.
//!
//! Deliberately not here: deciding what to do next (`worker`), and what follows from wrong content (`runner`).

use super::content::{Content, Filler};
use super::oracle::Oracle;
use super::plan::{JobPlan, TargetShape};
use super::region::Region;
use super::slots::Slot;
use super::zones::ZoneTable;
use crate::job::VerifyContent;
use crate::results::VerifyStats;
use ocssd_lightnvm::Buffers;

/// What the workers of one target share.
pub(super) struct Shared {
    pub(super) zones: Option<ZoneTable>,
    pub(super) oracle: Option<Oracle>,
    block_bytes: u32,
    /// What all writers of the target write; the plainest of contents if they do not agree.
    content: Content,
    /// Every written block carries a stamp of ours.
    pub(super) stamped: bool,
    /// Workers that wait for a zone's reset.
    pub(super) blocked: Vec<u32>,
}

impl Shared {
    pub(super) fn new(plan: &JobPlan, targets: &[TargetShape<'_>], target: usize) -> Self {
        let shape = targets[target].0;
        let on_it = || plan.workers.iter().filter(|worker| worker.target.index() == target);
        let verifies = |job: usize| {
            let word = plan.jobs[job].job.options.verify;
            word.is_some_and(|word| word.content() != VerifyContent::Nothing)
        };
        let mut written = on_it().filter(|worker| plan.jobs[worker.job].job.options.rw.operations.writes());
        let first = written.next().map(|worker| worker.content.clone());
        let agree = written.all(|worker| Some(&worker.content) == first.as_ref());
        let content =
            first.filter(|_| agree).unwrap_or(Content { filler: Filler::Kept, bare_pattern: false });
        let bare = on_it().any(|worker| worker.content.bare_pattern);
        let regions = on_it().filter(|worker| verifies(worker.job)).map(|worker| worker.region);
        let zone = shape.zones().map_or(1, |zones| zones.blocks);
        let whole = |region: Region| Region {
            first: region.first / zone * zone,
            end: (region.end.div_ceil(zone) * zone).min(shape.block_count()),
        };
        let union =
            regions.map(whole).reduce(|a, b| Region { first: a.first.min(b.first), end: a.end.max(b.end) });
        let emulated = on_it().find_map(|worker| worker.emulated);
        let zone_blocks = shape.zones().map(|zones| zones.blocks).or(emulated.map(|zones| zones.blocks));
        let end = on_it().map(|worker| worker.region.end).max().unwrap_or(0);
        let early = zone_blocks.and_then(|blocks| plan.early_resets(target, blocks));
        let stamped = !bare && shape.zones().is_some() && on_it().next().is_some();
        let oracle = union.map(|region| Oracle::new(region, !agree));
        Self {
            zones: ZoneTable::new(shape, emulated, end, early),
            oracle,
            block_bytes: shape.block_bytes(),
            content,
            stamped,
            blocked: Vec::new(),
        }
    }

    /// Compares what a read returned, up to the first wrong block if `fatal`: with the newest write of each block if
    /// that is known, else with the block's own number. `sequence` is the number of the latest write of the run.
    ///
    /// Without a verifying job nobody knows the newest write: every block's own number is compared, and no more.
    #[inline(always)]
    pub(super) fn compare<'a>(
        &'a self,
        slot: &Slot,
        sequence: u64,
        fatal: bool,
        buffers: &Buffers,
        written_by: &dyn Fn(u32) -> &'a Content,
    ) -> VerifyStats {
        if self.oracle.is_some() {
            return self.compare_with_oracle(slot, sequence, fatal, buffers, written_by);
        }
        let payload = buffers.format().payload;
        let mut found = VerifyStats::default();
        if self.stamped {
            for sector in 0..slot.count {
                let (block, place) = (slot.block + u64::from(sector), buffers.data(slot.buffer, sector, 1));
                found.checked += 1;
                found.failed += u64::from(!self.content.matches(payload, place, block, 0));
                if found.failed > 0 && fatal {
                    break;
                }
            }
        }
        found
    }

    fn compare_with_oracle<'a>(
        &'a self,
        slot: &Slot,
        sequence: u64,
        fatal: bool,
        buffers: &Buffers,
        written_by: &dyn Fn(u32) -> &'a Content,
    ) -> VerifyStats {
        let format = buffers.format();
        let unit = format.block_place_bytes(self.block_bytes);
        let count = usize::try_from(slot.count).expect("32 bits fit an index");
        let data = buffers.bytes(slot.buffer, 0, count * unit);
        let mut found = VerifyStats::default();
        for (block, place) in (slot.block..).zip(data.chunks_exact(unit)) {
            let newest = self.oracle.as_ref().map_or(0, |oracle| oracle.newest(block, sequence));
            // Written again since the read was asked for: it may return this or that.
            let newest = if newest > slot.sequence { 0 } else { newest };
            if newest == 0 && !self.stamped {
                continue;
            }
            let writer = self.oracle.as_ref().and_then(|oracle| oracle.writer(block));
            let content = writer.map_or(&self.content, written_by);
            found.checked += 1;
            found.failed += u64::from(!content.matches(format.payload, place, block, newest));
            if found.failed > 0 && fatal {
                break;
            }
        }
        found
    }
}
