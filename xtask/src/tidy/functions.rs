//! Rule: a function fits on a screen.
//!
//! Counted from the line with `fn` to its closing brace, blank lines and comments included. A function inside another
//! counts for both. Closures count for the function they are in.

use super::{
    finding::Finding,
    rust_source::{RustSource, item_end, word_positions},
    tree::Tree,
};

/// Longest function allowed, in lines. STYLE.md: aim for 25, refuse more than 70.
const FUNCTION_LINES_MAX: usize = 70;

/// Finds functions longer than [`FUNCTION_LINES_MAX`]. Files of tests are left out: a table of cases is data.
pub fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for (file, rust) in tree.rust_files().filter(|(file, _)| !file.path.contains("/tests/")) {
        for function in functions(rust).into_iter().filter(|f| f.lines > FUNCTION_LINES_MAX) {
            let Function { name, line, lines } = function;
            findings.push(Finding::new(
                &file.path,
                line,
                "function-length",
                format!("`{name}` has {lines} lines, at most {FUNCTION_LINES_MAX} are allowed: split it by what it decides"),
            ));
        }
    }
}

/// One function with a body.
#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    /// Line of the `fn`, from 1.
    line: usize,
    /// Lines from the `fn` to the closing brace, both included.
    lines: usize,
}

fn functions(rust: &RustSource) -> Vec<Function> {
    let mut found = Vec::new();
    for (line, code) in rust.code_lines() {
        for at in word_positions(code, "fn") {
            let Some(name) = name_after(&code[at + 2..]) else { continue };
            let Some((end, has_body)) = item_end(&rust.code, line - 1, at) else { continue };
            if has_body {
                found.push(Function { name: name.to_string(), line, lines: end + 2 - line });
            }
        }
    }
    found
}

/// The identifier after `fn`; `None` for a function pointer type such as `fn(u8)`.
fn name_after(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix(' ')?.trim_start();
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '#')).unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(text: &str) -> Vec<(String, usize, usize)> {
        let rust = RustSource::new("a.rs", text);
        functions(&rust).into_iter().map(|f| (f.name, f.line, f.lines)).collect()
    }

    #[test]
    fn functions_are_measured_from_fn_to_closing_brace() {
        type Measured = (&'static str, usize, usize);
        let cases: [(&str, &[Measured]); 6] = [
            ("fn a() {}", &[("a", 1, 1)]),
            ("\npub const fn a(\n  x: [u8; 4],\n) -> u8\nwhere\n  u8: Copy,\n{\n  1\n}\n", &[("a", 2, 8)]),
            ("trait T { fn a(&self); fn b(&self) { } }", &[("b", 1, 1)]),
            ("fn a() {\n  fn b() {\n  }\n}", &[("a", 1, 4), ("b", 2, 2)]),
            ("fn a(f: fn(u8) -> u8) {\n  let c = '{'; let s = \"}}\"; // }\n}", &[("a", 1, 3)]),
            ("let fname = 1; // fn a() {}", &[]),
        ];
        for (text, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|&(n, l, c)| (n.to_string(), l, c)).collect();
            assert_eq!(lengths(text), expected, "{text}");
        }
    }

    #[test]
    fn the_limit_itself_is_allowed_and_one_more_is_not() {
        for (body_lines, expected) in [(68, 0), (69, 1)] {
            let text = format!("fn a() {{\n{}}}\n", "  b();\n".repeat(body_lines));
            let mut findings = Vec::new();
            check(&Tree::of(&[("crates/x/src/a.rs", &text)]), &mut findings);
            assert_eq!(findings.len(), expected, "{body_lines} lines of body");
        }
    }
}
