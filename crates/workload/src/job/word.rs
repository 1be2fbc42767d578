//! Values that are words: `rw`, `verify`, `sync`, `random_distribution` and the like.
//!
//! Source of the words: `fio --cmdhelp=OPTION` of fio 3.33. Deliberately not here: numbers alone, and lists.

use super::check::{Checksum, ContinueOnError, SyncMode, Verify};
use super::number::{KbBase, parse_integer};
use super::pattern::{Distribution, Operations, Order, Pattern, ZONE_SHARES_MAX, ZoneShare, ZoneShares};
use super::suggest::did_you_mean;

/// The value of the pair whose word is `text`.
///
/// # Errors
/// A sentence listing the words, with the nearest one.
pub fn choose<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let list: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let nearest = did_you_mean(text, list.iter().copied());
        format!("expected one of {}{nearest}", list.join(", "))
    })
}

const RW: [(&str, (Operations, bool)); 11] = [
    ("read", (Operations::Read, false)),
    ("write", (Operations::Write, false)),
    ("trim", (Operations::Trim, false)),
    ("randread", (Operations::Read, true)),
    ("randwrite", (Operations::Write, true)),
    ("randtrim", (Operations::Trim, true)),
    ("rw", (Operations::ReadWrite, false)),
    ("readwrite", (Operations::ReadWrite, false)),
    ("randrw", (Operations::ReadWrite, true)),
    ("trimwrite", (Operations::TrimWrite, false)),
    ("randtrimwrite", (Operations::TrimWrite, true)),
];

/// fio `rw`: `randread`, `randread:8`, `read:4k`.
///
/// # Errors
/// A sentence naming what is wrong with it.
pub fn parse_rw(text: &str, kb_base: KbBase) -> Result<Pattern, String> {
    let (word, number) = text.split_once(':').map_or((text, None), |(word, number)| (word, Some(number)));
    let (operations, random) = choose(word, &RW)?;
    if let Some(back) = number.filter(|_| !random).and_then(|number| number.strip_prefix('-')) {
        let back_bytes = parse_integer(back, kb_base)?;
        if back_bytes == 0 {
            return Err("expected a number of bytes above 0 to go back by, as rw=read:-8k".to_owned());
        }
        return Ok(Pattern { operations, order: Order::Backwards { back_bytes } });
    }
    let number = number.map(|number| parse_integer(number, kb_base)).transpose()?;
    let order = if random {
        let count = number.unwrap_or(1);
        let ios_per_offset = u32::try_from(count)
            .ok()
            .filter(|count| *count > 0)
            .ok_or_else(|| format!("expected 1 to {} I/Os per offset after the colon", u32::MAX))?;
        Order::Random { ios_per_offset }
    } else {
        Order::Sequential { skip_bytes: number.unwrap_or(0) }
    };
    Ok(Pattern { operations, order })
}

/// fio `random_distribution`: `random`, `zipf:1.2`, `pareto:0.2`, `normal:20`.
///
/// # Errors
/// A sentence naming what is wrong with it.
pub fn parse_distribution(text: &str) -> Result<Distribution, String> {
    let (word, number) = text.split_once(':').map_or((text, None), |(word, number)| (word, Some(number)));
    // fio's defaults for a missing number: FIO_DEF_ZIPF and FIO_DEF_PARETO.
    match word {
        "random" if number.is_none() => Ok(Distribution::Uniform),
        "random" => Err("expected random without a number".to_owned()),
        "zipf" => {
            let theta = parse_float(number.unwrap_or("1.1"))?;
            let valid = theta > 0.0 && (theta - 1.0).abs() > f64::EPSILON;
            valid
                .then_some(Distribution::Zipf(theta))
                .ok_or_else(|| "expected a theta above 0 other than 1".to_owned())
        }
        "pareto" => {
            let power = parse_float(number.unwrap_or("0.2"))?;
            let valid = power > 0.0 && power < 1.0;
            valid
                .then_some(Distribution::Pareto(power))
                .ok_or_else(|| "expected a power between 0 and 1".to_owned())
        }
        "normal" => {
            let number = number.ok_or("expected a deviation in percent, such as normal:20")?;
            let deviation = parse_float(number)?;
            let valid = (0.0..100.0).contains(&deviation);
            valid
                .then_some(Distribution::Normal(deviation))
                .ok_or_else(|| "expected a deviation from 0 to below 100".to_owned())
        }
        "zoned" => {
            let parts =
                number.ok_or("expected parts as access/size in percent, such as zoned:60/10:40/90")?;
            parse_zone_shares(parts).map(Distribution::Zoned)
        }
        "zoned_abs" => {
            Err("parts by their bytes are not implemented yet; use zoned, with percents".to_owned())
        }
        _ => choose(word, &[("random", ()), ("zipf", ()), ("pareto", ()), ("normal", ()), ("zoned", ())])
            .map(|()| Distribution::Uniform),
    }
}

/// The parts of `zoned:50/5:30/15:20/`; what is left out shares what is left of 100 %, as in fio.
fn parse_zone_shares(text: &str) -> Result<ZoneShares, String> {
    if text.contains(',') {
        return Err(
            "parts of their own for each direction are not implemented yet; use a job for each".to_owned()
        );
    }
    let percent = |text: &str| -> Result<Option<u8>, String> {
        let value = text.trim();
        if value.is_empty() {
            return Ok(None);
        }
        let found = value.parse().ok().filter(|percent: &u8| *percent <= 100);
        found.map(Some).ok_or_else(|| format!("expected a percentage from 0 to 100, but found `{value}`"))
    };
    let mut parts = Vec::new();
    for part in text.split(':').take(ZONE_SHARES_MAX + 1) {
        let (access, size) = part.split_once('/').unwrap_or((part, ""));
        parts.push((percent(access)?, percent(size)?));
    }
    let access = share_rest(parts.iter().map(|part| part.0).collect());
    let size = share_rest(parts.iter().map(|part| part.1).collect());
    let shares = access.into_iter().zip(size);
    let shares: Vec<ZoneShare> =
        shares.map(|(access_percent, size_percent)| ZoneShare { access_percent, size_percent }).collect();
    ZoneShares::new(&shares)
}

/// The percentages, with those left out sharing what the others leave of 100.
fn share_rest(percents: Vec<Option<u8>>) -> Vec<u8> {
    let given: u32 = percents.iter().flatten().map(|&percent| u32::from(percent)).sum();
    let missing =
        u32::try_from(percents.iter().filter(|percent| percent.is_none()).count()).expect("few parts");
    let each = u8::try_from(100_u32.saturating_sub(given) / missing.max(1)).expect("at most 100");
    percents.into_iter().map(|percent| percent.unwrap_or(each)).collect()
}

/// A finite number with a decimal point.
///
/// # Errors
/// A sentence naming what is wrong with it; a second number after a colon (fio's centre) is one of them.
pub fn parse_float(text: &str) -> Result<f64, String> {
    if text.contains(':') {
        return Err(
            "a distribution's centre (the second number) is not implemented yet; leave it out".to_owned()
        );
    }
    let value: Option<f64> = text.trim().parse().ok().filter(|value: &f64| value.is_finite());
    value.ok_or_else(|| format!("expected a number, but found `{text}`"))
}

const VERIFY: [(&str, Option<Verify>); 18] = [
    ("0", None),
    ("md5", Some(Verify::Checksum(Checksum::Md5))),
    ("crc64", Some(Verify::Checksum(Checksum::Crc64))),
    ("crc32", Some(Verify::Checksum(Checksum::Crc32))),
    ("crc32c-intel", Some(Verify::Checksum(Checksum::Crc32c))),
    ("crc32c", Some(Verify::Checksum(Checksum::Crc32c))),
    ("crc16", Some(Verify::Checksum(Checksum::Crc16))),
    ("crc7", Some(Verify::Checksum(Checksum::Crc7))),
    ("sha1", Some(Verify::Checksum(Checksum::Sha1))),
    ("sha256", Some(Verify::Checksum(Checksum::Sha256))),
    ("sha512", Some(Verify::Checksum(Checksum::Sha512))),
    ("sha3-224", Some(Verify::Checksum(Checksum::Sha3_224))),
    ("sha3-256", Some(Verify::Checksum(Checksum::Sha3_256))),
    ("sha3-384", Some(Verify::Checksum(Checksum::Sha3_384))),
    ("sha3-512", Some(Verify::Checksum(Checksum::Sha3_512))),
    ("xxhash", Some(Verify::Checksum(Checksum::Xxhash))),
    ("meta", Some(Verify::Meta)),
    ("pattern", Some(Verify::Pattern)),
];

/// fio `verify`; `None` is `verify=0`.
///
/// # Errors
/// A sentence listing the words.
pub fn parse_verify(text: &str) -> Result<Option<Verify>, String> {
    if text == "null" { Ok(Some(Verify::Null)) } else { choose(text, &VERIFY) }
}

/// fio `sync`.
///
/// # Errors
/// A sentence listing the words.
pub fn parse_sync(text: &str) -> Result<SyncMode, String> {
    let words = [
        ("none", SyncMode::None),
        ("0", SyncMode::None),
        ("sync", SyncMode::Sync),
        ("1", SyncMode::Sync),
        ("dsync", SyncMode::Dsync),
    ];
    choose(text, &words)
}

/// fio `continue_on_error`.
///
/// # Errors
/// A sentence listing the words.
pub fn parse_continue_on_error(text: &str) -> Result<ContinueOnError, String> {
    let on = |read, write, verify| ContinueOnError { read, write, verify };
    let words = [
        ("none", on(false, false, false)),
        ("read", on(true, false, false)),
        ("write", on(false, true, false)),
        ("io", on(true, true, false)),
        ("verify", on(false, false, true)),
        ("all", on(true, true, true)),
        ("0", on(false, false, false)),
        ("1", on(true, true, true)),
    ];
    choose(text, &words)
}

/// `0` or `1`.
///
/// # Errors
/// A sentence for anything else.
pub fn parse_bool(text: &str) -> Result<bool, String> {
    match text.trim() {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("expected 0 or 1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rw_has_a_direction_an_order_and_a_number() {
        let binary = KbBase::Binary;
        for (word, (operations, random)) in RW {
            let pattern = parse_rw(word, binary).expect(word);
            assert_eq!((pattern.operations, pattern.is_random()), (operations, random), "{word}");
            let same = parse_rw(pattern.fio_word(), binary).expect("a word of fio");
            assert_eq!(same, pattern, "{word}");
        }
        assert_eq!(parse_rw("randread:8", binary).expect("valid").order, Order::Random { ios_per_offset: 8 });
        assert_eq!(
            parse_rw("write:4k", binary).expect("valid").order,
            Order::Sequential { skip_bytes: 4096 }
        );
        let cases = [
            ("radread", "did you mean `randread`?"),
            ("randread:0", "1 to"),
            ("randread:x", "whole"),
            ("read:-0", "above 0"),
            ("read:-x", "whole"),
            ("", "one of"),
        ];
        for (text, expected) in cases {
            let message = parse_rw(text, binary).expect_err(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn distributions_keep_their_bounds() {
        let cases = [
            ("random", Distribution::Uniform),
            ("zipf", Distribution::Zipf(1.1)),
            ("zipf:0.9", Distribution::Zipf(0.9)),
            ("pareto:0.5", Distribution::Pareto(0.5)),
            ("normal:0", Distribution::Normal(0.0)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_distribution(text), Ok(expected), "{text}");
        }
        for text in [
            "zipf:1",
            "zipf:0",
            "zipf:nan",
            "pareto:1",
            "normal",
            "normal:100",
            "random:1",
            "zoned:50/5",
            "zip",
            "zipf:1.2:0.5",
        ] {
            assert!(parse_distribution(text).is_err(), "{text}");
        }
    }

    #[test]
    fn verify_sync_and_error_words_are_fios() {
        for (word, expected) in VERIFY {
            assert_eq!(parse_verify(word), Ok(expected), "{word}");
        }
        assert_eq!(parse_verify("null"), Ok(Some(Verify::Null)));
        assert!(parse_verify("crc33").is_err_and(|message| message.contains("did you mean `crc32`?")));
        assert_eq!(parse_sync("dsync"), Ok(SyncMode::Dsync));
        assert!(parse_sync("2").is_err());
        let io = ContinueOnError { read: true, write: true, verify: false };
        assert_eq!(parse_continue_on_error("io"), Ok(io));
        assert!(parse_continue_on_error("some").is_err());
        assert!(parse_bool("yes").is_err());
    }
}
