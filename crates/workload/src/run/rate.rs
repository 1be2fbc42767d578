//! When the next I/O of a rated direction is meant to start.
//!
//! The schedule does not look at completions: an I/O that could not start in time starts late, and its response time
//! counts from when it was meant to (no coordinated omission). Deliberately not here: waiting.

use crate::job::RateProcess;
use ocssd_base::{Nanos, Prng};

/// The schedule of one direction of one worker.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// Picoseconds per unit: a byte or an I/O.
    picos_per_unit: u64,
    counts_bytes: bool,
    process: RateProcess,
    /// When the next I/O is meant to start, in picoseconds, so that rounding does not add up.
    next_picos: u128,
}

const PICOS_PER_SECOND: u64 = 1_000_000_000_000;

impl Schedule {
    /// A cap in bytes or in I/Os a second; `None` without one.
    pub(super) fn new(
        bytes: Option<u64>,
        ios: Option<u64>,
        process: RateProcess,
        start: Nanos,
    ) -> Option<Self> {
        let (rate, counts_bytes) = match (ios, bytes) {
            (Some(ios), _) => (ios, false),
            (None, Some(bytes)) => (bytes, true),
            (None, None) => return None,
        };
        let picos_per_unit = PICOS_PER_SECOND / rate.clamp(1, PICOS_PER_SECOND);
        Some(Self { picos_per_unit, counts_bytes, process, next_picos: u128::from(start.0) * 1_000 })
    }

    /// When the next I/O is meant to start.
    pub(super) fn next(&self) -> Nanos {
        Nanos(u64::try_from(self.next_picos / 1_000).expect("a run shorter than 584 years"))
    }

    /// An I/O of `bytes` was started.
    pub(super) fn on_started(&mut self, bytes: u64, prng: &mut Prng) {
        let mean = u128::from(self.picos_per_unit) * u128::from(if self.counts_bytes { bytes } else { 1 });
        self.next_picos += match self.process {
            RateProcess::Linear => mean,
            RateProcess::Poisson => exponential(mean, prng),
        };
    }
}

/// An exponential gap of the given mean.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a gap drawn at random needs no more than 53 bits"
)]
fn exponential(mean: u128, prng: &mut Prng) -> u128 {
    (-(1.0 - prng.unit_f64()).ln() * mean as f64) as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_schedule_keeps_its_rate_to_the_nanosecond() {
        let mut prng = Prng::new(1);
        let mut schedule = Schedule::new(None, Some(3), RateProcess::Linear, Nanos(5)).expect("a rate");
        for _ in 0..3_000 {
            schedule.on_started(4096, &mut prng);
        }
        assert!(Nanos::from_secs(1_000) + Nanos(5) - schedule.next() <= Nanos(2));
    }

    #[test]
    fn a_poisson_schedule_has_the_mean_and_the_spread_of_one() {
        let mut prng = Prng::new(2);
        let mut schedule =
            Schedule::new(None, Some(1_000), RateProcess::Poisson, Nanos::ZERO).expect("a rate");
        let (mut last, mut above) = (Nanos::ZERO, 0);
        for _ in 0..10_000 {
            schedule.on_started(4096, &mut prng);
            above += u32::from(schedule.next() - last > Nanos::from_millis(1));
            last = schedule.next();
        }
        assert!((9.7..10.3).contains(&last.as_secs_f64()), "seed 2: {last}");
        // exp(-1) of the gaps are longer than the mean.
        assert!((3_500..3_860).contains(&above), "seed 2: {above}");
    }

    #[test]
    fn a_byte_rate_counts_bytes() {
        let mut prng = Prng::new(1);
        let mut schedule = Schedule::new(Some(4096), None, RateProcess::Linear, Nanos::ZERO).expect("a rate");
        schedule.on_started(8192, &mut prng);
        assert!(Nanos::from_secs(2) - schedule.next() < Nanos::from_micros(1));
    }
}
