//! Which sample a percentile is: fio's rule, in fio's arithmetic.
//!
//! fio takes the first bucket at which the running count reaches `p / 100 * samples`, in x86's 80-bit floats, and its
//! build lets the compiler turn that into `p * (samples * 0.01)`. The rounding is visible: 0.1 % of 1 000 samples is
//! sample 2, because the double nearest to 0.1 is a little larger than 0.1; in doubles it would be sample 1. So the
//! same 64-bit mantissas are computed here with integers, and the result is the same on every machine. Source: the
//! formula of fio 3.33 and the order of operations in Debian's build of it; `tests/fio_json.rs` compares.

use std::fmt;

/// How many percentiles a list holds at most (fio: `FIO_IO_U_LIST_MAX_LEN`).
pub const PERCENTILES_MAX: usize = 20;
/// The smallest percentile told apart from zero: fio prints six decimals.
const PERCENT_MIN: f64 = 0.000_001;
/// fio's default `percentile_list`.
const FIO_DEFAULT: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// A `percentile_list`: percentiles from 0.000001 to 100, rising, at most [`PERCENTILES_MAX`].
#[derive(Clone, Debug, PartialEq)]
pub struct PercentileList(Vec<f64>);

/// Why a list of percentiles was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum PercentileError {
    /// More than [`PERCENTILES_MAX`] entries: how many there were.
    TooMany(usize),
    /// An entry that is no percentile: below 0.000001, above 100, or not a number.
    OutOfRange(f64),
}

impl fmt::Display for PercentileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(count) => write!(
                f,
                "percentile_list takes at most {PERCENTILES_MAX} values and has {count}; remove {}",
                count - PERCENTILES_MAX
            ),
            Self::OutOfRange(value) => write!(
                f,
                "percentile_list takes values from 0.000001 to 100 and has {value}; write 99.9 for the 99.9th percentile"
            ),
        }
    }
}

impl std::error::Error for PercentileError {}

impl PercentileList {
    /// A list in any order; it is sorted, as fio does.
    ///
    /// # Errors
    /// [`PercentileError`] if the list is too long or an entry is outside its bounds.
    pub fn new(mut percents: Vec<f64>) -> Result<Self, PercentileError> {
        if percents.len() > PERCENTILES_MAX {
            return Err(PercentileError::TooMany(percents.len()));
        }
        if let Some(&bad) = percents.iter().find(|p| !(PERCENT_MIN..=100.0).contains(*p)) {
            return Err(PercentileError::OutOfRange(bad));
        }
        percents.sort_by(f64::total_cmp);
        Ok(Self(percents))
    }

    /// The percentiles, rising.
    #[must_use]
    pub fn as_slice(&self) -> &[f64] {
        &self.0
    }
}

impl Default for PercentileList {
    /// fio's default list, from 1 to 99.99.
    fn default() -> Self {
        Self(FIO_DEFAULT.to_vec())
    }
}

/// How many samples, counted from the smallest, percentile `percent` of `count` samples includes: 1 to `count`.
///
/// # Panics
/// If there are no samples.
pub(super) fn rank(percent: f64, count: u64) -> u64 {
    assert!(count > 0, "no samples, no percentiles");
    let hundredth_of_samples = HUNDREDTH.times(count, 0);
    let (mantissa, exponent) = mantissa_and_exponent(percent);
    let rank = hundredth_of_samples.times(mantissa, exponent).ceil();
    rank.clamp(1, count)
}

/// The 80-bit float nearest to 0.01.
const HUNDREDTH: Extended = Extended { mantissa: 0xA3D7_0A3D_70A3_D70A, exponent: -70 };

/// A positive normal double as `mantissa * 2^exponent`, exact.
fn mantissa_and_exponent(number: f64) -> (u64, i32) {
    let bits = number.to_bits();
    let biased = i32::try_from(bits >> 52).expect("positive, so 11 bits");
    assert!(biased > 0, "{number} is a normal number");
    ((bits & ((1 << 52) - 1)) | (1 << 52), biased - 1075)
}

/// A positive number `mantissa * 2^exponent`, as x86's 80-bit floats hold it.
#[derive(Clone, Copy)]
struct Extended {
    mantissa: u64,
    exponent: i32,
}

impl Extended {
    /// The product with `mantissa * 2^exponent`, rounded once to the nearest, ties to even.
    fn times(self, mantissa: u64, exponent: i32) -> Self {
        let value = u128::from(self.mantissa) * u128::from(mantissa);
        let exponent = self.exponent + exponent;
        let excess = (128 - value.leading_zeros()).saturating_sub(64);
        if excess == 0 {
            return Self { mantissa: u64::try_from(value).expect("64 bits"), exponent };
        }
        let half = 1_u128 << (excess - 1);
        let rest = value & (2 * half - 1);
        let kept = value >> excess;
        let is_up = rest > half || (rest == half && kept % 2 == 1);
        let exponent = exponent + i32::try_from(excess).expect("at most 64");
        match u64::try_from(kept + u128::from(is_up)) {
            Ok(mantissa) => Self { mantissa, exponent },
            Err(_) => Self { mantissa: 1 << 63, exponent: exponent + 1 },
        }
    }

    /// The least integer that is not smaller; saturates at 64 bits.
    fn ceil(self) -> u64 {
        let wide = u128::from(self.mantissa);
        let shift = self.exponent.unsigned_abs();
        let integer = match self.exponent {
            0.. => wide.checked_shl(shift).unwrap_or(u128::MAX),
            // Below 2^-63 the whole mantissa is a fraction, and any fraction counts as one.
            _ if shift >= 64 => 1,
            _ => wide.div_ceil(1 << shift),
        };
        u64::try_from(integer).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with numpy's `longdouble` (80-bit) on x86. In doubles the first three differ, in exact fractions the
    /// next three.
    const RANKS: [(f64, u64, u64); 21] = [
        (0.1, 1_000, 2),
        (0.8, 1_000, 9),
        (99.95, 2_000, 2_000),
        (49.65, 140_723_319_171_428, 69_869_127_968_614),
        (86.97, 10_741_649_970_283_491, 9_342_012_979_155_552),
        (89.92, 11_543_644_366_998_871, 10_380_045_014_805_385),
        (15.0, 100, 15),
        (54.0, 100, 54),
        (30.0, 100, 30),
        (33.0, 10_000_000_000_000, 3_300_000_000_000),
        (100.0, 9_007_199_254_740_993, 9_007_199_254_740_993),
        (99.5, 1 << 63, 9_177_255_176_670_501_929),
        (99.9, 1_000, 1_000),
        (99.9, 10_000, 9_991),
        (99.99, 10_000, 9_999),
        (50.0, 3, 2),
        (50.0, 2, 1),
        (1.0, 1, 1),
        (0.000_001, 5, 1),
        (99.9, 1_000_000_000_000_000, 999_000_000_000_001),
        (100.0, u64::MAX, u64::MAX - 1),
    ];

    #[test]
    fn ranks_are_those_of_80_bit_floats() {
        for (percent, count, expected) in RANKS {
            assert_eq!(rank(percent, count), expected, "p{percent} of {count}");
        }
    }

    #[test]
    fn the_hundredth_percentile_is_the_last_sample() {
        for count in [1, 2, 3, 1_000, 1_000_000_000_000, (1 << 53) + 1] {
            assert_eq!(rank(100.0, count), count);
        }
    }

    #[test]
    fn a_list_is_sorted() {
        let list = PercentileList::new(vec![99.9, 50.0, 99.0]).unwrap();
        assert_eq!(list.as_slice(), [50.0, 99.0, 99.9]);
    }

    #[test]
    fn what_is_no_percentile_is_refused_with_a_sentence() {
        for bad in [0.0, -1.0, 100.1, f64::NAN, f64::INFINITY, 1e-9] {
            let error = PercentileList::new(vec![50.0, bad]).expect_err("out of range");
            assert!(error.to_string().contains("from 0.000001 to 100"), "{error}");
        }
        let error = PercentileList::new(vec![50.0; 21]).expect_err("too long");
        assert_eq!(error, PercentileError::TooMany(21));
        assert!(error.to_string().ends_with("has 21; remove 1"), "{error}");
    }
}
