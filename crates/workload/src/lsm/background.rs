//! Background threads: which jobs begin, and what their end changes.
//!
//! One flush at a time, and as many compactions as the options allow. Deliberately not here: what a job does (`job`), which
//! compaction is due (`pick`).

use super::job::{Act, FLUSH_STREAM, Job, Kind, Shared};
use super::pick::{Pick, pick};
use super::source::{Event, Lsm, Owner};
use super::wire::{Ask, Row};
use ocssd_base::{Nanos, usize_of};

impl Lsm {
    /// Begins what is due and may begin.
    pub(super) fn begin_jobs(&mut self, now: Nanos) {
        if self.is_flush_due() {
            let runs = self.memtables.begin_flush();
            let job = Job::flush(runs, self.layout);
            self.begin(now, job);
        }
        loop {
            let running = self.jobs.values().filter(|job| job.kind != Kind::Flush).count();
            if running >= self.options.compactions_max {
                return;
            }
            let Some(pick) = pick(&self.tree, &self.options) else { return };
            self.begin_compaction(now, pick);
        }
    }

    fn is_flush_due(&self) -> bool {
        let waiting = self.memtables.waiting();
        let is_due = waiting >= self.options.memtables_to_merge || (self.is_draining && waiting > 0);
        is_due && !self.jobs.values().any(|job| job.kind == Kind::Flush)
    }

    fn begin_compaction(&mut self, now: Nanos, pick: Pick) {
        for name in pick.from.iter().chain(&pick.into) {
            self.tree.tables.get_mut(name).expect("it was picked").is_taken = true;
        }
        self.tree.running.insert(self.next_job, pick.span());
        let job = if pick.is_move() {
            Job::shift(&pick)
        } else {
            let inputs = pick.from.iter().chain(&pick.into);
            let runs = inputs.map(|&name| (self.tree.tables[&name].run.clone(), Some(name))).collect();
            let stream = self.free_stream();
            let (options, layout, next_table) = (&self.options, self.layout, &mut self.next_table);
            Job::compaction(pick, runs, stream, &Shared { options, layout, next_table })
        };
        self.begin(now, job);
    }

    /// The first stream that no job writes tables as, as threads that compact take turns; beyond 255 at once they share the last.
    fn free_stream(&self) -> u8 {
        let is_free = |&stream: &u8| self.jobs.values().all(|job| job.stream != stream);
        (FLUSH_STREAM + 1..u8::MAX).find(is_free).unwrap_or(u8::MAX)
    }

    fn begin(&mut self, now: Nanos, job: Job) {
        self.jobs.insert(self.next_job, job);
        self.events.push(now, Event::Job(self.next_job));
        self.next_job += 1;
    }

    /// A job goes on.
    pub(super) fn go_on_job(&mut self, now: Nanos, number: u64) {
        let job = self.jobs.get_mut(&number).expect("a job ends once");
        let (options, layout, next_table) = (&self.options, self.layout, &mut self.next_table);
        match job.next(&mut Shared { options, layout, next_table }) {
            Some(Act::Compute(time)) => self.events.push(now + time, Event::Job(number)),
            Some(Act::Ask(ask)) => self.ask_for_job(number, ask),
            None => self.end_job(now, number),
        }
    }

    fn ask_for_job(&mut self, number: u64, ask: Ask) {
        if let Ask::Edit(rows) = &ask
            && rows.len() > usize_of(self.limits.edits_max)
        {
            let (found, most) = (rows.len(), self.limits.edits_max);
            self.fail(format!(
                "a compaction needs an edit of {found} rows, and the target takes {most}: choose a larger \
                 target_file_size_base, or a smaller level0_stop_writes_trigger"
            ));
            return;
        }
        self.asks.push_back((Owner::Job(number), ask));
    }

    fn end_job(&mut self, now: Nanos, number: u64) {
        let job = self.jobs.remove(&number).expect("a job ends once");
        self.tree.running.remove(&number);
        let written: u64 = job.written.iter().map(|(_, run)| self.layout.table_bytes(run.len() as u64)).sum();
        let work = &mut self.phase().work;
        match &job.kind {
            Kind::Flush => {
                (work.flushes, work.flushed_bytes) = (work.flushes + 1, work.flushed_bytes + written);
            }
            Kind::Compaction(_) => {
                work.compactions += 1;
                work.compaction_read_bytes += job.taken_bytes;
                work.compaction_written_bytes += written;
            }
            Kind::Move(_) => work.moves += 1,
        }
        self.install(&job);
        self.look(now);
        self.begin_jobs(now);
        self.write(now);
        self.bury_dead();
        self.end_if_drained(now);
    }

    fn install(&mut self, job: &Job) {
        let level = match &job.kind {
            Kind::Flush => {
                self.memtables.end_flush();
                0
            }
            Kind::Move(pick) => {
                self.tree.shift(pick.from[0], pick.level);
                return;
            }
            Kind::Compaction(pick) => {
                pick.from.iter().chain(&pick.into).for_each(|&name| self.tree.remove(name));
                pick.level
            }
        };
        for (name, run) in &job.written {
            self.tree.insert(*name, level, run.clone());
        }
    }

    /// Tables that nobody reads any more are deleted.
    pub(super) fn bury_dead(&mut self) {
        let dead = self.tree.take_dead(usize_of(self.limits.edits_max));
        if !dead.is_empty() {
            let rows = dead.into_iter().map(Row::delete).collect();
            self.asks.push_back((Owner::Nobody, Ask::Edit(rows)));
        }
    }
}
