//! What an instance is asked to be.
//!
//! Deliberately not here: sizes that follow from it (`sizes`).

#[cfg(feature = "canaries")]
use super::canary::Canary;
use super::medium::Medium;
use crate::option_value::{check_above_zero, check_within, number, small, word};
use crate::plane_reads::PlaneReads;
use std::fmt;

/// Which units a table's columns are on (CIDR 2020 section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// All of them: one table has the whole drive's bandwidth, and meets every other.
    #[default]
    Horizontal,
    /// Those of one group for each stream that writes at the time: a flush and compactions do not meet.
    Vertical,
    /// Those of so many groups, and the next table those of the next so many: with one what the paper's program did.
    Groups(u32),
    /// So many, and the next table the next so many.
    Width(u32),
    /// Those of one group, by the level of the tree: tables that die together lie together.
    Level,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Horizontal => f.write_str("horizontal"),
            Self::Vertical => f.write_str("vertical"),
            Self::Groups(groups) => write!(f, "groups:{groups}"),
            Self::Width(width) => write!(f, "width:{width}"),
            Self::Level => f.write_str("level"),
        }
    }
}

impl std::str::FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = |word: &str| {
            let count = text.strip_prefix(word)?.strip_prefix(':')?.parse().ok();
            count.filter(|&count: &u32| count > 0)
        };
        match (text, count("groups"), count("width")) {
            ("horizontal", ..) => Ok(Self::Horizontal),
            ("vertical", ..) => Ok(Self::Vertical),
            ("level", ..) => Ok(Self::Level),
            (_, Some(groups), _) => Ok(Self::Groups(groups)),
            (_, _, Some(width)) => Ok(Self::Width(width)),
            _ => Err(format!(
                "placement should be \"horizontal\", \"vertical\", \"level\", \"groups:GROUPS\" or \"width:UNITS\", \
                 but is \"{text}\""
            )),
        }
    }
}

/// How much is read at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadUnit {
    /// The sectors that hold the bytes.
    #[default]
    Sector,
    /// Whole write units: what the paper's interface forced on RocksDB (CIDR 2020: "the interface fallacy").
    WriteUnit,
}

impl fmt::Display for ReadUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sector => "sector",
            Self::WriteUnit => "write_unit",
        })
    }
}

impl std::str::FromStr for ReadUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        word("read_unit", text, &[("sector", Self::Sector), ("write_unit", Self::WriteUnit)])
    }
}

/// Tables and logs at most (chosen: a database of a tebibyte in tables of 64 MiB has 16,384).
const TABLES_MAX: u32 = 1 << 16;
/// Most writes in flight to a chunk (chosen: more only queue in the drive).
const WRITES_PER_UNIT_MAX: u32 = 16;
/// Times each page of the log is written by default (chosen: one sector of the log that cannot be read would take edits that
/// were answered).
const LOG_COPIES: u32 = 2;
/// Chunks in a hundred that striping may leave unfilled by default (chosen: a stripe over 32 units is 32 chunks of 1,000).
const SPARE_PERCENT: u32 = 10;
/// Most of these (chosen: what is left is still a drive).
const SPARE_PERCENT_MAX: u32 = 50;

/// Options of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where tables lie. It may change from mount to mount.
    pub placement: Placement,
    /// How much is read at once.
    pub read_unit: ReadUnit,
    /// Tables and logs at most; default: one for eight chunks. Each costs a chunk of the capacity that is promised. Kept from the
    /// first mount.
    pub tables_max: Option<u32>,
    /// Chunks in a hundred that are kept for stripes that are not full, and for chunks that fail, 1..=50. Kept from the first
    /// mount.
    pub spare_percent: u32,
    /// Bytes of log between two checkpoints; default: a sixty-fourth of the instance, at most 64 MiB.
    pub checkpoint_log_bytes: Option<u64>,
    /// Times each page of the log is written, 1 or 2.
    pub log_copies: u32,
    /// Writes in flight to a chunk, 1..=16.
    pub writes_per_unit: u32,
    /// Which reads ask the drive for plane mode.
    pub plane_reads: PlaneReads,
    /// What chunks are: whoever makes the instance knows, and no option says so.
    pub medium: Medium,
    /// Seed of the instance's name.
    pub seed: u64,
    /// The bug planted in this instance.
    #[cfg(feature = "canaries")]
    pub canary: Option<Canary>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            placement: Placement::default(),
            read_unit: ReadUnit::default(),
            tables_max: None,
            spare_percent: SPARE_PERCENT,
            checkpoint_log_bytes: None,
            log_copies: LOG_COPIES,
            writes_per_unit: 2,
            plane_reads: PlaneReads::default(),
            medium: Medium::default(),
            seed: 1,
            #[cfg(feature = "canaries")]
            canary: None,
        }
    }
}

impl Options {
    /// Reads one `name=value`.
    ///
    /// # Errors
    /// A sentence that says which names there are, or what the value should be.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "placement" => self.placement = value.parse()?,
            "read_unit" => self.read_unit = value.parse()?,
            "tables_max" => self.tables_max = Some(small(name, value)?),
            "spare_percent" => self.spare_percent = small(name, value)?,
            "checkpoint_log_bytes" => self.checkpoint_log_bytes = Some(number(name, value)?),
            "log_copies" => self.log_copies = small(name, value)?,
            "writes_per_unit" => self.writes_per_unit = small(name, value)?,
            "plane_reads" => self.plane_reads = value.parse()?,
            "seed" => self.seed = number(name, value)?,
            #[cfg(feature = "canaries")]
            "canary" => self.canary = Some(value.parse()?),
            _ => {
                return Err(format!(
                    "lightlsm has no option \"{name}\"; its options are placement, read_unit, tables_max, spare_percent, \
                     checkpoint_log_bytes, log_copies, writes_per_unit, plane_reads and seed"
                ));
            }
        }
        Ok(())
    }

    /// What is wrong with the numbers on their own.
    ///
    /// # Errors
    /// One sentence.
    pub fn check(&self) -> Result<(), String> {
        check_within("tables_max", self.tables_max.unwrap_or(1), TABLES_MAX)?;
        check_within("spare_percent", self.spare_percent, SPARE_PERCENT_MAX)?;
        check_within("writes_per_unit", self.writes_per_unit, WRITES_PER_UNIT_MAX)?;
        check_within("log_copies", self.log_copies, 2)?;
        check_above_zero("checkpoint_log_bytes", self.checkpoint_log_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_say_what_would_be_right() {
        let mut options = Options::default();
        for (name, value) in [("placement", "width:3"), ("read_unit", "write_unit"), ("tables_max", "9")] {
            options.set(name, value).expect("a sound option");
        }
        assert_eq!((options.placement, options.tables_max), (Placement::Width(3), Some(9)));
        assert_eq!(options.check(), Ok(()));
        for (text, placement) in [
            ("horizontal", Placement::Horizontal),
            ("vertical", Placement::Vertical),
            ("groups:2", Placement::Groups(2)),
            ("width:2", Placement::Width(2)),
            ("level", Placement::Level),
        ] {
            assert_eq!((placement.to_string().as_str(), text.parse()), (text, Ok(placement)));
        }
        for (name, value, says) in [
            ("placement", "diagonal", "\"horizontal\", \"vertical\""),
            ("placement", "width:0", "width:UNITS"),
            ("placement", "groups:0", "groups:GROUPS"),
            ("placement", "groups:some", "groups:GROUPS"),
            ("read_unit", "page", "\"sector\" or \"write_unit\""),
            ("size", "1", "no option \"size\""),
            ("seed", "-1", "whole number"),
        ] {
            let error = options.set(name, value).expect_err(name);
            assert!(error.contains(says), "{error}");
        }
        for (name, value, says) in [
            ("tables_max", "0", "1 to 65536"),
            ("spare_percent", "51", "1 to 50"),
            ("writes_per_unit", "17", "1 to 16"),
            ("log_copies", "3", "1 to 2"),
            ("checkpoint_log_bytes", "0", "at least 1"),
        ] {
            let mut options = Options::default();
            options.set(name, value).expect("a number");
            let error = options.check().expect_err(name);
            assert!(error.contains(says), "{error}");
        }
    }
}
