//! A clock that is chosen when a drive is opened: virtual or the machine's.
//!
//! Deliberately not here: what waits for it.

use crate::clock::{Clock, Lateness, VirtualClock, WallClock};
use ocssd_base::Nanos;

/// Either clock.
#[derive(Clone, Debug)]
pub enum DriveClock {
    /// Passes when the library waits.
    Virtual(VirtualClock),
    /// Passes by itself.
    Wall(Box<WallClock>),
}

impl DriveClock {
    /// True if time passes only by waiting.
    #[must_use]
    pub const fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual(_))
    }

    /// It is `at` now, if that is later: what took no time of this clock has passed.
    pub fn jump_to(&mut self, at: Nanos) {
        match self {
            Self::Virtual(clock) => clock.wait_until(at),
            Self::Wall(clock) if clock.now() < at => **clock = WallClock::starting_at(at),
            Self::Wall(_) => {}
        }
    }
}

impl Clock for DriveClock {
    // Not known when this is compiled; saying no is always right, and costs a question per turn.
    const IS_VIRTUAL: bool = false;

    fn now(&self) -> Nanos {
        match self {
            Self::Virtual(clock) => clock.now(),
            Self::Wall(clock) => clock.now(),
        }
    }

    fn wait_until(&mut self, at: Nanos) {
        match self {
            Self::Virtual(clock) => clock.wait_until(at),
            Self::Wall(clock) => clock.wait_until(at),
        }
    }

    fn lateness(&self) -> Option<Lateness> {
        match self {
            Self::Virtual(clock) => clock.lateness(),
            Self::Wall(clock) => clock.lateness(),
        }
    }

    fn late_samples(&self) -> Vec<(Nanos, u64)> {
        match self {
            Self::Virtual(clock) => clock.late_samples(),
            Self::Wall(clock) => clock.late_samples(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_jump_forward_only() {
        let clocks = [DriveClock::Virtual(VirtualClock::default()), DriveClock::Wall(Box::default())];
        for mut clock in clocks {
            clock.jump_to(Nanos::from_millis(60_000));
            let now = clock.now();
            assert!(now >= Nanos::from_millis(60_000));
            clock.jump_to(Nanos(5));
            assert!(clock.now() >= now);
        }
    }
}
