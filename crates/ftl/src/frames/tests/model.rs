//! The buffer against a naive one: a list of frames with everything in them, and three queues.

use super::super::*;
use ocssd_base::Prng;
use std::collections::VecDeque;

const COUNT: u32 = 5;
const UNIT: u32 = 7;

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Held {
    Entry(Entry),
    Copy(Place),
    Fill,
}

#[derive(Clone, Debug)]
struct NaiveFrame {
    state: FrameState,
    stream: Stream,
    held: Vec<Held>,
    awaited: Vec<Sequence>,
    sectors: u32,
    place: Place,
}

/// The naive buffer, and what it was asked to draw from.
struct Naive {
    release: Release,
    frames: Vec<NaiveFrame>,
    free: VecDeque<FrameId>,
    taken: VecDeque<FrameId>,
    evictable: VecDeque<FrameId>,
    sequence: u64,
    places: u64,
}

impl Naive {
    fn new(release: Release) -> Self {
        let (state, place) = (FrameState::Free, Place(0));
        let empty = NaiveFrame { state, stream: Stream(0), held: vec![], awaited: vec![], sectors: 0, place };
        let frames = vec![empty; usize_of(COUNT)];
        let free = (0..COUNT).map(FrameId).collect();
        Self {
            release,
            frames,
            free,
            taken: VecDeque::new(),
            evictable: VecDeque::new(),
            sequence: 0,
            places: 0,
        }
    }

    fn at(&mut self, id: FrameId) -> &mut NaiveFrame {
        &mut self.frames[id.index()]
    }

    fn in_state(&self, state: FrameState) -> Vec<FrameId> {
        (0..COUNT).map(FrameId).filter(|id| self.frames[id.index()].state == state).collect()
    }

    /// What the buffer tells when it empties a frame: entries, fill among them, with where they were written.
    fn emptied(&mut self) -> Vec<(Slot, Entry, Place)> {
        let Some(id) = self.evictable.pop_front() else { return Vec::new() };
        let frame = self.at(id);
        frame.state = FrameState::Free;
        let (place, held) = (frame.place.0, frame.held.clone());
        self.free.push_back(id);
        let told = (0..).zip(held).filter_map(|(at, held)| {
            let told = |entry| (Slot(id.0 * UNIT + at), entry, Place(place + u64::from(at)));
            match held {
                Held::Entry(entry) => Some(told(entry)),
                Held::Fill => Some(told(Entry::PAD)),
                Held::Copy(_) => None,
            }
        });
        told.collect()
    }

    fn release_in_order(&mut self) {
        while let Some(&id) =
            self.taken.front().filter(|id| self.frames[id.index()].state == FrameState::Written)
        {
            self.taken.pop_front();
            self.at(id).state = FrameState::Evictable;
            self.evictable.push_back(id);
        }
    }

    /// A place nobody had before.
    fn new_place(&mut self) -> Place {
        self.places += 100;
        Place(self.places)
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

fn take(frames: &mut Frames, naive: &mut Naive, prng: &mut Prng) {
    let next = if naive.free.is_empty() { naive.evictable.front().copied() } else { None };
    assert_eq!(frames.next_emptied(), next);
    let expected = if naive.free.is_empty() { naive.emptied() } else { Vec::new() };
    let (stream, mut told) = (Stream(u8::try_from(prng.below(3)).expect("small")), Vec::new());
    let found = frames.take(stream, |slot, &entry, place| told.push((slot, entry, place)));
    assert_eq!((told, found), (expected, naive.free.pop_front()));
    let Some(id) = found else { return };
    let (state, place) = (FrameState::Filling, Place(0));
    *naive.at(id) = NaiveFrame { state, stream, held: vec![], awaited: vec![], sectors: 0, place };
    if naive.release == Release::InOrder {
        naive.taken.push_back(id);
    }
}

fn fill(frames: &mut Frames, naive: &mut Naive, prng: &mut Prng, id: FrameId) {
    let filled = u32::try_from(naive.at(id).held.len()).expect("small");
    if filled == UNIT {
        return;
    }
    let slot = if prng.below(3) == 0 {
        let (origin, count) = (naive.new_place(), 1 + number(prng, UNIT - filled));
        let copies = (0..u64::from(count)).map(|at| Held::Copy(Place(origin.0 + at)));
        naive.at(id).held.extend(copies);
        frames.push_copies(id, origin, count)
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
            is_sealed: prng.below(2) == 0,
            is_newest: prng.below(2) == 0,
        };
        let is_awaited = prng.below(2) == 0;
        let frame = naive.at(id);
        frame.held.push(Held::Entry(entry));
        frame.awaited.extend(is_awaited.then_some(sequence));
        frames.push(id, entry, is_awaited)
    };
    assert_eq!(slot, Slot(id.0 * UNIT + filled));
}

/// Does something to a slot that holds something.
fn change(frames: &mut Frames, naive: &mut Naive, prng: &mut Prng, id: FrameId) {
    let frame = &mut naive.frames[id.index()];
    let is_durable = matches!(frame.state, FrameState::Written | FrameState::Evictable);
    let at = number(prng, UNIT);
    let (slot, place) = (Slot(id.0 * UNIT + at), frame.place);
    match frame.held.get_mut(usize_of(at)) {
        Some(held @ Held::Copy(_)) if !is_durable => {
            *held = Held::Fill;
            frames.drop_copy(slot);
        }
        Some(Held::Entry(entry)) if entry.is_newest && prng.below(2) == 0 => {
            entry.is_newest = false;
            frames.supersede(slot);
        }
        Some(Held::Entry(entry)) if is_durable => {
            let expected = (Some(Place(place.0 + u64::from(at))), entry.tag.sequence);
            assert_eq!(frames.take_durable(slot), expected);
        }
        Some(Held::Entry(entry)) if prng.below(2) == 0 => {
            assert_eq!(frames.take_durable(slot), (entry.previous.take(), entry.previous_sequence));
        }
        Some(Held::Entry(Entry { previous: Some(place), .. })) => {
            let place = *place;
            assert!(frames.drop_previous(place));
            assert!(!frames.drop_previous(place), "it was let go of");
            let Held::Entry(entry) = &mut frame.held[usize_of(at)] else { unreachable!("an entry") };
            entry.previous = None;
        }
        Some(Held::Entry(entry)) => {
            entry.from_gc = !entry.from_gc;
            frames.entry_mut(slot).from_gc = entry.from_gc;
        }
        _ => {}
    }
}

fn is_waiting(state: FrameState) -> bool {
    matches!(state, FrameState::Filling | FrameState::Ready | FrameState::Programming)
}

/// Lines are reset: the copies of what lay there are fill, in frames that wait.
fn drop_copies(frames: &mut Frames, naive: &mut Naive, prng: &mut Prng) {
    let from = prng.below(naive.places + 1);
    let (places, mut gone) = (from..from + 200, 0);
    for frame in naive.frames.iter_mut().filter(|frame| is_waiting(frame.state)) {
        let of = |held: &&mut Held| matches!(held, Held::Copy(place) if places.contains(&place.0));
        for held in frame.held.iter_mut().filter(of) {
            (*held, gone) = (Held::Fill, gone + 1);
        }
    }
    assert_eq!(frames.drop_copies_of(places), gone);
}

fn act(frames: &mut Frames, naive: &mut Naive, prng: &mut Prng) {
    let states = [
        FrameState::Filling,
        FrameState::Filling,
        FrameState::Filling,
        FrameState::Ready,
        FrameState::Programming,
        FrameState::Written,
    ];
    let state = states[usize::try_from(prng.below(6)).expect("few")];
    let drawn = draw(prng, &naive.in_state(state));
    match (prng.below(20), drawn) {
        (0 | 1, _) => take(frames, naive, prng),
        (2, _) => drop_copies(frames, naive, prng),
        (3, _) if prng.below(3) == 0 => {
            let (expected, mut told) = (naive.emptied(), Vec::new());
            frames.evict_oldest(|slot, &entry, place| told.push((slot, entry, place)));
            assert_eq!(told, expected);
        }
        (4..7, Some(id)) => change(frames, naive, prng, id),
        (7, _) => {
            if let Some(id) = draw(prng, &naive.in_state(FrameState::Evictable)) {
                change(frames, naive, prng, id);
            }
        }
        (_, Some(id)) => go_on(frames, naive, prng, id),
        _ => {}
    }
}

/// A frame goes on in its life.
fn go_on(frames: &mut Frames, naive: &mut Naive, prng: &mut Prng, id: FrameId) {
    let state = naive.at(id).state;
    match state {
        FrameState::Filling if naive.at(id).held.is_empty() || prng.below(8) > 0 => {
            fill(frames, naive, prng, id);
        }
        FrameState::Filling => {
            let filled = u32::try_from(naive.at(id).held.len()).expect("small");
            let sectors = filled + number(prng, UNIT + 1 - filled);
            (naive.at(id).sectors, naive.at(id).state) = (sectors, FrameState::Ready);
            frames.close(id, sectors);
        }
        FrameState::Ready => {
            let place = naive.new_place();
            (naive.at(id).place, naive.at(id).state) = (place, FrameState::Programming);
            frames.programming(id, place);
        }
        FrameState::Programming if prng.below(4) == 0 => {
            naive.at(id).state = FrameState::Ready;
            frames.failed(id);
        }
        FrameState::Programming => {
            (naive.at(id).state, naive.at(id).awaited) = (FrameState::Written, Vec::new());
            naive.release_in_order();
            frames.written(id);
        }
        FrameState::Written => {
            if naive.release == Release::AsReadable {
                naive.at(id).state = FrameState::Evictable;
                naive.evictable.push_back(id);
            }
            frames.readable(id);
        }
        FrameState::Free | FrameState::Evictable => unreachable!("none such was drawn"),
    }
}

fn check_frame(frames: &Frames, id: FrameId, naive: &NaiveFrame) {
    let filled = u32::try_from(naive.held.len()).expect("small");
    let first = id.0 * UNIT;
    assert_eq!((frames.stream(id), frames.first_slot(id)), (naive.stream, Slot(first)));
    assert_eq!(frames.filled(id), filled);
    match naive.state {
        FrameState::Free => return,
        FrameState::Filling => assert_eq!(frames.room(id), UNIT - filled),
        _ => assert_eq!(frames.sectors(id), naive.sectors),
    }
    let is_durable = matches!(naive.state, FrameState::Written | FrameState::Evictable);
    if is_durable || naive.state == FrameState::Programming {
        assert_eq!(frames.place(id), naive.place);
    }
    if !is_durable {
        assert_eq!(frames.oldest(id), naive.awaited.iter().min().copied().unwrap_or(Sequence(u64::MAX)));
    }
    let (mut copies, mut entries, mut live) = (0, Vec::new(), Vec::new());
    for (at, held) in (0..).zip(&naive.held) {
        let slot = Slot(first + at);
        let place = Place(naive.place.0 + u64::from(at));
        assert_eq!(frames.frame_of(slot), id);
        assert_eq!(frames.is_copy(slot), matches!(held, Held::Copy(_)));
        assert_eq!(frames.durable_place(slot), is_durable.then_some(place));
        assert_eq!(frames.slot_at(place).filter(|_| is_durable), is_durable.then_some(slot));
        match held {
            Held::Copy(_) => copies |= 1 << at,
            Held::Fill => entries.push((at, Entry::PAD)),
            Held::Entry(entry) => {
                assert_eq!(frames.entry(slot), entry);
                entries.push((at, *entry));
                live.extend((entry.tag.kind != Kind::Pad).then_some((slot, *entry)));
            }
        }
    }
    assert_eq!(frames.copies(id), copies);
    assert_eq!(frames.entries(id).map(|(at, entry)| (at, *entry)).collect::<Vec<_>>(), entries);
    assert_eq!(frames.live(id).map(|(slot, entry)| (slot, *entry)).collect::<Vec<_>>(), live);
    check_copies(frames, id, naive);
}

/// Runs of copies are their slots and origins, and as long as they can be.
fn check_copies(frames: &Frames, id: FrameId, naive: &NaiveFrame) {
    let (mut copies, mut end) = (Vec::new(), None);
    for (slot, origin, count) in frames.copy_runs(id) {
        assert_ne!(end, Some((slot.0, origin.0)), "one run came in two");
        end = Some((slot.0 + count, origin.0 + u64::from(count)));
        copies.extend((0..count).map(|at| (slot.0 - id.0 * UNIT + at, Place(origin.0 + u64::from(at)))));
    }
    let expected = (0..).zip(&naive.held).filter_map(|(at, held)| match held {
        Held::Copy(place) => Some((at, *place)),
        _ => None,
    });
    assert_eq!(copies, expected.collect::<Vec<_>>());
    for &(_, place) in &copies {
        assert_eq!(frames.has_copy_of(place), is_waiting(naive.state), "{place:?}");
    }
}

fn check(frames: &Frames, naive: &Naive) {
    frames.check();
    for (id, frame) in (0..).map(FrameId).zip(&naive.frames) {
        assert_eq!(frames.state(id), frame.state);
        check_frame(frames, id, frame);
    }
    let count = |states: &[FrameState]| {
        let found = naive.frames.iter().filter(|frame| states.contains(&frame.state)).count();
        u32::try_from(found).expect("few")
    };
    let waiting = [FrameState::Filling, FrameState::Ready, FrameState::Programming];
    let [free, unwritten] = [count(&[FrameState::Free]), count(&waiting)];
    let [written, evictable] = [count(&[FrameState::Written]), count(&[FrameState::Evictable])];
    assert_eq!(frames.occupancy(), Occupancy { free, unwritten, written, evictable });
    assert_eq!(frames.in_use(), unwritten);
    assert_eq!(frames.available(), usize_of(free + evictable));
    let is_waiting = |id: &FrameId| is_waiting(naive.frames[id.index()].state);
    assert!(frames.waiting().eq((0..COUNT).map(FrameId).filter(is_waiting)));
    for stream in (0..3).map(Stream) {
        let is_held = |frame: &&NaiveFrame| {
            frame.stream == stream && !matches!(frame.state, FrameState::Free | FrameState::Evictable)
        };
        let held = naive.frames.iter().filter(is_held).count();
        assert_eq!(usize_of(frames.held_by(stream)), held, "{stream:?}");
    }
    let awaited = naive.frames.iter().flat_map(|frame| &frame.awaited);
    assert_eq!(frames.oldest_unwritten(), awaited.min().copied());
    let in_use = naive.frames.iter().filter(|frame| frame.state != FrameState::Free);
    let is_newest =
        |held: &&Held| matches!(held, Held::Entry(entry) if entry.is_newest && entry.tag.kind != Kind::Pad);
    assert_eq!(frames.count_newest(), in_use.flat_map(|frame| &frame.held).filter(is_newest).count());
    for nobodys in [Place(naive.places + 99), Place(naive.places + 100)] {
        assert_eq!(frames.slot_at(nobodys), None);
        assert!(!frames.has_copy_of(nobodys));
    }
}

#[test]
fn the_buffer_is_a_list_of_frames_and_three_queues() {
    for (seed, release) in (0..12).flat_map(|seed| [(seed, Release::AsReadable), (seed, Release::InOrder)]) {
        let (mut frames, mut naive, mut prng) =
            (Frames::new(COUNT, UNIT, release), Naive::new(release), Prng::new(seed));
        assert_eq!((frames.unit(), frames.count(), frames.slots()), (UNIT, COUNT, COUNT * UNIT));
        println!("seed {seed}, {release:?}");
        for _ in 0..3_000 {
            act(&mut frames, &mut naive, &mut prng);
            check(&frames, &naive);
        }
        assert!(naive.sequence > 300, "seed {seed}, {release:?}: {} entries", naive.sequence);
    }
}
