//! The kinds of targets this process knows: those of the project, and those a program of its own brought along.
//!
//! Deliberately not here: what a kind is (`targets::registry`).

use ocssd_targets::registry::{self, Kind};
use std::sync::OnceLock;

/// The kinds that were brought along; set once, before any verb runs.
static OWN: OnceLock<Vec<Kind>> = OnceLock::new();

/// Makes kinds known beside those of the project.
///
/// # Panics
/// If two kinds have one name, or kinds were added before.
pub fn add(kinds: Vec<Kind>) {
    for (place, kind) in kinds.iter().enumerate() {
        let others = registry::ALL.iter().chain(&kinds[..place]);
        assert!(
            others.clone().all(|other| other.name != kind.name),
            "two kinds of targets are called {}",
            kind.name
        );
    }
    assert!(OWN.set(kinds).is_ok(), "kinds of targets are added once");
}

/// Every kind.
pub fn all() -> impl Iterator<Item = &'static Kind> + Clone {
    registry::ALL.iter().chain(OWN.get().map_or(&[][..], Vec::as_slice))
}

/// The kind of this name.
///
/// # Errors
/// A sentence that names the kinds there are.
pub fn find(name: &str) -> Result<&'static Kind, String> {
    registry::find_among(all(), name)
}
