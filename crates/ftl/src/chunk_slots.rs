//! Chunks in four bytes each: what a chunk is used for, a label that its owner gives it, and, while it is free, which free chunk
//! of its unit comes after it.
//!
//! Free chunks of a unit are a queue: those freed first are in front. A queue in the chunks' own slots takes no more memory
//! however many are free. Deliberately not here: which unit a chunk is taken from, and who may take it (`chunk_pool`).

use crate::chunk_pool::ChunkUse;
use crate::instance_geometry::{ChunkIndex, UnitIndex};

/// Bits of a slot that name the line of the next free chunk.
const LINE_BITS: u32 = 27;
/// In place of a line: none follows. A line of this number does not fit.
const NO_LINE: u32 = (1 << LINE_BITS) - 1;
/// Bits of a label.
const LABEL_BITS: u32 = 2;
/// Labels there are, from 0.
pub const LABELS: u8 = 1 << LABEL_BITS;
/// Where the use of a chunk is in its slot.
const USE_SHIFT: u32 = LINE_BITS + LABEL_BITS;

/// One chunk: its use, its label, and the line of the free chunk behind it.
#[derive(Clone, Copy, Debug)]
struct Slot(u32);

const _: () = assert!(size_of::<Slot>() == 4, "a slot is what a chunk costs in memory");

impl Slot {
    const fn new(of: ChunkUse, label: u8, next: u32) -> Self {
        Self((of as u32) << USE_SHIFT | (label as u32) << LINE_BITS | next)
    }

    fn of(self) -> ChunkUse {
        const USES: [ChunkUse; 5] =
            [ChunkUse::Free, ChunkUse::Open, ChunkUse::Closed, ChunkUse::Dead, ChunkUse::Bad];
        USES[usize::try_from(self.0 >> USE_SHIFT).expect("32 bits fit an index")]
    }

    fn label(self) -> u8 {
        u8::try_from(self.0 >> LINE_BITS & u32::from(LABELS - 1)).expect("two bits")
    }

    const fn next(self) -> u32 {
        self.0 & NO_LINE
    }
}

/// The free chunks of a unit, by line.
#[derive(Clone, Copy, Debug)]
struct Queue {
    first: u32,
    last: u32,
    count: u32,
}

/// The slots of all chunks of some lines, and the queues of their units.
#[derive(Clone, Debug)]
pub struct ChunkSlots {
    slots: Vec<Slot>,
    queues: Vec<Queue>,
    units: u32,
}

impl ChunkSlots {
    /// Slots of `lines` of a chunk on each of `units`; chunks that are free are queued in their order. Labels are 0.
    ///
    /// # Panics
    /// If there are 2^32 chunks or more, or 2^27 - 1 lines.
    pub fn new(lines: u32, units: u32, uses: impl Fn(ChunkIndex) -> ChunkUse) -> Self {
        let chunks = lines.checked_mul(units).expect("fewer chunks than 2^32");
        assert!(lines < NO_LINE, "{lines} lines, where a slot names fewer than {NO_LINE}");
        let slot = |chunk: u32| Slot::new(uses(ChunkIndex(chunk)), 0, NO_LINE);
        let none = Queue { first: NO_LINE, last: NO_LINE, count: 0 };
        let queues = vec![none; usize::try_from(units).expect("32 bits fit an index")];
        let mut all = Self { slots: (0..chunks).map(slot).collect(), queues, units };
        for chunk in (0..chunks).map(ChunkIndex) {
            if all.get(chunk) == ChunkUse::Free {
                all.queue(chunk);
            }
        }
        all
    }

    /// The unit of a chunk.
    pub const fn unit_of(&self, chunk: ChunkIndex) -> UnitIndex {
        UnitIndex(chunk.0 % self.units)
    }

    const fn chunk_at(&self, line: u32, unit: UnitIndex) -> ChunkIndex {
        ChunkIndex(line * self.units + unit.0)
    }

    /// What a chunk is used for.
    pub fn get(&self, chunk: ChunkIndex) -> ChunkUse {
        self.slots[chunk.index()].of()
    }

    /// The label of a chunk.
    pub fn label(&self, chunk: ChunkIndex) -> u8 {
        self.slots[chunk.index()].label()
    }

    /// A chunk has this label from now on.
    pub fn set_label(&mut self, chunk: ChunkIndex, label: u8) {
        assert!(label < LABELS, "label {label} of chunk {} does not fit a slot", chunk.0);
        let slot = &mut self.slots[chunk.index()];
        *slot = Slot::new(slot.of(), label, slot.next());
    }

    /// Chunks there are.
    pub fn chunks(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("fewer chunks than 2^32")
    }

    /// Free chunks of a unit.
    pub fn free_of_unit(&self, unit: UnitIndex) -> u32 {
        self.queues[unit.index()].count
    }

    /// A chunk that is in no queue is used for something else now.
    pub fn set(&mut self, chunk: ChunkIndex, of: ChunkUse) {
        let slot = &mut self.slots[chunk.index()];
        assert!(of != ChunkUse::Free && slot.of() != ChunkUse::Free, "free chunk {} is queued", chunk.0);
        *slot = Slot::new(of, slot.label(), NO_LINE);
    }

    /// A chunk is free from now on, behind the other free chunks of its unit.
    pub fn push(&mut self, chunk: ChunkIndex) {
        assert!(self.get(chunk) != ChunkUse::Free, "chunk {} is free twice", chunk.0);
        self.slots[chunk.index()] = Slot::new(ChunkUse::Free, self.label(chunk), NO_LINE);
        self.queue(chunk);
    }

    fn queue(&mut self, chunk: ChunkIndex) {
        let (unit, line) = (self.unit_of(chunk), chunk.0 / self.units);
        assert_eq!(self.slots[chunk.index()].next(), NO_LINE, "chunk {} is in a queue already", chunk.0);
        let Queue { first, last, count } = self.queues[unit.index()];
        if count == 0 {
            self.queues[unit.index()] = Queue { first: line, last: line, count: 1 };
            return;
        }
        let before = self.chunk_at(last, unit);
        self.link(before, line);
        self.queues[unit.index()] = Queue { first, last: line, count: count + 1 };
    }

    /// The free chunk on `line` comes behind `before`.
    fn link(&mut self, before: ChunkIndex, line: u32) {
        let slot = &mut self.slots[before.index()];
        assert_eq!(slot.of(), ChunkUse::Free, "chunk {} is queued and not free", before.0);
        *slot = Slot::new(ChunkUse::Free, slot.label(), line);
    }

    /// Free chunks of a unit, those freed first in front.
    pub fn free(&self, unit: UnitIndex) -> impl Iterator<Item = ChunkIndex> {
        let mut line = self.queues[unit.index()].first;
        std::iter::from_fn(move || {
            let chunk = (line != NO_LINE).then(|| self.chunk_at(line, unit))?;
            line = self.slots[chunk.index()].next();
            Some(chunk)
        })
    }

    /// Takes the free chunk of a unit that has `nth` others before it, and opens it. Cost: those before.
    pub fn take(&mut self, unit: UnitIndex, nth: u32) -> Option<ChunkIndex> {
        let before = match nth.checked_sub(1) {
            Some(before) => {
                Some(self.free(unit).nth(usize::try_from(before).expect("32 bits fit an index"))?)
            }
            None => None,
        };
        let Queue { first, last, count } = self.queues[unit.index()];
        let line = before.map_or(first, |before| self.slots[before.index()].next());
        if line == NO_LINE {
            return None;
        }
        let chunk = self.chunk_at(line, unit);
        assert_eq!(self.get(chunk), ChunkUse::Free, "a queued chunk is not free");
        let next = self.slots[chunk.index()].next();
        if let Some(before) = before {
            self.link(before, next);
        }
        let first = if before.is_none() { next } else { first };
        let new_last = before.map_or(NO_LINE, |before| before.0 / self.units);
        let last = if line == last { new_last } else { last };
        self.queues[unit.index()] = Queue { first, last, count: count - 1 };
        self.slots[chunk.index()] = Slot::new(ChunkUse::Open, self.label(chunk), NO_LINE);
        Some(chunk)
    }

    /// All chunks and what they are used for.
    pub fn iter(&self) -> impl Iterator<Item = (ChunkIndex, ChunkUse)> {
        (0..).map(ChunkIndex).zip(self.slots.iter().map(|slot| slot.of()))
    }

    /// Asserts that every free chunk is in the queue of its unit, once. Cost: all chunks.
    pub fn check(&self) {
        let free = self.iter().filter(|&(_, of)| of == ChunkUse::Free).count();
        let mut listed = 0;
        for (unit, queue) in (0..).map(UnitIndex).zip(&self.queues) {
            let most = usize::try_from(queue.count).expect("32 bits fit an index") + 1;
            let chunks: Vec<ChunkIndex> = self.free(unit).take(most).collect();
            assert_eq!(chunks.len() + 1, most, "the queue of unit {} is counted wrong", unit.0);
            let last = chunks.last().map_or(NO_LINE, |chunk| chunk.0 / self.units);
            assert_eq!(last, queue.last, "the queue of unit {} ends elsewhere", unit.0);
            assert!(
                chunks.iter().all(|&chunk| self.get(chunk) == ChunkUse::Free),
                "what is queued is not free"
            );
            listed += chunks.len();
        }
        assert_eq!(listed, free, "a free chunk is in no queue");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use std::collections::VecDeque;

    /// Random steps against a deque for each unit, and a list of labels.
    #[test]
    fn free_chunks_come_in_the_order_of_a_plain_queue() {
        for seed in 0..100 {
            println!("seed {seed}");
            let mut prng = Prng::new(seed);
            let mut below = |most: u32| u32::try_from(prng.below(u64::from(most))).expect("small");
            let mut slots = ChunkSlots::new(5, 3, |_| ChunkUse::Free);
            let mut labels = [0; 15];
            let mut model: Vec<VecDeque<u32>> =
                (0..3).map(|unit| (0..5).map(|line| line * 3 + unit).collect()).collect();
            for _ in 0..200 {
                let (unit, nth) = (UnitIndex(below(3)), below(3));
                let queue = &mut model[unit.index()];
                if below(2) == 0 {
                    let expected = queue.remove(usize::try_from(nth).expect("small")).map(ChunkIndex);
                    assert_eq!(slots.take(unit, nth), expected);
                } else {
                    let chunk = ChunkIndex(below(5) * 3 + unit.0);
                    if !queue.contains(&chunk.0) {
                        slots.set(chunk, ChunkUse::Dead);
                        slots.push(chunk);
                        queue.push_back(chunk.0);
                    }
                    labels[chunk.index()] = u8::try_from(below(4)).expect("small");
                    slots.set_label(chunk, labels[chunk.index()]);
                }
                slots.check();
                let queued = |unit| slots.free(UnitIndex(unit)).map(|chunk| chunk.0).collect::<Vec<_>>();
                assert!((0..3).map(queued).eq(model.iter().map(|queue| Vec::from(queue.clone()))));
                assert!(
                    (0..15).all(|chunk| slots.label(ChunkIndex(chunk)) == labels[ChunkIndex(chunk).index()])
                );
            }
        }
    }

    #[test]
    fn a_slot_keeps_use_label_and_line_apart() {
        for of in [ChunkUse::Free, ChunkUse::Open, ChunkUse::Closed, ChunkUse::Dead, ChunkUse::Bad] {
            for label in 0..LABELS {
                for next in [0, 1, NO_LINE - 1, NO_LINE] {
                    let slot = Slot::new(of, label, next);
                    assert_eq!((slot.of(), slot.label(), slot.next()), (of, label, next));
                }
            }
        }
    }
}
