//! Whether wear is spread, by what the drive itself counts.
//!
//! A target that says how far wear may differ (a gauge `wear_spread_bound` above zero) promises: what is full and lags by more
//! than twice that behind the most worn is reset before a number of others are. What wears together is a *line*, a chunk of every
//! unit of the target, of targets that write lines; of others a chunk.
//!
//! **Lines**: before three times as many are reset as there are. Once for the lines that lag, each of which is moved in turn while
//! users wait, once for lines that were being emptied when that began, and once for those of checkpoints, which what is moved asks
//! for: a checkpoint takes no more lines than were moved since the one before, unless its interval is shorter than itself. The wear
//! of a line is that of its most worn good chunk: a power cut may part it. Lines that are open are not judged.
//!
//! **Chunks**: before all could be moved in turn, one for every quarter of the spread in resets, or, because nobody waits for a
//! move, for a reset of every unit, if that is more. Resets at which the target had no room for what it would move (its counter
//! `wear_put_off_resets`) do not count.
//!
//! Not judged: a target that takes no writes any more. A power cut may make a target forget how often free chunks were reset, by
//! less than a step of the drive's wear index: the most worn as well as the one that lags, and a reset that was cut short. So much
//! more is granted once the power went. Deliberately not here: how a target does it.

mod lag;

use crate::contract::Broken;
use lag::{Lagging, Rule, Seen};
use ocssd_flash::Flash;
use ocssd_lightnvm::{ChunkId, ChunkState, Device, PuId};

/// What a target promises of wear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Of its lines.
    Lines {
        /// Resets one may lag.
        spread: u32,
    },
    /// Of chunks.
    Chunks {
        /// Resets one may lag.
        spread: u32,
        /// Those that hold what may be moved; `None`: all that are CLOSED.
        of: Option<Vec<ChunkId>>,
        /// Resets since the mount while there was no room.
        put_off: u64,
        /// The chunks of each unit before this one wear on their own.
        first_line: u32,
    },
}

/// Watches what a target wears.
#[derive(Clone, Debug)]
pub struct Wear {
    units: Vec<PuId>,
    lagging: Lagging,
    /// Resets a chunk bears.
    endurance: u32,
    /// What counts may be wrong by.
    doubt: u32,
}

impl Wear {
    /// Watches a target on these units, whose chunks bear `endurance` resets.
    #[must_use]
    pub fn new(units: Vec<PuId>, endurance: u32) -> Self {
        Self { units, lagging: Lagging::default(), endurance, doubt: 0 }
    }

    /// The power went: what the target had begun it begins again, and it may have forgotten something.
    pub fn power_cut(&mut self) {
        self.lagging.forget();
        let step = self.endurance / 255 + 1;
        self.doubt = 2 * step + 1;
    }

    /// Looks at the chunks of a target that promises this. True if anything lagged by more than the spread.
    ///
    /// # Errors
    /// If something was left to lag.
    pub fn check(&mut self, flash: &Flash, promise: &Promise) -> Result<bool, Broken> {
        match promise {
            Promise::Lines { spread } => self.lines(flash, *spread),
            Promise::Chunks { spread, of, put_off, first_line } => {
                self.chunks(flash, (*spread, *put_off), of.as_deref(), *first_line)
            }
        }
    }

    fn lines(&mut self, flash: &Flash, spread: u32) -> Result<bool, Broken> {
        let lines: Vec<Option<Seen>> =
            (0..flash.geometry().chunks_per_pu).map(|line| self.line(flash, line)).collect();
        let resets_max = 3 * u64::from(flash.geometry().chunks_per_pu);
        let rule = Rule { what: "line", spread, limit: 2 * spread + self.doubt, resets_max, put_off: 0 };
        self.lagging.check(&rule, &lines)
    }

    /// A line, unless no chunk of it is good.
    fn line(&self, flash: &Flash, line: u32) -> Option<Seen> {
        let chunks = flash.geometry().chunks_per_pu;
        let all = self.units.iter().map(|unit| ChunkId(unit.0 * chunks + line));
        let good = all.filter(|&chunk| flash.chunk(chunk).state != ChunkState::Offline);
        good.fold(None, |line, chunk| {
            let (cycles, is_full) = (flash.cycles(chunk), flash.chunk(chunk).state == ChunkState::Closed);
            let before = line.unwrap_or(Seen { cycles: 0, is_full: true });
            Some(Seen { cycles: before.cycles.max(cycles), is_full: before.is_full && is_full })
        })
    }

    fn chunks(
        &mut self,
        flash: &Flash,
        (spread, put_off): (u32, u64),
        of: Option<&[ChunkId]>,
        first_line: u32,
    ) -> Result<bool, Broken> {
        let per_unit = flash.geometry().chunks_per_pu;
        let of_unit = first_line..per_unit;
        let all = self.units.iter().flat_map(|unit| of_unit.clone().map(move |at| unit.0 * per_unit + at));
        let look = |chunk: ChunkId| {
            let state = flash.chunk(chunk).state;
            let is_full = of.map_or(state == ChunkState::Closed, |of| of.contains(&chunk));
            (state != ChunkState::Offline).then(|| Seen { cycles: flash.cycles(chunk), is_full })
        };
        let chunks: Vec<Option<Seen>> = all.map(|chunk| look(ChunkId(chunk))).collect();
        let units = u64::try_from(self.units.len()).expect("few");
        let resets_max = units * u64::from(per_unit) * u64::from(spread.div_ceil(4)).max(units);
        let rule = Rule { what: "chunk", spread, limit: 2 * spread + self.doubt, resets_max, put_off };
        self.lagging.check(&rule, &chunks)
    }
}
