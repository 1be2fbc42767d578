//! Rule: nothing names a folder of the machine it was written on.

use super::{
    finding::Finding,
    tree::{File, Tree},
};

/// Beginnings of paths that exist on one machine and not on the next.
const REFUSED: &[&str] = &["/home/", "/root/", "/tmp/", "/work/"];

/// Where such a path is what a user wants to read: beginning of the file's path, beginning of the refused path.
const ALLOWED: &[(&str, &str)] = &[
    // Examples a user pastes may put an image or a socket there.
    ("README.md", "/tmp/"),
    ("docs/", "/tmp/"),
    // This rule names what it refuses.
    ("xtask/src/tidy/machine_paths.rs", "/"),
];

/// Finds paths that begin with one of [`REFUSED`], in every text file.
pub fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for file in &tree.files {
        for (line, text) in file.lines() {
            for refused in
                REFUSED.iter().filter(|refused| begins_a_path(text, refused) && !is_allowed(file, refused))
            {
                let sentence = format!(
                    "`{refused}` is a folder of one machine: use a path relative to the repository, or ask for a temporary folder"
                );
                findings.push(Finding::new(&file.path, line, "machine-path", sentence));
            }
        }
    }
}

fn is_allowed(file: &File, refused: &str) -> bool {
    ALLOWED.iter().any(|(path, beginning)| file.path.starts_with(path) && refused.starts_with(beginning))
}

/// Whether `beginning` stands in `text` and is not the middle of a longer path such as `target/tmp/a`.
fn begins_a_path(text: &str, beginning: &str) -> bool {
    text.match_indices(beginning).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | ')'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        let mut findings = Vec::new();
        check(&Tree::of(&[(path, text)]), &mut findings);
        findings.len()
    }

    #[test]
    fn folders_of_a_machine_are_found_in_any_text() {
        assert_eq!(count("a.rs", "let a = \"/tmp/x\";"), 1);
        assert_eq!(count("a.toml", "path=/root/x"), 1);
        assert_eq!(count("experiments/a.json", "{\"at\": \"/work/a\"}"), 1);
    }

    #[test]
    fn longer_paths_and_what_users_paste_are_fine() {
        assert_eq!(count("a.rs", "// target/tmp/x, ./work/a, {root}/root/b"), 0);
        assert_eq!(count("docs/a.md", "ocssd serve --socket /tmp/ocssd.sock"), 0);
        assert_eq!(count("docs/a.md", "see /work/a"), 1);
    }
}
