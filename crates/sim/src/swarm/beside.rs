//! Worlds of two targets on one drive, each on units of its own: what one does is no business of the other's.
//!
//! They share the drive, its cache, its channels and its power, and each is held to its own contract. Deliberately not here: more
//! than two, for a third shares nothing with one that the second does not; and targets of different interfaces, which have
//! different contracts: a world is of one.

use super::{Asked, Draw, Size, mix, target};
use crate::plan::{Beside, WorldPlan};
use ocssd_lightnvm::{Geometry, LbaFormat, PuId};

/// Worlds of a hundred in which there are two, where there are units for them.
const PERCENT: u64 = 20;

/// Takes units from those of the first target for a second one, now and then.
pub(super) fn split(draw: &mut Draw, kind: &str, units: &mut Vec<PuId>) -> Option<Vec<PuId>> {
    // A black box is a whole drive.
    if !draw.percent(PERCENT) || units.len() < 2 || kind == "block_ssd" {
        return None;
    }
    let most = u32::try_from(units.len() - 1).expect("fewer units than 2^32");
    let left = draw.between(1, most);
    Some(units.split_off(usize::try_from(left).expect("an index")))
}

/// Each of two gets about as many chunks as one of a tiny drive has.
pub(super) fn enlarge(geometry: &mut Geometry) {
    let Geometry { groups, pus_per_group, chunks_per_pu, sectors_per_chunk, .. } = *geometry;
    geometry.chunks_per_pu = 2 * chunks_per_pu;
    geometry.lba_format =
        LbaFormat::smallest(groups, pus_per_group, geometry.chunks_per_pu, sectors_per_chunk);
}

/// Draws the second target: as a rule of the same kind.
pub(super) fn draw(draw: &mut Draw, asked: &Asked<'_>, size: Size, units: Vec<PuId>, plan: &mut WorldPlan) {
    assert!(plan.units.iter().all(|unit| !units.contains(unit)), "a unit is of two targets");
    let other = match asked.target {
        "pblk" => "ox-block",
        "ox-block" | "linux-pblk" => "pblk",
        same => same,
    };
    let kind = if draw.percent(30) { other } else { asked.target };
    let is_same = kind == asked.target;
    let fixed = if is_same { asked.fixed } else { &[] };
    let chosen = target::draw(draw, &Asked { target: kind, fixed, ..*asked }, &plan.config, size);
    let mix = mix(draw, size, &chosen);
    let mut options = chosen.options;
    target::hold(&mut options, fixed);
    plan.beside = Some(Beside { kind: kind.to_owned(), units, options, mix });
}
