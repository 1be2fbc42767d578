//! Where the papers' numbers are.

use ocssd_report::PaperTable;
use std::path::{Path, PathBuf};

/// The folder of all experiments.
pub fn experiments() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

/// The numbers of one experiment's paper.
pub fn paper(id: &str) -> PaperTable {
    let path = experiments().join(id).join("paper.csv");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    PaperTable::load(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
