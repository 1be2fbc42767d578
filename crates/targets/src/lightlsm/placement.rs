//! On which units the columns of a table or log are, and how many columns it has.
//!
//! A stripe wider than a table fills leaves chunks behind that are full in part ("internal fragmentation", CIDR 2020 section
//! 4). So a table of known length gets as few columns as hold it in whole chunks: its *size class*. And what all stripes
//! together may leave unfilled has a bound, beyond which tables are narrower.
//!
//! Vertically a stream has a group while it writes there, and another only if that has no room for its next table. A new one
//! goes to a group that no other stream writes to, as long as there is one with room; of these to the one with the most free
//! chunks, so that groups fill alike though flushes write less than compactions. Everywhere a unit that is less worn counts as one
//! with more free chunks. Deliberately not here: which chunk of a unit is opened (`space`), which tables are being written
//! (`shelf`).

use super::options::Placement;
use super::sizes::Sizes;
use super::space::Space;
use ocssd_base::usize_of;
use ocssd_ftl::UnitIndex;
use ocssd_lightnvm::interface::table::{TableHint, TableKind};
use std::cmp::Reverse;

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

/// A table that is being written: by which stream, and on which unit its first column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub stream: u8,
    pub unit: UnitIndex,
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

    /// The group of a stream's next table, of so many chunks.
    fn group_of_stream(&self, asked: Asked, space: &Space, (written, sizes): (&[Written], &Sizes)) -> u32 {
        let needs = sizes.units_of(asked.bytes).div_ceil(u64::from(sizes.chunk_units)).max(1);
        let of = |table: &Written| self.group_of[table.unit.index()];
        let mut others = vec![0_u32; usize_of(self.groups)];
        let mut own = None;
        for table in written {
            assert!(of(table) < self.groups, "{table:?} is in no group");
            if table.stream == asked.hint.stream {
                own = Some(of(table));
            } else {
                others[usize_of(of(table))] += 1;
            }
        }
        let has_room = |group: u32| u64::from(space.pool.free_of_group(group)) >= needs;
        let best = || {
            let rank = |&group: &u32| {
                let worth: u32 =
                    self.units_of_group(group).iter().map(|&unit| space.worth_of_unit(unit)).sum();
                (has_room(group), Reverse(others[usize_of(group)]), worth, Reverse(group))
            };
            (0..self.groups).max_by_key(rank).expect("an instance has units")
        };
        own.filter(|&group| has_room(group)).unwrap_or_else(best)
    }

    /// The units of the next so many groups.
    fn next_groups(&mut self, groups: u32) -> Vec<UnitIndex> {
        assert!(groups > 0, "a table in no group");
        let (first, count) = (self.turn, groups.min(self.groups));
        self.turn = (first + count) % self.groups;
        let chosen = (first..first + count).map(|group| group % self.groups);
        chosen.flat_map(|group| self.units_of_group(group)).collect()
    }

    /// The next so many units, those worth most first.
    fn next_units(&mut self, width: u32, space: &Space) -> Vec<UnitIndex> {
        let count = u32::try_from(self.group_of.len()).expect("fewer units than 2^32");
        let width = width.min(count);
        let mut units: Vec<UnitIndex> =
            (0..count).map(|offset| UnitIndex((self.turn + offset) % count)).collect();
        units.sort_by_key(|&unit| Reverse(space.worth_of_unit(unit)));
        self.turn = (self.turn + width) % count;
        units.truncate(usize_of(width));
        units
    }

    /// The units a table may have columns on, in the order of preference.
    fn candidates(&mut self, asked: Asked, space: &Space, beside: (&[Written], &Sizes)) -> Vec<UnitIndex> {
        match self.placement {
            Placement::Vertical => self.units_of_group(self.group_of_stream(asked, space, beside)),
            Placement::Groups(groups) => self.next_groups(groups),
            Placement::Level => self.units_of_group(u32::from(asked.hint.level) % self.groups),
            Placement::Horizontal => self.next_units(u32::MAX, space),
            Placement::Width(width) => self.next_units(width, space),
        }
    }

    /// The unit of each column, beside tables that are being written.
    pub fn place(
        &mut self,
        asked: Asked,
        written: &[Written],
        space: &Space,
        sizes: &Sizes,
    ) -> Vec<UnitIndex> {
        let mut units = self.candidates(asked, space, (written, sizes));
        let most = u32::try_from(units.len()).expect("fewer units than 2^32");
        let width = match asked.kind {
            // A log is written a unit at a time, and waits for each.
            TableKind::Log => 1,
            TableKind::Table => size_class(asked.bytes, most, sizes).min(asked.slack + 1),
        };
        assert!(width > 0 && width <= most, "{width} columns on {most} units");
        units.sort_by_key(|&unit| Reverse(space.worth_of_unit(unit)));
        units.truncate(usize_of(width));
        assert_eq!(units.len(), usize_of(width), "a column without a unit");
        units
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk_wear::ChunkWear;
    use crate::lightlsm::options::Options;
    use ocssd_ftl::{ChunkPool, ChunkUse, InstanceGeometry};
    use ocssd_lightnvm::{Geometry, PuId};

    const GROUPS: [u32; 8] = [0, 0, 0, 0, 1, 1, 1, 1];

    fn world() -> (Space, Sizes) {
        worn(|_| 0)
    }

    /// Each chunk of a unit was reset so often.
    fn worn(resets: impl Fn(u32) -> u32) -> (Space, Sizes) {
        let geometry = Geometry::example(2, 4, 100, 96, 4);
        let units: Vec<PuId> = (0..8).map(PuId).collect();
        let shape = InstanceGeometry::new(&geometry, &units);
        let sizes = Sizes::new(&geometry, &shape, &Options::default(), 800, None).expect("it fits");
        let pool = ChunkPool::new(&shape, &GROUPS, |_| ChunkUse::Free);
        let saved: Vec<u32> = (0..800).map(|chunk| resets(chunk % 8)).collect();
        (Space::new(shape, pool, ChunkWear::counting(&saved, &[0; 800]), &sizes), sizes)
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
        let (space, sizes) = world();
        for (placement, widths, of_groups) in [
            (Placement::Horizontal, 8, [2, 2]),
            (Placement::Groups(1), 4, [1, 1]),
            (Placement::Groups(2), 8, [2, 2]),
            (Placement::Groups(u32::MAX), 8, [2, 2]),
            (Placement::Width(2), 2, [1, 1]),
            (Placement::Level, 4, [1, 1]),
        ] {
            let mut placer = Placer::new(placement, &GROUPS);
            let [first, second] = [0, 1].map(|level| placer.place(asked(16, level), &[], &space, &sizes));
            assert_eq!((first.len(), second.len()), (widths, widths), "{placement}");
            assert_eq!([groups_of(&first).len(), groups_of(&second).len()], of_groups, "{placement}");
            assert!(widths == 8 || first != second, "{placement}: tables lie apart");
        }
    }

    /// The group of a table that a stream begins beside others: by stream, and a unit of the group it is in.
    fn vertical(stream: u8, written: &[(u8, u32)], space: &Space, sizes: &Sizes) -> u32 {
        let mut placer = Placer::new(Placement::Vertical, &GROUPS);
        let written: Vec<Written> =
            written.iter().map(|&(stream, unit)| Written { stream, unit: UnitIndex(unit) }).collect();
        let asked = Asked { hint: TableHint { level: 0, stream }, ..asked(16, 0) };
        let groups = groups_of(&placer.place(asked, &written, space, sizes));
        assert_eq!(groups.len(), 1, "a table is in one group");
        groups[0]
    }

    #[test]
    fn a_stream_has_a_group_of_its_own_while_it_writes() {
        let (mut space, sizes) = world();
        assert_eq!(vertical(1, &[], &space, &sizes), 0, "nobody writes, all is free");
        assert_eq!(vertical(1, &[(0, 0)], &space, &sizes), 1, "a compaction keeps out of the flush's way");
        assert_eq!(vertical(0, &[(0, 7), (1, 2)], &space, &sizes), 1, "a flush stays where it writes");
        assert_eq!(vertical(1, &[(0, 7), (1, 2)], &space, &sizes), 0);
        assert_eq!(vertical(2, &[(0, 0), (1, 4), (3, 5)], &space, &sizes), 0, "the fewest others");
        // All but ten chunks of group 1 are taken.
        let second: Vec<UnitIndex> = (4..8).map(UnitIndex).collect();
        (0..390).for_each(|_| assert!(space.pool.open(&second, |_, _| true).is_some()));
        assert_eq!(vertical(0, &[(0, 7)], &space, &sizes), 0, "no room for 16 chunks where it writes");
        assert_eq!(vertical(1, &[(0, 0)], &space, &sizes), 0, "no room where nobody writes");
        assert_eq!(vertical(1, &[], &space, &sizes), 0, "most free");
    }

    #[test]
    fn a_unit_that_is_less_worn_counts_as_one_with_more_free_chunks() {
        let mut placer = Placer::new(Placement::Width(1), &GROUPS);
        // Unit 3 is two resets a chunk behind, and unit 5 so many that an eighth of its chunks is all it counts for.
        let (mut space, sizes) = worn(|unit| [40, 40, 40, 38, 40, 0, 40, 40][usize_of(unit)]);
        assert_eq!(
            vertical(1, &[], &space, &sizes),
            1,
            "400 chunks count for 412 there, and for 402 in the first group"
        );
        let mut first_two = [0; 8];
        for _ in 0..12 {
            let unit = placer.place(asked(1, 0), &[], &space, &sizes)[0];
            assert!(space.pool.open(&[unit], |_, _| true).is_some());
            first_two[unit.index()] += 1;
        }
        assert_eq!(first_two, [0, 0, 0, 1, 0, 11, 0, 0]);
        assert_eq!(
            vertical(1, &[], &space, &sizes),
            0,
            "399 count for 401 there, as do 389: the first group is taken"
        );
    }

    #[test]
    fn a_short_table_and_a_full_drive_make_narrow_stripes() {
        let (space, sizes) = world();
        let mut placer = Placer::new(Placement::Horizontal, &GROUPS);
        for (chunks, width) in [(1, 1), (3, 3), (8, 8), (9, 5), (16, 8), (17, 6)] {
            assert_eq!(placer.place(asked(chunks, 0), &[], &space, &sizes).len(), width, "{chunks} chunks");
        }
        let tight = Asked { slack: 1, ..asked(8, 0) };
        assert_eq!(placer.place(tight, &[], &space, &sizes).len(), 2, "one chunk may stay unfilled");
        let log = Asked { kind: TableKind::Log, ..asked(8, 0) };
        assert_eq!(placer.place(log, &[], &space, &sizes).len(), 1);
    }
}
