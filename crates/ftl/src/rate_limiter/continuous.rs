//! A rate limiter that gives users credit for what GC has done, at the rate that keeps free lines at a target.
//!
//! ```text
//! users' share of all writes
//!    1 |                              ________   at `start` and above GC is off, users are free
//!      |                          __--
//! 1-v  |- - - - - - - - - -  __*--                * at `target` users get what GC can sustain
//!      |               __--`
//!    0 |__________--`                             at `stop` and below all space is GC's
//!      +---------|-------------|------|--------> free lines, open lines and what is coming, in sectors
//!              stop         target  start
//! ```
//! Space is counted so that it changes by sectors and never by lines: when GC opens a line or a line is reset, nothing jumps.
//! On an instance of few lines, whose `stop` and `start` are two lines apart, users would else stand still at each line that GC
//! opens until several victims were emptied. GC itself begins by what is free already.
//!
//! Feed-forward: a victim with valid fraction `v` costs `v` lines of GC writes and yields `1 - v` lines to users, so the
//! share `1 - v` leaves free lines as they are. `v` is measured, as a moving average over victims. Feedback: the two
//! straight lines correct the share by the distance from the target; there is no integral term to wind up. At share `s`
//! each sector GC moves gives users `s / (1 - s)` sectors of credit, at most `burst` in all; a victim that moved less
//! than its gain is worth gives the rest when it is done, so that free victims release users too.
//!
//! Unlike pblk's, users never wait for GC while GC has nothing to do, unless space itself is at the reserve, and they
//! are released by what GC *reclaims*, not by entries being pushed out of a buffer. SPDK's second FTL throttles by the
//! measured rate of compaction in a similar way, but in time slices; this has no clock. All arithmetic is in integers
//! of 1/65536. Deliberately not here: pacing GC (it runs whenever it should).

use super::Situation;

/// A share of one: all numbers with a fraction are in units of `1 / ONE`.
const ONE: u64 = 1 << 16;

/// Largest measured valid fraction that is believed: 255/256. Chosen; users get at least 1/256 at the target.
const VALID_MAX: u64 = ONE - ONE / 256;

/// The valid fraction believed before the first victim. Chosen: with half, users and GC advance in step.
const VALID_AT_FIRST: u64 = ONE / 2;

/// Weight of a new victim in the moving average is `1 / 8`. Chosen: a change of workload is followed within 16 victims.
const AVERAGE_PART: u64 = 8;

/// Most user sectors per sector GC moved. Chosen: near `start` the ratio has no bound of its own.
const RATE_MAX: u64 = 256 * ONE;

/// What the limiter is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContinuousLimits {
    /// Data sectors of a line: 1 to 2^40.
    pub line_sectors: u64,
    /// At so many free lines users stop: what GC needs for itself.
    pub stop_lines: u64,
    /// Free lines the limiter steers to. Above `stop_lines`, better by two than by one.
    pub target_lines: u64,
    /// Below so many free lines GC begins. Above `target_lines`, at most 2^20.
    pub start_lines: u64,
    /// Most sectors users may insert without GC advancing: at least the largest request, at most 2^40.
    pub burst_sectors: u64,
}

/// What there is to see of the limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContinuousGauges {
    /// Users' share of all writes now, in 1/65536.
    pub user_share: u64,
    /// Valid fraction of recent victims, in 1/65536.
    pub victim_valid: u64,
    /// Sectors users may insert now.
    pub credit_sectors: u64,
    /// Free lines and the open lines of users, in sectors.
    pub free_sectors: u64,
    /// These, and what is coming.
    pub all_sectors: u64,
}

/// The limiter by credit.
#[derive(Clone, Debug)]
pub struct ContinuousLimiter {
    limits: ContinuousLimits,
    /// In sectors: free lines and what is left of users' open lines.
    free_sectors: u64,
    /// These, and what is coming: users' share follows it.
    all_sectors: u64,
    gc_has_work: bool,
    /// Measured valid fraction of victims; `None` before the first.
    victim_valid: Option<u64>,
    /// The share that follows from the last update.
    share: u64,
    /// User sectors per sector GC moves, that follow from the share.
    rate: u64,
    /// User sectors in units of `1 / ONE`.
    credit: u64,
}

impl ContinuousLimiter {
    /// A limiter that was told nothing: users are free.
    ///
    /// # Panics
    /// If a limit is out of the bounds its field states.
    #[must_use]
    pub fn new(limits: ContinuousLimits) -> Self {
        let ContinuousLimits { line_sectors, stop_lines, target_lines, start_lines, burst_sectors } = limits;
        assert!((1..=1 << 40).contains(&line_sectors), "lines of {line_sectors} sectors");
        assert!(stop_lines < target_lines, "stop at {stop_lines} free lines, target {target_lines}");
        assert!(target_lines < start_lines, "target of {target_lines} free lines, start at {start_lines}");
        assert!(start_lines <= 1 << 20, "start at {start_lines} free lines");
        assert!((1..=1 << 40).contains(&burst_sectors), "a burst of {burst_sectors} sectors");
        Self {
            limits,
            free_sectors: start_lines * line_sectors,
            all_sectors: start_lines * line_sectors,
            gc_has_work: false,
            victim_valid: None,
            share: ONE,
            rate: RATE_MAX,
            credit: burst_sectors * ONE,
        }
    }

    /// Free space or GC's work changed. Cost: none to speak of from `start` on, below it two wide divisions (some 50 ns:
    /// call it when a line or a write unit was taken, not for every sector).
    pub fn update(&mut self, situation: Situation) {
        let Situation { free_lines, open_user_sectors, coming_sectors, gc_has_work, .. } = situation;
        self.free_sectors = free_lines * self.limits.line_sectors + open_user_sectors;
        self.all_sectors = self.free_sectors + coming_sectors;
        assert!(self.all_sectors < 1 << 60, "{} sectors are free, more than any drive has", self.all_sectors);
        self.gc_has_work = gc_has_work;
        self.share = self.share_at(self.all_sectors);
        assert!(self.share <= ONE, "a share of {} / {ONE}", self.share);
        self.rate =
            (self.share * ONE).checked_div(ONE - self.share).map_or(RATE_MAX, |rate| rate.min(RATE_MAX));
        if self.is_free() {
            self.credit = self.limits.burst_sectors * ONE;
        }
    }

    /// The users' share of all writes at so many free sectors: zero up to `stop`, above zero beyond.
    fn share_at(&self, free_sectors: u64) -> u64 {
        let sectors = |lines: u64| lines * self.limits.line_sectors;
        let stop = sectors(self.limits.stop_lines);
        let target = sectors(self.limits.target_lines);
        let start = sectors(self.limits.start_lines);
        let sustained = self.sustained_share();
        if free_sectors <= stop {
            0
        } else if free_sectors <= target {
            scaled(sustained, free_sectors - stop, target - stop).max(1)
        } else if free_sectors < start {
            sustained + scaled(ONE - sustained, free_sectors - target, start - target)
        } else {
            ONE
        }
    }

    /// The share that leaves free lines as they are.
    fn sustained_share(&self) -> u64 {
        ONE - self.victim_valid.unwrap_or(VALID_AT_FIRST).min(VALID_MAX)
    }

    /// Whether users are at the reserve, which is GC's alone.
    fn is_at_reserve(&self) -> bool {
        self.all_sectors <= self.limits.stop_lines * self.limits.line_sectors
    }

    /// Whether users need not wait for GC: there is space enough, or GC cannot make any.
    fn is_free(&self) -> bool {
        !self.is_at_reserve() && (!self.gc_has_work || self.share == ONE)
    }

    /// Whether free space is so low that GC should take victims.
    #[must_use]
    pub fn gc_should_run(&self) -> bool {
        self.gc_has_work && self.free_sectors < self.limits.start_lines * self.limits.line_sectors
    }

    /// Whether space would be low with so many more free lines.
    #[must_use]
    pub const fn is_low_with(&self, lines: u64) -> bool {
        self.free_sectors + lines * self.limits.line_sectors
            < self.limits.start_lines * self.limits.line_sectors
    }

    /// Sectors users may insert now, at most the burst; zero at the reserve, also while GC has nothing to do there.
    #[must_use]
    pub fn user_credit(&self) -> u64 {
        if self.is_at_reserve() { 0 } else { self.credit / ONE }
    }

    /// Whether a user may insert `sectors` now.
    ///
    /// # Panics
    /// If that is more than the burst, which would wait for ever.
    #[must_use]
    pub fn may_insert_user(&self, sectors: u32) -> bool {
        let (sectors, burst) = (u64::from(sectors), self.limits.burst_sectors);
        assert!(sectors <= burst, "{sectors} sectors at once, but the burst is {burst}");
        sectors <= self.user_credit()
    }

    /// A user inserted `sectors`.
    ///
    /// # Panics
    /// If it had no credit for them.
    pub fn on_user_write(&mut self, sectors: u32) {
        let sectors = u64::from(sectors);
        assert!(sectors <= self.user_credit(), "{sectors} sectors with a credit of {}", self.user_credit());
        if !self.is_free() {
            self.credit -= sectors * ONE;
        }
    }

    /// GC wrote `sectors` it moved.
    pub fn on_gc_write(&mut self, sectors: u32) {
        self.give(u64::from(sectors) * self.rate);
    }

    /// A line of `sectors` data sectors was reclaimed, of which `valid` were moved (padding GC wrote may be counted).
    ///
    /// # Panics
    /// If the line has no sectors, more than 2^40, or fewer than valid ones.
    pub fn on_victim_done(&mut self, valid: u64, sectors: u64) {
        assert!((1..=1 << 40).contains(&sectors), "a victim of {sectors} sectors");
        assert!(valid <= sectors, "a victim of {sectors} sectors with {valid} valid ones");
        let measured = scaled(ONE, valid, sectors);
        let average = self.victim_valid.map_or(measured, |before| {
            // An eighth of the old goes, an eighth of the new comes: both at most an eighth of `ONE`.
            before - before / AVERAGE_PART + measured / AVERAGE_PART
        });
        assert!(average <= ONE, "a valid fraction of {average} / {ONE}");
        let gain = u128::from(sectors - valid) * u128::from(self.share) * u128::from(ONE);
        let worth = gain / u128::from(self.sustained_share());
        let given = u128::from(valid) * u128::from(self.rate);
        self.victim_valid = Some(average);
        let full = self.limits.burst_sectors * ONE;
        self.give(u64::try_from(worth.saturating_sub(given)).unwrap_or(full).min(full));
    }

    /// Adds to the credit, up to the burst.
    fn give(&mut self, credit: u64) {
        let full = self.limits.burst_sectors * ONE;
        self.credit = self.credit.saturating_add(credit).min(full);
        assert!(self.user_credit() <= self.limits.burst_sectors, "a burst beyond the one stated");
    }

    /// What there is to see.
    #[must_use]
    pub fn gauges(&self) -> ContinuousGauges {
        ContinuousGauges {
            user_share: self.share,
            victim_valid: self.victim_valid.unwrap_or(VALID_AT_FIRST),
            credit_sectors: self.user_credit(),
            free_sectors: self.free_sectors,
            all_sectors: self.all_sectors,
        }
    }
}

/// `whole * part / of`, rounded down. Exact: `whole` is at most `ONE`, `part` at most `of`.
fn scaled(whole: u64, part: u64, of: u64) -> u64 {
    assert!(part <= of && of > 0, "{part} of {of}");
    if let Some(product) = whole.checked_mul(part) {
        return product / of;
    }
    let product = u128::from(whole) * u128::from(part);
    u64::try_from(product / u128::from(of)).expect("at most the whole")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of 1 000 sectors; stop at 2, target 4, start at 6; a burst of 64.
    fn limiter() -> ContinuousLimiter {
        ContinuousLimiter::new(ContinuousLimits {
            line_sectors: 1_000,
            stop_lines: 2,
            target_lines: 4,
            start_lines: 6,
            burst_sectors: 64,
        })
    }

    fn situation(free_lines: u64, open_user_sectors: u64, gc_has_work: bool) -> Situation {
        Situation { free_chunks: 0, free_lines, open_user_sectors, coming_sectors: 0, gc_has_work }
    }

    #[test]
    fn the_share_is_the_sustained_one_at_the_target_and_straight_to_both_sides() {
        let mut limiter = limiter();
        // Three quarters valid: a quarter is sustained.
        limiter.on_victim_done(750, 1_000);
        for (lines, sectors, share) in [
            (0, 0, 0),
            (2, 0, 0),
            (2, 1, 8),
            (3, 0, ONE / 8),
            (4, 0, ONE / 4),
            (4, 500, ONE / 4 + ONE * 3 / 16),
            (5, 0, ONE * 5 / 8),
            (6, 0, ONE),
            (1_000, 0, ONE),
        ] {
            limiter.update(situation(lines, sectors, true));
            assert_eq!(limiter.gauges().user_share, share, "{lines} lines and {sectors} sectors");
            assert_eq!(limiter.gc_should_run(), lines < 6);
        }
    }

    #[test]
    fn credit_follows_what_gc_moves_and_stops_at_the_burst() {
        let mut limiter = limiter();
        limiter.on_victim_done(750, 1_000);
        limiter.update(situation(4, 0, true));
        assert_eq!(limiter.user_credit(), 64, "what was left of the time before");
        limiter.on_user_write(64);
        for (moved, credit) in [(2, 0), (2, 1), (30, 11), (1_000, 64)] {
            limiter.on_gc_write(moved);
            assert_eq!(limiter.user_credit(), credit, "after {moved} more");
        }
        assert!(limiter.may_insert_user(64));
        limiter.on_user_write(60);
        assert_eq!((limiter.may_insert_user(4), limiter.may_insert_user(5)), (true, false));
    }

    #[test]
    fn users_are_free_while_gc_has_nothing_to_do_above_the_reserve() {
        let mut limiter = limiter();
        for (lines, sectors, gc_has_work, credit) in
            [(2, 1, false, 64), (6, 0, true, 64), (2, 0, false, 0), (0, 0, false, 0)]
        {
            limiter.update(situation(lines, sectors, gc_has_work));
            for _ in 0..100 {
                assert_eq!(limiter.user_credit(), credit, "{lines} lines and {sectors} sectors");
                limiter.on_user_write(u32::try_from(credit).unwrap());
            }
        }
    }

    #[test]
    fn the_reserve_holds_back_credit_that_was_given_before() {
        let mut limiter = limiter();
        limiter.update(situation(3, 0, true));
        assert_eq!(limiter.user_credit(), 64);
        limiter.update(situation(2, 0, true));
        limiter.on_gc_write(1_000);
        assert_eq!((limiter.user_credit(), limiter.may_insert_user(1)), (0, false));
        limiter.update(situation(2, 1, true));
        assert_eq!(limiter.user_credit(), 64);
    }

    #[test]
    fn what_is_coming_counts_for_users_and_does_not_keep_gc_from_running() {
        let mut limiter = limiter();
        limiter.on_victim_done(750, 1_000);
        // GC opens a line, and empties it into it; a victim becomes free: space is the same throughout.
        for (lines, open, coming) in [(4, 0, 0), (3, 0, 1_000), (2, 500, 1_500), (0, 0, 4_000)] {
            let told = Situation { coming_sectors: coming, ..situation(lines, open, true) };
            limiter.update(told);
            let gauges = limiter.gauges();
            assert_eq!((gauges.user_share, gauges.all_sectors), (ONE / 4, 4_000), "{told:?}");
            assert!(limiter.user_credit() > 0 && limiter.gc_should_run(), "{told:?}");
        }
        limiter.update(Situation { coming_sectors: 9_000, ..situation(0, 0, true) });
        assert!(limiter.gc_should_run(), "nothing is free yet");
        assert_eq!(limiter.gauges().user_share, ONE);
    }

    #[test]
    fn victims_without_valid_sectors_release_users_though_nothing_is_moved() {
        let mut limiter = limiter();
        limiter.update(situation(3, 0, true));
        limiter.on_user_write(64);
        for _ in 0..20 {
            assert_eq!(limiter.user_credit(), 0);
            limiter.on_victim_done(0, 1_000);
            assert_eq!(limiter.user_credit(), 64);
            limiter.on_user_write(64);
        }
        assert_eq!(limiter.gauges().victim_valid, 0);
    }

    #[test]
    fn the_measured_fraction_follows_a_change_and_is_never_believed_to_be_one() {
        let mut limiter = limiter();
        limiter.on_victim_done(100, 1_000);
        assert_eq!(limiter.gauges().victim_valid, ONE / 10);
        for _ in 0..16 {
            limiter.on_victim_done(900, 1_000);
        }
        let valid = limiter.gauges().victim_valid;
        assert!((ONE * 79 / 100..ONE * 9 / 10).contains(&valid), "{valid}");
        for _ in 0..200 {
            limiter.on_victim_done(1_000, 1_000);
        }
        limiter.update(situation(4, 0, true));
        assert_eq!(limiter.gauges().user_share, ONE / 256);
    }

    /// As [`limiter`], with a burst that no test reaches, used up; three quarters of a first victim were valid.
    fn patient(lines: u64, sectors: u64) -> ContinuousLimiter {
        let limits = ContinuousLimits { burst_sectors: 10_000, ..limiter().limits };
        let mut limiter = ContinuousLimiter::new(limits);
        limiter.on_victim_done(750, 1_000);
        limiter.update(situation(lines, sectors, true));
        limiter.on_user_write(10_000);
        assert_eq!(limiter.user_credit(), 0);
        limiter
    }

    #[test]
    fn a_victim_that_moved_less_than_its_gain_is_worth_gives_the_rest() {
        // At the target 500 sectors are gained; a third as many as were moved was given already.
        let mut limiter = patient(4, 0);
        limiter.on_victim_done(500, 1_000);
        assert_eq!(limiter.user_credit(), 333);
        assert_eq!(limiter.gauges().victim_valid, ONE * 3 / 4 - ONE * 3 / 32 + ONE / 16, "an eighth is new");
        // Half way to the stop the gain is worth half; a seventh was given.
        let mut limiter = patient(3, 0);
        limiter.on_victim_done(500, 1_000);
        assert_eq!(limiter.user_credit(), 178);
        // Moving it gave more than it gained.
        let mut limiter = patient(4, 0);
        limiter.on_victim_done(900, 1_000);
        assert_eq!(limiter.user_credit(), 0);
    }

    #[test]
    fn near_the_start_a_moved_sector_gives_256() {
        let limits = ContinuousLimits { line_sectors: 1 << 20, burst_sectors: 1_000, ..limiter().limits };
        let mut limiter = ContinuousLimiter::new(limits);
        limiter.update(situation(5, (1 << 20) - 1, true));
        limiter.on_user_write(1_000);
        for credit in [256, 512, 768, 1_000] {
            limiter.on_gc_write(1);
            assert_eq!(limiter.user_credit(), credit);
        }
    }

    #[test]
    fn before_the_first_victim_half_is_believed_to_be_valid() {
        let mut limiter = limiter();
        limiter.update(situation(4, 0, true));
        let expected = ContinuousGauges {
            user_share: ONE / 2,
            victim_valid: ONE / 2,
            credit_sectors: 64,
            free_sectors: 4_000,
            all_sectors: 4_000,
        };
        assert_eq!(limiter.gauges(), expected);
    }

    #[test]
    fn space_is_low_below_the_start_and_gc_runs_if_it_has_work() {
        let mut limiter = limiter();
        for (lines, sectors, more, is_low) in [
            (4, 0, 0, true),
            (4, 0, 1, true),
            (4, 0, 2, false),
            (5, 999, 0, true),
            (5, 999, 1, false),
            (6, 0, 0, false),
        ] {
            for gc_has_work in [true, false] {
                limiter.update(situation(lines, sectors, gc_has_work));
                assert_eq!(
                    limiter.is_low_with(more),
                    is_low,
                    "{lines} lines, {sectors} sectors, {more} more"
                );
                let runs = gc_has_work && limiter.is_low_with(0);
                assert_eq!(limiter.gc_should_run(), runs, "{lines} lines and {sectors} sectors");
            }
        }
    }
}
