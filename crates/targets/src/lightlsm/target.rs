//! What the host sees: the contract of a table target, and which procedure a call reaches.
//!
//! Deliberately not here: the procedures.

use super::flight::Purpose;
use super::state::LightLsm;
use crate::journal::PageKind;
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{Counter, CounterValue};
use ocssd_lightnvm::interface::table::{TableLimits, TableReply, TableRequest, TableTarget};
use ocssd_lightnvm::{Admission, Buffers, Command, Completion, Out, Target};

impl LightLsm {
    /// Lets every procedure that is due go on until none can.
    pub(super) fn work(&mut self, buffers: &mut Buffers) {
        loop {
            if std::mem::take(&mut self.work_due) || self.give_up() {
                self.work_due |= self.go_through(buffers);
            } else if std::mem::take(&mut self.reads_due) {
                self.serve_reads(buffers);
            } else {
                return;
            }
        }
    }

    /// Asks every procedure. True if any went on.
    fn go_through(&mut self, buffers: &mut Buffers) -> bool {
        self.serve_reads(buffers);
        let mut any = false;
        if self.refuses_changes().is_none() {
            any |= self.go_on(buffers);
            any |= self.commit(buffers);
            any |= self.leave(buffers);
            any |= self.checkpoint();
            any |= self.write_log(buffers);
            any |= self.write_checkpoint(buffers);
            any |= self.reset();
        }
        any | self.shut_down()
    }

    fn give_replies(&mut self, out: &mut Out<TableReply>) {
        while let Some(reply) = self.requests.poll_reply() {
            out.reply(reply);
        }
    }

    /// The next command for the device.
    pub(super) fn next_command(&mut self, buffers: &mut Buffers) -> Option<Command> {
        if !self.flight.has_next() && (self.work_due || self.reads_due || self.flight.len() == 0) {
            self.work(buffers);
        }
        self.flight.take()
    }

    /// A command ended.
    pub(super) fn completed(&mut self, now: Nanos, mut completion: Completion, buffers: &mut Buffers) {
        let was_full = !self.flight.has_room(1);
        let Some(purpose) = self.flight.end(now, &mut completion, buffers) else { return };
        let status = completion.status;
        // Nothing but reads waits for a read, unless it waits for any command to end.
        self.work_due |= was_full || !matches!(purpose, Purpose::Read { .. });
        match purpose {
            Purpose::Read { part } => self.part_done(part, &completion, buffers),
            Purpose::Unit { number, column, what, at } => {
                self.unit_done((number, column, what), at, &completion, buffers);
            }
            Purpose::LogPage { page } => self.page_done(PageKind::Log, page, status),
            Purpose::CheckpointPage { page } => self.page_done(PageKind::Checkpoint, page, status),
            Purpose::Close { chunk, from, padding } => self.close_done((chunk, from, padding), &completion),
            Purpose::Reset { chunk } => self.reset_done(chunk, &completion),
        }
    }
}

impl Target for LightLsm {
    type Request = TableRequest;
    type Reply = TableReply;

    fn submit(&mut self, _now: Nanos, request: &TableRequest, out: &mut Out<TableReply>) -> Admission {
        let is_taken = self.take_request(*request, &mut out.buffers);
        if is_taken { Admission::Taken } else { Admission::Full }
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<TableReply>) {
        self.completed(now, completion, &mut out.buffers);
        self.give_replies(out);
    }

    fn on_deadline(&mut self, now: Nanos, _out: &mut Out<TableReply>) {
        self.flight.on_deadline(now);
    }

    fn deadline(&self) -> Option<Nanos> {
        self.flight.deadline()
    }

    fn advance(&mut self, _now: Nanos, out: &mut Out<TableReply>) {
        while out.has_room() {
            let Some(command) = self.next_command(&mut out.buffers) else { break };
            out.command(command);
        }
        self.give_replies(out);
    }

    fn check(&self) {
        self.check_all();
    }

    fn counters(&self) -> Vec<Counter> {
        let gauge = |name, about, value| Counter { name, about, value: CounterValue::Gauge(value) };
        let mut counters = self.stats.counters(self.flight.written());
        counters.push(self.flight.counter());
        let (content, unfilled) = self.fragmentation();
        let memory = self.memory();
        let count = |name, about, value| Counter { name, about, value: CounterValue::Count(value) };
        counters.extend([
            count("stream0_units", "Write units of tables of stream 0, as flushes are.", self.meetings.sent),
            count(
                "stream0_units_behind_writes",
                "Of these, sent to a parallel unit where another table's write was in flight.",
                self.meetings.behind_writes,
            ),
            count(
                "stream0_units_behind_reads",
                "Of these, sent to a parallel unit where a read was in flight.",
                self.meetings.behind_reads,
            ),
            count("stream0_units_behind_any", "Of these, where either was.", self.meetings.behind_any),
        ]);
        counters.extend([
            gauge("tables", "Tables and logs.", self.shelf.names.len() as u64),
            gauge("table_bytes_live", "Bytes of them.", self.shelf.live_bytes),
            gauge("content_chunks", "Chunks that belong to tables and logs.", content),
            gauge(
                "unfilled_bytes",
                "Bytes of these chunks that nothing fills: internal fragmentation.",
                unfilled,
            ),
            gauge("free_chunks", "Chunks that can be opened.", u64::from(self.space.pool.free())),
            gauge("good_chunks", "Chunks that are not bad.", u64::from(self.space.pool.good())),
            gauge(
                "chunks_needed",
                "Good chunks below which changes may be refused.",
                u64::from(self.sizes.chunks_needed),
            ),
            gauge("log_pages", "Pages of the log that recovery would read.", self.journal.log.pages()),
            gauge(
                "table_map_bytes",
                "Bytes of the host's memory that say where tables and logs lie.",
                memory.map_bytes,
            ),
            gauge("table_metadata_bytes", "Bytes of it that say all else of them.", memory.metadata_bytes),
            gauge(
                "wear_lag",
                "Resets the least worn chunk is behind the most worn one.",
                u64::from(self.space.wear.lag()),
            ),
            gauge("read_only", "1 if no changes are taken.", u64::from(self.refuses_changes().is_some())),
        ]);
        counters
    }

    fn summary(&self) -> String {
        let log = &self.journal.log;
        format!(
            "{:?}; {} tables and logs of {} bytes in {} chunks; {} free chunks of {} good, {} reserved, {} available, {} to be \
             reset; {} edits to be logged, {} syncs, {} to be durable, {} appends without chunks, {} leaving; log {:?}; \
             checkpoint being written: {}; {} commands; {:?}",
            self.changes,
            self.shelf.names.len(),
            self.shelf.live_bytes,
            self.space.content_chunks(),
            self.space.pool.free(),
            self.space.pool.good(),
            self.space.reserved(),
            self.space.available(),
            self.space.on_their_way(),
            self.edits.len(),
            self.syncs.len(),
            self.awaited.len(),
            self.unreserved.len(),
            self.leaving.len(),
            (log.tail(), log.durable(), log.next()),
            self.journal.is_writing(),
            self.flight.len(),
            self.stats,
        )
    }
}

impl TableTarget for LightLsm {
    fn limits(&self) -> TableLimits {
        self.limits_of()
    }
}
