//! What an open line promises, in random order and case by case.

use super::*;
use ocssd_base::Prng;

const LAYOUT: ChunkLayout = ChunkLayout { unit: 4, batch: 4, sectors: 40, tail: 4, mw_cunits: 8 };

fn units(count: u32) -> Vec<UnitIndex> {
    (0..count).map(UnitIndex).collect()
}

/// Gives out and acknowledges writes in random order until nothing is left; returns data units in order of issue.
fn run(open: &mut OpenLine, seed: u64, fail: u64) -> Vec<Write> {
    let mut prng = Prng::new(seed);
    let layout = open.layout;
    let size = |write: Write| match write.piece {
        LineContent::Head => layout.unit,
        LineContent::Data => layout.batch,
        LineContent::Padding => layout.data_end() - write.sector,
        LineContent::Tail => layout.tail,
    };
    let (mut flying, mut data, mut buffer_units, mut readable) = (Vec::new(), Vec::new(), 0, Vec::new());
    loop {
        let tail = open.next_tail().map(|(write, _)| write);
        let next = tail.or_else(|| open.next_data());
        if let Some(write) = next.filter(|_| prng.below(3) > 0) {
            open.issued(write, size(write), &vec![2; usize_of(size(write)) * ENTRY_BYTES]);
            let buffer_unit = (write.piece == LineContent::Data).then_some(BufferUnitId(buffer_units));
            buffer_units += 1;
            data.extend(buffer_unit.map(|_| write));
            flying.push((write, buffer_unit));
        } else if !flying.is_empty() {
            let pick = usize::try_from(prng.below(u64::try_from(flying.len()).expect("few"))).expect("few");
            // The writes of a chunk end in order.
            let unit = flying[pick].0.unit;
            let first = flying.iter().position(|(write, _)| write.unit == unit).expect("it is one of them");
            let (write, buffer_unit) = flying.remove(first);
            if prng.below(100) < fail {
                open.failed(write, size(write), prng.below(2) == 0, |buffer_unit| readable.push(buffer_unit));
            } else {
                open.acknowledged(write, size(write), buffer_unit, |buffer_unit| readable.push(buffer_unit));
            }
        } else if next.is_none() {
            break;
        }
        open.check();
    }
    assert!(open.is_finished(), "seed {seed}: the line never ends");
    assert_eq!(open.room(), 0, "seed {seed}");
    data
}

#[test]
fn a_line_is_written_in_stripes_and_every_buffer_unit_becomes_readable() {
    let turns = Turns { depth: 2, strict: true, active: 3 };
    let mut open = OpenLine::new(LineId(0), LAYOUT, turns, 3, &units(3));
    let data = run(&mut open, 1, 0);
    assert_eq!(data.len(), 3 * 8);
    let order: Vec<u32> = data.iter().take(6).map(|write| write.unit.0).collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2]);
}

#[test]
fn what_is_too_little_for_a_batch_is_filled_before_the_tail() {
    for (sectors, batches, fill) in [(44, 3, 0), (48, 3, 4), (52, 3, 8), (56, 4, 0)] {
        let layout = ChunkLayout { batch: 12, sectors, ..LAYOUT };
        assert_eq!(layout.data_sectors(), batches * 12);
        let turns = Turns { depth: 2, strict: false, active: 2 };
        let mut open = OpenLine::new(LineId(0), layout, turns, 2, &units(2));
        assert_eq!(open.room(), u64::from(2 * batches * 12));
        let filled = layout.data_end() - layout.unit - layout.data_sectors();
        assert_eq!(filled, fill);
        let data = run(&mut open, u64::from(sectors), 0);
        assert_eq!(data.len(), usize_of(2 * batches), "{sectors} sectors");
        for unit in units(2) {
            assert_eq!(open.pointer(unit), sectors, "every chunk is written to its end");
            let tags = &open.chunks[unit.index()].tags;
            assert_eq!(tags.len(), usize_of(layout.data_end()) * ENTRY_BYTES, "the fill is listed as well");
        }
    }
}

#[test]
fn a_second_head_takes_a_batch_and_leaves_the_rest_to_fill() {
    let layout = ChunkLayout { batch: 12, sectors: 44, ..LAYOUT };
    let turns = Turns { depth: 2, strict: false, active: 1 };
    let mut open = OpenLine::new(LineId(0), layout, turns, 1, &units(1));
    let head = open.next_data().expect("a head");
    open.issued(head, 4, &[2; 4 * ENTRY_BYTES]);
    open.failed(head, 4, false, |_| {});
    let again = open.next_data().expect("the head again");
    assert_eq!((again.piece, again.sector, open.room()), (LineContent::Head, 4, 36));
    open.issued(again, 4, &[2; 4 * ENTRY_BYTES]);
    assert_eq!(open.room(), 24, "32 sectors are left, of which two batches can be used");
    open.check();
    open.acknowledged(again, 4, None, |_| {});
    assert_eq!(run(&mut open, 6, 0).len(), 2);
    assert_eq!(open.pointer(UnitIndex(0)), 44);
}

#[test]
fn what_was_programmed_within_the_read_window_is_found_in_its_buffer_unit_until_it_can_be_read() {
    let turns = Turns { depth: 2, strict: false, active: 1 };
    let mut open = OpenLine::new(LineId(0), LAYOUT, turns, 1, &units(1));
    let unit = UnitIndex(0);
    for (number, readable) in [(0, 0), (1, 0), (2, 4), (3, 8)] {
        let write = open.next_data().expect("a head, then data");
        open.issued(write, 4, &[2; 4 * ENTRY_BYTES]);
        assert_eq!(open.unreadable(unit, write.sector), None, "it was not programmed");
        let buffer_unit = (write.piece == LineContent::Data).then_some(BufferUnitId(number));
        open.acknowledged(write, 4, buffer_unit, |buffer_unit| {
            assert_eq!(buffer_unit, BufferUnitId(1), "the rest is too young")
        });
        assert_eq!(open.readable(unit), readable);
    }
    assert_eq!(open.unreadable(unit, 7), None, "it can be read");
    assert_eq!(open.unreadable(unit, 8), Some((BufferUnitId(2), 0)));
    assert_eq!(open.unreadable(unit, 15), Some((BufferUnitId(3), 3)));
    assert_eq!(open.unreadable(unit, 16), None, "nothing was written there");
}

#[test]
fn buffer_units_that_were_not_full_are_found_as_they_lie() {
    let layout = ChunkLayout { batch: 12, mw_cunits: 24, ..LAYOUT };
    let turns = Turns { depth: 2, strict: false, active: 1 };
    let mut open = OpenLine::new(LineId(0), layout, turns, 1, &units(1));
    let (unit, mut number) = (UnitIndex(0), 0);
    for sectors in [4, 12, 4, 8] {
        let write = open.next_data().expect("a head, then data");
        open.issued(write, sectors, &vec![2; usize_of(sectors) * ENTRY_BYTES]);
        open.check();
        let buffer_unit = (write.piece == LineContent::Data).then_some(BufferUnitId(number));
        open.acknowledged(write, sectors, buffer_unit, |_| {});
        number += 1;
    }
    assert_eq!((open.readable(unit), open.room()), (4, 0), "8 sectors are left, which is no batch");
    let found = [3, 4, 15, 16, 19, 20, 27, 28].map(|sector| open.unreadable(unit, sector));
    let [one, two, three] = [1, 2, 3].map(|number| move |at| Some((BufferUnitId(number), at)));
    assert_eq!(found, [None, one(0), one(11), two(0), two(3), three(0), three(7), None]);
    let fill = open.next_tail().expect("what is left is filled").0;
    assert_eq!((fill.piece, fill.sector), (LineContent::Padding, 28));
    open.issued(fill, 8, &[2; 8 * ENTRY_BYTES]);
    open.acknowledged(fill, 8, None, |_| {});
    assert_eq!(open.next_tail().map(|(write, _)| (write.piece, write.sector)), Some((LineContent::Tail, 36)));
}

#[test]
fn in_strict_order_no_head_waits_for_the_one_before() {
    let turns = Turns { depth: 1, strict: true, active: 4 };
    let mut open = OpenLine::new(LineId(0), LAYOUT, turns, 4, &units(4));
    let mut given = Vec::new();
    while let Some(write) = open.next_data() {
        open.issued(write, 4, &[2; 4 * ENTRY_BYTES]);
        given.push((write.unit.0, write.piece));
    }
    assert_eq!(
        given,
        [(0, LineContent::Head), (1, LineContent::Head), (2, LineContent::Head), (3, LineContent::Head)]
    );
}

#[test]
fn active_units_are_filled_before_the_next() {
    let turns = Turns { depth: 1, strict: false, active: 2 };
    let mut open = OpenLine::new(LineId(0), LAYOUT, turns, 5, &units(5));
    let data = run(&mut open, 2, 0);
    let groups: Vec<u32> = data.iter().map(|write| write.unit.0 / 2).collect();
    assert!(groups.is_sorted(), "{groups:?}");
    assert_eq!(data.len(), 5 * 8);
}

#[test]
fn a_head_that_failed_is_written_again_behind_what_was_sent() {
    let turns = Turns { depth: 2, strict: false, active: 1 };
    let mut open = OpenLine::new(LineId(0), LAYOUT, turns, 1, &units(1));
    let tags = vec![2; 4 * ENTRY_BYTES];
    let head = open.next_data().expect("a head");
    open.issued(head, 4, &tags);
    let data = open.next_data().expect("data");
    assert_eq!((head.piece, data.piece, data.sector), (LineContent::Head, LineContent::Data, 4));
    open.issued(data, 4, &tags);
    open.failed(head, 4, false, |_| {});
    assert!(open.is_headless(head.unit));
    let again = open.next_data().expect("the head again");
    assert_eq!((again.piece, again.sector), (LineContent::Head, 8));
    open.issued(again, 4, &tags);
    open.check();
    assert_eq!(open.room(), 36 - 4 - 4 - 4, "a second head takes the room of data");
    open.acknowledged(data, 4, None, |_| {});
    assert!(open.is_headless(head.unit));
    open.acknowledged(again, 4, None, |_| {});
    assert!(!open.is_headless(head.unit));
    assert_eq!(open.next_data().map(|write| (write.piece, write.sector)), Some((LineContent::Data, 12)));
    open.check();
}

#[test]
fn failing_chunks_leave_a_line_that_ends_all_the_same() {
    for seed in 0..200 {
        let turns =
            Turns { depth: 1 + u32::try_from(seed % 3).expect("small"), strict: seed % 2 == 0, active: 2 };
        let batch = [4, 8, 12, 32][usize_of(u32::try_from(seed % 4).expect("small"))];
        let layout = ChunkLayout { batch, ..LAYOUT };
        let mut open = OpenLine::new(LineId(0), layout, turns, 4, &units(4));
        run(&mut open, seed, 10);
    }
}

#[test]
fn a_resumed_chunk_goes_on_where_it_was_and_its_tail_is_filled() {
    let turns = Turns { depth: 2, strict: false, active: 4 };
    let starts = [(UnitIndex(1), 8), (UnitIndex(2), 36), (UnitIndex(3), 0)];
    let mut open = OpenLine::resume(LineId(0), LAYOUT, turns, 4, &starts);
    assert_eq!(open.room(), 28 + 32);
    assert_eq!(open.next_tail().map(|(write, tags)| (write.sector, tags)), Some((36, None)));
    assert_eq!(run(&mut open, 3, 0).len(), 7 + 8);
}

/// Gives out the next write, of `sectors`, with tags of one byte each.
fn give(open: &mut OpenLine, sectors: u32, tag: u8) -> Write {
    let write = open.next_data().expect("a write");
    open.issued(write, sectors, &vec![tag; usize_of(sectors) * ENTRY_BYTES]);
    open.check();
    write
}

#[test]
fn a_line_tells_which_it_is_what_flies_and_when_it_is_done() {
    let turns = Turns { depth: 2, strict: false, active: 2 };
    let layout = ChunkLayout { sectors: 12, ..LAYOUT };
    let mut open = OpenLine::new(LineId(7), layout, turns, 3, &[UnitIndex(2)]);
    let unit = UnitIndex(2);
    assert_eq!((open.line(), open.room(), open.in_flight(), open.pointer(unit)), (LineId(7), 4, 0, 0));
    assert_eq!((open.is_finished(), open.is_headless(unit), open.has_ended(unit)), (false, true, false));
    for not_named in [UnitIndex(0), UnitIndex(1)] {
        assert!(open.has_ended(not_named), "{not_named:?} takes nothing");
        assert_eq!(open.readable(not_named), 12, "what was written there can be read");
    }
    let head = give(&mut open, 4, 1);
    let data = give(&mut open, 4, 2);
    assert_eq!((open.in_flight(), open.room(), open.pointer(unit), open.next_data()), (2, 0, 8, None));
    open.acknowledged(head, 4, None, |_| unreachable!("a head is no buffer unit"));
    assert_eq!((open.in_flight(), open.next_tail()), (1, None), "a tail waits for what it lists");
    open.acknowledged(data, 4, Some(BufferUnitId(5)), |_| unreachable!("it is within the read window"));
    let (tail, tags) = open.next_tail().map(|(write, tags)| (write, tags.map(<[u8]>::to_vec))).expect("due");
    assert_eq!(tail, Write { unit, sector: 8, piece: LineContent::Tail });
    assert_eq!(tags, Some([[1; 4 * ENTRY_BYTES], [2; 4 * ENTRY_BYTES]].concat()));
    open.issued(tail, 4, &[]);
    assert_eq!((open.is_finished(), open.in_flight(), open.has_ended(unit)), (false, 1, false));
    let mut readable = Vec::new();
    open.acknowledged(tail, 4, None, |buffer_unit| readable.push(buffer_unit));
    assert_eq!(readable, [BufferUnitId(5)], "a full chunk can be read to its end");
    assert_eq!((open.is_finished(), open.in_flight(), open.has_ended(unit)), (true, 0, true));
    assert_eq!((open.readable(unit), open.next_data(), open.next_tail()), (12, None, None));
}

#[test]
fn a_line_without_tails_keeps_no_tags() {
    let turns = Turns { depth: 2, strict: false, active: 2 };
    for (tail, kept) in [(0, 0), (LAYOUT.tail, 8 * ENTRY_BYTES)] {
        let mut open = OpenLine::new(LineId(7), ChunkLayout { tail, ..LAYOUT }, turns, 1, &units(1));
        give(&mut open, 4, 1);
        give(&mut open, 4, 2);
        assert_eq!(open.chunks[0].tags.len(), kept, "tails of {tail} sectors");
    }
}

#[test]
fn sectors_of_a_write_that_failed_are_listed_as_fill() {
    let turns = Turns { depth: 2, strict: false, active: 1 };
    let layout = ChunkLayout { sectors: 20, ..LAYOUT };
    let mut open = OpenLine::new(LineId(0), layout, turns, 1, &units(1));
    for (tag, fails) in [(1, false), (2, true), (3, false), (4, false)] {
        let write = give(&mut open, 4, tag);
        if fails {
            open.failed(write, 4, false, |_| {});
            assert!(!open.is_headless(write.unit), "its head is there");
        } else {
            open.acknowledged(write, 4, None, |_| {});
        }
    }
    let fill = SectorTag::PAD.to_list_entry().repeat(4);
    let list = [vec![1; 48], fill, vec![3; 48], vec![4; 48]].concat();
    let found = open.next_tail().expect("the tail is due");
    assert_eq!((found.0.piece, found.1), (LineContent::Tail, Some(list.as_slice())));
}

#[test]
fn a_chunk_the_drive_closed_takes_no_more_and_can_be_read_as_far_as_it_is() {
    let turns = Turns { depth: 3, strict: false, active: 2 };
    let mut open = OpenLine::new(LineId(0), LAYOUT, turns, 3, &units(3));
    let (unit, other) = (UnitIndex(0), UnitIndex(1));
    assert_eq!(open.room(), 3 * 32);
    let writes = [give(&mut open, 4, 1), give(&mut open, 4, 1), give(&mut open, 4, 1), give(&mut open, 4, 1)];
    assert_eq!(writes.map(|write| write.unit), [unit, unit, other, other]);
    open.acknowledged(writes[0], 4, None, |_| {});
    open.acknowledged(writes[1], 4, Some(BufferUnitId(9)), |_| unreachable!("it is within the read window"));
    assert_eq!((open.readable(unit), open.unreadable(unit, 5)), (0, Some((BufferUnitId(9), 1))));
    let next = give(&mut open, 4, 1);
    assert_eq!(next.unit, unit);
    let (room, mut readable) = (open.room(), Vec::new());
    open.failed(next, 4, true, |buffer_unit| readable.push(buffer_unit));
    assert_eq!(readable, [BufferUnitId(9)]);
    assert_eq!((open.has_ended(unit), open.readable(unit), open.unreadable(unit, 5)), (true, 40, None));
    assert_eq!(open.room(), room - 24, "what was left of it is lost");
    open.check();
    // The others go on, a third among them once the second of the two is full.
    let data = run_rest(&mut open, writes[2], writes[3]);
    assert!(data.iter().all(|write| write.unit != unit));
    assert!(open.is_finished());
}

/// Acknowledges a head and data that fly, and then all there is.
fn run_rest(open: &mut OpenLine, head: Write, data: Write) -> Vec<Write> {
    open.acknowledged(head, 4, None, |_| {});
    open.acknowledged(data, 4, None, |_| {});
    run(open, 12, 0)
}

#[test]
fn a_chunk_written_before_has_a_head_and_one_that_was_not_has_none() {
    let turns = Turns { depth: 2, strict: false, active: 4 };
    let starts = [(UnitIndex(1), 4), (UnitIndex(3), 0)];
    let open = OpenLine::resume(LineId(0), LAYOUT, turns, 4, &starts);
    let headless = units(4).into_iter().map(|unit| open.is_headless(unit));
    assert_eq!(headless.collect::<Vec<_>>(), [true, false, true, true]);
    assert_eq!((open.pointer(UnitIndex(1)), open.readable(UnitIndex(1))), (4, 0));
    assert_eq!(open.next_data().map(|write| (write.unit.0, write.piece)), Some((1, LineContent::Data)));
    open.check();
}

#[test]
fn a_busy_unit_waits_its_turn_without_holding_up_others() {
    let turns = Turns { depth: 1, strict: false, active: 2 };
    let mut open = OpenLine::new(LineId(0), LAYOUT, turns, 2, &units(2));
    let heads = [give(&mut open, 4, 1), give(&mut open, 4, 1)];
    assert_eq!((heads.map(|write| write.unit.0), open.next_data()), ([0, 1], None));
    open.acknowledged(heads[1], 4, None, |_| {});
    let data = give(&mut open, 4, 1);
    assert_eq!((data.unit.0, data.piece, open.next_data()), (1, LineContent::Data, None));
    open.acknowledged(heads[0], 4, None, |_| {});
    assert_eq!(open.next_data().map(|write| (write.unit.0, write.sector)), Some((0, 4)));
}

#[test]
fn sizes_of_chunks_follow_from_their_layout() {
    let layout = ChunkLayout { unit: 4, batch: 12, sectors: 44, tail: 4, mw_cunits: 8 };
    assert_eq!((layout.data_end(), layout.data_sectors()), (40, 36));
    let left = [0, 4, 5, 16, 17, 28, 29, 40, 44].map(|pointer| layout.data_left(pointer));
    assert_eq!(left, [36, 36, 24, 24, 12, 12, 0, 0, 0]);
    let readable = [0, 7, 8, 9, 43, 44].map(|acknowledged| layout.readable(acknowledged));
    assert_eq!(readable, [0, 0, 0, 1, 35, 44]);
}
