//! Numbers with units as people write them, to exact integers and back: `45.5us`, `280MB/s`, `32MiB`, `1000ppb`.
//!
//! No float is involved: `281.1MB/s` is 281100000 bytes a second and nothing else. Deliberately not here: which setting
//! takes which unit (`field`).

/// A family of units: names with how many base units each is, largest first among those used for output.
pub(crate) struct Units {
    /// Every unit that is understood.
    known: &'static [(&'static str, u64)],
    /// Units used for output, largest first; powers of ten apart, so that every value has a finite decimal form.
    shown: &'static [(&'static str, u64)],
}

/// Times, in nanoseconds.
pub(crate) const TIME: Units = Units {
    known: &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)],
    shown: &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)],
};

/// Data rates, in bytes a second.
pub(crate) const RATE: Units = Units {
    known: &[
        ("B/s", 1),
        ("kB/s", 1_000),
        ("MB/s", 1_000_000),
        ("GB/s", 1_000_000_000),
        ("KiB/s", 1 << 10),
        ("MiB/s", 1 << 20),
        ("GiB/s", 1 << 30),
    ],
    shown: &[("GB/s", 1_000_000_000), ("MB/s", 1_000_000), ("kB/s", 1_000), ("B/s", 1)],
};

/// Sizes, in bytes.
pub(crate) const SIZE: Units = Units {
    known: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    shown: &[("B", 1)],
};

/// Rates of faults, in parts per billion.
pub(crate) const PARTS: Units =
    Units { known: &[("ppb", 1), ("ppm", 1_000), ("%", 10_000_000)], shown: &[("ppb", 1)] };

/// Chosen: more digits than any setting needs, few enough that nothing overflows 128 bits.
const DIGITS_MAX: usize = 18;

fn digits(text: &str) -> Option<u128> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    if plain && (1..=DIGITS_MAX).contains(&text.len()) { text.parse().ok() } else { None }
}

impl Units {
    /// The value in base units; `None` if it is no number with a known unit, or no whole number of base units.
    pub(crate) fn parse(&self, text: &str) -> Option<u64> {
        let end = text.bytes().position(|byte| !byte.is_ascii_digit() && byte != b'.')?;
        let (number, unit) = text.split_at(end);
        let unit = unit.strip_prefix(' ').unwrap_or(unit);
        let scale = self.known.iter().find(|(name, _)| *name == unit)?.1;
        let (whole, fraction) = match number.split_once('.') {
            Some((whole, fraction)) => (digits(whole)?, Some(fraction)),
            None => (digits(number)?, None),
        };
        let mut value = whole * u128::from(scale);
        if let Some(fraction) = fraction {
            let parts = digits(fraction)? * u128::from(scale);
            let divisor = 10u128.pow(u32::try_from(fraction.len()).expect("at most 18 digits"));
            if !parts.is_multiple_of(divisor) {
                return None;
            }
            value += parts / divisor;
        }
        u64::try_from(value).ok()
    }

    /// The value in the largest unit that keeps it at one or more, exactly: parsing gives the value again.
    pub(crate) fn show(&self, value: u64) -> String {
        let largest = self.shown.iter().find(|(_, scale)| value >= *scale);
        let (unit, scale) = largest.or(self.shown.last()).expect("a family has units");
        let (whole, rest) = (value / scale, value % scale);
        if rest == 0 {
            return format!("{whole}{unit}");
        }
        let places = usize::try_from(scale.ilog10()).expect("at most 19 places");
        let fraction = format!("{rest:0places$}");
        format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_become_exact_integers() {
        let table: [(&Units, &str, Option<u64>); 20] = [
            (&TIME, "45.5us", Some(45_500)),
            (&TIME, "3ms", Some(3_000_000)),
            (&TIME, "3 ms", Some(3_000_000)),
            (&TIME, "0ns", Some(0)),
            (&TIME, "0.5ns", None),
            (&TIME, "3", None),
            (&TIME, "ms", None),
            (&TIME, "-3ms", None),
            (&TIME, "3m", None),
            (&TIME, "1.us", None),
            (&TIME, ".5us", None),
            (&TIME, "1.2.3us", None),
            (&TIME, "99999999999999999999s", None),
            (&TIME, "999999999999999999s", None),
            (&RATE, "281.1MB/s", Some(281_100_000)),
            (&RATE, "1GiB/s", Some(1 << 30)),
            (&SIZE, "32MiB", Some(32 << 20)),
            (&SIZE, "1.5KiB", Some(1536)),
            (&PARTS, "0.1%", Some(1_000_000)),
            (&PARTS, "2.5ppm", Some(2_500)),
        ];
        for (units, text, expected) in table {
            assert_eq!(units.parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_shown_is_read_back_as_the_same_value() {
        for value in [0, 1, 999, 1_000, 1_001, 45_500, 2_091_000, 60_000_000_000, u64::MAX / 1_000] {
            for units in [&TIME, &RATE, &SIZE, &PARTS] {
                let shown = units.show(value);
                assert_eq!(units.parse(&shown), Some(value), "{shown}");
            }
        }
        assert_eq!(TIME.show(45_500), "45.5us");
        assert_eq!(RATE.show(281_100_000), "281.1MB/s");
    }
}
