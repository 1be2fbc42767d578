//! Zones reset before they must be: fio's `zone_reset_threshold` and `zone_reset_frequency`, which simulate what a
//! collector of garbage does.
//!
//! While at least the threshold of the region is written, one zone is reset per so many writes. fio resets the zone that
//! is about to be written; here it is the next full one in turn, because a drive need not take the reset of an open
//! chunk. Deliberately not here: who writes which zone (`zones`).

use crate::job::ResetRule;
use std::ops::Range;

/// The resets of one target.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EarlyResets {
    zones: Range<u64>,
    /// Written blocks from which on zones are reset.
    threshold: u64,
    /// Writes per reset, at least 1.
    every: u64,
    /// Writes left until the next reset; 0 is due.
    left: u64,
    /// Blocks written in these zones now.
    written: u64,
    /// Where to look for a full zone.
    cursor: u64,
}

impl EarlyResets {
    /// For writers of these zones, which have `blocks` in all; `None` if the rule never resets.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a region, and of at most 2^53 writes"
    )]
    pub(super) fn new(rule: ResetRule, zones: Range<u64>, blocks: u64) -> Option<Self> {
        if rule.frequency <= 0.0 {
            return None;
        }
        let every = (1.0 / rule.frequency).min(9e15) as u64;
        let threshold = (blocks as f64 * rule.threshold) as u64;
        let cursor = zones.start;
        Some(Self { zones, threshold, every: every.max(1), left: every.max(1), written: 0, cursor })
    }

    /// Counts what the zones hold at the start.
    pub(super) fn start(&mut self, written: impl Fn(u64) -> u64) {
        self.written = self.zones.clone().map(written).sum();
    }

    /// Blocks were written.
    pub(super) fn on_written(&mut self, zone: u64, blocks: u64) {
        if self.zones.contains(&zone) {
            // As in fio only writes above the threshold bring the next reset nearer.
            if self.written >= self.threshold {
                self.left = self.left.saturating_sub(1);
            }
            self.written += blocks;
        }
    }

    /// A zone that held so much is empty, or lost.
    pub(super) fn on_emptied(&mut self, zone: u64, blocks: u64) {
        if self.zones.contains(&zone) {
            assert!(self.written >= blocks, "a zone held more than all of them");
            self.written -= blocks;
        }
    }

    /// True if a zone is to be reset before the next write.
    pub(super) const fn is_due(&self) -> bool {
        self.left == 0 && self.written >= self.threshold
    }

    /// The next full zone in turn, and the count starts again; `None` if none is full, and the reset stays due.
    pub(super) fn take_next(&mut self, is_full: impl Fn(u64) -> bool) -> Option<u64> {
        let total = self.zones.end - self.zones.start;
        let turn = |step| self.zones.start + (self.cursor - self.zones.start + step) % total;
        let zone = (0..total).map(turn).find(|&zone| is_full(zone))?;
        self.cursor = zone;
        self.left = self.every;
        Some(zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resets(threshold: f64, frequency: f64) -> EarlyResets {
        EarlyResets::new(ResetRule { threshold, frequency }, 2..6, 40).expect("it resets")
    }

    #[test]
    fn a_reset_is_due_after_so_many_writes_above_the_threshold() {
        let mut resets = resets(0.5, 0.25);
        resets.start(|zone| if zone == 2 { 10 } else { 0 });
        for write in 0..10 {
            assert!(!resets.is_due(), "{write}: below the threshold");
            resets.on_written(3, 1);
        }
        for write in 0..4 {
            assert!(!resets.is_due(), "{write}: every fourth");
            resets.on_written(4, 1);
        }
        assert!(resets.is_due());
        assert_eq!(resets.take_next(|_| false), None);
        assert_eq!(resets.take_next(|zone| zone == 2), Some(2));
        resets.on_emptied(2, 10);
        assert!(!resets.is_due());
    }

    #[test]
    fn zones_are_reset_in_turn_and_others_do_not_count() {
        let mut resets = resets(0.0, 1.0);
        let mut found = Vec::new();
        for _ in 0..5 {
            resets.on_written(2, 1);
            let last = found.last().copied();
            found.extend(resets.take_next(|zone| zone != 3 && last != Some(zone)));
        }
        assert_eq!(found, [2, 4, 5, 2, 4]);
        resets.on_written(9, 100);
        resets.on_emptied(9, 100);
        assert_eq!(resets.written, 5);
    }

    #[test]
    fn a_frequency_of_zero_never_resets() {
        assert_eq!(EarlyResets::new(ResetRule { threshold: 0.0, frequency: 0.0 }, 0..1, 1), None);
    }
}
