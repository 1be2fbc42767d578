//! The nearest known word for a mistyped one.

/// `; did you mean ...?` with the nearest of `known`, or nothing when none is near.
///
/// Near: at most two edits, or a third of the word if that is more (chosen: one typing error is two edits at most).
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    // A bound on the work for hostile input; no known word is half as long.
    if word.len() > 64 {
        return String::new();
    }
    let folded = word.to_ascii_lowercase().replace('-', "_");
    let length = folded.chars().count();
    let near = (length / 3).max(2);
    let nearest = known
        // The lengths alone differ by more edits than are near; this saves most comparisons.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= near)
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &candidate.replace('-', "_")), candidate))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((distance, candidate)) if distance <= near => format!("; did you mean `{candidate}`?"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_named_and_a_far_one_is_not() {
        let near = |word| did_you_mean(word, ["iodepth", "numjobs", "time_based"].into_iter());
        assert_eq!(near("iodpeth"), "; did you mean `iodepth`?");
        assert_eq!(near("TIME-BASED"), "; did you mean `time_based`?");
        assert_eq!(near("bandwidth"), "");
        assert_eq!(near(&"x".repeat(100)), "");
    }
}
