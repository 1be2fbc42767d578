//! The least rate a job must keep: fio's `rate_min` and `rate_iops_min`.
//!
//! After two seconds the totals of every direction are looked at once per cycle; a direction that has done anything must
//! have done enough since it was last found to have done something. One I/O more than was done is granted, because it may
//! be nearly done: fio looks only when an I/O completes. Unlike there, a job that hangs fails too. Reads no clock.

use crate::job::JobOptions;
use ocssd_base::Nanos;

/// How long a job may settle at first (fio's own two seconds).
const SETTLE: Nanos = Nanos::from_secs(2);

/// Bytes and I/Os of one direction so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) bytes: u64,
    pub(super) ios: u64,
}

/// What a direction must keep, and where its cycle began.
#[derive(Clone, Copy, Debug)]
struct Floor {
    /// Least bytes and I/Os per second; 0 is none.
    least: Work,
    /// The longest I/O in bytes.
    longest: u64,
    last: Option<(Nanos, Work)>,
}

/// The watch of one job.
#[derive(Clone, Debug)]
pub(super) struct MinimumRate {
    floors: [Floor; 3],
    cycle: Nanos,
}

impl Floor {
    fn is_met(&mut self, now: Nanos, work: Work) -> bool {
        let Some((since, before)) = self.last else {
            self.last = Some((now, work));
            return true;
        };
        if work.ios == 0 || work.ios < before.ios {
            // A direction that never did anything is not part of the job; one that did less than before started anew.
            self.last = Some((now, work));
            return true;
        }
        let enough = |done: u64, per_second: u64| {
            u128::from(done) * 1_000_000_000 >= u128::from(per_second) * u128::from((now - since).0)
        };
        let met = enough(work.bytes - before.bytes + self.longest, self.least.bytes)
            && enough(work.ios - before.ios + 1, self.least.ios);
        if work.ios > before.ios {
            self.last = Some((now, work));
        }
        met
    }
}

impl MinimumRate {
    /// `None` if no rate is asked for.
    pub(super) fn new(options: &JobOptions) -> Option<Self> {
        let (bytes, ios) = (options.rate_floor.bytes.as_array(), options.rate_floor.ios.as_array());
        let sizes = options.block_sizes.as_array();
        let floors: [Floor; 3] = std::array::from_fn(|direction| Floor {
            least: Work { bytes: bytes[direction].unwrap_or(0), ios: ios[direction].unwrap_or(0) },
            longest: sizes[direction].max_bytes(),
            last: None,
        });
        let asked = floors.iter().any(|floor| floor.least != Work::default());
        asked.then_some(Self { floors, cycle: options.rate_floor.cycle })
    }

    /// When to look first.
    pub(super) fn first(started: Nanos, measured_from: Nanos) -> Nanos {
        (started + SETTLE).max(measured_from)
    }

    /// When to look again.
    pub(super) fn next(&self, now: Nanos) -> Nanos {
        now + self.cycle
    }

    /// True if every direction did enough.
    pub(super) fn is_met(&mut self, now: Nanos, work: [Work; 3]) -> bool {
        self.floors.iter_mut().zip(work).all(|(floor, work)| floor.is_met(now, work))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::ByDirection;

    fn watch(bytes: Option<u64>, ios: Option<u64>) -> MinimumRate {
        let mut options = JobOptions::default();
        options.rate_floor.bytes = ByDirection { read: bytes, write: None, trim: None };
        options.rate_floor.ios = ByDirection { read: None, write: ios, trim: None };
        options.rate_floor.cycle = Nanos::from_millis(500);
        MinimumRate::new(&options).expect("a rate")
    }

    fn work(read: u64, write: u64) -> [Work; 3] {
        [read, write, 0].map(|ios| Work { bytes: ios * 4_096, ios })
    }

    #[test]
    fn each_cycle_is_judged_by_what_was_done_in_it() {
        let mut watch = watch(Some(40_960), Some(10));
        let at = Nanos::from_millis;
        assert!(watch.is_met(at(2_000), work(1_000, 1_000)), "the first look only remembers");
        assert!(
            watch.is_met(at(2_500), work(1_004, 1_004)),
            "4 I/Os of each in half a second, and one nearly done"
        );
        let mut other = watch.clone();
        assert!(!watch.is_met(at(3_000), work(1_007, 1_008)), "reads are slow");
        assert!(!other.is_met(at(3_000), work(1_008, 1_007)), "writes are slow");
    }

    #[test]
    fn a_job_of_few_long_ios_is_judged_over_more_than_a_cycle() {
        // One I/O of 4096 bytes every 3.3 s are 1241 bytes a second, in cycles of half a second.
        let judged = |least: u64| {
            let mut watch = watch(Some(least), None);
            (4..60).all(|half| watch.is_met(Nanos::from_millis(500 * half), work(1 + half * 10 / 66, 0)))
        };
        assert!(judged(1_000));
        assert!(!judged(5_000));
    }

    #[test]
    fn a_job_that_hangs_is_found_in_time() {
        let mut watch = watch(Some(8_192), None);
        let met: Vec<bool> =
            (4..9).map(|half| watch.is_met(Nanos::from_millis(500 * half), work(7, 0))).collect();
        assert_eq!(met, [true, true, false, false, false], "after a second not even one I/O more is enough");
    }

    #[test]
    fn a_direction_that_did_nothing_yet_is_not_judged() {
        let mut watch = watch(Some(8_192), None);
        assert!((1..50).all(|second| watch.is_met(Nanos::from_secs(second), work(0, 5))));
    }

    #[test]
    fn nothing_asked_is_no_watch_and_a_job_may_settle() {
        assert!(MinimumRate::new(&JobOptions::default()).is_none());
        let second = Nanos::from_secs(1);
        assert_eq!(MinimumRate::first(second, second), second * 3);
        assert_eq!(MinimumRate::first(second, second * 9), second * 9);
    }
}
