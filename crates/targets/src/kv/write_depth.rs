//! How many writes of a group are with the drive at a time: as many as keep it busy, and no row beyond that.
//!
//! Parallel units of a group share its channel, so a read of one waits for what the writes of all have on it. How many keep channel
//! and units busy depends on how long programs take, which no drive says. So it is found out: a write that took several times as
//! long as the quickest ever had a row before it, and each such takes one from those that may be in flight; each other gives one
//! back. (The delay-based window of TCP Vegas, Brakmo and others, SIGCOMM 1994, with a group in place of a path.) Deliberately not
//! here: which writes go (`ready`).

use ocssd_base::Nanos;

/// Writes of a group in flight at least (chosen: while the data of one are on the channel another is programmed).
const LEAST: usize = 2;
/// A write had a row before it if it took so many times as long as the quickest (chosen: slow pages of MLC take twice as long as
/// quick ones. Beside stores of 8 MiB on two channels of `westlake` whose programs take 5 us the p99 of reads is 0.98, 0.98 and
/// 1.93 ms with 2, 3 and 4, and 4.6 without a bound; with its own programs the channels are busy for 60, 98 and 97 % of the time.)
const TIMES: u64 = 3;
/// And longer than this (chosen: where writes take microseconds, rounds of the host take longer than rows of the drive).
const SHORT: Nanos = Nanos::from_micros(250);

/// The quickest write of an instance since its mount.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quickest(Option<Nanos>);

impl Quickest {
    pub const NONE: Self = Self(None);

    /// Notes a write; true if it had a row before it.
    pub fn had_row(&mut self, took: Nanos) -> bool {
        let quickest = self.0.map_or(took, |quickest| quickest.min(took));
        self.0 = Some(quickest);
        took > SHORT.max(Nanos(quickest.0.saturating_mul(TIMES)))
    }
}

/// Of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteDepth {
    now: usize,
    most: usize,
}

impl WriteDepth {
    /// As many as `most` at first.
    pub fn new(most: usize) -> Self {
        assert!(most > 0, "nothing is ever in flight");
        Self { now: most, most }
    }

    /// Writes that may be in flight.
    pub const fn now(self) -> usize {
        self.now
    }

    /// A write of the group is over.
    pub fn on_end(&mut self, had_row: bool) {
        self.now = if had_row {
            (self.now - 1).max(LEAST.min(self.most))
        } else {
            self.now.saturating_add(1).min(self.most)
        };
        assert!(self.now > 0 && self.now <= self.most, "{self:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_behind_a_row_take_from_the_depth_and_others_give_back() {
        let mut depth = WriteDepth::new(16);
        (0..20).for_each(|_| depth.on_end(true));
        assert_eq!(depth.now(), LEAST);
        (0..3).for_each(|_| depth.on_end(false));
        assert_eq!(depth.now(), LEAST + 3);
        (0..20).for_each(|_| depth.on_end(false));
        assert_eq!(depth.now(), 16);
        let mut alone = WriteDepth::new(1);
        alone.on_end(true);
        assert_eq!(alone.now(), 1, "less than one would be none");
        let mut boundless = WriteDepth::new(usize::MAX);
        boundless.on_end(false);
        assert_eq!(boundless.now(), usize::MAX);
    }

    #[test]
    fn a_row_is_several_times_the_quickest_and_no_mere_moment() {
        let mut quickest = Quickest::NONE;
        let ms = Nanos::from_millis;
        assert!(!quickest.had_row(ms(9)), "the first is the quickest");
        assert!(!quickest.had_row(ms(1)) && !quickest.had_row(ms(3)));
        assert!(quickest.had_row(ms(4)));
        let mut quickest = Quickest::NONE;
        assert!(
            !quickest.had_row(Nanos(1)) && !quickest.had_row(SHORT) && quickest.had_row(SHORT + Nanos(1))
        );
    }
}
