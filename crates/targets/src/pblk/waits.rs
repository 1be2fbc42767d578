//! What holds up the oldest write, and how many writes waited long for it.
//!
//! A write that cannot go on names one cause at a time. When all of a write is in the buffer, the time since it was taken is its
//! wait; if that is long, the cause that was named last gets it. Deliberately not here: what each cause is about (`limit`,
//! `write`, `reset`, `level`), and waits below the bound, which a buffer is there for.

use super::Pblk;
use super::due::Due;
use ocssd_base::{Nanos, usize_of};
use ocssd_lightnvm::block::{Counter, CounterValue};

/// A wait this long is counted (chosen: several programs and a reset of any drive described here, and less than any time limit
/// of a host).
pub const LONG_WAIT: Nanos = Nanos::from_millis(10);

/// What the oldest write waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitCause {
    /// Nothing was named: it waited for writes before it.
    #[default]
    Queue,
    /// The limiter: garbage collection has to give space back first.
    Limiter,
    /// The buffer is full.
    Buffer,
    /// The buffer is full of what waits for a line.
    Line,
    /// A checkpoint that is behind.
    Checkpoint,
    /// A line is moved for its wear.
    Wear,
}

impl WaitCause {
    /// How many there are.
    const COUNT: usize = 6;

    /// Its place among the counters.
    const fn index(self) -> usize {
        match self {
            Self::Queue => 0,
            Self::Limiter => 1,
            Self::Buffer => 2,
            Self::Line => 3,
            Self::Checkpoint => 4,
            Self::Wear => 5,
        }
    }
}

/// Long waits since mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LongWaits {
    counts: [u64; WaitCause::COUNT],
    /// The longest wait of any write.
    longest: Nanos,
    /// What held up the oldest write last.
    cause: WaitCause,
}

impl LongWaits {
    /// The oldest write cannot go on for the moment.
    pub const fn held_up_by(&mut self, cause: WaitCause) {
        self.cause = cause;
    }

    /// A write was admitted after `waited`.
    pub fn on_admitted(&mut self, waited: Nanos) {
        self.longest = self.longest.max(waited);
        self.counts[self.cause.index()] += u64::from(waited >= LONG_WAIT);
    }

    /// Writes that waited at least [`LONG_WAIT`] for this.
    #[must_use]
    pub const fn count(&self, cause: WaitCause) -> u64 {
        self.counts[cause.index()]
    }

    /// The longest wait.
    #[must_use]
    pub const fn longest(&self) -> Nanos {
        self.longest
    }
}

impl Pblk {
    /// A write cannot go on for the moment.
    pub(super) fn waits_for(&mut self, cause: WaitCause) {
        self.stats.long_waits.held_up_by(cause);
        let before = self.turn;
        self.turn.users_wait_for(cause);
        if self.turn != before {
            // It may have left its turn to users who do not wait for the buffer any more.
            self.due.add(Due::GC);
        }
    }

    /// The buffer unit that users need: there is none. Names what it waits for.
    pub(super) fn waits_for_buffer_unit(&mut self) {
        let waits_for_line =
            |stream: &super::state::StreamState| stream.line.is_none() && !stream.ready.is_empty();
        let users = usize_of(u32::from(self.user_streams));
        assert!(users <= self.streams.len(), "users have {users} of {} streams", self.streams.len());
        let is_line = self.streams[..users].iter().any(waits_for_line);
        self.waits_for(if is_line { WaitCause::Line } else { WaitCause::Buffer });
    }

    /// Long waits, by what they were for.
    pub(super) fn wait_counters(&self) -> [Counter; WaitCause::COUNT + 1] {
        let long = &self.stats.long_waits;
        let count =
            |name, about, cause| Counter { name, about, value: CounterValue::Count(long.count(cause)) };
        [
            count(
                "long_waits_limiter",
                "writes that waited 10 ms or more for the limiter",
                WaitCause::Limiter,
            ),
            count("long_waits_buffer", "for the buffer", WaitCause::Buffer),
            count("long_waits_line", "for a free line", WaitCause::Line),
            count("long_waits_checkpoint", "for a checkpoint", WaitCause::Checkpoint),
            count("long_waits_wear", "for a line that is moved for its wear", WaitCause::Wear),
            count("long_waits_queue", "for writes and discards before them", WaitCause::Queue),
            Counter {
                name: "wait_longest_ns",
                about: "longest wait of a write for the buffer",
                value: CounterValue::Gauge(long.longest().0),
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waits_of_the_bound_and_longer_are_counted_and_each_by_its_cause() {
        let mut waits = LongWaits::default();
        let causes = [
            WaitCause::Queue,
            WaitCause::Limiter,
            WaitCause::Buffer,
            WaitCause::Line,
            WaitCause::Checkpoint,
            WaitCause::Wear,
        ];
        for (times, cause) in (1..).zip(causes) {
            waits.held_up_by(cause);
            waits.on_admitted(LONG_WAIT - Nanos(1));
            (0..times).for_each(|_| waits.on_admitted(LONG_WAIT));
        }
        assert_eq!(causes.map(|cause| waits.count(cause)), [1, 2, 3, 4, 5, 6]);
        assert_eq!(waits.longest(), LONG_WAIT);
    }
}
