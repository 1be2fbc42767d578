//! The chunks of an instance: what each is for, and which may be reset.
//!
//! A chunk of a zone dies when the zone is reset, one of the log, of checkpoints or of tails when nothing in it is needed. A
//! dead chunk is reset once what killed it is durable. A chunk may be dead while the drive still holds it open, because
//! its zone was never written to its end: its *tip* says where. Where the log and checkpoints lie apart, the first lines are a
//! pool of their own. Deliberately not here: resets as commands.

use super::sizes::Sizes;
use crate::journal::PageKind;
use ocssd_base::usize_of;
use ocssd_ftl::log::Lsn;
use ocssd_ftl::{ChunkIndex, ChunkPool, ChunkUse, InstanceGeometry, UnitIndex};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a chunk is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A zone's.
    Data,
    /// The log.
    Log,
    /// Checkpoints.
    Checkpoint,
    /// Tails.
    Tail,
}

impl Role {
    /// That of chunks with pages of this kind.
    pub const fn of(kind: PageKind) -> Self {
        match kind {
            PageKind::Log => Self::Log,
            PageKind::Checkpoint => Self::Checkpoint,
        }
    }

    /// All of them, each at its place.
    const ALL: [Self; 4] = [Self::Data, Self::Log, Self::Checkpoint, Self::Tail];

    const fn index(self) -> usize {
        self as usize
    }

    /// The label of a chunk of this role in its pool.
    fn label(self) -> u8 {
        u8::try_from(self.index()).expect("four roles")
    }
}

/// Chunks the drive holds open on each unit for the target itself: the log's, a checkpoint's, tails'.
const OPEN_BESIDE: u32 = 3;
/// Zones that are written side by side may leave a unit with fewer free chunks than another by one in so many of its chunks
/// (chosen: units fill alike but for that, so that wide zones find a chunk on each).
const UNEVEN_OF: u32 = 32;

/// The chunks.
#[derive(Clone, Debug)]
pub struct Space {
    pub shape: InstanceGeometry,
    /// Chunks for everything, or for all but the log and checkpoints; what is not among them is bad here.
    pool: ChunkPool,
    /// The first lines, if they are kept for the log and checkpoints.
    metadata: Option<ChunkPool>,
    /// The number of the newest page in a chunk of the log or of checkpoints.
    newest: BTreeMap<ChunkIndex, u64>,
    /// Where chunks that nobody writes any more are open.
    tips: BTreeMap<ChunkIndex, u32>,
    /// Chunks that were bound and not written: they need no reset.
    unwritten: BTreeSet<ChunkIndex>,
    /// Dead chunks, and the page of the log before which everything must be durable.
    dead: VecDeque<(Lsn, ChunkIndex)>,
    /// The latest of these pages.
    awaited: Lsn,
    /// By role: chunks, and how many it may rely on.
    taken: [u32; 4],
    quota: [u32; 4],
    /// By unit: chunks of zones the drive holds open, or will.
    open_on: Vec<u32>,
    /// Most of these for zones; none for no limit.
    open_max: Option<u32>,
}

impl Space {
    pub fn new(
        shape: InstanceGeometry,
        groups: &[u32],
        usage: impl Fn(ChunkIndex) -> ChunkUse,
        (sizes, open_per_unit): (&Sizes, u32),
    ) -> Self {
        let open_on = vec![0; usize_of(shape.units())];
        let lines = sizes.metadata_lines;
        assert!(lines <= shape.lines(), "{lines} lines are kept of {}", shape.lines());
        let of_all = |chunk: ChunkIndex| {
            if shape.split_chunk(chunk).0.0 < lines { ChunkUse::Bad } else { usage(chunk) }
        };
        let pool = ChunkPool::new(&shape, groups, of_all);
        let metadata = (lines > 0).then(|| ChunkPool::of_lines(lines, groups, &usage));
        Self {
            newest: BTreeMap::new(),
            tips: BTreeMap::new(),
            unwritten: BTreeSet::new(),
            dead: VecDeque::new(),
            awaited: Lsn(0),
            taken: [0; 4],
            quota: [0, sizes.log_chunks, sizes.checkpoint_chunks, sizes.tail_chunks],
            open_on,
            open_max: (open_per_unit > 0).then(|| open_per_unit.saturating_sub(OPEN_BESIDE)),
            shape,
            pool,
            metadata,
        }
    }

    /// True of chunks that are kept for the log and checkpoints.
    pub fn is_metadata(&self, chunk: ChunkIndex) -> bool {
        chunk < self.first_of_zones()
    }

    /// The first chunk that may hold zones.
    pub fn first_of_zones(&self) -> ChunkIndex {
        ChunkIndex(self.metadata.as_ref().map_or(0, ChunkPool::chunks))
    }

    fn pool_of(&mut self, chunk: ChunkIndex) -> &mut ChunkPool {
        let Self { pool, metadata, .. } = self;
        metadata.as_mut().filter(|metadata| chunk.0 < metadata.chunks()).unwrap_or(pool)
    }

    fn pool_with(&self, chunk: ChunkIndex) -> &ChunkPool {
        let metadata = self.metadata.as_ref().filter(|metadata| chunk.0 < metadata.chunks());
        metadata.unwrap_or(&self.pool)
    }

    /// What a chunk is used for.
    pub fn usage(&self, chunk: ChunkIndex) -> ChunkUse {
        self.pool_with(chunk).get(chunk)
    }

    /// All chunks, and what they are used for.
    pub fn uses(&self) -> impl Iterator<Item = (ChunkIndex, ChunkUse)> {
        let metadata = self.metadata.iter().flat_map(ChunkPool::iter);
        metadata.chain(self.pool.iter().skip(self.first_of_zones().index()))
    }

    /// Free chunks for zones and tails, and for all else where that has no lines of its own.
    pub const fn free(&self) -> u32 {
        self.pool.free()
    }

    /// Those of them that are not bad.
    pub const fn good(&self) -> u32 {
        self.pool.good()
    }

    /// Chunks of lines kept for the log and checkpoints that are not bad, and how many must be; none where there are no such lines.
    pub fn good_metadata(&self) -> Option<(u32, u32)> {
        let quota = self.quota(Role::Log) + self.quota(Role::Checkpoint);
        self.metadata.as_ref().map(|pool| (pool.good(), quota))
    }

    /// Roles beside that of zones that share chunks with these.
    fn beside_zones(&self) -> &'static [Role] {
        if self.metadata.is_some() { &[Role::Tail] } else { &[Role::Log, Role::Checkpoint, Role::Tail] }
    }

    /// Chunks that may hold zones and are taken by something else.
    pub fn taken_beside_zones(&self) -> u32 {
        self.beside_zones().iter().map(|&role| self.taken(role)).sum()
    }

    /// Chunks of the log, of checkpoints and of tails that are not taken yet, and must be there when they are; of those that zones
    /// may have.
    pub fn owed(&self) -> u32 {
        let owed = |&role: &Role| self.quota(role).saturating_sub(self.taken(role));
        self.beside_zones().iter().map(owed).sum()
    }

    /// Chunks of a role.
    pub const fn taken(&self, role: Role) -> u32 {
        self.taken[role.index()]
    }

    /// Chunks a role may rely on.
    pub const fn quota(&self, role: Role) -> u32 {
        self.quota[role.index()]
    }

    /// Opens a free chunk on one of these units; for zones only where the target itself needs none, and the drive holds few open.
    pub fn open(&mut self, units: &[UnitIndex], role: Role) -> Option<ChunkIndex> {
        if role == Role::Data && self.pool.free() <= self.owed() {
            return None;
        }
        let Self { pool, metadata, open_on, open_max, .. } = self;
        let may =
            |unit: UnitIndex| role != Role::Data || open_max.is_none_or(|most| open_on[unit.index()] < most);
        let is_metadata = matches!(role, Role::Log | Role::Checkpoint);
        let pool = metadata.as_mut().filter(|_| is_metadata).unwrap_or(pool);
        let chunk = pool.open(units, |_, unit| may(unit))?;
        self.set_role(chunk, role);
        self.found_open(chunk);
        assert!(!self.tips.contains_key(&chunk), "chunk {} is opened again before it was reset", chunk.0);
        Some(chunk)
    }

    /// Opens a free chunk for a zone that is to lie apart from others, where the target itself needs none: of the units that have
    /// nearly the most free chunks, on that of the least load.
    pub fn open_apart<L: Ord>(
        &mut self,
        units: &[UnitIndex],
        load: impl Fn(UnitIndex) -> L,
    ) -> Option<ChunkIndex> {
        if self.pool.free() <= self.owed() {
            return None;
        }
        let Self { pool, open_on, open_max, shape, .. } = self;
        let may = |unit: UnitIndex| open_max.is_none_or(|most| open_on[unit.index()] < most);
        let most = units.iter().filter(|&&unit| may(unit)).map(|&unit| pool.free_of_unit(unit)).max()?;
        let nearly = most.saturating_sub((shape.chunks() / shape.units() / UNEVEN_OF).max(1));
        let rank = |pool: &ChunkPool, unit: UnitIndex| {
            may(unit).then(|| (pool.free_of_unit(unit) < nearly, load(unit)))
        };
        let chunk = pool.open_ranked(units, rank)?;
        self.set_role(chunk, Role::Data);
        self.found_open(chunk);
        assert!(!self.tips.contains_key(&chunk), "chunk {} is opened again before it was reset", chunk.0);
        Some(chunk)
    }

    /// Opens the free chunk of these units that is worth most, for what is moved to it, where the target itself needs none and one
    /// more is left for zones.
    pub fn open_worn(
        &mut self,
        units: &[UnitIndex],
        worth: impl Fn(ChunkIndex) -> Option<u32>,
    ) -> Option<ChunkIndex> {
        if self.pool.free() <= self.owed() + 1 {
            return None;
        }
        let Self { pool, open_on, open_max, .. } = self;
        let may = |unit: &&UnitIndex| open_max.is_none_or(|most| open_on[unit.index()] < most);
        let units: Vec<UnitIndex> = units.iter().filter(may).copied().collect();
        let chunk = pool.open_worth_most(&units, worth)?;
        self.set_role(chunk, Role::Data);
        self.found_open(chunk);
        Some(chunk)
    }

    pub fn unit_of(&self, chunk: ChunkIndex) -> UnitIndex {
        self.shape.split_chunk(chunk).1
    }

    /// A chunk is in use for `role`.
    pub fn set_role(&mut self, chunk: ChunkIndex, role: Role) {
        assert!(chunk.0 < self.shape.chunks(), "chunk {} is beyond the instance", chunk.0);
        self.pool_of(chunk).set_label(chunk, role.label());
        self.newest.remove(&chunk);
        self.taken[role.index()] += 1;
    }

    pub fn role(&self, chunk: ChunkIndex) -> Role {
        Role::ALL[usize::from(self.pool_with(chunk).label(chunk))]
    }

    /// A page of the log or of a checkpoint is in a chunk.
    pub fn has_page(&mut self, chunk: ChunkIndex, number: u64) {
        assert!(matches!(self.role(chunk), Role::Log | Role::Checkpoint), "a page is in chunk {}", chunk.0);
        let newest = self.newest.entry(chunk).or_default();
        *newest = (*newest).max(number);
    }

    /// A chunk that was opened is closed without being written.
    pub fn leave_unwritten(&mut self, chunk: ChunkIndex) {
        self.close(chunk);
        assert!(self.unwritten.insert(chunk), "chunk {} is closed twice", chunk.0);
    }

    /// True of a dead chunk that was never written, so that it is free as it is.
    pub fn take_unwritten(&mut self, chunk: ChunkIndex) -> bool {
        self.unwritten.remove(&chunk)
    }

    /// A chunk is open: those of zones are counted, for drives that allow few.
    pub fn found_open(&mut self, chunk: ChunkIndex) {
        let unit = self.unit_of(chunk);
        self.open_on[unit.index()] += u32::from(self.role(chunk) == Role::Data);
    }

    /// A chunk in use was found at a mount, open at a tip if nobody goes on with it.
    pub fn found_written(&mut self, chunk: ChunkIndex, tip: Option<u32>) {
        if self.usage(chunk) == ChunkUse::Open {
            self.found_open(chunk);
        } else {
            self.found_tip(chunk, tip);
        }
    }

    fn leave_open(&mut self, chunk: ChunkIndex) {
        if self.role(chunk) != Role::Data {
            return;
        }
        let unit = self.unit_of(chunk);
        assert!(self.open_on[unit.index()] > 0, "more chunks of unit {} are closed than were open", unit.0);
        self.open_on[unit.index()] -= 1;
    }

    /// A chunk that was being written takes no more: the drive closed it.
    pub fn close(&mut self, chunk: ChunkIndex) {
        self.leave_open(chunk);
        self.pool_of(chunk).close(chunk);
    }

    /// A chunk is not written any more, though the drive holds it open at `tip`.
    pub fn leave(&mut self, chunk: ChunkIndex, tip: u32) {
        assert!(tip > 0 && tip < self.shape.sectors_per_chunk(), "chunk {} is not open at {tip}", chunk.0);
        self.pool_of(chunk).close(chunk);
        self.tips.insert(chunk, tip);
    }

    /// Where a chunk is open that nobody writes.
    pub fn tip(&self, chunk: ChunkIndex) -> Option<u32> {
        self.tips.get(&chunk).copied()
    }

    /// A chunk that nobody writes was filled up to `tip`; at its end it is closed.
    pub fn filled(&mut self, chunk: ChunkIndex, tip: u32) {
        assert!(self.tips.get(&chunk).is_some_and(|&old| old < tip), "chunk {} goes back to {tip}", chunk.0);
        if tip >= self.shape.sectors_per_chunk() {
            self.tips.remove(&chunk);
            self.leave_open(chunk);
        } else {
            self.tips.insert(chunk, tip);
        }
    }

    /// Nothing in a chunk is needed any more, once the log is durable up to `until`.
    pub fn die(&mut self, chunk: ChunkIndex, until: Lsn) {
        assert!(self.taken(self.role(chunk)) > 0, "chunk {} dies, and is none of those in use", chunk.0);
        self.pool_of(chunk).died(chunk);
        self.awaited = self.awaited.max(until);
        self.dead.push_back((until, chunk));
    }

    /// Looks whether a chunk of pages is needed, of which the oldest that recovery may need is `oldest`.
    pub fn look(&mut self, chunk: ChunkIndex, oldest: u64) {
        let newest = self.newest.get(&chunk).copied().unwrap_or(0);
        if self.usage(chunk) == ChunkUse::Closed && newest < oldest {
            self.die(chunk, Lsn(0));
        }
    }

    /// Chunks of a role that are closed.
    pub fn closed(&self, role: Role) -> Vec<ChunkIndex> {
        let is_closed =
            |&(chunk, of): &(ChunkIndex, ChunkUse)| of == ChunkUse::Closed && self.role(chunk) == role;
        self.uses().filter(is_closed).map(|(chunk, _)| chunk).collect()
    }

    /// Dead chunks, whether they may be reset or not.
    pub fn dead_count(&self) -> u32 {
        u32::try_from(self.dead.len()).expect("fewer chunks than 2^32")
    }

    /// True if a chunk that died waits for the log.
    pub fn waits_for_log(&self, durable: Lsn) -> bool {
        self.awaited > durable && !self.dead.is_empty()
    }

    /// The next dead chunk that may be reset; looks at `most` of them.
    pub fn next_dead(&mut self, durable: Lsn, most: usize) -> Option<ChunkIndex> {
        for _ in 0..self.dead.len().min(most) {
            let (until, chunk) = self.dead.pop_front()?;
            if until <= durable {
                assert_eq!(self.usage(chunk), ChunkUse::Dead, "chunk {} is not dead", chunk.0);
                return Some(chunk);
            }
            self.dead.push_back((until, chunk));
        }
        None
    }

    /// A dead chunk was found at a mount, open at a tip if there is one.
    pub fn found_dead(&mut self, chunk: ChunkIndex, tip: Option<u32>) {
        assert_eq!(self.usage(chunk), ChunkUse::Dead, "chunk {} is not dead", chunk.0);
        self.taken[Role::Data.index()] += 1;
        self.dead.push_back((Lsn(0), chunk));
        self.found_tip(chunk, tip);
    }

    /// A chunk that nobody writes was found open at a mount.
    pub fn found_tip(&mut self, chunk: ChunkIndex, tip: Option<u32>) {
        if let Some(tip) = tip {
            self.tips.insert(chunk, tip);
            self.found_open(chunk);
        }
    }

    /// A dead chunk was reset, or cannot be.
    pub fn reset_done(&mut self, chunk: ChunkIndex, is_good: bool) {
        assert_eq!(self.usage(chunk), ChunkUse::Dead, "chunk {} was reset, and was not dead", chunk.0);
        if self.tips.remove(&chunk).is_some() {
            self.leave_open(chunk);
        }
        self.taken[self.role(chunk).index()] -= 1;
        self.pool_of(chunk).set_label(chunk, Role::Data.label());
        self.newest.remove(&chunk);
        if is_good {
            self.pool_of(chunk).freed(chunk);
        } else {
            self.pool_of(chunk).mark_bad(chunk);
        }
    }

    /// Asserts that counts agree.
    pub fn check(&self) {
        self.pool.check();
        self.metadata.iter().for_each(ChunkPool::check);
        let mut taken = [0; 4];
        let mut open_on = vec![0; self.open_on.len()];
        for (chunk, of) in self.uses() {
            let role = self.role(chunk);
            let is_page = matches!(role, Role::Log | Role::Checkpoint);
            let is_apart = self.metadata.is_none() || self.is_metadata(chunk) || !is_page;
            assert!(is_apart, "chunk {} holds the log or a checkpoint and is none of theirs", chunk.0);
            taken[self.role(chunk).index()] += u32::from(!matches!(of, ChunkUse::Free | ChunkUse::Bad));
            let is_open = of == ChunkUse::Open || self.tips.contains_key(&chunk);
            let is_open = is_open && self.role(chunk) == Role::Data;
            open_on[self.unit_of(chunk).index()] += u32::from(is_open);
        }
        assert_eq!(taken, self.taken, "chunks are counted wrong, by role");
        assert_eq!(open_on, self.open_on, "open chunks are counted wrong, by unit");
    }
}
