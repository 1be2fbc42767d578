//! Searches the deepest queue that keeps a latency: fio's `latency_target`.
//!
//! A depth is tried for a window. If enough I/Os kept the target it is doubled, else halved; once a depth has failed the
//! search goes half way between the deepest that passed and the shallowest that failed. When the depth no longer
//! changes, it is measured once more from the start, and that is the result. After every change downward the queue is
//! drained first, so that what waits behind the deeper queue is not held against the new depth. Reads no clock.

use crate::job::LatencyTargetOptions;
use ocssd_base::Nanos;

/// What follows from a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchStep {
    /// Nothing; the depth may have changed.
    GoOn,
    /// Start no I/O until none is in flight, then call [`LatencySearch::on_drained`].
    Drain,
    /// The depth is found, and was measured.
    Found,
    /// Not even one I/O at a time keeps the target.
    Missed,
}

/// What follows from an empty queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// The search goes on.
    GoOn,
    /// The depth is found: forget what was measured, and measure it.
    MeasureAgain,
}

/// The search of one job.
#[derive(Clone, Debug)]
pub struct LatencySearch {
    options: LatencyTargetOptions,
    depth_max: u32,
    depth: u32,
    /// The deepest that passed.
    low: u32,
    /// The shallowest that failed; `None` while none has. (fio takes a failed `iodepth` for none, and never ends then.)
    high: Option<u32>,
    cycle_start: Nanos,
    ios: u64,
    failed: u64,
    draining: bool,
    /// The depth is found and measured a last time.
    last_run: bool,
    /// The window after the last change must start with fresh results.
    measure_again: bool,
    /// It was found or missed: nothing changes any more.
    ended: bool,
    /// Passes in a row at one below the shallowest that failed.
    stable: u32,
}

/// After so many passes in a row a depth that failed once is tried again, when the search goes on for ever (fio).
const STABLE_PASSES: u32 = 3;

impl LatencySearch {
    /// A search between 1 and `depth_max`, from 1 upward.
    ///
    /// # Panics
    /// If there is no depth to try, no target or no window.
    #[must_use]
    pub fn new(options: LatencyTargetOptions, depth_max: u32) -> Self {
        assert!(depth_max >= 1 && options.target > Nanos::ZERO && options.window > Nanos::ZERO);
        Self {
            options,
            depth_max,
            depth: 1,
            low: 1,
            high: None,
            cycle_start: Nanos::ZERO,
            ios: 0,
            failed: 0,
            draining: false,
            last_run: false,
            measure_again: false,
            ended: false,
            stable: 0,
        }
    }

    /// The first window starts.
    pub const fn start(&mut self, now: Nanos) {
        self.cycle_start = now;
        (self.ios, self.failed) = (0, 0);
    }

    /// How many I/Os may be in flight now; 0 while the queue is drained.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        if self.draining { 0 } else { self.depth }
    }

    /// The depth that is tried, or was found.
    #[must_use]
    pub const fn depth(&self) -> u32 {
        self.depth
    }

    /// An I/O ended. Cost: O(1).
    pub fn on_completion(&mut self, now: Nanos, latency: Nanos) -> SearchStep {
        if self.draining || self.ended {
            return SearchStep::GoOn;
        }
        let step = self.judge(now, latency);
        self.ended = matches!(step, SearchStep::Found | SearchStep::Missed);
        step
    }

    fn judge(&mut self, now: Nanos, latency: Nanos) -> SearchStep {
        self.ios += 1;
        if latency > self.options.target {
            self.failed += 1;
            if self.options.percentile >= 100.0 {
                return if self.depth == 1 { SearchStep::Missed } else { self.lower() };
            }
        }
        if now.saturating_since(self.cycle_start) < self.options.window {
            return SearchStep::GoOn;
        }
        if self.has_passed() {
            return self.raise(now);
        }
        // At depth 1 fio goes on and lets the window grow: it may pass yet, or the job ends by itself.
        if self.depth == 1 { SearchStep::GoOn } else { self.lower() }
    }

    #[expect(clippy::cast_precision_loss, reason = "a share of I/Os")]
    fn has_passed(&self) -> bool {
        (self.ios - self.failed) as f64 / self.ios as f64 * 100.0 >= self.options.percentile
    }

    fn lower(&mut self) -> SearchStep {
        assert!(self.depth > 1, "there is no depth below one");
        self.high = Some(self.depth);
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = u32::midpoint(self.depth, self.low).max(1);
        self.stable = 0;
        self.last_run = false;
        self.drain(false)
    }

    fn raise(&mut self, now: Nanos) -> SearchStep {
        let before = self.depth;
        self.low = before;
        if let Some(high) = self.high.filter(|&high| high == before + 1) {
            self.stable += 1;
            if self.stable >= STABLE_PASSES {
                (self.high, self.stable) = (Some(high + 1), 0);
            }
        }
        let next = self.high.map_or(before * 2, |high| u32::midpoint(before, high));
        self.depth = next.min(self.depth_max);
        if self.options.run || self.depth != before {
            self.start(now);
            return SearchStep::GoOn;
        }
        if self.last_run {
            return SearchStep::Found;
        }
        self.last_run = true;
        self.drain(true)
    }

    const fn drain(&mut self, measure_again: bool) -> SearchStep {
        (self.draining, self.measure_again) = (true, measure_again);
        SearchStep::Drain
    }

    /// Nothing is in flight any more.
    ///
    /// # Panics
    /// If the queue was not to be drained.
    pub const fn on_drained(&mut self, now: Nanos) -> Drained {
        assert!(self.draining, "nobody asked for an empty queue");
        self.draining = false;
        self.start(now);
        if self.measure_again { Drained::MeasureAgain } else { Drained::GoOn }
    }

    /// True while no I/O is to be started.
    #[must_use]
    pub const fn is_draining(&self) -> bool {
        self.draining
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICRO: Nanos = Nanos(1_000);

    /// Runs a search against a drive whose latency follows from the depth, up to `steps` I/Os; every `slow`th I/O takes
    /// ten times as long. The end, the depth, and the depths tried.
    fn search(
        options: LatencyTargetOptions,
        depth_max: u32,
        slow: u64,
        latency: impl Fn(u32) -> u64,
    ) -> (Option<SearchStep>, u32, Vec<u32>) {
        let mut search = LatencySearch::new(options, depth_max);
        let (mut now, mut tried) = (Nanos(7), vec![1]);
        search.start(now);
        for number in 1..200_000_u64 {
            let factor = if number % slow == 0 { 10 } else { 1 };
            let nanos = Nanos(latency(search.depth()) * 1_000 * factor);
            now += Nanos(nanos.0 / u64::from(search.depth()));
            match search.on_completion(now, nanos) {
                SearchStep::GoOn => {}
                SearchStep::Drain => {
                    assert_eq!(search.limit(), 0);
                    search.on_drained(now);
                }
                end @ (SearchStep::Found | SearchStep::Missed) => return (Some(end), search.depth(), tried),
            }
            if tried.last() != Some(&search.depth()) {
                tried.push(search.depth());
            }
        }
        (None, search.depth(), tried)
    }

    fn options(target: u64, percentile: f64) -> LatencyTargetOptions {
        LatencyTargetOptions { target: MICRO * target, window: Nanos::from_millis(2), percentile, run: false }
    }

    #[test]
    fn the_deepest_queue_that_keeps_the_target_is_found() {
        // Ten microseconds for every I/O in flight.
        for best in [1, 2, 3, 5, 8, 13, 31, 32, 33, 47, 63, 64] {
            let (end, depth, tried) =
                search(options(10 * u64::from(best), 100.0), 64, u64::MAX, |depth| 10 * u64::from(depth));
            assert_eq!((end, depth), (Some(SearchStep::Found), best), "{tried:?}");
        }
    }

    #[test]
    fn it_doubles_until_a_depth_fails_and_then_halves_the_gap() {
        let (_, _, tried) = search(options(200, 100.0), 64, u64::MAX, |depth| 10 * u64::from(depth));
        assert_eq!(tried, [1, 2, 4, 8, 16, 32, 24, 20, 22, 21, 20]);
    }

    #[test]
    fn a_percentile_forgives_the_slowest() {
        let latency = |depth| 10 * u64::from(depth);
        assert_eq!(search(options(160, 90.0), 64, 20, latency).1, 16, "one of twenty may be slow");
        assert_eq!(search(options(160, 99.0), 64, 20, latency).1, 1, "but not one of a hundred");
    }

    #[test]
    fn a_target_below_the_drives_own_latency_is_missed() {
        let (end, depth, _) = search(options(5, 100.0), 64, u64::MAX, |depth| 10 * u64::from(depth));
        assert_eq!((end, depth), (Some(SearchStep::Missed), 1));
        // With a percentile fio lets the job go on at depth 1.
        assert_eq!(search(options(5, 99.0), 64, u64::MAX, |_| 10).0, None);
    }

    #[test]
    fn the_found_depth_is_measured_afresh() {
        let mut search = LatencySearch::new(options(100, 100.0), 1);
        search.start(Nanos::ZERO);
        assert_eq!(search.on_completion(Nanos::from_millis(3), MICRO), SearchStep::Drain);
        assert_eq!((search.limit(), search.is_draining()), (0, true));
        assert_eq!(search.on_completion(Nanos::from_millis(9), Nanos::MAX), SearchStep::GoOn, "drained I/O");
        assert_eq!(search.on_drained(Nanos::from_millis(10)), Drained::MeasureAgain);
        assert_eq!(search.on_completion(Nanos::from_millis(11), MICRO), SearchStep::GoOn);
        assert_eq!(search.on_completion(Nanos::from_millis(12), MICRO), SearchStep::Found);
        assert_eq!(
            search.on_completion(Nanos::from_millis(20), Nanos::MAX),
            SearchStep::GoOn,
            "what was in flight"
        );
        assert_eq!(search.depth(), 1);
    }

    #[test]
    fn a_search_that_runs_on_never_ends_and_follows_the_drive() {
        let options = LatencyTargetOptions { run: true, ..options(100, 100.0) };
        let (end, depth, tried) = search(options, 64, u64::MAX, |depth| 10 * u64::from(depth));
        assert_eq!(end, None);
        assert!((9..=11).contains(&depth) && tried.len() > 20, "{depth}: it tries one more again and again");
    }
}
