//! Sizes an instance keeps from the day it was made, whatever options a later mount states.
//!
//! Such a mount takes the instance as it is, and whoever stated an option that would make another is told that it changed
//! nothing. Deliberately not here: options that a mount refuses because what is on media says otherwise.

/// A size that an instance was made with, and the option that would make another of a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptSize {
    /// The option's name.
    pub option: &'static str,
    /// What is counted.
    pub what: &'static str,
    /// How many the instance keeps.
    pub kept: u64,
    /// How many a new one would have with the options of this mount; `None` if they would not fit.
    pub wanted: Option<u64>,
}

impl KeptSize {
    /// The size that `of` counts in what an instance keeps and in what a new one would.
    pub fn new<K>(
        option: &'static str,
        what: &'static str,
        (kept, wanted): (&K, Option<&K>),
        of: fn(&K) -> u64,
    ) -> Self {
        Self { option, what, kept: of(kept), wanted: wanted.map(of) }
    }
}

/// An instance in words, and what is to be said of options that were stated, name and value, and changed nothing.
pub fn notes(described: String, sizes: &[KeptSize], stated: &[(String, String)]) -> Vec<String> {
    let note = |&KeptSize { option, what, kept, wanted }: &KeptSize| {
        assert!(kept > 0, "an instance was made with no {what}");
        assert!(wanted != Some(0), "a new instance would have no {what}, and fit");
        let (_, value) = stated.iter().rfind(|(name, _)| name == option)?;
        let would = match wanted {
            Some(wanted) if wanted == kept => return None,
            Some(wanted) => format!("that would be {wanted}"),
            None => "that would not fit".to_owned(),
        };
        Some(format!(
            "{option}={value} changes nothing: the instance on these units keeps the {kept} {what} it was made with, and {would}; \
             make the drive anew (ocssd format --replace) for another size"
        ))
    };
    std::iter::once(described).chain(sizes.iter().filter_map(note)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_stated_and_would_be_another_is_told() {
        let size = |option, kept, wanted| KeptSize { option, what: "blocks", kept, wanted };
        let sizes = [size("one", 8, Some(9)), size("two", 8, Some(8)), size("three", 8, None)];
        let told = |names: &[&str]| {
            let stated: Vec<_> = names.iter().map(|&name| (name.to_owned(), "5".to_owned())).collect();
            notes("the instance".to_owned(), &sizes, &stated)
        };
        assert_eq!(told(&["two", "four"]), ["the instance"]);
        let both = told(&["three", "one"]).split_off(1);
        assert_eq!(both.len(), 2);
        assert!(
            both[0].starts_with("one=5 changes nothing") && both[0].contains("that would be 9"),
            "{both:?}"
        );
        assert!(both[1].starts_with("three=5") && both[1].contains("that would not fit"), "{both:?}");
    }
}
