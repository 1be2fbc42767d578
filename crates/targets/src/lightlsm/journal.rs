//! The log of changes and checkpoints of the catalog: what they say of the instance, and their pages as commands.
//!
//! Deliberately not here: where pages go and what is on media by them (`crate::journal`), what is logged and when a checkpoint is
//! due (`commit`), reading them (`mount`).

use super::flight::Purpose;
use super::sizes::{INFO_BYTES, Kept};
use super::space::{Role, Space};
use super::state::LightLsm;
use crate::journal::{Oldest, PageChunks, PageKind, PageWrite, decode_info, encode_info};
use ocssd_base::SlabKey;
use ocssd_ftl::checkpoint::SectionName;
use ocssd_ftl::log::Lsn;
use ocssd_ftl::{Append, ChunkIndex, InstanceGeometry, UnitIndex};
use ocssd_lightnvm::{Addresses, Buffers, Op, Ppa, Status};

/// The section about the instance.
pub const INFO: SectionName = *b"lightlsm";
/// The section of the catalog.
pub const CATALOG: SectionName = *b"catalog ";
/// The section of how often chunks were reset; none of extents.
pub const WEAR: SectionName = *b"wear    ";
/// The layout of the first two; raised when an older reader would misread them.
const VERSION: u32 = 1;

/// What a checkpoint says of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    pub chunk: u32,
    pub units: u32,
    pub lines: u32,
    pub kept: Kept,
    /// The generation of the pages that replay begins with.
    pub generation: u64,
    /// The page that replay begins with.
    pub start: Lsn,
    /// The newest transaction that the catalog has.
    pub applied: u64,
    /// A number that no table had.
    pub next_number: u64,
}

impl Info {
    pub fn encode(&self) -> [u8; INFO_BYTES] {
        let small = [self.chunk, self.units, self.lines, self.kept.tables_max, 0];
        let large = [self.kept.capacity_bytes, self.generation, self.start.0, self.applied, self.next_number];
        encode_info(VERSION, small, large)
    }

    /// # Errors
    /// A sentence, if the bytes are of another layout.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let ([chunk, units, lines, tables_max, _], large) =
            decode_info::<INFO_BYTES, 5, 5>(bytes, VERSION, "an instance of lightlsm")?;
        let [capacity_bytes, generation, start, applied, next_number] = large;
        let (kept, start) = (Kept { tables_max, capacity_bytes }, Lsn(start));
        Ok(Self { chunk, units, lines, kept, generation, start, applied, next_number })
    }
}

/// A run of sectors of a chunk, as the drive calls it.
pub fn run_at(shape: &InstanceGeometry, at: Append, count: u32) -> Addresses {
    assert!(at.sector + count <= shape.sectors_per_chunk(), "a run leaves its chunk");
    Addresses::Run { first: Ppa::new(shape.chunk_id(at.chunk), at.sector), count }
}

impl PageChunks for Space {
    fn open_for(&mut self, units: &[UnitIndex], kind: PageKind) -> Option<ChunkIndex> {
        self.open_pages(units, Role::of(kind))
    }

    fn has_page(&mut self, chunk: ChunkIndex, number: u64) {
        Self::has_page(self, chunk, number);
    }

    fn close_pages(&mut self, chunk: ChunkIndex) {
        self.pool.close(chunk);
    }

    fn closed_pages(&self) -> Vec<ChunkIndex> {
        Self::closed_pages(self)
    }

    fn look_at_pages(&mut self, chunk: ChunkIndex, oldest: Oldest) {
        Self::look_at_pages(self, chunk, oldest);
    }
}

impl LightLsm {
    /// Gives out pages of the log: full ones, and others if an answer waits for them. True if any was.
    pub(super) fn write_log(&mut self, buffers: &mut Buffers) -> bool {
        let (mut any, is_awaited) = (false, !self.awaited.is_empty());
        while self.flight.has_room(1) {
            let Some(write) = self.journal.next_log_page(is_awaited, &mut self.space, buffers) else { break };
            self.send_page(write);
            any = true;
        }
        any
    }

    /// Gives out pages of a checkpoint. True if any was.
    pub(super) fn write_checkpoint(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
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
        let addresses = run_at(&self.space.shape, at, sectors);
        self.flight.send(purpose, Op::Write { fua: true }, addresses, Some(buffer), 0);
    }

    /// A write of a page ended.
    pub(super) fn page_done(&mut self, kind: PageKind, page: SlabKey, status: Status) {
        if !status.is_success() {
            let sectors = if kind == PageKind::Log { self.sizes.page } else { self.sizes.unit };
            self.stats.failed += u64::from(sectors);
        }
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_instance_comes_back() {
        let kept = Kept { tables_max: 9, capacity_bytes: 1 << 40 };
        let info = Info {
            chunk: 1,
            units: 2,
            lines: 3,
            kept,
            generation: 5,
            start: Lsn(6),
            applied: 7,
            next_number: 8,
        };
        let mut bytes = info.encode();
        assert_eq!(Info::decode(&bytes), Ok(info));
        assert!(Info::decode(&bytes[1..]).is_err_and(|error| error.contains("72 bytes")));
        bytes[0] = 9;
        assert!(Info::decode(&bytes).is_err_and(|error| error.contains("newer program")));
    }
}
