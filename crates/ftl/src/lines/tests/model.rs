//! The lines against naive ones: every question is answered by a pass over them.

use super::super::*;
use ocssd_base::Prng;
use ocssd_lightnvm::{Geometry, PuId};

const LINES: u32 = 9;
const UNITS: u32 = 3;

#[derive(Clone, Copy)]
struct NaiveLine {
    line: Line,
    bad: [bool; UNITS as usize],
    /// When it became free, while it can be taken.
    listed: Option<u64>,
}

struct Naive {
    lines: Vec<NaiveLine>,
    freed: u64,
    next: u64,
}

impl Naive {
    fn new(bad: &[(u32, u32)]) -> Self {
        let line = Line {
            state: LineState::Free { was_reset: false },
            sequence: LineSequence(0),
            stream: Stream(0),
            readers: 0,
            opened_at: Sequence(0),
            data_sectors: 0,
            resets: 0,
            good_chunks: UNITS,
            heads: 0,
        };
        let lines = (1..=u64::from(LINES)).map(|freed| NaiveLine {
            line,
            bad: [false; UNITS as usize],
            listed: Some(freed),
        });
        let mut naive = Self { lines: lines.collect(), freed: u64::from(LINES), next: 1 };
        bad.iter().for_each(|&(line, unit)| naive.mark_bad(LineId(line), UnitIndex(unit)));
        naive
    }

    fn at(&mut self, id: LineId) -> &mut NaiveLine {
        &mut self.lines[id.index()]
    }

    fn mark_bad(&mut self, id: LineId, unit: UnitIndex) {
        let naive = self.at(id);
        naive.bad[unit.index()] = true;
        let bad = naive.bad.iter().filter(|&&is_bad| is_bad).count();
        naive.line.good_chunks = UNITS - u32::try_from(bad).expect("few");
        if naive.line.good_chunks == 0 && naive.listed.is_some() {
            (naive.line.state, naive.listed) = (LineState::Bad, None);
        }
    }

    /// Free lines that can be taken, least worn first, the one freed earlier among equals.
    fn free(&self) -> Vec<(u32, u64, LineId)> {
        let listed = (0..).map(LineId).zip(&self.lines);
        let mut free: Vec<_> =
            listed.filter_map(|(id, naive)| Some((naive.line.resets, naive.listed?, id))).collect();
        free.sort();
        free
    }

    fn resets(&self) -> Vec<u32> {
        let usable = self.lines.iter().filter(|naive| naive.line.state != LineState::Bad);
        usable.map(|naive| naive.line.resets).collect()
    }

    fn of_state(&self, wanted: impl Fn(LineState) -> bool) -> Vec<LineId> {
        let lines = (0..).map(LineId).zip(&self.lines);
        lines.filter(|(_, naive)| wanted(naive.line.state)).map(|(id, _)| id).collect()
    }
}

fn draw(prng: &mut Prng, list: &[LineId]) -> Option<LineId> {
    let count = u64::try_from(list.len()).expect("few");
    (count > 0).then(|| list[usize::try_from(prng.below(count)).expect("few")])
}

fn number(prng: &mut Prng, below: u32) -> u32 {
    u32::try_from(prng.below(u64::from(below))).expect("small")
}

/// Takes a line, resets it if it is not, and opens it; or leaves it half way.
fn take(lines: &mut Lines, naive: &mut Naive, prng: &mut Prng) {
    let (free, most) = (naive.free(), naive.resets().into_iter().max().unwrap_or(0));
    let is_worn = prng.below(2) == 0;
    let worn = free.iter().rfind(|entry| entry.0 < most).filter(|_| is_worn);
    let expected = worn.or(free.first()).map(|&(.., id)| id);
    let found = if is_worn { lines.take_free_worn() } else { lines.take_free() };
    assert_eq!(found, expected, "worn: {is_worn}");
    let Some(id) = found else { return };
    naive.at(id).listed = None;
    if naive.at(id).line.state == (LineState::Free { was_reset: false }) {
        lines.erasing(id);
        naive.at(id).line.state = LineState::Erasing;
        return;
    }
    let (stream, newest) = (Stream(u8::try_from(prng.below(4)).expect("small")), Sequence(prng.below(100)));
    assert_eq!(lines.open(id, stream, newest), LineSequence(naive.next));
    let sequence = LineSequence(naive.next);
    naive.next += 1;
    let line = &mut naive.at(id).line;
    *line = Line { state: LineState::Open, sequence, stream, opened_at: newest, data_sectors: 0, ..*line };
}

/// What a line in use goes through, and a line that is being reset.
fn go_on(lines: &mut Lines, naive: &mut Naive, prng: &mut Prng, id: LineId) {
    let freed = naive.freed + 1;
    let NaiveLine { line, listed, .. } = naive.at(id);
    match (line.state, prng.below(6)) {
        (LineState::Erasing, _) => {
            lines.was_reset(id);
            (line.resets, line.sequence, line.data_sectors) = (line.resets + 1, LineSequence(0), 0);
            line.heads = 0;
            line.state = LineState::Bad;
            if line.good_chunks > 0 {
                (line.state, *listed) = (LineState::Free { was_reset: true }, Some(freed));
                naive.freed = freed;
            }
        }
        (LineState::Open, 0) if line.heads < UNITS => {
            lines.head_written(id);
            line.heads += 1;
        }
        (LineState::Open, 1) if prng.below(4) == 0 => {
            let newest = Sequence(line.opened_at.0 + prng.below(100));
            lines.gone_on(id, newest);
            if line.data_sectors == 0 {
                line.opened_at = newest;
            }
        }
        (LineState::Open, 1) => {
            let sectors = number(prng, 50);
            lines.add_data(id, sectors);
            line.data_sectors += u64::from(sectors);
        }
        (LineState::Open, 2 | 3) => {
            lines.close(id);
            line.state = LineState::Closed;
        }
        (LineState::Open | LineState::Closed, 4) if line.readers == 0 => {
            line.readers = 1 + number(prng, 3);
            lines.begin_read(id);
            if line.readers > 1 {
                lines.begin_reads(id, line.readers - 1);
            }
        }
        (LineState::Open | LineState::Closed, _) if line.readers > 0 => {
            let ended = 1 + number(prng, line.readers);
            line.readers -= ended;
            lines.end_read(id);
            lines.end_reads(id, ended - 1);
        }
        (LineState::Closed, _) => {
            lines.erasing(id);
            line.state = LineState::Erasing;
        }
        _ => {}
    }
}

/// What a mount finds of a line that is listed as free.
fn restore(lines: &mut Lines, naive: &mut Naive, prng: &mut Prng) {
    let listed: Vec<LineId> = naive.free().into_iter().map(|(.., id)| id).collect();
    let Some(id) = draw(prng, &listed) else { return };
    let resets = number(prng, 20);
    if prng.below(2) == 0 {
        let was_reset = prng.below(2) == 0;
        lines.restore_free(id, was_reset, resets);
        let line = &mut naive.at(id).line;
        (line.state, line.resets) = (LineState::Free { was_reset }, resets);
        return;
    }
    let state = if prng.below(2) == 0 { LineState::Open } else { LineState::Closed };
    let sequence = LineSequence(naive.next + prng.below(5));
    let NaiveLine { line, listed, .. } = naive.at(id);
    // How many of its chunks are good is known already.
    let found = Line { state, sequence, resets, good_chunks: 99, heads: 1, ..*line };
    lines.restore(id, found);
    (*line, *listed) = (Line { good_chunks: line.good_chunks, ..found }, None);
    naive.next = sequence.0 + 1;
}

fn act(lines: &mut Lines, naive: &mut Naive, prng: &mut Prng) {
    match prng.below(30) {
        0..8 => take(lines, naive, prng),
        8 => {
            let used = LineSequence(prng.below(naive.next + 2));
            lines.skip_sequences(used);
            naive.next = naive.next.max(used.0 + 1);
        }
        9 if prng.below(12) == 0 => {
            let (id, unit) = (LineId(number(prng, LINES)), UnitIndex(number(prng, UNITS)));
            lines.mark_bad(id, unit);
            naive.mark_bad(id, unit);
        }
        10 => restore(lines, naive, prng),
        _ => {
            let in_use = |state| !matches!(state, LineState::Free { .. } | LineState::Bad);
            if let Some(id) = draw(prng, &naive.of_state(in_use)) {
                go_on(lines, naive, prng, id);
            }
        }
    }
}

fn check(lines: &Lines, naive: &Naive) {
    let free = naive.free();
    lines.check(0);
    assert_eq!(usize_of(lines.free_count()), free.len());
    let chunks: u32 = free.iter().map(|&(.., id)| naive.lines[id.index()].line.good_chunks).sum();
    assert_eq!((lines.count(), lines.free_chunks()), (LINES, chunks));
    assert_eq!(lines.next_sequence(), LineSequence(naive.next));
    assert_eq!(lines.most_resets(), naive.resets().into_iter().max().unwrap_or(0));
    assert_eq!(lines.least_resets(), naive.resets().into_iter().min().unwrap_or(0));
    assert_eq!(lines.iter().count(), naive.lines.len());
    for ((id, found), expected) in lines.iter().zip(&naive.lines) {
        assert_eq!(format!("{found:?}"), format!("{:?}", expected.line), "{id:?}");
        assert_eq!(format!("{:?}", lines.get(id)), format!("{found:?}"));
        for (unit, &is_bad) in (0..).map(UnitIndex).zip(&expected.bad) {
            assert_eq!(lines.is_bad(id, unit), is_bad, "{id:?}, {unit:?}");
        }
    }
}

#[test]
fn lines_are_what_a_pass_over_them_says() {
    for seed in 0..10 {
        println!("seed {seed}");
        let mut prng = Prng::new(seed);
        let bad: Vec<(u32, u32)> =
            (0..prng.below(9)).map(|_| (number(&mut prng, LINES), number(&mut prng, UNITS))).collect();
        let shape =
            InstanceGeometry::new(&Geometry::example(UNITS, 1, LINES, 48, 24), &[PuId(0), PuId(1), PuId(2)]);
        let mut lines = Lines::new(&shape, |line, unit| bad.contains(&(line.0, unit.0)));
        let mut naive = Naive::new(&bad);
        check(&lines, &naive);
        for _ in 0..600 {
            act(&mut lines, &mut naive, &mut prng);
            check(&lines, &naive);
        }
        assert!(naive.next > 30, "seed {seed}: {} lines opened", naive.next);
    }
}
