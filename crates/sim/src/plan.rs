//! What a seed means: a drive, a target on it, a mix of requests, and steps.
//!
//! Steps are drawn before anything runs and name places by raw numbers, so that a run is the same with some of them left
//! out: that is how a failing one is made short. Deliberately not here: how things are drawn (`swarm`), what steps do
//! (`run`).

use crate::block::Mix;
use crate::stale_reports::Untrue;
use ocssd_base::Nanos;
use ocssd_drive::image::FileFaults;
use ocssd_flash::{Config, FaultKind, Shelf};
use ocssd_lightnvm::PuId;
use std::fmt;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A request, drawn from this number; sent as soon as there is room.
    Request {
        /// What it is drawn from.
        draw: u64,
        /// The loop turns once before the next step; else both go out together.
        turn: bool,
    },
    /// Everything outstanding is waited for.
    Quiesce,
    /// Time passes.
    Idle {
        /// How much.
        time: Nanos,
    },
    /// The power goes, and comes back.
    Cut(Cut),
    /// The target is shut down and mounted again.
    Remount,
    /// The target is shut down, bits of the media flip while it rests, and it is mounted again.
    Rest {
        /// Places and bits, as of [`Step::Flip`].
        flips: Vec<(u64, u64)>,
    },
    /// The target is shut down, the drive lies without power for months, and it is mounted again.
    Shelf {
        /// Sectors that are lost and weakened.
        shelf: Shelf,
        /// Which.
        seed: u64,
    },
    /// A bit of the media flips, and nobody says so.
    Flip {
        /// Which sector, as a raw number.
        place: u64,
        /// Which bit of it, as a raw number; odd ones are of the metadata.
        bit: u64,
    },
    /// A fault at some place.
    Fault {
        /// Which.
        kind: FaultKind,
        /// Which chunk, as a raw number.
        chunk: u64,
        /// How often.
        times: u32,
    },
    /// A unit dies with all it holds, or a whole group.
    Death {
        /// Which unit of the target's, as a raw number.
        unit: u64,
        /// All units of its group die with it.
        group: bool,
    },
    /// What goes wrong on the disk below the drive from now on; nothing any more, if it says so.
    Disk(FileFaults),
    /// The newest unit of a chunk was written nowhere, or over another unit of its chunk.
    Stray {
        /// Which chunk, reduced to those that were written.
        place: u64,
        /// It lies over the unit so many before it; nowhere, if it is 0.
        before: u32,
    },
    /// The drive copies its chunk table, and begins with that after the next power cycle: what it reports of some is not true.
    StaleReports {
        /// In which way.
        how: Untrue,
        /// Of how many, in parts per billion.
        share: u32,
        /// Which.
        seed: u64,
    },
    /// A sector of a page of a key-value target's index cannot be read any more, once everything was answered.
    LosePage {
        /// Which, reduced to the newest pages of all that lie on media.
        place: u64,
    },
    /// Everything is read and compared.
    Audit,
}

/// A power cut, and what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// After so many more events.
    pub events: u64,
    /// And such a part of the time to the next one, in millionths.
    pub gap_millionths: u32,
    /// Which pages of torn units survive.
    pub seed: u64,
    /// The power goes again during the mounts that follow, after so many commands each.
    pub again: Vec<u64>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { .. } => f.write_str("a request"),
            Self::Quiesce => f.write_str("wait for every reply"),
            Self::Idle { time } => write!(f, "{time} pass"),
            Self::Cut(cut) => {
                write!(f, "the power goes {} events later", cut.events)?;
                cut.again
                    .iter()
                    .try_for_each(|commands| write!(f, ", again {commands} commands into the mount"))
            }
            Self::Remount => f.write_str("shut down and mount again"),
            Self::Rest { flips } => write!(f, "shut down, {} bits flip, mount again", flips.len()),
            Self::Shelf { shelf: Shelf { lost, weak }, .. } => write!(
                f,
                "shut down, months without power ({lost} ppb of sectors lost, {weak} ppb weak), mount again"
            ),
            Self::Flip { .. } => f.write_str("a bit flips on the media"),
            Self::Fault { kind, times, .. } => write!(f, "a fault is due: {kind:?}, {times} times"),
            Self::Death { group, .. } => f.write_str(if *group { "a group dies" } else { "a unit dies" }),
            Self::Stray { before: 0, .. } => f.write_str("a write reached no place"),
            Self::Stray { before, .. } => {
                write!(f, "a write reached the place {before} units before its own")
            }
            Self::Disk(faults) if *faults == FileFaults::default() => f.write_str("the disk works again"),
            Self::Disk(faults) => write!(f, "the disk fails: {faults:?}"),
            Self::StaleReports { how, share, .. } => {
                let are = match how {
                    Untrue::Stale => "behind",
                    Untrue::Low => "too low",
                    Untrue::Hidden => "too low, and hide all of other chunks",
                    Untrue::Garbled => "garbled",
                };
                write!(f, "chunk reports are {are} after the next power cycle ({share} ppb of the chunks)")
            }
            Self::LosePage { .. } => f.write_str("a page of the index is lost"),
            Self::Audit => f.write_str("read and compare everything"),
        }
    }
}

/// Another target on the drive, on units of its own.
#[derive(Clone, Debug)]
pub struct Beside {
    /// Its kind: that of the first, or another of the registry.
    pub kind: String,
    /// The units it is on.
    pub units: Vec<PuId>,
    /// Its options, name and value, at every mount.
    pub options: Vec<(String, String)>,
    /// Its requests.
    pub mix: Mix,
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct WorldPlan {
    /// The drive.
    pub config: Config,
    /// The units the target is on.
    pub units: Vec<PuId>,
    /// The target's options, name and value.
    pub options: Vec<(String, String)>,
    /// Options of mounts that come later, one after the other and again from the first; none if they stay what they are. Where
    /// such do not fit the instance it is mounted as it was made.
    pub later_options: Vec<Vec<(String, String)>>,
    /// Its requests.
    pub mix: Mix,
    /// What is done.
    pub steps: Vec<Step>,
    /// Who else is on the drive: all are mounted, cut and shut down together, and know nothing of each other.
    pub beside: Vec<Beside>,
    /// The drive lies in an image on a simulated disk; its power does not go, but its process and its host do.
    pub disk: bool,
    /// No request may take longer, but for latency spikes.
    pub bound: Nanos,
}

impl fmt::Display for WorldPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let geometry = &self.config.geometry;
        writeln!(
            f,
            "drive: {} groups of {} units of {} chunks of {} sectors; ws_min {}, ws_opt {}, mw_cunits {}; cache {} sectors, \
             protected: {}; content: {:?}",
            geometry.groups,
            geometry.pus_per_group,
            geometry.chunks_per_pu,
            geometry.sectors_per_chunk,
            geometry.ws_min,
            geometry.ws_opt,
            geometry.mw_cunits,
            self.config.cache.sectors,
            self.config.cache.power_loss_protection,
            self.config.payload,
        )?;
        writeln!(f, "faults: {:?}; endurance {}", self.config.faults, self.config.wear.endurance)?;
        let in_words = |options: &[(String, String)]| {
            let all: Vec<String> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
            all.join(",")
        };
        writeln!(f, "target: on {} units, {}", self.units.len(), in_words(&self.options))?;
        for options in &self.later_options {
            writeln!(f, "then mounted with {}", in_words(options))?;
        }
        for beside in &self.beside {
            let (kind, units) = (&beside.kind, beside.units.len());
            writeln!(f, "beside it: {kind} on {units} units, {}", in_words(&beside.options))?;
        }
        write!(f, "requests: {:?}", self.mix)
    }
}
