//! Values of options as they are written, `name=value`, and what is wrong with one in a sentence.
//!
//! Deliberately not here: which options a target has, and what they mean (its file `options`).

use ocssd_ftl::{VictimPolicy, VictimPolicyError};

/// A whole number of 64 bits.
///
/// # Errors
/// A sentence, if it is none.
pub fn number(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{name} should be a whole number, but is \"{value}\""))
}

/// A whole number of 32 bits; a larger one is taken for the largest, which every bound refuses.
///
/// # Errors
/// A sentence, if it is none.
pub fn small(name: &str, value: &str) -> Result<u32, String> {
    number(name, value).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

/// How victims of garbage collection are chosen.
///
/// # Errors
/// A sentence with the policies there are.
pub fn victim(value: &str) -> Result<VictimPolicy, String> {
    value.parse().map_err(|error: VictimPolicyError| error.to_string())
}

/// One of a few words.
///
/// # Errors
/// A sentence with those that there are.
pub fn word<T: Copy>(name: &str, value: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == value);
    found.map(|&(_, meaning)| meaning).ok_or_else(|| {
        let words: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let (last, others) = words.split_last().expect("an option has a word");
        let list = if others.is_empty() { last.clone() } else { format!("{} or {last}", others.join(", ")) };
        format!("{name} should be {list}, but is \"{value}\"")
    })
}

/// That an option is within 1 and `most`.
///
/// # Errors
/// A sentence, if it is not.
pub fn check_within(name: &str, value: u32, most: u32) -> Result<(), String> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(format!("{name} must be 1 to {most}, but is {value}"))
}

/// That an option that has a default of its own is not 0.
///
/// # Errors
/// A sentence, if it is.
pub fn check_above_zero(name: &str, value: Option<u64>) -> Result<(), String> {
    if value == Some(0) {
        return Err(format!("{name} must be at least 1, but is 0; leave it out for the default"));
    }
    Ok(())
}

/// One of yes and no.
///
/// # Errors
/// A sentence that says which words there are.
pub fn yes_or_no(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("{name} should be yes or no, but is \"{value}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_wrong_ones_are_named() {
        assert_eq!((number("a", "7"), small("a", "5000000000")), (Ok(7), Ok(u32::MAX)));
        assert_eq!(victim("greedy"), Ok(VictimPolicy::Greedy));
        let words = [("one", 1), ("two", 2), ("three", 3)];
        assert_eq!(word("count", "two", &words), Ok(2));
        assert_eq!((check_within("a", 1, 4), check_within("a", 4, 4)), (Ok(()), Ok(())));
        assert_eq!((check_above_zero("a", None), check_above_zero("a", Some(1))), (Ok(()), Ok(())));
        for (error, says) in [
            (number("seed", "-1").map(drop), "seed should be a whole number, but is \"-1\""),
            (small("seed", "x").map(drop), "seed should be a whole number, but is \"x\""),
            (victim("oldest").map(drop), "greedy"),
            (
                word("count", "no", &words).map(drop),
                "count should be \"one\", \"two\" or \"three\", but is \"no\"",
            ),
            (word("count", "no", &words[..1]).map(drop), "count should be \"one\", but is \"no\""),
            (check_within("a", 5, 4), "a must be 1 to 4, but is 5"),
            (check_within("a", 0, 4), "a must be 1 to 4, but is 0"),
            (check_above_zero("a", Some(0)), "a must be at least 1, but is 0"),
        ] {
            let error = error.expect_err(says);
            assert!(error.contains(says), "{error}");
        }
    }
}
