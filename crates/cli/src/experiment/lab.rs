//! What every experiment is given: its size, its seed, and where to say how far it is.

use super::data::Data;
use std::time::{Duration, Instant};

/// Nothing is said before this, so that short runs stay quiet.
const PATIENCE: Duration = Duration::from_secs(2);

/// How much of an experiment is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Few points and short times: seconds, for a look and for tests.
    Small,
    /// All of it: minutes.
    Full,
}

impl Size {
    /// One of two values.
    pub fn pick<T>(self, small: T, full: T) -> T {
        if self == Self::Small { small } else { full }
    }
}

/// The surroundings of a run.
pub struct Lab {
    /// How much is run.
    pub size: Size,
    /// Seed of all randomness.
    pub seed: u64,
    quiet: bool,
    started: Instant,
    points: usize,
    done: usize,
    /// What the run has so far.
    data: Data,
}

impl Lab {
    /// Before the first point.
    pub fn new(size: Size, seed: u64, quiet: bool) -> Self {
        Self { size, seed, quiet, started: Instant::now(), points: 0, done: 0, data: Data::default() }
    }

    /// Where the run puts its rows, which have these keys. They are kept if it is interrupted.
    pub fn data(&mut self, keys: &'static [&'static str]) -> Data {
        self.data = Data::new(keys);
        self.data.clone()
    }

    /// What the run has so far: its rows, and how far it is in words.
    pub fn so_far(&self) -> (Data, String) {
        (self.data.clone(), format!("interrupted in point {} of {}", self.done, self.points))
    }

    /// How many points there will be.
    pub fn expect(&mut self, points: usize) {
        self.points += points;
    }

    /// A point begins.
    pub fn point(&mut self, name: &str) {
        self.done += 1;
        let elapsed = self.started.elapsed();
        if !self.quiet && elapsed >= PATIENCE {
            eprintln!("{:.0} s: point {} of {}: {name}", elapsed.as_secs_f64(), self.done, self.points);
        }
    }

    /// Real time since the start.
    pub fn took(&self) -> Duration {
        self.started.elapsed()
    }
}
