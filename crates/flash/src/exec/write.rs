//! Write: in order, at the write pointer, in multiples of WS_MIN (OCSSD 2.0 sections 2.2.2 and 3.4.2).

use super::{Operation, OperationKind, PartList};
use crate::addresses::Run;
use crate::drive::Flash;
use crate::faults::WriteOutcome;
use crate::media::PartKind;
use crate::rules;
use ocssd_lightnvm::{ChunkState, Ppa, Status};

/// The bytes of `count` sectors of `unit` bytes from entry `entry` on, as far as there are any: whole bytes may end sooner
/// than the command, and empty stays empty.
fn piece(bytes: &[u8], unit: usize, entry: u32, count: u32) -> &[u8] {
    let at = |sectors: u32| (usize::try_from(sectors).expect("32 bits fit an index") * unit).min(bytes.len());
    &bytes[at(entry)..at(entry + count)]
}

impl Flash {
    pub(super) fn write(&mut self, operation: &mut Operation<'_>, parts: &mut PartList) {
        let count = operation.addresses.count();
        if let Err(refusal) = rules::check_write(&self.config.geometry, &self.chunks, &operation.addresses) {
            self.refuse(parts.command, &refusal, count);
            return;
        }
        let mut sectors = 0;
        for run in operation.addresses.runs() {
            sectors += self.write_run(operation, parts, run);
        }
        let is_durable = matches!(operation.kind, OperationKind::Write { fua: true });
        if is_durable && self.failures.ends_changes().is_none() {
            self.sync_for(parts.command, count);
        }
        self.counters.sectors_written += u64::from(sectors);
        self.flow.command_mut(parts.command).sectors = sectors;
    }

    /// Stores one run; returns the sectors that go to media.
    fn write_run(&mut self, operation: &Operation<'_>, parts: &mut PartList, run: Run) -> u32 {
        if self.is_too_late(parts.command, run) || self.shares_failure(parts, run) {
            return 0;
        }
        let data = piece(operation.data, self.format.data_bytes, run.entry, run.count);
        let oob = piece(operation.oob, self.format.oob_bytes, run.entry, run.count);
        self.commit_reset(run.first.chunk);
        let mut stored = self.store.write(run.first.chunk, run.first.sector, data, oob);
        let whole = piece(operation.whole, self.format.sector_bytes, run.entry, run.count);
        if stored.is_ok() && !whole.is_empty() {
            stored = self.store.write_whole(run.first.chunk, run.first.sector, whole);
        }
        if let Err(error) = stored {
            self.change_failed(parts.command, run, error);
            return 0;
        }
        let sectors = self.accept_run(parts, run);
        self.keep_chunk(parts, run);
        sectors
    }

    /// True if an earlier run of this command in the same chunk failed, so that this one, sound when it was judged, has lost
    /// its place: it fails as that did.
    pub(super) fn shares_failure(&mut self, parts: &PartList, run: Run) -> bool {
        let chunk = self.chunks.get(run.first.chunk);
        if chunk.write_pointer == run.first.sector {
            return false;
        }
        assert!(chunk.write_pointer < run.first.sector, "a write was let through below the write pointer");
        let is_closed = chunk.state == ChunkState::Closed;
        let status = if is_closed { Status::EARLY_CLOSE } else { Status::INTERNAL_ERROR };
        let command = self.flow.command_mut(parts.command);
        assert!(
            !command.status.is_success(),
            "a write was let through that does not start at the write pointer"
        );
        command.fail(status, run.entry, run.count, None);
        true
    }

    /// Moves the write pointer over a sound run whose content is stored, meets the faults that wait there, and makes the
    /// parts. Returns the sectors that go to media.
    pub(super) fn accept_run(&mut self, parts: &mut PartList, run: Run) -> u32 {
        let unit = self.config.geometry.ws_opt;
        assert_eq!(
            run.first.sector,
            self.chunks.get(run.first.chunk).write_pointer,
            "a write was let through that does not start at the write pointer"
        );
        let has_scheduled = self.chunks.get(run.first.chunk).has_scheduled;
        if !has_scheduled && !self.faults.writes_can_fail() {
            self.chunks.advance(run.first.chunk, run.count);
            self.add_windows(parts, PartKind::Program, run.first, run.count, self.media.by_unit);
            return run.count;
        }
        let end = run.first.sector + run.count;
        let mut at = run.first.sector;
        while at < end {
            let count = end.min((at / unit + 1) * unit) - at;
            let first = Ppa::new(run.first.chunk, at);
            let entry = run.entry + at - run.first.sector;
            match self.faults.write_outcome(first, count) {
                WriteOutcome::Fine => self.chunks.advance(first.chunk, count),
                WriteOutcome::NextUnit => {
                    self.chunks.advance(first.chunk, count);
                    self.chunks.mark_unreadable(first, count);
                    self.keep_marks(parts, run);
                    self.flow.command_mut(parts.command).fail(Status::WRITE_NEXT_UNIT, entry, count, None);
                }
                WriteOutcome::EarlyClose => {
                    self.chunks.close(first.chunk);
                    self.flow.command_mut(parts.command).fail(Status::EARLY_CLOSE, entry, end - at, None);
                    break;
                }
            }
            self.add_part(parts, PartKind::Program, first.chunk, at, count);
            at += count;
        }
        self.chunks.flags_mut(run.first.chunk).has_scheduled =
            has_scheduled && self.faults.is_scheduled(run.first.chunk);
        at - run.first.sector
    }
}
