//! The sizes of zones and all beside them on drives of several shapes, when they are new and later (`crate::size_table`).

use super::options::Options;
use super::sizes::{Fixed, Ground, Sizes};
use crate::size_table::{Drive, assert_kept};

/// The sizes of a new instance, and of the same later.
fn sizes(drive: &Drive, stated: &[(&str, &str)]) -> Result<[Sizes; 2], String> {
    let mut options = Options::default();
    stated.iter().try_for_each(|(name, value)| options.set(name, value))?;
    // One chunk in fifty is bad.
    let good_in = |lines: u32| lines * drive.shape.units() - lines * drive.shape.units() / 50;
    let (geometry, shape) = (&drive.geometry, &drive.shape);
    let ground = Ground { geometry, shape, good_in: &good_in, group_units: geometry.pus_per_group };
    let new = Sizes::new(&ground, &options, None)?;
    let Sizes { zone_count, zone_chunks, metadata_lines, .. } = new;
    let later = Sizes::new(&ground, &options, Some(Fixed { zone_count, zone_chunks, metadata_lines }))?;
    Ok([new, later])
}

#[test]
fn kept_sizes_of_zones() {
    let options: [&[(&str, &str)]; 5] = [
        &[],
        &[("width", "group"), ("log_copies", "1"), ("metadata", "apart")],
        &[("area_units", "4"), ("wear_spread", "40"), ("writes_per_unit", "3")],
        &[("partial", "pad"), ("finish", "pad"), ("zone_chunks", "6"), ("width", "2")],
        &[("metadata", "anywhere"), ("checkpoint_log_bytes", "2097152"), ("buffer_bytes", "16777216")],
    ];
    assert_kept(("src/zns/kept_sizes.txt", include_str!("kept_sizes.txt")), &options, sizes);
}
