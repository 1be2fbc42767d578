//! How fast a client moves on while it owes the next step: takes its answers, or sends what it began.
//!
//! Deliberately not here: whether that matters to others (`watch`).

use ocssd_base::Nanos;

/// A client that has owed the next step for so long is judged, and then again and again (chosen: longer than a busy machine takes
/// to wake a client, shorter than a disk's client waits).
const WINDOW: Nanos = Nanos::from_secs(1);

/// Bytes a second below which a client is slow (chosen: a tenth of what a link of 100 Mbit/s carries).
const BYTES_PER_SECOND_MIN: u64 = 1 << 20;

/// A client's pace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Since when it owes the next step, or since it was judged last.
    since: Option<Nanos>,
    /// Bytes it moved since then.
    bytes: u64,
    /// Bytes a second when it was judged last, if it has owed the next step ever since.
    judged: Option<u64>,
}

impl Pace {
    /// Bytes moved, either way.
    pub const fn on_moved(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// It owes the next step, or does not.
    pub fn note(&mut self, now: Nanos, is_owed: bool) {
        if !is_owed {
            *self = Self::default();
        } else if self.since.is_none() {
            *self = Self { since: Some(now), ..Self::default() };
        }
    }

    /// Bytes a second of a client that is slow, judged over a whole window.
    pub fn slowness(&mut self, now: Nanos) -> Option<u64> {
        let since = self.since?;
        let passed = now.saturating_since(since);
        if passed >= WINDOW {
            let rate = self.bytes.saturating_mul(1_000_000_000) / passed.0;
            *self = Self { since: Some(now), bytes: 0, judged: Some(rate) };
        }
        self.judged.filter(|rate| *rate < BYTES_PER_SECOND_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that owes the next step from the start and moves so many bytes every 100 ms, looked at twice a second: what is
    /// said of it at each look.
    fn looks(bytes: u64, tenths: u64) -> Vec<Option<u64>> {
        let mut pace = Pace::default();
        let mut looks = Vec::new();
        for tenth in 0..=tenths {
            let now = Nanos::from_millis(100 * tenth);
            pace.note(now, true);
            if tenth % 5 == 0 {
                looks.push(pace.slowness(now));
            }
            pace.on_moved(bytes);
        }
        looks
    }

    #[test]
    fn a_client_is_slow_once_it_was_for_a_whole_second() {
        assert_eq!(looks(6554, 15), [None, None, Some(65_540), Some(65_540)]);
        assert_eq!(looks(0, 10), [None, None, Some(0)]);
        assert_eq!(looks(200 << 10, 30), vec![None; 7], "2 MiB/s are enough");
    }

    #[test]
    fn a_client_that_owes_nothing_meanwhile_is_not_slow_however_little_it_moves() {
        let mut pace = Pace::default();
        for tenth in 0..50 {
            let now = Nanos::from_millis(100 * tenth);
            pace.note(now, tenth % 9 > 0);
            pace.on_moved(1);
            assert_eq!(pace.slowness(now), None);
        }
    }
}
