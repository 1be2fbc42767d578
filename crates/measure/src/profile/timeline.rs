//! What happens inside a drive while it is profiled: how busy its units are, and what reaches its media.
//!
//! A [`Timeline`] holds a bounded number of moments: when it is full, every second one goes and it is asked half as often, so
//! that a minute and a day cost the same. Counters only grow; what lies between two moments is their difference, and between
//! moments they grow evenly. Deliberately not here: pictures.

use super::record::as_f64;
use ocssd_base::Nanos;
use ocssd_lightnvm::block::Counter;

/// A drive that shows its inside, at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriveState {
    /// Groups of parallel units; each has as many.
    pub groups: u32,
    /// How long each parallel unit has been busy, since it was made.
    pub unit_busy: Vec<Nanos>,
    /// Bytes that users wrote.
    pub host_bytes: u64,
    /// Bytes that were programmed: users', moved, filled up with, and of the translation layer itself.
    pub media_bytes: u64,
    /// What its translation layer counts.
    pub counters: Vec<Counter>,
}

/// One moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// When, on the device's clock.
    pub at: Nanos,
    /// How long each unit had been busy.
    pub unit_busy: Vec<Nanos>,
    /// Bytes that users had written.
    pub host_bytes: u64,
    /// Bytes that had been programmed.
    pub media_bytes: u64,
}

/// Moments in order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    interval: Nanos,
    moments: Vec<Moment>,
}

/// Most moments (chosen: four for each column of a picture; of 128 units they take 250 KB).
const MOMENTS_MAX: usize = 240;
/// Time between the first moments (chosen: a few programs of flash).
const INTERVAL_FIRST: Nanos = Nanos::from_millis(1);

impl Default for Timeline {
    fn default() -> Self {
        Self { interval: INTERVAL_FIRST, moments: Vec::new() }
    }
}

impl Timeline {
    /// True if `now` is so late after the last moment that another is wanted.
    #[must_use]
    pub fn is_due(&self, now: Nanos) -> bool {
        self.moments.last().is_none_or(|last| now >= last.at + self.interval)
    }

    /// Time between two moments.
    #[must_use]
    pub const fn interval(&self) -> Nanos {
        self.interval
    }

    /// Keeps a moment.
    ///
    /// # Panics
    /// If it is before the last one, or of another number of units.
    pub fn keep(&mut self, at: Nanos, state: DriveState) {
        if let Some(last) = self.moments.last() {
            assert!(last.at <= at, "time falls from {} to {at}", last.at);
            assert!(last.unit_busy.len() == state.unit_busy.len(), "a drive has all its units all the time");
        }
        let DriveState { unit_busy, host_bytes, media_bytes, .. } = state;
        self.moments.push(Moment { at, unit_busy, host_bytes, media_bytes });
        if self.moments.len() > MOMENTS_MAX {
            let mut number = 0_u32;
            self.moments.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.interval = self.interval * 2;
        }
    }

    /// All moments.
    #[must_use]
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// Parallel units.
    #[must_use]
    pub fn units(&self) -> usize {
        self.moments.first().map_or(0, |moment| moment.unit_busy.len())
    }

    /// The same with times from `origin` on.
    #[must_use]
    pub fn since(&self, origin: Nanos) -> Self {
        let mut moved = self.clone();
        moved.moments.iter_mut().for_each(|moment| moment.at = moment.at.saturating_since(origin));
        moved
    }

    /// How much of the time from `from` to `to` a unit was busy.
    ///
    /// # Panics
    /// If the time has no length, or there is no such unit.
    #[must_use]
    pub fn busy_share(&self, unit: usize, from: Nanos, to: Nanos) -> f64 {
        assert!(from < to, "from {from} to {to} is no time");
        let busy = |at: Nanos| {
            between(&self.moments, as_f64(at.0), |moment| moment.at.0, |moment| moment.unit_busy[unit].0)
        };
        ((busy(to) - busy(from)) / as_f64(to.0 - from.0)).clamp(0.0, 1.0)
    }

    /// Bytes programmed when users had written `host_bytes`.
    #[must_use]
    pub fn media_bytes_at(&self, host_bytes: f64) -> f64 {
        between(&self.moments, host_bytes, |moment| moment.host_bytes, |moment| moment.media_bytes)
    }

    /// Bytes users had written at a time.
    #[must_use]
    pub fn host_bytes_at(&self, at: Nanos) -> f64 {
        between(&self.moments, as_f64(at.0), |moment| moment.at.0, |moment| moment.host_bytes)
    }
}

/// The growing number `y` where the growing number `x` is `at`, along the line between the moments around it.
fn between(moments: &[Moment], at: f64, x: impl Fn(&Moment) -> u64, y: impl Fn(&Moment) -> u64) -> f64 {
    let next = moments.partition_point(|moment| as_f64(x(moment)) < at);
    let (Some(low), Some(high)) = (moments.get(next.saturating_sub(1)), moments.get(next)) else {
        return moments.last().map_or(0.0, |last| as_f64(y(last)));
    };
    let (from, to) = (as_f64(x(low)), as_f64(x(high)));
    let part = if to > from { ((at - from) / (to - from)).clamp(0.0, 1.0) } else { 1.0 };
    as_f64(y(low)) + (as_f64(y(high)) - as_f64(y(low))) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(busy: u64, host: u64, media: u64) -> DriveState {
        DriveState {
            groups: 1,
            unit_busy: vec![Nanos(busy), Nanos(busy / 2)],
            host_bytes: host,
            media_bytes: media,
            counters: Vec::new(),
        }
    }

    #[test]
    fn what_lies_between_moments_grows_evenly() {
        let mut timeline = Timeline::default();
        timeline.keep(Nanos(100), state(0, 0, 0));
        timeline.keep(Nanos(200), state(80, 1000, 1000));
        timeline.keep(Nanos(300), state(80, 2000, 4000));
        let share = |unit, from, to| timeline.busy_share(unit, Nanos(from), Nanos(to));
        assert!((share(0, 100, 200) - 0.8).abs() < 1e-9 && (share(1, 100, 200) - 0.4).abs() < 1e-9);
        assert!((share(0, 150, 250) - 0.4).abs() < 1e-9 && share(0, 200, 300).abs() < 1e-9);
        assert!((timeline.media_bytes_at(1500.0) - 2500.0).abs() < 1e-9);
        assert!((timeline.media_bytes_at(9000.0) - 4000.0).abs() < 1e-9, "nothing is known beyond the end");
        assert!((timeline.host_bytes_at(Nanos(150)) - 500.0).abs() < 1e-9);
        assert_eq!(timeline.since(Nanos(100)).moments()[1].at, Nanos(100));
    }

    #[test]
    fn a_long_time_takes_no_more_room_than_a_short_one() {
        let mut timeline = Timeline::default();
        let mut asked = 0;
        for step in 0..100_000_u64 {
            let now = Nanos::from_millis(step);
            if timeline.is_due(now) {
                timeline.keep(now, state(step, step, step * 2));
                asked += 1;
            }
        }
        let count = timeline.moments().len();
        assert!(count <= MOMENTS_MAX && count > MOMENTS_MAX / 3, "{count} moments");
        assert!(asked < 2000, "asked {asked} times");
        assert_eq!(timeline.moments()[0].at, Nanos::ZERO, "the first stays");
        assert!((timeline.media_bytes_at(70_000.0) - 140_000.0).abs() < 1e-6);
    }
}
