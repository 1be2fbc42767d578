//! Values with several parts: `read,write,trim` triples, ranges, splits, percentile lists and byte patterns.
//!
//! Source: fio 3.33 HOWTO, "Block size", "Parameter types" (irange, float_list) and `verify_pattern`.

use super::number::{KbBase, parse_integer};
use super::pattern::{ByDirection, SplitEntry};

/// The most entries of one `bssplit` direction (HOWTO, `bssplit`).
const SPLIT_ENTRIES_MAX: usize = 64;
/// The longest byte pattern: fio's `MAX_PATTERN_SIZE`.
const PATTERN_BYTES_MAX: usize = 512;
/// The longest percentile list: fio's `FIO_IO_U_LIST_MAX_LEN`.
const PERCENTILES_MAX: usize = 20;

/// Reads up to three comma-separated parts over `target`.
///
/// As in fio: one part is for all directions, the second of two also for trims, and an empty part keeps what was set.
///
/// # Errors
/// The part's own sentence, or one for a fourth part or for no part at all.
pub fn parse_triple<T: Clone>(
    text: &str,
    target: &mut ByDirection<T>,
    part: impl Fn(&str) -> Result<T, String>,
) -> Result<(), String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err(format!("expected at most three values (read,write,trim), but found {}", parts.len()));
    }
    if parts.iter().all(|text| text.is_empty()) {
        return Err("expected a value".to_owned());
    }
    let mut values = Vec::with_capacity(3);
    for text in &parts {
        values.push(if text.is_empty() { None } else { Some(part(text)?) });
    }
    match parts.len() {
        1 => values = vec![values[0].clone(), values[0].clone(), values[0].clone()],
        2 => values.push(values[1].clone()),
        _ => {}
    }
    let mut slots = [&mut target.read, &mut target.write, &mut target.trim];
    for (slot, value) in slots.iter_mut().zip(values) {
        if let Some(value) = value {
            **slot = value;
        }
    }
    Ok(())
}

/// One range, `1k-4k` or `1k:4k`; the smaller end comes first in the result, as fio swaps them.
///
/// # Errors
/// A sentence naming what is wrong with it.
pub fn parse_range(text: &str, kb_base: KbBase) -> Result<(u64, u64), String> {
    let ends = text
        .split_once(['-', ':'])
        .ok_or_else(|| format!("expected a range such as 1k-4k, but found `{text}`"))?;
    let (low, high) = (parse_integer(ends.0, kb_base)?, parse_integer(ends.1, kb_base)?);
    Ok((low.min(high), low.max(high)))
}

/// One direction of `bssplit`: `4k/10:64k/90`; entries without a share divide what is left evenly.
///
/// # Errors
/// A sentence naming what is wrong with it; shares that do not add up to 100 are an error.
pub fn parse_split(text: &str, kb_base: KbBase) -> Result<Vec<SplitEntry>, String> {
    let mut entries = Vec::new();
    for part in text.split(':') {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let bytes = parse_integer(size, kb_base)?;
        if bytes == 0 {
            return Err("expected block sizes of at least 1 byte".to_owned());
        }
        let share = match share.trim() {
            "" => None,
            digits => {
                let percent: Option<u32> = digits.parse().ok().filter(|percent| *percent <= 100);
                Some(percent.ok_or_else(|| format!("expected a share from 0 to 100, but found `{digits}`"))?)
            }
        };
        entries.push((bytes, share));
        if entries.len() > SPLIT_ENTRIES_MAX {
            return Err(format!("expected at most {SPLIT_ENTRIES_MAX} block sizes"));
        }
    }
    share_out(&entries)
}

/// Size and percentage of an entry `size/percent...` whose parts are given.
///
/// # Errors
/// A sentence naming what is wrong with it.
pub fn share_of_size(parts: &[&str], entry: &str, kb_base: KbBase) -> Result<(u64, u8), String> {
    let &[size, percent, ..] = parts else {
        return Err(format!("expected size/percent, as 64k/25, but found `{entry}`"));
    };
    let bytes = parse_integer(size, kb_base)?;
    let percent: Option<u8> = percent.parse().ok().filter(|percent| *percent <= 100);
    let percent = percent.ok_or_else(|| format!("expected a share from 0 to 100, but found `{entry}`"))?;
    if bytes == 0 { Err("expected block sizes of at least 1 byte".to_owned()) } else { Ok((bytes, percent)) }
}

fn share_out(entries: &[(u64, Option<u32>)]) -> Result<Vec<SplitEntry>, String> {
    let given: u32 = entries.iter().filter_map(|(_, share)| *share).sum();
    let open = entries.iter().filter(|(_, share)| share.is_none()).count();
    if given > 100 || (given < 100 && open == 0) {
        return Err(format!("expected shares that add up to 100, but they add up to {given}"));
    }
    let left = (100 - given) * 100;
    let open = u32::try_from(open).expect("at most 64 entries");
    let mut remainder = left.checked_rem(open).unwrap_or(0);
    let mut even_share = || {
        let extra = u32::from(remainder > 0);
        remainder = remainder.saturating_sub(1);
        left / open + extra
    };
    let share =
        |share: &Option<u32>, even: &mut dyn FnMut() -> u32| share.map_or_else(even, |percent| percent * 100);
    Ok(entries
        .iter()
        .map(|(bytes, given)| SplitEntry { bytes: *bytes, share_basis_points: share(given, &mut even_share) })
        .collect())
}

/// fio `percentile_list`: up to 20 numbers above 0 and at most 100, sorted.
///
/// # Errors
/// A sentence naming what is wrong with it.
pub fn parse_percentiles(text: &str) -> Result<Vec<f64>, String> {
    let mut list = Vec::new();
    for part in text.split(':') {
        let value: Option<f64> = part.trim().parse().ok().filter(|value| *value > 0.0 && *value <= 100.0);
        list.push(
            value
                .ok_or_else(|| format!("expected percentiles above 0 and at most 100, but found `{part}`"))?,
        );
        if list.len() > PERCENTILES_MAX {
            return Err(format!("expected at most {PERCENTILES_MAX} percentiles"));
        }
    }
    list.sort_by(f64::total_cmp);
    list.dedup();
    Ok(list)
}

/// fio's byte patterns: `0xdeadface`, `"text"`, `123`, and any of them in a row.
///
/// Hexadecimal digits are bytes in the order written. A decimal number is its bytes, lowest first.
///
/// # Errors
/// A sentence naming what is wrong with it; `%o` and `'files'` are refused.
pub fn parse_pattern(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err("expected a pattern such as 0xdeadface or \"text\"".to_owned());
    }
    while !rest.is_empty() {
        rest = if let Some(after) = rest.strip_prefix('"') {
            let (inside, after) = after.split_once('"').ok_or("expected a closing quotation mark")?;
            bytes.extend_from_slice(inside.as_bytes());
            after
        } else if let Some(after) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
            push_hexadecimal(after, &mut bytes)?
        } else if rest.starts_with(|c: char| c.is_ascii_digit()) {
            push_decimal(rest, &mut bytes)?
        } else if rest.starts_with('%') || rest.starts_with('\'') || rest.starts_with('-') {
            return Err(
                "patterns with %o, 'files' or negative numbers are not implemented yet; use 0x.. or \"text\""
                    .to_owned(),
            );
        } else {
            return Err(format!("expected 0x.., a decimal number or \"text\", but found `{rest}`"));
        };
        if bytes.len() > PATTERN_BYTES_MAX {
            return Err(format!("expected a pattern of at most {PATTERN_BYTES_MAX} bytes"));
        }
    }
    if bytes.is_empty() { Err("expected a pattern of at least one byte".to_owned()) } else { Ok(bytes) }
}

fn push_hexadecimal<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, String> {
    let end = text.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return Err("expected hexadecimal digits after 0x".to_owned());
    }
    // With an odd count the first digit stands alone, as a number's leading zero would be left out.
    let (first, pairs) = digits.split_at(digits.len() % 2);
    let starts = (0..pairs.len()).step_by(2).map(|at| &pairs[at..at + 2]);
    for pair in std::iter::once(first).filter(|first| !first.is_empty()).chain(starts) {
        bytes.push(u8::from_str_radix(pair, 16).expect("two hexadecimal digits"));
    }
    Ok(rest)
}

fn push_decimal<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Result<&'a str, String> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let value: u32 = digits
        .parse()
        .map_err(|_| "expected decimal numbers below 2^32; write longer ones as 0x..".to_owned())?;
    let used = value.to_le_bytes().iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
    bytes.extend_from_slice(&value.to_le_bytes()[..used]);
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_fill_directions_as_fio_does() {
        let cases = [
            ("8", [8, 8, 8]),
            ("8,9", [8, 9, 9]),
            ("8,9,7", [8, 9, 7]),
            (",9", [1, 9, 9]),
            ("8,", [8, 1, 1]),
            (",,7", [1, 1, 7]),
            ("8,,7", [8, 1, 7]),
        ];
        for (text, [read, write, trim]) in cases {
            let mut target = ByDirection::all(1);
            parse_triple(text, &mut target, |part| parse_integer(part, KbBase::Binary)).expect(text);
            assert_eq!(target, ByDirection { read, write, trim }, "{text}");
        }
        for text in ["", ",", "1,2,3,4", "x", "1,x"] {
            let mut target = ByDirection::all(1);
            assert!(
                parse_triple(text, &mut target, |part| parse_integer(part, KbBase::Binary)).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn ranges_are_ordered() {
        for text in ["1k-4k", "4k-1k", "1k:4k", "1024 - 4096"] {
            assert_eq!(parse_range(text, KbBase::Binary), Ok((1024, 4096)), "{text}");
        }
        for text in ["4k", "4k-", "-", "a-b"] {
            assert!(parse_range(text, KbBase::Binary).is_err(), "{text}");
        }
    }

    #[test]
    fn splits_share_out_what_is_left() {
        let shares = |text| {
            parse_split(text, KbBase::Binary)
                .map(|entries| entries.iter().map(|e| (e.bytes, e.share_basis_points)).collect::<Vec<_>>())
        };
        assert_eq!(shares("4k/10:64k/90"), Ok(vec![(4096, 1000), (65536, 9000)]));
        assert_eq!(shares("4k/50:1k/:32k/"), Ok(vec![(4096, 5000), (1024, 2500), (32768, 2500)]));
        assert_eq!(shares("1:2:3"), Ok(vec![(1, 3334), (2, 3333), (3, 3333)]));
        assert_eq!(shares("4k"), Ok(vec![(4096, 10_000)]));
        let many = vec!["1/"; 65].join(":");
        let cases = [
            ("4k/50:8k/60", "add up to 110"),
            ("4k/50:8k/20", "add up to 70"),
            ("0/100", "at least 1 byte"),
            ("4k/101", "from 0 to 100"),
            ("4k/x", "from 0 to 100"),
            ("", "whole number"),
            (&many, "at most 64"),
        ];
        for (text, expected) in cases {
            let message = shares(text).expect_err(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn percentiles_are_sorted_and_bounded() {
        assert_eq!(parse_percentiles("99.9:50:99"), Ok(vec![50.0, 99.0, 99.9]));
        let many = vec!["50"; 21].join(":");
        for text in ["", "0", "101", "x", "50::99", "nan", many.as_str()] {
            assert!(parse_percentiles(text).is_err(), "{text}");
        }
    }

    #[test]
    fn patterns_are_bytes_in_the_order_written() {
        let cases: [(&str, &[u8]); 6] = [
            ("0xdeadface", &[0xde, 0xad, 0xfa, 0xce]),
            ("0xabc", &[0x0a, 0xbc]),
            ("255", &[255]),
            ("256", &[0, 1]),
            ("\"ab\"", b"ab"),
            ("0xff\"a\"7", &[0xff, b'a', 7]),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_pattern(text).as_deref(), Ok(expected), "{text}");
        }
        let long = format!("\"{}\"", "x".repeat(513));
        for text in ["", "zz", "%o", "-12", "'file'", "0x", "0xzz", "\"a", "\"\"", "4294967296", &long] {
            assert!(parse_pattern(text).is_err(), "{text}");
        }
    }
}
