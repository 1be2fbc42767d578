//! What the host sees: the contract of a key-value target, and which procedure a call reaches.
//!
//! Deliberately not here: the procedures.

use super::flight::Purpose;
use super::index_pages::AHEAD_MAX;
use super::state::Kv;
use ocssd_base::Nanos;
use ocssd_lightnvm::counter::{Counter, CounterValue};
use ocssd_lightnvm::interface::key_value::{KvLimits, KvReply, KvRequest, KvTarget};
use ocssd_lightnvm::{Admission, Buffers, Command, Completion, Out, Status, Target};

impl Kv {
    /// Lets every procedure go on until none can.
    pub(super) fn work(&mut self, buffers: &mut Buffers) {
        while std::mem::take(&mut self.work_due) || self.give_up() {
            let mut any = self.serve(buffers);
            any |= self.send_reads(buffers);
            self.commit_pages();
            // Whoever answered a shutdown begins nothing more.
            if self.refuses_changes().is_none() && !self.is_shut_down {
                any |= self.collect(buffers);
                any |= self.program(buffers);
                any |= self.write_checkpoint(buffers);
                any |= self.program(buffers);
                any |= self.reset();
            }
            any |= self.evict(buffers);
            any |= self.send_page_reads(buffers);
            any |= self.answer_durable();
            any |= self.shut_down();
            self.work_due |= any;
        }
    }

    fn give_replies(&mut self, out: &mut Out<KvReply>) {
        while let Some(reply) = self.replies.pop_front() {
            out.reply(reply);
        }
    }

    /// The next command for the device.
    pub(super) fn next_command(&mut self, buffers: &mut Buffers) -> Option<Command> {
        if !self.flight.has_next() && self.work_due {
            self.work(buffers);
        }
        self.flight.take()
    }

    /// A command ended.
    pub(super) fn completed(&mut self, now: Nanos, mut completion: Completion, buffers: &mut Buffers) {
        let Some(purpose) = self.flight.end(now, &mut completion, buffers) else { return };
        match purpose {
            // It says itself whether anything waited for it.
            Purpose::Read { read } => return self.read_done(read, &completion, buffers),
            Purpose::IndexPage { read } => self.index_page_done(read, &completion, buffers),
            Purpose::Unit { buffer_unit, at } => self.unit_done(buffer_unit, at, &completion),
            Purpose::CheckpointPage { page } => self.checkpoint_page_done(page, &completion),
            Purpose::Collect { read } => self.collected(read, &completion),
            Purpose::Reset { chunk } => self.reset_done(chunk, &completion),
        }
        self.work_due = true;
    }
}

impl Target for Kv {
    type Request = KvRequest;
    type Reply = KvReply;

    fn submit(&mut self, now: Nanos, request: &KvRequest, out: &mut Out<KvReply>) -> Admission {
        self.now = now;
        if !self.has_room() {
            return Admission::Full;
        }
        if self.is_shut_down || self.shutdown.is_some() {
            self.fail(request.tag, Status::NAMESPACE_NOT_READY);
        } else {
            // What is alone takes effect at once, and is answered at once if it needs no media.
            let is_alone = self.queue.is_empty();
            let is_served = if is_alone {
                self.serve_alone(request, &mut out.buffers)
            } else {
                self.pass(request, &mut out.buffers)
            };
            if !is_served {
                self.queue.push(*request);
                self.work_due = true;
                // Its pages are read while those before it are served; what fails is told when it is its turn.
                if !is_alone && self.queue.len() <= AHEAD_MAX {
                    let _ = self.has_pages(request, &out.buffers);
                }
            }
        }
        self.give_replies(out);
        Admission::Taken
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<KvReply>) {
        self.now = now;
        self.completed(now, completion, &mut out.buffers);
        self.give_replies(out);
    }

    fn on_deadline(&mut self, now: Nanos, _out: &mut Out<KvReply>) {
        self.flight.on_deadline(now);
    }

    fn deadline(&self) -> Option<Nanos> {
        if self.copies.is_waited_for() { Some(self.now) } else { self.flight.deadline() }
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<KvReply>) {
        self.now = now;
        self.work_due |= self.copies.renew();
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
        let mut counters = self.stats.counters();
        counters.push(self.flight.counter());
        let wide = |number: usize| u64::try_from(number).expect("an index");
        counters.extend([
            gauge("keys", "Keys that exist.", self.index.keys()),
            gauge("user_bytes", "Bytes of all keys and values.", self.user_bytes),
            gauge("live_bytes", "Bytes of records that are needed.", self.space.live_total()),
            gauge("capacity_bytes", "Bytes of keys and values that fit.", self.sizes.promised.capacity_bytes),
            gauge("index_bytes", "Bytes of memory the index takes.", self.index.memory_bytes()),
            gauge("index_pages", "Pages of the index.", wide(self.index.pages().0)),
            gauge("index_pages_missing", "Of these, not in memory.", wide(self.index.pages().1)),
            gauge("index_media_bytes", "Bytes of pages of the index on media.", self.pages.live_bytes()),
            gauge("long_values", "Values in pieces.", wide(self.long.len())),
            gauge("free_chunks", "Chunks that can be opened.", u64::from(self.space.pool.free())),
            gauge("good_chunks", "Chunks that are not bad.", u64::from(self.space.pool.good())),
            gauge(
                "chunks_needed",
                "Good chunks below which changes may be refused.",
                u64::from(self.sizes.chunks_needed),
            ),
            gauge(
                "wear_spread_bound",
                "Resets a full chunk may lag; 0: any.",
                u64::from(self.wear.bound().unwrap_or(0)),
            ),
            Counter {
                name: "wear_put_off_resets",
                about: "Resets while there was no room to empty a chunk that lags.",
                value: CounterValue::Count(self.wear.resets_put_off()),
            },
            gauge(
                "wear_lag",
                "Resets the least worn chunk is behind the most worn one, if wear is levelled.",
                u64::from(self.wear.lag()),
            ),
            gauge("read_only", "1 if no changes are taken.", u64::from(self.refuses_changes().is_some())),
        ]);
        counters
    }

    fn summary(&self) -> String {
        format!(
            "{:?}; {} keys, {} bytes of {}, {} live of {}; {} free chunks of {} good, {} owed, {} spare, {} dead of which {} wait \
             for a checkpoint; {} requests wait, {} replies wait for durability (next until {:?} of {}), {} retrieves; {} victims; \
             checkpoint being written: {}, needed {:?}; {} commands; {:?}",
            self.changes,
            self.index.keys(),
            self.user_bytes,
            self.sizes.promised.capacity_bytes,
            self.space.live_total(),
            self.sizes.promised.live_bytes_max,
            self.space.pool.free(),
            self.space.pool.good(),
            self.space.owed(),
            self.space.spare(),
            self.space.dead_count(),
            self.space.waits_for_checkpoint(),
            self.queue.len(),
            self.waiters.len(),
            self.waiters.front().map(|waiter| waiter.until),
            self.sequence,
            self.reads.jobs(),
            self.gc.victims(),
            self.checkpoint.is_writing(),
            self.space.needed(),
            self.flight.len(),
            self.stats,
        )
    }
}

impl KvTarget for Kv {
    fn limits(&self) -> KvLimits {
        self.sizes.limits()
    }

    fn used_bytes(&self) -> u64 {
        self.user_bytes
    }
}
