//! The sizes of instances of pblk on drives of several shapes, when they are new and later (`crate::size_table`).

use super::capacity::{Capacity, ask, plan};
use super::options::Options;
use crate::size_table::{Drive, assert_kept};
use ocssd_lightnvm::{ChunkDescriptor, ChunkId, ChunkState, Lba};

/// The sizes of a new instance, and of the same later.
fn sizes(drive: &Drive, stated: &[(&str, &str)]) -> Result<[Capacity; 2], String> {
    let (geometry, shape) = (&drive.geometry, &drive.shape);
    let mut options = Options::unstated().for_lines(shape.lines());
    stated.iter().try_for_each(|(name, value)| options.set(name, value))?;
    let asked = ask(geometry, shape, &options)?;
    let of = |existing, one_bad_in: u32| {
        let report = |id: ChunkId| ChunkDescriptor {
            state: if id.0 % one_bad_in == 7 { ChunkState::Offline } else { ChunkState::Free },
            wear_index: 0,
            first: Lba(0),
            sectors: geometry.sectors_per_chunk,
            write_pointer: Some(0),
        };
        plan(geometry, shape, &options, &asked, existing, &report)
    };
    let new = of(None, 50)?;
    let later = of(Some(new.user_sectors), 30)?;
    Ok([new, later])
}

#[test]
fn kept_sizes_of_pblk() {
    let options: [&[(&str, &str)]; 4] = [
        &[],
        &[("over_provisioning_percent", "45"), ("checkpoint_interval_bytes", "8388608")],
        &[("mode", "faithful")],
        &[("classification", "sepbit"), ("writes_per_unit", "3")],
    ];
    assert_kept(("src/pblk/kept_sizes.txt", include_str!("kept_sizes.txt")), &options, sizes);
}
