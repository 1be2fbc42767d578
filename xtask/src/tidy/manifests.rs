//! Rules: every dependency has a reason, the core has none, and the lock file is part of the repository.

use super::{
    determinism::BELOW_ENGINE,
    finding::Finding,
    tree::{File, Tree},
};

/// Outside crates the core may use: code without behaviour at run time, and a checksum that uses the processor's own
/// instructions, which the core itself cannot name without `unsafe`. STYLE.md, dependencies.
const ALLOWED_BELOW_ENGINE: &[&str] = &["thiserror", "crc32fast"];

/// Finds dependencies on outside crates that neither carry nor follow a comment.
pub fn check_reasons(tree: &Tree, findings: &mut Vec<Finding>) {
    for manifest in tree.manifests() {
        for dependency in outside_dependencies(manifest).into_iter().filter(|d| !d.has_reason) {
            let sentence =
                format!("`{}` needs a comment on or above its line: say why it is used", dependency.name);
            findings.push(Finding::new(&manifest.path, dependency.line, "dependency-reason", sentence));
        }
    }
}

/// Finds dependencies on outside crates in the crates below `engine`. What only tests use is allowed.
pub fn check_no_dependencies_below_engine(tree: &Tree, findings: &mut Vec<Finding>) {
    for manifest in tree.manifests() {
        if !manifest.crate_name().is_some_and(|name| BELOW_ENGINE.contains(&name)) {
            continue;
        }
        for dependency in outside_dependencies(manifest) {
            if dependency.is_dev || ALLOWED_BELOW_ENGINE.contains(&dependency.name.as_str()) {
                continue;
            }
            let sentence = format!(
                "`{}` is an outside crate and the crates below `engine` have none: write the part, or move it up",
                dependency.name
            );
            findings.push(Finding::new(&manifest.path, dependency.line, "core-dependency", sentence));
        }
    }
}

/// Finds a lock file that is missing or not tracked: a build from last year must still be the same build.
pub fn check_lock_file(tree: &Tree, findings: &mut Vec<Finding>) {
    let is_tracked = tree.files.iter().any(|file| file.path == "Cargo.lock" && file.is_tracked);
    if !is_tracked {
        findings.push(Finding::new("Cargo.lock", 1, "lock-file", "is not tracked: `git add Cargo.lock`"));
    }
}

/// A dependency on a crate outside this repository.
struct Dependency {
    name: String,
    /// Line, from 1.
    line: usize,
    has_reason: bool,
    /// Whether only tests use it.
    is_dev: bool,
}

/// Read line by line rather than as TOML, since comments are what is looked for.
fn outside_dependencies(manifest: &File) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut section = String::new();
    let mut open_brackets = 0_usize; // an array or table that goes on over lines
    let mut is_after_comment = false;
    let lines: Vec<&str> = manifest.text.lines().collect();
    for (index, line) in lines.iter().map(|line| line.trim()).enumerate() {
        let header =
            line.strip_prefix('[').and_then(|rest| rest.split_once(']')).filter(|_| open_brackets == 0);
        let named = if let Some((header, _)) = header {
            section = header.to_string();
            // `[dependencies.serde]` is a dependency written as a section of its own.
            name_in_header(header).filter(|_| !is_inside_section(&lines[index + 1..]))
        } else if is_dependency_section(&section) && open_brackets == 0 {
            name_in_line(line)
        } else {
            None
        };
        if let Some(name) = named {
            let has_reason = line.contains('#') || is_after_comment;
            let is_dev = section.contains("dev-dependencies");
            found.push(Dependency { name: name.to_string(), line: index + 1, has_reason, is_dev });
        }
        if header.is_none() {
            open_brackets = (open_brackets + line.matches(['[', '{']).count())
                .saturating_sub(line.matches([']', '}']).count());
        }
        is_after_comment = line.starts_with('#');
    }
    found
}

fn is_dependency_section(section: &str) -> bool {
    section.rsplit('.').next().is_some_and(|last| last == "dependencies" || last.ends_with("-dependencies"))
}

/// `serde` of `dependencies.serde`.
fn name_in_header(header: &str) -> Option<&str> {
    let (parent, name) = header.rsplit_once('.')?;
    is_dependency_section(parent).then_some(name)
}

/// Whether a section's body names a path or the workspace, so that the crate is one of ours.
fn is_inside_section(body: &[&str]) -> bool {
    body.iter().take_while(|line| !line.trim_start().starts_with('[')).any(|line| is_inside(line))
}

/// `serde` of `serde = "1"`; `None` for blank lines, comments and crates of this repository.
fn name_in_line(line: &str) -> Option<&str> {
    let (key, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
    let key = key.trim();
    let is_ours = key.ends_with(".workspace") || key.ends_with(".path") || is_inside(value);
    (!is_ours).then(|| key.split('.').next().unwrap_or(key))
}

fn is_inside(text: &str) -> bool {
    let settings = text.split(['{', '}', ',']).filter_map(|setting| setting.split_once('='));
    settings.into_iter().any(|(key, _)| matches!(key.trim(), "workspace" | "path"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreasoned(text: &str) -> Vec<(usize, String)> {
        let mut findings = Vec::new();
        check_reasons(&Tree::of(&[("crates/cli/Cargo.toml", text)]), &mut findings);
        findings
            .into_iter()
            .map(|f| (f.line, f.sentence.split('`').nth(1).unwrap_or_default().to_string()))
            .collect()
    }

    #[test]
    fn a_dependency_without_comment_is_found() {
        let cases: [(&str, &[(usize, &str)]); 7] = [
            ("[dependencies]\nserde = \"1\"", &[(2, "serde")]),
            ("[dependencies]\n# why\nserde = \"1\"\ntoml = \"1\"", &[(4, "toml")]),
            (
                "[dependencies]\nserde = { version = \"1\", features = [\n  \"derive\",\n] }\n",
                &[(2, "serde")],
            ),
            ("[dev-dependencies]\nserde = \"1\"", &[(2, "serde")]),
            ("[target.'cfg(unix)'.dependencies]\nlibc = \"1\"", &[(2, "libc")]),
            ("[dependencies.serde]\nversion = \"1\"", &[(1, "serde")]),
            ("[workspace.dependencies]\nserde.version = \"1\"", &[(2, "serde")]),
        ];
        for (text, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|&(l, n)| (l, n.to_string())).collect();
            assert_eq!(unreasoned(text), expected, "{text}");
        }
    }

    #[test]
    fn comments_paths_and_workspace_lines_are_enough() {
        let cases = [
            "[dependencies]\nserde = \"1\" # why",
            "[dependencies]\nocssd-base.workspace = true\nocssd-ftl = { path = \"../ftl\" }",
            "[dependencies]\nserde = { workspace = true }",
            "[dependencies.ocssd-base]\npath = \"../base\"",
            "# why\n[dependencies.serde]\nversion = \"1\"",
            "[package]\nname = \"x\"\n[lints]\nworkspace = true\n[features]\nfast = []",
        ];
        for text in cases {
            assert_eq!(unreasoned(text), [], "{text}");
        }
    }

    #[test]
    fn the_core_may_use_thiserror_and_test_crates_only() {
        let text = "[dependencies]\nthiserror = \"2\" # why\nserde = \"1\" # why\n[dev-dependencies]\nproptest = \"1\" # why";
        for (path, expected) in [("crates/ftl/Cargo.toml", vec![3]), ("crates/cli/Cargo.toml", vec![])] {
            let mut findings = Vec::new();
            check_no_dependencies_below_engine(&Tree::of(&[(path, text)]), &mut findings);
            assert_eq!(findings.iter().map(|f| f.line).collect::<Vec<_>>(), expected, "{path}");
        }
    }

    #[test]
    fn a_lock_file_that_git_does_not_know_is_found() {
        let mut tree = Tree::of(&[("Cargo.lock", "")]);
        let mut findings = Vec::new();
        check_lock_file(&tree, &mut findings);
        assert_eq!(findings, []);
        tree.files[0].is_tracked = false;
        check_lock_file(&tree, &mut findings);
        assert_eq!(findings.len(), 1);
    }
}
