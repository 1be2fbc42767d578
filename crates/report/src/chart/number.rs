//! Numbers as people write them.

/// A number with up to six significant digits and no trailing zeros: for tables, hover texts and CSV.
pub(crate) fn exact(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    // Never more than nine decimals, below which no unit of ours goes.
    let decimals = (0..9_u8).find(|&count| f64::from(count) >= 5.0 - magnitude).unwrap_or(9);
    let text = format!("{value:.*}", usize::from(decimals));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A number with its unit, when it has one; a percent sign and the times sign stand close.
pub(crate) fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "" => exact(value),
        "%" | "x" => format!("{}{unit}", exact(value)),
        _ => format!("{} {unit}", exact(value)),
    }
}

/// A number beside a tick: from ten thousand on shortened with k, M, G or T.
pub(crate) fn tick(value: f64) -> String {
    const STEPS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    if value.abs() < 10_000.0 {
        return exact(value);
    }
    let (size, letter) = STEPS.into_iter().find(|(size, _)| value.abs() >= *size).unwrap_or((1.0, ""));
    format!("{}{letter}", exact(value / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_six_digits_and_lose_empty_ones() {
        let cases = [
            (0.0, "0"),
            (2.0, "2"),
            (1241.0, "1241"),
            (0.1 + 0.2, "0.3"),
            (-1.5, "-1.5"),
            (1_234_567.0, "1234567"),
            (0.001_234_567, "0.00123457"),
            (84.536_082, "84.5361"),
            (99.99, "99.99"),
        ];
        for (value, expected) in cases {
            assert_eq!(exact(value), expected, "{value:?}");
        }
    }

    #[test]
    fn ticks_are_short_and_units_stand_apart() {
        let cases = [(2000.0, "2000"), (10_000.0, "10k"), (1.5e6, "1.5M"), (-2e9, "-2G"), (0.25, "0.25")];
        for (value, expected) in cases {
            assert_eq!(tick(value), expected);
        }
        assert_eq!(
            (with_unit(5.0, "%"), with_unit(5.0, "us"), with_unit(5.0, "")),
            ("5%".into(), "5 us".into(), "5".into())
        );
    }
}
