//! The sizes of what stands on OX's machines on drives of several shapes, when it is new and later (`crate::size_table`).

use super::options::Options;
use super::sizes::Sizes;
use super::store::Store;
use crate::eleos::Pages;
use crate::ox_block::Blocks;
use crate::size_table::{Drive, assert_kept};

/// The sizes of a new instance, and of the same with chunks that went bad.
fn sizes<S: Store>(drive: &Drive, stated: &[(&str, &str)]) -> Result<[Sizes; 2], String> {
    let mut options = Options::default();
    stated.iter().try_for_each(|(name, value)| options.set(name, value))?;
    let (good, groups) = (drive.shape.chunks() - drive.shape.chunks() / 50, drive.geometry.groups);
    let new = Sizes::new::<S>(&drive.geometry, &drive.shape, &options, (good, groups), None)?;
    let later =
        Sizes::new::<S>(&drive.geometry, &drive.shape, &options, (good - 5, groups), Some(new.blocks))?;
    Ok([new, later])
}

/// Options of both kinds.
const OPTIONS: [&[(&str, &str)]; 3] = [
    &[],
    &[("over_provisioning_percent", "45"), ("log_copies", "1"), ("writes_per_unit", "3")],
    &[("checkpoint_log_bytes", "4194304"), ("gc_groups_max", "2")],
];

#[test]
fn kept_sizes_of_blocks_on_ox() {
    let map: &[(&str, &str)] = &[("map_cache_bytes", "1048576"), ("map_page_bytes", "4096")];
    let options = [OPTIONS[0], OPTIONS[1], OPTIONS[2], map];
    assert_kept(
        ("src/ox/kept_sizes_of_blocks.txt", include_str!("kept_sizes_of_blocks.txt")),
        &options,
        sizes::<Blocks>,
    );
}

#[test]
fn kept_sizes_of_pages_on_ox() {
    assert_kept(
        ("src/ox/kept_sizes_of_pages.txt", include_str!("kept_sizes_of_pages.txt")),
        &OPTIONS,
        sizes::<Pages>,
    );
}
