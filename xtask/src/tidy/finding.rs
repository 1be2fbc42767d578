//! What a rule reports.

use std::fmt;

/// One broken rule at one place. Ordered by path, then line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the repository's root.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Short name of the rule, for searching.
    pub rule: &'static str,
    /// One sentence: what was found and what to change.
    pub sentence: String,
}

impl Finding {
    /// A finding at `line` (from 1) of `path`.
    pub fn new(path: &str, line: usize, rule: &'static str, sentence: impl Into<String>) -> Self {
        assert!(line > 0, "lines count from 1, rule {rule} gave 0 for {path}");
        Self { path: path.to_string(), line, rule, sentence: sentence.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_prints_as_editors_parse_it() {
        let finding = Finding::new("a/b.rs", 7, "names", "rename it");
        assert_eq!(finding.to_string(), "a/b.rs:7: names: rename it");
    }
}
