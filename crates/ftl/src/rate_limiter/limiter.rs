//! The interface both limiters have: what they are told, what they answer.
//!
//! Each machine looks at what it needs: pblk's counts entries of the buffer, the continuous one counts sectors GC
//! moved. A target makes the same calls for both. Deliberately not here: any rule of either.

use ocssd_base::Nanos;

use super::{ContinuousLimiter, PblkLimiter};

/// Whether a user may insert sectors into the write buffer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Now, in this same step.
    Granted,
    /// Not until GC or the media have advanced.
    Wait,
    /// Never again: the instance is out of lines (pblk's `rb_space`).
    OutOfLines,
}

/// What the limiter goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    /// Good chunks of free lines.
    pub free_chunks: u64,
    /// Free lines, not counting open ones.
    pub free_lines: u64,
    /// Data sectors still unwritten in the open lines of user streams. Makes the count of free lines continuous.
    pub open_user_sectors: u64,
    /// Data sectors that are free but no user's, or will be without any further victim: what is unwritten in the open lines of
    /// GC, lines that hold nothing and wait for their reset, lines whose content was all moved, and of the victim being moved as
    /// much as was moved of it. Without them space falls by a line when GC opens one, and rises by a line at a reset.
    pub coming_sectors: u64,
    /// Whether GC has a victim in work or one worth taking.
    pub gc_has_work: bool,
}

/// A limiter of either kind.
#[derive(Clone, Debug)]
pub enum RateLimiter {
    /// As pblk.
    Pblk(PblkLimiter),
    /// By credit for what GC has done.
    Continuous(ContinuousLimiter),
}

impl RateLimiter {
    /// Free space or GC's work changed; to be told at least when a line is opened or reclaimed. Cost: see each.
    pub fn update(&mut self, situation: Situation) {
        match self {
            Self::Pblk(limiter) => limiter.update(situation.free_chunks, situation.gc_has_work),
            Self::Continuous(limiter) => limiter.update(situation),
        }
    }

    /// Whether a user may insert `sectors` now. Cost: two comparisons.
    #[must_use]
    pub fn may_insert_user(&self, sectors: u32) -> Admission {
        match self {
            Self::Pblk(limiter) => limiter.may_insert_user(sectors),
            Self::Continuous(limiter) if limiter.may_insert_user(sectors) => Admission::Granted,
            Self::Continuous(_) => Admission::Wait,
        }
    }

    /// Whether GC may insert now. The continuous limiter never holds it back: GC is what makes space.
    #[must_use]
    pub fn may_insert_gc(&self, now: Nanos) -> bool {
        match self {
            Self::Pblk(limiter) => limiter.may_insert_gc(now),
            Self::Continuous(_) => true,
        }
    }

    /// Whether free space is so low that GC should take victims.
    #[must_use]
    pub fn gc_should_run(&self) -> bool {
        match self {
            Self::Pblk(limiter) => limiter.gc_should_run(),
            Self::Continuous(limiter) => limiter.gc_should_run(),
        }
    }

    /// Whether space would still be low with so many more free lines of `line_chunks` good chunks each: lines on their way to
    /// be free need no victim in their place.
    #[must_use]
    pub fn is_low_with(&self, lines: u64, line_chunks: u64) -> bool {
        match self {
            Self::Pblk(limiter) => limiter.is_low_with(lines * line_chunks),
            Self::Continuous(limiter) => limiter.is_low_with(lines),
        }
    }

    /// When an answer of [`RateLimiter::may_insert_gc`] changes by itself; `None` if only events change it.
    #[must_use]
    pub fn deadline(&self, now: Nanos) -> Option<Nanos> {
        match self {
            Self::Pblk(limiter) => limiter.deadline(now),
            Self::Continuous(_) => None,
        }
    }

    /// A user inserted `sectors`, as it was granted in this same step.
    pub fn on_user_inserted(&mut self, now: Nanos, sectors: u32) {
        match self {
            Self::Pblk(limiter) => limiter.on_user_inserted(now, sectors),
            Self::Continuous(limiter) => limiter.on_user_write(sectors),
        }
    }

    /// GC inserted `sectors`, as it may.
    pub fn on_gc_inserted(&mut self, sectors: u32) {
        match self {
            Self::Pblk(limiter) => limiter.on_gc_inserted(sectors),
            Self::Continuous(limiter) => limiter.on_gc_write(sectors),
        }
    }

    /// Entries of the buffer were given to others. Only pblk's limiter goes by what the buffer holds.
    pub fn on_evicted(&mut self, user: u32, gc: u32) {
        match self {
            Self::Pblk(limiter) => limiter.on_evicted(user, gc),
            Self::Continuous(_) => {}
        }
    }

    /// A line of `sectors` data sectors, of which `valid` had to be moved, was reclaimed. Only the continuous limiter
    /// measures what GC costs.
    pub fn on_victim_done(&mut self, valid: u64, sectors: u64) {
        match self {
            Self::Pblk(_) => {}
            Self::Continuous(limiter) => limiter.on_victim_done(valid, sectors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ContinuousLimits, PblkLimits};
    use super::*;

    /// Both limiters on ten lines of 16 chunks of 100 sectors, with a buffer or burst of 64.
    fn both() -> [RateLimiter; 2] {
        let pblk = PblkLimits { budget: 64, chunks: 160, reserve_chunks: 16, high_chunks_min: 0 };
        let continuous = ContinuousLimits {
            line_sectors: 1_600,
            stop_lines: 1,
            target_lines: 2,
            start_lines: 3,
            burst_sectors: 64,
        };
        [
            RateLimiter::Pblk(PblkLimiter::new(pblk)),
            RateLimiter::Continuous(ContinuousLimiter::new(continuous)),
        ]
    }

    fn situation(free_lines: u64) -> Situation {
        let coming_sectors = 0;
        let free_chunks = free_lines * 16;
        Situation { free_chunks, free_lines, open_user_sectors: 0, coming_sectors, gc_has_work: true }
    }

    #[test]
    fn with_space_enough_users_are_free_and_gc_is_off() {
        for mut limiter in both() {
            limiter.update(situation(9));
            for _ in 0..10 {
                assert_eq!(limiter.may_insert_user(64), Admission::Granted, "{limiter:?}");
                assert!(!limiter.gc_should_run(), "{limiter:?}");
                limiter.on_user_inserted(Nanos::ZERO, 64);
                limiter.on_evicted(64, 0);
            }
        }
    }

    #[test]
    fn at_the_reserve_users_wait_and_gc_advances() {
        for mut limiter in both() {
            limiter.update(situation(1));
            limiter.on_gc_inserted(63);
            limiter.on_victim_done(63, 1_600);
            assert_eq!(limiter.may_insert_user(1), Admission::Wait, "{limiter:?}");
            assert!(limiter.gc_should_run() && limiter.may_insert_gc(Nanos::ZERO), "{limiter:?}");
            limiter.update(situation(9));
            assert_eq!(limiter.may_insert_user(1), Admission::Granted, "{limiter:?}");
        }
    }

    #[test]
    fn only_pblks_users_hold_gc_back_and_only_for_five_seconds() {
        let [mut pblk, mut continuous] = both();
        for limiter in [&mut pblk, &mut continuous] {
            limiter.on_user_inserted(Nanos::ZERO, 1);
        }
        let five = Nanos::from_secs(5);
        assert_eq!((pblk.may_insert_gc(Nanos::ZERO), pblk.deadline(Nanos::ZERO)), (false, Some(five)));
        assert_eq!((pblk.may_insert_gc(five), pblk.deadline(five)), (true, None));
        assert_eq!((continuous.may_insert_gc(Nanos::ZERO), continuous.deadline(Nanos::ZERO)), (true, None));
    }

    #[test]
    fn only_the_continuous_one_releases_users_by_what_gc_reclaims() {
        let [mut pblk, mut continuous] = both();
        for limiter in [&mut pblk, &mut continuous] {
            limiter.on_user_inserted(Nanos::ZERO, 64);
            limiter.update(situation(2));
        }
        // The buffer is full of what users wrote; the credit was the whole burst, and is used up like it.
        continuous.on_user_inserted(Nanos::ZERO, 64);
        for limiter in [&mut pblk, &mut continuous] {
            assert_eq!(limiter.may_insert_user(1), Admission::Wait, "{limiter:?}");
            limiter.on_victim_done(0, 1_600);
        }
        assert_eq!(continuous.may_insert_user(1), Admission::Granted);
        assert_eq!(pblk.may_insert_user(1), Admission::Wait);
        pblk.on_evicted(64, 0);
        assert_eq!(pblk.may_insert_user(1), Admission::Granted);
    }

    #[test]
    fn lines_on_their_way_to_be_free_count_by_their_chunks_or_as_lines() {
        let [mut pblk, mut continuous] = both();
        for limiter in [&mut pblk, &mut continuous] {
            limiter.update(situation(1));
        }
        // Of 160 chunks 20 are enough, of lines three.
        assert_eq!(
            [(1, 3), (3, 1), (1, 4), (2, 2)].map(|(n, of)| pblk.is_low_with(n, of)),
            [true, true, false, false]
        );
        assert_eq!([(1, 99), (2, 0)].map(|(n, of)| continuous.is_low_with(n, of)), [true, false]);
    }

    #[test]
    fn both_are_told_what_gc_wrote() {
        let [mut pblk, mut continuous] = both();
        for limiter in [&mut pblk, &mut continuous] {
            limiter.update(situation(2));
        }
        continuous.on_user_inserted(Nanos::ZERO, 64);
        assert_eq!(continuous.may_insert_user(1), Admission::Wait);
        continuous.on_gc_inserted(10);
        assert_eq!(continuous.may_insert_user(10), Admission::Granted, "it moved as much as it believes");
        pblk.on_user_inserted(Nanos::ZERO, 1);
        pblk.update(situation(1));
        pblk.on_gc_inserted(63);
        assert!(pblk.may_insert_gc(Nanos::ZERO), "63 of 64");
        pblk.on_evicted(1, 0);
        pblk.on_gc_inserted(1);
        assert!(!pblk.may_insert_gc(Nanos::ZERO), "the buffer is GC's");
    }
}
