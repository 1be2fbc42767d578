//! Rule: crates depend downwards only.
//!
//! The compiler refuses cycles; this refuses the edges that are no cycle yet and would still bend the architecture.
//! `dev-dependencies` may name any crate but `cli`: a target's tests need a device below it.

use super::{
    finding::Finding,
    tree::{File, Tree},
};

/// Which crates of the workspace a crate may depend on, by folder name. ARCHITECTURE.md draws the same.
const ALLOWED: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("lightnvm", &["base"]),
    // The wire shares statuses and the address format with the typed interface.
    ("nvme", &["base", "lightnvm"]),
    // The virtual drive speaks the wire structures itself; nothing else below `engine` needs them.
    ("flash", &["base", "lightnvm", "nvme"]),
    ("ftl", &["base", "lightnvm"]),
    // Never flash: a target must work on any device.
    ("targets", &["base", "lightnvm", "ftl"]),
    ("engine", &["base", "lightnvm"]),
    ("workload", &["base", "lightnvm"]),
    ("drive", &["base", "lightnvm", "nvme", "flash"]),
    ("report", &["base"]),
    ("measure", &["base", "lightnvm", "nvme", "engine", "workload", "report"]),
    // Never targets: what is exported is chosen by the caller.
    ("export", &["base", "lightnvm", "nvme", "engine"]),
    // A drive that is elsewhere: sockets below the loop, which waits for them by a clock.
    ("nvme_host", &["base", "lightnvm", "nvme", "engine"]),
    ("table_store", &["base", "lightnvm", "flash", "targets", "engine", "drive", "nvme_host"]),
    ("sim", BELOW_CLI),
    ("capi", BELOW_CLI),
    (
        "cli",
        &[
            "sim",
            "capi",
            "base",
            "nvme",
            "lightnvm",
            "flash",
            "ftl",
            "targets",
            "engine",
            "workload",
            "drive",
            "report",
            "measure",
            "export",
            "nvme_host",
            "table_store",
        ],
    ),
];

/// What the crates that put everything together may use.
const BELOW_CLI: &[&str] = &[
    "base", "nvme", "lightnvm", "flash", "ftl", "targets", "engine", "workload", "drive", "report",
    "measure", "export",
];

/// Finds dependencies between crates that [`ALLOWED`] does not list.
pub fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for manifest in tree.manifests() {
        let Some(name) = manifest.crate_name() else { continue };
        let allowed = ALLOWED.iter().find(|(above, _)| *above == name).map(|(_, below)| *below);
        let Some(allowed) = allowed else {
            let sentence = format!(
                "crate `{name}` has no row in `ALLOWED` of xtask/src/tidy/layers.rs: say there what it may depend on"
            );
            findings.push(Finding::new(&manifest.path, 1, "layers", sentence));
            continue;
        };
        match edges(manifest) {
            Err(problem) => findings.push(Finding::new(&manifest.path, 1, "layers", problem)),
            Ok(edges) => {
                findings.extend(edges.iter().filter_map(|edge| judge(manifest, name, allowed, edge)))
            }
        }
    }
}

/// A dependency on a crate of this workspace.
struct Edge {
    /// Folder name of the crate depended on.
    below: String,
    /// Whether only tests use it.
    is_dev: bool,
}

fn judge(manifest: &File, name: &str, allowed: &[&str], edge: &Edge) -> Option<Finding> {
    let below = edge.below.as_str();
    let is_allowed = if edge.is_dev { below != "cli" } else { allowed.contains(&below) };
    if is_allowed {
        return None;
    }
    let key = format!("ocssd-{}", below.replace('_', "-"));
    let line = manifest.lines().find(|(_, text)| text.contains(&key)).map_or(1, |(line, _)| line);
    let sentence = format!(
        "`{name}` must not depend on `{below}` (it may use: {}): move the shared part down, or pass it in",
        if allowed.is_empty() { "nothing".to_string() } else { allowed.join(", ") }
    );
    Some(Finding::new(&manifest.path, line, "layers", sentence))
}

/// All dependencies of a manifest that are named `ocssd-...`.
fn edges(manifest: &File) -> Result<Vec<Edge>, String> {
    let parsed: toml::Table = manifest.text.parse().map_err(|error| format!("is not TOML: {error}"))?;
    let mut edges = Vec::new();
    let mut tables = vec![&parsed];
    let per_target = parsed.get("target").and_then(toml::Value::as_table);
    tables.extend(per_target.into_iter().flat_map(toml::Table::values).filter_map(toml::Value::as_table));
    for table in tables {
        for (section, is_dev) in
            [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
        {
            let Some(dependencies) = table.get(section).and_then(toml::Value::as_table) else { continue };
            for (key, value) in dependencies {
                let renamed = value.get("package").and_then(toml::Value::as_str);
                if let Some(below) = renamed.unwrap_or(key).strip_prefix("ocssd-") {
                    // Folders are named as Rust's modules are, packages as cargo likes them.
                    edges.push(Edge { below: below.replace('-', "_"), is_dev });
                }
            }
        }
    }
    Ok(edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_of(name: &str, manifest: &str) -> Vec<Finding> {
        let path = format!("crates/{name}/Cargo.toml");
        let mut findings = Vec::new();
        check(&Tree::of(&[(&path, manifest)]), &mut findings);
        findings
    }

    #[test]
    fn edges_upwards_and_sideways_are_found_with_their_line() {
        let cases = [
            ("ftl", "[dependencies]\nocssd-flash.workspace = true", 2),
            (
                "targets",
                "[dependencies]\nocssd-base.workspace = true\nocssd-flash = { path = \"../flash\" }",
                3,
            ),
            ("targets", "[dependencies]\nmedia = { package = \"ocssd-flash\", path = \"../flash\" }", 2),
            ("export", "[dependencies]\nocssd-targets.workspace = true", 2),
            ("base", "[build-dependencies]\nocssd-nvme.workspace = true", 2),
            ("sim", "[dev-dependencies]\nocssd-cli.workspace = true", 2),
            ("nvme", "[target.'cfg(unix)'.dependencies]\nocssd-flash.workspace = true", 2),
        ];
        for (name, manifest, line) in cases {
            let lines: Vec<usize> = findings_of(name, manifest).iter().map(|f| f.line).collect();
            assert_eq!(lines, [line], "{name}: {manifest}");
        }
    }

    #[test]
    fn edges_downwards_and_tests_on_a_device_are_allowed() {
        let cases = [
            ("flash", "[dependencies]\nocssd-nvme.workspace = true\nocssd-base.workspace = true"),
            ("targets", "[dev-dependencies]\nocssd-flash.workspace = true"),
            ("cli", "[dependencies]\nocssd-sim.workspace = true\nserde = \"1\""),
        ];
        for (name, manifest) in cases {
            assert_eq!(findings_of(name, manifest), [], "{name}");
        }
    }

    #[test]
    fn unknown_crates_and_broken_manifests_are_findings() {
        assert!(findings_of("novel", "").pop().is_some_and(|f| f.sentence.contains("no row")));
        assert!(findings_of("base", "[dependencies").pop().is_some_and(|f| f.sentence.contains("not TOML")));
    }

    #[test]
    fn the_table_has_no_cycle() {
        // Every crate may only use crates whose own row is complete before it: peel rows until none is left.
        let mut done: Vec<&str> = Vec::new();
        while done.len() < ALLOWED.len() {
            let ready = ALLOWED.iter().find(|(name, below)| {
                !done.contains(name) && below.iter().all(|crate_| done.contains(crate_))
            });
            let (name, _) = ready.unwrap_or_else(|| panic!("a cycle among the rows outside {done:?}"));
            done.push(name);
        }
    }
}
