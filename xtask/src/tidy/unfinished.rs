//! Rule: what is in the repository is finished, and no test is switched off.

use super::{
    finding::Finding,
    rust_source::word_positions,
    tree::{File, Tree},
};

/// Code that stands for code not written, or for a test not run, and what to do about it.
const IN_CODE: &[(&str, &str)] = &[
    ("todo!", "write the code, or leave the parameter out"),
    ("unimplemented!", "write the code, or return an error that says what is missing"),
    ("#[ignore", "make the test fast and certain, or delete it"),
    ("should_panic", "test the assertion through a function that returns a result, or not at all"),
];

/// Words in comments that mean "not finished".
const IN_COMMENTS: &[&str] = &["FIXME", "XXX"];

/// Lints whose silencing hides code nobody calls. A lint counts when its name begins with one of these.
const LINTS_KEPT: &[&str] = &["dead_code", "unused", "warnings"];

/// Finds unfinished code, switched-off tests and silenced lints.
pub fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for (file, rust) in tree.rust_files() {
        for (line, code) in rust.code_lines() {
            check_code(file, line, code, findings);
        }
        for (index, comment) in rust.comments.iter().enumerate() {
            check_comment(file, index + 1, comment, findings);
        }
    }
    for file in tree.files.iter().filter(|file| matches!(file.extension(), "toml" | "sh" | "py" | "c" | "h"))
    {
        for (line, text) in file.lines() {
            check_comment(file, line, text, findings);
        }
    }
}

fn check_code(file: &File, line: usize, code: &str, findings: &mut Vec<Finding>) {
    for (named, instead) in IN_CODE.iter().filter(|(named, _)| code.contains(named)) {
        let sentence = format!("`{named}` is not allowed: {instead}");
        findings.push(Finding::new(&file.path, line, "unfinished", sentence));
    }
    for lint in
        silenced_lints(code).into_iter().filter(|lint| LINTS_KEPT.iter().any(|kept| lint.starts_with(kept)))
    {
        let sentence = format!("the lint `{lint}` stays on: remove what nobody uses");
        findings.push(Finding::new(&file.path, line, "silenced-lint", sentence));
    }
}

fn check_comment(file: &File, line: usize, comment: &str, findings: &mut Vec<Finding>) {
    for word in IN_COMMENTS.iter().filter(|word| word_positions(comment, word).next().is_some()) {
        let sentence = format!("`{word}` is not allowed: repair it, or state the limit in the documentation");
        findings.push(Finding::new(&file.path, line, "unfinished", sentence));
    }
}

/// Names inside `allow(..)` and `expect(..)` attributes on one line; method calls such as `.expect(..)` do not count.
fn silenced_lints(code: &str) -> Vec<&str> {
    let mut lints = Vec::new();
    for opening in ["allow", "expect"] {
        for at in word_positions(code, opening).filter(|&at| !code[..at].ends_with('.')) {
            let Some(list) = code[at + opening.len()..].strip_prefix('(') else { continue };
            let list = list.split(')').next().unwrap_or(list);
            lints.extend(list.split(',').map(str::trim));
        }
    }
    lints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_found(path: &str, text: &str) -> Vec<&'static str> {
        let mut findings = Vec::new();
        check(&Tree::of(&[(path, text)]), &mut findings);
        findings.into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn unfinished_code_and_silenced_lints_are_found() {
        let cases = [
            ("fn a() { todo!() }", "unfinished"),
            ("fn a() { unimplemented!(\"later\") }", "unfinished"),
            ("#[test]\n#[ignore = \"slow\"]\nfn a() {}", "unfinished"),
            ("#[should_panic]", "unfinished"),
            ("let a = 1; // FIXME: wrong", "unfinished"),
            ("/* XXX */", "unfinished"),
            ("#[allow(dead_code)]", "silenced-lint"),
            ("#![allow(clippy::all, unused_imports)]", "silenced-lint"),
            ("#[expect(unused)]", "silenced-lint"),
        ];
        for (text, rule) in cases {
            assert_eq!(rules_found("a.rs", text), [rule], "{text}");
        }
        assert_eq!(rules_found("a.sh", "# FIXME"), ["unfinished"]);
    }

    #[test]
    fn words_in_strings_calls_and_longer_words_are_fine() {
        let cases = [
            "let s = \"todo! FIXME\";",
            "a.expect(unused);",
            "// XXXX and FIXMEs",
            "#[allow(clippy::too_many_lines, reason = \"a table\")]",
            "fn ignore() {}",
        ];
        for text in cases {
            assert_eq!(rules_found("a.rs", text), [""; 0], "{text}");
        }
    }
}
