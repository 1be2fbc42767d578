//! Where the units of a table or log lie: columns, each a list of runs within chunks.
//!
//! Unit `u` of something that is `width` columns wide is in column `u % width`, row `u / width`. A column fills one chunk
//! after another, so a chunk is one run unless the media failed a write to it: what a run says in 24 bytes is where a
//! whole chunk of content lies. Deliberately not here: which chunks a column gets (`placement`), what is in a unit.

use ocssd_base::usize_of;
use ocssd_ftl::ChunkIndex;

/// Units of a column that follow each other in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first row.
    pub row: u64,
    /// How many.
    pub rows: u32,
    /// The chunk.
    pub chunk: ChunkIndex,
    /// The first sector of the first of them.
    pub sector: u32,
}

/// The units that are on media.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Sectors of a unit.
    unit: u32,
    /// By column, in the order of rows.
    columns: Vec<Vec<Run>>,
    units: u64,
}

impl Layout {
    /// Nothing, in `width` columns of units of `unit` sectors.
    pub fn new(width: u32, unit: u32) -> Self {
        assert!(width > 0 && unit > 0, "{width} columns of units of {unit} sectors");
        Self { unit, columns: vec![Vec::new(); usize_of(width)], units: 0 }
    }

    /// Columns.
    pub fn width(&self) -> u32 {
        u32::try_from(self.columns.len()).expect("a width has 32 bits")
    }

    /// Units on media.
    pub const fn units(&self) -> u64 {
        self.units
    }

    /// The column and row of a unit.
    pub fn split(&self, unit: u64) -> (u32, u64) {
        let width = u64::from(self.width());
        assert!(width > 0, "unit {unit} is in no column");
        (u32::try_from(unit % width).expect("below a width"), unit / width)
    }

    /// Where a unit begins; `None` if it is not on media.
    pub fn find(&self, unit: u64) -> Option<(ChunkIndex, u32)> {
        let (column, row) = self.split(unit);
        let runs = &self.columns[usize_of(column)];
        let run = runs[..runs.partition_point(|run| run.row <= row)].last()?;
        assert!(run.row <= row, "{run:?} is behind row {row}");
        let behind = u32::try_from(row - run.row).ok().filter(|&behind| behind < run.rows)?;
        Some((run.chunk, run.sector + behind * self.unit))
    }

    /// A unit is on media from now on.
    pub fn insert(&mut self, unit: u64, chunk: ChunkIndex, sector: u32) {
        let (column, row) = self.split(unit);
        self.insert_run(column, Run { row, rows: 1, chunk, sector });
    }

    /// A run of a column is on media from now on.
    pub fn insert_run(&mut self, column: u32, run: Run) {
        assert!(run.rows > 0 && column < self.width(), "{run:?} in column {column} of {}", self.width());
        self.units += u64::from(run.rows);
        let unit = self.unit;
        let runs = &mut self.columns[usize_of(column)];
        let at = runs.partition_point(|other| other.row < run.row);
        let follows = |first: &Run, second: &Run| {
            first.row + u64::from(first.rows) == second.row
                && first.chunk == second.chunk
                && first.sector + first.rows * unit == second.sector
        };
        let ends_before = |first: &Run, second: &Run| first.row + u64::from(first.rows) <= second.row;
        assert!(at == 0 || ends_before(&runs[at - 1], &run), "{run:?} covers what is there");
        assert!(at == runs.len() || ends_before(&run, &runs[at]), "{run:?} covers what follows");
        let joins_before = at > 0 && follows(&runs[at - 1], &run);
        let joins_behind = at < runs.len() && follows(&run, &runs[at]);
        match (joins_before, joins_behind) {
            (true, true) => {
                runs[at - 1].rows += run.rows + runs[at].rows;
                runs.remove(at);
            }
            (true, false) => runs[at - 1].rows += run.rows,
            (false, true) => {
                let rows = run.rows + runs[at].rows;
                runs[at] = Run { rows, ..run };
            }
            (false, false) => runs.insert(at, run),
        }
    }

    /// Lets go of memory that is kept for more runs.
    pub fn shrink(&mut self) {
        self.columns.iter_mut().for_each(Vec::shrink_to_fit);
    }

    /// Bytes of memory that it takes beside itself.
    pub fn memory_bytes(&self) -> usize {
        let runs: usize = self.columns.iter().map(Vec::capacity).sum();
        self.columns.capacity() * size_of::<Vec<Run>>() + runs * size_of::<Run>()
    }

    /// Every run with its column, from row `from` of each column on.
    pub fn runs(&self, from: u64) -> impl Iterator<Item = (u32, Run)> {
        let unit = self.unit;
        (0..).zip(&self.columns).flat_map(move |(column, runs)| {
            let behind = runs[runs.partition_point(|run| run.row + u64::from(run.rows) <= from)..].iter();
            behind.map(move |run| {
                let before = u32::try_from(from.saturating_sub(run.row)).expect("within the run");
                let cut = Run {
                    row: run.row + u64::from(before),
                    rows: run.rows - before,
                    sector: run.sector + before * unit,
                    ..*run
                };
                (column, cut)
            })
        })
    }

    /// The last run of a column.
    pub fn last(&self, column: u32) -> Option<&Run> {
        self.columns[usize_of(column)].last()
    }

    /// Asserts that runs are in order and counted.
    pub fn check(&self) {
        let rows: u64 = self.columns.iter().flatten().map(|run| u64::from(run.rows)).sum();
        assert_eq!(rows, self.units, "units on media are counted wrong");
        for runs in &self.columns {
            let is_ordered = runs.windows(2).all(|pair| pair[0].row + u64::from(pair[0].rows) <= pair[1].row);
            assert!(is_ordered, "runs of a column overlap: {runs:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use std::collections::BTreeMap;

    /// Units are programmed in any order, some at places that follow no other; a plain map says where each is.
    #[test]
    fn a_layout_finds_what_a_plain_map_finds() {
        for seed in 0..100 {
            println!("seed {seed}");
            let mut prng = Prng::new(seed);
            let width = 1 + u32::try_from(prng.below(4)).expect("small");
            let mut layout = Layout::new(width, 4);
            let mut model = BTreeMap::new();
            let mut left: Vec<u64> = (0..60).collect();
            for _ in 0..50 {
                let nth = usize::try_from(prng.below(left.len() as u64)).expect("small");
                let unit = left.swap_remove(nth);
                let (column, row) = layout.split(unit);
                let row = u32::try_from(row).expect("small");
                let (chunk, sector) = match prng.below(5) {
                    0 => (ChunkIndex(90 + column), 1000 + row * 4),
                    _ => (ChunkIndex(column * 10 + row / 6), row % 6 * 4),
                };
                layout.insert(unit, chunk, sector);
                model.insert(unit, (chunk, sector));
                layout.check();
            }
            for unit in 0..60 {
                assert_eq!(layout.find(unit), model.get(&unit).copied(), "unit {unit}");
            }
            let mut again = Layout::new(width, 4);
            layout.runs(0).for_each(|(column, run)| again.insert_run(column, run));
            assert_eq!(again, layout, "runs say all there is");
            let behind = layout.runs(3).map(|(_, run)| u64::from(run.rows)).sum::<u64>();
            let expected = model.keys().filter(|&&unit| unit / u64::from(width) >= 3).count() as u64;
            assert_eq!(behind, expected);
        }
    }
}
