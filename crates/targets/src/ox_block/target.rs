//! What the host sees: the contract of a block target, and which procedure a call reaches.
//!
//! Deliberately not here: the procedures.

use super::sizes::TRANSACTION_BLOCKS_MAX;
use super::store::OxBlock;
use super::transaction::TransactionFate;
use crate::ox::state::Ending;
use crate::refusal::{Takes, refusal};
use ocssd_base::Nanos;
use ocssd_ftl::Mapped;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Counter, CounterValue};
use ocssd_lightnvm::transaction::Transactions;
use ocssd_lightnvm::{Admission, Completion, Out, Target};

impl OxBlock {
    fn take_request(&mut self, request: BlockRequest) -> Result<(), BlockRequest> {
        let takes = Takes {
            blocks: self.sizes.blocks,
            is_shut_down: self.ending != Ending::No,
            refuses_changes: self.refuses_changes(),
        };
        let role = self.store.transactions.role_of(request.tag);
        if let Some(status) = refusal(&request, takes).or_else(|| self.refuses_role(&request, role)) {
            self.store.requests.answer(request, status)?;
            self.store.transactions.is_sent(&request, role, TransactionFate::Refused);
            return Ok(());
        }
        let key = self.store.requests.take(request, role)?;
        self.store.transactions.is_sent(&request, role, TransactionFate::Taken);
        match request.op {
            BlockOp::Flush if role.is_none() => self.take_flush(key),
            BlockOp::Shutdown => {
                assert!(self.store.shutdown.is_none(), "a second shutdown was not refused");
                self.abort_all();
                (self.store.shutdown, self.ending) = (Some(key), Ending::Asked);
            }
            _ => {}
        }
        self.work_due = true;
        Ok(())
    }

    fn give_replies(&mut self, out: &mut Out<BlockReply>) {
        while let Some(reply) = self.store.requests.poll_reply() {
            out.reply(reply);
        }
    }
}

impl OxBlock {
    /// Blocks that hold something. Of a map in pages, sectors of data that are valid.
    fn mapped_sectors(&self) -> u64 {
        match &self.store.cache {
            None => self.store.l2p.count_mapped(),
            Some(cache) => {
                let pages = u64::try_from(cache.pages.homes().count()).expect("an index");
                assert!(pages <= self.space.live.total(), "pages of the map lie where nothing is valid");
                let uncommitted = self.store.transactions.uncommitted;
                self.space.live.total() - pages - uncommitted
            }
        }
    }
}

impl Target for OxBlock {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, now: Nanos, request: &BlockRequest, out: &mut Out<BlockReply>) -> Admission {
        self.now = now;
        if out.has_room()
            && let Some(command) = self.take_direct_read(request, &mut out.buffers)
        {
            out.command(command);
            return Admission::Taken;
        }
        match self.take_request(*request) {
            Ok(()) => Admission::Taken,
            Err(_) => Admission::Full,
        }
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<BlockReply>) {
        self.now = now;
        self.completed(now, completion, &mut out.buffers);
        self.give_replies(out);
    }

    fn on_deadline(&mut self, now: Nanos, _out: &mut Out<BlockReply>) {
        self.flight.on_deadline(now);
    }

    fn deadline(&self) -> Option<Nanos> {
        self.flight.deadline()
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
        self.store.l2p.fetch(blocks.iter().copied().filter(|&block| block < self.sizes.blocks));
    }

    fn prefetches(&self) -> bool {
        true
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
            gauge("mapped_sectors", "Blocks that hold something.", self.mapped_sectors()),
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
        if let Some(cache) = &self.store.cache {
            let sectors = |count: usize| u64::try_from(count).expect("an index");
            counters.extend([
                gauge("map_page_blocks", "Blocks of a page of the map.", cache.pages.size().sectors()),
                gauge("map_pages", "Pages of the map.", u64::from(cache.pages.count())),
                gauge("map_pages_cached", "Of these, in memory.", sectors(cache.pages.here())),
            ]);
        }
        counters
    }

    fn summary(&self) -> String {
        format!("{}; {:?}", self.summary_of_parts(), self.store.stats)
    }
}

impl BlockTarget for OxBlock {
    fn block_bytes(&self) -> u32 {
        self.sector_bytes
    }

    fn block_count(&self) -> u64 {
        self.sizes.blocks
    }

    fn atomic_blocks(&self) -> u32 {
        TRANSACTION_BLOCKS_MAX
    }

    fn transactions(&mut self) -> Option<&mut dyn Transactions> {
        Some(self)
    }

    fn is_mapped(&self, block: u64) -> Option<bool> {
        let Some(cache) = &self.store.cache else {
            return Some(self.store.l2p.get(block) != Mapped::Nowhere);
        };
        let page = cache.pages.page_of(block);
        if cache.pages.is_here(page) {
            return Some(self.store.l2p.get(block) != Mapped::Nowhere);
        }
        // Of a page that is elsewhere nothing is known; one that is nowhere holds nothing.
        let is_elsewhere = cache.pages.home(page).is_some() || cache.pages.writing(page).is_some();
        (!is_elsewhere).then_some(false)
    }
}
