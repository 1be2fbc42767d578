//! The buffer against a naive one: a list of buffer units with everything in them, and three queues.

use super::super::*;
use ocssd_base::Prng;
use std::collections::VecDeque;

const COUNT: u32 = 5;
const UNIT: u32 = 7;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    Entry(Entry),
    Copy(PhysicalAddress),
    Padding,
}

#[derive(Clone, Debug)]
struct NaiveUnit {
    state: BufferUnitState,
    stream: Stream,
    held: Vec<Held>,
    awaited: Vec<Sequence>,
    sectors: u32,
    place: PhysicalAddress,
}

/// The naive buffer, and what it was asked to draw from.
struct Naive {
    release: Release,
    units: Vec<NaiveUnit>,
    free: VecDeque<BufferUnitId>,
    taken: VecDeque<BufferUnitId>,
    evictable: VecDeque<BufferUnitId>,
    sequence: u64,
    places: u64,
}

impl Naive {
    fn new(release: Release) -> Self {
        let (state, place) = (BufferUnitState::Free, PhysicalAddress(0));
        let empty = NaiveUnit { state, stream: Stream(0), held: vec![], awaited: vec![], sectors: 0, place };
        let units = vec![empty; usize_of(COUNT)];
        let free = (0..COUNT).map(BufferUnitId).collect();
        Self {
            release,
            units,
            free,
            taken: VecDeque::new(),
            evictable: VecDeque::new(),
            sequence: 0,
            places: 0,
        }
    }

    fn at(&mut self, id: BufferUnitId) -> &mut NaiveUnit {
        &mut self.units[id.index()]
    }

    fn in_state(&self, state: BufferUnitState) -> Vec<BufferUnitId> {
        (0..COUNT).map(BufferUnitId).filter(|id| self.units[id.index()].state == state).collect()
    }

    /// What the buffer tells when it empties a buffer unit: entries, fill among them, with where they were written.
    fn emptied(&mut self) -> Vec<(Slot, Entry, PhysicalAddress)> {
        let Some(id) = self.evictable.pop_front() else { return Vec::new() };
        let buffer_unit = self.at(id);
        buffer_unit.state = BufferUnitState::Free;
        let (place, held) = (buffer_unit.place.0, buffer_unit.held.clone());
        self.free.push_back(id);
        let told = (0..).zip(held).filter_map(|(at, held)| {
            let told = |entry| (Slot(id.0 * UNIT + at), entry, PhysicalAddress(place + u64::from(at)));
            match held {
                Held::Entry(entry) => Some(told(entry)),
                Held::Padding => Some(told(Entry::PAD)),
                Held::Copy(_) => None,
            }
        });
        told.collect()
    }

    fn release_in_order(&mut self) {
        while let Some(&id) =
            self.taken.front().filter(|id| self.units[id.index()].state == BufferUnitState::Written)
        {
            self.taken.pop_front();
            self.at(id).state = BufferUnitState::Evictable;
            self.evictable.push_back(id);
        }
    }

    /// A place nobody had before.
    fn new_place(&mut self) -> PhysicalAddress {
        self.places += 100;
        PhysicalAddress(self.places)
    }
}

/// One of a list, if there is one.
fn draw<T: Copy>(prng: &mut Prng, list: &[T]) -> Option<T> {
    let count = u64::try_from(list.len()).expect("few");
    (count > 0).then(|| list[usize::try_from(prng.below(count)).expect("few")])
}

fn number(prng: &mut Prng, below: u32) -> u32 {
    u32::try_from(prng.below(u64::from(below))).expect("small")
}

fn take(write_buffer: &mut WriteBuffer, naive: &mut Naive, prng: &mut Prng) {
    let next = if naive.free.is_empty() { naive.evictable.front().copied() } else { None };
    assert_eq!(write_buffer.next_emptied(), next);
    let expected = if naive.free.is_empty() { naive.emptied() } else { Vec::new() };
    let (stream, mut told) = (Stream(u8::try_from(prng.below(3)).expect("small")), Vec::new());
    let found = write_buffer.take(stream, |slot, &entry, place| told.push((slot, entry, place)));
    assert_eq!((told, found), (expected, naive.free.pop_front()));
    let Some(id) = found else { return };
    let (state, place) = (BufferUnitState::Filling, PhysicalAddress(0));
    *naive.at(id) = NaiveUnit { state, stream, held: vec![], awaited: vec![], sectors: 0, place };
    if naive.release == Release::InOrder {
        naive.taken.push_back(id);
    }
}

fn fill(write_buffer: &mut WriteBuffer, naive: &mut Naive, prng: &mut Prng, id: BufferUnitId) {
    let filled = u32::try_from(naive.at(id).held.len()).expect("small");
    if filled == UNIT {
        return;
    }
    let slot = if prng.below(3) == 0 {
        let (origin, count) = (naive.new_place(), 1 + number(prng, UNIT - filled));
        let copies = (0..u64::from(count)).map(|at| Held::Copy(PhysicalAddress(origin.0 + at)));
        naive.at(id).held.extend(copies);
        write_buffer.push_copies(id, origin, count)
    } else {
        naive.sequence += 1 + prng.below(3);
        // Some are older than what is there already: garbage collection keeps the number of the write it moves.
        let sequence = Sequence(if prng.below(4) == 0 { naive.sequence / 2 } else { naive.sequence });
        let kind = if prng.below(8) == 0 { Kind::Pad } else { Kind::Data };
        let previous = (prng.below(2) == 0).then(|| naive.new_place());
        let entry = Entry {
            tag: SectorTag { kind, block: naive.sequence, sequence },
            previous,
            previous_sequence: Sequence(sequence.0 / 3),
            from_gc: prng.below(2) == 0,
            is_tag_encoded: prng.below(2) == 0,
            is_newest: prng.below(2) == 0,
        };
        let is_awaited = prng.below(2) == 0;
        let buffer_unit = naive.at(id);
        buffer_unit.held.push(Held::Entry(entry));
        buffer_unit.awaited.extend(is_awaited.then_some(sequence));
        write_buffer.push(id, entry, is_awaited)
    };
    assert_eq!(slot, Slot(id.0 * UNIT + filled));
}

/// Does something to a slot that holds something.
fn change(write_buffer: &mut WriteBuffer, naive: &mut Naive, prng: &mut Prng, id: BufferUnitId) {
    let buffer_unit = &mut naive.units[id.index()];
    let is_durable = matches!(buffer_unit.state, BufferUnitState::Written | BufferUnitState::Evictable);
    let at = number(prng, UNIT);
    let (slot, place) = (Slot(id.0 * UNIT + at), buffer_unit.place);
    match buffer_unit.held.get_mut(usize_of(at)) {
        Some(held @ Held::Copy(_)) if !is_durable => {
            *held = Held::Padding;
            write_buffer.drop_copy(slot);
        }
        Some(Held::Entry(entry)) if entry.is_newest && prng.below(2) == 0 => {
            entry.is_newest = false;
            write_buffer.supersede(slot);
        }
        Some(Held::Entry(entry)) if is_durable => {
            let expected = (Some(PhysicalAddress(place.0 + u64::from(at))), entry.tag.sequence);
            assert_eq!(write_buffer.take_durable(slot), expected);
        }
        Some(Held::Entry(entry)) if prng.below(2) == 0 => {
            assert_eq!(write_buffer.take_durable(slot), (entry.previous.take(), entry.previous_sequence));
        }
        Some(Held::Entry(Entry { previous: Some(place), .. })) => {
            let place = *place;
            assert!(write_buffer.drop_previous(place));
            assert!(!write_buffer.drop_previous(place), "it was let go of");
            let Held::Entry(entry) = &mut buffer_unit.held[usize_of(at)] else { unreachable!("an entry") };
            entry.previous = None;
        }
        Some(Held::Entry(entry)) => {
            entry.from_gc = !entry.from_gc;
            write_buffer.entry_mut(slot).from_gc = entry.from_gc;
        }
        _ => {}
    }
}

fn is_waiting(state: BufferUnitState) -> bool {
    matches!(state, BufferUnitState::Filling | BufferUnitState::Ready | BufferUnitState::Programming)
}

/// Lines are reset: the copies of what lay there are padding, in buffer units that wait.
fn drop_copies(write_buffer: &mut WriteBuffer, naive: &mut Naive, prng: &mut Prng) {
    let from = prng.below(naive.places + 1);
    let (places, mut gone) = (from..from + 200, 0);
    for buffer_unit in naive.units.iter_mut().filter(|buffer_unit| is_waiting(buffer_unit.state)) {
        let of = |held: &&mut Held| matches!(held, Held::Copy(place) if places.contains(&place.0));
        for held in buffer_unit.held.iter_mut().filter(of) {
            (*held, gone) = (Held::Padding, gone + 1);
        }
    }
    assert_eq!(write_buffer.drop_copies_of(places), gone);
}

fn act(write_buffer: &mut WriteBuffer, naive: &mut Naive, prng: &mut Prng) {
    let states = [
        BufferUnitState::Filling,
        BufferUnitState::Filling,
        BufferUnitState::Filling,
        BufferUnitState::Ready,
        BufferUnitState::Programming,
        BufferUnitState::Written,
    ];
    let state = states[usize::try_from(prng.below(6)).expect("few")];
    let drawn = draw(prng, &naive.in_state(state));
    match (prng.below(20), drawn) {
        (0 | 1, _) => take(write_buffer, naive, prng),
        (2, _) => drop_copies(write_buffer, naive, prng),
        (3, _) if prng.below(3) == 0 => {
            let (expected, mut told) = (naive.emptied(), Vec::new());
            write_buffer.evict_oldest(|slot, &entry, place| told.push((slot, entry, place)));
            assert_eq!(told, expected);
        }
        (4..7, Some(id)) => change(write_buffer, naive, prng, id),
        (7, _) => {
            if let Some(id) = draw(prng, &naive.in_state(BufferUnitState::Evictable)) {
                change(write_buffer, naive, prng, id);
            }
        }
        (_, Some(id)) => go_on(write_buffer, naive, prng, id),
        _ => {}
    }
}

/// A buffer unit goes on in its life.
fn go_on(write_buffer: &mut WriteBuffer, naive: &mut Naive, prng: &mut Prng, id: BufferUnitId) {
    let state = naive.at(id).state;
    match state {
        BufferUnitState::Filling if naive.at(id).held.is_empty() || prng.below(8) > 0 => {
            fill(write_buffer, naive, prng, id);
        }
        BufferUnitState::Filling => {
            let filled = u32::try_from(naive.at(id).held.len()).expect("small");
            let sectors = filled + number(prng, UNIT + 1 - filled);
            (naive.at(id).sectors, naive.at(id).state) = (sectors, BufferUnitState::Ready);
            write_buffer.close(id, sectors);
        }
        BufferUnitState::Ready => {
            let place = naive.new_place();
            (naive.at(id).place, naive.at(id).state) = (place, BufferUnitState::Programming);
            write_buffer.programming(id, place);
        }
        BufferUnitState::Programming if prng.below(4) == 0 => {
            naive.at(id).state = BufferUnitState::Ready;
            write_buffer.failed(id);
        }
        BufferUnitState::Programming => {
            (naive.at(id).state, naive.at(id).awaited) = (BufferUnitState::Written, Vec::new());
            naive.release_in_order();
            write_buffer.written(id);
        }
        BufferUnitState::Written => {
            if naive.release == Release::AsReadable {
                naive.at(id).state = BufferUnitState::Evictable;
                naive.evictable.push_back(id);
            }
            write_buffer.readable(id);
        }
        BufferUnitState::Free | BufferUnitState::Evictable => unreachable!("none such was drawn"),
    }
}

fn check_buffer_unit(write_buffer: &WriteBuffer, id: BufferUnitId, naive: &NaiveUnit) {
    let filled = u32::try_from(naive.held.len()).expect("small");
    let first = id.0 * UNIT;
    assert_eq!((write_buffer.stream(id), write_buffer.first_slot(id)), (naive.stream, Slot(first)));
    assert_eq!(write_buffer.filled(id), filled);
    match naive.state {
        BufferUnitState::Free => return,
        BufferUnitState::Filling => assert_eq!(write_buffer.room(id), UNIT - filled),
        _ => assert_eq!(write_buffer.sectors(id), naive.sectors),
    }
    let is_durable = matches!(naive.state, BufferUnitState::Written | BufferUnitState::Evictable);
    if is_durable || naive.state == BufferUnitState::Programming {
        assert_eq!(write_buffer.place(id), naive.place);
    }
    if !is_durable {
        assert_eq!(
            write_buffer.oldest(id),
            naive.awaited.iter().min().copied().unwrap_or(Sequence(u64::MAX))
        );
    }
    let (mut copies, mut entries, mut live) = (0, Vec::new(), Vec::new());
    for (at, held) in (0..).zip(&naive.held) {
        let slot = Slot(first + at);
        let place = PhysicalAddress(naive.place.0 + u64::from(at));
        assert_eq!(write_buffer.unit_of(slot), id);
        assert_eq!(write_buffer.is_copy(slot), matches!(held, Held::Copy(_)));
        assert_eq!(write_buffer.durable_place(slot), is_durable.then_some(place));
        assert_eq!(write_buffer.slot_at(place).filter(|_| is_durable), is_durable.then_some(slot));
        match held {
            Held::Copy(_) => copies |= 1 << at,
            Held::Padding => entries.push((at, Entry::PAD)),
            Held::Entry(entry) => {
                assert_eq!(write_buffer.entry(slot), entry);
                entries.push((at, *entry));
                live.extend((entry.tag.kind != Kind::Pad).then_some((slot, *entry)));
            }
        }
    }
    assert_eq!(write_buffer.copies(id), copies);
    assert_eq!(write_buffer.entries(id).map(|(at, entry)| (at, *entry)).collect::<Vec<_>>(), entries);
    assert_eq!(write_buffer.live(id).map(|(slot, entry)| (slot, *entry)).collect::<Vec<_>>(), live);
    check_copies(write_buffer, id, naive);
}

/// Runs of copies are their slots and origins, and as long as they can be.
fn check_copies(write_buffer: &WriteBuffer, id: BufferUnitId, naive: &NaiveUnit) {
    let (mut copies, mut end) = (Vec::new(), None);
    for (slot, origin, count) in write_buffer.copy_runs(id) {
        assert_ne!(end, Some((slot.0, origin.0)), "one run came in two");
        end = Some((slot.0 + count, origin.0 + u64::from(count)));
        copies.extend(
            (0..count).map(|at| (slot.0 - id.0 * UNIT + at, PhysicalAddress(origin.0 + u64::from(at)))),
        );
    }
    let expected = (0..).zip(&naive.held).filter_map(|(at, held)| match held {
        Held::Copy(place) => Some((at, *place)),
        _ => None,
    });
    assert_eq!(copies, expected.collect::<Vec<_>>());
    for &(_, place) in &copies {
        assert_eq!(write_buffer.has_copy_of(place), is_waiting(naive.state), "{place:?}");
    }
}

fn check(write_buffer: &WriteBuffer, naive: &Naive) {
    write_buffer.check();
    for (id, buffer_unit) in (0..).map(BufferUnitId).zip(&naive.units) {
        assert_eq!(write_buffer.state(id), buffer_unit.state);
        check_buffer_unit(write_buffer, id, buffer_unit);
    }
    let count = |states: &[BufferUnitState]| {
        let found = naive.units.iter().filter(|buffer_unit| states.contains(&buffer_unit.state)).count();
        u32::try_from(found).expect("few")
    };
    let waiting = [BufferUnitState::Filling, BufferUnitState::Ready, BufferUnitState::Programming];
    let [free, unwritten] = [count(&[BufferUnitState::Free]), count(&waiting)];
    let [written, evictable] = [count(&[BufferUnitState::Written]), count(&[BufferUnitState::Evictable])];
    assert_eq!(write_buffer.occupancy(), Occupancy { free, unwritten, written, evictable });
    assert_eq!(write_buffer.in_use(), unwritten);
    assert_eq!(write_buffer.available(), usize_of(free + evictable));
    let is_waiting = |id: &BufferUnitId| is_waiting(naive.units[id.index()].state);
    assert!(write_buffer.waiting().eq((0..COUNT).map(BufferUnitId).filter(is_waiting)));
    for stream in (0..3).map(Stream) {
        let is_held = |buffer_unit: &&NaiveUnit| {
            buffer_unit.stream == stream
                && !matches!(buffer_unit.state, BufferUnitState::Free | BufferUnitState::Evictable)
        };
        let held = naive.units.iter().filter(is_held).count();
        assert_eq!(usize_of(write_buffer.held_by(stream)), held, "{stream:?}");
    }
    let awaited = naive.units.iter().flat_map(|buffer_unit| &buffer_unit.awaited);
    assert_eq!(write_buffer.oldest_unwritten(), awaited.min().copied());
    let in_use = naive.units.iter().filter(|buffer_unit| buffer_unit.state != BufferUnitState::Free);
    let is_newest =
        |held: &&Held| matches!(held, Held::Entry(entry) if entry.is_newest && entry.tag.kind != Kind::Pad);
    assert_eq!(
        write_buffer.count_newest(),
        in_use.flat_map(|buffer_unit| &buffer_unit.held).filter(is_newest).count()
    );
    for nobodys in [PhysicalAddress(naive.places + 99), PhysicalAddress(naive.places + 100)] {
        assert_eq!(write_buffer.slot_at(nobodys), None);
        assert!(!write_buffer.has_copy_of(nobodys));
    }
}

#[test]
fn the_buffer_is_a_list_of_units_and_three_queues() {
    for (seed, release) in (0..12).flat_map(|seed| [(seed, Release::AsReadable), (seed, Release::InOrder)]) {
        let (mut write_buffer, mut naive, mut prng) =
            (WriteBuffer::new(COUNT, UNIT, release), Naive::new(release), Prng::new(seed));
        assert_eq!(
            (write_buffer.unit(), write_buffer.count(), write_buffer.slots()),
            (UNIT, COUNT, COUNT * UNIT)
        );
        println!("seed {seed}, {release:?}");
        for _ in 0..3_000 {
            act(&mut write_buffer, &mut naive, &mut prng);
            check(&write_buffer, &naive);
        }
        assert!(naive.sequence > 300, "seed {seed}, {release:?}: {} entries", naive.sequence);
    }
}
