//! What the lines of an instance promise, case by case.

mod model;

use super::*;
use ocssd_lightnvm::{Geometry, PuId};

fn lines() -> Lines {
    let shape = InstanceGeometry::new(&Geometry::example(1, 2, 4, 48, 24), &[PuId(0), PuId(1)]);
    Lines::new(&shape, |line, unit| line.0 == 1 || (line.0 == 2 && unit.0 == 0))
}

fn cycle(lines: &mut Lines) -> LineId {
    let line = lines.take_free().expect("a free line");
    if lines.get(line).state != (LineState::Free { was_reset: true }) {
        lines.erasing(line);
        lines.was_reset(line);
        lines.unlist_free(line);
    }
    lines.open(line, Stream(0), Sequence(0));
    line
}

#[test]
fn a_line_without_good_chunks_is_never_given_out() {
    let mut lines = lines();
    assert_eq!(lines.free_count(), 3);
    assert_eq!(lines.get(LineId(2)).good_chunks, 1);
    assert_eq!(lines.get(LineId(1)).state, LineState::Bad);
    lines.check(0);
    let taken: Vec<u32> = std::iter::from_fn(|| lines.take_free().map(|line| line.0)).collect();
    assert_eq!(taken, [0, 2, 3]);
}

#[test]
fn a_line_without_good_chunks_keeps_its_resets_and_they_do_not_count() {
    let mut lines = lines();
    lines.restore_bad(LineId(1), 9);
    lines.restore_free(LineId(0), true, 2);
    lines.check(0);
    assert_eq!((lines.get(LineId(1)).resets, lines.most_resets(), lines.least_resets()), (9, 2, 0));
}

#[test]
fn the_line_reset_least_is_taken_first() {
    let mut lines = lines();
    let first = cycle(&mut lines);
    lines.close(first);
    lines.erasing(first);
    lines.was_reset(first);
    assert_eq!(lines.get(first).resets, 2);
    assert_ne!(lines.take_free(), Some(first), "another line was reset less often");
    assert_eq!((lines.most_resets(), lines.least_resets()), (2, 0));
    lines.skip_sequences(LineSequence(9));
    assert_eq!(lines.next_sequence(), LineSequence(10));
}

#[test]
fn a_worn_line_is_taken_below_the_most_worn_while_there_is_one() {
    let mut lines = lines();
    for (line, resets) in [(0, 3), (2, 7), (3, 5)] {
        lines.restore_free(LineId(line), true, resets);
    }
    lines.check(0);
    let taken: Vec<_> = std::iter::from_fn(|| lines.take_free_worn().map(|line| line.0)).collect();
    assert_eq!(taken, [3, 0, 2], "the most worn of all is taken last");
}
