//! Rule: below `engine` there is no clock, thread, socket, file, environment, lock or unordered collection.
//!
//! The same seed gives the same trace only while nothing below the loop can ask the machine anything. Tests of those
//! crates follow the rule as well, since a test that differs from run to run is worth little; files under `tests/` may
//! touch files, because a drive image is one, and locks, because a drive may be another thread's.

use super::{
    finding::Finding,
    rust_source::word_positions,
    tree::{File, Tree},
};

/// Crates whose code is driven by `engine` and never asks the machine anything.
pub const BELOW_ENGINE: &[&str] = &["base", "lightnvm", "nvme", "flash", "ftl", "targets"];

/// Modules of the standard library that reach the machine, in `std` and, where it has them, in `core`.
const MODULES: &[&str] = &["env", "fs", "net", "process", "sync", "thread", "time"];

/// Types whose use makes a run unrepeatable: clocks, and collections whose order changes from run to run.
const TYPES: &[&str] = &["HashMap", "HashSet", "Instant", "SystemTime"];

/// What the one file store, and integration tests that make files for it, may name.
const MODULES_OF_FILE_STORE: &[&str] = &["env", "fs", "process"];

/// Finds forbidden modules and types in the crates of [`BELOW_ENGINE`].
pub fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for (file, rust) in tree.rust_files() {
        if !file.crate_name().is_some_and(|name| BELOW_ENGINE.contains(&name)) {
            continue;
        }
        let mut report = |line: usize, named: &str, instead: &str| {
            let sentence = format!("`{named}` has no place below `engine`: {instead}");
            findings.push(Finding::new(&file.path, line, "determinism", sentence));
        };
        for (line, module) in named_modules(&rust.code.join("\n")) {
            if MODULES.contains(&module.as_str()) && !may_touch_files(file, &module) {
                report(line, &format!("std::{module}"), "take time, data and randomness as arguments");
            }
        }
        for (line, code) in rust.code_lines() {
            for name in TYPES.iter().filter(|name| word_positions(code, name).next().is_some()) {
                let is_clock = matches!(*name, "Instant" | "SystemTime");
                report(
                    line,
                    name,
                    if is_clock { "take `now: Nanos`" } else { "use BTreeMap, BTreeSet or a Vec" },
                );
            }
        }
    }
}

fn may_touch_files(file: &File, module: &str) -> bool {
    let is_file_store = file.path.starts_with("crates/flash/src/store/file");
    let is_integration_test = file.path.split('/').nth(2) == Some("tests");
    // A drive may go to another thread, and a test that looks into one it has given away must be able to follow.
    (is_file_store || is_integration_test) && MODULES_OF_FILE_STORE.contains(&module)
        || is_integration_test && module == "sync"
}

/// First path segments after `std::` or `core::` with their lines, also those inside `std::{a, b::c}`.
fn named_modules(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for root in ["std", "core"] {
        for at in word_positions(code, root) {
            let Some(rest) = code[at + root.len()..].strip_prefix("::") else { continue };
            let start = at + root.len() + 2;
            for (offset, name) in first_segments(rest) {
                let line = code[..start + offset].matches('\n').count() + 1;
                found.push((line, name.to_string()));
            }
        }
    }
    found
}

/// Names at depth one of a use tree: `a` of `a::b`; `a` and `b` of `{a::{x, y}, b}`. With byte offsets.
fn first_segments(tree: &str) -> Vec<(usize, &str)> {
    let end_of_name =
        |text: &str| text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    if !tree.starts_with('{') {
        return vec![(0, &tree[..end_of_name(tree)])];
    }
    let mut names = Vec::new();
    let mut depth = 0_usize;
    let mut expects_name = false;
    for (at, c) in tree.char_indices() {
        match c {
            '{' => {
                depth += 1;
                expects_name = depth == 1;
            }
            '}' if depth == 1 => break,
            '}' => depth -= 1,
            ',' if depth == 1 => expects_name = true,
            c if expects_name && !c.is_whitespace() => {
                names.push((at, &tree[at..at + end_of_name(&tree[at..])]));
                expects_name = false;
            }
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str, text: &str) -> Vec<(usize, String)> {
        let mut findings = Vec::new();
        check(&Tree::of(&[(path, text)]), &mut findings);
        findings
            .into_iter()
            .map(|f| (f.line, f.sentence.split('`').nth(1).unwrap_or_default().to_string()))
            .collect()
    }

    #[test]
    fn forbidden_names_are_found_however_they_are_imported() {
        let cases: [(&str, &[(usize, &str)]); 8] = [
            ("use std::time::Duration;", &[(1, "std::time")]),
            ("use std::{fmt, fs};", &[(1, "std::fs")]),
            ("use std::{\n    collections::{self, fs},\n    net::{A, B},\n};", &[(3, "std::net")]),
            ("use core::sync::atomic::AtomicU8;", &[(1, "std::sync")]),
            ("fn a() { ::std::thread::yield_now() }", &[(1, "std::thread")]),
            ("use std::collections::HashMap;", &[(1, "HashMap")]),
            ("fn a(b: Instant) {}", &[(1, "Instant")]),
            ("use std::{collections::BTreeMap, fmt};\n// std::time\nlet s = \"std::fs\";", &[]),
        ];
        for (text, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|&(l, n)| (l, n.to_string())).collect();
            assert_eq!(named("crates/ftl/src/a.rs", text), expected, "{text}");
        }
    }

    #[test]
    fn crates_from_engine_up_may_use_them() {
        assert_eq!(named("crates/engine/src/a.rs", "use std::time::Instant;"), []);
        assert_eq!(named("xtask/src/a.rs", "use std::fs;"), []);
    }

    #[test]
    fn the_file_store_may_name_files_but_not_time() {
        for path in [
            "crates/flash/src/store/file.rs",
            "crates/flash/src/store/file/page.rs",
            "crates/flash/tests/a.rs",
        ] {
            assert_eq!(named(path, "use std::fs;"), [], "{path}");
            assert_eq!(named(path, "use std::time;"), [(1, "std::time".to_string())], "{path}");
        }
        assert_eq!(named("crates/flash/src/store/ram.rs", "use std::fs;").len(), 1);
        let lock = "use std::sync::Mutex;";
        assert_eq!(named("crates/flash/tests/a.rs", lock), []);
        assert_eq!(named("crates/flash/src/store/file.rs", lock).len(), 1);
    }
}
