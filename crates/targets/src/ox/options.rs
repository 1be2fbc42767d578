//! What an instance is asked to be.
//!
//! Deliberately not here: sizes that follow from it (`sizes`).

#[cfg(feature = "canaries")]
use super::canary::Canary;
use crate::option_value::{check_above_zero, check_within, number, small, victim, word};
use crate::plane_reads::PlaneReads;
use crate::recovery::lost_log::LostLog;
use ocssd_base::Nanos;
use ocssd_ftl::VictimPolicy;
use std::fmt;

/// When a request is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Once its transaction is on media.
    #[default]
    Request,
    /// Once its data are on media and its transaction is in the log's buffer: a power cut may take it, as a whole; a flush
    /// or force unit access makes it durable.
    Flush,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "request",
            Self::Flush => "flush",
        })
    }
}

impl std::str::FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        word("durability", text, &[("request", Self::Request), ("flush", Self::Flush)])
    }
}

/// Chunks kept from the user, in percent, unless asked for otherwise (chosen: as block SSDs of data centres; OX kept
/// 30).
pub const OVER_PROVISIONING_PERCENT: u32 = 20;
/// Most that may be kept from the user, in percent (chosen: what is left is still a drive).
const PERCENT_MAX: u32 = 95;
/// Most writes in flight to a chunk (chosen: more only queue in the drive).
const WRITES_PER_UNIT_MAX: u32 = 16;
/// Groups garbage collection may be in at once by default: the paper's one marked group (CIDR 2020 section 4.3).
const GC_GROUPS_MAX: u32 = 1;

/// Times each page of the log is written by default (chosen: one sector of the log that cannot be read would take
/// transactions that were answered).
const LOG_COPIES: u32 = 2;

/// Options of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Chunks kept from the user, in percent, 1..=95. What the target itself needs is kept in any case.
    pub over_provisioning_percent: u32,
    /// When a request is answered.
    pub durability: Durability,
    /// Bytes of log between two checkpoints; default: a sixty-fourth of the instance, at most 64 MiB.
    pub checkpoint_log_bytes: Option<u64>,
    /// How long recovery may read the log; sets the log between checkpoints in its place.
    pub recovery: Option<Nanos>,
    /// Times each page of the log is written, 1 or 2: a page that the media lose ends the log if there is no other.
    pub log_copies: u32,
    /// What a mount does where the media lost pages of the log, of stores that can go on then.
    pub lost_log: LostLog,
    /// Bytes of the map that may be in memory; default: all of it is.
    pub map_cache_bytes: Option<u64>,
    /// Bytes of a page of such a map; default: a sector.
    pub map_page_bytes: Option<u32>,
    /// Groups garbage collection may be in at a time, 1..; users' new writes avoid them.
    pub gc_groups_max: u32,
    /// How victims are chosen.
    pub victim: VictimPolicy,
    /// Writes in flight to a chunk, 1..=16.
    pub writes_per_unit: u32,
    /// Which reads ask the drive for plane mode.
    pub plane_reads: PlaneReads,
    /// Seed of the instance's name and of random choices.
    pub seed: u64,
    /// The bug planted in this instance.
    #[cfg(feature = "canaries")]
    pub canary: Option<Canary>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            over_provisioning_percent: OVER_PROVISIONING_PERCENT,
            durability: Durability::Request,
            checkpoint_log_bytes: None,
            recovery: None,
            log_copies: LOG_COPIES,
            lost_log: LostLog::default(),
            map_cache_bytes: None,
            map_page_bytes: None,
            gc_groups_max: GC_GROUPS_MAX,
            victim: VictimPolicy::Greedy,
            writes_per_unit: 2,
            plane_reads: PlaneReads::default(),
            seed: 1,
            #[cfg(feature = "canaries")]
            canary: None,
        }
    }
}

/// A time as it is written: `100ms`, `2s`.
fn duration(text: &str) -> Result<Nanos, String> {
    let wrong = || format!("recovery should be a time such as 100ms or 2s, at least 1ms, but is \"{text}\"");
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1_000_000),
        None => (text.strip_suffix('s').ok_or_else(wrong)?, 1_000_000_000),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let nanos = number.checked_mul(unit).filter(|&nanos| nanos > 0).ok_or_else(wrong)?;
    Ok(Nanos(nanos))
}

impl Options {
    /// Reads one `name=value` that every FTL of these machines has; false if there is no option of this name.
    ///
    /// # Errors
    /// A sentence that says what the value should be.
    pub fn set_common(&mut self, name: &str, value: &str) -> Result<bool, String> {
        match name {
            "over_provisioning_percent" => self.over_provisioning_percent = small(name, value)?,
            "checkpoint_log_bytes" => self.checkpoint_log_bytes = Some(number(name, value)?),
            "recovery" => self.recovery = Some(duration(value)?),
            "log_copies" => self.log_copies = small(name, value)?,
            "gc_groups_max" => self.gc_groups_max = small(name, value)?,
            "victim" => self.victim = victim(value)?,
            "writes_per_unit" => self.writes_per_unit = small(name, value)?,
            "plane_reads" => self.plane_reads = value.parse()?,
            "seed" => self.seed = number(name, value)?,
            #[cfg(feature = "canaries")]
            "canary" => self.canary = Some(value.parse()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What is wrong with the numbers on their own.
    ///
    /// # Errors
    /// One sentence.
    pub fn check(&self) -> Result<(), String> {
        check_within("over_provisioning_percent", self.over_provisioning_percent, PERCENT_MAX)?;
        check_within("writes_per_unit", self.writes_per_unit, WRITES_PER_UNIT_MAX)?;
        check_within("log_copies", self.log_copies, 2)?;
        if self.recovery.is_some() && self.checkpoint_log_bytes.is_some() {
            return Err(
                "recovery and checkpoint_log_bytes both say how much log there is between checkpoints: give one of them"
                    .to_owned(),
            );
        }
        if self.gc_groups_max == 0 {
            return Err(
                "gc_groups_max must be at least 1, but is 0: garbage is collected in some group".to_owned()
            );
        }
        check_above_zero("checkpoint_log_bytes", self.checkpoint_log_bytes)
    }
}
