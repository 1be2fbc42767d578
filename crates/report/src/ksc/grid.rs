//! Throughput by buffer size, thread count and pattern.

use crate::paper::PaperTable;
use crate::verdict::Verdict;
use std::collections::BTreeMap;
use thiserror::Error;

/// Sizes of the write buffer in the paper, MiB.
pub const BUFFERS_MIB: [u32; 4] = [32, 64, 128, 256];

/// Thread counts in the paper; each had as many cores online.
pub const THREADS: [u32; 7] = [2, 4, 8, 18, 36, 54, 72];

/// Order of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// One after the other.
    Sequential,
    /// Uniformly random.
    Random,
}

impl Pattern {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sequential, Self::Random];

    /// The word in files and sentences.
    pub fn word(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
        }
    }
}

/// One measurement's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Order of addresses.
    pub pattern: Pattern,
    /// Size of the write buffer, MiB.
    pub buffer_mib: u32,
    /// Threads that issue requests.
    pub threads: u32,
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} MiB {} threads", self.pattern.word(), self.buffer_mib, self.threads)
    }
}

/// Why a number or a table does not make a grid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GridError {
    /// Throughput that no experiment can have.
    #[error("{cell}: expected a finite throughput above 0 MB/s, found {found}")]
    Throughput {
        /// Where.
        cell: Cell,
        /// The number.
        found: String,
    },
    /// A row of a paper's table that is no cell.
    #[error(
        "line {line}: expected pattern sequential or random, whole buffer_mib and threads, unit MB/s, found {found}"
    )]
    Row {
        /// Line of the file.
        line: u64,
        /// The row's keys.
        found: String,
    },
}

/// Throughputs of either reads or writes, MB/s (10^6 bytes).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    cells: BTreeMap<Cell, f64>,
}

/// A cell that a claim needs and the grid does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missing(pub Cell);

impl Grid {
    /// Sets one cell.
    ///
    /// # Errors
    /// A throughput that is not finite and above 0.
    pub fn insert(&mut self, cell: Cell, mb_per_second: f64) -> Result<(), GridError> {
        if !mb_per_second.is_finite() || mb_per_second <= 0.0 {
            return Err(GridError::Throughput { cell, found: mb_per_second.to_string() });
        }
        self.cells.insert(cell, mb_per_second);
        Ok(())
    }

    /// The cells of a paper's table with the keys `pattern`, `buffer_mib` and `threads`.
    ///
    /// # Errors
    /// A row that is not such a cell. Panics when the table lacks one of the three keys.
    pub fn from_paper(table: &PaperTable) -> Result<Self, GridError> {
        let mut grid = Self::default();
        for row in table.rows() {
            let key = |name| table.key(row, name);
            let wrong =
                || GridError::Row { line: row.line, found: format!("{} {}", row.keys.join("/"), row.unit) };
            let pattern = Pattern::ALL.into_iter().find(|pattern| pattern.word() == key("pattern"));
            let cell = Cell {
                pattern: pattern.ok_or_else(wrong)?,
                buffer_mib: key("buffer_mib").parse().map_err(|_| wrong())?,
                threads: key("threads").parse().map_err(|_| wrong())?,
            };
            if row.unit != "MB/s" {
                return Err(wrong());
            }
            grid.insert(cell, row.value)?;
        }
        Ok(grid)
    }

    /// One throughput, MB/s.
    pub fn get(&self, cell: Cell) -> Option<f64> {
        self.cells.get(&cell).copied()
    }

    /// How many cells are set.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether no cell is set.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The curve over all thread counts of the paper.
    pub(super) fn curve(&self, pattern: Pattern, buffer_mib: u32) -> Result<[f64; 7], Missing> {
        let mut curve = [0.0; 7];
        for (place, threads) in curve.iter_mut().zip(THREADS) {
            *place = self.need(pattern, buffer_mib, threads)?;
        }
        Ok(curve)
    }

    /// One throughput a claim cannot do without.
    pub(super) fn need(&self, pattern: Pattern, buffer_mib: u32, threads: u32) -> Result<f64, Missing> {
        let cell = Cell { pattern, buffer_mib, threads };
        self.get(cell).ok_or(Missing(cell))
    }
}

/// A verdict from a decision with its sentence, or from the lack of a cell.
pub(super) fn verdict(id: &str, claim: &str, decision: Result<(bool, String), Missing>) -> Verdict {
    match decision {
        Ok((holds, sentence)) => Verdict::decided(id, claim, holds, sentence),
        Err(Missing(cell)) => Verdict::not_evaluated(id, claim, format!("not measured: {cell}")),
    }
}

/// Change from `before` to `after` in percent.
pub(super) fn change_percent(before: f64, after: f64) -> f64 {
    (after / before - 1.0) * 100.0
}

/// Least and greatest of some numbers; at least one is expected.
pub(super) fn ends(numbers: &[f64]) -> (f64, f64) {
    assert!(!numbers.is_empty(), "the ends of no numbers");
    numbers.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), n| (low.min(*n), high.max(*n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_are_no_grid_are_refused() {
        let header = "pattern,buffer_mib,threads,value,unit,error,source,note\n";
        for row in [
            "zipf,32,2,1,MB/s,,t,",
            "random,big,2,1,MB/s,,t,",
            "random,32,-2,1,MB/s,,t,",
            "random,32,2,1,GB/s,,t,",
        ] {
            let table = PaperTable::load(&format!("{header}{row}\n")).expect("a valid table");
            let error = Grid::from_paper(&table).expect_err(row).to_string();
            assert!(error.starts_with("line 2: expected pattern"), "{error}");
        }
        let table = PaperTable::load(&format!("{header}random,32,2,0,MB/s,,t,\n")).expect("a valid table");
        assert!(matches!(Grid::from_paper(&table), Err(GridError::Throughput { .. })));
    }

    #[test]
    fn missing_cells_are_named() {
        let verdict =
            verdict("W2", "c", Grid::default().curve(Pattern::Random, 32).map(|_| (true, String::new())));
        assert_eq!(verdict.sentence, "not measured: random 32 MiB 2 threads");
        assert!(!verdict.holds());
    }
}
