//! Edits, in the order in which they were taken: logged once what they publish is on media, answered once the log is.
//!
//! The first edit that has to wait holds up those behind it, so what a power cut leaves is always what the first so many
//! edits make. Bytes of logs have no part in this order: of a log its first bytes count (`sync`). Deliberately not here:
//! pages (`journal`).

use super::canary::Canary;
use super::change::{Change, Number, records_of, to_records};
use super::journal::{CATALOG, INFO, Info, WEAR};
use super::shelf::Row;
use super::sizes::RUNS_PIECE;
use super::state::LightLsm;
use ocssd_base::SlabKey;
use ocssd_ftl::log::Lsn;
use ocssd_lightnvm::interface::table::{EditOp, TableKind};
use ocssd_lightnvm::{Buffers, Status};

/// What waits to be logged.
#[derive(Clone, Debug)]
pub(super) enum EditJob {
    /// A log begins; nobody waits for it.
    Begin { number: Number },
    /// Rows of an edit, and the request.
    Rows { key: SlabKey, rows: Vec<Row> },
    /// A flush, and how far each log is to be logged.
    Flush { key: Option<SlabKey>, syncs: Vec<(Number, u64)> },
}

/// A request that waits for the first bytes of a log to be logged.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyncJob {
    pub number: Number,
    pub upto: u64,
    pub key: SlabKey,
}

/// What is over once the log is on media up to a page.
#[derive(Clone, Debug)]
pub(super) struct Awaited {
    pub until: Lsn,
    pub key: Option<SlabKey>,
    /// What is deleted then.
    pub gone: Vec<Number>,
}

impl LightLsm {
    /// Logs what can be logged, and answers what is durable. True if anything was done.
    pub(super) fn commit(&mut self, buffers: &Buffers) -> bool {
        let mut any = self.log_tails(buffers);
        any |= self.end_syncs();
        while self.log_next() {
            any = true;
        }
        while let Some(front) = self.awaited.front() {
            if !self.journal.is_durable(front.until) {
                break;
            }
            let Awaited { key, gone, .. } = self.awaited.pop_front().expect("it was looked at");
            if let Some(key) = key {
                self.requests.end(key, Status::SUCCESS);
            }
            self.leaving.extend(gone);
            any = true;
        }
        any
    }

    /// Logs the first job. False if it has to wait, or there is none.
    fn log_next(&mut self) -> bool {
        let Some(job) = self.edits.pop_front() else { return false };
        let is_done = match &job {
            EditJob::Begin { number } => self.log_begin(*number),
            EditJob::Rows { key, rows } => self.log_edit(*key, rows),
            EditJob::Flush { key, syncs } => self.log_flush(*key, syncs),
        };
        if !is_done {
            self.edits.push_front(job);
        }
        is_done
    }

    /// Logs changes as one transaction; `None` if there is no room.
    pub(super) fn log(&mut self, changes: &[Change]) -> Option<Lsn> {
        let mut bytes = Vec::new();
        changes.iter().for_each(|change| change.encode(&mut bytes));
        if !self.journal.has_room(records_of(bytes.len())) {
            return None;
        }
        for change in changes {
            self.catalog.apply(change).unwrap_or_else(|error| panic!("its own change: {error}"));
        }
        Some(self.journal.append(&to_records(&bytes)).durable_at)
    }

    fn log_begin(&mut self, number: Number) -> bool {
        let object = self.shelf.get(number);
        let width = object.layout.width();
        let begin = Change::Begin { number, kind: object.kind, name: object.name, width };
        let is_logged = object.is_begun || self.log(&[begin]).is_some();
        self.shelf.get_mut(number).is_begun = is_logged;
        if is_logged {
            self.wake(number);
        }
        is_logged
    }

    /// Logs where a table lies, some runs at a time. False if there is no room for all.
    fn log_runs(&mut self, number: Number) -> bool {
        if !self.log_begin(number) {
            return false;
        }
        loop {
            let object = self.shelf.get(number);
            let runs = object.layout.runs(0).skip(object.runs_logged).take(RUNS_PIECE);
            let changes: Vec<Change> =
                runs.map(|(column, run)| Change::Rows { number, column, run }).collect();
            if changes.is_empty() {
                return true;
            }
            if self.log(&changes).is_none() {
                return false;
            }
            self.shelf.get_mut(number).runs_logged += changes.len();
        }
    }

    /// What a row waits for is there.
    fn is_ready(&self, row: &Row) -> bool {
        let object = self.shelf.get(row.number);
        match row.op {
            EditOp::Publish => {
                object.is_settled(&self.sizes) || self.has_canary(Canary::PublishedBeforeProgrammed)
            }
            EditOp::Describe => true,
            EditOp::Delete => {
                let is_synced = self.syncs.iter().all(|job| job.number != row.number);
                row.is_unseen || object.appends.is_empty() && is_synced
            }
        }
    }

    fn log_edit(&mut self, key: SlabKey, rows: &[Row]) -> bool {
        let waits = self.has_canary(Canary::EditByRow) && !self.awaited.is_empty();
        if waits || !rows.iter().all(|row| self.is_ready(row)) {
            return false;
        }
        let published = rows.iter().filter(|row| row.op == EditOp::Publish);
        for row in published {
            if !self.log_runs(row.number) {
                return false;
            }
        }
        let seen = rows.iter().filter(|row| !row.is_unseen);
        let changes: Vec<Change> = seen.map(|row| self.change_of(row)).collect();
        let until = match changes.as_slice() {
            [] => Some(self.journal.log.end()),
            [first, _, ..] if self.has_canary(Canary::EditByRow) => {
                return self.log_first_row(first, key, rows);
            }
            changes => self.log(changes),
        };
        let Some(until) = until else { return false };
        assert!(self.refuses_changes().is_none(), "an edit is logged after changes ended");
        let mut gone = Vec::new();
        for row in rows {
            match row.op {
                EditOp::Publish => self.stats.published += 1,
                EditOp::Describe => {}
                EditOp::Delete => {
                    self.stats.deleted += 1;
                    self.shelf.get_mut(row.number).is_gone = true;
                    gone.push(row.number);
                }
            }
        }
        self.stats.edits += 1;
        if self.has_canary(Canary::ResetBeforeDurable) {
            self.leaving.append(&mut gone);
        }
        let is_early = self.has_canary(Canary::AnsweredBeforeDurable);
        if is_early {
            self.requests.end(key, Status::SUCCESS);
        }
        self.awaited.push_back(Awaited { until, key: (!is_early).then_some(key), gone });
        true
    }

    /// The planted bug: the first row is a transaction, and the others wait until it is durable.
    fn log_first_row(&mut self, first: &Change, key: SlabKey, rows: &[Row]) -> bool {
        let Some(until) = self.log(std::slice::from_ref(first)) else { return false };
        let at = rows.iter().position(|row| !row.is_unseen).expect("it is the first of those seen");
        let mut gone = Vec::new();
        if rows[at].op == EditOp::Delete {
            self.shelf.get_mut(rows[at].number).is_gone = true;
            gone.push(rows[at].number);
        }
        self.awaited.push_back(Awaited { until, key: None, gone });
        let mut rest = rows.to_vec();
        rest.remove(at);
        self.edits.push_front(EditJob::Rows { key, rows: rest });
        true
    }

    fn change_of(&self, row: &Row) -> Change {
        let (number, attributes) = (row.number, row.attributes.clone());
        match row.op {
            EditOp::Publish => {
                let object = self.shelf.get(number);
                assert_eq!(object.kind, TableKind::Table, "log {} is published", number.0);
                assert!(
                    object.is_finished
                        || object.bytes == 0
                        || self.has_canary(Canary::PublishedBeforeProgrammed),
                    "table {} is not whole",
                    number.0
                );
                Change::Publish { number, bytes: object.bytes, attributes }
            }
            EditOp::Describe => Change::Describe { number, attributes },
            EditOp::Delete => Change::Delete { number },
        }
    }

    fn log_flush(&mut self, key: Option<SlabKey>, syncs: &[(Number, u64)]) -> bool {
        let is_logged = |&(number, upto): &(Number, u64)| {
            self.shelf.objects.get(&number).is_none_or(|object| object.is_gone || object.logged >= upto)
        };
        let is_done = syncs.iter().all(is_logged);
        if is_done {
            self.awaited.push_back(Awaited { until: self.journal.log.end(), key, gone: Vec::new() });
        }
        is_done
    }

    /// Begins a checkpoint when one is due. True if it did.
    pub(super) fn checkpoint(&mut self) -> bool {
        if self.journal.is_writing() || !self.is_checkpoint_due() {
            return false;
        }
        let shape = &self.space.shape;
        let info = Info {
            chunk: self.sizes.chunk,
            units: shape.units(),
            lines: shape.lines(),
            kept: self.sizes.kept,
            generation: self.journal.generation,
            start: self.journal.log.next(),
            applied: self.journal.last_transaction().0,
            next_number: self.next_number,
        };
        let catalog = self.catalog.encode(!self.has_canary(Canary::AttributesForgotten));
        let page_bytes = u32::try_from(self.sizes.unit_bytes).expect("a unit is small");
        let (start, info, wear) = (info.start, info.encode(), self.space.wear.encode());
        let mut sections = vec![(INFO, &info[..]), (CATALOG, catalog.as_slice())];
        if !wear.is_empty() {
            sections.push((WEAR, wear.as_slice()));
        }
        self.journal.begin_checkpoint(start, page_bytes, &sections);
        if self.has_canary(Canary::TruncatedTooEarly) && !self.is_mounting {
            self.journal.cut_log(start, &mut self.space);
        }
        true
    }

    fn is_checkpoint_due(&self) -> bool {
        let Some(current) = self.journal.current() else { return true };
        let since = self.journal.log.next().0 - current.start.0;
        let is_full = since > 0 && !self.journal.has_room(self.sizes.largest_records);
        let is_first = self.is_mounting && !self.journal.has_two();
        is_first || since >= u64::from(self.sizes.interval_pages) || is_full || self.is_last_due()
    }
}
