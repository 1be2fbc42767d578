//! Sizes as fio prints them back: as the user wrote them.

/// A size such as `4k`, `64KiB` or `2g` in bytes; `k` is 1024 as in fio by default. `None` for anything else (percentages,
/// zones, expressions), because an unknown size is no mistake here. The largest unit is the pebibyte.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let factor = match suffix.to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        "p" => 1_u64 << 50,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_fios() {
        let cases = [
            ("4096", Some(4_096)),
            ("4k", Some(4_096)),
            ("64KiB", Some(65_536)),
            ("2G", Some(1 << 31)),
            ("10%", None),
            ("2z", None),
            ("", None),
            ("4k,8k", None),
            ("99999999999999999999", None),
            ("99999999999999p", None),
        ];
        for (text, expected) in cases {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
