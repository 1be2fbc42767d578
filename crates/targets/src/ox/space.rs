//! The chunks of an instance: what each is for, what is in it, and who still needs it.
//!
//! A chunk dies when nothing in it is needed: of data, when no sector is valid and none waits for its commit; of the log and
//! of checkpoints, when its newest page is older than what recovery starts from. A dead chunk is reset once what killed it is
//! durable and nobody reads it. Deliberately not here: resets as commands.

use super::sizes::Sizes;
use crate::journal::Oldest;
use ocssd_ftl::log::Lsn;
use ocssd_ftl::{ChunkIndex, ChunkPool, ChunkUse, InstanceGeometry, UnitIndex, VictimIndex};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;

/// What a chunk is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Users' blocks.
    Data,
    /// The log.
    Log,
    /// Checkpoints.
    Checkpoint,
    /// Pages of the map.
    Map,
}

impl Role {
    /// By the label that a chunk has in its pool.
    const ALL: [Self; 4] = [Self::Data, Self::Log, Self::Checkpoint, Self::Map];

    const fn label(self) -> u8 {
        self as u8
    }

    /// What is programmed in such a chunk is committed, and dies sector by sector.
    pub const fn is_programmed_in(self) -> bool {
        matches!(self, Self::Data | Self::Map)
    }
}

/// Who asks for a free chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Users: all but the reserve, and not in groups where garbage is collected if there are others.
    User,
    /// Garbage collection: the reserve too.
    Gc,
    /// The log.
    Log,
    /// Checkpoints.
    Checkpoint,
    /// Pages of the map: as many chunks as they may take.
    Map,
}

/// What is needed in each chunk, in a measure of its own: sectors, or parts of them.
pub trait Live: Clone + Debug {
    /// How much of a chunk is needed.
    fn count(&self, chunk: ChunkIndex) -> u64;

    /// How much a chunk has in all.
    fn per_chunk(&self) -> u64;

    /// How much a sector has.
    fn per_sector(&self) -> u64;

    /// How much so many sectors have.
    fn of_sectors(&self, sectors: u32) -> u64 {
        u64::from(sectors) * self.per_sector()
    }

    /// When something in a chunk was last not needed any more, in transactions.
    fn last_change(&self, chunk: ChunkIndex) -> u64;

    /// A chunk was reset.
    fn clear(&mut self, chunk: ChunkIndex);

    /// Asserts that counts agree.
    fn check(&self);
}

/// The chunks.
#[derive(Clone, Debug)]
pub struct Space<L> {
    pub shape: InstanceGeometry,
    pub pool: ChunkPool,
    /// What is needed, chunk by chunk: whoever changes it says so (`changed`).
    pub live: L,
    /// Closed chunks of data, by how much of them is needed.
    closed: VictimIndex,
    /// Pieces given out to a chunk, or programmed there, that were not committed.
    pins: Vec<u32>,
    /// Reads in flight to a chunk, and copies of it that were not committed.
    holds: Vec<u32>,
    /// The number of the newest page in a chunk of the log or of checkpoints.
    newest: BTreeMap<ChunkIndex, u64>,
    /// Dead chunks, and the page of the log before which everything must be durable.
    dead: VecDeque<(Lsn, ChunkIndex)>,
    /// The latest of these pages.
    awaited: Lsn,
    log_chunks: u32,
    checkpoint_chunks: u32,
    map_chunks: u32,
    /// What the log, checkpoints, pages of the map and garbage collection may rely on.
    log_quota: u32,
    checkpoint_quota: u32,
    map_quota: u32,
    reserve: u32,
    /// Chunks that are owed to others, and that garbage collection may open all the same.
    lent: u32,
    /// Users opened a chunk since some were lent.
    may_lend: bool,
    /// By group: garbage is collected there.
    marked: Vec<bool>,
    /// Chunks that hold what can neither be read nor given up: they are left as they are until that can, or is not needed.
    stuck: Vec<bool>,
}

impl<L: Live> Space<L> {
    pub fn new(shape: InstanceGeometry, pool: ChunkPool, sizes: &Sizes, live: L) -> Self {
        let chunks = usize::try_from(shape.chunks()).expect("32 bits fit an index");
        let groups = usize::try_from(pool.groups()).expect("32 bits fit an index");
        let mut closed = VictimIndex::new(pool.groups(), shape.chunks(), live.per_chunk());
        for (chunk, _) in pool.iter().filter(|&(_, of)| of == ChunkUse::Closed) {
            closed.insert(chunk, pool.group_of(chunk), live.count(chunk));
        }
        Self {
            closed,
            live,
            stuck: vec![false; chunks],
            pins: vec![0; chunks],
            holds: vec![0; chunks],
            newest: BTreeMap::new(),
            dead: VecDeque::new(),
            awaited: Lsn(0),
            log_chunks: 0,
            checkpoint_chunks: 0,
            map_chunks: 0,
            log_quota: sizes.log_chunks,
            checkpoint_quota: sizes.checkpoint_chunks,
            map_quota: sizes.map_chunks,
            reserve: sizes.reserve,
            lent: 0,
            may_lend: true,
            marked: vec![false; groups],
            shape,
            pool,
        }
    }

    /// Chunks of the log, of checkpoints and of the map that are not taken yet, and must be there when they are.
    pub const fn owed(&self) -> u32 {
        let log = self.log_quota.saturating_sub(self.log_chunks);
        log + self.checkpoint_quota.saturating_sub(self.checkpoint_chunks) + self.map_left()
    }

    /// Chunks that pages of the map may still take.
    pub const fn map_left(&self) -> u32 {
        self.map_quota.saturating_sub(self.map_chunks)
    }

    /// Free chunks beyond what is owed and the reserve.
    pub const fn spare(&self) -> u32 {
        self.pool.free().saturating_sub(self.owed() + self.reserve)
    }

    /// Free chunks that garbage collection may open.
    pub fn left_to_gc(&self) -> u32 {
        self.pool.free().saturating_sub(self.owed() - self.lent.min(self.lendable()))
    }

    /// Chunks that are owed, and may be lent to garbage collection: those kept for pages of the map, and one of the log's and
    /// checkpoints' while more than half of theirs are not taken. Copies made into that one must be told by the log before a chunk
    /// is given back: half is more than it writes between two checkpoints, as it has room for three times that.
    fn lendable(&self) -> u32 {
        let of_journal = self.owed() - self.map_left();
        let is_much = of_journal > (self.log_quota + self.checkpoint_quota) / 2;
        self.map_left() + u32::from(is_much)
    }

    /// Lends garbage collection chunks that are owed. Chunks of pages of the map that cannot be reset are owed again and never
    /// free: a few of them in a row take what garbage collection needs to make others free. So do power cuts, each of which closes
    /// the chunks that were being filled: until they are emptied the next cut may come. Once until users open a chunk, or chunks
    /// that give next to nothing would be moved for ever. True if that gives it room it has not got.
    pub fn lend_chunks(&mut self) -> bool {
        if !self.may_lend || self.left_to_gc() > 0 {
            return false;
        }
        self.lent = self.lendable();
        let has_room = self.left_to_gc() > 0;
        self.may_lend = !has_room;
        if !has_room {
            self.lent = 0;
        }
        assert!(self.may_lend == (self.lent == 0), "{} chunks are lent for nothing", self.lent);
        assert!(self.lent <= self.owed(), "{} chunks are lent of {} that are owed", self.lent, self.owed());
        has_room
    }

    /// Garbage is collected in a group from now on, or not any more.
    pub fn mark(&mut self, group: u32, is_marked: bool) {
        self.marked[usize::try_from(group).expect("32 bits fit an index")] = is_marked;
    }

    /// True while garbage is collected in a group.
    pub fn is_marked(&self, group: u32) -> bool {
        self.marked[usize::try_from(group).expect("32 bits fit an index")]
    }

    /// True while garbage is collected in some group.
    pub fn is_any_marked(&self) -> bool {
        self.marked.contains(&true)
    }

    /// True if a free chunk may be opened for this claim, wherever one is.
    pub fn allows(&self, claim: Claim) -> bool {
        match claim {
            Claim::User => self.spare() > 0,
            Claim::Gc => self.left_to_gc() > 0,
            Claim::Log | Claim::Checkpoint => true,
            Claim::Map => self.map_left() > 0,
        }
    }

    /// Opens a free chunk on one of these units, if the claim allows.
    pub fn open(&mut self, units: &[UnitIndex], claim: Claim) -> Option<ChunkIndex> {
        if !self.allows(claim) {
            return None;
        }
        let is_lent = claim == Claim::Gc && self.pool.free() <= self.owed();
        assert!(!is_lent || self.lent > 0, "garbage collection takes a chunk that is owed");
        let all_marked = self.marked.iter().all(|&marked| marked);
        let Self { pool, marked, shape, .. } = self;
        let groups_beside = pool.groups() > 1;
        let chunk = pool.open(units, |pool, unit| {
            let group = pool.group_of(ChunkIndex(unit.0));
            let is_marked = marked[usize::try_from(group).expect("32 bits fit an index")];
            claim != Claim::User
                || !groups_beside
                || (all_marked || !is_marked) && pool.free_of_group(group) > 1
        })?;
        assert!(chunk.0 < shape.chunks(), "a chunk beyond the instance was opened");
        let role = match claim {
            Claim::User | Claim::Gc => Role::Data,
            Claim::Log => Role::Log,
            Claim::Checkpoint => Role::Checkpoint,
            Claim::Map => Role::Map,
        };
        self.lent -= u32::from(is_lent);
        self.may_lend |= claim == Claim::User;
        self.set_role(chunk, role);
        assert_eq!(self.pins[chunk.index()], 0, "chunk {} is opened with data to be committed", chunk.0);
        assert_eq!(self.live.count(chunk), 0, "chunk {} is opened with data in it", chunk.0);
        Some(chunk)
    }

    /// A chunk is in use for `role`.
    pub fn set_role(&mut self, chunk: ChunkIndex, role: Role) {
        self.pool.set_label(chunk, role.label());
        self.newest.remove(&chunk);
        if role != Role::Data {
            self.closed.remove(chunk);
        }
        match role {
            Role::Data => {}
            Role::Log => self.log_chunks += 1,
            Role::Checkpoint => self.checkpoint_chunks += 1,
            Role::Map => self.map_chunks += 1,
        }
    }

    pub fn role(&self, chunk: ChunkIndex) -> Role {
        Role::ALL[usize::from(self.pool.label(chunk))]
    }

    /// A page of the log or of a checkpoint is in a chunk.
    pub fn has_page(&mut self, chunk: ChunkIndex, number: u64) {
        let of_journal = matches!(self.role(chunk), Role::Log | Role::Checkpoint);
        assert!(of_journal, "a page of the journal is in chunk {} of data", chunk.0);
        let newest = self.newest.entry(chunk).or_default();
        *newest = (*newest).max(number);
    }

    /// So many pieces in a chunk wait for their commit.
    pub fn pin(&mut self, chunk: ChunkIndex, pieces: u32) {
        assert!(self.role(chunk).is_programmed_in(), "chunk {} holds pages", chunk.0);
        assert_eq!(self.pool.get(chunk), ChunkUse::Open, "chunk {} is written, but is not open", chunk.0);
        self.pins[chunk.index()] += pieces;
    }

    /// Pieces in a chunk were committed, or will never be.
    pub fn unpin(&mut self, chunk: ChunkIndex, pieces: u32) {
        let pins = &mut self.pins[chunk.index()];
        assert!(*pins >= pieces, "more of chunk {} is committed than was programmed there", chunk.0);
        *pins -= pieces;
    }

    pub fn pins(&self, chunk: ChunkIndex) -> u32 {
        self.pins[chunk.index()]
    }

    /// A chunk must not be reset.
    pub fn hold(&mut self, chunk: ChunkIndex) {
        self.holds[chunk.index()] += 1;
    }

    /// One reason less.
    pub fn let_go(&mut self, chunk: ChunkIndex) {
        assert!(self.holds[chunk.index()] > 0, "chunk {} is held by nobody", chunk.0);
        self.holds[chunk.index()] -= 1;
    }

    /// How much of a chunk is needed.
    pub fn live_count(&self, chunk: ChunkIndex) -> u64 {
        self.live.count(chunk)
    }

    /// Something in a chunk cannot be read, and nobody knows whose it is.
    pub fn set_stuck(&mut self, chunk: ChunkIndex) {
        assert_eq!(self.role(chunk), Role::Data, "chunk {} holds pages of the target's own", chunk.0);
        self.stuck[chunk.index()] = true;
    }

    /// All that cannot be read in a chunk is known now.
    pub fn can_be_emptied(&mut self, chunk: ChunkIndex) {
        assert_eq!(self.role(chunk), Role::Data, "chunk {} holds pages of the target's own", chunk.0);
        self.stuck[chunk.index()] = false;
    }

    /// True of a chunk that cannot be emptied.
    pub fn is_stuck(&self, chunk: ChunkIndex) -> bool {
        self.stuck[chunk.index()]
    }

    /// A chunk that was being written takes no more.
    pub fn close(&mut self, chunk: ChunkIndex) {
        self.pool.close(chunk);
        if self.role(chunk) == Role::Data {
            self.closed.insert(chunk, self.pool.group_of(chunk), self.live_count(chunk));
        }
    }

    /// What is needed in a chunk is more or less than before.
    #[inline]
    pub fn changed(&mut self, chunk: ChunkIndex) {
        self.closed.update(chunk, self.live.count(chunk));
    }

    /// Appends to `to` some closed chunks of data in a group, among them the one of which the least is needed of all that hold
    /// nothing to be committed or stuck, and for which `may` is true.
    pub fn fewest(&mut self, group: u32, may: impl Fn(ChunkIndex) -> bool, to: &mut Vec<ChunkIndex>) {
        let Self { closed, pins, stuck, .. } = self;
        let is_settled = |chunk: ChunkIndex| pins[chunk.index()] == 0 && !stuck[chunk.index()];
        closed.fewest(group, |chunk| is_settled(chunk) && may(chunk), to);
    }

    /// Looks whether a chunk is needed; one that is not is reset once the log is durable up to `until`. `oldest` is what recovery
    /// may need.
    pub fn look(&mut self, chunk: ChunkIndex, until: Lsn, oldest: Oldest) {
        if self.pool.get(chunk) != ChunkUse::Closed {
            return;
        }
        let newest = self.newest.get(&chunk).copied().unwrap_or(0);
        let is_dead = match self.role(chunk) {
            Role::Data | Role::Map => self.live_count(chunk) == 0 && self.pins(chunk) == 0,
            Role::Log => newest < oldest.lsn.0,
            Role::Checkpoint => newest < oldest.serial.0,
        };
        if is_dead {
            assert_eq!(self.pins(chunk), 0, "chunk {} died with data to be committed", chunk.0);
            self.pool.died(chunk);
            self.closed.remove(chunk);
            let until = if self.role(chunk).is_programmed_in() { until } else { Lsn(0) };
            self.awaited = self.awaited.max(until);
            self.dead.push_back((until, chunk));
        }
    }

    /// Chunks of the log and of checkpoints that are closed.
    pub fn closed_pages(&self) -> Vec<ChunkIndex> {
        let is_closed = |&(chunk, of): &(ChunkIndex, ChunkUse)| {
            of == ChunkUse::Closed && !self.role(chunk).is_programmed_in()
        };
        self.pool.iter().filter(is_closed).map(|(chunk, _)| chunk).collect()
    }

    /// Dead chunks, whether they may be reset or not.
    pub fn dead_count(&self) -> usize {
        self.dead.len()
    }

    /// True if a dead chunk may not be reset because somebody reads it, or has copied from it. Cost: the dead chunks.
    pub fn is_a_dead_chunk_held(&self) -> bool {
        self.dead.iter().any(|&(_, chunk)| self.holds[chunk.index()] > 0)
    }

    /// True if a chunk that died waits for the log.
    pub fn waits_for_log(&self, durable: Lsn) -> bool {
        self.awaited > durable && !self.dead.is_empty()
    }

    /// The next dead chunk that may be reset; looks at `most` of them.
    pub fn next_dead(&mut self, durable: Lsn, most: usize) -> Option<ChunkIndex> {
        for _ in 0..self.dead.len().min(most) {
            let (until, chunk) = self.dead.pop_front()?;
            if until <= durable && self.holds[chunk.index()] == 0 {
                assert_eq!(self.live_count(chunk), 0, "chunk {} is reset with data in it", chunk.0);
                return Some(chunk);
            }
            self.dead.push_back((until, chunk));
        }
        None
    }

    /// A dead chunk was found at mount.
    pub fn found_dead(&mut self, chunk: ChunkIndex) {
        assert_eq!(self.pool.get(chunk), ChunkUse::Dead, "chunk {} is not dead", chunk.0);
        self.dead.push_back((Lsn(0), chunk));
    }

    /// A dead chunk was reset, or cannot be.
    pub fn reset_done(&mut self, chunk: ChunkIndex, is_good: bool) {
        assert_eq!(self.holds[chunk.index()], 0, "chunk {} was reset under reads", chunk.0);
        match self.role(chunk) {
            Role::Data => {}
            Role::Log => self.log_chunks -= 1,
            Role::Checkpoint => self.checkpoint_chunks -= 1,
            Role::Map => self.map_chunks -= 1,
        }
        self.pool.set_label(chunk, Role::Data.label());
        self.newest.remove(&chunk);
        self.live.clear(chunk);
        self.stuck[chunk.index()] = false;
        if is_good {
            self.pool.freed(chunk);
            // What was lent is kept again once it is there.
            if self.pool.free() > self.owed() {
                self.lent = 0;
            }
        } else {
            self.pool.mark_bad(chunk);
        }
    }

    /// A group in which garbage may be collected: garbage is, or may be in one more.
    pub fn may_collect(&self, group: u32, groups_max: u32) -> bool {
        let marked = self.marked.iter().filter(|&&marked| marked).count();
        self.is_marked(group) || marked < usize::try_from(groups_max).expect("32 bits fit an index")
    }

    /// Asserts that counts agree.
    pub fn check(&self) {
        self.pool.check();
        self.live.check();
        let has_enough = self.pool.free() > self.owed();
        assert!(self.lent == 0 || !has_enough, "chunks are lent, and there are enough");
        self.closed.check(|chunk| {
            let is_listed = self.pool.get(chunk) == ChunkUse::Closed && self.role(chunk) == Role::Data;
            is_listed.then(|| (self.pool.group_of(chunk), self.live_count(chunk)))
        });
        let in_use = |role: Role| {
            let is = |&(chunk, of): &(ChunkIndex, ChunkUse)| {
                !matches!(of, ChunkUse::Free | ChunkUse::Bad) && self.role(chunk) == role
            };
            u32::try_from(self.pool.iter().filter(is).count()).expect("fewer chunks than 2^32")
        };
        assert_eq!(in_use(Role::Log), self.log_chunks, "chunks of the log are counted wrong");
        assert_eq!(in_use(Role::Map), self.map_chunks, "chunks of the map are counted wrong");
        assert_eq!(
            in_use(Role::Checkpoint),
            self.checkpoint_chunks,
            "chunks of checkpoints are counted wrong"
        );
        for (chunk, of) in self.pool.iter() {
            let is_empty = self.live_count(chunk) == 0 && self.pins(chunk) == 0;
            let may_have =
                matches!(of, ChunkUse::Open | ChunkUse::Closed) && self.role(chunk).is_programmed_in();
            assert!(is_empty || may_have, "chunk {} is {of:?} and has data", chunk.0);
        }
    }
}
