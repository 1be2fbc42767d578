//! What the user knows and a result does not say, and which rules are wanted.

use super::rule::{RULES, Rule, find_rule};

/// What the reads come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Media {
    /// Flash with two or more bits a cell.
    #[default]
    Nand,
    /// Flash with one bit a cell, made for latency (Z-NAND, XL-FLASH).
    Slc,
    /// 3D XPoint.
    Xpoint,
}

/// What the user adds to the evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The media; `None` leaves it to the result, and takes flash where that does not say.
    pub media: Option<Media>,
    /// Rate of the drive's link in bytes per second.
    pub link_bytes_per_second: Option<f64>,
    /// Memory of the device, in bytes.
    pub dram_bytes: u64,
    /// Write cache of the device, in bytes.
    pub cache_bytes: Option<u64>,
    /// I/Os per second of the same job on a target that answers at once.
    pub ceiling_iops: Option<f64>,
}

/// Guess of a device's memory: 1 GiB, what the usual map of 4 bytes for each 4 KiB takes on a drive of 1 TiB.
const DRAM_GUESS: u64 = 1 << 30;

impl Default for Settings {
    fn default() -> Self {
        Self {
            media: None,
            link_bytes_per_second: None,
            dram_bytes: DRAM_GUESS,
            cache_bytes: None,
            ceiling_iops: None,
        }
    }
}

/// Which rules are held against the evidence.
#[derive(Clone, Debug)]
pub struct Selection(Vec<&'static Rule>);

impl Selection {
    /// All rules.
    #[must_use]
    pub fn all() -> Self {
        Self(RULES.iter().collect())
    }

    /// The rules named in `only` (all if it is empty), without those in `ignored`.
    ///
    /// # Errors
    /// A sentence that lists the rules there are, if a name is none, or that none is left.
    pub fn new(only: &[String], ignored: &[String]) -> Result<Self, String> {
        let named =
            |names: &[String]| names.iter().map(|name| find_rule(name)).collect::<Result<Vec<_>, _>>();
        let (only, ignored) = (named(only)?, named(ignored)?);
        let is_in = |list: &[&Rule], rule: &Rule| list.iter().any(|other| other.id == rule.id);
        let rules: Vec<&'static Rule> = RULES
            .iter()
            .filter(|rule| (only.is_empty() || is_in(&only, rule)) && !is_in(&ignored, rule))
            .collect();
        if rules.is_empty() {
            return Err(
                "no rule is left: every rule asked for is also ignored; name fewer to ignore".to_owned()
            );
        }
        Ok(Self(rules))
    }

    /// The rules, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static Rule> {
        self.0.iter().copied()
    }
}
