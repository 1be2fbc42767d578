//! Parts: the pieces of commands that parallel units work on, in numbered places linked into queues.

use super::sense::Span;
use ocssd_base::{Nanos, SlabKey};
use ocssd_lightnvm::{ChunkId, PuId};
use std::num::NonZeroU32;

/// The number of a part. Never 0, so that a link to no part takes no more room than a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartId(NonZeroU32);

impl PartId {
    pub(super) fn index(self) -> usize {
        usize::try_from(self.0.get()).expect("32 bits fit an index")
    }
}

/// What the array does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    Read,
    Program,
    Erase,
}

/// How far a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not given to its unit yet.
    Waiting,
    /// Could be given to its unit, but an earlier change of its chunk could not yet.
    Held,
    /// In its unit's queue.
    Queued,
    /// Waiting for, or on, the channel.
    Transfer,
    /// A program's data is in a register.
    Loaded,
    /// In the array, or suspended there.
    Array,
}

/// One page or page row to sense, one write unit to program, or one chunk to erase.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandPart {
    pub(crate) command: SlabKey,
    pub(crate) kind: PartKind,
    pub(crate) phase: Phase,
    pub(crate) pu: PuId,
    pub(crate) chunk: ChunkId,
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// How many of them are over the channel, or on it.
    pub(crate) moved: u32,
    /// What a read takes off the array at once, and which of these windows of the chunk it is.
    pub(crate) span: Span,
    pub(crate) window: u32,
    /// The chunk's cycles when the command was taken: a part of an earlier life must not touch a later one.
    pub(crate) cycles: u32,
    /// Extra array time: a latency spike.
    pub(crate) delay: Nanos,
    /// Flushes submitted before it.
    pub(crate) epoch: u32,
    /// Order of arrival at the unit.
    pub(crate) sequence: u64,
    /// The next part of the same command, then of the same queue.
    pub(crate) next: Option<PartId>,
}

impl CommandPart {
    /// Where it stands among the changes of its chunk: lives in turn, the erase that begins one before its programs.
    pub(crate) const fn order(&self) -> (u32, bool, u32) {
        (self.cycles, matches!(self.kind, PartKind::Program), self.first)
    }
}

/// Places for parts. Grows to the most that are ever in flight (bounded by queue depth, cache and 64 sectors a command)
/// and allocates no more after that.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// Place 0 stays empty: no part has its number.
    places: Vec<Option<CommandPart>>,
    free: Vec<PartId>,
}

impl Parts {
    pub(crate) fn new() -> Self {
        Self { places: vec![None], free: Vec::new() }
    }

    /// Forgets every part; memory is kept.
    pub(crate) fn clear(&mut self) {
        self.places.truncate(1);
        self.free.clear();
        assert!(self.places[0].is_none(), "place 0 holds a part");
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, part: CommandPart) -> PartId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            // A place freed later needs room in the free list without allocation then.
            self.free.reserve(self.places.len());
            let number = u32::try_from(self.places.len() - 1).ok().and_then(NonZeroU32::new);
            PartId(number.expect("fewer than 2^32 parts, and place 0 is taken"))
        });
        let place = &mut self.places[id.index()];
        assert!(place.is_none(), "a free place holds a part");
        *place = Some(part);
        id
    }

    pub(crate) fn remove(&mut self, id: PartId) {
        let place = &mut self.places[id.index()];
        assert!(place.is_some(), "a part ends once");
        *place = None;
        self.free.push(id);
    }

    pub(crate) fn get(&self, id: PartId) -> &CommandPart {
        self.places[id.index()].as_ref().expect("the part is in flight")
    }

    pub(crate) fn get_mut(&mut self, id: PartId) -> &mut CommandPart {
        self.places[id.index()].as_mut().expect("the part is in flight")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &CommandPart> {
        self.places.iter().flatten()
    }
}
