//! Rule: a file or module is named by its concept, not by being a place for anything.

use super::{finding::Finding, tree::Tree};

/// Names that say nothing about what is inside.
const REFUSED: &[&str] = &["common", "helper", "helpers", "misc", "util", "utils"];

/// Finds files, folders and inline modules with a name of [`REFUSED`].
pub fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for file in &tree.files {
        for part in file.path.split('/') {
            let stem = part.split('.').next().unwrap_or(part);
            if REFUSED.contains(&stem.to_lowercase().as_str()) {
                findings.push(Finding::new(&file.path, 1, "names", sentence(stem)));
            }
        }
    }
    for (file, rust) in tree.rust_files() {
        for (line, code) in rust.code_lines() {
            if let Some(name) = declared_module(code).filter(|name| REFUSED.contains(name)) {
                findings.push(Finding::new(&file.path, line, "names", sentence(name)));
            }
        }
    }
}

fn sentence(name: &str) -> String {
    format!("`{name}` says nothing about what is inside: name it by its one concept, or split it by concept")
}

/// `a` of `pub(crate) mod a {` or `mod a;`.
fn declared_module(code: &str) -> Option<&str> {
    let mut words = code.split([' ', ';', '{']).filter(|word| !word.is_empty());
    let first = words.next()?;
    let keyword = if first.starts_with("pub") { words.next()? } else { first };
    if keyword == "mod" { words.next() } else { None }
}

#[cfg(test)]
mod tests {
    use super::super::tree;
    use super::*;

    fn lines_found(path: &str, text: &str) -> Vec<usize> {
        tree::lines_found(check, path, text)
    }

    #[test]
    fn empty_names_are_found_in_paths_and_modules() {
        assert_eq!(lines_found("crates/a/src/utils.rs", ""), [1]);
        assert_eq!(lines_found("crates/a/tests/common/mod.rs", ""), [1]);
        assert_eq!(lines_found("scripts/Helpers.py", ""), [1]);
        assert_eq!(lines_found("a.rs", "\nmod misc {\n}"), [2]);
        assert_eq!(lines_found("a.rs", "pub(crate) mod util;"), [1]);
    }

    #[test]
    fn names_of_concepts_are_fine() {
        assert_eq!(
            lines_found("crates/a/src/common_prefix.rs", "mod utilization;\nlet common = 1;"),
            [0_usize; 0]
        );
    }
}
