//! Every fuzz target of `fuzz/Cargo.toml`, for a minute each.

use crate::{process, subcommand::Subcommand, workspace::Workspace};
use anyhow::{Context, Result, ensure};
use std::{fs, process::Command};

/// How long each target runs. Chosen: ten targets take ten minutes.
const SECONDS_PER_TARGET: u32 = 60;

/// What compiles for libFuzzer and starts it; the newest version when this was written.
const CARGO_FUZZ: Subcommand = Subcommand { package: "cargo-fuzz", version: "0.13.2" };

/// Runs all targets one after the other. Those of protocols begin with the clients of the seeded tests.
///
/// Errors: cargo-fuzz or the nightly compiler is missing and cannot be installed, or a target finds a crash.
pub fn run(workspace: &Workspace) -> Result<()> {
    if !process::succeeds(with_rustup(&mut Command::new("cargo")).args(["+nightly", "--version"])) {
        println!("installing the nightly compiler by rustup");
        let install = ["toolchain", "install", "nightly", "--profile", "minimal"];
        process::run(Command::new("rustup").args(install))
            .context("fuzzing needs the nightly compiler: `rustup toolchain install nightly`")?;
    }
    CARGO_FUZZ
        .ensure_installed(workspace)
        .context("fuzzing needs cargo-fuzz: `cargo install cargo-fuzz` shows why it cannot be installed")?;
    let manifest = fs::read_to_string(workspace.root.join("fuzz/Cargo.toml"))
        .context("fuzz/Cargo.toml could not be read")?;
    let mut seeds = workspace.cargo();
    seeds.args(["test", "-p", "ocssd-export", "--test", "random"]);
    process::run(seeds.env("OCSSD_CORPUS", workspace.root.join("fuzz/corpus")))?;
    for target in targets(&manifest)? {
        let limit = format!("-max_total_time={SECONDS_PER_TARGET}");
        let mut fuzz = CARGO_FUZZ.command(workspace);
        with_rustup(&mut fuzz).env("RUSTUP_TOOLCHAIN", "nightly").current_dir(&workspace.root);
        process::run(fuzz.args(["run", &target, "--", &limit])).with_context(|| {
            format!("fuzz target `{target}`: the input that failed is in fuzz/artifacts/{target}")
        })?;
    }
    Ok(())
}

/// The cargo that started this program, a plain one maybe, is forgotten: rustup's in the path is taken.
fn with_rustup(command: &mut Command) -> &mut Command {
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN")
}

/// Names of the `[[bin]]` sections.
fn targets(manifest: &str) -> Result<Vec<String>> {
    let parsed: toml::Table = manifest.parse().context("fuzz/Cargo.toml is not TOML")?;
    let bins = parsed.get("bin").and_then(toml::Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let name = |bin: &toml::Value| bin.get("name").and_then(toml::Value::as_str).map(str::to_string);
    let names: Vec<String> = bins.iter().filter_map(name).collect();
    ensure!(!names.is_empty(), "expected [[bin]] sections with names in fuzz/Cargo.toml, found none");
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_bins_of_the_manifest() {
        let manifest = "[[bin]]\nname = \"a\"\n[[bin]]\nname = \"b\"\n";
        assert_eq!(targets(manifest).unwrap(), ["a", "b"]);
        assert!(targets("[package]\nname = \"a\"\n").is_err());
        assert!(targets("[[bin").is_err());
    }

    #[test]
    fn the_project_has_a_target_per_decoder() {
        let names = targets(include_str!("../../../fuzz/Cargo.toml")).unwrap();
        assert_eq!(
            names,
            [
                "nvme_decode",
                "job_parse",
                "drive_toml",
                "image_open",
                "nbd_client",
                "nvme_tcp_host",
                "resp_client",
                "vhost_user_blk_guest",
                "pci_nvme_guest",
                "fuse_kernel"
            ]
        );
    }
}
