//! Hashes every command and completion with its time, and remembers the latest ones for a failure report.

use crate::address::{ChunkId, Ppa};
use crate::buffers::Buffers;
use crate::chunk::ChunkDescriptor;
use crate::command::{Addresses, Command, Completion, Op, Rejected};
use crate::device::Device;
use crate::geometry::Geometry;
use ocssd_base::{Nanos, TraceHash};

/// Something that went by.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A command was taken.
    Submitted(Nanos, Command),
    /// A command ended.
    Completed(Nanos, Completion),
}

/// A device that is watched.
#[derive(Clone, Debug)]
pub struct Trace<D> {
    inner: D,
    hash: TraceHash,
    latest: Vec<Event>,
    next: usize,
    keep: usize,
}

fn word_of(ppa: Ppa) -> u64 {
    (u64::from(ppa.chunk.0) << 32) | u64::from(ppa.sector)
}

const fn op_word(op: Op) -> u64 {
    match op {
        Op::Read => 1,
        Op::Write { fua: false } => 2,
        Op::Write { fua: true } => 3,
        Op::Reset => 4,
        Op::Copy => 5,
        Op::Flush => 6,
    }
}

impl<D> Trace<D> {
    /// Watches `inner` and remembers the latest `keep` events (0 for none).
    #[must_use]
    pub fn new(inner: D, keep: usize) -> Self {
        Self { inner, hash: TraceHash::default(), latest: Vec::with_capacity(keep), next: 0, keep }
    }

    /// The hash of everything so far.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash.value()
    }

    /// The latest events, oldest first.
    pub fn latest(&self) -> impl Iterator<Item = &Event> {
        let (newer, older) = self.latest.split_at(self.next.min(self.latest.len()));
        older.iter().chain(newer)
    }

    /// The device inside.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The device inside, to change.
    pub fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    #[inline(never)]
    fn remember(&mut self, event: Event) {
        if self.latest.len() < self.keep {
            self.latest.push(event);
        } else {
            self.latest[self.next] = event;
        }
        self.next = (self.next + 1) % self.keep;
    }

    #[inline(always)]
    fn hash_addresses(&mut self, command: &Command, buffers: &Buffers) {
        match command.addresses {
            Addresses::Run { first, count } => {
                self.hash.word(word_of(first));
                self.hash.word(u64::from(count));
            }
            Addresses::List { offset, count } => {
                let Some(id) = command.buffer else { return };
                let from = usize::try_from(offset).expect("32 bits fit an index");
                // A copy's list holds its destinations as well.
                let lists = if command.op == Op::Copy { 2 } else { 1 };
                let count = lists * usize::try_from(count).expect("32 bits fit an index");
                for &ppa in buffers.addresses(id).iter().skip(from).take(count) {
                    self.hash.word(word_of(ppa));
                }
            }
            Addresses::None => {}
        }
    }
}

impl<D: Device> Device for Trace<D> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.inner.chunk(chunk)
    }

    #[inline(always)]
    fn submit(&mut self, now: Nanos, command: Command, buffers: &mut Buffers) -> Result<(), Rejected> {
        self.inner.submit(now, command, buffers)?;
        self.hash.time(now);
        // Reads first: they are asked for one question, not for their place among all kinds.
        let op = if command.op == Op::Read { op_word(Op::Read) } else { op_word(command.op) };
        self.hash.word((op << 32) | u64::from(command.tag.0));
        self.hash_addresses(&command, buffers);
        if self.keep > 0 {
            self.remember(Event::Submitted(now, command));
        }
        Ok(())
    }

    fn room(&self) -> u32 {
        self.inner.room()
    }

    fn deadline(&self) -> Option<Nanos> {
        self.inner.deadline()
    }

    #[inline(always)]
    fn work_ahead(&mut self, limit: Nanos) -> Option<Nanos> {
        self.inner.work_ahead(limit)
    }

    #[inline(always)]
    fn poll_completion(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<Completion> {
        let completion = self.inner.poll_completion(now, buffers)?;
        self.hash.time(now);
        self.hash.word((u64::from(completion.status.0) << 32) | u64::from(completion.tag.0));
        self.hash.word(completion.failed);
        if self.keep > 0 {
            self.remember(Event::Completed(now, completion));
        }
        Some(completion)
    }
}
