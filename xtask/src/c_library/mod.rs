//! What C programs need beside the library itself: its header, its manual page, and a place on the system.
//!
//! `c-header` writes header and manual page from the comments of what `crates/capi` exports; both are part of the repository,
//! and a test says when they are out of date. `install-c` builds the library and puts everything where compilers look.

mod header;
mod install;
mod manual;

pub use install::Options as InstallOptions;
pub use install::run as install;

use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fs;

/// The header, from the root of the repository.
pub const HEADER: &str = "crates/capi/include/ocssd.h";
/// The manual page.
pub const MANUAL: &str = "crates/capi/man/ocssd.3";

/// Writes header and manual page.
///
/// Errors: the library's source cannot be read, or a file cannot be written.
pub fn write(workspace: &Workspace) -> Result<()> {
    let header = header::generate(&workspace.root)?;
    let manual = manual::of_header(&header)?;
    for (path, text) in [(HEADER, header), (MANUAL, manual)] {
        let full = workspace.root.join(path);
        fs::write(&full, text).with_context(|| format!("{path} could not be written"))?;
        println!("wrote {path}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_and_manual_page_are_those_of_the_source() {
        let workspace = Workspace::find().unwrap();
        let header = header::generate(&workspace.root).unwrap();
        let manual = manual::of_header(&header).unwrap();
        for (path, text) in [(HEADER, header), (MANUAL, manual)] {
            let kept = fs::read_to_string(workspace.root.join(path)).unwrap();
            assert!(
                kept == text,
                "{path} is out of date: run `cargo xtask c-header` and commit what it wrote"
            );
        }
    }
}
