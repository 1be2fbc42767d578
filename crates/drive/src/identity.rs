//! Which drive this is, of all: a random UUID, drawn when an image is made, or when a drive is made in memory.
//!
//! It is no setting and nothing is drawn from it, so that two runs of one seed are the same run whatever the drives are
//! called. Deliberately not here: where an image keeps it (`image::header`).

use ocssd_nvme::identify::Uuid;

/// A new one.
///
/// # Panics
/// If the operating system has no random numbers: then nothing can be told from anything else.
#[must_use]
pub fn draw() -> Uuid {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system has random numbers");
    Uuid::of_random(bytes)
}
