//! pblk's rate limiter as of Linux 4.12 to 4.16 (`pblk-rl.c`).
//!
//! The budget is the entries of the write buffer. Entries of users and of GC are counted until they are *evicted*, not
//! until they are durable, so the limiter fixes the composition of the last `budget` sectors written:
//! ```text
//! free chunks >= high (an eighth of all):  user_max = budget, gc_max = 0, GC off         state HIGH
//! reserve < free < high:  user_max = 64 * (free >> (high_pw - windows_pw)), gc_max = the rest   LOW
//! free <= reserve (one line):              user_max = 0, gc_max = budget                        LOW
//! ```
//! with `high_pw` the order of `high`, rounded up, and `windows_pw` that of `budget / 64`. What follows, and is kept:
//! the first cut jumps to between 50 % and 100 %; a user that reached its share waits until GC's inserts evict its
//! entries, and waits for ever if GC has nothing to move (pblk issue 41); a test looks at the count before the insert,
//! whatever its size. GC may exceed its share once no user wrote for five seconds.
//!
//! Two things differ. Where `windows_pw` exceeds `high_pw` (a large buffer on a small instance) the kernel shifts by a
//! negative number, which C leaves undefined; here it shifts the other way. And where the shift leaves users no window above the
//! reserve (a buffer of few windows on a small instance), they have one while GC has nothing to move: they would wait for ever,
//! beside free chunks. Deliberately not here: the states and thresholds of 4.18 and later (OFF, WERR, MID).

use ocssd_base::Nanos;

use super::Admission;

/// Sectors of a window: `PBLK_MAX_REQ_ADDRS`, the most one vector command carries.
const WINDOW: u32 = 64;

/// Free chunks below this part of all are low: `PBLK_USER_HIGH_THRS` of 4.12.
const HIGH_PART: u64 = 8;

/// Users are gone after this long without a write: the 5 000 ms of `u_timer`.
const USER_IDLE: Nanos = Nanos::from_secs(5);

/// What the limiter is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PblkLimits {
    /// Entries of the write buffer, or more: a power of two, at least 64.
    pub budget: u32,
    /// Good chunks of the instance, at least 8.
    pub chunks: u64,
    /// Chunks kept for GC: one line's (`PBLK_GC_RSV_LINE`). Below `chunks`; from an eighth of them on, users stop where
    /// GC begins.
    pub reserve_chunks: u64,
    /// Fewest free chunks at which GC may begin: more than an eighth of all, as pblk has it, on instances so small that
    /// the reserve reaches it. 0 for pblk's own.
    pub high_chunks_min: u64,
}

/// How free space stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PblkState {
    /// Enough: users have the whole buffer, GC is off (`PBLK_RL_HIGH`).
    High,
    /// Low: users and GC share the buffer (`PBLK_RL_LOW`).
    Low,
}

/// What pblk shows in its sysfs file `rate_limiter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PblkGauges {
    /// Entries of users in the buffer.
    pub user_count: u32,
    /// Entries users may have there.
    pub user_max: u32,
    /// Entries of GC in the buffer.
    pub gc_count: u32,
    /// Entries GC may have there.
    pub gc_max: u32,
    /// How free space stands.
    pub state: PblkState,
    /// At most so many free chunks: users stop.
    pub reserve_chunks: u64,
    /// At least so many free chunks: GC stops.
    pub high_chunks: u64,
    /// Free chunks at the last update.
    pub free_chunks: u64,
    /// Sectors still accepted once out of lines (`rb_space`).
    pub space_left: Option<u64>,
}

/// pblk's rate limiter.
#[derive(Clone, Debug)]
pub struct PblkLimiter {
    budget: u32,
    /// `high_pw` and `rb_windows_pw`.
    high_order: u32,
    windows_order: u32,
    last_user_insert: Option<Nanos>,
    gauges: PblkGauges,
}

impl PblkLimiter {
    /// A limiter with all chunks free and nothing in the buffer.
    ///
    /// # Panics
    /// If a limit is out of the bounds its field states.
    #[must_use]
    pub fn new(limits: PblkLimits) -> Self {
        let PblkLimits { budget, chunks, reserve_chunks, high_chunks_min } = limits;
        assert!(budget.is_power_of_two() && budget >= WINDOW, "a buffer of {budget} entries");
        assert!(chunks >= HIGH_PART, "an instance of {chunks} chunks has no eighth");
        let high_chunks = (chunks / HIGH_PART).max(high_chunks_min);
        assert!(reserve_chunks < chunks, "a reserve of {reserve_chunks} of {chunks} chunks");
        let gauges = PblkGauges {
            user_count: 0,
            user_max: budget,
            gc_count: 0,
            gc_max: 0,
            state: PblkState::High,
            reserve_chunks,
            high_chunks,
            free_chunks: chunks,
            space_left: None,
        };
        let high_order = high_chunks.next_power_of_two().trailing_zeros();
        let windows_order = (budget / WINDOW).trailing_zeros();
        Self { budget, high_order, windows_order, last_user_insert: None, gauges }
    }

    /// So many chunks are free now (`pblk_rl_update_rates`), and GC has something to move or not.
    pub fn update(&mut self, free_chunks: u64, gc_has_work: bool) {
        let gauges = &mut self.gauges;
        gauges.free_chunks = free_chunks;
        if free_chunks >= gauges.high_chunks {
            (gauges.user_max, gauges.gc_max, gauges.state) = (self.budget, 0, PblkState::High);
            return;
        }
        gauges.state = PblkState::Low;
        gauges.user_max = 0;
        if free_chunks > gauges.reserve_chunks {
            let windows = match self.high_order.checked_sub(self.windows_order) {
                Some(shift) => free_chunks >> shift,
                None => free_chunks << (self.windows_order - self.high_order),
            };
            let windows = u32::try_from(windows).expect("at most the windows of the budget");
            gauges.user_max = windows.max(u32::from(!gc_has_work)) * WINDOW;
        }
        assert!(gauges.user_max <= self.budget, "a share of {} of {}", gauges.user_max, self.budget);
        gauges.gc_max = self.budget - gauges.user_max;
    }

    /// Whether a user may insert `sectors` now (`pblk_rl_user_may_insert`).
    ///
    /// As in pblk the share is compared before the insert, so one request may pass it by its own size.
    #[must_use]
    pub fn may_insert_user(&self, sectors: u32) -> Admission {
        if self.gauges.space_left.is_some_and(|left| left < u64::from(sectors)) {
            Admission::OutOfLines
        } else if self.gauges.user_count >= self.gauges.user_max {
            Admission::Wait
        } else {
            Admission::Granted
        }
    }

    /// Whether GC may insert now (`pblk_rl_gc_may_insert`): below its share, or while users are gone.
    #[must_use]
    pub fn may_insert_gc(&self, now: Nanos) -> bool {
        self.gauges.gc_count < self.gauges.gc_max || self.user_idle(now)
    }

    /// Whether no user wrote for five seconds, or ever.
    #[must_use]
    pub fn user_idle(&self, now: Nanos) -> bool {
        self.last_user_insert.is_none_or(|at| now.saturating_since(at) >= USER_IDLE)
    }

    /// When users will count as gone, if they do not yet.
    #[must_use]
    pub fn deadline(&self, now: Nanos) -> Option<Nanos> {
        self.last_user_insert.filter(|_| !self.user_idle(now)).map(|at| at + USER_IDLE)
    }

    /// Whether GC takes victims (`pblk_gc_should_start`).
    #[must_use]
    pub fn gc_should_run(&self) -> bool {
        self.gauges.state == PblkState::Low
    }

    /// Whether space would be low with so many more free chunks.
    #[must_use]
    pub const fn is_low_with(&self, chunks: u64) -> bool {
        self.gauges.free_chunks + chunks < self.gauges.high_chunks
    }

    /// A user inserted `sectors` (`pblk_rl_user_in`, `pblk_rl_inserted`).
    ///
    /// # Panics
    /// If the buffer has no room for them, or the instance is out of lines and accepts fewer.
    pub fn on_user_inserted(&mut self, now: Nanos, sectors: u32) {
        assert!(self.last_user_insert.is_none_or(|at| at <= now), "a user wrote before an earlier write");
        self.gauges.user_count += sectors;
        self.last_user_insert = Some(now);
        self.on_inserted(sectors);
    }

    /// GC inserted `sectors` (`pblk_rl_gc_in`, `pblk_rl_inserted`).
    ///
    /// # Panics
    /// If the buffer has no room for them, or the instance is out of lines and accepts fewer.
    pub fn on_gc_inserted(&mut self, sectors: u32) {
        self.gauges.gc_count += sectors;
        self.on_inserted(sectors);
    }

    fn on_inserted(&mut self, sectors: u32) {
        let PblkGauges { user_count, gc_count, .. } = self.gauges;
        assert!(
            user_count + gc_count <= self.budget,
            "{user_count} and {gc_count} of {} entries",
            self.budget
        );
        if let Some(left) = &mut self.gauges.space_left {
            assert!(*left >= u64::from(sectors), "{sectors} sectors were inserted where {left} are left");
            *left -= u64::from(sectors);
        }
    }

    /// Entries of users and of GC were overwritten in the buffer (`pblk_rl_out`).
    ///
    /// # Panics
    /// If there were not so many.
    pub fn on_evicted(&mut self, user: u32, gc: u32) {
        let PblkGauges { user_count, gc_count, .. } = self.gauges;
        assert!(user <= user_count, "{user} of {user_count} entries of users were evicted");
        assert!(gc <= gc_count, "{gc} of {gc_count} entries of GC were evicted");
        self.gauges.user_count -= user;
        self.gauges.gc_count -= gc;
    }

    /// No line can be opened any more: only `sectors` are accepted from now on (`pblk_rl_set_space_limit`).
    ///
    /// # Panics
    /// If that was said before.
    pub fn limit_space(&mut self, sectors: u64) {
        assert!(self.gauges.space_left.is_none(), "the instance is out of lines already");
        self.gauges.space_left = Some(sectors);
    }

    /// What pblk shows in sysfs.
    #[must_use]
    pub const fn gauges(&self) -> PblkGauges {
        self.gauges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The drive of the LightNVM paper: 1067 lines of 128 chunks, a buffer of 16 384 entries.
    fn westlake() -> PblkLimiter {
        PblkLimiter::new(PblkLimits {
            budget: 16_384,
            chunks: 1_067 * 128,
            reserve_chunks: 128,
            high_chunks_min: 0,
        })
    }

    #[test]
    fn shares_follow_free_chunks_in_windows() {
        let mut limiter = westlake();
        for (free, user_max, gc_max, state) in [
            (136_576, 16_384, 0, PblkState::High),
            (17_072, 16_384, 0, PblkState::High),
            // The first cut is a cliff: 17 071 / 32 768 is 52 %.
            (17_071, 8_512, 7_872, PblkState::Low),
            (8_192, 4_096, 12_288, PblkState::Low),
            (129, 64, 16_320, PblkState::Low),
            (128, 0, 16_384, PblkState::Low),
            (0, 0, 16_384, PblkState::Low),
        ] {
            limiter.update(free, true);
            let gauges = limiter.gauges();
            assert_eq!(
                (gauges.user_max, gauges.gc_max, gauges.state),
                (user_max, gc_max, state),
                "{free} free"
            );
            assert_eq!(limiter.gc_should_run(), state == PblkState::Low, "{free} free");
        }
    }

    #[test]
    fn a_buffer_of_more_windows_than_free_chunks_is_shared_all_the_same() {
        let mut limiter = PblkLimiter::new(PblkLimits {
            budget: 8_192,
            chunks: 160,
            reserve_chunks: 2,
            high_chunks_min: 0,
        });
        // high is 20, its order 5; 128 windows have order 7.
        for (free, user_max) in [(20, 8_192), (19, 19 * 4 * 64), (3, 3 * 4 * 64), (2, 0)] {
            limiter.update(free, true);
            assert_eq!(limiter.gauges().user_max, user_max, "{free} free");
        }
    }

    #[test]
    fn a_buffer_of_one_window_is_users_while_nothing_can_be_moved() {
        let mut limiter =
            PblkLimiter::new(PblkLimits { budget: 64, chunks: 48, reserve_chunks: 28, high_chunks_min: 36 });
        for (free, gc_has_work, user_max) in
            [(36, true, 64), (35, true, 0), (35, false, 64), (29, false, 64), (28, false, 0)]
        {
            limiter.update(free, gc_has_work);
            let gauges = limiter.gauges();
            assert_eq!((gauges.user_max, gauges.gc_max), (user_max, 64 - user_max), "{free} free");
        }
    }

    #[test]
    fn users_wait_until_gc_evicts_their_entries() {
        let mut limiter = westlake();
        limiter.on_user_inserted(Nanos::ZERO, 16_384);
        assert_eq!(limiter.may_insert_user(1), Admission::Wait);
        limiter.update(8_192, true);
        for _ in 0..96 {
            assert_eq!(limiter.may_insert_user(1), Admission::Wait);
            assert!(limiter.may_insert_gc(Nanos::ZERO));
            // Each insert of GC takes the place of old entries, here of users.
            limiter.on_evicted(128, 0);
            limiter.on_gc_inserted(128);
        }
        assert_eq!((limiter.gauges().user_count, limiter.gauges().gc_count), (4_096, 12_288));
        assert!(!limiter.may_insert_gc(Nanos::ZERO), "GC has its share");
        limiter.on_evicted(64, 64);
        // The share is compared before the insert: a large request passes it.
        assert_eq!(limiter.may_insert_user(128), Admission::Granted);
        limiter.on_user_inserted(Nanos::ZERO, 128);
        assert_eq!(limiter.may_insert_user(1), Admission::Wait);
    }

    #[test]
    fn gc_may_exceed_its_share_once_users_are_gone() {
        let mut limiter = westlake();
        let at = |seconds| Nanos::from_secs(seconds);
        assert!(limiter.user_idle(at(0)) && limiter.may_insert_gc(at(0)), "nobody wrote yet");
        limiter.on_user_inserted(at(10), 1);
        for (now, idle, deadline) in [(10, false, Some(at(15))), (14, false, Some(at(15))), (15, true, None)]
        {
            assert_eq!(limiter.user_idle(at(now)), idle, "{now} s");
            assert_eq!(limiter.may_insert_gc(at(now)), idle, "{now} s");
            assert_eq!(limiter.deadline(at(now)), deadline, "{now} s");
        }
        limiter.on_user_inserted(at(20), 1);
        assert!(!limiter.may_insert_gc(at(20)));
    }

    #[test]
    fn out_of_lines_accepts_what_still_fits_and_no_more() {
        let mut limiter = westlake();
        limiter.limit_space(100);
        assert_eq!(limiter.may_insert_user(101), Admission::OutOfLines);
        assert_eq!(limiter.may_insert_user(60), Admission::Granted);
        limiter.on_user_inserted(Nanos::ZERO, 60);
        limiter.on_gc_inserted(30);
        assert_eq!(limiter.may_insert_user(11), Admission::OutOfLines);
        assert_eq!(limiter.gauges().space_left, Some(10));
    }

    #[test]
    fn space_is_low_below_an_eighth_of_all_chunks_or_the_least_asked_for() {
        let mut limiter = westlake();
        limiter.update(17_000, true);
        assert_eq!((limiter.is_low_with(71), limiter.is_low_with(72)), (true, false));
        let limits = PblkLimits { budget: 64, chunks: 160, reserve_chunks: 30, high_chunks_min: 40 };
        let mut small = PblkLimiter::new(limits);
        small.update(39, true);
        assert_eq!((small.gc_should_run(), small.is_low_with(0), small.is_low_with(1)), (true, true, false));
        small.update(40, true);
        assert!(!small.gc_should_run());
    }

    #[test]
    fn the_gauges_are_what_pblk_shows() {
        let mut limiter = westlake();
        limiter.update(8_192, true);
        limiter.on_user_inserted(Nanos::ZERO, 100);
        limiter.on_gc_inserted(30);
        limiter.on_evicted(9, 2);
        let mut expected = PblkGauges {
            user_count: 91,
            user_max: 4_096,
            gc_count: 28,
            gc_max: 12_288,
            state: PblkState::Low,
            reserve_chunks: 128,
            high_chunks: 17_072,
            free_chunks: 8_192,
            space_left: None,
        };
        assert_eq!(limiter.gauges(), expected);
        limiter.limit_space(10);
        expected.space_left = Some(10);
        assert_eq!(limiter.gauges(), expected);
        assert_eq!(
            [10, 11].map(|sectors| limiter.may_insert_user(sectors)),
            [Admission::Granted, Admission::OutOfLines]
        );
    }
}
