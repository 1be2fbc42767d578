//! Paths: absolute, with `/` between names. `.` and empty names are left out, and `..` is refused.
//!
//! Deliberately not here: what lies at a path (`names`).

use crate::error::{ErrorKind, StoreError};

/// Most bytes of one name (POSIX `NAME_MAX` of Linux file systems; limits.h).
pub const NAME_BYTES_MAX: usize = 255;

/// The names of a path, from the root on. A path that does not begin with `/` begins at the root too: there is no working
/// directory.
///
/// # Errors
/// A name that is too long, or leads upwards.
pub fn names(path: &str) -> Result<Vec<&str>, StoreError> {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    for name in &names {
        if *name == ".." {
            let sentence = format!("{path}: a path must not have \"..\" in it; write where it leads to");
            return Err(StoreError::new(ErrorKind::Invalid, sentence));
        }
        if name.len() > NAME_BYTES_MAX {
            let sentence = format!(
                "{path}: a name has {} bytes and may have {NAME_BYTES_MAX}; choose a shorter one",
                name.len()
            );
            return Err(StoreError::new(ErrorKind::Invalid, sentence));
        }
    }
    Ok(names)
}

/// The directory of a path and the last name.
///
/// # Errors
/// As [`names`], or the path is the root's.
pub fn split(path: &str) -> Result<(Vec<&str>, &str), StoreError> {
    let mut names = names(path)?;
    match names.pop() {
        Some(last) => Ok((names, last)),
        None => {
            Err(StoreError::new(ErrorKind::Invalid, format!("{path}: the root is a directory that stays")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_names_on_its_way() {
        for (path, expected) in
            [("/a/b", vec!["a", "b"]), ("a//b/", vec!["a", "b"]), ("/./a", vec!["a"]), ("/", vec![])]
        {
            assert_eq!(names(path).expect("a path"), expected, "{path}");
        }
        assert_eq!(split("/db/CURRENT").expect("a path"), (vec!["db"], "CURRENT"));
    }

    #[test]
    fn names_that_lead_upwards_or_are_too_long_are_refused_in_words() {
        let long = format!("/db/{}", "x".repeat(NAME_BYTES_MAX + 1));
        for (path, part) in [("/a/../b", "\"..\""), (long.as_str(), "255")] {
            let error = names(path).expect_err(path);
            assert!(error.kind == ErrorKind::Invalid && error.sentence.contains(part), "{error}");
        }
        assert!(split("/").is_err());
    }
}
