//! The write buffer: buffer units of a unit, each with its place on media from its first record on.
//!
//! A stream fills its buffer units in the order in which it opened them, and they go out in that order, so that chunks are written
//! in order. A buffer unit is released once the drive can read what it holds. Deliberately not here: places (`append`), commands
//! (`program`).

use super::ready::Ready;
use super::record::UNIT_HEADER_BYTES;
use super::sizes::Sizes;
use ocssd_base::{Nanos, usize_of};
use ocssd_ftl::{Append, PhysicalAddress, UnitIndex};
use ocssd_lightnvm::{BufId, Buffers};
use std::collections::{BTreeMap, VecDeque};

/// A buffer unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BufferUnitId(pub u32);

/// What is written apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// Users' values of a record.
    Small,
    /// Users' values in pieces.
    Long,
    /// What garbage collection moves: it lives longer than the rest.
    Cold,
    /// Pages of the index: those that checkpoints name live until the next one.
    Index,
}

impl Stream {
    pub const ALL: [Self; 4] = [Self::Small, Self::Long, Self::Cold, Self::Index];
    /// Those of users.
    pub const USERS: [Self; 2] = [Self::Small, Self::Long];

    pub const fn index(self) -> usize {
        match self {
            Self::Small => 0,
            Self::Long => 1,
            Self::Cold => 2,
            Self::Index => 3,
        }
    }

    /// As units say it.
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Small => 0,
            Self::Long => 1,
            Self::Cold => 2,
            Self::Index => 3,
        }
    }

    const fn pool(self) -> usize {
        match self {
            Self::Small | Self::Long => 0,
            Self::Cold | Self::Index => 1,
        }
    }
}

/// How far a buffer unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BufferUnitState {
    Free,
    /// It has a place and takes records.
    Opened,
    /// It takes no more and is not durable: it waits, or is in flight, or failed.
    Closed,
    /// It is on media and cannot be read there yet.
    Durable,
}

#[derive(Clone, Debug)]
struct BufferUnit {
    buffer: BufId,
    stream: Stream,
    state: BufferUnitState,
    filled: u32,
    at: Option<(Append, PhysicalAddress)>,
    /// The unit that is on; of a buffer unit with a place only.
    unit: UnitIndex,
    /// The sequence of its first record; 0 if it has none.
    first_sequence: u64,
    /// When it was given out last.
    sent: Nanos,
}

/// The buffer units of an instance.
#[derive(Clone, Debug)]
pub struct BufferUnits {
    buffer_units: Vec<BufferUnit>,
    /// Free ones: of users, of garbage collection.
    free: [Vec<BufferUnitId>; 2],
    /// By stream, in order; the first one is being filled.
    opened: [VecDeque<BufferUnitId>; 4],
    /// Closed ones that are to be written.
    ready: Ready,
    /// Users' and garbage collection's that are closed and not durable.
    on_their_way: [usize; 2],
    /// Those that the media failed: they need another place.
    again: VecDeque<BufferUnitId>,
    by_place: BTreeMap<PhysicalAddress, BufferUnitId>,
    /// By stream, the first record that is not durable; `u64::MAX` if all are.
    volatile_from: [u64; 4],
    unit_bytes: u32,
}

const EMPTY_BYTES: u32 = 40;
const _: () = assert!(UNIT_HEADER_BYTES == 40, "an empty buffer unit has a header");

impl BufferUnits {
    /// Empty buffer units, whose buffers are taken now, for writes that go out as `ready` says.
    pub fn new(sizes: &Sizes, ready: Ready, buffers: &mut Buffers) -> Self {
        let count = sizes.buffer_units + sizes.gc_buffer_units;
        let mut buffer_unit = |_| BufferUnit {
            buffer: buffers.take_whole(sizes.unit),
            stream: Stream::Small,
            state: BufferUnitState::Free,
            filled: EMPTY_BYTES,
            at: None,
            unit: UnitIndex(0),
            first_sequence: 0,
            sent: Nanos::ZERO,
        };
        Self {
            buffer_units: (0..count).map(&mut buffer_unit).collect(),
            free: [
                (0..sizes.buffer_units).rev().map(BufferUnitId).collect(),
                (sizes.buffer_units..count).rev().map(BufferUnitId).collect(),
            ],
            opened: Default::default(),
            ready,
            on_their_way: [0; 2],
            again: VecDeque::new(),
            by_place: BTreeMap::new(),
            volatile_from: [u64::MAX; 4],
            unit_bytes: sizes.unit_bytes,
        }
    }

    fn buffer_unit(&self, buffer_unit: BufferUnitId) -> &BufferUnit {
        &self.buffer_units[usize_of(buffer_unit.0)]
    }

    fn buffer_unit_mut(&mut self, buffer_unit: BufferUnitId) -> &mut BufferUnit {
        &mut self.buffer_units[usize_of(buffer_unit.0)]
    }

    /// True if a stream may open a buffer unit.
    pub fn has_free(&self, stream: Stream) -> bool {
        !self.free[stream.pool()].is_empty()
    }

    /// A stream has one more buffer unit, with a place.
    pub fn open(&mut self, stream: Stream, (at, place): (Append, PhysicalAddress), unit: UnitIndex) {
        let id = self.free[stream.pool()].pop().expect("it was asked for");
        let buffer_unit = self.buffer_unit_mut(id);
        assert!(
            buffer_unit.state == BufferUnitState::Free && buffer_unit.at.is_none(),
            "{id:?} is not free: {buffer_unit:?}"
        );
        *buffer_unit = BufferUnit {
            stream,
            state: BufferUnitState::Opened,
            filled: EMPTY_BYTES,
            at: Some((at, place)),
            unit,
            first_sequence: 0,
            ..*buffer_unit
        };
        self.opened[stream.index()].push_back(id);
        assert!(!self.by_place.contains_key(&place), "two buffer units lie at {place:?}");
        self.by_place.insert(place, id);
    }

    /// Buffer units a stream has that hold nothing yet, and bytes left in the one it fills.
    pub fn room(&self, stream: Stream) -> (usize, u32) {
        let opened = &self.opened[stream.index()];
        let Some(&first) = opened.front() else { return (0, 0) };
        if self.buffer_unit(first).filled == EMPTY_BYTES {
            return (opened.len(), 0);
        }
        (opened.len() - 1, self.unit_bytes - self.buffer_unit(first).filled)
    }

    /// Takes `bytes` of the buffer unit a stream fills, after closing it if it has no room for them: the buffer, the byte there,
    /// and the buffer unit's place.
    pub fn take(
        &mut self,
        stream: Stream,
        bytes: u32,
        sequence: u64,
    ) -> (BufId, u32, Append, PhysicalAddress) {
        assert!(bytes > 0 && sequence > 0, "a record of {bytes} bytes with sequence {sequence}");
        let first = *self.opened[stream.index()].front().expect("a buffer unit was opened before");
        if self.buffer_unit(first).filled + bytes > self.unit_bytes {
            self.close(stream);
        }
        let id = *self.opened[stream.index()].front().expect("enough buffer units were opened before");
        let unit_bytes = self.unit_bytes;
        let buffer_unit = self.buffer_unit_mut(id);
        assert!(buffer_unit.state == BufferUnitState::Opened, "{id:?} takes no records: {buffer_unit:?}");
        let begin = buffer_unit.filled;
        buffer_unit.filled += bytes;
        assert!(buffer_unit.filled <= unit_bytes, "{bytes} bytes do not fit behind {begin}");
        let is_first = buffer_unit.first_sequence == 0;
        if is_first {
            buffer_unit.first_sequence = sequence;
        }
        let (at, place) = buffer_unit.at.expect("an opened buffer unit has a place");
        let taken = (buffer_unit.buffer, begin, at, place);
        if is_first {
            let from = &mut self.volatile_from[stream.index()];
            *from = sequence.min(*from);
        }
        taken
    }

    /// The buffer unit that a stream fills takes no more, if it holds anything. True if it did.
    pub fn close(&mut self, stream: Stream) -> bool {
        let Some(&first) = self.opened[stream.index()].front() else { return false };
        if self.buffer_unit(first).filled == EMPTY_BYTES {
            return false;
        }
        self.opened[stream.index()].pop_front();
        let buffer_unit = self.buffer_unit_mut(first);
        buffer_unit.state = BufferUnitState::Closed;
        let unit = buffer_unit.unit;
        self.on_their_way[stream.pool()] += 1;
        self.ready.push(first, unit);
        true
    }

    /// The sequence of the first record in the buffer unit that a stream fills; 0 if there is none.
    pub fn first_of_filling(&self, stream: Stream) -> u64 {
        self.opened[stream.index()]
            .front()
            .map_or(0, |&buffer_unit| self.buffer_unit(buffer_unit).first_sequence)
    }

    /// Bytes in the buffer unit that a stream fills.
    pub fn filled_of_filling(&self, stream: Stream) -> u32 {
        self.opened[stream.index()]
            .front()
            .map_or(0, |&buffer_unit| self.buffer_unit(buffer_unit).filled - EMPTY_BYTES)
    }

    /// The next buffer unit to be written, if its unit has room for a write.
    pub fn next_ready(&mut self, now: Nanos) -> Option<BufferUnitId> {
        let buffer_unit = self.ready.next()?;
        self.buffer_unit_mut(buffer_unit).sent = now;
        assert_eq!(
            self.buffer_unit(buffer_unit).state,
            BufferUnitState::Closed,
            "{buffer_unit:?} goes out before it is closed"
        );
        assert!(
            self.buffer_unit(buffer_unit).filled > EMPTY_BYTES,
            "{buffer_unit:?} goes out with nothing in it"
        );
        Some(buffer_unit)
    }

    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Buffer units of users, or of garbage collection, that are on their way.
    pub const fn on_their_way(&self, stream: Stream) -> usize {
        self.on_their_way[stream.pool()]
    }

    /// A write ended well: the buffer unit is durable.
    pub fn written(&mut self, now: Nanos, buffer_unit: BufferUnitId) {
        self.ended(now, buffer_unit);
        let pool = self.buffer_unit(buffer_unit).stream.pool();
        assert!(self.on_their_way[pool] > 0, "{buffer_unit:?} was not on its way");
        self.on_their_way[pool] -= 1;
        self.buffer_unit_mut(buffer_unit).state = BufferUnitState::Durable;
        let BufferUnit { stream, first_sequence, .. } = *self.buffer_unit(buffer_unit);
        if self.volatile_from[stream.index()] == first_sequence {
            self.volatile_from[stream.index()] = self.first_volatile(stream);
        }
    }

    /// A write failed: the buffer unit needs another place.
    pub fn failed(&mut self, now: Nanos, buffer_unit: BufferUnitId) {
        self.ended(now, buffer_unit);
        self.again.push_back(buffer_unit);
    }

    fn ended(&mut self, now: Nanos, buffer_unit: BufferUnitId) {
        assert_eq!(
            self.buffer_unit(buffer_unit).state,
            BufferUnitState::Closed,
            "{buffer_unit:?} was not being written"
        );
        let BufferUnit { unit, sent, .. } = *self.buffer_unit(buffer_unit);
        assert!(sent <= now, "{buffer_unit:?} was sent at {sent}, and ended at {now}");
        self.ready.ended(unit, now.saturating_since(sent));
    }

    pub fn next_again(&self) -> Option<BufferUnitId> {
        self.again.front().copied()
    }

    /// An opened buffer unit of a stream that holds nothing gives its place away; the last of them.
    pub fn give_place(&mut self, stream: Stream) -> Option<(Append, PhysicalAddress)> {
        let &first = self.opened[stream.index()].front()?;
        assert_eq!(
            self.buffer_unit(first).filled,
            EMPTY_BYTES,
            "the buffer unit being filled is closed before"
        );
        self.opened[stream.index()].pop_front();
        let (_, place) = self.buffer_unit(first).at.expect("an opened buffer unit has a place");
        let at = self.buffer_unit(first).at;
        self.by_place.remove(&place);
        self.free_buffer_unit(first);
        at
    }

    /// The buffer unit that failed first has another place: where it was. It is ready again.
    pub fn moved(&mut self, (at, place): (Append, PhysicalAddress), unit: UnitIndex) -> PhysicalAddress {
        let buffer_unit = self.again.pop_front().expect("a buffer unit failed");
        assert_eq!(
            self.buffer_unit(buffer_unit).state,
            BufferUnitState::Closed,
            "{buffer_unit:?} moves, but is not closed"
        );
        let (_, old) = self.buffer_unit_mut(buffer_unit).at.replace((at, place)).expect("it had a place");
        assert!(old != place, "{buffer_unit:?} moves to where it failed");
        self.by_place.remove(&old);
        self.by_place.insert(place, buffer_unit);
        self.buffer_unit_mut(buffer_unit).unit = unit;
        self.ready.push(buffer_unit, unit);
        old
    }

    fn free_buffer_unit(&mut self, id: BufferUnitId) {
        let buffer_unit = self.buffer_unit_mut(id);
        assert!(buffer_unit.state != BufferUnitState::Free, "{id:?} is free already");
        (buffer_unit.state, buffer_unit.at, buffer_unit.filled, buffer_unit.first_sequence) =
            (BufferUnitState::Free, None, EMPTY_BYTES, 0);
        let pool = buffer_unit.stream.pool();
        self.free[pool].push(id);
    }

    /// What a buffer unit holds can be read from media.
    pub fn release(&mut self, id: BufferUnitId) {
        assert_eq!(
            self.buffer_unit(id).state,
            BufferUnitState::Durable,
            "{id:?} is released before it is durable"
        );
        let (_, place) = self.buffer_unit(id).at.expect("it has a place");
        self.by_place.remove(&place);
        self.free_buffer_unit(id);
    }

    pub fn stream(&self, buffer_unit: BufferUnitId) -> Stream {
        self.buffer_unit(buffer_unit).stream
    }

    pub fn buffer(&self, buffer_unit: BufferUnitId) -> BufId {
        self.buffer_unit(buffer_unit).buffer
    }

    pub fn filled(&self, buffer_unit: BufferUnitId) -> u32 {
        self.buffer_unit(buffer_unit).filled
    }

    pub fn first_sequence(&self, buffer_unit: BufferUnitId) -> u64 {
        self.buffer_unit(buffer_unit).first_sequence
    }

    pub fn at(&self, buffer_unit: BufferUnitId) -> (Append, PhysicalAddress) {
        self.buffer_unit(buffer_unit).at.expect("a buffer unit in use has a place")
    }

    /// The buffer unit whose unit begins at a place.
    pub fn find(&self, unit: PhysicalAddress) -> Option<BufferUnitId> {
        self.by_place.get(&unit).copied()
    }

    /// Every record of these streams before this sequence is durable; all before `next` were given out.
    pub fn durable_before(&self, streams: &[Stream], next: u64) -> u64 {
        let first = streams.iter().map(|stream| self.volatile_from[stream.index()]).min();
        let first = first.filter(|&first| first < u64::MAX).unwrap_or(next);
        assert!(first <= next, "record {first} is volatile, and {next} is not given out");
        first
    }

    /// The first record of a stream that is not durable, `u64::MAX` if all are. Cost: a pass over the buffer units.
    fn first_volatile(&self, stream: Stream) -> u64 {
        let is_volatile = |buffer_unit: &&BufferUnit| {
            buffer_unit.stream == stream
                && buffer_unit.first_sequence > 0
                && matches!(buffer_unit.state, BufferUnitState::Opened | BufferUnitState::Closed)
        };
        let firsts =
            self.buffer_units.iter().filter(is_volatile).map(|buffer_unit| buffer_unit.first_sequence);
        firsts.min().unwrap_or(u64::MAX)
    }

    /// Asserts that no buffer unit was lost.
    pub fn check(&self) {
        let free: usize = self.free.iter().map(Vec::len).sum();
        let found =
            self.buffer_units.iter().filter(|buffer_unit| buffer_unit.state == BufferUnitState::Free).count();
        assert_eq!(free, found, "a free buffer unit is not listed");
        assert_eq!(self.by_place.len() + free, self.buffer_units.len(), "a buffer unit in use has no place");
        let closed = self
            .buffer_units
            .iter()
            .filter(|buffer_unit| buffer_unit.state == BufferUnitState::Closed)
            .count();
        assert_eq!(closed, self.on_their_way.iter().sum(), "buffer units on their way are counted wrong");
        let volatile = Stream::ALL.map(|stream| self.first_volatile(stream));
        assert_eq!(volatile, self.volatile_from, "the first volatile records are noted wrong");
        self.ready.check();
    }
}
