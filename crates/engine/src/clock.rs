//! Clocks: virtual time jumps, wall time sleeps and then spins.
//!
//! The only place in the project that reads time or waits for it. Deliberately not here: timers; whoever has a deadline
//! says so and is asked.

use hdrhistogram::Histogram;
use ocssd_base::Nanos;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Something that knows the time since the start of a run.
pub trait Clock {
    /// Time passes only by waiting: nothing can happen before the next known deadline.
    const IS_VIRTUAL: bool;

    /// The time. Never falls.
    fn now(&self) -> Nanos;

    /// Returns at `at`, or at once if it has passed; earlier if there is news of a device that is elsewhere.
    fn wait_until(&mut self, at: Nanos);

    /// A completion was taken this long after it was due.
    fn note_late(&mut self, _late: Nanos) {}

    /// How late completions were taken; `None` for a clock that is never late.
    fn lateness(&self) -> Option<Lateness>;

    /// Every lateness that occurred, to a hundredth, with how often; empty for a clock that is never late.
    fn late_samples(&self) -> Vec<(Nanos, u64)>;
}

/// How late completions were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Completions.
    pub count: u64,
    /// Median.
    pub p50: Nanos,
    /// 99th percentile.
    pub p99: Nanos,
    /// The latest.
    pub max: Nanos,
}

/// Time that passes only by waiting for it.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    now: Nanos,
}

impl Clock for VirtualClock {
    const IS_VIRTUAL: bool = true;

    fn now(&self) -> Nanos {
        self.now
    }

    fn wait_until(&mut self, at: Nanos) {
        self.now = self.now.max(at);
    }

    fn lateness(&self) -> Option<Lateness> {
        None
    }

    fn late_samples(&self) -> Vec<(Nanos, u64)> {
        Vec::new()
    }
}

/// The last stretch of a wait is spun: longer than a sleeping thread usually needs to wake (chosen; the scheduler of a
/// quiet Linux machine takes 50 to 60 us for a default timer slack).
const SPIN: Duration = Duration::from_micros(80);

/// What may end a wait before its time: a device elsewhere that has news.
pub trait EarlyWake: std::fmt::Debug + Send + Sync {
    /// Returns when there is news, or after `at_most`.
    fn wait(&self, at_most: Duration);
}

/// The machine's monotonic time.
#[derive(Clone, Debug)]
pub struct WallClock {
    start: Instant,
    /// What the clock showed at the start.
    offset: Nanos,
    late: Histogram<u64>,
    /// Ends waits early.
    early: Option<Arc<dyn EarlyWake>>,
}

impl Default for WallClock {
    fn default() -> Self {
        let late =
            Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("bounds and digits hdrhistogram allows");
        Self { start: Instant::now(), offset: Nanos::ZERO, late, early: None }
    }
}

impl WallClock {
    /// A clock that shows `now` now: it goes on where another one stopped.
    #[must_use]
    pub fn starting_at(now: Nanos) -> Self {
        Self { offset: now, ..Self::default() }
    }

    /// A clock whose waits end early when there is news.
    #[must_use]
    pub fn woken_by(self, early: Arc<dyn EarlyWake>) -> Self {
        Self { early: Some(early), ..self }
    }
}

impl Clock for WallClock {
    const IS_VIRTUAL: bool = false;

    fn now(&self) -> Nanos {
        let elapsed = self.start.elapsed().as_nanos();
        self.offset + Nanos(u64::try_from(elapsed).expect("a run shorter than 584 years"))
    }

    fn wait_until(&mut self, at: Nanos) {
        let now = self.now();
        if at <= now {
            return;
        }
        let ahead = Duration::from_nanos((at - now).0);
        if let Some(early) = &self.early {
            early.wait(ahead);
            return;
        }
        if ahead > SPIN {
            std::thread::sleep(ahead - SPIN);
        }
        let mut now = self.now();
        while now < at {
            std::hint::spin_loop();
            now = self.now();
        }
    }

    fn note_late(&mut self, late: Nanos) {
        self.late.saturating_record(late.0.max(1));
    }

    fn lateness(&self) -> Option<Lateness> {
        let at = |quantile| Nanos(self.late.value_at_quantile(quantile));
        Some(Lateness { count: self.late.len(), p50: at(0.5), p99: at(0.99), max: Nanos(self.late.max()) })
    }

    fn late_samples(&self) -> Vec<(Nanos, u64)> {
        let recorded = self.late.iter_recorded();
        recorded.map(|value| (Nanos(value.value_iterated_to()), value.count_since_last_iteration())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_jumps_and_never_falls() {
        let mut clock = VirtualClock::default();
        clock.wait_until(Nanos(500));
        clock.wait_until(Nanos(200));
        assert_eq!(clock.now(), Nanos(500));
    }

    #[test]
    fn a_wall_clock_wait_ends_no_earlier_than_asked_and_lateness_is_counted() {
        let mut clock = WallClock::default();
        let at = clock.now() + Nanos::from_micros(200);
        clock.wait_until(at);
        assert!(clock.now() >= at);
        clock.note_late(clock.now() - at);
        let late = clock.lateness().expect("a wall clock can be late");
        assert_eq!(late.count, 1);
        assert!(late.p50 <= late.p99 && late.p99 <= late.max);
    }
}
