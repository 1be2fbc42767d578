//! What the host sees: the contract of a block target, and which procedure a call reaches.
//!
//! Deliberately not here: the procedures.

use super::flight::Purpose;
use super::state::OxBlock;
use crate::refusal::{Takes, refusal};
use ocssd_base::Nanos;
use ocssd_ftl::Mapped;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Counter, CounterValue};
use ocssd_lightnvm::{Admission, Buffers, Command, Completion, Out, Target};

impl OxBlock {
    /// Lets every procedure go on until none can.
    pub(super) fn work(&mut self, buffers: &mut Buffers) {
        while std::mem::take(&mut self.work_due) || self.give_up() {
            let mut any = self.serve_reads(buffers);
            if self.refuses_changes().is_none() {
                any |= self.admit(buffers);
                any |= self.commit();
                any |= self.collect();
                any |= self.program(buffers);
                any |= self.write_log(buffers);
                any |= self.write_checkpoint(buffers);
                any |= self.reset();
            }
            any |= self.flush();
            any |= self.shut_down();
            self.work_due |= any;
        }
    }

    fn take_request(&mut self, request: BlockRequest) -> Result<(), BlockRequest> {
        let takes = Takes {
            blocks: self.sizes.blocks,
            is_shut_down: self.is_shut_down || self.shutdown.is_some(),
            refuses_changes: self.refuses_changes(),
        };
        if let Some(status) = refusal(&request, takes) {
            return self.requests.answer(request, status);
        }
        let key = self.requests.take(request)?;
        match request.op {
            BlockOp::Flush => self.take_flush(key),
            BlockOp::Shutdown => self.shutdown = Some(key),
            _ => {}
        }
        self.work_due = true;
        Ok(())
    }

    fn give_replies(&mut self, out: &mut Out<BlockReply>) {
        while let Some(reply) = self.requests.poll_reply() {
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
    pub(super) fn completed(&mut self, completion: &Completion, buffers: &mut Buffers) {
        match self.flight.end(completion.tag) {
            Purpose::Read { request, index, count } => {
                self.read_done(request, (index, count), completion, buffers);
                // What waits for a command has room for one.
                self.work_due |= self.requests.next_read().is_some() || self.flight.len() == 0;
                return;
            }
            Purpose::Retry { number } => self.retry_done(number, completion, buffers),
            Purpose::Frame { frame, at } => self.frame_done(frame, at, completion),
            Purpose::LogPage { page } => self.log_page_done(page, completion),
            Purpose::CheckpointPage { page } => self.checkpoint_page_done(page, completion),
            Purpose::Collect { read } => self.collected(read, completion, buffers),
            Purpose::Reset { chunk } => self.reset_done(chunk, completion),
        }
        self.work_due = true;
    }
}

impl Target for OxBlock {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, now: Nanos, request: &BlockRequest, _out: &mut Out<BlockReply>) -> Admission {
        self.now = now;
        match self.take_request(*request) {
            Ok(()) => Admission::Taken,
            Err(_) => Admission::Full,
        }
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<BlockReply>) {
        self.now = now;
        self.completed(&completion, &mut out.buffers);
        self.give_replies(out);
    }

    fn has_deadlines(&self) -> bool {
        false
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        self.now = now;
        while out.has_room() {
            let Some(command) = self.next_command(&mut out.buffers) else { break };
            out.command(command);
        }
        self.give_replies(out);
    }

    fn prefetch(&self, blocks: &[u64]) {
        self.l2p.fetch(blocks.iter().copied().filter(|&block| block < self.sizes.blocks));
    }

    fn prefetches(&self) -> bool {
        true
    }

    fn check(&self) {
        self.check_all();
    }

    fn counters(&self) -> Vec<Counter> {
        let gauge = |name, about, value| Counter { name, about, value: CounterValue::Gauge(value) };
        let mut counters = self.stats.counters();
        counters.extend([
            gauge("mapped_sectors", "Blocks that hold something.", self.l2p.count_mapped()),
            gauge("free_chunks", "Chunks that can be opened.", u64::from(self.space.pool.free())),
            gauge("good_chunks", "Chunks that are not bad.", u64::from(self.space.pool.good())),
            gauge(
                "chunks_needed",
                "Good chunks below which changes may be refused.",
                u64::from(self.sizes.chunks_needed),
            ),
            gauge("log_pages", "Pages of the log that recovery would read.", self.log.pages()),
            gauge("read_only", "1 if no changes are taken.", u64::from(self.refuses_changes().is_some())),
        ]);
        counters
    }

    fn summary(&self) -> String {
        format!(
            "{:?}; {} free chunks of {} good, {} owed, {} spare, {} dead; {} transactions gathered, {} to be logged, {} in the \
             log; log {:?}; checkpoint being written: {}; {} commands; {:?}",
            self.changes,
            self.space.pool.free(),
            self.space.pool.good(),
            self.space.owed(),
            self.space.spare(),
            self.space.dead_count(),
            self.parts.len(),
            self.commits.len(),
            self.logged.len(),
            (self.log.tail(), self.log.durable(), self.log.next()),
            self.checkpoint.is_writing(),
            self.flight.len(),
            self.stats,
        )
    }
}

impl BlockTarget for OxBlock {
    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn block_count(&self) -> u64 {
        self.sizes.blocks
    }

    fn is_mapped(&self, block: u64) -> Option<bool> {
        Some(self.l2p.get(block) != Mapped::Nowhere)
    }
}
