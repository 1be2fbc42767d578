//! Zone random write areas (ZRWA) of a target.
//!
//! Deliberately not here: what a zone with an area takes and when its pointer moves (the module above says it in words).

use ocssd_base::Problems;

/// The areas of a target's zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneArea {
    /// Blocks of an area, from its zone's write pointer on (ZRWASZ); on the wire 16 bits.
    pub blocks: u16,
    /// Blocks are committed by so many (ZRWAFG, flush granularity).
    pub granularity: u16,
    /// Most zones that have one at once (NUMZRWA).
    pub areas_max: u32,
}

impl ZoneArea {
    /// Says what is wrong with it.
    pub(super) fn check(self, problems: &mut Problems) {
        let Self { blocks, granularity, areas_max } = self;
        problems.require(
            granularity > 0 && blocks > 0 && blocks.is_multiple_of(granularity.max(1)),
            "random write area",
            format_args!("{blocks} blocks, committed by {granularity}"),
            "an area is a whole number of what is committed at once",
        );
        problems.require(areas_max > 0, "random write areas", areas_max, "at least one, or no areas at all");
    }
}
