//! Which cells are measured, how often, in which order and for how long: the plan behind a time that is kept.
//!
//! One factor at a time by default, each around [`Cell::BASE`], with the cells of the profiling report among them (4, 16 and
//! 128 KiB; 100/0, 70/30, 50/50 and 0/100; depths 1, 10 and 100) and those that datasheets quote; a grid if asked for. All
//! cells are measured once before any is measured again, each time in another random order, so that a drift of the drive
//! touches all cells alike and a profile that is stopped is balanced.

use super::cell::{Cell, size_word};
use ocssd_base::{Nanos, Prng};

/// How thorough a profile is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// About a minute: half of the cells, three repetitions.
    Quick,
    /// About ten minutes: all of one factor at a time, five repetitions.
    Normal,
    /// The whole grid of sizes, mixes and depths, three repetitions: hours.
    Full,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effortful {
    /// How thorough.
    pub effort: Effort,
    /// Time for everything; `None` takes that of the effort.
    pub time: Option<Nanos>,
    /// Repetitions; `None` takes those of the effort.
    pub repetitions: Option<u32>,
    /// No limit of time for preconditioning, stricter rounds, whole volumes, at least five repetitions.
    pub contract: bool,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Smallest I/O in bytes.
    pub unit: u32,
    /// Bytes there are.
    pub bytes: u64,
    /// Whether writes may be measured.
    pub writable: bool,
}

/// Bytes that may be in flight at once (chosen: what a small machine has to spare; fio takes as much for each job).
pub const IN_FLIGHT_MAX: u64 = 256 << 20;
/// Shortest measured time of a run (chosen: 1 000 I/Os of 200 us).
pub(super) const RUN_MIN: Nanos = Nanos::from_millis(200);
/// Longest: more repetitions are worth more than longer runs (chosen).
pub(super) const RUN_MAX: Nanos = Nanos::from_secs(30);

/// The report's and ours: powers of two from one sector to 4 MiB.
const SIZES: [u64; 14] = [
    512,
    1 << 10,
    2 << 10,
    4 << 10,
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    2 << 20,
    4 << 20,
];
const SIZES_QUICK: [u64; 6] = [512, 4 << 10, 16 << 10, 128 << 10, 1 << 20, 4 << 20];
/// The report's four.
pub const MIXES: [u8; 4] = [100, 70, 50, 0];
/// Powers of two, and the report's 10 and 100.
const DEPTHS: [u32; 11] = [1, 2, 4, 8, 10, 16, 32, 64, 100, 128, 256];
const DEPTHS_QUICK: [u32; 6] = [1, 4, 10, 32, 100, 256];

/// Reads of these sizes at these depths, in the default effort: how size and depth go together, which is the main effect on an
/// SSD and which one factor at a time hides.
const SIZES_GRID: [u64; 4] = [4 << 10, 16 << 10, 128 << 10, 1 << 20];
const DEPTHS_GRID: [u32; 4] = [1, 8, 32, 128];

impl Effort {
    /// Time for everything.
    #[must_use]
    pub const fn time(self) -> Nanos {
        match self {
            Self::Quick => Nanos::from_secs(60),
            Self::Normal => Nanos::from_secs(600),
            Self::Full => Nanos::from_secs(4 * 3600),
        }
    }

    pub(super) const fn repetitions(self) -> u32 {
        match self {
            Self::Quick | Self::Full => 3,
            Self::Normal => 5,
        }
    }

    const fn sizes(self) -> &'static [u64] {
        if matches!(self, Self::Quick) { &SIZES_QUICK } else { &SIZES }
    }

    const fn depths(self) -> &'static [u32] {
        if matches!(self, Self::Quick) { &DEPTHS_QUICK } else { &DEPTHS }
    }
}

/// The cells of an effort, each once; and sentences about those that cannot be measured.
#[must_use]
pub fn cells(effort: Effort, bounds: Bounds) -> (Vec<Cell>, Vec<String>) {
    possible(&all(effort), bounds)
}

fn all(effort: Effort) -> Vec<Cell> {
    let mut wanted: Vec<Cell> = Vec::new();
    wanted.extend(effort.sizes().iter().map(|&bytes| Cell::random(bytes, 100, 1)));
    wanted.extend(MIXES.map(|percent| Cell::random(4096, percent, 1)));
    wanted.extend(effort.depths().iter().map(|&depth| Cell::random(4096, 100, depth)));
    // What datasheets quote: deep random writes, and sequential I/O of 128 KiB.
    wanted.extend([
        Cell::random(4096, 0, 32),
        Cell::sequential(128 << 10, 100, 32),
        Cell::sequential(128 << 10, 0, 32),
    ]);
    if effort == Effort::Normal {
        for &bytes in &SIZES_GRID {
            wanted.extend(DEPTHS_GRID.iter().map(|&depth| Cell::random(bytes, 100, depth)));
        }
    }
    if effort == Effort::Full {
        for &bytes in &SIZES {
            for percent in MIXES {
                wanted.extend(DEPTHS.iter().map(|&depth| Cell::random(bytes, percent, depth)));
            }
        }
    }
    wanted
}

/// Those of `wanted` that can be measured, each once; and sentences about the others.
#[must_use]
pub fn possible(wanted: &[Cell], bounds: Bounds) -> (Vec<Cell>, Vec<String>) {
    let mut chosen: Vec<Cell> = Vec::new();
    let (mut small, mut written, mut large) = (0_usize, 0_usize, 0_usize);
    for &cell in wanted {
        if chosen.contains(&cell) {
            continue;
        }
        if cell.bytes < u64::from(bounds.unit) {
            small += 1;
        } else if cell.writes() && !bounds.writable {
            written += 1;
        } else if cell.bytes_in_flight() > IN_FLIGHT_MAX.min(bounds.bytes) {
            large += 1;
        } else {
            chosen.push(cell);
        }
    }
    let mut notes = Vec::new();
    if small > 0 {
        let unit = size_word(u64::from(bounds.unit));
        notes.push(format!(
            "I/Os below {unit} are left out ({small} of the cells): the target takes none so small"
        ));
    }
    if written > 0 {
        notes.push(format!("{written} cells that write are left out: the target may not be written"));
    }
    if large > 0 {
        let most = size_word(IN_FLIGHT_MAX.min(bounds.bytes));
        notes.push(format!("{large} cells with more than {most} in flight are left out"));
    }
    (chosen, notes)
}

/// Runs, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The cells.
    pub cells: Vec<Cell>,
    /// Repetitions of each.
    pub repetitions: u32,
    /// How long each is measured.
    pub run: Nanos,
    /// How long each runs before that.
    pub ramp: Nanos,
    /// Index of the cell and number of the repetition.
    pub order: Vec<(usize, u32)>,
}

/// Time a run takes beyond being measured: memory, threads, the first and last I/O (measured: 5 to 30 ms on two cores).
pub(super) const OVERHEAD: Nanos = Nanos::from_millis(20);

impl Schedule {
    /// Spreads the cells over `left` of time. Repetitions are given up before runs become shorter than a fifth of a second,
    /// but never below two; what then takes longer is said by [`Self::time`].
    #[must_use]
    pub fn new(cells: Vec<Cell>, asked: Effortful, left: Nanos, seed: u64) -> Self {
        let least = if asked.contract { 5 } else { 1 };
        let mut repetitions = asked.repetitions.unwrap_or(asked.effort.repetitions()).max(least);
        let count = u64::try_from(cells.len()).expect("a length").max(1);
        let each = |repetitions: u32| Nanos(left.0 / (count * u64::from(repetitions)));
        while asked.repetitions.is_none()
            && repetitions > 2.max(least)
            && each(repetitions) < RUN_MIN + OVERHEAD * 2
        {
            repetitions -= 1;
        }
        let whole = each(repetitions).saturating_since(OVERHEAD);
        // A tenth is spent before measuring, within the time of the run.
        let run = Nanos(whole.0 / 11 * 10).clamp(RUN_MIN, RUN_MAX);
        let mut prng = Prng::new(seed).split("order");
        let mut order = Vec::new();
        for repetition in 0..repetitions {
            order.extend(shuffled(cells.len(), &mut prng).into_iter().map(|cell| (cell, repetition)));
        }
        Self { cells, repetitions, run, ramp: Nanos(run.0 / 10), order }
    }

    /// How long all runs take.
    #[must_use]
    pub fn time(&self) -> Nanos {
        let runs = u64::try_from(self.order.len()).expect("a length");
        (self.run + self.ramp + OVERHEAD) * runs
    }
}

/// Indices below `count` in a random order, each order as likely (Fisher and Yates).
pub(super) fn shuffled(count: usize, prng: &mut Prng) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..count).collect();
    for last in (1..indices.len()).rev() {
        let bound = u64::try_from(last + 1).expect("a length");
        indices.swap(last, usize::try_from(prng.below(bound)).expect("below a length"));
    }
    indices
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { unit: 512, bytes: 8 << 30, writable: true };

    fn asked(effort: Effort) -> Effortful {
        Effortful { effort, time: None, repetitions: None, contract: false }
    }

    #[test]
    fn the_reports_own_cells_are_always_among_them() {
        let mut report: Vec<Cell> = [4, 16, 128].map(|kib| Cell::random(kib << 10, 100, 1)).to_vec();
        report.extend(MIXES.map(|percent| Cell::random(4096, percent, 1)));
        report.extend([1, 10, 100].map(|depth| Cell::random(4096, 100, depth)));
        for (effort, count) in [(Effort::Quick, 17), (Effort::Normal, 39), (Effort::Full, 602)] {
            let (cells, notes) = cells(effort, BOUNDS);
            assert!(report.iter().all(|cell| cells.contains(cell)), "{effort:?}");
            let mut once = cells.clone();
            once.sort_unstable();
            once.dedup();
            assert_eq!(
                (once.len(), cells.len(), notes.is_empty()),
                (cells.len(), count, effort != Effort::Full)
            );
        }
    }

    #[test]
    fn what_cannot_be_measured_is_left_out_and_said() {
        let bounds = Bounds { unit: 4096, writable: false, ..BOUNDS };
        let (cells, notes) = cells(Effort::Normal, bounds);
        assert!(cells.iter().all(|cell| cell.bytes >= 4096 && !cell.writes()));
        assert_eq!(notes.len(), 2, "{notes:?}");
    }

    #[test]
    fn time_is_kept_and_every_repetition_has_every_cell_in_another_order() {
        for (effort, seconds) in [(Effort::Quick, 40), (Effort::Normal, 420), (Effort::Full, 9000)] {
            let (cells, _) = cells(effort, BOUNDS);
            let left = Nanos::from_secs(seconds);
            let schedule = Schedule::new(cells.clone(), asked(effort), left, 3);
            assert!(schedule.time() <= left + Nanos::from_secs(1), "{effort:?} {}", schedule.time());
            assert!(schedule.time() > Nanos(left.0 / 10 * 9), "{effort:?} {}", schedule.time());
            let of = |repetition: u32| -> Vec<usize> {
                schedule.order.iter().filter(|run| run.1 == repetition).map(|run| run.0).collect()
            };
            assert_ne!(of(0), of(1), "{effort:?}");
            let mut first = of(0);
            first.sort_unstable();
            assert_eq!(first, (0..cells.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn too_little_time_costs_repetitions_first() {
        let (cells, _) = cells(Effort::Normal, BOUNDS);
        let schedule = Schedule::new(cells, asked(Effort::Normal), Nanos::from_secs(1), 3);
        assert_eq!((schedule.repetitions, schedule.run), (2, RUN_MIN));
    }
}
