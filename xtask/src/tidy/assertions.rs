//! Rule: the crates that are all invariants state them.
//!
//! Counted: `assert!`, `assert_eq!`, `assert_ne!` outside tests, per 1,000 non-blank lines outside tests. Not counted:
//! `debug_assert!`, which is off where it matters, and `expect`, which states one fact only.

use super::{finding::Finding, rust_source::word_positions, tree::Tree};

/// Crates the rule holds for.
const CRATES: &[&str] = &["flash", "ftl", "targets"];

/// Fewest assertions per 1,000 lines. Chosen in STYLE.md: above the best C translation layer read (19).
const PER_1000_LINES_MIN: usize = 25;

const MACROS: &[&str] = &["assert", "assert_eq", "assert_ne"];

/// Assertions of one crate.
#[derive(Debug, PartialEq, Eq)]
struct Density {
    name: &'static str,
    assertions: usize,
    /// Non-blank lines outside tests.
    lines: usize,
}

impl Density {
    fn per_1000_lines(&self) -> usize {
        self.assertions * 1000 / self.lines
    }
}

/// Finds crates of [`CRATES`] with too few assertions. A crate that does not exist yet is no finding.
pub fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for density in densities(tree).iter().filter(|d| d.per_1000_lines() < PER_1000_LINES_MIN) {
        let missing = (density.lines * PER_1000_LINES_MIN).div_ceil(1000) - density.assertions;
        let sentence = format!(
            "has {} assertions per 1,000 lines, at least {PER_1000_LINES_MIN} are wanted: state {missing} more invariants",
            density.per_1000_lines()
        );
        let path = format!("crates/{}/src/lib.rs", density.name);
        findings.push(Finding::new(&path, 1, "assertions", sentence));
    }
}

/// One line per crate for the reader of tidy's output.
pub fn report(tree: &Tree) -> Vec<String> {
    let line = |d: &Density| {
        let rate = d.per_1000_lines();
        format!("assertions: {} has {} in {} lines ({rate} per 1,000)", d.name, d.assertions, d.lines)
    };
    densities(tree).iter().map(line).collect()
}

fn densities(tree: &Tree) -> Vec<Density> {
    let count = |name: &'static str| {
        let source = format!("crates/{name}/src/");
        let mut density = Density { name, assertions: 0, lines: 0 };
        for (_, rust) in tree.rust_files().filter(|(file, _)| file.path.starts_with(&source)) {
            let produced = (0..rust.code.len()).filter(|&index| !rust.is_test[index]);
            for index in produced {
                let is_blank = rust.code[index].trim().is_empty() && rust.comments[index].trim().is_empty();
                density.lines += usize::from(!is_blank);
                density.assertions += assertions_in(&rust.code[index]);
            }
        }
        density
    };
    CRATES.iter().map(|name| count(name)).filter(|density| density.lines > 0).collect()
}

fn assertions_in(code: &str) -> usize {
    let calls = |name: &&str| {
        word_positions(code, name).filter(|at| code[at + name.len()..].starts_with('!')).count()
    };
    MACROS.iter().map(calls).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_assertions_that_stay_on_outside_tests_count() {
        let text = "//! Doc.\n\nfn a() {\n    assert!(x);\n    debug_assert!(y);\n    z.expect(\"w\"); // assert!(v)\n}\n\
                    const _: () = assert!(1 == 1);\n#[cfg(test)]\nmod tests {\n    fn b() { assert_eq!(1, 1); }\n}\n";
        let tree = Tree::of(&[("crates/ftl/src/a.rs", text), ("crates/ftl/tests/b.rs", "assert!(x);")]);
        assert_eq!(densities(&tree), [Density { name: "ftl", assertions: 2, lines: 7 }]);
    }

    #[test]
    fn too_few_assertions_are_found_with_the_number_missing() {
        // 1,000 lines with `count` assertions on lines of their own.
        for (count, expected) in [(25, None), (24, Some("state 1 more")), (0, Some("state 25 more"))] {
            let text = "assert!(x);\n".repeat(count) + &"a();\n".repeat(1000 - count);
            let mut findings = Vec::new();
            check(
                &Tree::of(&[("crates/flash/src/a.rs", &text), ("crates/cli/src/b.rs", "a();")]),
                &mut findings,
            );
            let sentence = findings.pop().map(|finding| finding.sentence);
            match expected {
                None => assert_eq!(sentence, None),
                Some(part) => assert!(sentence.as_ref().is_some_and(|s| s.contains(part)), "{sentence:?}"),
            }
        }
    }
}
