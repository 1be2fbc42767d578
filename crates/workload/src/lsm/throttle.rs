//! RocksDB's write controller: when puts are slowed down or stop, and how fast slowed ones go.
//!
//! The rules are those of RocksDB 5.4.6 (`ColumnFamilyData::RecalculateWriteStallConditions`, `WriteController`). They are
//! looked at whenever a memtable is full, a flush has ended, or a compaction has. Puts stop for want of memtables, for too many
//! tables of level 0, or for too many bytes that wait for compaction; a little before they are slowed down to a rate, which
//! falls while the bytes that wait grow and rises while they shrink. Deliberately not here: who waits (`writes`).

use super::options::LsmOptions;
use ocssd_base::Nanos;

/// The rate is never lower, in bytes a second.
const RATE_MIN: u64 = 16 << 10;
/// What the rate is multiplied with, in tenths and hundredths: near a stop, or after one; while more bytes wait than before;
/// while fewer do; when nothing is slowed down any more.
const NEAR_STOP: (u64, u64) = (6, 10);
const MORE_WAIT: (u64, u64) = (8, 10);
const FEWER_WAIT: (u64, u64) = (125, 100);
const RECOVERED: (u64, u64) = (14, 10);
/// Tables of level 0 before the stop from which on it is near.
const NEAR_STOP_TABLES: usize = 2;
/// A single memtable before the stop slows puts down only if there are more than this.
const SLOWING_MEMTABLES: usize = 3;

/// Why puts do not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Every memtable is full.
    Memtables,
    /// Too many tables of level 0.
    Level0,
    /// Too many bytes wait for compaction.
    PendingBytes,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Memtables, Self::Level0, Self::PendingBytes];

    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memtables => "memtables",
            Self::Level0 => "level 0",
            Self::PendingBytes => "pending bytes",
        }
    }
}

/// What puts may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Go on.
    Normal,
    /// Go on at the rate.
    Delayed(Cause),
    /// Wait.
    Stopped(Cause),
}

/// What the rules look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) unflushed: usize,
    pub(super) level0: usize,
    pub(super) pending_bytes: u64,
}

/// The controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Throttle {
    condition: Condition,
    /// Bytes a second.
    rate: u64,
    pending_before: u64,
    /// When the next put may go that is slowed down.
    next: Nanos,
}

const fn times(rate: u64, (by, over): (u64, u64)) -> u64 {
    rate * by / over
}

impl Throttle {
    pub(super) const fn new(options: &LsmOptions) -> Self {
        Self {
            condition: Condition::Normal,
            rate: options.delayed_write_rate,
            pending_before: 0,
            next: Nanos::ZERO,
        }
    }

    pub(super) const fn condition(&self) -> Condition {
        self.condition
    }

    /// Bytes a second of puts that are slowed down.
    pub(super) const fn rate(&self) -> u64 {
        self.rate
    }

    /// The facts have changed.
    pub(super) fn look(&mut self, now: Nanos, facts: Facts, options: &LsmOptions) {
        let before = self.condition;
        let (condition, is_near_stop) = judge(facts, options);
        self.condition = condition;
        match condition {
            Condition::Delayed(_) => {
                let was_stopped = matches!(before, Condition::Stopped(_));
                self.slow_down(was_stopped || is_near_stop, facts.pending_bytes, options.delayed_write_rate);
                if !matches!(before, Condition::Delayed(_)) {
                    self.next = now;
                }
            }
            Condition::Normal if matches!(before, Condition::Delayed(_)) => {
                self.rate = times(self.rate, RECOVERED).min(options.delayed_write_rate);
            }
            Condition::Normal | Condition::Stopped(_) => {}
        }
        self.pending_before = facts.pending_bytes;
    }

    fn slow_down(&mut self, is_penalty: bool, pending: u64, rate_max: u64) {
        let before = self.pending_before;
        let (by, is_slower) = if is_penalty {
            (NEAR_STOP, true)
        } else if before > 0 && before <= pending {
            (MORE_WAIT, true)
        } else if before > pending {
            (FEWER_WAIT, false)
        } else {
            return;
        };
        let rate = times(self.rate, by);
        self.rate = if is_slower { rate.max(RATE_MIN.min(rate_max)) } else { rate.min(rate_max) };
    }

    /// How long a put of so many bytes that may go now is held up.
    pub(super) fn delay(&mut self, now: Nanos, bytes: u64) -> Nanos {
        if !matches!(self.condition, Condition::Delayed(_)) {
            return Nanos::ZERO;
        }
        assert!(self.rate > 0, "puts are slowed down to a rate");
        self.next = self.next.max(now) + Nanos::for_bytes(bytes, self.rate);
        self.next.saturating_since(now)
    }
}

/// What puts may do, and whether they are close to a stop.
fn judge(facts: Facts, options: &LsmOptions) -> (Condition, bool) {
    let Facts { unflushed, level0, pending_bytes } = facts;
    let (soft, hard) = (options.pending_soft_bytes, options.pending_hard_bytes);
    let (most, is_limited) = (options.memtables_max, options.delayed_write_rate > 0);
    if unflushed >= most {
        (Condition::Stopped(Cause::Memtables), false)
    } else if level0 >= options.level0_stop {
        (Condition::Stopped(Cause::Level0), false)
    } else if pending_bytes >= hard {
        (Condition::Stopped(Cause::PendingBytes), false)
    } else if !is_limited {
        (Condition::Normal, false)
    } else if most > SLOWING_MEMTABLES && unflushed >= most - 1 {
        (Condition::Delayed(Cause::Memtables), false)
    } else if level0 >= options.level0_slowdown {
        (Condition::Delayed(Cause::Level0), level0 + NEAR_STOP_TABLES >= options.level0_stop)
    } else if pending_bytes >= soft {
        (Condition::Delayed(Cause::PendingBytes), pending_bytes > soft + (hard - soft) / 4 * 3)
    } else {
        (Condition::Normal, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> (Throttle, LsmOptions) {
        let flags = "--max_write_buffer_number=64 --level0_file_num_compaction_trigger=1 \
                     --level0_slowdown_writes_trigger=16 --level0_stop_writes_trigger=24";
        let options = LsmOptions::parse(flags).expect("flags");
        (Throttle::new(&options), options)
    }

    fn facts(unflushed: usize, level0: usize, pending_bytes: u64) -> Facts {
        Facts { unflushed, level0, pending_bytes }
    }

    #[test]
    fn puts_slow_down_and_stop_at_the_triggers() {
        let (mut throttle, options) = start();
        for (facts, condition) in [
            (facts(0, 15, 0), Condition::Normal),
            (facts(0, 16, 0), Condition::Delayed(Cause::Level0)),
            (facts(0, 24, 0), Condition::Stopped(Cause::Level0)),
            (facts(63, 0, 0), Condition::Delayed(Cause::Memtables)),
            (facts(64, 30, 0), Condition::Stopped(Cause::Memtables)),
            (facts(0, 0, 64 << 30), Condition::Delayed(Cause::PendingBytes)),
            (facts(0, 0, 256 << 30), Condition::Stopped(Cause::PendingBytes)),
        ] {
            throttle.look(Nanos(1), facts, &options);
            assert_eq!(throttle.condition(), condition, "{facts:?}");
        }
    }

    #[test]
    fn the_rate_falls_while_more_waits_and_rises_while_less_does() {
        let (mut throttle, options) = start();
        let full = 8 << 20;
        for (facts, rate) in [
            (facts(0, 16, 100), full),
            (facts(0, 16, 100), full / 10 * 8),
            (facts(0, 16, 50), full),
            (facts(0, 22, 50), times(full, NEAR_STOP)),
            (facts(0, 24, 50), times(full, NEAR_STOP)),
            (facts(0, 16, 50), times(times(full, NEAR_STOP), NEAR_STOP)),
            (facts(0, 0, 0), times(times(times(full, NEAR_STOP), NEAR_STOP), RECOVERED)),
        ] {
            throttle.look(Nanos(1), facts, &options);
            assert!(throttle.rate().abs_diff(rate) < 8, "{facts:?}: {} and not {rate}", throttle.rate());
        }
        for _ in 0..100 {
            throttle.look(Nanos(1), facts(0, 23, 1), &options);
        }
        assert_eq!(throttle.rate(), RATE_MIN);
    }

    #[test]
    fn slowed_puts_go_at_the_rate_and_without_a_limit_none_are() {
        let (mut throttle, options) = start();
        throttle.look(Nanos(1_000), facts(0, 16, 0), &options);
        let second = Nanos::from_secs(1);
        assert_eq!(throttle.delay(Nanos(1_000), 8 << 20), second);
        assert_eq!(throttle.delay(Nanos(1_000), 8 << 20), second * 2);
        let free = LsmOptions { delayed_write_rate: 0, ..options };
        let mut throttle = Throttle::new(&free);
        throttle.look(Nanos(1), facts(0, 23, 1 << 40), &LsmOptions { pending_hard_bytes: 1 << 50, ..free });
        assert_eq!((throttle.condition(), throttle.delay(Nanos(1), 99)), (Condition::Normal, Nanos::ZERO));
    }
}
