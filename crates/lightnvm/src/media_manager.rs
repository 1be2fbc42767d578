//! The media manager: leases the drive's parallel units to targets, none to two at once.
//!
//! What Linux's LightNVM did with `lun_begin..lun_end` at target creation. The table is small text, so that it can be
//! kept in an image and read by people. Deliberately not here: making the targets (`targets::registry`).

mod units;

pub use units::UnitSelection;

use crate::address::PuId;
use crate::geometry::Geometry;
use std::fmt;
use std::fmt::Write as _;

/// Longest name of a lease: Linux's DISK_NAME_LEN is 32 with its end mark.
pub const NAME_BYTES_MAX: usize = 31;

/// Parallel units given to one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The target's name, unique on the drive.
    pub name: String,
    /// The kind of target, as the registry calls it.
    pub kind: String,
    /// Its units, ascending, no two the same.
    pub units: Vec<PuId>,
}

/// Why a lease was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseError {
    /// The name or kind is empty, too long, or has characters other than letters, digits, `-` and `_`.
    Name(String),
    /// A target of this name exists.
    Exists(String),
    /// No target has this name.
    Unknown(String),
    /// No unit was asked for.
    Empty,
    /// A unit does not exist.
    NoSuchUnit {
        /// The unit.
        unit: u32,
        /// Units of the drive.
        count: u32,
    },
    /// A unit is leased to another target.
    Taken {
        /// The unit.
        unit: u32,
        /// Who has it.
        holder: String,
    },
    /// The stored table cannot be read.
    Table {
        /// Its line, from 1.
        line: usize,
        /// The line's text.
        text: String,
    },
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => {
                write!(
                    f,
                    "a name has 1 to {NAME_BYTES_MAX} letters, digits, '-' or '_', but \"{name}\" was given"
                )
            }
            Self::Exists(name) => {
                write!(f, "a target named \"{name}\" exists; choose another name or remove it first")
            }
            Self::Unknown(name) => {
                write!(f, "no target is named \"{name}\"; list the targets to see which there are")
            }
            Self::Empty => f.write_str("a target needs at least one parallel unit, but none was named"),
            Self::NoSuchUnit { unit, count } => {
                write!(
                    f,
                    "the drive has parallel units 0 to {}, but unit {unit} was named",
                    count.saturating_sub(1)
                )
            }
            Self::Taken { unit, holder } => {
                write!(
                    f,
                    "parallel unit {unit} belongs to target \"{holder}\"; choose free units or remove that target"
                )
            }
            Self::Table { line, text } => write!(
                f,
                "line {line} of the target table should be `name kind units`, for instance `db linear pu:0-3`, but is \"{text}\""
            ),
        }
    }
}

impl std::error::Error for LeaseError {}

/// Who has which units of one drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaManager {
    unit_count: u32,
    leases: Vec<Lease>,
}

fn check_name(name: &str) -> Result<(), LeaseError> {
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if plain && (1..=NAME_BYTES_MAX).contains(&name.len()) {
        Ok(())
    } else {
        Err(LeaseError::Name(name.to_owned()))
    }
}

impl MediaManager {
    /// Nothing leased.
    #[must_use]
    pub fn new(geometry: &Geometry) -> Self {
        Self { unit_count: geometry.pu_count(), leases: Vec::new() }
    }

    /// Leases `units` to a new target.
    ///
    /// # Errors
    /// A bad or used name, no units, a unit that does not exist or is taken. Nothing is changed then.
    pub fn create(&mut self, name: &str, kind: &str, units: &[PuId]) -> Result<&Lease, LeaseError> {
        check_name(name)?;
        check_name(kind)?;
        if self.find(name).is_some() {
            return Err(LeaseError::Exists(name.to_owned()));
        }
        let mut units = units.to_vec();
        units.sort_unstable();
        units.dedup();
        if units.is_empty() {
            return Err(LeaseError::Empty);
        }
        for &unit in &units {
            if unit.0 >= self.unit_count {
                return Err(LeaseError::NoSuchUnit { unit: unit.0, count: self.unit_count });
            }
            if let Some(holder) = self.holder(unit) {
                return Err(LeaseError::Taken { unit: unit.0, holder: holder.name.clone() });
            }
        }
        self.leases.push(Lease { name: name.to_owned(), kind: kind.to_owned(), units });
        Ok(self.leases.last().expect("a lease was just added"))
    }

    /// Ends a lease; its units are free again. The data on them stays.
    ///
    /// # Errors
    /// If no target has this name.
    pub fn remove(&mut self, name: &str) -> Result<Lease, LeaseError> {
        let at = self.leases.iter().position(|lease| lease.name == name);
        at.map(|index| self.leases.remove(index)).ok_or_else(|| LeaseError::Unknown(name.to_owned()))
    }

    /// The leases, in the order they were made.
    #[must_use]
    pub fn list(&self) -> &[Lease] {
        &self.leases
    }

    /// The lease of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Lease> {
        self.leases.iter().find(|lease| lease.name == name)
    }

    /// Who has this unit.
    #[must_use]
    pub fn holder(&self, unit: PuId) -> Option<&Lease> {
        self.leases.iter().find(|lease| lease.units.binary_search(&unit).is_ok())
    }

    /// The table as text, one lease a line.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.leases.iter().fold(String::new(), |mut text, lease| {
            let units = UnitSelection::of(&lease.units);
            writeln!(text, "{} {} {units}", lease.name, lease.kind).expect("a string takes any text");
            text
        })
    }

    /// Reads the table back.
    ///
    /// # Errors
    /// A line that is no lease, or a lease the drive cannot have.
    pub fn from_text(text: &str, geometry: &Geometry) -> Result<Self, LeaseError> {
        let mut manager = Self::new(geometry);
        for (index, line) in text.lines().enumerate() {
            let bad = || LeaseError::Table { line: index + 1, text: line.to_owned() };
            let [name, kind, units] = line.split(' ').collect::<Vec<_>>()[..] else { return Err(bad()) };
            let units: UnitSelection = units.parse().map_err(|_| bad())?;
            manager.create(name, kind, &units.resolve(geometry)?)?;
        }
        Ok(manager)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager() -> (Geometry, MediaManager) {
        let geometry = Geometry::example(2, 4, 4, 24, 24);
        let manager = MediaManager::new(&geometry);
        (geometry, manager)
    }

    fn units(range: std::ops::Range<u32>) -> Vec<PuId> {
        range.map(PuId).collect()
    }

    #[test]
    fn no_unit_is_leased_twice_and_a_removed_one_is_free_again() {
        let (_, mut manager) = manager();
        manager.create("a", "linear", &units(0..4)).expect("free units");
        let taken = manager.create("b", "linear", &units(3..6)).expect_err("unit 3 is taken");
        assert_eq!(taken, LeaseError::Taken { unit: 3, holder: "a".into() });
        assert_eq!(manager.list().len(), 1);
        manager.remove("a").expect("it exists");
        manager.create("b", "linear", &units(3..6)).expect("free again");
        assert_eq!(manager.holder(PuId(5)).map(|lease| lease.name.as_str()), Some("b"));
    }

    #[test]
    fn every_refusal_names_its_cause() {
        let (_, mut manager) = manager();
        manager.create("a", "linear", &units(0..1)).expect("free");
        let table: [(&str, Vec<PuId>, &str); 5] = [
            ("a", units(1..2), "exists"),
            ("a b", units(1..2), "letters, digits"),
            ("", units(1..2), "letters, digits"),
            ("c", units(0..0), "at least one parallel unit"),
            ("c", units(7..9), "units 0 to 7, but unit 8"),
        ];
        for (name, units, expected) in table {
            let error = manager.create(name, "linear", &units).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(manager.remove("zzz").is_err());
    }

    #[test]
    fn the_table_survives_its_text_and_a_broken_line_is_named() {
        let (geometry, mut manager) = manager();
        manager.create("db", "linear", &[PuId(0), PuId(1), PuId(2), PuId(6)]).expect("free");
        manager.create("log", "linear", &units(3..4)).expect("free");
        let text = manager.to_text();
        assert_eq!(text, "db linear pu:0-2,6\nlog linear pu:3\n");
        assert_eq!(MediaManager::from_text(&text, &geometry), Ok(manager));
        for bad in ["db linear\n", "db linear pu:x\n", "a b c d\n"] {
            assert!(
                matches!(MediaManager::from_text(bad, &geometry), Err(LeaseError::Table { line: 1, .. })),
                "{bad}"
            );
        }
    }
}
