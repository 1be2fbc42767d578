//! On which units the columns of a table or log are, and how many columns it has.
//!
//! A stripe wider than a table fills leaves chunks behind that are full in part ("internal fragmentation", CIDR 2020 section
//! 4). So a table of known length gets as few columns as hold it in whole chunks: its *size class*. And what all stripes
//! together may leave unfilled has a bound, beyond which tables are narrower. Deliberately not here: which chunk of a unit is
//! opened (`ocssd_ftl::ChunkPool`).

use super::options::Placement;
use super::sizes::Sizes;
use ocssd_base::usize_of;
use ocssd_ftl::{ChunkPool, UnitIndex};
use ocssd_lightnvm::interface::table::{TableHint, TableKind};

/// The units of an instance by group, and whose turn it is.
#[derive(Clone, Debug)]
pub struct Placer {
    placement: Placement,
    /// The group of each unit.
    group_of: Vec<u32>,
    groups: u32,
    /// The group, or the unit, that is next.
    turn: u32,
}

/// What is known of a table or log before it is placed.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub kind: TableKind,
    pub hint: TableHint,
    /// Its length; 0 if nobody said.
    pub bytes: u64,
    /// Chunks it may leave unfilled.
    pub slack: u32,
}

/// Columns of what has this length, on so many units: chunks in even rounds.
fn size_class(bytes: u64, units: u32, sizes: &Sizes) -> u32 {
    if bytes == 0 {
        return units;
    }
    let chunks = sizes.units_of(bytes).div_ceil(u64::from(sizes.chunk_units));
    let rounds = chunks.div_ceil(u64::from(units));
    assert!(chunks > 0 && rounds > 0, "{bytes} bytes take no chunk");
    u32::try_from(chunks.div_ceil(rounds)).expect("no more than the units")
}

impl Placer {
    /// A placer for units of these groups, counted densely.
    pub fn new(placement: Placement, group_of: &[u32]) -> Self {
        let groups = group_of.iter().max().map_or(0, |&last| last + 1);
        assert!(groups > 0, "an instance has units");
        Self { placement, group_of: group_of.to_vec(), groups, turn: 0 }
    }

    fn units_of_group(&self, group: u32) -> Vec<UnitIndex> {
        let all = (0..).map(UnitIndex).zip(&self.group_of);
        all.filter(|&(_, &of)| of == group).map(|(unit, _)| unit).collect()
    }

    /// The units a table may have columns on, in the order of preference.
    fn candidates(&mut self, hint: TableHint, pool: &ChunkPool) -> Vec<UnitIndex> {
        let count = u32::try_from(self.group_of.len()).expect("fewer units than 2^32");
        match self.placement {
            Placement::Vertical => {
                let group = self.turn % self.groups;
                self.turn = group + 1;
                self.units_of_group(group)
            }
            Placement::Level => self.units_of_group(u32::from(hint.level) % self.groups),
            Placement::Horizontal | Placement::Width(_) => {
                let width =
                    if let Placement::Width(width) = self.placement { width.min(count) } else { count };
                let mut units: Vec<UnitIndex> =
                    (0..count).map(|offset| UnitIndex((self.turn + offset) % count)).collect();
                units.sort_by_key(|&unit| std::cmp::Reverse(pool.free_of_unit(unit)));
                self.turn = (self.turn + width) % count;
                units.truncate(usize_of(width));
                units
            }
        }
    }

    /// The unit of each column.
    pub fn place(&mut self, asked: Asked, pool: &ChunkPool, sizes: &Sizes) -> Vec<UnitIndex> {
        let mut units = self.candidates(asked.hint, pool);
        let most = u32::try_from(units.len()).expect("fewer units than 2^32");
        let width = match asked.kind {
            // A log is written a unit at a time, and waits for each.
            TableKind::Log => 1,
            TableKind::Table => size_class(asked.bytes, most, sizes).min(asked.slack + 1),
        };
        assert!(width > 0 && width <= most, "{width} columns on {most} units");
        units.sort_by_key(|&unit| std::cmp::Reverse(pool.free_of_unit(unit)));
        units.truncate(usize_of(width));
        assert_eq!(units.len(), usize_of(width), "a column without a unit");
        units
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lightlsm::options::Options;
    use ocssd_ftl::{ChunkUse, InstanceGeometry};
    use ocssd_lightnvm::{Geometry, PuId};

    const GROUPS: [u32; 8] = [0, 0, 0, 0, 1, 1, 1, 1];

    fn world() -> (ChunkPool, Sizes) {
        let geometry = Geometry::example(2, 4, 100, 96, 4);
        let units: Vec<PuId> = (0..8).map(PuId).collect();
        let shape = InstanceGeometry::new(&geometry, &units);
        let sizes = Sizes::new(&geometry, &shape, &Options::default(), 800, None).expect("it fits");
        (ChunkPool::new(&shape, &GROUPS, |_| ChunkUse::Free), sizes)
    }

    fn asked(chunks: u64, level: u8) -> Asked {
        let hint = TableHint { level, stream: 0 };
        Asked { kind: TableKind::Table, hint, bytes: chunks * 96 * 4096, slack: 100 }
    }

    fn groups_of(units: &[UnitIndex]) -> Vec<u32> {
        let mut groups: Vec<u32> = units.iter().map(|unit| GROUPS[unit.index()]).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    #[test]
    fn a_placement_says_how_many_units_a_table_is_on_and_which() {
        let (pool, sizes) = world();
        for (placement, widths, of_groups) in [
            (Placement::Horizontal, 8, [2, 2]),
            (Placement::Vertical, 4, [1, 1]),
            (Placement::Width(2), 2, [1, 1]),
            (Placement::Level, 4, [1, 1]),
        ] {
            let mut placer = Placer::new(placement, &GROUPS);
            let (first, second) =
                (placer.place(asked(16, 0), &pool, &sizes), placer.place(asked(16, 1), &pool, &sizes));
            assert_eq!((first.len(), second.len()), (widths, widths), "{placement}");
            assert_eq!([groups_of(&first).len(), groups_of(&second).len()], of_groups, "{placement}");
            assert!(placement == Placement::Horizontal || first != second, "{placement}: tables lie apart");
        }
    }

    #[test]
    fn a_short_table_and_a_full_drive_make_narrow_stripes() {
        let (pool, sizes) = world();
        let mut placer = Placer::new(Placement::Horizontal, &GROUPS);
        for (chunks, width) in [(1, 1), (3, 3), (8, 8), (9, 5), (16, 8), (17, 6)] {
            assert_eq!(placer.place(asked(chunks, 0), &pool, &sizes).len(), width, "{chunks} chunks");
        }
        let tight = Asked { slack: 1, ..asked(8, 0) };
        assert_eq!(placer.place(tight, &pool, &sizes).len(), 2, "one chunk may stay unfilled");
        let log = Asked { kind: TableKind::Log, ..asked(8, 0) };
        assert_eq!(placer.place(log, &pool, &sizes).len(), 1);
    }
}
