//! Bytes of logs become durable: units where they lie, and what fills no unit in the log of changes itself.
//!
//! So a sync of a kibibyte costs a part of a page that it shares with all others, and a log has no holes: its units follow
//! each other as a table's do. The bytes of a unit that were synced before it was full are written twice, which is counted
//! (`log_written_sectors`). Deliberately not here: when a sync is answered (`commit`).

use super::canary::Canary;
use super::change::{Change, Number};
use super::commit::{Awaited, SyncJob};
use super::sizes::TAIL_PIECE_BYTES;
use super::state::LightLsm;
use ocssd_base::usize_of;
use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::interface::table::TableKind;

impl LightLsm {
    /// Somebody waits for the first bytes of a log.
    pub(super) fn sync(&mut self, job: SyncJob) {
        let object = self.shelf.get_mut(job.number);
        assert_eq!(object.kind, TableKind::Log, "table {} is synced", job.number.0);
        object.sync_to = object.sync_to.max(job.upto);
        self.syncs.push(job);
        self.syncing.insert(job.number);
        self.wake(job.number);
    }

    /// Every log is to be durable as far as it goes.
    pub(super) fn sync_all(&mut self) -> Vec<(Number, u64)> {
        let logs: Vec<(Number, u64)> = self
            .shelf
            .objects
            .values()
            .filter(|object| object.kind == TableKind::Log && !object.is_deleted)
            .map(|object| (object.number, object.bytes))
            .collect();
        for &(number, upto) in &logs {
            let object = self.shelf.get_mut(number);
            object.sync_to = object.sync_to.max(upto);
            self.syncing.insert(number);
        }
        logs
    }

    /// Logs bytes of logs that somebody waits for. True if any were.
    pub(super) fn log_tails(&mut self, buffers: &Buffers) -> bool {
        let mut any = false;
        for number in self.syncing.clone() {
            while self.log_piece(number, buffers) {
                any = true;
            }
            let over =
                self.shelf.objects.get(&number).is_none_or(|log| log.is_gone || log.logged >= log.sync_to);
            if over {
                self.syncing.remove(&number);
            }
        }
        any
    }

    /// Logs the next bytes of a log. False if there is no room, or they are not where they must be.
    fn log_piece(&mut self, number: Number, buffers: &Buffers) -> bool {
        let unit_bytes = self.sizes.unit_bytes;
        let Some(log) = self.shelf.objects.get(&number) else { return false };
        if log.is_gone || !log.is_begun || log.logged >= log.sync_to {
            return false;
        }
        let (known, full) = (log.units_logged, log.taken / unit_bytes);
        assert!(known <= full, "log {} has {known} units logged of {full}", number.0);
        // Units in order, as far as all of them were programmed.
        let programmed =
            (known..full).take_while(|&unit| log.layout.find(unit).is_some()).count() as u64 + known;
        if programmed > known {
            let runs = log.layout.runs(known).map(|(column, run)| Change::Rows { number, column, run });
            let mut left = programmed - known;
            let mut changes = Vec::new();
            for change in runs {
                let Change::Rows { column, mut run, .. } = change else { unreachable!("they are rows") };
                let rows = u32::try_from(left.min(u64::from(run.rows))).expect("within the run");
                run.rows = rows;
                left -= u64::from(rows);
                changes.push(Change::Rows { number, column, run });
                if left == 0 || changes.len() == super::sizes::RUNS_PIECE {
                    break;
                }
            }
            return self.log_units(number, &changes);
        }
        if programmed < full || log.taken < log.sync_to {
            return false;
        }
        self.log_bytes(number, full, buffers)
    }

    fn log_units(&mut self, number: Number, changes: &[Change]) -> bool {
        if self.log(changes).is_none() {
            return false;
        }
        let rows = changes.iter().map(|change| match change {
            Change::Rows { run, .. } => u64::from(run.rows),
            _ => 0,
        });
        let unit_bytes = self.sizes.unit_bytes;
        let log = self.shelf.get_mut(number);
        assert!(changes.iter().all(|change| change.number() == number), "rows of another log");
        log.units_logged += rows.sum::<u64>();
        log.logged = log.logged.max(log.units_logged * unit_bytes);
        true
    }

    /// Logs bytes behind the last full unit.
    fn log_bytes(&mut self, number: Number, full: u64, buffers: &Buffers) -> bool {
        let unit_bytes = self.sizes.unit_bytes;
        let log = self.shelf.get(number);
        let from = log.logged;
        assert!(from >= full * unit_bytes, "log {} is logged up to {from}, before its unit {full}", number.0);
        let count =
            usize::try_from(log.taken - from).expect("a unit is small").min(usize_of(TAIL_PIECE_BYTES));
        assert!(count > 0, "log {} is logged already", number.0);
        assert!(log.taken - full * unit_bytes < unit_bytes, "log {} has a whole unit in its tail", number.0);
        let first = usize::try_from(from - full * unit_bytes).expect("a unit is small");
        let buffer = *log.memory.get(&full).expect("it is being filled");
        let bytes = buffers.whole(buffer, 0, self.sizes.unit)[first..first + count].to_vec();
        let is_forgotten = self.has_canary(Canary::TailForgotten);
        if !is_forgotten && self.log(&[Change::Bytes { number, from, bytes }]).is_none() {
            return false;
        }
        self.shelf.get_mut(number).logged += count as u64;
        true
    }

    /// Syncs whose bytes are logged wait for the log. True if there was one.
    pub(super) fn end_syncs(&mut self) -> bool {
        let (until, is_early) = (self.journal.log.end(), self.has_canary(Canary::SyncUnlogged));
        let Self { syncs, shelf, awaited, .. } = self;
        let before = syncs.len();
        syncs.retain(|job| {
            let log = shelf.get(job.number);
            let is_logged = log.is_begun && (log.logged >= job.upto || is_early && log.taken >= job.upto);
            if is_logged {
                awaited.push_back(Awaited { until, key: Some(job.key), gone: Vec::new() });
            }
            !is_logged
        });
        before > syncs.len()
    }
}
