//! What an instance is asked to be.
//!
//! Deliberately not here: sizes that follow from it (`sizes`).

#[cfg(feature = "canaries")]
use super::canary::Canary;
use crate::option_value::{check_above_zero, check_within, number, small, word, yes_or_no};
use crate::plane_reads::PlaneReads;
use std::fmt;

/// Over which units a zone is striped: from SU to FU of ConfZNS, and the horizontal and vertical placement of CIDR 2020.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// All units of the instance.
    #[default]
    All,
    /// The units of one group.
    Group,
    /// As many units.
    Units(u32),
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Group => f.write_str("group"),
            Self::Units(units) => units.fmt(f),
        }
    }
}

impl std::str::FromStr for Width {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "group" => Ok(Self::Group),
            _ => text.parse().ok().filter(|&units| units > 0).map(Self::Units).ok_or_else(|| {
                format!("width should be \"all\", \"group\" or a number of units, but is \"{text}\"")
            }),
        }
    }
}

/// How the part of a write unit that a flush must make durable is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partial {
    /// In pages of WS_MIN that parts of several zones share.
    #[default]
    Log,
    /// Padded to a write unit each, as a drive without such a log does.
    Pad,
}

impl fmt::Display for Partial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Log => "log",
            Self::Pad => "pad",
        })
    }
}

impl std::str::FromStr for Partial {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        word("partial", text, &[("log", Self::Log), ("pad", Self::Pad)])
    }
}

/// What becomes of the chunks of a zone that is finished before it is written to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// They stay as they are.
    #[default]
    Leave,
    /// They are written to their end, as drives that must close their blocks do.
    Pad,
}

impl fmt::Display for Finish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leave => "leave",
            Self::Pad => "pad",
        })
    }
}

impl std::str::FromStr for Finish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        word("finish", text, &[("leave", Self::Leave), ("pad", Self::Pad)])
    }
}

/// Where the log and checkpoints of a new instance lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metadata {
    /// Apart where that costs little, else anywhere.
    #[default]
    Auto,
    /// In the first lines, which hold nothing else: a mount looks for them there alone.
    Apart,
    /// In any chunk: a mount asks each chunk what it holds.
    Anywhere,
}

impl fmt::Display for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Apart => "apart",
            Self::Anywhere => "anywhere",
        })
    }
}

impl std::str::FromStr for Metadata {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = [("auto", Self::Auto), ("apart", Self::Apart), ("anywhere", Self::Anywhere)];
        word("metadata", text, &words)
    }
}

/// Most writes in flight to a chunk (chosen: more only queue in the drive).
const WRITES_PER_UNIT_MAX: u32 = 16;
/// Times each page of the log is written by default (chosen: one sector of the log that cannot be read would take what was
/// logged behind it).
const LOG_COPIES: u32 = 2;

/// Options of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Units a zone is striped over; another mount may choose another width for zones that are begun later.
    pub width: Width,
    /// Chunks of a zone: its capacity. Default: one on each unit of the width. Fixed when the instance is made.
    pub zone_chunks: Option<u32>,
    /// Bytes of the write buffer, from which the limits on open and active zones follow. Default: eight open zones.
    pub buffer_bytes: Option<u64>,
    /// Write units of a zone's random write area; 0: zones take none.
    pub area_units: u32,
    /// How parts of write units are made durable.
    pub partial: Partial,
    /// What finishing a zone does to its chunks.
    pub finish: Finish,
    /// Where the log and checkpoints lie. Fixed when the instance is made.
    pub metadata: Metadata,
    /// Bytes of log between two checkpoints; default: a sixty-fourth of the instance, at most 4 MiB.
    pub checkpoint_log_bytes: Option<u64>,
    /// Times each page of the log is written, 1 or 2.
    pub log_copies: u32,
    /// Writes in flight to a chunk, 1..=16.
    pub writes_per_unit: u32,
    /// Which reads ask the drive for plane mode.
    pub plane_reads: PlaneReads,
    /// Resets that a chunk of a full zone may lag behind the most worn one before it is moved; 0: nothing is moved.
    pub wear_spread: u32,
    /// A mount of units that hold no instance makes one; else it fails and resets nothing, for who only looks.
    pub create: bool,
    /// Seed of the instance's name.
    pub seed: u64,
    /// The bug planted in this instance.
    #[cfg(feature = "canaries")]
    pub canary: Option<Canary>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            width: Width::default(),
            zone_chunks: None,
            buffer_bytes: None,
            area_units: 0,
            partial: Partial::default(),
            finish: Finish::default(),
            metadata: Metadata::default(),
            checkpoint_log_bytes: None,
            log_copies: LOG_COPIES,
            writes_per_unit: 2,
            plane_reads: PlaneReads::default(),
            wear_spread: 0,
            create: true,
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
            "width" => self.width = value.parse()?,
            "zone_chunks" => self.zone_chunks = Some(small(name, value)?),
            "buffer_bytes" => self.buffer_bytes = Some(number(name, value)?),
            "area_units" => self.area_units = small(name, value)?,
            "partial" => self.partial = value.parse()?,
            "finish" => self.finish = value.parse()?,
            "metadata" => self.metadata = value.parse()?,
            "checkpoint_log_bytes" => self.checkpoint_log_bytes = Some(number(name, value)?),
            "log_copies" => self.log_copies = small(name, value)?,
            "writes_per_unit" => self.writes_per_unit = small(name, value)?,
            "plane_reads" => self.plane_reads = value.parse()?,
            "wear_spread" => self.wear_spread = small(name, value)?,
            "create" => self.create = yes_or_no(name, value)?,
            "seed" => self.seed = number(name, value)?,
            #[cfg(feature = "canaries")]
            "canary" => self.canary = Some(value.parse()?),
            _ => {
                return Err(format!(
                    "zns has no option \"{name}\"; its options are width, zone_chunks, buffer_bytes, area_units, partial, \
                     finish, metadata, checkpoint_log_bytes, log_copies, writes_per_unit, plane_reads, wear_spread, create and seed"
                ));
            }
        }
        Ok(())
    }

    /// Resets that a chunk of a full zone may lag; `None`: as many as it likes.
    pub fn wear_bound(&self) -> Option<u32> {
        (self.wear_spread > 0).then_some(self.wear_spread)
    }

    /// What is wrong with the numbers on their own.
    ///
    /// # Errors
    /// One sentence.
    pub fn check(&self) -> Result<(), String> {
        check_within("writes_per_unit", self.writes_per_unit, WRITES_PER_UNIT_MAX)?;
        check_within("log_copies", self.log_copies, 2)?;
        check_within("zone_chunks", self.zone_chunks.unwrap_or(1), u32::MAX)?;
        check_above_zero("checkpoint_log_bytes", self.checkpoint_log_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_say_what_would_be_right() {
        let mut options = Options::default();
        for (name, value) in [("width", "4"), ("zone_chunks", "8"), ("partial", "pad"), ("finish", "pad")] {
            options.set(name, value).expect("a sound option");
        }
        assert_eq!((options.width, options.zone_chunks), (Width::Units(4), Some(8)));
        assert_eq!((options.partial, options.finish, options.check()), (Partial::Pad, Finish::Pad, Ok(())));
        assert_eq!(("all".parse(), "group".parse()), (Ok(Width::All), Ok(Width::Group)));
        for (name, value, says) in [
            ("width", "0", "a number of units"),
            ("partial", "never", "\"log\" or \"pad\""),
            ("create", "", "yes or no"),
            ("finish", "now", "\"leave\" or \"pad\""),
            ("metadata", "first", "\"apart\""),
            ("size", "1", "no option \"size\""),
            ("seed", "-1", "whole number"),
        ] {
            let error = options.set(name, value).expect_err(name);
            assert!(error.contains(says), "{error}");
        }
        for (name, value, says) in [
            ("writes_per_unit", "17", "1 to 16"),
            ("log_copies", "3", "1 to 2"),
            ("zone_chunks", "0", "must be 1"),
            ("checkpoint_log_bytes", "0", "at least 1"),
        ] {
            let mut options = Options::default();
            options.set(name, value).expect("a number");
            let error = options.check().expect_err(name);
            assert!(error.contains(says), "{error}");
        }
        assert_eq!(
            [Width::All, Width::Group, Width::Units(3)].map(|width| width.to_string()),
            ["all", "group", "3"]
        );
    }
}
