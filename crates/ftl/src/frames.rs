//! The write buffer: sectors on their way to media, in frames of one write unit.
//!
//! pblk's ring (FAST'17 section 4.2.1; `pblk.md` 1.2) holds single sectors between four pointers. Here a frame of WS_OPT
//! sectors is what is filled, written and released, so that one command takes one frame's memory as it lies and frames
//! may finish in any order. Released in the order they were taken, they are pblk's ring; released as they become
//! readable, they are a pool. A frame is emptied only when its place is needed: until then the buffer answers reads,
//! which is how MW_CUNITS is honoured.
//!
//! States: free -> filling -> ready -> programming -> written -> evictable -> filling again. A sector is an *entry*, which
//! the map may name, or a *copy* that garbage collection makes: of it no more is kept than where the original lies, for
//! its tag was copied along and the map names the original until the copy landed. Deliberately not here: the memory itself
//! (a buffer of the pool), the map, who decides when to write.

mod copies;

use crate::place::Place;
use crate::tag::{Kind, SectorTag, Sequence};
use crate::{Slot, Stream};
use ocssd_base::{Divisor, Ring, usize_of};
use std::collections::BTreeSet;

/// Most streams (chosen: SepBIT has six, snapshots one).
const STREAMS_MAX: usize = 8;
/// Most sectors of a frame: what one vector command writes (OCSSD 2.0 section 3.4: 64 addresses), a bit each in a word.
const UNIT_MAX: u32 = 64;

/// A frame of the buffer, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

impl FrameId {
    fn index(self) -> usize {
        usize::try_from(self.0).expect("32 bits fit an index")
    }
}

/// Where a frame is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameState {
    /// Nothing in it.
    Free,
    /// Taking sectors.
    Filling,
    /// Full, or closed before it was; waits for a unit to write it to.
    Ready,
    /// A command writes it.
    Programming,
    /// Its write was acknowledged; the media cannot be read there yet.
    Written,
    /// Its media can be read; its memory may be taken.
    Evictable,
}

/// In which order frames become evictable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// As they were taken: pblk's ring. Reads may then go to media that cannot be read yet.
    InOrder,
    /// As their media become readable.
    AsReadable,
}

/// A sector of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What goes beside it.
    pub tag: SectorTag,
    /// The newest durable version of the block before this one: stays valid until this one is durable.
    pub previous: Option<Place>,
    /// Since when that is.
    pub previous_sequence: Sequence,
    /// Garbage collection put it there; else a user did.
    pub from_gc: bool,
    /// Its tag was copied with its content, and need not be made again.
    pub is_sealed: bool,
    /// The map says that the block is here: kept beside the map, because asking it is a cache miss.
    pub is_newest: bool,
}

impl Entry {
    /// An entry that fills.
    pub const PAD: Self = Self {
        tag: SectorTag::PAD,
        previous: None,
        previous_sequence: Sequence(0),
        from_gc: false,
        is_sealed: false,
        is_newest: false,
    };
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    state: FrameState,
    stream: Stream,
    filled: u32,
    /// Sectors that writing it takes, once it is closed.
    sectors: u32,
    /// Least sequence of an entry that a flush waits for.
    oldest: Sequence,
    place: Place,
    /// Which of its slots hold copies, a bit each.
    copies: u64,
}

impl Frame {
    /// Its content is not acknowledged by the media: where it comes from matters.
    const fn is_waiting(&self) -> bool {
        matches!(self.state, FrameState::Filling | FrameState::Ready | FrameState::Programming)
    }
}

/// Counts of the buffer, as pblk's sysfs `write_buffer` gave them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Frames with nothing in them.
    pub free: u32,
    /// Frames whose data is not acknowledged by the media.
    pub unwritten: u32,
    /// Frames acknowledged, not readable yet.
    pub written: u32,
    /// Frames kept only as a cache.
    pub evictable: u32,
}

/// The frames.
#[derive(Clone, Debug)]
pub struct Frames {
    unit: u32,
    per_frame: Divisor,
    release: Release,
    frames: Vec<Frame>,
    entries: Vec<Entry>,
    /// Where the original of each copy lies. In a slot without a copy it means nothing, nor in a frame that landed.
    origins: Vec<Place>,
    free: Ring<FrameId>,
    evictable: Ring<FrameId>,
    /// In the order they were taken; only for [`Release::InOrder`].
    taken: Ring<FrameId>,
    /// Frames a flush waits for, by their oldest entry.
    unwritten: BTreeSet<(Sequence, FrameId)>,
    /// Frames that are being filled, ready or written now.
    in_use: u32,
    /// Frames of each stream that are not evictable.
    held: [u32; STREAMS_MAX],
}

impl Frames {
    /// `count` frames of `unit` sectors.
    ///
    /// # Panics
    /// If either is zero, a frame is more than one command writes, or the sectors do not have 32-bit numbers.
    #[must_use]
    pub fn new(count: u32, unit: u32, release: Release) -> Self {
        assert!(count > 0 && unit > 0, "a write buffer holds at least one unit");
        assert!(unit <= UNIT_MAX, "{unit} sectors are not written by one command");
        let slots = count.checked_mul(unit).expect("a write buffer has fewer than 2^32 sectors");
        let places = usize_of(count);
        let mut free = Ring::new(places);
        for frame in (0..count).map(FrameId) {
            free.push(frame).expect("there is a place for each");
        }
        let empty = Frame {
            state: FrameState::Free,
            stream: Stream(0),
            filled: 0,
            sectors: 0,
            oldest: Sequence(u64::MAX),
            place: Place(0),
            copies: 0,
        };
        Self {
            unit,
            per_frame: Divisor::new(u64::from(unit)),
            release,
            frames: vec![empty; places],
            entries: vec![Entry::PAD; usize_of(slots)],
            origins: vec![Place(0); usize_of(slots)],
            free,
            evictable: Ring::new(places),
            taken: Ring::new(places),
            unwritten: BTreeSet::new(),
            in_use: 0,
            held: [0; STREAMS_MAX],
        }
    }

    /// Sectors of a frame.
    #[must_use]
    pub const fn unit(&self) -> u32 {
        self.unit
    }

    /// Sectors of the buffer.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.count() * self.unit
    }

    /// Frames.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.frames.len()).expect("fewer frames than 2^32")
    }

    /// Frames that can be taken now.
    #[must_use]
    pub fn available(&self) -> usize {
        self.free.len() + self.evictable.len()
    }

    /// The frame a slot belongs to.
    #[must_use]
    pub fn frame_of(&self, slot: Slot) -> FrameId {
        assert!(slot.0 < self.slots(), "slot {} is beyond the buffer", slot.0);
        FrameId(self.per_frame.div_rem_u32(slot.0).0)
    }

    /// The first slot of a frame.
    #[must_use]
    pub fn first_slot(&self, frame: FrameId) -> Slot {
        Slot(frame.0 * self.unit)
    }

    /// The entry in a slot.
    #[must_use]
    pub fn entry(&self, slot: Slot) -> &Entry {
        &self.entries[usize_of(slot.0)]
    }

    /// The entry in a slot, to change.
    pub fn entry_mut(&mut self, slot: Slot) -> &mut Entry {
        &mut self.entries[usize_of(slot.0)]
    }

    /// Which of a frame's slots hold copies, a bit each from its first slot on.
    #[must_use]
    pub fn copies(&self, frame: FrameId) -> u64 {
        self.frames[frame.index()].copies
    }

    /// What lies in a frame's filled slots that hold no copies, in order, each with its number within the frame.
    pub fn entries(&self, frame: FrameId) -> impl Iterator<Item = (u32, &Entry)> {
        let first = usize_of(self.first_slot(frame).0);
        let entries = &self.entries[first..first + usize_of(self.unit)];
        bits_of(self.entry_bits(frame)).map(move |at| (at, &entries[usize_of(at)]))
    }

    /// The block of a slot is elsewhere from now on.
    ///
    /// # Panics
    /// If it was elsewhere already.
    pub fn supersede(&mut self, slot: Slot) {
        let entry = self.entry_mut(slot);
        assert!(entry.is_newest, "slot {} was superseded twice", slot.0);
        entry.is_newest = false;
    }

    /// Where a slot's content is on media, if its write was acknowledged.
    #[must_use]
    pub fn durable_place(&self, slot: Slot) -> Option<Place> {
        let frame = self.frame_of(slot);
        let is_written = matches!(self.state(frame), FrameState::Written | FrameState::Evictable);
        let offset = u64::from(slot.0 - self.first_slot(frame).0);
        is_written.then(|| Place(self.place(frame).0 + offset))
    }

    /// The newest durable version of a block whose newest is in a slot, and since when it is: the slot's own place, or the
    /// version before, out of its hands.
    pub fn take_durable(&mut self, slot: Slot) -> (Option<Place>, Sequence) {
        if let Some(place) = self.durable_place(slot) {
            return (Some(place), self.entry(slot).tag.sequence);
        }
        let entry = self.entry_mut(slot);
        (entry.previous.take(), entry.previous_sequence)
    }

    /// The state of a frame.
    #[must_use]
    pub fn state(&self, frame: FrameId) -> FrameState {
        self.frames[frame.index()].state
    }

    /// The stream a frame was taken for.
    #[must_use]
    pub fn stream(&self, frame: FrameId) -> Stream {
        self.frames[frame.index()].stream
    }

    /// Sectors filled, in a frame being filled or after.
    #[must_use]
    pub fn filled(&self, frame: FrameId) -> u32 {
        self.frames[frame.index()].filled
    }

    /// Sectors that writing a closed frame takes.
    #[must_use]
    pub fn sectors(&self, frame: FrameId) -> u32 {
        let entry = &self.frames[frame.index()];
        assert!(
            !matches!(entry.state, FrameState::Free | FrameState::Filling),
            "frame {} is not closed",
            frame.0
        );
        entry.sectors
    }

    /// Room left in a frame being filled.
    #[must_use]
    pub fn room(&self, frame: FrameId) -> u32 {
        let entry = &self.frames[frame.index()];
        assert_eq!(entry.state, FrameState::Filling, "only a frame being filled has room");
        self.unit - entry.filled
    }

    /// Where the frame was or is written: its first sector.
    #[must_use]
    pub fn place(&self, frame: FrameId) -> Place {
        let entry = &self.frames[frame.index()];
        assert!(
            matches!(entry.state, FrameState::Programming | FrameState::Written | FrameState::Evictable),
            "a frame that is not written has no place"
        );
        entry.place
    }

    /// Takes a frame to fill. The oldest evictable one is emptied if none is free: `evict` is told each of its entries and
    /// the place it was written to. Of copies it is not told: the map does not name them.
    pub fn take(&mut self, stream: Stream, mut evict: impl FnMut(Slot, &Entry, Place)) -> Option<FrameId> {
        if self.free.is_empty() {
            self.evict_oldest(&mut evict);
        }
        let frame = self.free.pop()?;
        let entry = &mut self.frames[frame.index()];
        assert!(matches!(entry.state, FrameState::Free), "a frame in use was taken");
        *entry = Frame {
            state: FrameState::Filling,
            stream,
            filled: 0,
            sectors: 0,
            oldest: Sequence(u64::MAX),
            place: Place(0),
            copies: 0,
        };
        self.in_use += 1;
        self.held[stream.index()] += 1;
        if self.release == Release::InOrder {
            self.taken.push(frame).expect("there is a place for each");
        }
        Some(frame)
    }

    /// The frame [`Frames::take`] would empty now; none if there is a free one, or nothing to empty.
    #[must_use]
    pub fn next_emptied(&self) -> Option<FrameId> {
        if self.free.is_empty() { self.evictable.front().copied() } else { None }
    }

    /// Empties the oldest evictable frame, if there is one; `evict` is told as [`Frames::take`] says.
    pub fn evict_oldest(&mut self, mut evict: impl FnMut(Slot, &Entry, Place)) {
        let Some(frame) = self.evictable.pop() else { return };
        let first = self.first_slot(frame);
        let Frame { place, state, .. } = self.frames[frame.index()];
        assert_eq!(state, FrameState::Evictable, "a frame in use was emptied");
        for offset in bits_of(self.entry_bits(frame)) {
            let slot = Slot(first.0 + offset);
            evict(slot, &self.entries[usize_of(slot.0)], Place(place.0 + u64::from(offset)));
        }
        self.frames[frame.index()].state = FrameState::Free;
        self.free.push(frame).expect("there is a place for each");
    }

    /// Puts an entry into the next slot of a frame being filled. `awaited`: a flush must wait for it.
    pub fn push(&mut self, frame: FrameId, entry: Entry, awaited: bool) -> Slot {
        assert!(self.room(frame) > 0, "frame {} is full", frame.0);
        let slot = Slot(frame.0 * self.unit + self.frames[frame.index()].filled);
        self.entries[usize_of(slot.0)] = entry;
        let header = &mut self.frames[frame.index()];
        header.filled += 1;
        if awaited && entry.tag.sequence < header.oldest {
            let old = header.oldest;
            header.oldest = entry.tag.sequence;
            if old != Sequence(u64::MAX) {
                self.unwritten.remove(&(old, frame));
            }
            self.unwritten.insert((entry.tag.sequence, frame));
        }
        slot
    }

    /// Which slots of a frame hold entries.
    fn entry_bits(&self, frame: FrameId) -> u64 {
        let header = &self.frames[frame.index()];
        low_bits(header.filled) & !header.copies
    }

    /// Least sequence in a frame that a flush waits for; the largest number there is if there is none.
    #[must_use]
    pub fn oldest(&self, frame: FrameId) -> Sequence {
        self.frames[frame.index()].oldest
    }

    /// No more sectors go into the frame, and writing it takes so many: what is filled, and fill behind it.
    pub fn close(&mut self, frame: FrameId, sectors: u32) {
        let most = self.unit;
        let header = &mut self.frames[frame.index()];
        assert_eq!(header.state, FrameState::Filling, "only a frame being filled is closed");
        assert!(header.filled > 0, "an empty frame was closed");
        assert!(
            (header.filled..=most).contains(&sectors),
            "{sectors} sectors are written of {}",
            header.filled
        );
        header.sectors = sectors;
        header.state = FrameState::Ready;
    }

    /// A command writes the frame at `place`.
    pub fn programming(&mut self, frame: FrameId, place: Place) {
        let header = &mut self.frames[frame.index()];
        assert_eq!(header.state, FrameState::Ready, "only a ready frame is written");
        header.state = FrameState::Programming;
        header.place = place;
    }

    /// The write failed: the frame waits for another place.
    pub fn failed(&mut self, frame: FrameId) {
        let header = &mut self.frames[frame.index()];
        assert_eq!(header.state, FrameState::Programming, "a frame failed that was not being written");
        header.state = FrameState::Ready;
    }

    /// The write was acknowledged.
    pub fn written(&mut self, frame: FrameId) {
        let header = &mut self.frames[frame.index()];
        assert_eq!(
            header.state,
            FrameState::Programming,
            "a frame was acknowledged that was not being written"
        );
        header.state = FrameState::Written;
        self.in_use -= 1;
        if header.oldest != Sequence(u64::MAX) {
            let known = self.unwritten.remove(&(header.oldest, frame));
            assert!(known, "a frame with awaited sectors was not listed");
        }
        if self.release == Release::InOrder {
            while let Some(&oldest) = self.taken.front() {
                if self.frames[oldest.index()].state != FrameState::Written {
                    break;
                }
                self.taken.pop();
                self.make_evictable(oldest);
            }
        }
    }

    /// The frame's media can be read. Nothing to do where release is in order.
    pub fn readable(&mut self, frame: FrameId) {
        if self.release == Release::AsReadable {
            self.make_evictable(frame);
        }
    }

    fn make_evictable(&mut self, frame: FrameId) {
        let header = &mut self.frames[frame.index()];
        assert_eq!(header.state, FrameState::Written, "a frame became evictable before it was written");
        header.state = FrameState::Evictable;
        self.held[header.stream.index()] -= 1;
        self.evictable.push(frame).expect("there is a place for each");
    }

    /// Frames of a stream whose memory cannot be taken. Cost: a load.
    #[must_use]
    pub const fn held_by(&self, stream: Stream) -> u32 {
        self.held[stream.0 as usize]
    }

    /// The slot whose content was acknowledged at `place` and is still here. Cost: a pass over the frames.
    #[must_use]
    pub fn slot_at(&self, place: Place) -> Option<Slot> {
        let holds = |frame: &Frame| {
            let is_written = matches!(frame.state, FrameState::Written | FrameState::Evictable);
            is_written && (frame.place.0..frame.place.0 + u64::from(frame.filled)).contains(&place.0)
        };
        let frame = self.frames.iter().position(holds)?;
        let offset = u32::try_from(place.0 - self.frames[frame].place.0).expect("within a frame");
        let first = u32::try_from(frame).expect("fewer frames than 2^32") * self.unit;
        Some(Slot(first + offset))
    }

    /// Lets go of `place` as the version before an entry's; false if none holds it. Cost: a pass over the entries.
    pub fn drop_previous(&mut self, place: Place) -> bool {
        let holder = self.entries.iter_mut().find(|entry| entry.previous == Some(place));
        holder.is_some_and(|entry| entry.previous.take().is_some())
    }

    /// Frames whose content is not acknowledged by the media, or that are being filled. Cost: a load.
    #[must_use]
    pub const fn in_use(&self) -> u32 {
        self.in_use
    }

    /// The least sequence a flush must still wait for.
    #[must_use]
    pub fn oldest_unwritten(&self) -> Option<Sequence> {
        self.unwritten.first().map(|&(sequence, _)| sequence)
    }

    /// How full the buffer is. Cost: a pass over the frames.
    #[must_use]
    pub fn occupancy(&self) -> Occupancy {
        let mut occupancy = Occupancy::default();
        for frame in &self.frames {
            match frame.state {
                FrameState::Free => occupancy.free += 1,
                FrameState::Filling | FrameState::Ready | FrameState::Programming => occupancy.unwritten += 1,
                FrameState::Written => occupancy.written += 1,
                FrameState::Evictable => occupancy.evictable += 1,
            }
        }
        occupancy
    }

    /// Entries that hold the newest version of a block. Cost: a pass over the entries.
    #[must_use]
    pub fn count_newest(&self) -> usize {
        let in_use = |frame: &FrameId| self.state(*frame) != FrameState::Free;
        let frames = (0..self.count()).map(FrameId).filter(in_use);
        frames.flat_map(|frame| self.live(frame)).filter(|(_, entry)| entry.is_newest).count()
    }

    /// Asserts that every list agrees with the states.
    pub fn check(&self) {
        let occupancy = self.occupancy();
        assert_eq!(usize_of(occupancy.free), self.free.len(), "free frames and their list disagree");
        assert_eq!(
            usize_of(occupancy.evictable),
            self.evictable.len(),
            "evictable frames and their list disagree"
        );
        assert_eq!(occupancy.unwritten, self.in_use, "frames in use and their count disagree");
        for &(oldest, frame) in &self.unwritten {
            let header = &self.frames[frame.index()];
            assert_eq!(header.oldest, oldest, "frame {} is awaited for another sector", frame.0);
            assert!(header.filled > 0, "an empty frame is awaited");
        }
        for frame in self.evictable.iter() {
            assert_eq!(self.state(*frame), FrameState::Evictable, "frame {} is not evictable", frame.0);
        }
        assert!(self.frames.iter().all(|frame| frame.filled <= self.unit), "a frame is overfull");
        let is_filled = |frame: &Frame| frame.copies & !low_bits(frame.filled) == 0;
        assert!(self.frames.iter().all(is_filled), "a copy lies where nothing was filled");
    }

    /// The entries of a frame that are not fill.
    pub fn live(&self, frame: FrameId) -> impl Iterator<Item = (Slot, &Entry)> {
        let first = self.first_slot(frame).0;
        let entries = self.entries(frame).filter(|(_, entry)| entry.tag.kind != Kind::Pad);
        entries.map(move |(at, entry)| (Slot(first + at), entry))
    }
}

/// The lowest `count` bits, of at most 64.
const fn low_bits(count: u32) -> u64 {
    if count == 0 { 0 } else { u64::MAX >> (UNIT_MAX - count) }
}

/// The numbers of the bits that are set, lowest first.
fn bits_of(mut bits: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = if bits == 0 { return None } else { bits.trailing_zeros() };
        bits &= bits - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests;
