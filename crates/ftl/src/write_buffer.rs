//! The write buffer: sectors on their way to media, in buffer units of one write unit.
//!
//! pblk's ring (FAST'17 section 4.2.1; Linux `pblk-rb.c`) holds single sectors between four pointers. Here a buffer unit of WS_OPT
//! sectors is what is filled, written and released, so that one command takes one buffer unit's memory as it lies and buffer units
//! may finish in any order. Released in the order they were taken, they are pblk's ring; released as they become
//! readable, they are a pool. A buffer unit is emptied only when its place is needed: until then the buffer answers reads,
//! which is how MW_CUNITS is honoured.
//!
//! States: free -> filling -> ready -> programming -> written -> evictable -> filling again. A sector is an *entry*, which
//! the map may name, or a *copy* that garbage collection makes: of it no more is kept than where the original lies, for
//! its tag was copied along and the map names the original until the copy was programmed. Deliberately not here: the memory itself
//! (a buffer of the pool), the map, who decides when to write.

mod check;
mod copies;

use crate::instance_geometry::PhysicalAddress;
use crate::tag::{Kind, SectorTag, Sequence};
use crate::{Slot, Stream};
use ocssd_base::{Divisor, Ring, usize_of};
use std::collections::BTreeSet;

/// Most streams (chosen: SepBIT has six, checkpoints one).
const STREAMS_MAX: usize = 8;
/// Most sectors of a buffer unit: what one vector command writes (OCSSD 2.0 section 3.4: 64 addresses), a bit each in a word.
const UNIT_MAX: u32 = 64;

/// Number of a buffer unit, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferUnitId(pub u32);

impl BufferUnitId {
    fn index(self) -> usize {
        usize::try_from(self.0).expect("32 bits fit an index")
    }
}

/// Where a buffer unit is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferUnitState {
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

/// In which order buffer units become evictable.
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
    pub previous: Option<PhysicalAddress>,
    /// Since when that is.
    pub previous_sequence: Sequence,
    /// Garbage collection put it there; else a user did.
    pub from_gc: bool,
    /// Its tag was copied with its content, and need not be made again.
    pub is_tag_encoded: bool,
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
        is_tag_encoded: false,
        is_newest: false,
    };
}

#[derive(Clone, Copy, Debug)]
struct BufferUnit {
    state: BufferUnitState,
    stream: Stream,
    filled: u32,
    /// Sectors that writing it takes, once it is closed.
    sectors: u32,
    /// Least sequence of an entry that a flush waits for.
    oldest: Sequence,
    place: PhysicalAddress,
    /// Which of its slots hold copies, a bit each.
    copies: u64,
}

impl BufferUnit {
    /// Its content is not acknowledged by the media: where it comes from matters.
    const fn is_waiting(&self) -> bool {
        matches!(self.state, BufferUnitState::Filling | BufferUnitState::Ready | BufferUnitState::Programming)
    }
}

/// Counts of the buffer, as pblk's sysfs `write_buffer` gave them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Buffer units with nothing in them.
    pub free: u32,
    /// Buffer units whose data is not acknowledged by the media.
    pub unwritten: u32,
    /// Buffer units acknowledged, not readable yet.
    pub written: u32,
    /// Buffer units kept only as a cache.
    pub evictable: u32,
}

/// The write buffer.
#[derive(Clone, Debug)]
pub struct WriteBuffer {
    unit: u32,
    per_buffer_unit: Divisor,
    release: Release,
    units: Vec<BufferUnit>,
    entries: Vec<Entry>,
    /// Where the original of each copy lies. In a slot without a copy it means nothing, nor in a buffer unit that was programmed.
    origins: Vec<PhysicalAddress>,
    free: Ring<BufferUnitId>,
    evictable: Ring<BufferUnitId>,
    /// In the order they were taken; only for [`Release::InOrder`].
    taken: Ring<BufferUnitId>,
    /// Buffer units a flush waits for, by their oldest entry.
    unwritten: BTreeSet<(Sequence, BufferUnitId)>,
    /// Buffer units that are being filled, ready or written now.
    in_use: u32,
    /// Buffer units of each stream that are not evictable.
    held: [u32; STREAMS_MAX],
}

impl WriteBuffer {
    /// `count` buffer units of `unit` sectors.
    ///
    /// # Panics
    /// If either is zero, a buffer unit is more than one command writes, or the sectors do not have 32-bit numbers.
    #[must_use]
    pub fn new(count: u32, unit: u32, release: Release) -> Self {
        assert!(count > 0 && unit > 0, "a write buffer holds at least one unit");
        assert!(unit <= UNIT_MAX, "{unit} sectors are not written by one command");
        let slots = count.checked_mul(unit).expect("a write buffer has fewer than 2^32 sectors");
        let places = usize_of(count);
        let mut free = Ring::new(places);
        for buffer_unit in (0..count).map(BufferUnitId) {
            free.push(buffer_unit).expect("there is a place for each");
        }
        let empty = BufferUnit {
            state: BufferUnitState::Free,
            stream: Stream(0),
            filled: 0,
            sectors: 0,
            oldest: Sequence(u64::MAX),
            place: PhysicalAddress(0),
            copies: 0,
        };
        Self {
            unit,
            per_buffer_unit: Divisor::new(u64::from(unit)),
            release,
            units: vec![empty; places],
            entries: vec![Entry::PAD; usize_of(slots)],
            origins: vec![PhysicalAddress(0); usize_of(slots)],
            free,
            evictable: Ring::new(places),
            taken: Ring::new(places),
            unwritten: BTreeSet::new(),
            in_use: 0,
            held: [0; STREAMS_MAX],
        }
    }

    /// Sectors of a buffer unit.
    #[must_use]
    pub const fn unit(&self) -> u32 {
        self.unit
    }

    /// Sectors of the buffer.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.count() * self.unit
    }

    /// Buffer units.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.units.len()).expect("fewer buffer units than 2^32")
    }

    /// Buffer units that can be taken now.
    #[must_use]
    pub fn available(&self) -> usize {
        self.free.len() + self.evictable.len()
    }

    /// The buffer unit a slot belongs to.
    #[must_use]
    pub fn unit_of(&self, slot: Slot) -> BufferUnitId {
        assert!(slot.0 < self.slots(), "slot {} is beyond the buffer", slot.0);
        BufferUnitId(self.per_buffer_unit.div_rem_u32(slot.0).0)
    }

    /// The first slot of a buffer unit.
    #[must_use]
    pub fn first_slot(&self, buffer_unit: BufferUnitId) -> Slot {
        Slot(buffer_unit.0 * self.unit)
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

    /// Which of a buffer unit's slots hold copies, a bit each from its first slot on.
    #[must_use]
    pub fn copies(&self, buffer_unit: BufferUnitId) -> u64 {
        self.units[buffer_unit.index()].copies
    }

    /// What lies in a buffer unit's filled slots that hold no copies, in order, each with its number within the buffer unit.
    pub fn entries(&self, buffer_unit: BufferUnitId) -> impl Iterator<Item = (u32, &Entry)> {
        let first = usize_of(self.first_slot(buffer_unit).0);
        let entries = &self.entries[first..first + usize_of(self.unit)];
        bits_of(self.entry_bits(buffer_unit)).map(move |at| (at, &entries[usize_of(at)]))
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
    pub fn durable_place(&self, slot: Slot) -> Option<PhysicalAddress> {
        let buffer_unit = self.unit_of(slot);
        let is_written =
            matches!(self.state(buffer_unit), BufferUnitState::Written | BufferUnitState::Evictable);
        let offset = u64::from(slot.0 - self.first_slot(buffer_unit).0);
        is_written.then(|| PhysicalAddress(self.place(buffer_unit).0 + offset))
    }

    /// The newest durable version of a block whose newest is in a slot, and since when it is: the slot's own place, or the
    /// version before, out of its hands.
    pub fn take_durable(&mut self, slot: Slot) -> (Option<PhysicalAddress>, Sequence) {
        if let Some(place) = self.durable_place(slot) {
            return (Some(place), self.entry(slot).tag.sequence);
        }
        let entry = self.entry_mut(slot);
        (entry.previous.take(), entry.previous_sequence)
    }

    /// The state of a buffer unit.
    #[must_use]
    pub fn state(&self, buffer_unit: BufferUnitId) -> BufferUnitState {
        self.units[buffer_unit.index()].state
    }

    /// The stream a buffer unit was taken for.
    #[must_use]
    pub fn stream(&self, buffer_unit: BufferUnitId) -> Stream {
        self.units[buffer_unit.index()].stream
    }

    /// Sectors filled, in a buffer unit being filled or after.
    #[must_use]
    pub fn filled(&self, buffer_unit: BufferUnitId) -> u32 {
        self.units[buffer_unit.index()].filled
    }

    /// Sectors that writing a closed buffer unit takes.
    #[must_use]
    pub fn sectors(&self, buffer_unit: BufferUnitId) -> u32 {
        let entry = &self.units[buffer_unit.index()];
        assert!(
            !matches!(entry.state, BufferUnitState::Free | BufferUnitState::Filling),
            "buffer unit {} is not closed",
            buffer_unit.0
        );
        entry.sectors
    }

    /// Room left in a buffer unit being filled.
    #[must_use]
    pub fn room(&self, buffer_unit: BufferUnitId) -> u32 {
        let entry = &self.units[buffer_unit.index()];
        assert_eq!(entry.state, BufferUnitState::Filling, "only a buffer unit being filled has room");
        self.unit - entry.filled
    }

    /// Where the buffer unit was or is written: its first sector.
    #[must_use]
    pub fn place(&self, buffer_unit: BufferUnitId) -> PhysicalAddress {
        let entry = &self.units[buffer_unit.index()];
        assert!(
            matches!(
                entry.state,
                BufferUnitState::Programming | BufferUnitState::Written | BufferUnitState::Evictable
            ),
            "a buffer unit that is not written has no place"
        );
        entry.place
    }

    /// Takes a buffer unit to fill. The oldest evictable one is emptied if none is free: `evict` is told each of its entries and
    /// the place it was written to. Of copies it is not told: the map does not name them.
    pub fn take(
        &mut self,
        stream: Stream,
        mut evict: impl FnMut(Slot, &Entry, PhysicalAddress),
    ) -> Option<BufferUnitId> {
        if self.free.is_empty() {
            self.evict_oldest(&mut evict);
        }
        let buffer_unit = self.free.pop()?;
        let entry = &mut self.units[buffer_unit.index()];
        assert!(matches!(entry.state, BufferUnitState::Free), "a buffer unit in use was taken");
        *entry = BufferUnit {
            state: BufferUnitState::Filling,
            stream,
            filled: 0,
            sectors: 0,
            oldest: Sequence(u64::MAX),
            place: PhysicalAddress(0),
            copies: 0,
        };
        self.in_use += 1;
        self.held[stream.index()] += 1;
        if self.release == Release::InOrder {
            self.taken.push(buffer_unit).expect("there is a place for each");
        }
        Some(buffer_unit)
    }

    /// The buffer unit [`WriteBuffer::take`] would empty now; none if there is a free one, or nothing to empty.
    #[must_use]
    pub fn next_emptied(&self) -> Option<BufferUnitId> {
        if self.free.is_empty() { self.evictable.front().copied() } else { None }
    }

    /// Empties the oldest evictable buffer unit, if there is one; `evict` is told as [`WriteBuffer::take`] says.
    pub fn evict_oldest(&mut self, mut evict: impl FnMut(Slot, &Entry, PhysicalAddress)) {
        let Some(buffer_unit) = self.evictable.pop() else { return };
        let first = self.first_slot(buffer_unit);
        let BufferUnit { place, state, .. } = self.units[buffer_unit.index()];
        assert_eq!(state, BufferUnitState::Evictable, "a buffer unit in use was emptied");
        for offset in bits_of(self.entry_bits(buffer_unit)) {
            let slot = Slot(first.0 + offset);
            evict(slot, &self.entries[usize_of(slot.0)], PhysicalAddress(place.0 + u64::from(offset)));
        }
        self.units[buffer_unit.index()].state = BufferUnitState::Free;
        self.free.push(buffer_unit).expect("there is a place for each");
    }

    /// Puts an entry into the next slot of a buffer unit being filled. `awaited`: a flush must wait for it.
    pub fn push(&mut self, buffer_unit: BufferUnitId, entry: Entry, awaited: bool) -> Slot {
        assert!(self.room(buffer_unit) > 0, "buffer unit {} is full", buffer_unit.0);
        let slot = Slot(buffer_unit.0 * self.unit + self.units[buffer_unit.index()].filled);
        self.entries[usize_of(slot.0)] = entry;
        let header = &mut self.units[buffer_unit.index()];
        header.filled += 1;
        if awaited && entry.tag.sequence < header.oldest {
            let old = header.oldest;
            header.oldest = entry.tag.sequence;
            if old != Sequence(u64::MAX) {
                self.unwritten.remove(&(old, buffer_unit));
            }
            self.unwritten.insert((entry.tag.sequence, buffer_unit));
        }
        slot
    }

    /// Which slots of a buffer unit hold entries.
    fn entry_bits(&self, buffer_unit: BufferUnitId) -> u64 {
        let header = &self.units[buffer_unit.index()];
        low_bits(header.filled) & !header.copies
    }

    /// Least sequence in a buffer unit that a flush waits for; the largest number there is if there is none.
    #[must_use]
    pub fn oldest(&self, buffer_unit: BufferUnitId) -> Sequence {
        self.units[buffer_unit.index()].oldest
    }

    /// No more sectors go into the buffer unit, and writing it takes so many: what is filled, and padding behind it.
    pub fn close(&mut self, buffer_unit: BufferUnitId, sectors: u32) {
        let most = self.unit;
        let header = &mut self.units[buffer_unit.index()];
        assert_eq!(header.state, BufferUnitState::Filling, "only a buffer unit being filled is closed");
        assert!(header.filled > 0, "an empty buffer unit was closed");
        assert!(
            (header.filled..=most).contains(&sectors),
            "{sectors} sectors are written of {}",
            header.filled
        );
        header.sectors = sectors;
        header.state = BufferUnitState::Ready;
    }

    /// A command writes the buffer unit at `place`.
    pub fn programming(&mut self, buffer_unit: BufferUnitId, place: PhysicalAddress) {
        let header = &mut self.units[buffer_unit.index()];
        assert_eq!(header.state, BufferUnitState::Ready, "only a ready buffer unit is written");
        header.state = BufferUnitState::Programming;
        header.place = place;
    }

    /// The write failed: the buffer unit waits for another place.
    pub fn failed(&mut self, buffer_unit: BufferUnitId) {
        let header = &mut self.units[buffer_unit.index()];
        assert_eq!(
            header.state,
            BufferUnitState::Programming,
            "a buffer unit failed that was not being written"
        );
        header.state = BufferUnitState::Ready;
    }

    /// The write was acknowledged.
    pub fn written(&mut self, buffer_unit: BufferUnitId) {
        let header = &mut self.units[buffer_unit.index()];
        assert_eq!(
            header.state,
            BufferUnitState::Programming,
            "a buffer unit was acknowledged that was not being written"
        );
        header.state = BufferUnitState::Written;
        self.in_use -= 1;
        if header.oldest != Sequence(u64::MAX) {
            let known = self.unwritten.remove(&(header.oldest, buffer_unit));
            assert!(known, "a buffer unit with awaited sectors was not listed");
        }
        if self.release == Release::InOrder {
            while let Some(&oldest) = self.taken.front() {
                if self.units[oldest.index()].state != BufferUnitState::Written {
                    break;
                }
                self.taken.pop();
                self.make_evictable(oldest);
            }
        }
    }

    /// The buffer unit's media can be read. Nothing to do where release is in order.
    pub fn readable(&mut self, buffer_unit: BufferUnitId) {
        if self.release == Release::AsReadable {
            self.make_evictable(buffer_unit);
        }
    }

    fn make_evictable(&mut self, buffer_unit: BufferUnitId) {
        let header = &mut self.units[buffer_unit.index()];
        assert_eq!(
            header.state,
            BufferUnitState::Written,
            "a buffer unit became evictable before it was written"
        );
        header.state = BufferUnitState::Evictable;
        self.held[header.stream.index()] -= 1;
        self.evictable.push(buffer_unit).expect("there is a place for each");
    }

    /// Buffer units of a stream whose memory cannot be taken. Cost: a load.
    #[must_use]
    pub const fn held_by(&self, stream: Stream) -> u32 {
        self.held[stream.0 as usize]
    }

    /// The slot whose content was acknowledged at `place` and is still here. Cost: a pass over the buffer units.
    #[must_use]
    pub fn slot_at(&self, place: PhysicalAddress) -> Option<Slot> {
        let holds = |buffer_unit: &BufferUnit| {
            let is_written =
                matches!(buffer_unit.state, BufferUnitState::Written | BufferUnitState::Evictable);
            is_written
                && (buffer_unit.place.0..buffer_unit.place.0 + u64::from(buffer_unit.filled))
                    .contains(&place.0)
        };
        let buffer_unit = self.units.iter().position(holds)?;
        let offset = u32::try_from(place.0 - self.units[buffer_unit].place.0).expect("within a buffer unit");
        let first = u32::try_from(buffer_unit).expect("fewer buffer units than 2^32") * self.unit;
        Some(Slot(first + offset))
    }

    /// Lets go of `place` as the version before an entry's; false if none holds it. Cost: a pass over the entries.
    pub fn drop_previous(&mut self, place: PhysicalAddress) -> bool {
        let holder = self.entries.iter_mut().find(|entry| entry.previous == Some(place));
        holder.is_some_and(|entry| entry.previous.take().is_some())
    }

    /// Buffer units whose content is not acknowledged by the media, or that are being filled. Cost: a load.
    #[must_use]
    pub const fn in_use(&self) -> u32 {
        self.in_use
    }

    /// The least sequence a flush must still wait for.
    #[must_use]
    pub fn oldest_unwritten(&self) -> Option<Sequence> {
        self.unwritten.first().map(|&(sequence, _)| sequence)
    }

    /// The entries of a buffer unit that are not fill.
    pub fn live(&self, buffer_unit: BufferUnitId) -> impl Iterator<Item = (Slot, &Entry)> {
        let first = self.first_slot(buffer_unit).0;
        let entries = self.entries(buffer_unit).filter(|(_, entry)| entry.tag.kind != Kind::Pad);
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
