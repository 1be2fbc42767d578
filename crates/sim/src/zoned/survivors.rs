//! What a power cut may leave of a zone, and whether what was found is that.
//!
//! What is written in order survives in order. Blocks of a random write area survive each for itself: as the last version that
//! was durable, or as a later one. Deliberately not here: how zones change (`image`), what a zone shows (`model`).

use super::image::{Zone, ZoneChange};
use super::observed::ObservedBlock;
use ocssd_lightnvm::interface::zoned::{ZoneGeometry, ZoneState};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// What a power cut may leave of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Survivor {
    /// This zone.
    Zone(Zone),
    /// A zone with an area, block by block.
    Area {
        /// The zone with all that survives for sure.
        base: Zone,
        /// By their number in the zone, blocks that may hold something newer: each version, in order.
        versions: BTreeMap<u64, Vec<Vec<u8>>>,
        /// Where the write pointer is.
        pointer: RangeInclusive<u64>,
    },
}

/// What is read of a zone: its state, its write pointer in blocks from its start (none if it shows none), and its blocks.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Its state.
    pub state: ZoneState,
    /// Its write pointer.
    pub pointer: Option<u64>,
    /// Its blocks, each `None` if it cannot be read.
    pub blocks: &'a [ObservedBlock],
    /// What a block that was not written reads as.
    pub unwritten: &'a ObservedBlock,
}

impl Survivor {
    /// Everything a power cut may leave of `zone` after these changes, of which those survive that are marked as durable.
    #[must_use]
    pub fn all(zone: &Zone, changes: &[(&ZoneChange, bool)], geometry: &ZoneGeometry) -> Vec<Self> {
        let of = |durable| changes.iter().filter(move |change| change.1 == durable).map(|change| change.0);
        let mut zone = zone.clone();
        of(true).for_each(|change| zone.change(change, geometry));
        let (mut all, mut area) = (Vec::new(), None);
        for change in of(false) {
            match change {
                ZoneChange::Placed { .. } | ZoneChange::Committed(_) => {
                    let area = area.get_or_insert_with(|| Self::of_area(&zone, geometry));
                    zone.change(change, geometry);
                    area.add(change, &zone, geometry);
                    continue;
                }
                ZoneChange::Written(blocks) => {
                    all.extend((1..blocks.len()).map(|count| {
                        let mut torn = zone.clone();
                        torn.change(&ZoneChange::Written(blocks[..count].to_vec()), geometry);
                        Self::Zone(torn.after_cut(geometry))
                    }));
                }
                _ => {}
            }
            all.push(area.take().unwrap_or_else(|| Self::Zone(zone.clone().after_cut(geometry))));
            zone.change(change, geometry);
        }
        all.push(area.unwrap_or_else(|| Self::Zone(zone.after_cut(geometry))));
        all
    }

    fn of_area(zone: &Zone, geometry: &ZoneGeometry) -> Self {
        let pointer = zone.clone().after_cut(geometry).written();
        Self::Area { base: zone.clone(), versions: BTreeMap::new(), pointer: pointer..=pointer }
    }

    /// A change of an area may survive, too, which makes of it `after`.
    fn add(&mut self, change: &ZoneChange, after: &Zone, geometry: &ZoneGeometry) {
        let Self::Area { versions, pointer, .. } = self else { unreachable!("a zone without an area") };
        if let ZoneChange::Placed { at, blocks, .. } = change {
            for (number, content) in (*at..).zip(blocks) {
                versions.entry(number).or_default().push(content.clone());
            }
        }
        let end = after.clone().after_cut(geometry).written().max(*pointer.end());
        *pointer = *pointer.start()..=end;
    }

    /// The zone that was found, if it is of these.
    #[must_use]
    pub fn resolved(&self, found: &Found<'_>, geometry: &ZoneGeometry) -> Option<Zone> {
        let (base, versions, pointer) = match self {
            Self::Zone(zone) => return Some(zone.clone()),
            Self::Area { base, versions, pointer } => (base, versions, pointer),
        };
        // A zone that shows no pointer may hold as much as any.
        let end = match found.state {
            ZoneState::Full => geometry.capacity_blocks,
            _ => found.pointer.unwrap_or(*pointer.end()),
        };
        let granularity = geometry.area.map_or(1, |area| u64::from(area.granularity));
        let is_border = end.is_multiple_of(granularity) || end == geometry.capacity_blocks;
        if !pointer.contains(&end) || !(is_border || end == base.written()) {
            return None;
        }
        let block = |number: u64| {
            let read = found.blocks.get(usize::try_from(number).ok()?)?;
            let old = base.block(number);
            let is_old = old.map_or(read == found.unwritten, |old| read.as_deref() == Some(old));
            let newer = || versions.get(&number)?.iter().find(|&content| read.as_deref() == Some(content));
            if is_old { Some(old.cloned()) } else { newer().map(|content| Some(content.clone())) }
        };
        let blocks: Option<Vec<Option<Vec<u8>>>> = (0..end).map(block).collect();
        let is_begun = base.state == ZoneState::Empty && end > 0;
        let state = if is_begun { ZoneState::Closed } else { base.state };
        let zone = Zone { state, blocks: blocks?, ahead: BTreeMap::new(), ..base.clone() };
        Some(zone.after_cut(geometry))
    }
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zone(zone) => write!(f, "{:?} with {} blocks", zone.state, zone.written()),
            Self::Area { versions, pointer, .. } => {
                write!(f, "with {} to {} blocks, ", pointer.start(), pointer.end())?;
                write!(f, "each of {} as it was durable or later", versions.len())
            }
        }
    }
}
