//! Time as integer nanoseconds since the start of a run.
//!
//! Deliberately not here: reading a clock. `now` is an argument everywhere below `engine`.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A point in time or a duration, in nanoseconds; a run starts at zero.
///
/// 64 bits last 584 years, so arithmetic is plain and an overflow is a bug (overflow checks stay on).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The start of a run, or no time at all.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(u64::MAX);

    /// `count` microseconds.
    #[must_use]
    pub const fn from_micros(count: u64) -> Self {
        Self(count * 1_000)
    }

    /// `count` milliseconds.
    #[must_use]
    pub const fn from_millis(count: u64) -> Self {
        Self(count * 1_000_000)
    }

    /// `count` seconds.
    #[must_use]
    pub const fn from_secs(count: u64) -> Self {
        Self(count * 1_000_000_000)
    }

    /// In seconds, for reports only.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "reports show at most nine digits")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to `self`, or zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// How long `bytes` take at `bytes_per_second`, rounded up to a nanosecond.
    ///
    /// # Panics
    /// If the rate is zero, or the result does not fit 64 bits.
    #[must_use]
    pub fn for_bytes(bytes: u64, bytes_per_second: u64) -> Self {
        assert!(bytes_per_second > 0, "a transfer needs a rate above zero");
        let nanos = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_second));
        Self(u64::try_from(nanos).expect("a transfer shorter than 584 years"))
    }
}

/// How long transfers of whole units take at one rate: a table for the short ones, so that no division is on the I/O
/// path.
#[derive(Clone, Debug)]
pub struct TransferTimes {
    unit_bytes: u64,
    bytes_per_second: u64,
    extra: Nanos,
    table: Box<[Nanos; Self::TABLED]>,
}

impl TransferTimes {
    /// Longest transfer in the table: a vector command is at most 64 sectors.
    const TABLED: usize = 65;

    /// Units of `unit_bytes` at `bytes_per_second`, each transfer with `extra` on top.
    ///
    /// # Panics
    /// If the rate is zero.
    #[must_use]
    pub fn new(unit_bytes: u64, bytes_per_second: u64, extra: Nanos) -> Self {
        let mut table = Box::new([extra; Self::TABLED]);
        for (place, units) in table.iter_mut().zip(0..) {
            *place += Nanos::for_bytes(unit_bytes * units, bytes_per_second);
        }
        Self { unit_bytes, bytes_per_second, extra, table }
    }

    /// How long `units` take.
    #[must_use]
    #[inline]
    pub fn of(&self, units: u32) -> Nanos {
        let index = usize::try_from(units).expect("32 bits fit an index");
        let computed =
            || self.extra + Nanos::for_bytes(self.unit_bytes * u64::from(units), self.bytes_per_second);
        self.table.get(index).copied().unwrap_or_else(computed)
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Nanos {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}

impl fmt::Display for Nanos {
    /// Three significant places in the largest unit that keeps the number above one: `73.1 us`.
    #[expect(clippy::cast_precision_loss, reason = "shown with one to three decimals")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.1} us", nanos / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.2} ms", nanos / 1e6),
            _ => write!(f, "{:.3} s", nanos / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_rounded_up() {
        assert_eq!(Nanos::for_bytes(4096, 280_000_000), Nanos(14_629));
        assert_eq!(Nanos::for_bytes(0, 1), Nanos::ZERO);
        assert_eq!(Nanos::for_bytes(1, 1_000_000_000), Nanos(1));
    }

    #[test]
    fn tabled_and_computed_transfers_agree() {
        let times = TransferTimes::new(4112, 281_100_000, Nanos(3_000));
        for units in [0, 1, 16, 64, 65, 4096] {
            let expected = Nanos(3_000) + Nanos::for_bytes(4112 * u64::from(units), 281_100_000);
            assert_eq!(times.of(units), expected, "{units} units");
        }
    }

    #[test]
    fn a_time_is_shown_in_its_own_unit() {
        let shown: Vec<String> = [Nanos(7), Nanos(73_100), Nanos::from_millis(5), Nanos::from_secs(2)]
            .map(|n| n.to_string())
            .into();
        assert_eq!(shown, ["7 ns", "73.1 us", "5.00 ms", "2.000 s"]);
    }
}
