//! Sectors on their way to media: units of memory that streams fill, programmed where an append point says, and kept until the
//! media answer reads of them (MW_CUNITS).
//!
//! The owner puts sectors into slots, a tag beside each, and is told which sectors can be read where. A unit whose program the
//! media failed goes to another place, in front of those that wait. Deliberately not here: the map, what is valid, which stream a
//! sector belongs to, commands (`block_io`), and garbage collection in a part of the units.

use ocssd_base::usize_of;
use ocssd_ftl::{
    Append, AppendConfig, AppendEvent, AppendPoint, BufferUnitId, ChunkPool, Entry, InstanceGeometry, Kind,
    L2p, Mapped, PhysicalAddress, ProgramOutcome, Release, SectorTag, Slot, Stream, UnitIndex, ValidMap,
    WriteBuffer,
};
use ocssd_lightnvm::block::{Counter, CounterValue};
use ocssd_lightnvm::{BufId, Buffers, Geometry, Status};
use std::collections::VecDeque;

/// Programs in flight to a chunk (chosen: the next is there when one ends).
const DEPTH: u32 = 2;

/// A sector that the media answer reads of from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadableSector {
    /// What it holds.
    pub tag: SectorTag,
    /// Where it was in memory.
    pub slot: Slot,
    /// Where it is.
    pub place: PhysicalAddress,
}

impl ReadableSector {
    /// The map names the media for it, and its place is valid; nothing changes if the map names something newer by now.
    pub fn commit(self, map: &mut L2p, valid: &mut ValidMap) {
        if map.move_if(self.tag.block, Mapped::Buffer(self.slot), Mapped::Media(self.place)) {
            valid.set(self.place);
        }
    }
}

/// A program to be sent: a unit of memory, and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitProgram {
    /// The unit of memory.
    pub unit: BufferUnitId,
    /// Its first sector in memory.
    pub first: Slot,
    /// Its first sector on media.
    pub place: PhysicalAddress,
}

/// Units of memory, and where they are written.
#[derive(Clone, Debug)]
pub struct UnitWriter {
    shape: InstanceGeometry,
    append: AppendPoint<BufferUnitId>,
    buffer: WriteBuffer,
    /// The content of all slots.
    memory: BufId,
    /// The unit that each stream fills.
    filling: Vec<Option<BufferUnitId>>,
    ready: VecDeque<BufferUnitId>,
    /// Sectors put into each stream's units, and sectors of padding.
    put: Vec<u64>,
    padded: u64,
}

/// Where `width` chunks are written side by side, over all units of an instance.
///
/// # Panics
/// If there are fewer units.
#[must_use]
pub fn append_point(geometry: &Geometry, shape: &InstanceGeometry, width: u32) -> AppendPoint<BufferUnitId> {
    let Geometry { sectors_per_chunk: chunk_sectors, mw_cunits, .. } = *geometry;
    let all: Vec<UnitIndex> = (0..shape.units()).map(UnitIndex).collect();
    AppendPoint::new(AppendConfig { chunk_sectors, mw_cunits, width, depth: DEPTH }, &all)
}

impl UnitWriter {
    /// So many streams, written at `append` in units of WS_OPT.
    #[must_use]
    pub fn new(
        geometry: &Geometry,
        shape: &InstanceGeometry,
        append: AppendPoint<BufferUnitId>,
        streams: u32,
        buffers: &mut Buffers,
    ) -> Self {
        let (unit, units) = (geometry.ws_opt, Self::units(geometry, append.width(), streams));
        Self {
            shape: shape.clone(),
            append,
            buffer: WriteBuffer::new(units, unit, Release::AsReadable),
            memory: buffers.take(units * unit),
            filling: vec![None; usize_of(streams)],
            ready: VecDeque::new(),
            put: vec![0; usize_of(streams)],
            padded: 0,
        }
    }

    /// Units of memory: at each place that is written what cannot be read there yet and what is on its way, and two for each
    /// stream, of which one fills.
    #[must_use]
    pub fn units(geometry: &Geometry, width: u32, streams: u32) -> u32 {
        width * (geometry.mw_cunits.div_ceil(geometry.ws_opt) + DEPTH) + 2 * streams
    }

    /// Sectors of all units of memory.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.buffer.slots()
    }

    /// Where the content of slots is: slot for slot.
    #[must_use]
    pub const fn memory(&self) -> BufId {
        self.memory
    }

    /// What was put into each stream's units, by these names, and padding.
    ///
    /// # Panics
    /// If there is no name for each stream.
    #[must_use]
    pub fn counters(&self, names: &[&'static str]) -> Vec<Counter> {
        assert_eq!(names.len(), self.put.len(), "every stream has a name");
        let about = "sectors put into units of the stream of this name";
        let of = names.iter().zip(&self.put).map(|(&name, &put)| (name, about, put));
        let padding = ("padded_sectors", "sectors of padding", self.padded);
        let counter = |(name, about, count)| Counter { name, about, value: CounterValue::Count(count) };
        of.chain([padding]).map(counter).collect()
    }

    /// The next slot of a stream's unit, of padding until something is put there. `None` while no memory is free, or the unit is
    /// full and was not closed.
    pub fn next_slot(&mut self, stream: usize) -> Option<Slot> {
        let taken = self.filling[stream].or_else(|| self.buffer.take(Stream(0), |_, _, _| ()));
        self.filling[stream] = taken;
        let unit = taken.filter(|&unit| self.buffer.room(unit) > 0)?;
        self.put[stream] += 1;
        Some(self.buffer.push(unit, Entry::PAD, false))
    }

    /// A slot holds this, whose content is in memory; where the tag is of none, it is zeroed.
    pub fn put(&mut self, slot: Slot, tag: SectorTag, buffers: &mut Buffers) {
        assert!(slot.0 < self.slots(), "slot {} is beyond the units of memory", slot.0);
        self.buffer.entry_mut(slot).tag = tag;
        let (content, oob) = buffers.sectors_mut(self.memory, slot.0, 1);
        if tag.kind != Kind::Data {
            content.fill(0);
        }
        let tag = tag.encode(content);
        oob[..tag.len()].copy_from_slice(&tag);
    }

    /// What a slot holds.
    #[must_use]
    pub fn tag(&self, slot: Slot) -> SectorTag {
        self.buffer.entry(slot).tag
    }

    /// A stream's unit that is full waits to be programmed.
    pub fn close_full(&mut self, stream: usize) {
        let is_full = |unit: &mut BufferUnitId| self.buffer.room(*unit) == 0;
        if let Some(unit) = self.filling[stream].take_if(is_full) {
            self.buffer.close(unit, self.buffer.unit());
            self.ready.push_back(unit);
            assert!(self.ready.len() <= usize_of(self.buffer.count()), "more units wait than there are");
        }
    }

    /// Fills the rest of a stream's unit, if it fills one.
    ///
    /// # Panics
    /// If the unit is full and was not closed.
    pub fn pad(&mut self, stream: usize, buffers: &mut Buffers) {
        while self.filling[stream].is_some() {
            let slot = self.next_slot(stream).expect("a unit that fills has room");
            self.put(slot, SectorTag::PAD, buffers);
            self.put[stream] -= 1;
            self.padded += 1;
            self.close_full(stream);
        }
    }

    /// True if every unit that was closed is on media.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.ready.is_empty() && self.append.in_flight() == 0
    }

    /// The next program, which must be sent. `None` if no unit waits, or there is no place for it.
    pub fn next_program(&mut self, pool: &mut ChunkPool) -> Option<UnitProgram> {
        let &unit = self.ready.front()?;
        let at = self.append.next(self.buffer.unit(), |units| pool.open(units, |_, _| true))?;
        self.ready.pop_front();
        let place = PhysicalAddress(self.shape.first_place(at.chunk).0 + u64::from(at.sector));
        assert!(u64::from(at.sector + self.buffer.unit()) <= u64::from(self.shape.sectors_per_chunk()));
        self.buffer.programming(unit, place);
        Some(UnitProgram { unit, first: self.buffer.first_slot(unit), place })
    }

    /// A program ended, not by a drive that failed. Sectors that can be read from media from now on, padding left out; chunks that
    /// take no more are closed.
    pub fn on_programmed(
        &mut self,
        unit: BufferUnitId,
        status: Status,
        pool: &mut ChunkPool,
    ) -> Vec<ReadableSector> {
        assert!(!status.is_drive_failure(), "{status} says nothing of the chunk");
        let (chunk, sector) = self.shape.chunk_of(self.buffer.place(unit));
        let outcome = match status {
            Status::SUCCESS => ProgramOutcome::Written(unit),
            Status::WRITE_NEXT_UNIT => ProgramOutcome::Lost,
            _ => ProgramOutcome::Closed,
        };
        if status.is_success() {
            self.buffer.written(unit);
        } else {
            self.buffer.failed(unit);
            self.ready.push_front(unit);
        }
        let (mut events, mut readable) = (Vec::new(), Vec::new());
        self.append.programmed(Append { chunk, sector }, outcome, &mut events);
        for event in events {
            match event {
                AppendEvent::Readable(unit) => {
                    let (first, place) = (self.buffer.first_slot(unit), self.buffer.place(unit));
                    let at = |slot: Slot| PhysicalAddress(place.0 + u64::from(slot.0 - first.0));
                    readable.extend(self.buffer.live(unit).map(|(slot, entry)| ReadableSector {
                        tag: entry.tag,
                        slot,
                        place: at(slot),
                    }));
                    self.buffer.readable(unit);
                    assert!(readable.len() <= usize_of(self.slots()), "more can be read than was written");
                }
                AppendEvent::Closed(chunk) => pool.close(chunk),
            }
        }
        readable
    }

    /// Asserts what must hold between calls.
    pub fn check(&self) {
        self.append.check();
        let filling = self.filling.iter().flatten().count();
        let on_the_way = self.ready.len() + self.append.in_flight() + filling;
        assert_eq!(usize_of(self.buffer.in_use()), on_the_way, "a unit of memory is nowhere");
    }
}

impl std::fmt::Display for UnitWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { buffer, filling, ready, append, .. } = self;
        write!(f, "{} units of memory free, {filling:?} fill, ", buffer.available())?;
        write!(f, "{} wait, {} are programmed", ready.len(), append.in_flight())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_ftl::{ChunkIndex, ChunkUse, Sequence};
    use ocssd_lightnvm::{Payload, PayloadFormat, PuId};

    const TAG: SectorTag = SectorTag { kind: Kind::Data, block: 7, sequence: Sequence(1) };

    /// Two units of chunks of four write units, of which the last cannot be read; one chunk is written at a time.
    fn writer() -> (UnitWriter, ChunkPool, Buffers) {
        let geometry = Geometry { mw_cunits: 4, ..Geometry::example(1, 2, 4, 16, 4) };
        let shape = InstanceGeometry::new(&geometry, &[PuId(0), PuId(1)]);
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Stamp, &geometry));
        let pool = ChunkPool::new(&shape, &[0, 0], |_| ChunkUse::Free);
        let append = append_point(&geometry, &shape, 1);
        (UnitWriter::new(&geometry, &shape, append, 2, &mut buffers), pool, buffers)
    }

    /// One sector goes to the media, behind padding.
    fn write_one(writer: &mut UnitWriter, pool: &mut ChunkPool, buffers: &mut Buffers) -> UnitProgram {
        let slot = writer.next_slot(0).expect("memory is free");
        writer.put(slot, TAG, buffers);
        writer.pad(0, buffers);
        writer.next_program(pool).expect("a chunk is free")
    }

    #[test]
    fn memory_is_for_what_cannot_be_read_and_is_on_its_way_at_each_place_and_two_units_of_each_stream() {
        let units = |mw_cunits, width, streams| {
            let geometry = Geometry { mw_cunits, ..Geometry::example(1, 2, 4, 16, 4) };
            UnitWriter::units(&geometry, width, streams)
        };
        assert_eq!([units(4, 1, 1), units(4, 3, 2), units(5, 3, 2)], [3 + 2, 3 * 3 + 4, 3 * 4 + 4]);
    }

    #[test]
    fn a_sector_is_kept_in_memory_until_as_much_follows_as_the_media_want() {
        let (mut writer, mut pool, mut buffers) = writer();
        let first = write_one(&mut writer, &mut pool, &mut buffers);
        assert_eq!(writer.on_programmed(first.unit, Status::SUCCESS, &mut pool), [], "it cannot be read");
        assert_eq!(writer.tag(first.first), TAG);
        let second = write_one(&mut writer, &mut pool, &mut buffers);
        assert_eq!(second.place, PhysicalAddress(first.place.0 + 4));
        let readable = writer.on_programmed(second.unit, Status::SUCCESS, &mut pool);
        assert_eq!(readable, [ReadableSector { tag: TAG, slot: first.first, place: first.place }]);
        assert!(writer.is_written());
        let counts = writer.counters(&["users", "gc"]).into_iter().map(|counter| counter.value);
        assert!(counts.eq([2, 0, 6].map(CounterValue::Count)));
        writer.check();
    }

    #[test]
    fn a_unit_that_failed_goes_elsewhere_before_any_other() {
        let (mut writer, mut pool, mut buffers) = writer();
        let first = write_one(&mut writer, &mut pool, &mut buffers);
        let other = write_one(&mut writer, &mut pool, &mut buffers);
        for (program, status) in [(first, Status::WRITE_FAULT), (other, Status::OUT_OF_ORDER)] {
            assert_eq!(writer.on_programmed(program.unit, status, &mut pool), []);
            assert!(!writer.is_written());
            writer.check();
        }
        let chunk = |program: UnitProgram| program.place.0 / 16;
        let again = writer.next_program(&mut pool).expect("another chunk is free");
        assert_eq!(again.unit, other.unit, "the last that failed stands in front");
        assert_ne!(chunk(again), chunk(first));
        assert_eq!(pool.get(ChunkIndex(u32::try_from(chunk(first)).expect("few"))), ChunkUse::Closed);
    }
}
