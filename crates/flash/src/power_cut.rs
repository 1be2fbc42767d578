//! Power cut: everything that had not reached the media is undone.
//!
//! Programmed units stay. A unit in the array is torn at flash-page borders: its sectors count as written, but only a
//! chosen part of its pages can be read; real NAND cannot be programmed there again, so the write pointer moves past it.
//! Units still queued, loading or in an unprotected cache never happened. An erase in the array completes (the drive
//! does it again at power-up); one still queued never happened. Never below a sector, and never a third content.
//!
//! Two faults make it worse, by rates: an erase stays half done, so that the chunk is as it was before the reset and some of its
//! pages are lost; and a torn unit takes the one before it in its chunk along, as the upper page of a cell takes the lower. The
//! second is a loss of what was on media, and listed for whoever asks.
//!
//! Deliberately not here: which pages share cells, which differs from part to part.

use crate::chunks::ChunkRecord;
use crate::drive::Flash;
use crate::exec::SavedChunk;
use crate::media::{CommandPart, PartKind, Phase};
use crate::store::StoreError;
use ocssd_base::{Nanos, Prng};
use ocssd_lightnvm::{ChunkId, ChunkState, Ppa};

/// What a power cut cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerCutReport {
    /// Commands the host will never hear of again.
    pub commands: u32,
    /// Sectors that never reached the media.
    pub sectors_lost: u64,
    /// Units torn in the array.
    pub units_torn: u32,
    /// Resets that never happened.
    pub resets_undone: u32,
    /// Resets that stayed half done.
    pub resets_half_done: u32,
    /// Units that were on media and were lost with the unit that was programmed behind them.
    pub pairs_lost: u32,
}

impl Flash {
    /// Cuts the power at `now`. `prng` decides which pages of torn units survive. Afterwards the drive is on again and
    /// idle; commands in flight get no completion, their buffers belong to the host again.
    ///
    /// # Errors
    /// If the backing cannot keep what is left.
    pub fn power_cut(&mut self, now: Nanos, prng: &mut Prng) -> Result<PowerCutReport, StoreError> {
        self.advance(now);
        self.lost_pairs.clear();
        let mut report = PowerCutReport { commands: self.flow.in_flight(), ..PowerCutReport::default() };
        let mut parts: Vec<CommandPart> =
            self.media.parts().copied().filter(|part| part.kind != PartKind::Read).collect();
        // Later units of a chunk first, so that each cut only shortens.
        parts.sort_by_key(|part| (part.chunk, std::cmp::Reverse((part.cycles, part.first))));
        self.undo_resets(&parts, prng, &mut report)?;
        for part in parts.iter().filter(|part| part.kind == PartKind::Program) {
            self.undo_program(part, prng, &mut report)?;
        }
        self.media.power_off();
        self.flow.power_off();
        self.deferred_copies.forget();
        assert!(self.saved.is_empty(), "every reset in progress was settled");
        assert!(self.media.parts().next().is_none(), "something is in progress after a power cut");
        assert_eq!(self.flow.in_flight(), 0, "a command is in flight after a power cut");
        Ok(report)
    }

    /// First sectors of the units that the last power cut took although they were on media, and how many sectors each.
    pub fn take_lost_pairs(&mut self) -> Vec<(Ppa, u32)> {
        std::mem::take(&mut self.lost_pairs)
    }

    fn undo_resets(
        &mut self,
        parts: &[CommandPart],
        prng: &mut Prng,
        report: &mut PowerCutReport,
    ) -> Result<(), StoreError> {
        for SavedChunk { chunk, cycles, record, unreadable, block } in std::mem::take(&mut self.saved) {
            let erase = parts
                .iter()
                .find(|part| part.kind == PartKind::Erase && part.chunk == chunk && part.cycles == cycles);
            let begun = erase.is_none_or(|part| part.phase == Phase::Array);
            self.chunks.flags_mut(chunk).resetting = false;
            let is_in_array = erase.is_some() && begun && record.write_pointer > 0;
            if is_in_array && self.faults.leaves_reset_half_done(prng) {
                report.resets_half_done += 1;
                self.store.restore(chunk, block);
                self.put_chunk(chunk, record)?;
                self.half_erase(chunk, record.write_pointer, unreadable, prng)?;
                continue;
            }
            if begun {
                self.store.recycle(block);
                continue;
            }
            report.resets_undone += 1;
            self.store.restore(chunk, block);
            self.put_chunk(chunk, record)?;
            if !unreadable.is_empty() {
                self.store.keep_unreadable(chunk, &unreadable)?;
                self.chunks.put_unreadable(chunk, unreadable);
            }
        }
        Ok(())
    }

    fn undo_program(
        &mut self,
        part: &CommandPart,
        prng: &mut Prng,
        report: &mut PowerCutReport,
    ) -> Result<(), StoreError> {
        let entry = *self.chunks.get(part.chunk);
        let arrived = part.phase != Phase::Waiting;
        let end = part.first + part.count;
        if entry.cycles != part.cycles || entry.state == ChunkState::Offline {
            return Ok(());
        }
        if self.flow.is_protected(part, arrived) {
            // The capacitors finish it: it is on media when the power comes back.
            self.chunks.programmed_to(part.chunk, end, part.cycles);
            return Ok(());
        }
        assert!(entry.write_pointer >= end, "a later unit was cut shorter than an earlier one");
        if part.phase == Phase::Array {
            report.units_torn += 1;
            self.tear(part, prng)?;
            self.lose_pair(part, prng, report)?;
            return self.cut_chunk(part.chunk, end);
        }
        report.sectors_lost += u64::from(part.count);
        self.cut_chunk(part.chunk, part.first)
    }

    /// Of the pages written a quarter survives (chosen: some, and most are gone). `unreadable` was lost before.
    fn half_erase(
        &mut self,
        chunk: ChunkId,
        written: u32,
        unreadable: Vec<u64>,
        prng: &mut Prng,
    ) -> Result<(), StoreError> {
        assert!(written > 0, "an erase of nothing stays half done");
        if !unreadable.is_empty() {
            self.chunks.put_unreadable(chunk, unreadable);
        }
        let page = self.config.media.sectors_per_page;
        for first in (0..written).step_by(usize::try_from(page).expect("a page is small")) {
            if prng.below(4) > 0 {
                self.chunks.mark_unreadable(Ppa::new(chunk, first), page.min(written - first));
            }
        }
        self.store.keep_unreadable(chunk, self.chunks.unreadable(chunk))
    }

    /// The unit before a torn one is lost with it, if it was on media.
    fn lose_pair(
        &mut self,
        torn: &CommandPart,
        prng: &mut Prng,
        report: &mut PowerCutReport,
    ) -> Result<(), StoreError> {
        let unit = self.config.geometry.ws_opt;
        let Some(first) = torn.first.checked_sub(unit) else { return Ok(()) };
        let is_on_media = self.chunks.get(torn.chunk).programmed >= torn.first;
        if !is_on_media || !self.faults.takes_pair_along(prng) {
            return Ok(());
        }
        report.pairs_lost += 1;
        let at = Ppa::new(torn.chunk, first);
        self.lost_pairs.push((at, unit));
        self.chunks.mark_unreadable(at, unit);
        self.store.keep_unreadable(torn.chunk, self.chunks.unreadable(torn.chunk))
    }

    /// A prefix of the unit's pages can be read, the rest cannot: pages fail from the first unfinished one on.
    fn tear(&mut self, part: &CommandPart, prng: &mut Prng) -> Result<(), StoreError> {
        let page = self.config.media.sectors_per_page;
        let pages = part.count.div_ceil(page);
        let survive = u32::try_from(prng.below(u64::from(pages) + 1)).expect("fewer pages than 2^32");
        let lost = part.count.saturating_sub(survive * page);
        assert!(lost <= part.count && survive <= pages, "more pages were torn than the unit has");
        if lost == 0 {
            return Ok(());
        }
        self.chunks.mark_unreadable(Ppa::new(part.chunk, part.first + part.count - lost), lost);
        self.store.keep_unreadable(part.chunk, self.chunks.unreadable(part.chunk))
    }

    /// The chunk ends at `write_pointer`.
    fn cut_chunk(&mut self, chunk: ChunkId, write_pointer: u32) -> Result<(), StoreError> {
        let full = self.config.geometry.sectors_per_chunk;
        let entry = *self.chunks.get(chunk);
        assert!(write_pointer <= entry.write_pointer, "a power cut never writes");
        let state = match write_pointer {
            0 => ChunkState::Free,
            pointer if pointer == full => ChunkState::Closed,
            pointer if pointer == entry.write_pointer => entry.state,
            _ => ChunkState::Open,
        };
        let record = ChunkRecord { state, write_pointer, cycles: entry.cycles };
        if entry.has_unreadable {
            self.chunks.unmark_from(chunk, write_pointer);
            self.store.keep_unreadable(chunk, self.chunks.unreadable(chunk))?;
        }
        self.put_chunk(chunk, record)
    }

    fn put_chunk(&mut self, chunk: ChunkId, record: ChunkRecord) -> Result<(), StoreError> {
        self.chunks.put(chunk, record);
        self.store.keep(chunk, &record)
    }
}
