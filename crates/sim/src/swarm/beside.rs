//! Worlds of two or three targets on one drive, each on units of its own: what one does is no business of the others'.
//!
//! They share the drive, its cache, its channels and its power, and each is held to its own contract. Now and then they are spoken
//! to by different interfaces; then no content is lost, for not every interface's contract knows of that. Deliberately not here:
//! more than three, for a fourth shares nothing with one that the third does not.

use super::{Asked, Draw, Size, mix, target};
use crate::plan::{Beside, WorldPlan};
use ocssd_base::{Prng, usize_of};
use ocssd_lightnvm::{Geometry, LbaFormat, PuId};
use ocssd_targets::registry;

/// Worlds of a hundred in which there are two, where there are units for them.
const PERCENT: u64 = 20;
/// Of a hundred of these, those in which there is a third, where there are units for it.
const PERCENT_THIRD: u64 = 50;
/// Of a hundred targets beside another, those of another interface.
const PERCENT_OTHER: u64 = 30;

/// Kinds that stand beside one of another interface: of each the one that is made of open-channel units.
const KINDS: [&str; 6] = ["pblk", "ox-block", "zns", "eleos", "lightlsm", "kv"];

/// A target beside the first, before the rest of it is drawn.
pub(super) struct Other {
    units: Vec<PuId>,
    /// Its kind, if that is of another interface.
    kind: Option<&'static str>,
}

impl Other {
    /// True if it is spoken to by another interface than the first.
    pub(super) const fn is_of_other_interface(&self) -> bool {
        self.kind.is_some()
    }
}

/// Takes units from those of the first target for others, now and then.
pub(super) fn split(prng: &Prng, kind: &str, units: &mut Vec<PuId>) -> Vec<Other> {
    let mut draw = Draw::new(prng, super::BESIDE);
    // A black box is a whole drive.
    if !draw.percent(PERCENT) || units.len() < 2 || kind == "block_ssd" {
        return Vec::new();
    }
    let mut second = take_some(&mut draw, units);
    let mut draw = Draw::new(prng, "a third");
    let third = (draw.percent(PERCENT_THIRD) && second.len() > 1).then(|| take_some(&mut draw, &mut second));
    let mut draw = Draw::new(prng, "interfaces beside");
    let others = std::iter::once(second).chain(third);
    others.map(|units| Other { units, kind: of_other_interface(&mut draw, kind) }).collect()
}

/// Takes some of these units, and leaves some.
fn take_some(draw: &mut Draw, units: &mut Vec<PuId>) -> Vec<PuId> {
    let most = u32::try_from(units.len() - 1).expect("fewer units than 2^32");
    let left = draw.between(1, most);
    units.split_off(usize_of(left))
}

/// A kind of another interface than that of `kind`, now and then. A kind that the registry does not have stays among its own.
fn of_other_interface(draw: &mut Draw, kind: &str) -> Option<&'static str> {
    let own = registry::find(kind).ok()?.make_of().interface();
    let is_other =
        |other: &&&str| registry::find(other).is_ok_and(|other| other.make_of().interface() != own);
    let others: Vec<&'static str> = KINDS.iter().filter(is_other).copied().collect();
    draw.percent(PERCENT_OTHER).then(|| draw.one_of(&others))
}

/// Each of so many targets gets about as many chunks as one of a tiny drive has.
pub(super) fn enlarge(geometry: &mut Geometry, targets: usize) {
    let Geometry { groups, pus_per_group, chunks_per_pu, sectors_per_chunk, .. } = *geometry;
    geometry.chunks_per_pu = u32::try_from(targets).expect("few") * chunks_per_pu;
    geometry.lba_format =
        LbaFormat::smallest(groups, pus_per_group, geometry.chunks_per_pu, sectors_per_chunk);
}

/// Draws the rest of another target: as a rule of the same kind.
pub(super) fn draw(draw: &mut Draw, asked: &Asked<'_>, size: Size, other: Other, plan: &mut WorldPlan) {
    let Other { units, kind: of_other_interface } = other;
    assert!(plan.units.iter().all(|unit| !units.contains(unit)), "a unit is of two targets");
    let other = match asked.target {
        "pblk" => "ox-block",
        "ox-block" | "linux-pblk" => "pblk",
        same => same,
    };
    let kind = if draw.percent(30) { other } else { asked.target };
    let kind = of_other_interface.unwrap_or(kind);
    let is_same = kind == asked.target;
    let fixed = if is_same { asked.fixed } else { &[] };
    let chosen = target::draw(draw, &Asked { target: kind, fixed, ..*asked }, &plan.config, size);
    let mix = mix(draw, size, &chosen);
    let mut options = chosen.options;
    target::hold(&mut options, fixed);
    plan.beside.push(Beside { kind: kind.to_owned(), units, options, mix });
}
