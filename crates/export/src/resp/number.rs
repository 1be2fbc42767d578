//! Numbers as Redis reads and writes them: integers of 64 bits in their one spelling, and decimal fractions.
//!
//! Fractions are added exactly, with 17 digits behind the point; Redis adds `long double` and prints as many.

/// Digits behind the point that are kept: what Redis prints of a `long double` (`%.17Lf`).
const FRACTION_DIGITS: u32 = 17;

/// One, as a fraction is counted.
const ONE: i128 = 10_i128.pow(FRACTION_DIGITS);

/// Digits before the point up to which a fraction is exact: with those behind it they fit 127 bits, also summed.
const WHOLE_DIGITS_MAX: usize = 20;

/// Longest text that is taken for a decimal number (chosen: more than the longest that a double prints as, 327 bytes).
const DECIMAL_BYTES_MAX: usize = 512;

/// An integer in its one spelling: no sign `+`, no zeroes before it, no spaces.
#[must_use]
pub fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_spelt = match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.len() < 19 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !is_spelt {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A decimal number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decimal {
    /// In units of `10^-17`.
    Exact(i128),
    /// One beyond that, as near as 64 bits come; maybe infinite, never NaN.
    Near(f64),
}

impl Decimal {
    /// Reads one; `None` if it is none. Takes an exponent and infinity, as C does, but no spaces.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        // Before a look at all of it: it may be any value, of megabytes.
        if text.is_empty() || text.len() > DECIMAL_BYTES_MAX {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        let near: f64 = text.parse().ok()?;
        if near.is_nan() {
            return None;
        }
        Some(exact(text).map_or(Self::Near(near), Self::Exact))
    }

    /// The sum; `None` if it is no number any more.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        if let (Self::Exact(one), Self::Exact(two)) = (self, other) {
            return one.checked_add(two).map(Self::Exact);
        }
        let sum = self.near() + other.near();
        sum.is_finite().then_some(Self::Near(sum))
    }

    #[expect(clippy::cast_precision_loss, reason = "as near as 64 bits come is what is asked for")]
    fn near(self) -> f64 {
        match self {
            Self::Exact(units) => units as f64 / ONE as f64,
            Self::Near(near) => near,
        }
    }

    /// Its one spelling: no exponent, and no zeroes at the end of a fraction.
    #[must_use]
    pub fn print(self) -> String {
        match self {
            Self::Near(near) => format!("{near}"),
            Self::Exact(units) => {
                let sign = if units < 0 { "-" } else { "" };
                let units = units.unsigned_abs();
                let (whole, fraction) = (units / ONE.unsigned_abs(), units % ONE.unsigned_abs());
                if fraction == 0 {
                    return format!("{sign}{whole}");
                }
                let fraction = format!("{fraction:017}");
                format!("{sign}{whole}.{}", fraction.trim_end_matches('0'))
            }
        }
    }
}

/// A number without exponent in units of `10^-17`, rounded to those; `None` if it has an exponent or is too large.
fn exact(text: &str) -> Option<i128> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() > WHOLE_DIGITS_MAX || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let mut units: i128 = if whole.is_empty() { 0 } else { whole.parse::<i128>().ok()? * ONE };
    let mut worth = ONE;
    for digit in fraction.bytes().map(|byte| i128::from(byte - b'0')) {
        worth /= 10;
        if worth == 0 {
            units += i128::from(digit >= 5);
            break;
        }
        units += digit * worth;
    }
    Some(if is_negative { -units } else { units })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_spelling() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("99999999999999999999", None),
            ("-0", None),
            ("+1", None),
            ("01", None),
            (" 1", None),
            ("1 ", None),
            ("", None),
            ("-", None),
            ("1.0", None),
        ] {
            assert_eq!(integer(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn fractions_are_added_exactly() {
        for (one, other, sum) in [
            ("1", "-1.1", "-0.1"),
            ("1.5", "1.5", "3"),
            ("17179869184", "1.5", "17179869185.5"),
            ("0.024390243902439025", "-0.024390243902439025", "0"),
            ("3", "1.1", "4.1"),
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "200", "5200"),
            (".5", "-.25", "0.25"),
            ("0.00000000000000001", "0", "0.00000000000000001"),
        ] {
            let (one, other) = (Decimal::parse(one.as_bytes()), Decimal::parse(other.as_bytes()));
            assert_eq!(one.unwrap().plus(other.unwrap()).unwrap().print(), sum);
        }
    }

    #[test]
    fn what_is_no_number_is_refused_and_infinity_is_no_sum() {
        for text in ["", " 11", "11 ", "1\u{0}2", "abc", "nan", "1.2.3", "--1", "\u{ff}"] {
            assert_eq!(Decimal::parse(text.as_bytes()), None, "{text:?}");
        }
        let infinite = Decimal::parse(b"+inf").unwrap();
        assert_eq!(infinite.plus(Decimal::Exact(0)), None);
        let large = Decimal::parse(b"1e300").unwrap();
        assert!(large.plus(Decimal::Exact(ONE)).is_some());
    }
}
