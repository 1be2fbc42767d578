//! A target as command lines and C programs write it: a kind and its options.
//!
//! Deliberately not here: which kinds and options there are (`registry`).

use crate::registry::TargetOptions;

/// Reads `NAME` or `NAME:OPTION=VALUE,OPTION=VALUE`, as command lines and C programs write a target: its name, and its
/// options in order. Whether there is such a target or option is not asked here. A value may be empty.
///
/// # Errors
/// A sentence, if an option has no name or no `=`.
pub fn parse(text: &str) -> Result<(&str, TargetOptions), String> {
    let Some((name, options)) = text.split_once(':') else { return Ok((text, Vec::new())) };
    let pairs = options.split(',').map(|option| match option.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("an option of a target is written NAME=VALUE, but \"{option}\" was given")),
    });
    Ok((name, pairs.collect::<Result<_, String>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_with_its_options_in_order() {
        let pairs = |list: &[(&str, &str)]| -> TargetOptions {
            list.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        assert_eq!(parse("pblk"), Ok(("pblk", pairs(&[]))));
        assert_eq!(parse(""), Ok(("", pairs(&[]))), "the registry says that there is none");
        assert_eq!(parse("pblk:seed=3"), Ok(("pblk", pairs(&[("seed", "3")]))));
        let two = pairs(&[("mode", "faithful"), ("seed", "")]);
        assert_eq!(parse("db:mode=faithful,seed="), Ok(("db", two)));
        assert_eq!(parse("a:b=c=d:e"), Ok(("a", pairs(&[("b", "c=d:e")]))), "the first of each divides");
    }

    #[test]
    fn an_option_without_name_or_value_is_named() {
        for (text, part) in [
            ("pblk:", "\"\""),
            ("pblk:seed", "\"seed\""),
            ("pblk:=3", "\"=3\""),
            ("pblk:seed=3,", "\"\""),
            ("pblk:seed=3,,mode=faithful", "\"\""),
            ("pblk:seed=3,mode", "\"mode\""),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains("NAME=VALUE") && error.contains(part), "{text}: {error}");
        }
    }
}
