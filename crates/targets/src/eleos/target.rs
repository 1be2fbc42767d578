//! What the host sees: the contract of a log-structured target, and which procedure a call reaches.
//!
//! Deliberately not here: the procedures.

use super::store::Eleos;
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{Counter, CounterValue};
use ocssd_lightnvm::interface::log_structured::{LogLimits, LogReply, LogRequest, LogTarget};
use ocssd_lightnvm::{Admission, Completion, Out, Target};

impl Eleos {
    fn give_replies(&mut self, out: &mut Out<LogReply>) {
        while let Some(reply) = self.store.replies.pop_front() {
            out.reply(reply);
        }
    }

    /// Bytes of memory that the map takes, for each page.
    fn map_bytes(&self) -> u64 {
        self.store.map.memory_bytes() + self.space.live.memory_bytes()
    }
}

impl Target for Eleos {
    type Request = LogRequest;
    type Reply = LogReply;

    fn submit(&mut self, now: Nanos, request: &LogRequest, out: &mut Out<LogReply>) -> Admission {
        self.now = now;
        self.take(request, &mut out.buffers)
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<LogReply>) {
        self.now = now;
        self.completed(now, completion, &mut out.buffers);
        self.give_replies(out);
    }

    fn on_deadline(&mut self, now: Nanos, _out: &mut Out<LogReply>) {
        self.flight.on_deadline(now);
    }

    fn deadline(&self) -> Option<Nanos> {
        self.flight.deadline()
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<LogReply>) {
        self.now = now;
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
        let mut counters = self.store.stats.counters();
        counters.extend(self.stats.counters());
        counters.push(self.flight.counter());
        counters.extend([
            gauge("pages", "Pages that are stored.", self.store.pages),
            gauge("page_bytes", "Bytes of them.", self.store.bytes),
            gauge("map_bytes", "Bytes of memory the map of pages takes.", self.map_bytes()),
            gauge("free_chunks", "Chunks that can be opened.", u64::from(self.space.pool.free())),
            gauge("good_chunks", "Chunks that are not bad.", u64::from(self.space.pool.good())),
            gauge(
                "chunks_needed",
                "Good chunks below which changes may be refused.",
                u64::from(self.sizes.chunks_needed),
            ),
            gauge("log_pages", "Pages of the log that recovery would read.", self.journal.log.pages()),
            gauge("read_only", "1 if no changes are taken.", u64::from(self.refuses_changes().is_some())),
        ]);
        counters
    }

    fn summary(&self) -> String {
        format!(
            "{}; {} changes up to {:?}, durable up to {:?}; {} wait, {} read; {:?}",
            self.summary_of_parts(),
            if self.store.changes.is_empty() { "no" } else { "some" },
            self.store.changes.last(),
            self.store.changes.durable(),
            self.store.awaiting.len(),
            self.store.reads.len(),
            self.store.stats
        )
    }
}

impl LogTarget for Eleos {
    fn limits(&self) -> LogLimits {
        self.store.limits
    }
}
