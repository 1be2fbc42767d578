//! Reads that fail once, by an error or by another sector's content: the same sector can be read in the next try.
//!
//! What a read retry with other thresholds, a refreshed row or a repeated transfer cures is no loss, so nothing is notified.
//! A sector that failed this way does not fail again before it was read. Deliberately not here: sectors that stay lost.

use super::chance;
use ocssd_base::Prng;
use ocssd_lightnvm::Ppa;
use std::collections::BTreeSet;

/// Sectors remembered at most (chosen: far more than are read again at a time); beyond, the first may fail twice.
const CURED_MAX: usize = 4096;

/// Which reads fail once.
#[derive(Clone, Debug)]
pub(crate) struct TransientReads {
    prng: Prng,
    rate: u32,
    /// Sectors that failed, and were not read since.
    cured: BTreeSet<(u32, u32)>,
}

impl TransientReads {
    pub(crate) fn new(rate: u32, prng: &Prng) -> Self {
        Self { prng: prng.split("transient reads"), rate, cured: BTreeSet::new() }
    }

    pub(crate) fn stop(&mut self) {
        self.rate = 0;
        self.cured.clear();
    }

    pub(crate) const fn can(&self) -> bool {
        self.rate > 0
    }

    /// Whether this read of a sector fails.
    pub(crate) fn fails(&mut self, at: Ppa) -> bool {
        let place = (at.chunk.0, at.sector);
        if !self.can() || self.cured.remove(&place) || !self.prng.chance(chance(self.rate.into())) {
            return false;
        }
        if self.cured.len() == CURED_MAX {
            self.cured.pop_first();
        }
        assert!(self.cured.len() < CURED_MAX, "more sectors are remembered than there is room for");
        self.cured.insert(place)
    }
}
