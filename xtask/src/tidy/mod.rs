//! `cargo xtask tidy`: the rules of STYLE.md and ARCHITECTURE.md that a program can check.
//!
//! Each rule is a function from the tree to findings, in a file of its own with its tests. Rules read text, not
//! syntax trees: `rust_source` tells code from comments and strings, and that is enough for every rule here.
//! Deliberately not here: anything rustfmt, rustc, clippy or rustdoc already checks.

mod assertions;
mod determinism;
mod documents;
mod finding;
mod functions;
mod layers;
mod machine_paths;
mod manifests;
mod names;
mod rust_source;
mod shape;
mod tree;
mod unfinished;

use crate::workspace::Workspace;
use anyhow::{Result, ensure};
use finding::Finding;
use tree::Tree;

/// A rule: looks at the whole tree, adds what it finds.
type Rule = fn(&Tree, &mut Vec<Finding>);

/// All rules, in the order their findings are made. Findings are sorted by path before they are printed.
const RULES: &[Rule] = &[
    determinism::check,
    layers::check,
    manifests::check_reasons,
    manifests::check_no_dependencies_below_engine,
    manifests::check_lock_file,
    shape::check_file_length,
    shape::check_line_length,
    shape::check_crate_docs,
    functions::check,
    unfinished::check,
    names::check,
    machine_paths::check,
    assertions::check,
    documents::check_titles,
    documents::check_changelog,
];

/// Checks every file git tracks or would track, prints findings and the assertion report.
///
/// Errors: at least one finding, or the files cannot be listed or read.
pub fn run(workspace: &Workspace) -> Result<()> {
    let tree = Tree::read(workspace)?;
    let mut findings = Vec::new();
    for rule in RULES {
        rule(&tree, &mut findings);
    }
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    for line in assertions::report(&tree) {
        println!("{line}");
    }
    ensure!(
        findings.is_empty(),
        "tidy: {} findings in {} files; each line above says what to change",
        findings.len(),
        tree.files.len()
    );
    println!("tidy: no findings in {} files", tree.files.len());
    Ok(())
}
