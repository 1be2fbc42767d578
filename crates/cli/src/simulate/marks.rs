//! What a simulation is expected to exercise: the marks of the tally, in groups.
//!
//! A mark is its group, a point, and a name. Marks listed here that no run left are told as never happened, like those
//! that stayed at zero. Marks without a group are the target's own counters. Deliberately not here: how they are shown
//! (`summary`).

use ocssd_sim::swarm::Size;
use ocssd_sim::tally::Tally;

/// What is expected of one group.
struct Group {
    name: &'static str,
    title: &'static str,
    marks: &'static [&'static str],
    /// Marks that worlds without media faults never leave.
    marks_of_faults: &'static [&'static str],
}

/// The groups, in the order they are shown.
const GROUPS: &[Group] = &[
    Group {
        name: "cuts",
        title: "power cuts",
        marks: &["in_flight", "idle", "in_mount", "after_mount"],
        marks_of_faults: &[],
    },
    Group {
        name: "power_cut",
        title: "undone by them",
        marks: &["commands_in_flight", "sectors_lost", "units_torn", "resets_undone"],
        marks_of_faults: &[],
    },
    Group { name: "mount", title: "mounts", marks: &["fresh", "again", "commands"], marks_of_faults: &[] },
    Group {
        name: "requests",
        title: "requests",
        marks: &[
            "reads",
            "writes",
            "writes_fua",
            "flushes",
            "discards",
            "writes_of_zeroes",
            "shutdowns",
            "blocks_written",
        ],
        marks_of_faults: &["reads_lost_to_the_media", "changes_refused", "blocks_older_than_lost_media"],
    },
    Group {
        name: "faults",
        title: "faults",
        marks: &[],
        marks_of_faults: &["bits_flipped", "by_schedule", "commands_failed"],
    },
    Group { name: "checks", title: "checks", marks: &["audits", "whole_state"], marks_of_faults: &[] },
    Group {
        name: "device",
        title: "drive",
        marks: &["sectors_written", "sectors_read", "resets"],
        marks_of_faults: &[],
    },
];

/// The title of the target's own counters.
const TARGET: &str = "target";

/// Counts that belong to the drive though their names do not say so.
const OF_THE_DRIVE: &[&str] = &["events"];

/// A count and where it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The group's title.
    pub group: String,
    /// The name within the group.
    pub name: String,
    /// The count.
    pub count: u64,
}

/// All counts of a tally and all that were expected of worlds of this size, group by group; expected ones that are
/// missing have a count of nothing.
pub fn marks(tally: &Tally, size: Size) -> Vec<Mark> {
    let mut marks: Vec<(usize, Mark)> = Vec::new();
    for (rank, group) in GROUPS.iter().enumerate() {
        let of_faults = if size == Size::Any { group.marks_of_faults } else { &[] };
        for name in group.marks.iter().chain(of_faults) {
            let count = tally.of(&format!("{}.{name}", group.name));
            marks.push((rank, Mark { group: group.title.to_owned(), name: (*name).to_owned(), count }));
        }
    }
    for (name, count) in tally.iter() {
        let (rank, group, name) = place(name);
        let is_known = marks.iter().any(|(_, mark)| mark.group == group && mark.name == name);
        // What cannot be in worlds of this size is no news.
        let is_beside_the_point =
            GROUPS.get(rank).is_some_and(|group| group.marks_of_faults.contains(&name)) && count == 0;
        if !is_known && !is_beside_the_point {
            marks.push((rank, Mark { group: group.to_owned(), name: name.to_owned(), count }));
        }
    }
    marks.sort_by_key(|(rank, _)| *rank);
    marks.into_iter().map(|(_, mark)| mark).collect()
}

/// Rank and title of the group of a tally's name, and the name within it. Groups nobody knows come after those known, the
/// target's counters last.
fn place(name: &str) -> (usize, &str, &str) {
    let drive = GROUPS.iter().position(|group| group.name == "device").expect("there is one");
    if OF_THE_DRIVE.contains(&name) {
        return (drive, GROUPS[drive].title, name);
    }
    let Some((prefix, rest)) = name.split_once('.') else { return (GROUPS.len() + 1, TARGET, name) };
    match GROUPS.iter().position(|group| group.name == prefix) {
        Some(rank) => (rank, GROUPS[rank].title, rest),
        None => (GROUPS.len(), prefix, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(marks: &[Mark], group: &str, name: &str) -> Option<u64> {
        marks.iter().find(|mark| mark.group == group && mark.name == name).map(|mark| mark.count)
    }

    #[test]
    fn every_count_has_a_place_and_what_was_expected_is_never_missing() {
        let mut tally = Tally::default();
        tally.add("cuts.in_flight", 3);
        tally.add("gc_victims", 7);
        tally.add("events", 9);
        tally.add("weather.storms", 2);
        tally.add("requests.changes_refused", 0);
        for size in [Size::Tiny, Size::Any] {
            let marks = marks(&tally, size);
            assert_eq!(count(&marks, "power cuts", "in_flight"), Some(3));
            assert_eq!(count(&marks, "power cuts", "in_mount"), Some(0));
            assert_eq!(count(&marks, "target", "gc_victims"), Some(7));
            assert_eq!(count(&marks, "drive", "events"), Some(9));
            assert_eq!(count(&marks, "weather", "storms"), Some(2));
            let faults = if size == Size::Any { Some(0) } else { None };
            assert_eq!(count(&marks, "faults", "by_schedule"), faults, "{size:?}");
            assert_eq!(count(&marks, "requests", "changes_refused"), faults, "{size:?}");
            let groups: Vec<&str> = marks.iter().map(|mark| mark.group.as_str()).collect();
            let mut seen = groups.clone();
            seen.dedup();
            let count = seen.len();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(count, seen.len(), "a group is shown twice: {groups:?}");
        }
    }
}
