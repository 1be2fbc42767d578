//! The contract against a naive model: every version of every block in a list, with whether it is durable, and where.

use super::*;
use crate::{BufferUnitState, Release, SectorTag};
use ocssd_base::Prng;
use std::collections::BTreeMap;

const BLOCKS: u64 = 12;
const UNITS: u32 = 6;
const UNIT: u32 = 3;
const PLACES: u64 = 1 << 20;

/// A version of a block.
#[derive(Clone, Copy, Debug)]
struct Version {
    sequence: Sequence,
    /// Where it is, if it is durable; a copy that the map took over is its place.
    place: Option<PhysicalAddress>,
}

/// Every version of a block since it was discarded, oldest first.
#[derive(Clone, Debug, Default)]
struct Naive {
    versions: BTreeMap<u64, Vec<Version>>,
}

impl Naive {
    /// Where a block is valid: at the newest version that is durable.
    fn valid(&self, block: u64) -> Option<PhysicalAddress> {
        self.versions.get(&block)?.iter().rev().find_map(|version| version.place)
    }

    /// A version was programmed; where the block was valid before and after.
    fn programmed(&mut self, tag: SectorTag, place: PhysicalAddress) -> [Option<PhysicalAddress>; 2] {
        let before = self.valid(tag.block);
        let versions = self.versions.entry(tag.block).or_default();
        if let Some(version) = versions.iter_mut().find(|version| version.sequence == tag.sequence) {
            version.place = Some(place);
        }
        [before, self.valid(tag.block)]
    }
}

struct World {
    map: L2p,
    buffer: WriteBuffer,
    naive: Naive,
    sequence: u64,
    places: u64,
    filling: Option<BufferUnitId>,
    label: String,
}

impl World {
    fn new(release: Release, label: String) -> Self {
        let buffer = WriteBuffer::new(UNITS, UNIT, release);
        let (map, naive) = (L2p::new(BLOCKS, PLACES, buffer.slots()), Naive::default());
        Self { map, buffer, naive, sequence: 0, places: 0, filling: None, label }
    }

    fn versions(&mut self) -> Versions<'_> {
        Versions { map: &mut self.map, buffer: &mut self.buffer }
    }

    fn units(&self, state: BufferUnitState) -> Vec<BufferUnitId> {
        (0..UNITS).map(BufferUnitId).filter(|&unit| self.buffer.state(unit) == state).collect()
    }

    fn new_places(&mut self, count: u32) -> PhysicalAddress {
        // A gap: neighbours of one run are none of the next.
        self.places += u64::from(count) + 1;
        PhysicalAddress(self.places - u64::from(count))
    }

    /// A block is written.
    fn write(&mut self, block: u64) {
        let Some(unit) = self.filling.or_else(|| self.versions().take_unit(Stream(0), |_| ())) else {
            return;
        };
        self.filling = Some(unit);
        let before = Sequence(self.sequence);
        self.sequence += 1;
        let sequence = Sequence(self.sequence);
        let slot = Slot(self.buffer.first_slot(unit).0 + self.buffer.filled(unit));
        let mut versions = self.versions();
        let old = versions.remap(block, Mapped::Buffer(slot));
        let (previous, previous_sequence) = versions.take_durable(old, before);
        assert_eq!(previous, self.naive.valid(block), "{}: block {block}", self.label);
        assert!(previous_sequence < sequence, "{}", self.label);
        let tag = SectorTag { kind: Kind::Data, block, sequence };
        let entry = Entry { tag, previous, previous_sequence, is_newest: true, ..Entry::PAD };
        self.buffer.push(unit, entry, true);
        self.naive.versions.entry(block).or_default().push(Version { sequence, place: None });
        if self.buffer.room(unit) == 0 {
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some(unit) = self.filling.take() {
            self.buffer.close(unit, UNIT);
        }
    }

    fn discard(&mut self, block: u64) {
        let mut versions = self.versions();
        let old = versions.remap(block, Mapped::Nowhere);
        let (gone, _) = versions.take_durable(old, Sequence(0));
        assert_eq!(gone, self.naive.valid(block), "{}: block {block} is discarded", self.label);
        self.naive.versions.remove(&block);
    }

    /// A unit is programmed, or fails and waits for another place.
    fn program(&mut self, prng: &mut Prng) {
        for unit in self.units(BufferUnitState::Programming) {
            if prng.below(2) == 0 {
                continue;
            }
            if prng.below(4) == 0 {
                self.buffer.failed(unit);
                continue;
            }
            self.buffer.written(unit);
            self.commit_unit(unit);
        }
        for unit in self.units(BufferUnitState::Ready) {
            if prng.below(2) == 0 {
                let place = self.new_places(UNIT);
                self.buffer.programming(unit, place);
            }
        }
        for unit in self.units(BufferUnitState::Written) {
            if prng.below(2) == 0 {
                self.buffer.readable(unit);
            }
        }
    }

    /// All of a unit is durable at once: the newest of two versions in one is so before either is looked at.
    fn commit_unit(&mut self, unit: BufferUnitId) {
        let (first, start) = (self.buffer.first_slot(unit), self.buffer.place(unit));
        let at = |offset: u32| (Slot(first.0 + offset), PhysicalAddress(start.0 + u64::from(offset)));
        let filled: Vec<_> = (0..self.buffer.filled(unit)).map(at).collect();
        let mut gone = BTreeMap::new();
        for &(slot, place) in &filled {
            let Entry { tag, is_newest, .. } = *self.buffer.entry(slot);
            if is_newest {
                gone.insert(slot.0, self.naive.programmed(tag, place)[0]);
            }
        }
        for &(slot, place) in &filled {
            let tag = self.buffer.entry(slot).tag;
            let expected = gone.get(&slot.0).map_or_else(
                || {
                    let [before, after] = self.naive.programmed(tag, place);
                    if after == Some(place) {
                        Committed::Superseded { gone: before }
                    } else {
                        Committed::Dead
                    }
                },
                |&gone| Committed::Newest { gone },
            );
            assert_eq!(self.versions().commit(slot, place), expected, "{}: {tag:?} at {place:?}", self.label);
        }
    }

    /// Some neighbours are copied elsewhere, after some of them were written again or not.
    fn copy(&mut self, prng: &mut Prng) {
        let count = 1 + prng.below(4);
        let first = prng.below(BLOCKS);
        let Some(origin) = self.naive.valid(first) else { return };
        let at = |place| (0..BLOCKS).find(|&block| self.naive.valid(block) == Some(PhysicalAddress(place)));
        let neighbour = |offset| at(origin.0 + offset).unwrap_or((first + offset) % BLOCKS);
        let blocks: Vec<u64> = (0..count).map(neighbour).collect();
        let copy = self.new_places(4);
        let pairs = blocks.iter().zip(0..);
        let mut expected = 0;
        for (&block, offset) in pairs {
            let (from, to) = (PhysicalAddress(origin.0 + offset), PhysicalAddress(copy.0 + offset));
            assert_eq!(
                is_newest_at(&self.map, &self.buffer, block, from),
                self.is_newest_at(block, from),
                "{}",
                self.label
            );
            if !self.is_newest_at(block, from) {
                break;
            }
            let versions = self.naive.versions.get_mut(&block).expect("it is valid");
            versions.last_mut().expect("it has a version").place = Some(to);
            expected += 1;
        }
        assert_eq!(self.versions().exchange(&blocks, origin, copy), expected, "{}: {blocks:?}", self.label);
    }

    /// Whether the last version of a block is durable, and there.
    fn is_newest_at(&self, block: u64, place: PhysicalAddress) -> bool {
        let versions = self.naive.versions.get(&block);
        versions.and_then(|versions| versions.last()).is_some_and(|last| last.place == Some(place))
    }

    /// The map names the newest version of each block, and whoever holds the newest durable one says so.
    fn check(&self) {
        for block in 0..BLOCKS {
            let last = self.naive.versions.get(&block).and_then(|versions| versions.last());
            let held = match self.map.get(block) {
                Mapped::Nowhere => {
                    assert!(last.is_none(), "{}: block {block} has a version", self.label);
                    None
                }
                Mapped::Media(place) => {
                    assert_eq!(last.and_then(|last| last.place), Some(place), "{}: {block}", self.label);
                    Some(place)
                }
                Mapped::Buffer(slot) => {
                    let entry = self.buffer.entry(slot);
                    assert_eq!(last.map(|last| last.sequence), Some(entry.tag.sequence), "{}", self.label);
                    assert!(entry.is_newest, "{}: slot {} holds the newest", self.label, slot.0);
                    self.buffer.durable_place(slot).or(entry.previous)
                }
            };
            assert_eq!(held, self.naive.valid(block), "{}: block {block}", self.label);
        }
    }
}

#[test]
fn what_is_newest_and_what_is_durable_is_what_a_list_of_versions_says() {
    for seed in 0..200 {
        let mut prng = Prng::new(seed);
        let release = if seed % 3 == 0 { Release::InOrder } else { Release::AsReadable };
        let mut world = World::new(release, String::new());
        for step in 0..600 {
            world.label = format!("seed {seed}, step {step}");
            match prng.below(10) {
                0 => world.discard(prng.below(BLOCKS)),
                1 => world.close(),
                2 | 3 => world.program(&mut prng),
                4 => world.copy(&mut prng),
                5 if prng.below(20) == 0 => world.versions().evict_oldest(|_| ()),
                _ => world.write(prng.below(BLOCKS)),
            }
            world.check();
        }
    }
}
