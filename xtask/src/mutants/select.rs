//! Which mutants are judged now.

use super::{Known, Options, mutant::Mutant, outcomes::Verdict};
use ocssd_base::Prng;
use std::str::FromStr;

/// The Kth of N parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = |(index, count): (&str, &str)| Some((index.parse().ok()?, count.parse().ok()?));
        match text.split_once('/').and_then(parse) {
            Some((index, count)) if index < count => Ok(Self { index, count }),
            _ => Err(format!("expected K/N with K below N, as `0/4`, found `{text}`")),
        }
    }
}

/// Names of all modules, each once.
pub fn modules(mutants: &[Mutant]) -> Vec<String> {
    let mut names: Vec<String> = mutants.iter().map(Mutant::module).collect();
    names.dedup();
    names.sort();
    names.dedup();
    names
}

/// Whether a module is `outer` or below it.
pub fn is_within(module: &str, outer: &str) -> bool {
    module.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What the options ask for, in the order of the list.
pub fn wanted<'a>(known: &'a Known, options: &Options) -> Vec<&'a Mutant> {
    let is_asked = |mutant: &Mutant| {
        let module = mutant.module();
        options.module.is_empty() || options.module.iter().any(|outer| is_within(&module, outer))
    };
    let is_left = |mutant: &Mutant| match known.outcomes.of(mutant) {
        None => !options.survivors,
        Some(judged) => options.again || options.survivors && judged.verdict == Verdict::Missed,
    };
    let left = known.mutants.iter().enumerate().filter(|&(index, mutant)| {
        is_asked(mutant) && known.equivalents.reason(index).is_none() && is_left(mutant)
    });
    let mut left: Vec<(usize, &Mutant)> = left.collect();
    if let Some(Shard { index, count }) = options.shard {
        // Every nth: the parts are about as long as each other, whatever the modules are.
        left.retain(|&(at, _)| at % count == index);
    }
    let left = left.into_iter().map(|(_, mutant)| mutant).collect();
    match options.sample {
        Some(count) => drawn(left, count, options.seed),
        None => left,
    }
}

/// So many of each package that tests found before.
pub fn found_before<'a>(
    known: &'a Known,
    packages: &[&str],
    per_package: usize,
    seed: u64,
) -> Vec<&'a Mutant> {
    let is_found =
        |mutant: &&Mutant| known.outcomes.of(mutant).is_some_and(|judged| judged.verdict == Verdict::Caught);
    let of_package = |package: &&str| {
        let found = known.mutants.iter().filter(|mutant| mutant.package == *package).filter(is_found);
        drawn(found.collect(), per_package, seed)
    };
    packages.iter().flat_map(of_package).collect()
}

/// A number that follows from a text.
pub fn seed_of(text: &str) -> u64 {
    text.bytes().fold(0, |seed, byte| Prng::new(seed ^ u64::from(byte)).next_u64())
}

/// `count` of them, or all, in their order.
fn drawn<T>(all: Vec<T>, count: usize, seed: u64) -> Vec<T> {
    let (mut prng, mut wanted) = (Prng::new(seed), count);
    let mut left = u64::try_from(all.len()).expect("an index");
    // Each is taken with the chance that makes the rest come out right (Knuth's algorithm S).
    all.into_iter()
        .filter(|_| {
            let is_taken = prng.below(left) < u64::try_from(wanted).expect("an index");
            left -= 1;
            wanted -= usize::from(is_taken);
            is_taken
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_size_asked_for_and_follows_from_its_seed() {
        let sample = |count, seed| drawn((0..100).collect::<Vec<u32>>(), count, seed);
        assert_eq!(sample(200, 1).len(), 100);
        assert_eq!(sample(10, 1).len(), 10);
        assert_eq!(sample(10, 1), sample(10, 1));
        assert_ne!(sample(10, 1), sample(10, 2));
        assert!(sample(10, 3).is_sorted());
        assert_ne!(seed_of("a"), seed_of("b"));
    }

    #[test]
    fn a_shard_is_one_of_its_parts() {
        assert_eq!("1/4".parse(), Ok(Shard { index: 1, count: 4 }));
        for text in ["4/4", "0/0", "1", "a/b", "-1/3"] {
            let error = text.parse::<Shard>().unwrap_err();
            assert!(error.contains("as `0/4`") && error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_module_is_within_itself_and_those_above() {
        assert!(is_within("targets/pblk/mount", "targets/pblk") && is_within("ftl/l2p", "ftl/l2p"));
        assert!(!is_within("ftl/l2p", "ftl/l2") && !is_within("ftl", "ftl/l2p"));
    }
}
