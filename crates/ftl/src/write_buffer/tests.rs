//! What a buffer of buffer units promises, case by case.

mod model;

use super::*;
use ocssd_base::Prng;
use std::collections::VecDeque;

#[test]
fn a_slot_is_newest_until_it_is_superseded_or_its_buffer_unit_is_emptied() {
    let mut write_buffer = WriteBuffer::new(2, 3, Release::AsReadable);
    let buffer_unit =
        write_buffer.take(Stream(0), |_, _, _| unreachable!("nothing is emptied")).expect("one is free");
    let entry = |block| {
        let tag = SectorTag { kind: Kind::Data, block, sequence: Sequence(block) };
        Entry { tag, is_newest: true, ..Entry::PAD }
    };
    let slots: Vec<Slot> = (1..4).map(|block| write_buffer.push(buffer_unit, entry(block), false)).collect();
    assert!(slots.iter().all(|&slot| write_buffer.unit_of(slot) == buffer_unit), "{slots:?}");
    write_buffer.supersede(slots[1]);
    assert_eq!(write_buffer.count_newest(), 2);
    let newest: Vec<bool> = write_buffer.entries(buffer_unit).map(|(_, entry)| entry.is_newest).collect();
    assert_eq!(newest, [true, false, true]);
    write_buffer.close(buffer_unit, 3);
    write_buffer.programming(buffer_unit, PhysicalAddress(0));
    write_buffer.written(buffer_unit);
    write_buffer.readable(buffer_unit);
    let mut emptied = Vec::new();
    write_buffer.evict_oldest(|slot, entry, place| emptied.push((slot, entry.is_newest, place.0)));
    assert_eq!(emptied, [(slots[0], true, 0), (slots[1], false, 1), (slots[2], true, 2)]);
    assert_eq!(write_buffer.count_newest(), 0, "an empty buffer unit holds nothing");
}

#[test]
fn copies_come_back_as_neighbours_and_are_no_entries() {
    let mut write_buffer = WriteBuffer::new(2, 8, Release::AsReadable);
    let buffer_unit =
        write_buffer.take(Stream(1), |_, _, _| unreachable!("nothing is emptied")).expect("one is free");
    write_buffer.push_copies(buffer_unit, PhysicalAddress(10), 3);
    write_buffer.push(
        buffer_unit,
        Entry { is_newest: true, tag: SectorTag { kind: Kind::Data, ..SectorTag::PAD }, ..Entry::PAD },
        false,
    );
    write_buffer.push_copies(buffer_unit, PhysicalAddress(13), 1);
    write_buffer.push_copies(buffer_unit, PhysicalAddress(14), 2);
    let runs = |write_buffer: &WriteBuffer| {
        write_buffer
            .copy_runs(buffer_unit)
            .map(|(slot, place, count)| (slot.0, place.0, count))
            .collect::<Vec<_>>()
    };
    assert_eq!(runs(&write_buffer), [(0, 10, 3), (4, 13, 3)]);
    assert_eq!(write_buffer.live(buffer_unit).map(|(slot, _)| slot.0).collect::<Vec<_>>(), [3]);
    assert!(write_buffer.has_copy_of(PhysicalAddress(15)) && !write_buffer.has_copy_of(PhysicalAddress(16)));
    assert_eq!(write_buffer.drop_copies_of(11..14), 3);
    assert_eq!(runs(&write_buffer), [(0, 10, 1), (5, 14, 2)]);
    assert_eq!(write_buffer.entries(buffer_unit).count(), 4, "what was dropped is padding");
    write_buffer.check();
    write_buffer.close(buffer_unit, 8);
    write_buffer.programming(buffer_unit, PhysicalAddress(0));
    write_buffer.written(buffer_unit);
    assert!(!write_buffer.has_copy_of(PhysicalAddress(14)), "what was programmed is no copy that waits");
    write_buffer.readable(buffer_unit);
    let mut emptied = Vec::new();
    write_buffer.evict_oldest(|slot, _, _| emptied.push(slot.0));
    assert_eq!(emptied, [1, 2, 3, 4]);
}

#[test]
fn a_buffer_unit_that_is_not_full_may_be_written_short() {
    let mut write_buffer = WriteBuffer::new(2, 8, Release::AsReadable);
    for (count, sectors) in [(1, 4), (5, 8)] {
        let buffer_unit =
            write_buffer.take(Stream(0), |_, _, _| unreachable!("nothing is emptied")).expect("one is free");
        write_buffer.push_copies(buffer_unit, PhysicalAddress(10), count);
        write_buffer.close(buffer_unit, sectors);
        assert_eq!((write_buffer.filled(buffer_unit), write_buffer.sectors(buffer_unit)), (count, sectors));
    }
}

/// pblk's ring between its pointers, oldest first: a buffer unit taken, with the sequences in it.
struct RingUnit {
    id: BufferUnitId,
    sequences: Vec<u64>,
}

/// Buffer units between `l2p_update` and `sync`, between `sync` and `mem`, and what was put in so far.
#[derive(Default)]
struct RingModel {
    synced: VecDeque<RingUnit>,
    taken: VecDeque<RingUnit>,
    next: u64,
}

impl RingModel {
    /// Does one thing that can be done, if the draw finds one.
    fn act(&mut self, write_buffer: &mut WriteBuffer, prng: &mut Prng) {
        let in_state = |write_buffer: &WriteBuffer, state: BufferUnitState| {
            self.taken
                .iter()
                .map(|buffer_unit| buffer_unit.id)
                .filter(|&id| write_buffer.state(id) == state)
                .collect::<Vec<_>>()
        };
        let draw = prng.below(6);
        let state = match draw {
            0 => return self.take(write_buffer),
            1 | 2 => BufferUnitState::Filling,
            3 => BufferUnitState::Ready,
            _ => BufferUnitState::Programming,
        };
        let found = in_state(write_buffer, state);
        let Some(last) = found.len().checked_sub(1) else { return };
        let id = found[usize_of(u32::try_from(prng.below(1 + last as u64)).expect("few"))];
        match draw {
            1 | 2 => self.fill(write_buffer, id),
            // In order: the oldest that is ready.
            3 => write_buffer.programming(found[0], PhysicalAddress(u64::from(found[0].0) * 100)),
            4 => write_buffer.written(id),
            _ => write_buffer.failed(id),
        }
    }

    fn take(&mut self, write_buffer: &mut WriteBuffer) {
        let mut evicted = Vec::new();
        let is_empty = write_buffer.free.is_empty();
        let taken = write_buffer.take(Stream(0), |_, entry, _| evicted.push(entry.tag.sequence.0));
        let oldest = if is_empty { self.synced.pop_front() } else { None };
        assert_eq!(
            evicted,
            oldest.map_or_else(Vec::new, |buffer_unit| buffer_unit.sequences),
            "the oldest goes first"
        );
        self.taken.extend(taken.map(|id| RingUnit { id, sequences: Vec::new() }));
    }

    fn fill(&mut self, write_buffer: &mut WriteBuffer, id: BufferUnitId) {
        self.next += 1;
        let tag = SectorTag { kind: Kind::Data, block: self.next, sequence: Sequence(self.next) };
        write_buffer.push(id, Entry { tag, is_newest: true, ..Entry::PAD }, true);
        let buffer_unit =
            self.taken.iter_mut().find(|buffer_unit| buffer_unit.id == id).expect("it was taken");
        buffer_unit.sequences.push(self.next);
        if write_buffer.room(id) == 0 {
            write_buffer.close(id, write_buffer.unit());
        }
    }

    /// `sync` passes what was acknowledged up to the first that was not, and stops there.
    fn check(&mut self, write_buffer: &WriteBuffer) {
        while let Some(buffer_unit) = self.taken.pop_front_if(|buffer_unit| {
            matches!(
                write_buffer.state(buffer_unit.id),
                BufferUnitState::Written | BufferUnitState::Evictable
            )
        }) {
            self.synced.push_back(buffer_unit);
        }
        write_buffer.check();
        let of =
            |list: &VecDeque<RingUnit>| list.iter().map(|buffer_unit| buffer_unit.id).collect::<Vec<_>>();
        assert_eq!(write_buffer.evictable.iter().copied().collect::<Vec<_>>(), of(&self.synced), "sync");
        assert_eq!(
            write_buffer.taken.iter().copied().collect::<Vec<_>>(),
            of(&self.taken),
            "between sync and mem"
        );
        let is_awaited =
            |buffer_unit: &&RingUnit| write_buffer.state(buffer_unit.id) != BufferUnitState::Written;
        let awaited = self.taken.iter().filter(is_awaited).flat_map(|buffer_unit| &buffer_unit.sequences);
        assert_eq!(
            write_buffer.oldest_unwritten().map(|sequence| sequence.0),
            awaited.min().copied(),
            "flush"
        );
    }
}

#[test]
fn buffer_units_released_in_order_are_a_ring_whose_pointers_never_pass_each_other() {
    for seed in 0..20 {
        let mut prng = Prng::new(seed);
        let (mut write_buffer, mut model) = (WriteBuffer::new(6, 3, Release::InOrder), RingModel::default());
        for _ in 0..3000 {
            model.act(&mut write_buffer, &mut prng);
            model.check(&write_buffer);
        }
        assert!(model.next > 20 * 18, "seed {seed}: {} entries, not twenty turns", model.next);
    }
}
