//! The write buffer: frames of a unit, each with its place on media from its first record on.
//!
//! A stream fills its frames in the order in which it opened them, and they go out in that order, so that chunks are written
//! in order. A frame is released once the drive can read what it holds. Deliberately not here: places (`append`), commands
//! (`program`).

use super::ready::Ready;
use super::record::UNIT_HEADER_BYTES;
use super::sizes::Sizes;
use ocssd_base::usize_of;
use ocssd_ftl::{Append, Place, UnitIndex};
use ocssd_lightnvm::{BufId, Buffers};
use std::collections::{BTreeMap, VecDeque};

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameId(pub u32);

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

/// How far a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameState {
    Free,
    /// It has a place and takes records.
    Opened,
    /// It takes no more and is not durable: it waits, or is in flight, or failed.
    Closed,
    /// It is on media and cannot be read there yet.
    Durable,
}

#[derive(Clone, Debug)]
struct Frame {
    buffer: BufId,
    stream: Stream,
    state: FrameState,
    filled: u32,
    at: Option<(Append, Place)>,
    /// The unit that is on; of a frame with a place only.
    unit: UnitIndex,
    /// The sequence of its first record; 0 if it has none.
    first_sequence: u64,
}

/// The frames of an instance.
#[derive(Clone, Debug)]
pub struct Frames {
    frames: Vec<Frame>,
    /// Free ones: of users, of garbage collection.
    free: [Vec<FrameId>; 2],
    /// By stream, in order; the first one is being filled.
    opened: [VecDeque<FrameId>; 4],
    /// Closed ones that are to be written.
    ready: Ready,
    /// Users' and garbage collection's that are closed and not durable.
    on_their_way: [usize; 2],
    /// Those that the media failed: they need another place.
    again: VecDeque<FrameId>,
    by_place: BTreeMap<Place, FrameId>,
    /// By stream, the first record that is not durable; `u64::MAX` if all are.
    volatile_from: [u64; 4],
    unit_bytes: u32,
}

const EMPTY_BYTES: u32 = 40;
const _: () = assert!(UNIT_HEADER_BYTES == 40, "an empty frame has a header");

impl Frames {
    /// Empty frames, whose buffers are taken now, for writes that go out as `ready` says.
    pub fn new(sizes: &Sizes, ready: Ready, buffers: &mut Buffers) -> Self {
        let count = sizes.frames + sizes.gc_frames;
        let mut frame = |_| Frame {
            buffer: buffers.take_whole(sizes.unit),
            stream: Stream::Small,
            state: FrameState::Free,
            filled: EMPTY_BYTES,
            at: None,
            unit: UnitIndex(0),
            first_sequence: 0,
        };
        Self {
            frames: (0..count).map(&mut frame).collect(),
            free: [
                (0..sizes.frames).rev().map(FrameId).collect(),
                (sizes.frames..count).rev().map(FrameId).collect(),
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

    fn frame(&self, frame: FrameId) -> &Frame {
        &self.frames[usize_of(frame.0)]
    }

    fn frame_mut(&mut self, frame: FrameId) -> &mut Frame {
        &mut self.frames[usize_of(frame.0)]
    }

    /// True if a stream may open a frame.
    pub fn has_free(&self, stream: Stream) -> bool {
        !self.free[stream.pool()].is_empty()
    }

    /// A stream has one more frame, with a place.
    pub fn open(&mut self, stream: Stream, (at, place): (Append, Place), unit: UnitIndex) {
        let id = self.free[stream.pool()].pop().expect("it was asked for");
        let frame = self.frame_mut(id);
        assert!(frame.state == FrameState::Free && frame.at.is_none(), "{id:?} is not free: {frame:?}");
        *frame = Frame {
            stream,
            state: FrameState::Opened,
            filled: EMPTY_BYTES,
            at: Some((at, place)),
            unit,
            first_sequence: 0,
            ..*frame
        };
        self.opened[stream.index()].push_back(id);
        assert!(!self.by_place.contains_key(&place), "two frames lie at {place:?}");
        self.by_place.insert(place, id);
    }

    /// Frames a stream has that hold nothing yet, and bytes left in the one it fills.
    pub fn room(&self, stream: Stream) -> (usize, u32) {
        let opened = &self.opened[stream.index()];
        let Some(&first) = opened.front() else { return (0, 0) };
        if self.frame(first).filled == EMPTY_BYTES {
            return (opened.len(), 0);
        }
        (opened.len() - 1, self.unit_bytes - self.frame(first).filled)
    }

    /// Takes `bytes` of the frame a stream fills, after closing it if it has no room for them: the buffer, the byte there, and
    /// the frame's place.
    pub fn take(&mut self, stream: Stream, bytes: u32, sequence: u64) -> (BufId, u32, Append, Place) {
        assert!(bytes > 0 && sequence > 0, "a record of {bytes} bytes with sequence {sequence}");
        let first = *self.opened[stream.index()].front().expect("a frame was opened before");
        if self.frame(first).filled + bytes > self.unit_bytes {
            self.close(stream);
        }
        let id = *self.opened[stream.index()].front().expect("enough frames were opened before");
        let unit_bytes = self.unit_bytes;
        let frame = self.frame_mut(id);
        assert!(frame.state == FrameState::Opened, "{id:?} takes no records: {frame:?}");
        let begin = frame.filled;
        frame.filled += bytes;
        assert!(frame.filled <= unit_bytes, "{bytes} bytes do not fit behind {begin}");
        let is_first = frame.first_sequence == 0;
        if is_first {
            frame.first_sequence = sequence;
        }
        let (at, place) = frame.at.expect("an opened frame has a place");
        let taken = (frame.buffer, begin, at, place);
        if is_first {
            let from = &mut self.volatile_from[stream.index()];
            *from = sequence.min(*from);
        }
        taken
    }

    /// The frame that a stream fills takes no more, if it holds anything. True if it did.
    pub fn close(&mut self, stream: Stream) -> bool {
        let Some(&first) = self.opened[stream.index()].front() else { return false };
        if self.frame(first).filled == EMPTY_BYTES {
            return false;
        }
        self.opened[stream.index()].pop_front();
        let frame = self.frame_mut(first);
        frame.state = FrameState::Closed;
        let unit = frame.unit;
        self.on_their_way[stream.pool()] += 1;
        self.ready.push(first, unit);
        true
    }

    /// The sequence of the first record in the frame that a stream fills; 0 if there is none.
    pub fn first_of_filling(&self, stream: Stream) -> u64 {
        self.opened[stream.index()].front().map_or(0, |&frame| self.frame(frame).first_sequence)
    }

    /// Bytes in the frame that a stream fills.
    pub fn filled_of_filling(&self, stream: Stream) -> u32 {
        self.opened[stream.index()].front().map_or(0, |&frame| self.frame(frame).filled - EMPTY_BYTES)
    }

    /// The next frame to be written, if its unit has room for a write.
    pub fn next_ready(&mut self) -> Option<FrameId> {
        let frame = self.ready.next()?;
        assert_eq!(self.frame(frame).state, FrameState::Closed, "{frame:?} goes out before it is closed");
        assert!(self.frame(frame).filled > EMPTY_BYTES, "{frame:?} goes out with nothing in it");
        Some(frame)
    }

    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Frames of users, or of garbage collection, that are on their way.
    pub const fn on_their_way(&self, stream: Stream) -> usize {
        self.on_their_way[stream.pool()]
    }

    /// A write ended well: the frame is durable.
    pub fn written(&mut self, frame: FrameId) {
        self.ended(frame);
        let pool = self.frame(frame).stream.pool();
        assert!(self.on_their_way[pool] > 0, "{frame:?} was not on its way");
        self.on_their_way[pool] -= 1;
        self.frame_mut(frame).state = FrameState::Durable;
        let Frame { stream, first_sequence, .. } = *self.frame(frame);
        if self.volatile_from[stream.index()] == first_sequence {
            self.volatile_from[stream.index()] = self.first_volatile(stream);
        }
    }

    /// A write failed: the frame needs another place.
    pub fn failed(&mut self, frame: FrameId) {
        self.ended(frame);
        self.again.push_back(frame);
    }

    fn ended(&mut self, frame: FrameId) {
        assert_eq!(self.frame(frame).state, FrameState::Closed, "{frame:?} was not being written");
        let unit = self.frame(frame).unit;
        self.ready.ended(unit);
    }

    pub fn next_again(&self) -> Option<FrameId> {
        self.again.front().copied()
    }

    /// An opened frame of a stream that holds nothing gives its place away; the last of them.
    pub fn give_place(&mut self, stream: Stream) -> Option<(Append, Place)> {
        let &first = self.opened[stream.index()].front()?;
        assert_eq!(self.frame(first).filled, EMPTY_BYTES, "the frame being filled is closed before");
        self.opened[stream.index()].pop_front();
        let (_, place) = self.frame(first).at.expect("an opened frame has a place");
        let at = self.frame(first).at;
        self.by_place.remove(&place);
        self.free_frame(first);
        at
    }

    /// The frame that failed first has another place: where it was. It is ready again.
    pub fn moved(&mut self, (at, place): (Append, Place), unit: UnitIndex) -> Place {
        let frame = self.again.pop_front().expect("a frame failed");
        assert_eq!(self.frame(frame).state, FrameState::Closed, "{frame:?} moves, but is not closed");
        let (_, old) = self.frame_mut(frame).at.replace((at, place)).expect("it had a place");
        assert!(old != place, "{frame:?} moves to where it failed");
        self.by_place.remove(&old);
        self.by_place.insert(place, frame);
        self.frame_mut(frame).unit = unit;
        self.ready.push(frame, unit);
        old
    }

    fn free_frame(&mut self, id: FrameId) {
        let frame = self.frame_mut(id);
        assert!(frame.state != FrameState::Free, "{id:?} is free already");
        (frame.state, frame.at, frame.filled, frame.first_sequence) =
            (FrameState::Free, None, EMPTY_BYTES, 0);
        let pool = frame.stream.pool();
        self.free[pool].push(id);
    }

    /// What a frame holds can be read from media.
    pub fn release(&mut self, id: FrameId) {
        assert_eq!(self.frame(id).state, FrameState::Durable, "{id:?} is released before it is durable");
        let (_, place) = self.frame(id).at.expect("it has a place");
        self.by_place.remove(&place);
        self.free_frame(id);
    }

    pub fn stream(&self, frame: FrameId) -> Stream {
        self.frame(frame).stream
    }

    pub fn buffer(&self, frame: FrameId) -> BufId {
        self.frame(frame).buffer
    }

    pub fn filled(&self, frame: FrameId) -> u32 {
        self.frame(frame).filled
    }

    pub fn first_sequence(&self, frame: FrameId) -> u64 {
        self.frame(frame).first_sequence
    }

    pub fn at(&self, frame: FrameId) -> (Append, Place) {
        self.frame(frame).at.expect("a frame in use has a place")
    }

    /// The frame whose unit begins at a place.
    pub fn find(&self, unit: Place) -> Option<FrameId> {
        self.by_place.get(&unit).copied()
    }

    /// Every record of these streams before this sequence is durable; all before `next` were given out.
    pub fn durable_before(&self, streams: &[Stream], next: u64) -> u64 {
        let first = streams.iter().map(|stream| self.volatile_from[stream.index()]).min();
        let first = first.filter(|&first| first < u64::MAX).unwrap_or(next);
        assert!(first <= next, "record {first} is volatile, and {next} is not given out");
        first
    }

    /// The first record of a stream that is not durable, `u64::MAX` if all are. Cost: a pass over the frames.
    fn first_volatile(&self, stream: Stream) -> u64 {
        let is_volatile = |frame: &&Frame| {
            frame.stream == stream
                && frame.first_sequence > 0
                && matches!(frame.state, FrameState::Opened | FrameState::Closed)
        };
        let firsts = self.frames.iter().filter(is_volatile).map(|frame| frame.first_sequence);
        firsts.min().unwrap_or(u64::MAX)
    }

    /// Asserts that no frame was lost.
    pub fn check(&self) {
        let free: usize = self.free.iter().map(Vec::len).sum();
        let found = self.frames.iter().filter(|frame| frame.state == FrameState::Free).count();
        assert_eq!(free, found, "a free frame is not listed");
        assert_eq!(self.by_place.len() + free, self.frames.len(), "a frame in use has no place");
        let closed = self.frames.iter().filter(|frame| frame.state == FrameState::Closed).count();
        assert_eq!(closed, self.on_their_way.iter().sum(), "frames on their way are counted wrong");
        let volatile = Stream::ALL.map(|stream| self.first_volatile(stream));
        assert_eq!(volatile, self.volatile_from, "the first volatile records are noted wrong");
        self.ready.check();
    }
}
