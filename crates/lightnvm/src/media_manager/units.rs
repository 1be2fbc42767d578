//! Parallel units as people write them: `all`, `pu:0-3,8`, `group:1`.

use super::LeaseError;
use crate::address::PuId;
use crate::geometry::Geometry;
use std::fmt;

/// A choice of parallel units, before it is known which drive it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitSelection {
    /// Every unit.
    All,
    /// These units, counted through the drive, as inclusive ranges.
    Units(Vec<(u32, u32)>),
    /// Every unit of these groups, as inclusive ranges.
    Groups(Vec<(u32, u32)>),
}

impl UnitSelection {
    /// The selection that names exactly these ascending units.
    #[must_use]
    pub fn of(units: &[PuId]) -> Self {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for unit in units {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == unit.0 => *last = unit.0,
                _ => ranges.push((unit.0, unit.0)),
            }
        }
        Self::Units(ranges)
    }

    /// The units it names on a drive, ascending.
    ///
    /// # Errors
    /// If a unit or group does not exist there.
    pub fn resolve(&self, geometry: &Geometry) -> Result<Vec<PuId>, LeaseError> {
        let count = geometry.pu_count();
        let (ranges, scale) = match self {
            Self::All => return Ok((0..count).map(PuId).collect()),
            Self::Units(ranges) => (ranges, 1),
            Self::Groups(ranges) => (ranges, geometry.pus_per_group),
        };
        let mut units = Vec::new();
        for &(first, last) in ranges {
            let end = (u64::from(last) + 1) * u64::from(scale);
            if end > u64::from(count) {
                let unit = u32::try_from(end - 1).unwrap_or(u32::MAX);
                return Err(LeaseError::NoSuchUnit { unit, count });
            }
            units.extend((first * scale..(last + 1) * scale).map(PuId));
        }
        units.sort_unstable();
        units.dedup();
        Ok(units)
    }
}

impl fmt::Display for UnitSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, ranges) = match self {
            Self::All => return f.write_str("all"),
            Self::Units(ranges) => ("pu", ranges),
            Self::Groups(ranges) => ("group", ranges),
        };
        let list: Vec<String> = ranges
            .iter()
            .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
            .collect();
        write!(f, "{word}:{}", list.join(","))
    }
}

fn parse_range(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = (first.parse().ok()?, last.parse().ok()?);
    (range.0 <= range.1).then_some(range)
}

impl std::str::FromStr for UnitSelection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "units are written `all`, `pu:0-3,8` or `group:1` (ranges ascending), but \"{text}\" was given"
            )
        };
        if text == "all" {
            return Ok(Self::All);
        }
        let (word, list) = text.split_once(':').ok_or_else(bad)?;
        let ranges = list.split(',').map(parse_range).collect::<Option<Vec<_>>>().ok_or_else(bad)?;
        match word {
            "pu" => Ok(Self::Units(ranges)),
            "group" => Ok(Self::Groups(ranges)),
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_read_as_written_and_resolved_on_a_drive() {
        let geometry = Geometry::example(2, 4, 4, 24, 24);
        for (text, expected) in [
            ("all", vec![0, 1, 2, 3, 4, 5, 6, 7]),
            ("pu:0-1,6", vec![0, 1, 6]),
            ("group:1", vec![4, 5, 6, 7]),
        ] {
            let selection: UnitSelection = text.parse().expect(text);
            assert_eq!(selection.to_string(), text);
            assert_eq!(selection.resolve(&geometry), Ok(expected.into_iter().map(PuId).collect()));
        }
    }

    #[test]
    fn what_is_no_selection_or_not_on_the_drive_is_refused() {
        for bad in ["", "pu", "pu:", "pu:3-1", "pu:-1", "lun:0", "0-3", "pu:0,,1"] {
            assert!(bad.parse::<UnitSelection>().is_err(), "{bad}");
        }
        let geometry = Geometry::example(2, 4, 4, 24, 24);
        for beyond in ["pu:8", "pu:4294967295", "group:2", "group:0-4294967295"] {
            let selection: UnitSelection = beyond.parse().expect(beyond);
            assert!(
                matches!(selection.resolve(&geometry), Err(LeaseError::NoSuchUnit { count: 8, .. })),
                "{beyond}"
            );
        }
    }
}
