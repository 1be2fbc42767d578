//! Puts the C library where compilers, linkers, pkg-config and man look below a prefix.

use super::{HEADER, MANUAL};
use crate::{process, workspace::Workspace};
use anyhow::{Context, Result};
use clap::Args;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What was typed after `cargo xtask install-c`.
#[derive(Args)]
pub struct Options {
    /// Folder that gets include, lib and share
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
    /// Cargo's profile to build with; tests take `dev`
    #[arg(long, value_name = "NAME", default_value = "release")]
    profile: String,
}

impl Options {
    /// To install below a prefix what a profile built.
    pub fn new(prefix: PathBuf, profile: String) -> Self {
        Self { prefix, profile }
    }
}

/// The shared library's name for the linker, which programs ask for when they start; `crates/capi/build.rs` has it too.
const SONAME: &str = "libocssd.so.0";

/// What the static library needs beside itself: `rustc --print native-static-libs`.
const STATIC_NEEDS: &str = "-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc";

/// Builds the library and copies everything.
///
/// Errors: the build fails, or a folder cannot be written to.
pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let Options { prefix, profile } = options;
    process::run(workspace.cargo().args([
        "build",
        "--package",
        "ocssd-capi",
        "--lib",
        "--profile",
        profile,
    ]))?;
    let built = workspace.target.join(if profile == "dev" { "debug" } else { profile.as_str() });
    let version = env!("CARGO_PKG_VERSION");
    let folder = |name: &str| -> Result<PathBuf> {
        let folder = prefix.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("{} could not be made", folder.display()))?;
        Ok(folder)
    };
    let (include, lib, man) = (folder("include")?, folder("lib")?, folder("share/man/man3")?);
    let pkgconfig = folder("lib/pkgconfig")?;
    let shared = format!("libocssd.so.{version}");
    put(&built.join("libocssd.so"), &lib.join(&shared))?;
    link(&lib, &shared, SONAME)?;
    link(&lib, SONAME, "libocssd.so")?;
    put(&built.join("libocssd.a"), &lib.join("libocssd.a"))?;
    put(&workspace.root.join(HEADER), &include.join("ocssd.h"))?;
    put(&workspace.root.join(MANUAL), &man.join("ocssd.3"))?;
    let description = pkgconfig.join("ocssd.pc");
    fs::write(&description, pkg_config(version))
        .with_context(|| format!("{} could not be written", description.display()))?;
    println!("installed ocssd {version} below {}", prefix.display());
    Ok(())
}

/// Replaces a file, also one that a running program has mapped.
fn put(from: &Path, to: &Path) -> Result<()> {
    remove(to)?;
    fs::copy(from, to)
        .with_context(|| format!("{} could not be copied to {}", from.display(), to.display()))?;
    Ok(())
}

fn link(folder: &Path, to: &str, name: &str) -> Result<()> {
    let link = folder.join(name);
    remove(&link)?;
    symlink(to, &link).with_context(|| format!("{} could not be made", link.display()))
}

fn remove(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        fs::remove_file(path).with_context(|| format!("{} could not be replaced", path.display()))?;
    }
    Ok(())
}

/// What pkg-config tells compilers; the prefix is found from where the file lies, so that the tree can be moved.
fn pkg_config(version: &str) -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: ocssd\nDescription: Virtual open-channel SSDs in your process\nVersion: {version}\n\
         Cflags: -I${{includedir}}\nLibs: -L${{libdir}} -locssd\nLibs.private: {STATIC_NEEDS}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_librarys_own_build_names_it_alike() {
        assert!(include_str!("../../../crates/capi/build.rs").contains(&format!("-soname,{SONAME}\"")));
    }

    #[test]
    fn pkg_config_finds_the_prefix_from_its_own_place() {
        let text = pkg_config("1.2.3");
        assert!(text.starts_with("prefix=${pcfiledir}/../..\n") && text.contains("Version: 1.2.3\n"));
    }
}
