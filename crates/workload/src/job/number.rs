//! fio's numbers: whole numbers with size suffixes, times with unit suffixes, percentages and zones.
//!
//! Source: fio 3.33 HOWTO, "Parameter types". Stricter than fio in one way: a suffix that fio does not know is an
//! error here, where fio drops it (it reads `1.5g` as 1 byte). Deliberately not here: lists of numbers.

use ocssd_base::Nanos;

use super::expression;
use super::pattern::Amount;

/// fio `kb_base`: whether `k` is 1024 or 1000; `ki` is always the other one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KbBase {
    /// `k` is 1024 and `ki` is 1000 (fio's default, for old scripts).
    #[default]
    Binary,
    /// `k` is 1000 and `ki` is 1024, as the standards have it.
    Decimal,
}

/// The unit of a time without suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds, for instance `runtime`.
    Seconds,
    /// Microseconds, for instance `thinktime`.
    Micros,
}

/// Reads a whole number with an optional size suffix, or an expression in parentheses.
///
/// # Errors
/// A sentence naming what is wrong with it.
pub fn parse_integer(text: &str, kb_base: KbBase) -> Result<u64, String> {
    let text = text.trim();
    if text.starts_with('(') {
        let value = expression::evaluate(text, &|atom| suffixed(atom, kb_base))?;
        return u64::try_from(value)
            .map_err(|_| format!("expected a result from 0 to {}, but it is {value}", u64::MAX));
    }
    suffixed(text, kb_base)
}

/// Reads a size: a number, a percentage (`10%`) or zones (`2z`).
///
/// # Errors
/// A sentence naming what is wrong with it.
pub fn parse_amount(text: &str, kb_base: KbBase) -> Result<Amount, String> {
    let text = text.trim();
    if let Some(percent) = text.strip_suffix('%') {
        let value: Option<u8> = percent.trim().parse().ok().filter(|value| *value <= 100);
        return value.map(Amount::Percent).ok_or_else(|| "expected a percentage from 0% to 100%".to_owned());
    }
    if let Some(zones) = text.strip_suffix(['z', 'Z']) {
        let value = zones.parse().map_err(|_| "expected a whole number of zones, such as 2z".to_owned())?;
        return Ok(Amount::Zones(value));
    }
    parse_integer(text, kb_base).map(Amount::Bytes)
}

/// Reads a time; without a suffix it is in `default_unit`. In an expression the unit is the microsecond, as in fio.
///
/// # Errors
/// A sentence naming what is wrong with it.
pub fn parse_time(text: &str, default_unit: TimeUnit) -> Result<Nanos, String> {
    let text = text.trim();
    let micros = if text.starts_with('(') {
        let value = expression::evaluate(text, &|atom| time_micros(atom, TimeUnit::Micros))?;
        u64::try_from(value)
            .map_err(|_| format!("expected a time of 0 or more, but it is {value} microseconds"))?
    } else {
        time_micros(text, default_unit)?
    };
    micros.checked_mul(1000).map(Nanos).ok_or_else(|| "expected a time below 584 years".to_owned())
}

/// Digits (decimal, or hexadecimal after 0x) and what follows them.
fn split_number(text: &str) -> Result<(u64, &str), String> {
    let expected = || format!("expected a whole number, but found `{text}`");
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((text, 10), |rest| (rest, 16));
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, suffix) = digits.split_at(end);
    if digits.is_empty() || suffix.starts_with('.') {
        return Err(expected());
    }
    let value = u64::from_str_radix(digits, radix)
        .map_err(|_| format!("expected a number below 2^64, but found `{digits}`"))?;
    Ok((value, suffix))
}

fn suffixed(text: &str, kb_base: KbBase) -> Result<u64, String> {
    let (value, suffix) = split_number(text)?;
    let factor = size_factor(suffix, kb_base).ok_or_else(|| {
        format!("expected a number with suffix k, m, g, t or p (or ki, mi, gi, ti, pi), but found the suffix `{suffix}`")
    })?;
    value.checked_mul(factor).ok_or_else(|| format!("expected a number below 2^64, but found `{text}`"))
}

fn size_factor(suffix: &str, kb_base: KbBase) -> Option<u64> {
    let lower = suffix.to_ascii_lowercase();
    let prefix = lower.strip_suffix('b').unwrap_or(&lower);
    let (prefix, other) = prefix.strip_suffix('i').map_or((prefix, false), |rest| (rest, true));
    let power = match prefix {
        "" if !other => return Some(1),
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    let base: u64 = if (kb_base == KbBase::Binary) == other { 1000 } else { 1024 };
    Some(base.pow(power))
}

fn time_micros(text: &str, default_unit: TimeUnit) -> Result<u64, String> {
    let (value, suffix) = split_number(text)?;
    let factor: u64 = match suffix.to_ascii_lowercase().as_str() {
        "" if default_unit == TimeUnit::Micros => 1,
        "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "" | "s" | "sec" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => {
            return Err(format!(
                "expected a time with suffix us, ms, s, m, h or d, but found the suffix `{suffix}`"
            ));
        }
    };
    value.checked_mul(factor).ok_or_else(|| "expected a time below 584 years".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_follow_kb_base() {
        let cases: [(&str, u64, u64); 12] = [
            ("4096", 4096, 4096),
            ("4k", 4096, 4000),
            ("4K", 4096, 4000),
            ("4kB", 4096, 4000),
            ("4ki", 4000, 4096),
            ("4KiB", 4000, 4096),
            ("1m", 1 << 20, 1_000_000),
            ("1g", 1 << 30, 1_000_000_000),
            ("1t", 1 << 40, 1_000_000_000_000),
            ("1p", 1 << 50, 1_000_000_000_000_000),
            ("0x1000", 4096, 4096),
            ("(2*4k+1)", 8193, 8001),
        ];
        for (text, binary, decimal) in cases {
            assert_eq!(parse_integer(text, KbBase::Binary), Ok(binary), "{text}");
            assert_eq!(parse_integer(text, KbBase::Decimal), Ok(decimal), "{text}");
        }
    }

    #[test]
    fn what_is_no_integer_says_so() {
        let cases = [
            ("", "whole number"),
            ("k", "whole number"),
            ("1.5g", "whole number"),
            ("-1", "whole number"),
            ("0x", "whole number"),
            ("4q", "suffix `q`"),
            ("4i", "suffix `i`"),
            ("4 k", "suffix ` k`"),
            ("18446744073709551616", "below 2^64"),
            ("99999999999p", "below 2^64"),
            ("(1-2)", "it is -1"),
            ("(1", "closing parenthesis"),
        ];
        for (text, expected) in cases {
            let message = parse_integer(text, KbBase::Binary).expect_err(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn amounts_are_bytes_percent_or_zones() {
        let read = |text| parse_amount(text, KbBase::Binary);
        assert_eq!(read("1m"), Ok(Amount::Bytes(1 << 20)));
        assert_eq!(read("25%"), Ok(Amount::Percent(25)));
        assert_eq!(read("3z"), Ok(Amount::Zones(3)));
        for text in ["101%", "%", "-1%", "z", "1.5z", "1mz"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_have_units_and_a_default() {
        let cases = [
            ("10", 10_000_000_000, 10_000),
            ("10us", 10_000, 10_000),
            ("10usec", 10_000, 10_000),
            ("10ms", 10_000_000, 10_000_000),
            ("2s", 2_000_000_000, 2_000_000_000),
            ("2M", 120_000_000_000, 120_000_000_000),
            ("1h", 3_600_000_000_000, 3_600_000_000_000),
            ("1d", 86_400_000_000_000, 86_400_000_000_000),
            ("(2*5)", 10_000, 10_000),
            ("(2*5s)", 10_000_000_000, 10_000_000_000),
        ];
        for (text, seconds, micros) in cases {
            assert_eq!(parse_time(text, TimeUnit::Seconds), Ok(Nanos(seconds)), "{text}");
            assert_eq!(parse_time(text, TimeUnit::Micros), Ok(Nanos(micros)), "{text}");
        }
        for text in ["", "x", "10x", "10ns", "1:30", "10.5", "-1", "99999999999d", "18446744073709551615us"] {
            assert!(parse_time(text, TimeUnit::Seconds).is_err(), "{text}");
        }
    }
}
