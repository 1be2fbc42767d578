//! The sizes of instances of tables on drives of several shapes, when they are new and later (`crate::size_table`).

use super::options::Options;
use super::sizes::Sizes;
use crate::size_table::{Drive, assert_kept};

/// The sizes of a new instance, and of the same with chunks that went bad.
fn sizes(drive: &Drive, stated: &[(&str, &str)]) -> Result<[Sizes; 2], String> {
    let mut options = Options::default();
    stated.iter().try_for_each(|(name, value)| options.set(name, value))?;
    let good = drive.shape.chunks() - drive.shape.chunks() / 50;
    let new = Sizes::new(&drive.geometry, &drive.shape, &options, good, None)?;
    let later = Sizes::new(&drive.geometry, &drive.shape, &options, good - 5, Some(new.kept))?;
    Ok([new, later])
}

#[test]
fn kept_sizes_of_tables() {
    let options: [&[(&str, &str)]; 3] = [
        &[],
        &[("tables_max", "19"), ("spare_percent", "35"), ("log_copies", "1")],
        &[("checkpoint_log_bytes", "1048576"), ("placement", "vertical"), ("writes_per_unit", "4")],
    ];
    assert_kept(("src/lightlsm/kept_sizes.txt", include_str!("kept_sizes.txt")), &options, sizes);
}
