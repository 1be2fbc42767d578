//! Whether wear is spread, by what the drive itself counts.
//!
//! A target that says how far wear may differ (a gauge `wear_spread_bound` above zero) promises: a line that is full and lags
//! by more than twice that behind the most worn line is reset before three times as many lines are reset as it has. Once for
//! the lines that lag, each of which is moved in turn while users wait, once for lines that were being emptied when that began,
//! and once for those of checkpoints, which what is moved asks for: a checkpoint takes no more lines than were moved since the
//! one before, unless its interval is shorter than itself. A line is a chunk of every unit of the target, its wear that of its
//! most worn good chunk: a power cut may part it. Not judged: a target that takes no writes any more, and lines that are open.
//!
//! A power cut may make a target forget how often free lines were reset, by less than a step of the drive's wear index: the
//! most worn line as well as the one that lags, and a reset that was cut short. So much more is granted once the power went.
//! Deliberately not here: how a target does it.

use crate::contract::Broken;
use ocssd_flash::Flash;
use ocssd_lightnvm::{ChunkId, ChunkState, Device, PuId};

/// A full line as it was when it began to lag.
#[derive(Clone, Copy, Debug)]
struct Lag {
    cycles: u32,
    /// Lines reset by then.
    since: u64,
}

/// What one line is now.
#[derive(Clone, Copy, Debug)]
struct Seen {
    cycles: u32,
    is_full: bool,
}

/// Watches the lines of a target.
#[derive(Clone, Debug)]
pub struct Wear {
    units: Vec<PuId>,
    lagging: Vec<Option<Lag>>,
    /// Resets a chunk bears.
    endurance: u32,
    /// What counts may be wrong by.
    doubt: u32,
}

impl Wear {
    /// Watches a target on these units, whose chunks bear `endurance` resets.
    #[must_use]
    pub const fn new(units: Vec<PuId>, endurance: u32) -> Self {
        Self { units, lagging: Vec::new(), endurance, doubt: 0 }
    }

    /// The power went: what the target had begun it begins again, and it may have forgotten something.
    pub fn power_cut(&mut self) {
        self.lagging.clear();
        let step = self.endurance / 255 + 1;
        self.doubt = 2 * step + 1;
    }

    /// Looks at the lines of a target that lets wear differ by `spread`. True if a line lagged by more.
    ///
    /// # Errors
    /// If a line was left to lag.
    pub fn check(&mut self, flash: &Flash, spread: u32) -> Result<bool, Broken> {
        let lines: Vec<Option<Seen>> =
            (0..flash.geometry().chunks_per_pu).map(|line| self.look(flash, line)).collect();
        let most = lines.iter().flatten().map(|line| line.cycles).max().unwrap_or(0);
        let resets: u64 = lines.iter().flatten().map(|line| u64::from(line.cycles)).sum();
        let count = u64::try_from(lines.len()).expect("a length fits 64 bits");
        self.lagging.resize(lines.len(), None);
        let limit = 2 * spread + self.doubt;
        let mut any = false;
        for (line, (seen, lagging)) in lines.iter().zip(&mut self.lagging).enumerate() {
            let full = seen.filter(|seen| seen.is_full);
            let lag = full.map_or(0, |seen| most - seen.cycles);
            any |= lag > spread;
            let Some(seen) = full.filter(|_| lag > limit) else {
                *lagging = None;
                continue;
            };
            let begun = lagging.filter(|begun| begun.cycles == seen.cycles);
            let begun = *lagging.insert(begun.unwrap_or(Lag { cycles: seen.cycles, since: resets }));
            if resets > begun.since + 3 * count {
                let promised = format!("a full line lags by at most {limit} resets, or is reset soon");
                let found = format!(
                    "line {line} was reset {} times, another {most} times, and {} lines were reset since that was so",
                    seen.cycles,
                    resets - begun.since
                );
                return Err(Broken::new("wear is spread", promised, found));
            }
        }
        Ok(any)
    }

    /// A line, unless no chunk of it is good.
    fn look(&self, flash: &Flash, line: u32) -> Option<Seen> {
        let chunks = flash.geometry().chunks_per_pu;
        let all = self.units.iter().map(|unit| ChunkId(unit.0 * chunks + line));
        let good = all.filter(|&chunk| flash.chunk(chunk).state != ChunkState::Offline);
        good.fold(None, |line, chunk| {
            let (cycles, is_full) = (flash.cycles(chunk), flash.chunk(chunk).state == ChunkState::Closed);
            let before = line.unwrap_or(Seen { cycles: 0, is_full: true });
            Some(Seen { cycles: before.cycles.max(cycles), is_full: before.is_full && is_full })
        })
    }
}
