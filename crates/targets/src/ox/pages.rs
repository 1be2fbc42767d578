//! Pages of the log and of checkpoints become commands, and their ends are told to the journal.
//!
//! Deliberately not here: where pages go and what is on media by them (`journal`), what becomes true by them (`commit`).

use super::flight::Purpose;
use super::space::{Claim, Live, Space};
use super::state::{Ending, Ox};
use super::store::Store;
use super::write_buffer::StreamIndex;
use crate::journal::{Oldest, PageChunks, PageKind, PageWrite};
use ocssd_base::SlabKey;
use ocssd_ftl::log::Lsn;
use ocssd_ftl::{ChunkIndex, UnitIndex};
use ocssd_lightnvm::{Buffers, Completion, Op};

impl<L: Live> PageChunks for Space<L> {
    fn open_for(&mut self, units: &[UnitIndex], kind: PageKind) -> Option<ChunkIndex> {
        let claim = match kind {
            PageKind::Log => Claim::Log,
            PageKind::Checkpoint => Claim::Checkpoint,
        };
        self.open(units, claim)
    }

    fn has_page(&mut self, chunk: ChunkIndex, number: u64) {
        Self::has_page(self, chunk, number);
    }

    fn close_pages(&mut self, chunk: ChunkIndex) {
        self.close(chunk);
    }

    fn closed_pages(&self) -> Vec<ChunkIndex> {
        Self::closed_pages(self)
    }

    fn look_at_pages(&mut self, chunk: ChunkIndex, oldest: Oldest) {
        assert!(!self.role(chunk).is_programmed_in(), "chunk {} holds no pages", chunk.0);
        self.look(chunk, Lsn(0), oldest);
    }
}

impl<S: Store> Ox<S> {
    /// A page that is not full waits while nobody waits for it.
    fn is_page_awaited(&self) -> bool {
        S::is_log_awaited(self) && !self.group_commit.is_waiting()
            || self.collection_waits_for_log()
            || self.users_wait_for_copies()
            || self.dead_chunks_wait_for_copies()
            || self.ending != Ending::No
            || self.space.waits_for_log(self.journal.log.durable())
    }

    /// True if users have no place to write to, and chunks would be free once copies in the log are true.
    fn users_wait_for_copies(&self) -> bool {
        self.buffer.ready(StreamIndex::USER) > 0 && self.are_victims_copied()
    }

    /// True if nothing else goes on, and chunks that died are held by copies from them that only the log must still make true:
    /// users wrote again what was copied, so their victims are forgotten and nobody waits for the page, but for room they all may.
    fn dead_chunks_wait_for_copies(&self) -> bool {
        self.flight.len() == 0 && !self.logged.is_empty() && self.space.is_a_dead_chunk_held()
    }

    /// Gives out pages of the log. True if any was.
    pub(crate) fn write_log(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while self.flight.has_room(1) {
            let is_awaited = self.is_page_awaited();
            let Some(write) = self.journal.next_log_page(is_awaited, &mut self.space, buffers) else { break };
            if !self.journal.log.is_filling() {
                self.group_commit.page_given_out();
            }
            self.send_page(write);
            any = true;
        }
        any
    }

    /// Begins a checkpoint when one is due, and goes on with it. True if anything was done.
    pub(crate) fn write_checkpoint(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        if !self.journal.is_writing() && self.is_checkpoint_due() {
            self.begin_checkpoint(buffers);
            any = true;
        }
        while self.flight.has_room(1) {
            let Some(write) = self.journal.next_checkpoint_page(&mut self.space, buffers) else { break };
            self.send_page(write);
            any = true;
        }
        any
    }

    fn send_page(&mut self, write: PageWrite) {
        let PageWrite { kind, key: page, at, sectors, buffer, is_again } = write;
        let (purpose, fresh) = match kind {
            PageKind::Log => (Purpose::LogPage { page }, &mut self.stats.log_written),
            PageKind::Checkpoint => (Purpose::CheckpointPage { page }, &mut self.stats.checkpoint_written),
        };
        let written = if is_again { &mut self.stats.rewritten } else { fresh };
        *written += u64::from(sectors);
        self.stats.programmed += u64::from(sectors);
        let addresses = self.run_at(at, sectors);
        self.flight.send(purpose, Op::Write { fua: true }, addresses, Some(buffer), 0);
    }

    /// A write of a page ended.
    pub(crate) fn page_done(&mut self, kind: PageKind, page: SlabKey, completion: &Completion) {
        let status = completion.status;
        match kind {
            PageKind::Log => self.journal.log_page_done(page, status, &mut self.space),
            PageKind::Checkpoint => {
                let whole = self.journal.checkpoint_page_done(page, status, &mut self.space);
                self.stats.checkpoints += u64::from(whole.is_some());
            }
        }
        if status.is_drive_failure() {
            self.stop(status);
        }
        self.work_due = true;
    }
}
