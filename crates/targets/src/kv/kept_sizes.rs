//! The sizes of instances of keys and values on drives of several shapes, when they are new and later (`crate::size_table`).

use super::options::Options;
use super::sizes::Sizes;
use crate::size_table::{Drive, assert_kept};

/// The sizes of a new instance, and of the same with chunks that went bad.
fn sizes(drive: &Drive, stated: &[(&str, &str)]) -> Result<[Sizes; 2], String> {
    let mut options = Options::default();
    stated.iter().try_for_each(|(name, value)| options.set(name, value))?;
    let good = drive.shape.chunks() - drive.shape.chunks() / 50;
    let new = Sizes::new(&drive.geometry, &drive.shape, &options, good, None)?;
    let later = Sizes::new(&drive.geometry, &drive.shape, &options, good - 5, Some(new.promised))?;
    Ok([new, later])
}

#[test]
fn kept_sizes_of_keys_and_values() {
    let options: [&[(&str, &str)]; 5] = [
        &[],
        &[("over_provisioning_percent", "40"), ("index_percent", "9")],
        &[("index_cache_bytes", "65536"), ("index_page_bytes", "900")],
        &[("wear_spread", "50"), ("gc_start_chunks", "9"), ("checkpoint_interval_bytes", "1048576")],
        &[("batch_entries_max", "16"), ("write_buffer_units", "40")],
    ];
    assert_kept(("src/kv/kept_sizes.txt", include_str!("kept_sizes.txt")), &options, sizes);
}
