//! Words of a line, as people type them: with quotes and escapes, as `redis-cli` has them.

/// The words of a line; `None` if a quote is not closed, or something follows a closing one.
#[must_use]
pub fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut words, mut rest) = (Vec::new(), line.trim_ascii_start());
    while !rest.is_empty() {
        let (word, behind) = word(rest)?;
        words.push(word);
        rest = behind.trim_ascii_start();
    }
    Some(words)
}

/// The first word, and what is behind it.
fn word(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        match rest {
            [quote @ (b'"' | b'\''), behind @ ..] => {
                rest = quoted(*quote, behind, &mut word)?;
                // A closing quote ends the word.
                return rest.first().is_none_or(u8::is_ascii_whitespace).then_some((word, rest));
            }
            [] => return Some((word, rest)),
            [byte, ..] if byte.is_ascii_whitespace() || *byte == 0 => return Some((word, &rest[1..])),
            [byte, behind @ ..] => {
                word.push(*byte);
                rest = behind;
            }
        }
    }
}

/// Reads what is between quotes into `word`; returns what is behind the closing one.
fn quoted<'a>(quote: u8, mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [byte, behind @ ..] if *byte == quote => return Some(behind),
            [b'\\', b'x', high, low, behind @ ..] if quote == b'"' && hex(*high, *low).is_some() => {
                word.extend(hex(*high, *low));
                behind
            }
            [b'\\', byte, behind @ ..] if quote == b'"' => {
                word.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                behind
            }
            [b'\\', b'\'', behind @ ..] => {
                word.push(b'\'');
                behind
            }
            [byte, behind @ ..] => {
                word.push(*byte);
                behind
            }
        };
    }
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? * 16 + digit(low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_into_words() {
        for (line, words) in [
            ("", Some(vec![])),
            ("  ping  ", Some(vec!["ping"])),
            ("set a b", Some(vec!["set", "a", "b"])),
            (r#"set "a b" 'c "d'"#, Some(vec!["set", "a b", "c \"d"])),
            (r#"a "\x41\n\"\\""#, Some(vec!["a", "A\n\"\\"])),
            (r"a 'it\'s'", Some(vec!["a", "it's"])),
            (r#"a"b""#, Some(vec!["ab"])),
            (r#""""a"""#, None),
            (r#""a"b"#, None),
            (r#""a"#, None),
            ("'a", None),
        ] {
            let words = words.map(|words| words.iter().map(|word| word.as_bytes().to_vec()).collect());
            assert_eq!(split(line.as_bytes()), words, "{line}");
        }
    }
}
