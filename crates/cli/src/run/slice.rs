//! Time on the drive's clock between two looks at a run.

use ocssd_base::Nanos;
use std::time::{Duration, Instant};

/// Adapted so that a look comes a few times a second of real time.
pub struct Slice {
    length: Nanos,
    looked: Instant,
}

impl Slice {
    /// A short one.
    pub fn new() -> Self {
        Self { length: Nanos::from_millis(10), looked: Instant::now() }
    }

    /// How long the next is.
    pub const fn length(&self) -> Nanos {
        self.length
    }

    /// Longer or shorter, by how long the last one took.
    pub fn adapt(&mut self) {
        let took = self.looked.elapsed();
        self.looked = Instant::now();
        if took < Duration::from_millis(50) {
            self.length = Nanos((self.length.0 * 2).min(Nanos::from_secs(3600).0));
        } else if took > Duration::from_millis(400) {
            self.length = Nanos((self.length.0 / 2).max(1_000_000));
        }
    }
}
