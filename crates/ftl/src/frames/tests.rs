//! What a buffer of frames promises, case by case.

use super::*;

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
    let newest: Vec<bool> = frames.entries(frame).flatten().map(|entry| entry.is_newest).collect();
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
    assert_eq!(frames.entries(frame).flatten().count(), 4, "what was dropped is fill");
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
