//! What is on its way to data chunks: buffer units of a write unit each, filled piece by piece, by stream.
//!
//! Stream 0 is users', stream 1 + g garbage collection's in group g, and behind these are pages of a map that is on media. A
//! buffer unit stays after it was programmed until its place can be read (MW_CUNITS): reads find its content here. Users, garbage
//! collection and the map have buffer units of their own, so that none waits for another. Deliberately not here: places,
//! transactions, what a piece is (`T`: a block, or a part of a page).

use super::sizes::Sizes;
use ocssd_base::usize_of;
use ocssd_ftl::PhysicalAddress;
use ocssd_lightnvm::BufId;
use std::collections::VecDeque;

/// A buffer unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BufferUnitId(pub u32);

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

/// What a buffer unit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferUnitOf {
    /// Data.
    Data,
    /// Pages of the map.
    Map,
}

#[derive(Clone, Debug)]
struct BufferUnit<T> {
    buffer: BufId,
    stream: StreamIndex,
    slots: Vec<T>,
    /// Sectors that hold something, from the first on.
    filled: u32,
    /// Where it is written; `None` before it is given out.
    place: Option<PhysicalAddress>,
    is_free: bool,
    /// The media failed it once.
    is_again: bool,
}

/// The buffer units of an instance.
#[derive(Clone, Debug)]
pub struct WriteBuffer<T> {
    unit: u32,
    buffer_units: Vec<BufferUnit<T>>,
    /// Free ones: of users, of garbage collection, of pages of the map.
    free: [Vec<BufferUnitId>; 3],
    /// By stream.
    filling: Vec<Option<BufferUnitId>>,
    ready: Vec<VecDeque<BufferUnitId>>,
}

impl<T: Copy> WriteBuffer<T> {
    /// Empty buffer units, as many for users as for garbage collection, whose buffers are taken now.
    pub fn new(sizes: &Sizes, groups: u32, take: &mut dyn FnMut(BufferUnitOf, u32) -> BufId) -> Self {
        let (count, map) = (2 * sizes.buffer_units, sizes.map_buffer_units);
        let of = |at| if at < count { BufferUnitOf::Data } else { BufferUnitOf::Map };
        let buffer_unit = |at| BufferUnit {
            buffer: take(of(at), sizes.unit),
            stream: StreamIndex::USER,
            slots: Vec::with_capacity(usize_of(sizes.unit)),
            filled: 0,
            place: None,
            is_free: true,
            is_again: false,
        };
        let buffer_units: Vec<BufferUnit<T>> = (0..count + map).map(buffer_unit).collect();
        let streams = usize_of(2 + groups);
        Self {
            unit: sizes.unit,
            buffer_units,
            free: [
                (0..sizes.buffer_units).rev().map(BufferUnitId).collect(),
                (sizes.buffer_units..count).rev().map(BufferUnitId).collect(),
                (count..count + map).rev().map(BufferUnitId).collect(),
            ],
            filling: vec![None; streams],
            ready: vec![VecDeque::new(); streams],
        }
    }

    fn buffer_unit(&self, buffer_unit: BufferUnitId) -> &BufferUnit<T> {
        &self.buffer_units[usize_of(buffer_unit.0)]
    }

    fn buffer_unit_mut(&mut self, buffer_unit: BufferUnitId) -> &mut BufferUnit<T> {
        &mut self.buffer_units[usize_of(buffer_unit.0)]
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

    /// Free buffer units a stream may take.
    pub fn free(&self, stream: StreamIndex) -> usize {
        self.free[self.pool_of(stream)].len()
    }

    /// The buffer unit a stream fills, or a free one; and how many sectors it still takes.
    pub fn filling(&mut self, stream: StreamIndex) -> Option<(BufferUnitId, u32)> {
        if self.filling[stream.index()].is_none() {
            let pool = self.pool_of(stream);
            let buffer_unit = self.free[pool].pop()?;
            let entry = self.buffer_unit_mut(buffer_unit);
            assert!(
                entry.is_free && entry.slots.is_empty() && entry.place.is_none(),
                "{buffer_unit:?} is not free"
            );
            (entry.is_free, entry.stream) = (false, stream);
            self.filling[stream.index()] = Some(buffer_unit);
        }
        let buffer_unit = self.filling[stream.index()].expect("it was taken");
        Some((buffer_unit, self.unit - self.filled(buffer_unit)))
    }

    /// Adds a piece to a buffer unit being filled, which takes so many sectors more. Gives the first of these in the buffer unit's
    /// buffer.
    pub fn push(&mut self, buffer_unit: BufferUnitId, slot: T, sectors: u32) -> (BufId, u32) {
        let offset = self.filled(buffer_unit);
        let (unit, entry) = (self.unit, self.buffer_unit_mut(buffer_unit));
        assert!(offset + sectors <= unit && entry.place.is_none(), "{buffer_unit:?} takes no more");
        entry.slots.push(slot);
        entry.filled += sectors;
        (entry.buffer, offset)
    }

    /// The buffer unit a stream fills is ready if it has no sector left.
    pub fn close_if_full(&mut self, stream: StreamIndex) {
        if self.partial(stream) == self.unit {
            self.close(stream);
        }
    }

    /// The buffer unit a stream fills is ready as it is.
    pub fn close(&mut self, stream: StreamIndex) {
        let buffer_unit = self.filling[stream.index()].take().expect("a buffer unit is being filled");
        assert!(self.filled(buffer_unit) > 0, "{buffer_unit:?} is ready with nothing in it");
        self.ready[stream.index()].push_back(buffer_unit);
    }

    /// Sectors in the buffer unit that a stream fills.
    pub fn partial(&self, stream: StreamIndex) -> u32 {
        self.filling[stream.index()].map_or(0, |buffer_unit| self.filled(buffer_unit))
    }

    /// Forgets what a stream filled and what of it was not written, and says what it was.
    pub fn drop_waiting_of(&mut self, stream: StreamIndex) -> Vec<T> {
        let filling = self.filling[stream.index()].take();
        let ready = std::mem::take(&mut self.ready[stream.index()]);
        let mut dropped = Vec::new();
        for buffer_unit in filling.into_iter().chain(ready) {
            dropped.extend_from_slice(&self.buffer_unit(buffer_unit).slots);
            self.release(buffer_unit);
        }
        dropped
    }

    /// The next buffer unit of a stream to be written.
    pub fn next_ready(&self, stream: StreamIndex) -> Option<BufferUnitId> {
        self.ready[stream.index()].front().copied()
    }

    /// Buffer units of a stream that wait.
    pub fn ready(&self, stream: StreamIndex) -> usize {
        self.ready[stream.index()].len()
    }

    /// The next ready buffer unit of a stream goes to `place`.
    pub fn issued(&mut self, stream: StreamIndex, place: PhysicalAddress) {
        let buffer_unit = self.ready[stream.index()].pop_front().expect("a buffer unit is ready");
        let entry = self.buffer_unit_mut(buffer_unit);
        assert!(entry.place.is_none(), "{buffer_unit:?} is written twice");
        entry.place = Some(place);
    }

    /// A write failed: the buffer unit goes out again, before all others of its stream.
    pub fn failed(&mut self, buffer_unit: BufferUnitId) {
        let entry = self.buffer_unit_mut(buffer_unit);
        assert!(entry.place.take().is_some(), "{buffer_unit:?} failed before it was written");
        entry.is_again = true;
        let stream = entry.stream;
        self.ready[stream.index()].push_front(buffer_unit);
    }

    /// Forgets every buffer unit that was not given out, and says what was in them. Pages of the map stay: they are read from
    /// there.
    pub fn drop_waiting(&mut self) -> Vec<T> {
        (0..self.map_stream().0).flat_map(|stream| self.drop_waiting_of(StreamIndex(stream))).collect()
    }

    /// A buffer unit is not needed any more.
    pub fn release(&mut self, buffer_unit: BufferUnitId) {
        let entry = self.buffer_unit_mut(buffer_unit);
        assert!(!entry.is_free, "{buffer_unit:?} is free already");
        entry.slots.clear();
        (entry.filled, entry.place, entry.is_free, entry.is_again) = (0, None, true, false);
        let stream = entry.stream;
        let pool = self.pool_of(stream);
        self.free[pool].push(buffer_unit);
    }

    /// True of a buffer unit that the media failed before.
    pub fn is_again(&self, buffer_unit: BufferUnitId) -> bool {
        self.buffer_unit(buffer_unit).is_again
    }

    /// The stream a buffer unit is of.
    pub fn stream(&self, buffer_unit: BufferUnitId) -> StreamIndex {
        self.buffer_unit(buffer_unit).stream
    }

    /// Where the content of a buffer unit is.
    pub fn buffer(&self, buffer_unit: BufferUnitId) -> BufId {
        self.buffer_unit(buffer_unit).buffer
    }

    /// Where a buffer unit is written, if it was given out.
    pub fn place(&self, buffer_unit: BufferUnitId) -> Option<PhysicalAddress> {
        self.buffer_unit(buffer_unit).place
    }

    /// What is in a buffer unit.
    pub fn slots(&self, buffer_unit: BufferUnitId) -> &[T] {
        &self.buffer_unit(buffer_unit).slots
    }

    /// Sectors in a buffer unit that hold something.
    pub fn filled(&self, buffer_unit: BufferUnitId) -> u32 {
        self.buffer_unit(buffer_unit).filled
    }

    /// Asserts that no buffer unit was lost.
    pub fn check(&self) {
        let free: usize = self.free.iter().map(Vec::len).sum();
        assert_eq!(
            free,
            self.buffer_units.iter().filter(|buffer_unit| buffer_unit.is_free).count(),
            "a free buffer unit is not listed"
        );
        let waiting = self.ready.iter().flatten().chain(self.filling.iter().flatten());
        for &buffer_unit in waiting {
            assert!(
                self.buffer_unit(buffer_unit).place.is_none() && !self.buffer_unit(buffer_unit).is_free,
                "{buffer_unit:?} does not wait"
            );
        }
    }
}
