//! The chunks of an instance: what each is for, how many of its bytes are needed, and when it may be reset.
//!
//! A chunk of records dies when no byte of it is live, a chunk of checkpoints when the newest in it is older than the one that
//! is kept. A dead chunk of records is reset once what killed it is durable, nobody reads it, and recovery would not replay
//! it: what a checkpoint has not taken in lies in units behind its start, and all of these stay. Deliberately not here:
//! resets as commands.

use super::record::UnitNumber;
use super::sizes::Sizes;
use ocssd_ftl::{ChunkIndex, ChunkPool, ChunkUse, InstanceGeometry, UnitIndex};
use std::collections::VecDeque;

/// What a chunk is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Units of records.
    Records,
    /// Checkpoints.
    Checkpoint,
}

impl Role {
    /// By the label that a chunk has in its pool.
    const ALL: [Self; 2] = [Self::Records, Self::Checkpoint];

    const fn label(self) -> u8 {
        self as u8
    }
}

/// Who asks for a free chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Users: all but the reserve.
    User,
    /// Garbage collection: the reserve too.
    Gc,
    /// Checkpoints.
    Checkpoint,
}

/// What recovery would need: replay begins at a unit, from a checkpoint of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    pub start: UnitNumber,
    pub serial: u64,
}

/// The chunks.
#[derive(Clone, Debug)]
pub struct Space {
    pub shape: InstanceGeometry,
    pub pool: ChunkPool,
    /// Bytes of records in a chunk that are needed.
    live: Vec<u64>,
    live_total: u64,
    /// The sequence at which a chunk last lost a byte.
    changed: Vec<u64>,
    /// Reads in flight to a chunk, or waiting.
    holds: Vec<u32>,
    /// The newest unit, or checkpoint, in a chunk.
    newest: Vec<u64>,
    /// Dead chunks, and the sequence up to which everything must be durable.
    dead: VecDeque<(u64, ChunkIndex)>,
    needed: Needed,
    checkpoint_chunks: u32,
    checkpoint_quota: u32,
    reserve: u32,
}

impl Space {
    pub fn new(shape: InstanceGeometry, pool: ChunkPool, sizes: &Sizes, needed: Needed) -> Self {
        let chunks = usize::try_from(shape.chunks()).expect("32 bits fit an index");
        Self {
            live: vec![0; chunks],
            live_total: 0,
            changed: vec![0; chunks],
            holds: vec![0; chunks],
            newest: vec![0; chunks],
            dead: VecDeque::new(),
            needed,
            checkpoint_chunks: 0,
            checkpoint_quota: sizes.checkpoint_chunks,
            reserve: sizes.reserve,
            shape,
            pool,
        }
    }

    /// Chunks of checkpoints that are not taken yet, and must be there when they are.
    pub const fn owed(&self) -> u32 {
        self.checkpoint_quota.saturating_sub(self.checkpoint_chunks)
    }

    /// Free chunks beyond what is owed and the reserve.
    pub const fn spare(&self) -> u32 {
        self.pool.free().saturating_sub(self.owed() + self.reserve)
    }

    /// Opens a free chunk on one of these units, if the claim allows.
    pub fn open(&mut self, units: &[UnitIndex], claim: Claim) -> Option<ChunkIndex> {
        let is_allowed = match claim {
            Claim::User => self.spare() > 0,
            Claim::Gc => self.pool.free() > self.owed(),
            Claim::Checkpoint => true,
        };
        let chunk = is_allowed.then(|| self.pool.open(units, |_, _| true))??;
        let role = if claim == Claim::Checkpoint { Role::Checkpoint } else { Role::Records };
        Some(self.opened(chunk, role))
    }

    /// Opens the most worn free chunk on one of these units, as garbage collection may.
    pub fn open_worn(
        &mut self,
        units: &[UnitIndex],
        resets: impl Fn(ChunkIndex) -> u32,
    ) -> Option<ChunkIndex> {
        if self.pool.free() <= self.owed() {
            return None;
        }
        let chunk = self.pool.open_worth_most(units, |chunk| Some(resets(chunk)))?;
        Some(self.opened(chunk, Role::Records))
    }

    fn opened(&mut self, chunk: ChunkIndex, role: Role) -> ChunkIndex {
        assert_eq!(self.live[chunk.index()], 0, "chunk {} is opened with records in it", chunk.0);
        self.set_role(chunk, role);
        chunk
    }

    /// A chunk is in use for `role`.
    pub fn set_role(&mut self, chunk: ChunkIndex, role: Role) {
        self.pool.set_label(chunk, role.label());
        self.newest[chunk.index()] = 0;
        self.checkpoint_chunks += u32::from(role == Role::Checkpoint);
    }

    pub fn role(&self, chunk: ChunkIndex) -> Role {
        Role::ALL[usize::from(self.pool.label(chunk))]
    }

    /// A unit, or a page of a checkpoint, of this number is in a chunk.
    pub fn has_number(&mut self, chunk: ChunkIndex, number: u64) {
        assert!(self.pool.get(chunk) != ChunkUse::Free, "chunk {} is free and has number {number}", chunk.0);
        let newest = &mut self.newest[chunk.index()];
        *newest = (*newest).max(number);
    }

    /// A record of so many bytes in a chunk is needed from now on.
    pub fn add(&mut self, chunk: ChunkIndex, bytes: u64) {
        assert_eq!(self.role(chunk), Role::Records, "chunk {} holds checkpoints", chunk.0);
        let of = self.pool.get(chunk);
        assert!(
            matches!(of, ChunkUse::Open | ChunkUse::Closed),
            "chunk {} is {of:?} and gets a record",
            chunk.0
        );
        self.live[chunk.index()] += bytes;
        self.live_total += bytes;
    }

    /// It is not needed any more, since `sequence`.
    pub fn subtract(&mut self, chunk: ChunkIndex, bytes: u64, sequence: u64) {
        let live = &mut self.live[chunk.index()];
        assert!(*live >= bytes, "{bytes} bytes of chunk {} die, but {live} live", chunk.0);
        assert!(self.live_total >= bytes, "{bytes} bytes die, but {} live in all", self.live_total);
        *live -= bytes;
        self.live_total -= bytes;
        self.changed[chunk.index()] = sequence;
        if *live == 0 {
            self.look(chunk, sequence);
        }
    }

    pub fn live(&self, chunk: ChunkIndex) -> u64 {
        self.live[chunk.index()]
    }

    pub const fn live_total(&self) -> u64 {
        self.live_total
    }

    pub fn changed(&self, chunk: ChunkIndex) -> u64 {
        self.changed[chunk.index()]
    }

    /// A chunk must not be reset.
    pub fn hold(&mut self, chunk: ChunkIndex) {
        let of = self.pool.get(chunk);
        assert!(matches!(of, ChunkUse::Open | ChunkUse::Closed), "chunk {} is {of:?} and is read", chunk.0);
        self.holds[chunk.index()] += 1;
    }

    /// One reason less. True if it was the last, and the chunk is dead.
    pub fn let_go(&mut self, chunk: ChunkIndex) -> bool {
        let holds = &mut self.holds[chunk.index()];
        assert!(*holds > 0, "chunk {} is held by nobody", chunk.0);
        *holds -= 1;
        *holds == 0 && self.pool.get(chunk) == ChunkUse::Dead
    }

    /// A chunk that was being written takes no more.
    pub fn close(&mut self, chunk: ChunkIndex, sequence: u64) {
        self.pool.close(chunk);
        self.look(chunk, sequence);
    }

    /// Looks whether a chunk is needed.
    fn look(&mut self, chunk: ChunkIndex, sequence: u64) {
        if self.pool.get(chunk) != ChunkUse::Closed {
            return;
        }
        let is_dead = match self.role(chunk) {
            Role::Records => self.live(chunk) == 0,
            Role::Checkpoint => self.newest[chunk.index()] < self.needed.serial,
        };
        if is_dead {
            self.pool.died(chunk);
            self.dead.push_back((sequence, chunk));
        }
    }

    /// Recovery begins later from now on.
    pub fn set_needed(&mut self, needed: Needed) {
        assert!(self.needed.start <= needed.start, "replay would begin earlier: {needed:?}");
        assert!(self.needed.serial < needed.serial, "an older checkpoint is kept: {needed:?}");
        self.needed = needed;
        let is_of_checkpoints = |&(chunk, of): &(ChunkIndex, ChunkUse)| {
            of == ChunkUse::Closed && self.role(chunk) == Role::Checkpoint
        };
        let closed: Vec<ChunkIndex> =
            self.pool.iter().filter(is_of_checkpoints).map(|(chunk, _)| chunk).collect();
        closed.into_iter().for_each(|chunk| self.look(chunk, 0));
    }

    pub const fn needed(&self) -> Needed {
        self.needed
    }

    pub fn dead_count(&self) -> usize {
        self.dead.len()
    }

    /// Dead chunks that a checkpoint would set free.
    pub fn waits_for_checkpoint(&self) -> usize {
        self.dead.iter().filter(|&&(_, chunk)| self.is_replayed(chunk)).count()
    }

    fn is_replayed(&self, chunk: ChunkIndex) -> bool {
        self.role(chunk) == Role::Records && self.newest[chunk.index()] >= self.needed.start.0
    }

    /// The next dead chunk that may be reset, with its unit, which is one that `may` names, everything up to the sequence `durable`
    /// being so; looks at `most` of them. `is_careless` is a planted bug: nothing is waited for.
    pub fn next_dead(
        &mut self,
        durable: u64,
        most: usize,
        may: impl Fn(UnitIndex) -> bool,
        is_careless: bool,
    ) -> Option<(ChunkIndex, UnitIndex)> {
        for _ in 0..self.dead.len().min(most) {
            let (until, chunk) = self.dead.pop_front()?;
            assert_eq!(self.pool.get(chunk), ChunkUse::Dead, "chunk {} is listed as dead", chunk.0);
            let is_free = until <= durable && !self.is_replayed(chunk) || is_careless;
            let unit = self.shape.split_chunk(chunk).1;
            if is_free && self.holds[chunk.index()] == 0 && may(unit) {
                assert_eq!(self.live(chunk), 0, "chunk {} is reset with records in it", chunk.0);
                return Some((chunk, unit));
            }
            self.dead.push_back((until, chunk));
        }
        None
    }

    /// A dead chunk was found at mount.
    pub fn found_dead(&mut self, chunk: ChunkIndex) {
        assert_eq!(self.pool.get(chunk), ChunkUse::Dead, "chunk {} is not dead", chunk.0);
        self.dead.push_back((0, chunk));
    }

    /// A dead chunk was reset, or cannot be.
    pub fn reset_done(&mut self, chunk: ChunkIndex, is_good: bool) {
        assert_eq!(self.holds[chunk.index()], 0, "chunk {} was reset under reads", chunk.0);
        assert_eq!(self.pool.get(chunk), ChunkUse::Dead, "chunk {} was reset, but was not dead", chunk.0);
        assert_eq!(self.live(chunk), 0, "chunk {} was reset with records in it", chunk.0);
        self.checkpoint_chunks -= u32::from(self.role(chunk) == Role::Checkpoint);
        self.pool.set_label(chunk, Role::Records.label());
        self.newest[chunk.index()] = 0;
        if is_good {
            self.pool.freed(chunk);
        } else {
            self.pool.mark_bad(chunk);
        }
    }

    /// Asserts that counts agree.
    pub fn check(&self) {
        self.pool.check();
        assert_eq!(self.live.iter().sum::<u64>(), self.live_total, "live bytes are counted wrong");
        for (chunk, of) in self.pool.iter() {
            let may_have =
                matches!(of, ChunkUse::Open | ChunkUse::Closed) && self.role(chunk) == Role::Records;
            assert!(self.live(chunk) == 0 || may_have, "chunk {} is {of:?} and has records", chunk.0);
        }
    }
}
