//! What a buffer of frames promises, case by case.

mod model;

use super::*;
use ocssd_base::Prng;
use std::collections::VecDeque;

#[test]
fn a_slot_is_newest_until_it_is_superseded_or_its_frame_is_emptied() {
    let mut frames = Frames::new(2, 3, Release::AsReadable);
    let frame = frames.take(Stream(0), |_, _, _| unreachable!("nothing is emptied")).expect("one is free");
    let entry = |block| {
        let tag = SectorTag { kind: Kind::Data, block, sequence: Sequence(block) };
        Entry { tag, is_newest: true, ..Entry::PAD }
    };
    let slots: Vec<Slot> = (1..4).map(|block| frames.push(frame, entry(block), false)).collect();
    assert!(slots.iter().all(|&slot| frames.frame_of(slot) == frame), "{slots:?}");
    frames.supersede(slots[1]);
    assert_eq!(frames.count_newest(), 2);
    let newest: Vec<bool> = frames.entries(frame).map(|(_, entry)| entry.is_newest).collect();
    assert_eq!(newest, [true, false, true]);
    frames.close(frame, 3);
    frames.programming(frame, Place(0));
    frames.written(frame);
    frames.readable(frame);
    let mut emptied = Vec::new();
    frames.evict_oldest(|slot, entry, place| emptied.push((slot, entry.is_newest, place.0)));
    assert_eq!(emptied, [(slots[0], true, 0), (slots[1], false, 1), (slots[2], true, 2)]);
    assert_eq!(frames.count_newest(), 0, "an empty frame holds nothing");
}

#[test]
fn copies_come_back_as_neighbours_and_are_no_entries() {
    let mut frames = Frames::new(2, 8, Release::AsReadable);
    let frame = frames.take(Stream(1), |_, _, _| unreachable!("nothing is emptied")).expect("one is free");
    frames.push_copies(frame, Place(10), 3);
    frames.push(
        frame,
        Entry { is_newest: true, tag: SectorTag { kind: Kind::Data, ..SectorTag::PAD }, ..Entry::PAD },
        false,
    );
    frames.push_copies(frame, Place(13), 1);
    frames.push_copies(frame, Place(14), 2);
    let runs = |frames: &Frames| {
        frames.copy_runs(frame).map(|(slot, place, count)| (slot.0, place.0, count)).collect::<Vec<_>>()
    };
    assert_eq!(runs(&frames), [(0, 10, 3), (4, 13, 3)]);
    assert_eq!(frames.live(frame).map(|(slot, _)| slot.0).collect::<Vec<_>>(), [3]);
    assert!(frames.has_copy_of(Place(15)) && !frames.has_copy_of(Place(16)));
    assert_eq!(frames.drop_copies_of(11..14), 3);
    assert_eq!(runs(&frames), [(0, 10, 1), (5, 14, 2)]);
    assert_eq!(frames.entries(frame).count(), 4, "what was dropped is fill");
    frames.check();
    frames.close(frame, 8);
    frames.programming(frame, Place(0));
    frames.written(frame);
    assert!(!frames.has_copy_of(Place(14)), "what landed is no copy that waits");
    frames.readable(frame);
    let mut emptied = Vec::new();
    frames.evict_oldest(|slot, _, _| emptied.push(slot.0));
    assert_eq!(emptied, [1, 2, 3, 4]);
}

#[test]
fn a_frame_that_is_not_full_may_be_written_short() {
    let mut frames = Frames::new(2, 8, Release::AsReadable);
    for (count, sectors) in [(1, 4), (5, 8)] {
        let frame =
            frames.take(Stream(0), |_, _, _| unreachable!("nothing is emptied")).expect("one is free");
        frames.push_copies(frame, Place(10), count);
        frames.close(frame, sectors);
        assert_eq!((frames.filled(frame), frames.sectors(frame)), (count, sectors));
    }
}

/// pblk's ring between its pointers, oldest first: a frame taken, with the sequences in it.
struct RingFrame {
    id: FrameId,
    sequences: Vec<u64>,
}

/// Frames between `l2p_update` and `sync`, between `sync` and `mem`, and what was put in so far.
#[derive(Default)]
struct RingModel {
    synced: VecDeque<RingFrame>,
    taken: VecDeque<RingFrame>,
    next: u64,
}

impl RingModel {
    /// Does one thing that can be done, if the draw finds one.
    fn act(&mut self, frames: &mut Frames, prng: &mut Prng) {
        let in_state = |frames: &Frames, state: FrameState| {
            self.taken
                .iter()
                .map(|frame| frame.id)
                .filter(|&id| frames.state(id) == state)
                .collect::<Vec<_>>()
        };
        let draw = prng.below(6);
        let state = match draw {
            0 => return self.take(frames),
            1 | 2 => FrameState::Filling,
            3 => FrameState::Ready,
            _ => FrameState::Programming,
        };
        let found = in_state(frames, state);
        let Some(last) = found.len().checked_sub(1) else { return };
        let id = found[usize_of(u32::try_from(prng.below(1 + last as u64)).expect("few"))];
        match draw {
            1 | 2 => self.fill(frames, id),
            // In order: the oldest that is ready.
            3 => frames.programming(found[0], Place(u64::from(found[0].0) * 100)),
            4 => frames.written(id),
            _ => frames.failed(id),
        }
    }

    fn take(&mut self, frames: &mut Frames) {
        let mut evicted = Vec::new();
        let is_empty = frames.free.is_empty();
        let taken = frames.take(Stream(0), |_, entry, _| evicted.push(entry.tag.sequence.0));
        let oldest = if is_empty { self.synced.pop_front() } else { None };
        assert_eq!(evicted, oldest.map_or_else(Vec::new, |frame| frame.sequences), "the oldest goes first");
        self.taken.extend(taken.map(|id| RingFrame { id, sequences: Vec::new() }));
    }

    fn fill(&mut self, frames: &mut Frames, id: FrameId) {
        self.next += 1;
        let tag = SectorTag { kind: Kind::Data, block: self.next, sequence: Sequence(self.next) };
        frames.push(id, Entry { tag, is_newest: true, ..Entry::PAD }, true);
        let frame = self.taken.iter_mut().find(|frame| frame.id == id).expect("it was taken");
        frame.sequences.push(self.next);
        if frames.room(id) == 0 {
            frames.close(id, frames.unit());
        }
    }

    /// `sync` passes what was acknowledged up to the first that was not, and stops there.
    fn check(&mut self, frames: &Frames) {
        while let Some(frame) = self.taken.pop_front_if(|frame| {
            matches!(frames.state(frame.id), FrameState::Written | FrameState::Evictable)
        }) {
            self.synced.push_back(frame);
        }
        frames.check();
        let of = |list: &VecDeque<RingFrame>| list.iter().map(|frame| frame.id).collect::<Vec<_>>();
        assert_eq!(frames.evictable.iter().copied().collect::<Vec<_>>(), of(&self.synced), "sync");
        assert_eq!(frames.taken.iter().copied().collect::<Vec<_>>(), of(&self.taken), "between sync and mem");
        let is_awaited = |frame: &&RingFrame| frames.state(frame.id) != FrameState::Written;
        let awaited = self.taken.iter().filter(is_awaited).flat_map(|frame| &frame.sequences);
        assert_eq!(frames.oldest_unwritten().map(|sequence| sequence.0), awaited.min().copied(), "flush");
    }
}

#[test]
fn frames_released_in_order_are_a_ring_whose_pointers_never_pass_each_other() {
    for seed in 0..20 {
        let mut prng = Prng::new(seed);
        let (mut frames, mut model) = (Frames::new(6, 3, Release::InOrder), RingModel::default());
        for _ in 0..3000 {
            model.act(&mut frames, &mut prng);
            model.check(&frames);
        }
        assert!(model.next > 20 * 18, "seed {seed}: {} entries, not twenty turns", model.next);
    }
}
