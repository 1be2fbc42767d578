//! What is on its way to data chunks: frames of a write unit each, filled piece by piece, by stream.
//!
//! Stream 0 is users', stream 1 + g garbage collection's in group g, and behind these are pages of a map that is on media. A frame
//! stays after it landed until its place can be read (MW_CUNITS): reads find its content here. Users, garbage collection and the
//! map have frames of their own, so that none waits for another. Deliberately not here: places, transactions, what a piece is (`T`:
//! a block, or a part of a page).

use super::sizes::Sizes;
use ocssd_base::usize_of;
use ocssd_ftl::Place;
use ocssd_lightnvm::BufId;
use std::collections::VecDeque;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamIndex(pub u32);

impl StreamIndex {
    /// Users.
    pub const USER: Self = Self(0);

    /// Garbage collection in a group.
    pub const fn of_group(group: u32) -> Self {
        Self(1 + group)
    }

    pub fn index(self) -> usize {
        usize_of(self.0)
    }
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOf {
    /// Data.
    Data,
    /// Pages of the map.
    Map,
}

#[derive(Clone, Debug)]
struct Frame<T> {
    buffer: BufId,
    stream: StreamIndex,
    slots: Vec<T>,
    /// Sectors that hold something, from the first on.
    filled: u32,
    /// Where it is written; `None` before it is given out.
    place: Option<Place>,
    is_free: bool,
    /// The media failed it once.
    is_again: bool,
}

/// The frames of an instance.
#[derive(Clone, Debug)]
pub struct WriteBuffer<T> {
    unit: u32,
    frames: Vec<Frame<T>>,
    /// Free ones: of users, of garbage collection, of pages of the map.
    free: [Vec<FrameId>; 3],
    /// By stream.
    filling: Vec<Option<FrameId>>,
    ready: Vec<VecDeque<FrameId>>,
}

impl<T: Copy> WriteBuffer<T> {
    /// Empty frames, as many for users as for garbage collection, whose buffers are taken now.
    pub fn new(sizes: &Sizes, groups: u32, take: &mut dyn FnMut(FrameOf, u32) -> BufId) -> Self {
        let (count, map) = (2 * sizes.frames, sizes.map_frames);
        let of = |at| if at < count { FrameOf::Data } else { FrameOf::Map };
        let frame = |at| Frame {
            buffer: take(of(at), sizes.unit),
            stream: StreamIndex::USER,
            slots: Vec::with_capacity(usize_of(sizes.unit)),
            filled: 0,
            place: None,
            is_free: true,
            is_again: false,
        };
        let frames: Vec<Frame<T>> = (0..count + map).map(frame).collect();
        let streams = usize_of(2 + groups);
        Self {
            unit: sizes.unit,
            frames,
            free: [
                (0..sizes.frames).rev().map(FrameId).collect(),
                (sizes.frames..count).rev().map(FrameId).collect(),
                (count..count + map).rev().map(FrameId).collect(),
            ],
            filling: vec![None; streams],
            ready: vec![VecDeque::new(); streams],
        }
    }

    fn frame(&self, frame: FrameId) -> &Frame<T> {
        &self.frames[usize_of(frame.0)]
    }

    fn frame_mut(&mut self, frame: FrameId) -> &mut Frame<T> {
        &mut self.frames[usize_of(frame.0)]
    }

    fn pool_of(&self, stream: StreamIndex) -> usize {
        match stream {
            StreamIndex::USER => 0,
            _ if self.is_of_map(stream) => 2,
            _ => 1,
        }
    }

    /// The stream of pages of the map: the last.
    pub fn map_stream(&self) -> StreamIndex {
        StreamIndex(u32::try_from(self.filling.len() - 1).expect("few streams"))
    }

    /// True of the stream of pages of the map.
    pub fn is_of_map(&self, stream: StreamIndex) -> bool {
        stream == self.map_stream()
    }

    /// Free frames a stream may take.
    pub fn free(&self, stream: StreamIndex) -> usize {
        self.free[self.pool_of(stream)].len()
    }

    /// The frame a stream fills, or a free one; and how many sectors it still takes.
    pub fn filling(&mut self, stream: StreamIndex) -> Option<(FrameId, u32)> {
        if self.filling[stream.index()].is_none() {
            let pool = self.pool_of(stream);
            let frame = self.free[pool].pop()?;
            let entry = self.frame_mut(frame);
            assert!(
                entry.is_free && entry.slots.is_empty() && entry.place.is_none(),
                "{frame:?} is not free"
            );
            (entry.is_free, entry.stream) = (false, stream);
            self.filling[stream.index()] = Some(frame);
        }
        let frame = self.filling[stream.index()].expect("it was taken");
        Some((frame, self.unit - self.filled(frame)))
    }

    /// Adds a piece to a frame being filled, which takes so many sectors more. Gives the first of these in the frame's buffer.
    pub fn push(&mut self, frame: FrameId, slot: T, sectors: u32) -> (BufId, u32) {
        let offset = self.filled(frame);
        let (unit, entry) = (self.unit, self.frame_mut(frame));
        assert!(offset + sectors <= unit && entry.place.is_none(), "{frame:?} takes no more");
        entry.slots.push(slot);
        entry.filled += sectors;
        (entry.buffer, offset)
    }

    /// The frame a stream fills is ready if it has no sector left.
    pub fn close_if_full(&mut self, stream: StreamIndex) {
        if self.partial(stream) == self.unit {
            self.close(stream);
        }
    }

    /// The frame a stream fills is ready as it is.
    pub fn close(&mut self, stream: StreamIndex) {
        let frame = self.filling[stream.index()].take().expect("a frame is being filled");
        assert!(self.filled(frame) > 0, "{frame:?} is ready with nothing in it");
        self.ready[stream.index()].push_back(frame);
    }

    /// Sectors in the frame that a stream fills.
    pub fn partial(&self, stream: StreamIndex) -> u32 {
        self.filling[stream.index()].map_or(0, |frame| self.filled(frame))
    }

    /// Forgets what a stream filled, and says what it was.
    pub fn drop_filling(&mut self, stream: StreamIndex) -> Vec<T> {
        let Some(frame) = self.filling[stream.index()].take() else { return Vec::new() };
        let slots = self.frame(frame).slots.clone();
        self.release(frame);
        slots
    }

    /// The next frame of a stream to be written.
    pub fn next_ready(&self, stream: StreamIndex) -> Option<FrameId> {
        self.ready[stream.index()].front().copied()
    }

    /// Frames of a stream that wait.
    pub fn ready(&self, stream: StreamIndex) -> usize {
        self.ready[stream.index()].len()
    }

    /// The next ready frame of a stream goes to `place`.
    pub fn issued(&mut self, stream: StreamIndex, place: Place) {
        let frame = self.ready[stream.index()].pop_front().expect("a frame is ready");
        let entry = self.frame_mut(frame);
        assert!(entry.place.is_none(), "{frame:?} is written twice");
        entry.place = Some(place);
    }

    /// A write failed: the frame goes out again, before all others of its stream.
    pub fn failed(&mut self, frame: FrameId) {
        let entry = self.frame_mut(frame);
        assert!(entry.place.take().is_some(), "{frame:?} failed before it was written");
        entry.is_again = true;
        let stream = entry.stream;
        self.ready[stream.index()].push_front(frame);
    }

    /// Forgets every frame that was not given out, and says what was in them. Pages of the map stay: they are read from there.
    pub fn drop_waiting(&mut self) -> Vec<T> {
        let mut dropped = Vec::new();
        for stream in (0..self.map_stream().0).map(StreamIndex) {
            dropped.extend(self.drop_filling(stream));
            while let Some(frame) = self.ready[stream.index()].pop_front() {
                dropped.extend_from_slice(&self.frame(frame).slots);
                self.release(frame);
            }
        }
        dropped
    }

    /// A frame is not needed any more.
    pub fn release(&mut self, frame: FrameId) {
        let entry = self.frame_mut(frame);
        assert!(!entry.is_free, "{frame:?} is free already");
        entry.slots.clear();
        (entry.filled, entry.place, entry.is_free, entry.is_again) = (0, None, true, false);
        let stream = entry.stream;
        let pool = self.pool_of(stream);
        self.free[pool].push(frame);
    }

    /// True of a frame that the media failed before.
    pub fn is_again(&self, frame: FrameId) -> bool {
        self.frame(frame).is_again
    }

    /// The stream a frame is of.
    pub fn stream(&self, frame: FrameId) -> StreamIndex {
        self.frame(frame).stream
    }

    /// Where the content of a frame is.
    pub fn buffer(&self, frame: FrameId) -> BufId {
        self.frame(frame).buffer
    }

    /// Where a frame is written, if it was given out.
    pub fn place(&self, frame: FrameId) -> Option<Place> {
        self.frame(frame).place
    }

    /// What is in a frame.
    pub fn slots(&self, frame: FrameId) -> &[T] {
        &self.frame(frame).slots
    }

    /// Sectors in a frame that hold something.
    pub fn filled(&self, frame: FrameId) -> u32 {
        self.frame(frame).filled
    }

    /// Asserts that no frame was lost.
    pub fn check(&self) {
        let free: usize = self.free.iter().map(Vec::len).sum();
        assert_eq!(
            free,
            self.frames.iter().filter(|frame| frame.is_free).count(),
            "a free frame is not listed"
        );
        let waiting = self.ready.iter().flatten().chain(self.filling.iter().flatten());
        for &frame in waiting {
            assert!(
                self.frame(frame).place.is_none() && !self.frame(frame).is_free,
                "{frame:?} does not wait"
            );
        }
    }
}
