//! Rules: a Markdown file has one title, and the changelog is ready for the next change.

use super::{finding::Finding, tree::Tree};

/// Finds Markdown files with no title, or with a second one.
pub fn check_titles(tree: &Tree, findings: &mut Vec<Finding>) {
    for file in tree.files.iter().filter(|file| file.extension() == "md") {
        let titles = titles(&file.text);
        if titles.is_empty() {
            let sentence = "has no `# title`: begin with one that says what the page is about";
            findings.push(Finding::new(&file.path, 1, "title", sentence));
        }
        for &line in titles.iter().skip(1) {
            let sentence = "is a second `# title`: make it `##`, or move the page into a file of its own";
            findings.push(Finding::new(&file.path, line, "title", sentence));
        }
    }
}

/// Lines (from 1) of first-level headings outside fenced blocks.
fn titles(text: &str) -> Vec<usize> {
    let mut is_fenced = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        is_fenced ^= line.trim_start().starts_with("```");
        if !is_fenced && line.starts_with("# ") {
            lines.push(index + 1);
        }
    }
    lines
}

/// Finds a changelog that is missing or has no place for the next change.
pub fn check_changelog(tree: &Tree, findings: &mut Vec<Finding>) {
    let changelog = tree.files.iter().find(|file| file.path == "CHANGELOG.md");
    let is_ready = changelog.is_some_and(|file| {
        file.text.lines().any(|line| matches!(line.trim_end(), "## Unreleased" | "## [Unreleased]"))
    });
    if !is_ready {
        let sentence = "needs a section `## Unreleased`: changes are written there with the change itself";
        findings.push(Finding::new("CHANGELOG.md", 1, "changelog", sentence));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::lines_found;
    use super::*;

    #[test]
    fn a_page_has_exactly_one_title() {
        let cases: [(&str, &[usize]); 4] = [
            ("# a\n## b\n", &[]),
            ("a\n", &[1]),
            ("# a\n\n# b\n# c\n", &[3, 4]),
            ("# a\n```sh\n# a comment\n```\n", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(lines_found(check_titles, "docs/a.md", text), expected, "{text}");
        }
    }

    #[test]
    fn the_changelog_has_a_place_for_the_next_change() {
        assert_eq!(
            lines_found(check_changelog, "CHANGELOG.md", "# Changelog\n\n## Unreleased\n"),
            [0_usize; 0]
        );
        assert_eq!(lines_found(check_changelog, "CHANGELOG.md", "# Changelog\n\n## 1.0\n"), [1]);
        assert_eq!(lines_found(check_changelog, "README.md", "# a\n"), [1]);
    }
}
