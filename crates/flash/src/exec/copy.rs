//! Copy: moves sectors with their metadata inside the drive (OCSSD 2.0 section 3.4.4).
//!
//! Sources are judged by the rules of reads, destinations by those of writes. A source that cannot be read leaves the
//! drive unchanged: a copy that stored something else than its source would be worse than none. No entry was copied then, and
//! every one has its bit; a read says which source is lost.

use super::PartList;
use crate::addresses::{AddressList, Run};
use crate::drive::Flash;
use crate::faults::ReadOutcome;
use crate::media::PartKind;
use crate::rules::{self, Refusal};
use crate::store::StoreError;
use ocssd_lightnvm::{Ppa, Rule, Status, VECTOR_MAX, Violation};

fn bytes(sectors: u32, unit: usize) -> usize {
    usize::try_from(sectors).expect("32 bits fit an index") * unit
}

/// Whole sectors on their way through a copy, beside their stamps.
#[derive(Clone, Debug, Default)]
pub(crate) struct WholeScratch {
    /// Bit `entry` is set if that sector is whole.
    sectors: u64,
    /// All bytes of 64 sectors; empty until a copy met a whole one.
    bytes: Vec<u8>,
}

const _: () = assert!(VECTOR_MAX <= u64::BITS, "a bit for every sector of a copy");

impl WholeScratch {
    /// Whether entry `entry` is whole, and how many entries from it on, at most `limit`, are as it is.
    fn stretch(&self, entry: u32, limit: u32) -> (bool, u32) {
        assert!(limit > 0 && entry + limit <= VECTOR_MAX, "entries {entry} + {limit} are beyond a copy");
        let bits = self.sectors >> entry;
        let is_whole = bits & 1 == 1;
        let same = if is_whole { bits.trailing_ones() } else { bits.trailing_zeros() };
        (is_whole, same.min(limit))
    }
}

impl Flash {
    pub(super) fn copy(&mut self, from: &AddressList<'_>, to: &AddressList<'_>, parts: &mut PartList) {
        if let Err(refusal) = self.check_copy(from, to) {
            self.refuse(parts.command, &refusal, from.count());
            return;
        }
        if !self.load_scratch(from, parts) {
            return;
        }
        for run in from.runs() {
            let programmed = self.chunks.get(run.first.chunk).programmed;
            let on_media = programmed.saturating_sub(run.first.sector).min(run.count);
            if on_media > 0 {
                let rows = *self.media.sensing.windows(parts.span);
                self.add_windows(parts, PartKind::Read, run.first, on_media, rows);
            }
        }
        let reads = parts.count;
        let mut sectors = 0;
        for run in to.runs() {
            if self.is_too_late(parts.command, run) || self.shares_failure(parts, run) {
                continue;
            }
            self.commit_reset(run.first.chunk);
            if let Err(error) = self.store_scratch(run) {
                self.change_failed(parts.command, run, error);
                continue;
            }
            sectors += self.accept_run(parts, run);
            self.keep_chunk(parts, run);
        }
        self.counters.sectors_copied += u64::from(sectors);
        let command = self.flow.command_mut(parts.command);
        (command.reads_left, command.sectors) = (reads, sectors);
    }

    /// Stores the sectors of a run of destinations, as whole as their sources are.
    fn store_scratch(&mut self, run: Run) -> Result<(), StoreError> {
        let (chunk, unit) = (run.first.chunk, self.format.sector_bytes);
        let data = &self.scratch.0[bytes(run.entry, self.format.data_bytes)..];
        let oob = &self.scratch.1[bytes(run.entry, self.format.oob_bytes)..];
        let data = &data[..bytes(run.count, self.format.data_bytes)];
        let oob = &oob[..bytes(run.count, self.format.oob_bytes)];
        self.store.write(chunk, run.first.sector, data, oob)?;
        let mut done = 0;
        while done < run.count {
            let entry = run.entry + done;
            let (is_whole, count) = self.scratch_whole.stretch(entry, run.count - done);
            if is_whole {
                let whole = &self.scratch_whole.bytes[bytes(entry, unit)..][..bytes(count, unit)];
                self.store.write_whole(chunk, run.first.sector + done, whole)?;
            }
            done += count;
        }
        Ok(())
    }

    /// Reads the whole sectors of a run of sources, if there are any.
    fn load_whole(&mut self, run: Run) -> Result<(), StoreError> {
        let sectors = self.store.whole_sectors(run.first.chunk, run.first.sector, run.count);
        if sectors == 0 {
            return Ok(());
        }
        let (WholeScratch { sectors: entries, bytes: scratch }, unit) =
            (&mut self.scratch_whole, self.format.sector_bytes);
        *entries |= sectors << run.entry;
        scratch.resize(bytes(VECTOR_MAX, unit), 0);
        let place = &mut scratch[bytes(run.entry, unit)..][..bytes(run.count, unit)];
        self.store.read_whole(run.first.chunk, run.first.sector, place)
    }

    fn check_copy(&self, from: &AddressList<'_>, to: &AddressList<'_>) -> Result<(), Refusal> {
        let refuse = |status, rule| {
            let at = from.runs().next().map_or(Ppa::NOWHERE, |run| run.first);
            let violation = Violation { rule, at, chunk: None };
            Err(Refusal { status, entry: 0, entries: from.count(), violation })
        };
        if !self.config.geometry.capabilities.vector_copy {
            return refuse(Status::INVALID_OPCODE, Rule::Supported);
        }
        if from.count() != to.count() {
            return refuse(Status::INVALID_FIELD, Rule::CopyLength);
        }
        for run in from.runs() {
            let limit = rules::readable_sectors(&self.config.geometry, &self.chunks, run.first.chunk);
            if run.first.sector.saturating_add(run.count) > limit {
                return Err(rules::unreadable(&self.chunks, run));
            }
        }
        rules::check_write(&self.config.geometry, &self.chunks, to)
    }

    /// Reads all sources; false if one is lost.
    fn load_scratch(&mut self, from: &AddressList<'_>, parts: &PartList) -> bool {
        self.scratch_whole.sectors = 0;
        for run in from.runs() {
            let chunk = *self.chunks.get(run.first.chunk);
            let wear_index = self.chunks.wear_index(run.first.chunk);
            for sector in run.first.sector..run.first.sector + run.count {
                let at = Ppa::new(run.first.chunk, sector);
                let lost = chunk.has_unreadable && self.chunks.is_unreadable(at);
                let outcome = self.faults.read_outcome(at, chunk.cycles, wear_index);
                if lost || matches!(outcome, ReadOutcome::Transient | ReadOutcome::Unrecovered) {
                    let command = self.flow.command_mut(parts.command);
                    command.fail(Status::UNRECOVERED_READ, 0, from.count(), None);
                    return false;
                }
            }
            let data = &mut self.scratch.0[bytes(run.entry, self.format.data_bytes)..];
            let data = &mut data[..bytes(run.count, self.format.data_bytes)];
            let oob = &mut self.scratch.1[bytes(run.entry, self.format.oob_bytes)..];
            let oob = &mut oob[..bytes(run.count, self.format.oob_bytes)];
            let read = self.store.read(run.first.chunk, run.first.sector, data, oob);
            if let Err(error) = read.and_then(|()| self.load_whole(run)) {
                let all = Run { entry: 0, count: from.count(), ..run };
                self.read_failed(parts.command, all, error);
                return false;
            }
        }
        true
    }
}
