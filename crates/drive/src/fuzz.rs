//! The entries for fuzzers and for seeded random tests: any bytes as a drive file, and as an image.
//!
//! `fuzz/fuzz_targets/{drive_toml,image_open}.rs` and `tests/random.rs` call them. They assert what holds for any
//! input: no panic, no error without words, and what is accepted is accepted again as the same.

use crate::spec::DriveSpec;

pub use crate::image::fuzz::open_image;

/// Reads `data` as a drive file and, line by line, as settings on top of a preset. Returns how many were accepted.
///
/// # Panics
/// If an accepted specification does not survive its own text, or an error has no words.
pub fn parse_toml(data: &[u8]) -> usize {
    let text = String::from_utf8_lossy(data);
    let mut accepted = 0;
    match DriveSpec::from_toml(&text, "fuzz.toml") {
        Ok(spec) => {
            check_round_trip(&spec);
            accepted += 1;
        }
        Err(error) => assert!(!error.0.is_empty() && !error.to_string().is_empty(), "an error without words"),
    }
    let mut spec = DriveSpec::preset("tiny").expect("the preset exists");
    for line in text.lines() {
        let before = spec.clone();
        match spec.apply(line) {
            Ok(()) => accepted += 1,
            Err(error) => {
                assert!(!error.to_string().is_empty(), "an error without words");
                assert_eq!(spec, before, "a refused setting changed something");
            }
        }
    }
    check_round_trip(&spec);
    accepted
}

fn check_round_trip(spec: &DriveSpec) {
    let text = spec.to_toml();
    let again = DriveSpec::from_toml(&text, "again.toml");
    assert_eq!(again.as_ref(), Ok(spec), "{text}");
}
