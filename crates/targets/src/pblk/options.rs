//! What a pblk instance is asked to be, and what that means for its parts.
//!
//! Deliberately not here: whether it fits the drive (`capacity`).

#[cfg(feature = "canaries")]
use super::canary::Canary;
use super::knobs::Knobs;
use crate::option_value::{check_within, number, small, victim};
use crate::plane_reads::PlaneReads;
use ocssd_ftl::{Classification, VictimPolicy, WEAR_SPREAD_MIN};
use std::fmt;

/// Over-provisioning pblk used since 4.16, in percent of the good chunks (`PBLK_DEFAULT_OP` of Linux `pblk.h`).
pub const OVER_PROVISIONING_PERCENT: u32 = 11;

/// Which pblk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// As Linux 4.14 had it: one ring released in order, one writer in strict order, one stream, greedy victims, and the
    /// power-of-two limiter. Discards do not survive a power cut.
    Faithful,
    /// Buffer units released as they become readable, a writer per unit, user and GC apart, cost-benefit, a continuous limiter,
    /// durable discards, map checkpoints.
    #[default]
    Improved,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Faithful => "faithful",
            Self::Improved => "improved",
        })
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "faithful" => Ok(Self::Faithful),
            "improved" => Ok(Self::Improved),
            _ => Err(format!("a pblk mode is \"faithful\" or \"improved\", but \"{text}\" was given")),
        }
    }
}

/// What an instance is asked to be. `None` leaves a choice to the mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which pblk.
    pub mode: Mode,
    /// Good chunks kept from the user, in percent, 1..=90.
    pub over_provisioning_percent: u32,
    /// Somebody asked for that percentage: a new instance that needs more to work is refused. Else it takes what it needs.
    pub over_provisioning_stated: bool,
    /// Size of the write buffer in bytes; default by the mode's formula.
    pub write_buffer_bytes: Option<u64>,
    /// A write buffer smaller than the device needs is taken as it is. Faithful mode only: reads may then have to wait
    /// until enough was written behind them.
    pub small_write_buffer: bool,
    /// The buffer is written out in spells, which begin when so many percent of it are full buffer units that wait, 1..=100, and
    /// end when none is left; 0 writes each buffer unit at once, as pblk did.
    pub destage_percent: u32,
    /// Units written at a time, 1..= the units leased; default all.
    pub active_units: Option<u32>,
    /// How victims are chosen.
    pub victim: Option<VictimPolicy>,
    /// How data is told apart.
    pub classification: Option<Classification>,
    /// What is not stated of `victim` and `classification` follows the number of lines: [`Self::for_lines`].
    pub follows_lines: bool,
    /// Data users write between two checkpoints of the map, in bytes; 0 takes none but at shutdown. Default: a sixteenth of
    /// the instance, at most 64 GiB.
    pub checkpoint_interval_bytes: Option<u64>,
    /// Sectors a write of data takes, as pblk's `sec_per_write` in sysfs: WS_OPT or a multiple of it, up to the 64 of one vector
    /// command. Default: WS_OPT, or several of one below 64 KiB. Fewer commands, and so less work for the host; in turn the
    /// buffer holds that much more for each unit, and a read waits for that much more on a unit that is written. Improved mode
    /// only.
    pub sec_per_write: Option<u32>,
    /// Which reads ask the drive for plane mode.
    pub plane_reads: PlaneReads,
    /// Writes in flight to one unit, 1..=16.
    pub writes_per_unit: Option<u32>,
    /// Resets a cold line may lag behind the most worn line before it is moved; 0 moves none. At least
    /// [`WEAR_SPREAD_MIN`]. Default: [`WEAR_SPREAD`], or none in the faithful mode, as pblk had none.
    pub wear_spread: Option<u32>,
    /// Seed of the instance's name and of random choices.
    pub seed: u64,
    /// Constants of scale, for tests.
    pub knobs: Knobs,
    /// The bug planted in this instance.
    #[cfg(feature = "canaries")]
    pub canary: Option<Canary>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Improved,
            over_provisioning_percent: OVER_PROVISIONING_PERCENT,
            over_provisioning_stated: true,
            write_buffer_bytes: None,
            small_write_buffer: false,
            destage_percent: 0,
            active_units: None,
            victim: None,
            classification: None,
            follows_lines: false,
            checkpoint_interval_bytes: None,
            sec_per_write: None,
            plane_reads: PlaneReads::default(),
            writes_per_unit: None,
            wear_spread: None,
            seed: 1,
            knobs: Knobs::default(),
            #[cfg(feature = "canaries")]
            canary: None,
        }
    }
}

/// Resets a cold line may lag by default (chosen: two in a hundred of what TLC bears, 3 000; runs that write a drive a dozen
/// times do not reach it, so that what they measure is garbage collection alone).
pub const WEAR_SPREAD: u32 = 64;

/// Lines up to which one stream writes less than two, whatever the skew of what is written (measured: docs/pblk.md, "Few lines").
pub const FEW_LINES: u32 = 96;

/// Most that may be kept from the user, in percent (chosen: what is left is still a drive).
pub const PERCENT_MAX: u32 = 90;

/// Most writes in flight to a unit (chosen: more only queue in the drive).
const WRITES_PER_UNIT_MAX: u32 = 16;

impl Options {
    /// How victims are chosen: greedy as pblk's, or cost-benefit (docs/pblk.md: what pays once GC has its own stream).
    #[must_use]
    pub fn victim(&self) -> VictimPolicy {
        self.victim.unwrap_or(match self.mode {
            Mode::Faithful => VictimPolicy::Greedy,
            Mode::Improved => VictimPolicy::CostBenefit,
        })
    }

    /// How data is told apart.
    #[must_use]
    pub fn classification(&self) -> Classification {
        self.classification.unwrap_or(match self.mode {
            Mode::Faithful => Classification::None,
            Mode::Improved => Classification::UserGc,
        })
    }

    /// Writes in flight to a unit: one, as pblk's semaphore had it, or two, so that the next unit's transfer overlaps
    /// the program before it.
    #[must_use]
    pub fn writes_per_unit(&self) -> u32 {
        self.writes_per_unit.unwrap_or(match self.mode {
            Mode::Faithful => 1,
            Mode::Improved => 2,
        })
    }

    /// Resets a cold line may lag behind the most worn; `None`: any number.
    #[must_use]
    pub fn wear_spread(&self) -> Option<u32> {
        let chosen = self.wear_spread.unwrap_or(match self.mode {
            Mode::Faithful => 0,
            Mode::Improved => WEAR_SPREAD,
        });
        (chosen > 0).then_some(chosen)
    }

    /// The default before anything is asked for: what [`Self::set`] is not told may be chosen to fit the drive.
    #[must_use]
    pub fn unstated() -> Self {
        Self { over_provisioning_stated: false, follows_lines: true, ..Self::default() }
    }

    /// The same for an instance of so many lines. Where they are few (96 or less) a second stream costs more lines than it
    /// saves copies: one stream, with victims chosen greedily. What is stated stays, and so does a choice of victims that is
    /// stated beside streams that are not.
    #[must_use]
    pub fn for_lines(&self, lines: u32) -> Self {
        let is_free = self.follows_lines && self.mode == Mode::Improved && self.classification.is_none();
        if !is_free || lines > FEW_LINES {
            return self.clone();
        }
        let victim = self.victim.unwrap_or(VictimPolicy::Greedy);
        Self { classification: Some(Classification::None), victim: Some(victim), ..self.clone() }
    }

    /// Reads one `name=value`.
    ///
    /// # Errors
    /// A sentence that says which names there are, or what the value should be.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "mode" => self.mode = value.parse()?,
            "over_provisioning_percent" => {
                (self.over_provisioning_percent, self.over_provisioning_stated) = (small(name, value)?, true);
            }
            "write_buffer_bytes" => self.write_buffer_bytes = Some(number(name, value)?),
            "small_write_buffer" => {
                self.small_write_buffer = value
                    .parse()
                    .map_err(|_| format!("small_write_buffer should be true or false, but is \"{value}\""))?;
            }
            "active_units" => self.active_units = Some(small(name, value)?),
            "victim" => self.victim = Some(victim(value)?),
            "classification" => {
                self.classification =
                    Some(value.parse().map_err(|error: ocssd_ftl::ClassificationError| error.to_string())?);
            }
            // The second is the name it had first.
            "checkpoint_interval_bytes" | "snapshot_interval_bytes" => {
                self.checkpoint_interval_bytes = Some(number(name, value)?);
            }
            "sec_per_write" => self.sec_per_write = Some(small(name, value)?),
            "plane_reads" => self.plane_reads = value.parse()?,
            "writes_per_unit" => self.writes_per_unit = Some(small(name, value)?),
            "wear_spread" => self.wear_spread = Some(small(name, value)?),
            "seed" => self.seed = number(name, value)?,
            #[cfg(feature = "canaries")]
            "canary" => self.canary = Some(value.parse()?),
            _ => {
                return self.knobs.set(name, value).unwrap_or_else(|| Err(format!(
                    "pblk has no option \"{name}\"; its options are mode, over_provisioning_percent, \
                     write_buffer_bytes, small_write_buffer, active_units, victim, classification, \
                     checkpoint_interval_bytes, sec_per_write, plane_reads, writes_per_unit, wear_spread, seed and block_bytes"
                )));
            }
        }
        Ok(())
    }

    /// What is wrong with the numbers on their own.
    ///
    /// # Errors
    /// One sentence.
    pub fn check(&self) -> Result<(), String> {
        check_within("over_provisioning_percent", self.over_provisioning_percent, PERCENT_MAX)?;
        check_within("writes_per_unit", self.writes_per_unit(), WRITES_PER_UNIT_MAX)?;
        if let Some(spread) = self.wear_spread().filter(|&spread| spread < WEAR_SPREAD_MIN) {
            return Err(format!(
                "wear_spread must be 0, to move no cold data, or at least {WEAR_SPREAD_MIN} resets, but is {spread}"
            ));
        }
        if self.mode == Mode::Faithful && self.wear_spread().is_some() {
            return Err("mode=faithful moves no cold data, as pblk did not, so wear_spread must be 0; leave it out or choose \
                        mode=improved"
                .to_owned());
        }
        if self.mode == Mode::Faithful && self.sec_per_write.is_some() {
            return Err("mode=faithful writes WS_OPT sectors at a time: pblk spread larger commands over several units, which \
                        is not modelled; leave sec_per_write out or choose mode=improved"
                .to_owned());
        }
        if self.mode == Mode::Improved && self.small_write_buffer {
            return Err("small_write_buffer is for mode=faithful: the improved mode needs its whole read window; leave it \
                        out or choose mode=faithful"
                .to_owned());
        }
        if self.mode == Mode::Faithful && self.classification() != Classification::None {
            return Err("mode=faithful writes user and GC data to one line, so classification must be \"none\"; leave it \
                        out or choose mode=improved"
                .to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_say_what_would_be_right() {
        let mut options = Options::default();
        for (name, value) in
            [("mode", "faithful"), ("write_buffer_bytes", "33554432"), ("small_write_buffer", "true")]
        {
            options.set(name, value).expect("a sound option");
        }
        assert_eq!((options.mode, options.write_buffer_bytes), (Mode::Faithful, Some(32 << 20)));
        assert_eq!(options.check(), Ok(()));
        for (name, value, says) in [
            ("mode", "fast", "faithful"),
            ("size", "1", "no option \"size\""),
            ("seed", "-1", "whole number"),
            ("victim", "oldest", "greedy"),
        ] {
            let error = options.set(name, value).expect_err(name);
            assert!(error.contains(says), "{error}");
        }
        for (mode, spread, sound) in [
            (Mode::Faithful, 0, true),
            (Mode::Faithful, 64, false),
            (Mode::Improved, 0, true),
            (Mode::Improved, 3, false),
            (Mode::Improved, 4, true),
        ] {
            let options = Options { mode, wear_spread: Some(spread), ..Options::default() };
            assert_eq!(options.check().is_ok(), sound, "{mode}, {spread}");
        }
        options.over_provisioning_percent = 0;
        assert!(options.check().is_err_and(|error| error.contains("1 to 90")));
    }

    #[test]
    fn few_lines_have_one_stream_unless_something_else_is_stated() {
        let chosen = |options: &Options, lines| {
            let options = options.for_lines(lines);
            (options.classification(), options.victim())
        };
        let (two, one) = (
            (Classification::UserGc, VictimPolicy::CostBenefit),
            (Classification::None, VictimPolicy::Greedy),
        );
        for (lines, expected) in [(1, one), (FEW_LINES, one), (FEW_LINES + 1, two), (10_000, two)] {
            assert_eq!(chosen(&Options::unstated(), lines), expected, "{lines} lines");
            assert_eq!(chosen(&Options::default(), lines), two, "all of it is stated");
            let faithful = Options { mode: Mode::Faithful, ..Options::unstated() };
            assert_eq!(chosen(&faithful, lines), one, "as pblk had it");
        }
        let stated = |name, value| {
            let mut options = Options::unstated();
            options.set(name, value).expect("an option");
            chosen(&options, FEW_LINES)
        };
        assert_eq!(stated("classification", "user-gc"), two);
        assert_eq!(stated("victim", "cost-benefit"), (Classification::None, VictimPolicy::CostBenefit));
    }
}
