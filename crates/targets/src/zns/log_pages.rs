//! Pages of the log and of checkpoints become commands, and their ends are told to the journal; who waits for the log hears of it.
//!
//! A page that is not full waits until somebody waits for it. Deliberately not here: where pages go and what is on media by them
//! (`crate::journal`), what is in them (`journal`, `checkpoint`).

use super::flight::Purpose;
use super::space::{Role, Space};
use super::state::Zns;
use crate::journal::{Oldest, PageChunks, PageKind, PageWrite};
use ocssd_base::SlabKey;
use ocssd_ftl::{ChunkIndex, UnitIndex};
use ocssd_lightnvm::{Buffers, Completion, Op};

impl PageChunks for Space {
    fn open_for(&mut self, units: &[UnitIndex], kind: PageKind) -> Option<ChunkIndex> {
        self.open(units, Role::of(kind))
    }

    fn has_page(&mut self, chunk: ChunkIndex, number: u64) {
        Self::has_page(self, chunk, number);
    }

    fn close_pages(&mut self, chunk: ChunkIndex) {
        self.close(chunk);
    }

    fn closed_pages(&self) -> Vec<ChunkIndex> {
        [Role::Log, Role::Checkpoint].into_iter().flat_map(|role| self.closed(role)).collect()
    }

    fn look_at_pages(&mut self, chunk: ChunkIndex, oldest: Oldest) {
        let kind = match self.role(chunk) {
            Role::Log => PageKind::Log,
            Role::Checkpoint => PageKind::Checkpoint,
            Role::Data | Role::Tail => unreachable!("chunk {} holds no pages", chunk.0),
        };
        self.look(chunk, oldest.of(kind));
    }
}

impl Zns {
    /// Gives out pages of the log, and ends what waited for it. True if anything was done.
    pub(super) fn write_log(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = self.end_waits();
        while self.flight.has_room(1) {
            let is_awaited = self.log_awaited > self.journal.log.durable();
            let Some(write) = self.journal.next_log_page(is_awaited, &mut self.space, buffers) else { break };
            self.send_page(write);
            any = true;
        }
        any
    }

    /// Requests that waited for the log, and for nothing else.
    fn end_waits(&mut self) -> bool {
        let mut any = false;
        while let Some(&(until, request)) = self.waits.front() {
            if !self.journal.is_durable(until) {
                break;
            }
            self.waits.pop_front();
            assert!(self.waits.front().is_none_or(|&(next, _)| next >= until), "requests wait out of order");
            self.requests.part_done(request);
            any = true;
        }
        any
    }

    /// Begins a checkpoint when one is due, and goes on with it. True if anything was done.
    pub(super) fn write_checkpoint(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        if !self.journal.is_writing() && self.is_checkpoint_due() {
            self.begin_checkpoint();
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
    pub(super) fn page_done(&mut self, kind: PageKind, page: SlabKey, completion: &Completion) {
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
