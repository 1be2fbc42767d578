//! Rules: files and lines have a size, and every crate says what it is.

use super::{finding::Finding, tree::Tree};
use crate::c_library::HEADER;

/// Longest file of code allowed, in lines. STYLE.md: aim for 100 to 400.
const FILE_LINES_MAX: usize = 600;

/// Longest line allowed, in characters. rustfmt breaks code at 110; this also holds comments, prose and scripts.
const LINE_CHARS_MAX: usize = 132;

/// Files of code, by what follows the last dot.
const CODE_EXTENSIONS: &[&str] = &["c", "cc", "cpp", "h", "hpp", "py", "rs", "sh"];

/// Finds files of code longer than [`FILE_LINES_MAX`]. The C header is written from files that are not, and C programs include
/// one header.
pub fn check_file_length(tree: &Tree, findings: &mut Vec<Finding>) {
    let is_code = |path: &str, extension| CODE_EXTENSIONS.contains(&extension) && path != HEADER;
    for file in tree.files.iter().filter(|file| is_code(&file.path, file.extension())) {
        let count = file.text.lines().count();
        if count > FILE_LINES_MAX {
            let sentence =
                format!("has {count} lines, at most {FILE_LINES_MAX} are allowed: split it by concept");
            findings.push(Finding::new(&file.path, FILE_LINES_MAX + 1, "file-length", sentence));
        }
    }
}

/// Finds lines longer than [`LINE_CHARS_MAX`].
///
/// Not counted: literals in Rust; tables and fenced blocks in Markdown; lines that hold a link, which cannot break.
pub fn check_line_length(tree: &Tree, findings: &mut Vec<Finding>) {
    for file in &tree.files {
        let lengths = match (&file.rust, file.extension()) {
            (Some(rust), _) => rust.chars_outside_literals.clone(),
            (None, "md") => prose_lengths(&file.text),
            (None, "toml") => file.text.lines().map(|line| line.chars().count()).collect(),
            (None, extension) if CODE_EXTENSIONS.contains(&extension) => {
                file.text.lines().map(|line| line.chars().count()).collect()
            }
            (None, _) => continue,
        };
        for ((line, text), length) in file.lines().zip(lengths) {
            if length > LINE_CHARS_MAX && !text.contains("://") {
                let sentence =
                    format!("has {length} characters, at most {LINE_CHARS_MAX} are allowed: break the line");
                findings.push(Finding::new(&file.path, line, "line-length", sentence));
            }
        }
    }
}

/// Characters of each line of a Markdown text; zero inside fenced blocks and for rows of tables.
fn prose_lengths(text: &str) -> Vec<usize> {
    let mut is_fenced = false;
    let length = |line: &str| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        let is_table = line.trim_start().starts_with('|');
        if is_fenced || is_table { 0 } else { line.chars().count() }
    };
    text.lines().map(length).collect()
}

/// Finds `lib.rs` and `main.rs` files of crates that do not begin with a `//!` line.
pub fn check_crate_docs(tree: &Tree, findings: &mut Vec<Finding>) {
    for (file, _) in tree.rust_files() {
        let is_root = file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs");
        if is_root && !file.text.starts_with("//!") {
            let sentence =
                "the crate must begin with `//!`: say what it is and what is deliberately not in it";
            findings.push(Finding::new(&file.path, 1, "crate-docs", sentence));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::lines_found;
    use super::*;

    #[test]
    fn code_may_have_600_lines_and_prose_more() {
        assert_eq!(lines_found(check_file_length, "a.rs", &"\n".repeat(600)), [0_usize; 0]);
        assert_eq!(lines_found(check_file_length, "a.rs", &"\n".repeat(601)), [601]);
        for path in ["a.md", HEADER] {
            assert_eq!(lines_found(check_file_length, path, &"\n".repeat(601)), [0_usize; 0], "{path}");
        }
        assert_eq!(lines_found(check_file_length, "a.h", &"\n".repeat(601)), [601]);
    }

    #[test]
    fn long_lines_are_found_where_they_can_be_broken() {
        let long = "x".repeat(133);
        let cases: [(&str, String, &[usize]); 9] = [
            ("a.rs", format!("// {}", "x".repeat(129)), &[]),
            ("a.rs", format!("// {long}"), &[1]),
            ("a.rs", format!("f(\"{long}\");"), &[]),
            ("a.rs", format!("// https://{long}"), &[]),
            ("a.md", format!("# a\n\n{long}"), &[3]),
            ("a.md", format!("| {long} |"), &[]),
            ("a.md", format!("```\n{long}\n```\n{long}"), &[4]),
            ("a.toml", long.clone(), &[1]),
            ("a.csv", long, &[]),
        ];
        for (path, text, expected) in cases {
            assert_eq!(lines_found(check_line_length, path, &text), expected, "{path}: {text}");
        }
    }

    #[test]
    fn a_crate_begins_with_its_description() {
        assert_eq!(lines_found(check_crate_docs, "crates/a/src/lib.rs", "//! What it is.\n"), [0_usize; 0]);
        assert_eq!(lines_found(check_crate_docs, "crates/a/src/lib.rs", "\nmod a;\n"), [1]);
        assert_eq!(lines_found(check_crate_docs, "crates/a/src/other.rs", "mod a;\n"), [0_usize; 0]);
    }
}
