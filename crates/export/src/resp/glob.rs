//! Patterns of keys, as KEYS and SCAN have them: `*`, `?`, `[a-z]`, `[^x]`, and `\` before what is meant literally.
//!
//! Time is at most pattern times text: after a mismatch only the last star is tried again, further on.

/// One element of a pattern that is no star: how many bytes it takes of the pattern, and whether it matches `byte`.
fn element(pattern: &[u8], byte: u8) -> (usize, bool) {
    match pattern {
        [b'?', ..] => (1, true),
        [b'\\', literal, ..] => (2, *literal == byte),
        [b'[', rest @ ..] => {
            let (length, matches) = class(rest, byte);
            (1 + length, matches)
        }
        [literal, ..] => (1, *literal == byte),
        [] => (0, false),
    }
}

/// A class behind its bracket: how many bytes it takes with the closing bracket, if there is one, and whether it holds `byte`.
fn class(pattern: &[u8], byte: u8) -> (usize, bool) {
    let is_negated = pattern.first() == Some(&b'^');
    let mut at = usize::from(is_negated);
    let mut found = false;
    loop {
        match &pattern[at..] {
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', literal, ..] => {
                found |= *literal == byte;
                at += 2;
            }
            [first, b'-', last, ..] => {
                let (low, high) = (first.min(last), first.max(last));
                found |= (*low..=*high).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                found |= *literal == byte;
                at += 1;
            }
        }
    }
    (at, found != is_negated)
}

/// Whether the pattern matches the whole text.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Where to go on after a mismatch: behind the last star, which then takes one byte more.
    let mut again: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            again = Some((at, read));
            continue;
        }
        let Some(&byte) = text.get(read) else {
            return at == pattern.len();
        };
        let (length, fits) = element(&pattern[at..], byte);
        if fits {
            at += length;
            read += 1;
            continue;
        }
        let Some((behind, from)) = again else { return false };
        again = Some((behind, from + 1));
        (at, read) = (behind, from + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_redis_has_them() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*c", "abbc", true),
            ("a*c", "abbcd", false),
            ("**a", "xya", true),
            ("key:1??", "key:199", true),
            ("key:1??", "key:19", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h[a-c]llo", "hdllo", false),
            (r"h\*llo", "h*llo", true),
            (r"h\*llo", "hallo", false),
            (r"[\]]", "]", true),
            ("[ab", "b", true),
            (r"a\", r"a\", true),
            ("a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}
