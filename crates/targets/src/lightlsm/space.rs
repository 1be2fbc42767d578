//! The chunks of an instance: what each is for, how many are spoken for, and which are on their way to be free.
//!
//! A chunk of content belongs to one table or log, which has a reservation for as many as its bytes take before it opens any.
//! What was let go of is closed if the drive resets closed chunks only, then reset. Of the free chunks of a unit the one that was
//! reset least often is opened first, so that those which a table kept for long catch up with the others. Deliberately not here:
//! closing and resets as commands (`reset`), who gets a reservation (`append`), emptying chunks for their wear: tables stay where
//! they are until they are deleted.

use super::sizes::Sizes;
use crate::chunk_wear::ChunkWear;
use crate::journal::{Oldest, PageKind};
use ocssd_base::usize_of;
use ocssd_ftl::{ChunkIndex, ChunkPool, ChunkUse, InstanceGeometry, UnitIndex};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// Units differ by this part of their chunks in free ones at most because they differ in wear (chosen: tables must lie on units
/// that have room).
const WEAR_PART: u32 = 8;

/// What a chunk is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A table or a log.
    Content,
    /// The log.
    Log,
    /// Checkpoints.
    Checkpoint,
}

impl Role {
    /// By the label that a chunk has in its pool.
    const ALL: [Self; 3] = [Self::Content, Self::Log, Self::Checkpoint];

    const fn label(self) -> u8 {
        self as u8
    }

    /// That of chunks with pages of this kind.
    pub const fn of(kind: PageKind) -> Self {
        match kind {
            PageKind::Log => Self::Log,
            PageKind::Checkpoint => Self::Checkpoint,
        }
    }
}

/// The chunks.
#[derive(Clone, Debug)]
pub struct Space {
    pub shape: InstanceGeometry,
    pub pool: ChunkPool,
    /// How often each chunk was reset; nothing is known of extents, which wear as their block target has it.
    pub wear: ChunkWear<()>,
    /// Resets of all chunks of each unit.
    unit_resets: Vec<u64>,
    /// The number of the newest page in a chunk of the log or of checkpoints.
    newest: BTreeMap<ChunkIndex, u64>,
    /// Chunks that are to be written to their end: from this sector on.
    closing: VecDeque<(ChunkIndex, u32)>,
    /// Chunks that are to be reset.
    dead: VecDeque<ChunkIndex>,
    /// Open chunks of pages that are not written any more.
    orphans: Vec<(ChunkIndex, u32)>,
    log_chunks: u32,
    checkpoint_chunks: u32,
    log_quota: u32,
    checkpoint_quota: u32,
    /// Chunks that are reserved and not opened.
    reserved: u32,
    /// Chunks of content that belong to a table or log.
    content: u32,
}

impl Space {
    pub fn new(shape: InstanceGeometry, pool: ChunkPool, wear: ChunkWear<()>, sizes: &Sizes) -> Self {
        let mut unit_resets = vec![0; usize_of(shape.units())];
        for chunk in (0..shape.chunks()).map(ChunkIndex) {
            unit_resets[shape.split_chunk(chunk).1.index()] += u64::from(wear.resets(chunk));
        }
        Self {
            newest: BTreeMap::new(),
            closing: VecDeque::new(),
            dead: VecDeque::new(),
            orphans: Vec::new(),
            log_chunks: 0,
            checkpoint_chunks: 0,
            log_quota: sizes.log_chunks,
            checkpoint_quota: sizes.checkpoint_chunks,
            reserved: 0,
            content: 0,
            shape,
            pool,
            wear,
            unit_resets,
        }
    }

    /// What speaks for a unit when a table is placed: its free chunks, and one more for each reset that its chunks are behind
    /// those of the most worn unit, on average.
    pub fn worth_of_unit(&self, unit: UnitIndex) -> u32 {
        let lines = self.shape.lines();
        let most = self.unit_resets.iter().copied().max().unwrap_or(0);
        let behind = (most - self.unit_resets[unit.index()]) / u64::from(lines);
        let bonus = u32::try_from(behind).map_or(u32::MAX, |behind| behind).min(lines / WEAR_PART);
        self.pool.free_of_unit(unit) + bonus
    }

    /// Opens a free chunk on the unit of these that has the most: the least worn one there. Cost: the free chunks of the unit.
    fn open_least_worn(&mut self, units: &[UnitIndex]) -> Option<ChunkIndex> {
        let Self { pool, wear, .. } = self;
        let most = units.iter().max_by_key(|&&unit| (pool.free_of_unit(unit), Reverse(unit.0)));
        let unit = *most?;
        let chunk = pool.open_worth_most(&[unit], |chunk| Some(u32::MAX - wear.resets(chunk)))?;
        assert_eq!(self.shape.split_chunk(chunk).1, unit, "chunk {} is on another unit", chunk.0);
        Some(chunk)
    }

    /// Chunks of the log and of checkpoints that are not taken yet, and must be there when they are.
    const fn owed(&self) -> u32 {
        let log = self.log_quota.saturating_sub(self.log_chunks);
        log + self.checkpoint_quota.saturating_sub(self.checkpoint_chunks)
    }

    /// Free chunks that nobody has spoken for.
    pub const fn available(&self) -> u32 {
        self.pool.free().saturating_sub(self.owed() + self.reserved)
    }

    /// Speaks for `count` chunks; false if there are not as many.
    pub const fn reserve(&mut self, count: u32) -> bool {
        let has = count <= self.available();
        if has {
            self.reserved += count;
        }
        has
    }

    /// Gives up a reservation of chunks that were not opened.
    pub fn unreserve(&mut self, count: u32) {
        assert!(count <= self.reserved, "{count} chunks of {} reserved are given up", self.reserved);
        self.reserved -= count;
    }

    /// Opens a chunk that was reserved: on `unit`, or on another if that has none.
    pub fn open_content(&mut self, unit: UnitIndex) -> Option<ChunkIndex> {
        assert!(self.reserved > 0, "a chunk is opened that nobody reserved");
        let all: Vec<UnitIndex> = (0..self.shape.units()).map(UnitIndex).collect();
        let chunk = self.open_least_worn(&[unit]).or_else(|| self.open_least_worn(&all))?;
        self.reserved -= 1;
        assert!(!self.newest.contains_key(&chunk), "chunk {} has pages of before", chunk.0);
        self.adopt_content(chunk);
        Some(chunk)
    }

    /// A chunk belongs to a table or log.
    pub fn adopt_content(&mut self, chunk: ChunkIndex) {
        assert!(chunk.0 < self.shape.chunks(), "chunk {} is beyond the instance", chunk.0);
        self.pool.set_label(chunk, Role::Content.label());
        self.content += 1;
    }

    /// Opens a chunk for pages, on any of these units.
    pub fn open_pages(&mut self, units: &[UnitIndex], role: Role) -> Option<ChunkIndex> {
        let chunk = self.open_least_worn(units)?;
        self.set_pages(chunk, role);
        Some(chunk)
    }

    /// A chunk is in use for pages.
    pub fn set_pages(&mut self, chunk: ChunkIndex, role: Role) {
        assert_ne!(self.pool.get(chunk), ChunkUse::Free, "pages are in chunk {}, which is free", chunk.0);
        self.pool.set_label(chunk, role.label());
        self.newest.remove(&chunk);
        match role {
            Role::Content => unreachable!("content has no pages"),
            Role::Log => self.log_chunks += 1,
            Role::Checkpoint => self.checkpoint_chunks += 1,
        }
    }

    pub fn role(&self, chunk: ChunkIndex) -> Role {
        Role::ALL[usize::from(self.pool.label(chunk))]
    }

    /// A page of the log or of a checkpoint is in a chunk.
    pub fn has_page(&mut self, chunk: ChunkIndex, number: u64) {
        assert!(self.role(chunk) != Role::Content, "a page is in chunk {} of content", chunk.0);
        let newest = self.newest.entry(chunk).or_default();
        *newest = (*newest).max(number);
    }

    /// Looks whether a closed chunk of pages is needed.
    pub fn look_at_pages(&mut self, chunk: ChunkIndex, oldest: Oldest) {
        if self.pool.get(chunk) != ChunkUse::Closed {
            return;
        }
        let kind = match self.role(chunk) {
            Role::Content => panic!("chunk {} of content is judged by pages", chunk.0),
            Role::Log => PageKind::Log,
            Role::Checkpoint => PageKind::Checkpoint,
        };
        if self.newest.get(&chunk).copied().unwrap_or(0) < oldest.of(kind) {
            self.pool.died(chunk);
            self.dead.push_back(chunk);
        }
    }

    /// Chunks of pages that are closed.
    pub fn closed_pages(&self) -> Vec<ChunkIndex> {
        let is = |&(chunk, of): &(ChunkIndex, ChunkUse)| {
            of == ChunkUse::Closed && self.role(chunk) != Role::Content
        };
        self.pool.iter().filter(is).map(|(chunk, _)| chunk).collect()
    }

    /// Nothing in a chunk of content is needed any more. If it is open it was written up to `pointer`.
    pub fn let_go(&mut self, chunk: ChunkIndex, pointer: u32) {
        assert_eq!(self.role(chunk), Role::Content, "chunk {} holds pages", chunk.0);
        assert!(self.content > 0, "more chunks are let go of than there are");
        self.content -= 1;
        self.dispose(chunk, pointer);
    }

    /// A chunk that belongs to nobody goes on its way to be free.
    pub fn dispose(&mut self, chunk: ChunkIndex, pointer: u32) {
        assert!(pointer <= self.shape.sectors_per_chunk(), "chunk {} is written up to {pointer}", chunk.0);
        match self.pool.get(chunk) {
            ChunkUse::Open if pointer == 0 => self.pool.give_back(chunk),
            ChunkUse::Open => self.closing.push_back((chunk, pointer)),
            ChunkUse::Closed => {
                self.pool.died(chunk);
                self.dead.push_back(chunk);
            }
            ChunkUse::Dead => self.dead.push_back(chunk),
            other => unreachable!("chunk {} is let go of and {other:?}", chunk.0),
        }
    }

    /// An open chunk of pages for which there is no place any more is closed and reset like one of content: what is in it was
    /// read, and the checkpoint that ends the mount has it.
    pub fn orphan(&mut self, chunk: ChunkIndex, pointer: u32) {
        assert_ne!(self.role(chunk), Role::Content, "chunk {} holds no pages", chunk.0);
        self.orphans.push((chunk, pointer));
    }

    /// Orphans go on their way: the mount is over.
    pub fn dispose_orphans(&mut self) {
        for (chunk, pointer) in std::mem::take(&mut self.orphans) {
            self.dispose(chunk, pointer);
        }
    }

    /// The next chunk to be written to its end, and from where on.
    pub fn next_closing(&mut self) -> Option<(ChunkIndex, u32)> {
        self.closing.pop_front()
    }

    /// A chunk is written up to `pointer`, and needs more.
    pub fn close_on(&mut self, chunk: ChunkIndex, pointer: u32) {
        assert_eq!(self.pool.get(chunk), ChunkUse::Open, "chunk {} is filled and not open", chunk.0);
        self.closing.push_back((chunk, pointer));
    }

    /// A chunk is written to its end, or may be reset as it is.
    pub fn closed(&mut self, chunk: ChunkIndex) {
        assert_eq!(self.pool.get(chunk), ChunkUse::Open, "chunk {} is closed twice", chunk.0);
        self.pool.close(chunk);
        self.pool.died(chunk);
        self.dead.push_back(chunk);
    }

    /// The next chunk to reset.
    pub fn next_dead(&mut self) -> Option<ChunkIndex> {
        self.dead.pop_front()
    }

    /// Chunks that wait to be closed or reset.
    pub fn on_their_way(&self) -> usize {
        self.dead.len() + self.closing.len()
    }

    /// A dead chunk was reset, or cannot be.
    pub fn reset_done(&mut self, chunk: ChunkIndex, is_good: bool) {
        match self.role(chunk) {
            Role::Content => {}
            Role::Log => self.log_chunks -= 1,
            Role::Checkpoint => self.checkpoint_chunks -= 1,
        }
        assert_eq!(self.pool.get(chunk), ChunkUse::Dead, "chunk {} was reset and was not dead", chunk.0);
        self.pool.set_label(chunk, Role::Content.label());
        self.newest.remove(&chunk);
        if is_good {
            self.wear.on_reset(chunk);
            self.unit_resets[self.shape.split_chunk(chunk).1.index()] += 1;
            self.pool.freed(chunk);
        } else {
            self.pool.mark_bad(chunk);
        }
    }

    /// Chunks that belong to tables and logs.
    pub const fn content_chunks(&self) -> u32 {
        self.content
    }

    /// Chunks that are reserved and not opened.
    pub const fn reserved(&self) -> u32 {
        self.reserved
    }

    /// Asserts that counts agree.
    pub fn check(&self) {
        self.pool.check();
        let in_use = |role: Role| {
            let is = |&(chunk, of): &(ChunkIndex, ChunkUse)| {
                !matches!(of, ChunkUse::Free | ChunkUse::Bad) && self.role(chunk) == role
            };
            u32::try_from(self.pool.iter().filter(is).count()).expect("fewer chunks than 2^32")
        };
        assert_eq!(in_use(Role::Log), self.log_chunks, "chunks of the log are counted wrong");
        assert_eq!(
            in_use(Role::Checkpoint),
            self.checkpoint_chunks,
            "chunks of checkpoints are counted wrong"
        );
        assert!(self.content <= in_use(Role::Content), "more chunks have content than are in use");
    }
}
