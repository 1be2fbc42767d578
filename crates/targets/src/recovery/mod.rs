//! What mounts of log-structured targets have in common: what lies on the units, the newest checkpoint, and the log behind it.
//!
//! `media` reads and pads in batches, `survey` says how far each chunk is written and what it holds, `found` has the newest
//! whole checkpoint, the log, and which chunks of pages they need; `log_start` says where in each chunk the log must be read,
//! `page_tag` what a sector would be tagged with on media that have no tags.
//! Linear code: commands go to the device in batches, and a mount may be cut at any command. Deliberately not here: what the
//! sections of a checkpoint and the records of a log mean (the target's own `mount`), and what an instance writes while it runs
//! (`journal`).

pub mod found;
mod log_pages;
mod log_start;
pub mod lost_log;
pub mod media;
pub mod page_tag;
pub mod survey;

use ocssd_lightnvm::{Geometry, PuId};

/// The group of each unit, counted from 0 without gaps in the order in which groups are met.
pub fn groups(geometry: &Geometry, units: &[PuId]) -> Vec<u32> {
    let mut seen: Vec<u32> = Vec::new();
    let of = units.iter().map(|unit| {
        let group = unit.0 / geometry.pus_per_group;
        let at = seen.iter().position(|&other| other == group).unwrap_or_else(|| {
            seen.push(group);
            seen.len() - 1
        });
        u32::try_from(at).expect("fewer groups than 2^32")
    });
    of.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_counted_in_the_order_in_which_they_are_met() {
        let geometry = Geometry::example(4, 2, 8, 24, 4);
        let of = |units: &[u32]| groups(&geometry, &units.iter().map(|&unit| PuId(unit)).collect::<Vec<_>>());
        assert_eq!(of(&[6, 7, 0, 1, 6]), [0, 0, 1, 1, 0]);
        assert_eq!(of(&[]), [0; 0]);
    }
}
