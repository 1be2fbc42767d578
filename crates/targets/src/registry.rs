//! Targets by name, as the media manager's leases call them.

use crate::block_ssd::{self, BlockSsdOptions};
use crate::eleos::{self, Eleos};
use crate::kv::{self, Kv};
use crate::kv_block::{self, KvOverBlock};
use crate::lightlsm::{self, LightLsm};
use crate::linear::{Layout, Linear};
use crate::linux_pblk::{self, LinuxPblk};
use crate::null::Null;
use crate::ox_block::{self, OxBlock};
use crate::pblk::{self, Pblk};
use crate::plane_reads::PlaneReads;
#[cfg(feature = "canaries")]
use crate::small_blocks;
use crate::small_blocks::SmallBlocks;
use crate::table_block::{self, TablesOverBlock};
use crate::zns::{self, Zns};
use crate::zones_as_blocks::ZonesAsBlocks;
use ocssd_base::usize_of;
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::interface::key_value::KvTarget;
use ocssd_lightnvm::interface::log_structured::LogTarget;
use ocssd_lightnvm::interface::table::TableTarget;
use ocssd_lightnvm::interface::zoned::ZonedTarget;
use ocssd_lightnvm::interface::{AnyTarget, Interface};
use ocssd_lightnvm::{BlockingDevice, ChunkDescriptor, ChunkId, Geometry, PuId};

pub use crate::target_text::parse;

/// What a raw window is made from: the drive's shape, its units, and what their chunks are now.
pub struct Parts<'a> {
    /// The drive's shape and rules.
    pub geometry: &'a Geometry,
    /// The units leased to the target.
    pub units: &'a [PuId],
    /// The chunk information of the drive.
    pub report: &'a dyn Fn(ChunkId) -> ChunkDescriptor,
    /// How logical blocks lie on the units.
    pub layout: Layout,
    /// Which reads ask for plane mode.
    pub plane_reads: PlaneReads,
}

/// Options of a target, name and value.
pub type TargetOptions = Vec<(String, String)>;

/// What a target is asked to be.
#[derive(Clone, Debug)]
pub struct TargetSpec<'a> {
    /// The units leased to the target.
    pub units: &'a [PuId],
    /// How logical blocks lie on the units, for targets without a map.
    pub layout: Layout,
    /// Options of this kind of target, name and value.
    pub options: &'a [(String, String)],
}

/// A target, and what there is to say about how it was made.
pub struct Made<T: ?Sized = dyn BlockTarget> {
    /// The target.
    pub target: Box<T>,
    /// Sentences for the user.
    pub notes: Vec<String>,
}

/// A target of any interface, and what there is to say about how it was made.
pub struct MadeAny {
    /// The target.
    pub target: AnyTarget,
    /// Sentences for the user.
    pub notes: Vec<String>,
}

impl<T: ?Sized> From<Made<T>> for MadeAny
where
    AnyTarget: From<Box<T>>,
{
    fn from(made: Made<T>) -> Self {
        Self { target: made.target.into(), notes: made.notes }
    }
}

/// A block target that any thread may ask, one at a time, and what there is to say about how it was made.
pub type BlocksMade = Made<dyn BlockTarget + Send>;

/// Makes a target of a kind, or mounts the one that lies on the units; a sentence if that cannot be.
pub type Make<T = dyn BlockTarget + Send> =
    fn(&mut dyn BlockingDevice, &TargetSpec<'_>) -> Result<Made<T>, String>;

/// How a kind of each host interface is made.
#[derive(Clone, Copy)]
pub enum MakeOf {
    /// Blocks.
    Block(Make),
    /// Zones (NVMe's Zoned Namespace command set).
    Zoned(Make<dyn ZonedTarget>),
    /// Sessions of flushes with page tables.
    Log(Make<dyn LogTarget>),
    /// Tables and logs with atomic edits.
    Table(Make<dyn TableTarget>),
    /// Keys and values (NVMe's Key Value command set).
    KeyValue(Make<dyn KvTarget>),
}

impl MakeOf {
    /// The interface.
    #[must_use]
    pub const fn interface(self) -> Interface {
        match self {
            Self::Block(_) => Interface::Block,
            Self::Zoned(_) => Interface::Zoned,
            Self::Log(_) => Interface::Log,
            Self::Table(_) => Interface::Table,
            Self::KeyValue(_) => Interface::KeyValue,
        }
    }
}

/// How much of what a target holds may be gone at a mount because one of its own records cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// What lies in the same chunk.
    Chunk,
    /// What lies in the same line: the chunks of that number of all units of the target.
    Line,
}

/// What a kind of target does not promise, because its format has no place for it; whoever judges it must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Content that changed on the media without a word is found: it is compared with a checksum. Else it is handed out.
    pub finds_changed_content: bool,
    /// The size is the same at every mount. Else it is counted anew from the good chunks, and gets less when they do.
    pub keeps_size: bool,
    /// What a lost record takes with it.
    pub lost_record: Reach,
}

impl Limits {
    /// All that can be promised.
    pub const NONE: Self = Self { finds_changed_content: true, keeps_size: true, lost_record: Reach::Chunk };
}

/// One kind of target.
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// It can be overwritten sector by sector, so smaller blocks can be made of it (option `block_bytes`).
    overwrites: bool,
    /// What it does not promise.
    limits: Limits,
    /// The host's processors run its FTL.
    runs_on_host: bool,
    make: MakeOf,
}

impl Kind {
    /// A kind that is not of this project, whose blocks can be written in any order: how a target of one's own is given to
    /// the simulator, or to a test.
    #[must_use]
    pub const fn new(name: &'static str, about: &'static str, make: Make) -> Self {
        Self { overwrites: true, ..Self::of(name, about, MakeOf::Block(make)) }
    }

    /// A kind of any interface, whose blocks, if it has any, cannot be made smaller.
    #[must_use]
    pub const fn of(name: &'static str, about: &'static str, make: MakeOf) -> Self {
        Self { name, about, overwrites: false, limits: Limits::NONE, runs_on_host: true, make }
    }

    /// True if it can be overwritten sector by sector, so that it may have smaller blocks (option `block_bytes`).
    #[must_use]
    pub const fn overwrites(&self) -> bool {
        self.overwrites
    }

    /// How it is made, which says by which interface it is spoken to.
    #[must_use]
    pub const fn make_of(&self) -> MakeOf {
        self.make
    }

    /// The same kind, which does not promise everything.
    #[must_use]
    pub const fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// What it does not promise.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// True if the host's processors run its FTL, as they ran pblk; false of a raw window and of a drive with its own.
    #[must_use]
    pub const fn runs_on_host(&self) -> bool {
        self.runs_on_host
    }

    /// Makes a target of this kind, or mounts the one that lies on the units.
    ///
    /// # Errors
    /// A sentence, if the units cannot carry one or an option is wrong.
    pub fn make(&self, device: &mut dyn BlockingDevice, spec: &TargetSpec<'_>) -> Result<Made, String> {
        self.make_within(device, spec, Ok)
    }

    /// Makes a target of this kind, whatever its interface is, or mounts the one that lies on the units.
    ///
    /// # Errors
    /// As [`Self::make`].
    pub fn make_any(
        &self,
        device: &mut dyn BlockingDevice,
        spec: &TargetSpec<'_>,
    ) -> Result<MadeAny, String> {
        let named = |sentence| format!("target {}: {sentence}", self.name);
        match self.make {
            // Its blocks may be made smaller.
            MakeOf::Block(_) => self.make(device, spec).map(MadeAny::from),
            MakeOf::Zoned(make) => make(device, spec).map(MadeAny::from).map_err(named),
            MakeOf::Log(make) => make(device, spec).map(MadeAny::from).map_err(named),
            MakeOf::Table(make) => make(device, spec).map(MadeAny::from).map_err(named),
            MakeOf::KeyValue(make) => make(device, spec).map(MadeAny::from).map_err(named),
        }
    }

    /// A block target as it is, for whatever stands on it or around it.
    ///
    /// # Errors
    /// As [`Self::make`], or that it is no block target.
    pub fn make_blocks(
        &self,
        device: &mut dyn BlockingDevice,
        spec: &TargetSpec<'_>,
    ) -> Result<BlocksMade, String> {
        let MakeOf::Block(make) = self.make else {
            return Err(format!(
                "target {}: it speaks of {}, not of blocks",
                self.name,
                self.make.interface()
            ));
        };
        make(device, spec).map_err(|sentence| format!("target {}: {sentence}", self.name))
    }

    /// As [`Self::make`], within something that works on sectors: `around` is put around the target, and smaller blocks, if they
    /// are asked for, around both.
    ///
    /// # Errors
    /// As [`Self::make`], or what `around` says.
    pub fn make_within(
        &self,
        device: &mut dyn BlockingDevice,
        spec: &TargetSpec<'_>,
        around: impl FnOnce(Box<dyn BlockTarget>) -> Result<Box<dyn BlockTarget>, String>,
    ) -> Result<Made, String> {
        let named = |sentence| format!("target {}: {sentence}", self.name);
        let (block_bytes, options) = self.block_bytes_of(spec).map_err(named)?;
        #[cfg(feature = "canaries")]
        let (planted, options) = small_blocks_canary(options).map_err(named)?;
        let format = device.buffers().format();
        let small = block_bytes.filter(|&bytes| usize_of(bytes) != format.sector_bytes);
        if let Some(bytes) = small {
            // Before anything is written to the drive.
            SmallBlocks::fits(bytes, &format).map_err(named)?;
        }
        let spec = &TargetSpec { options: &options, ..*spec };
        let mut made: Made = match self.make {
            MakeOf::Block(make) => {
                let Made { target, notes } = make(device, spec).map_err(named)?;
                Made { target, notes }
            }
            MakeOf::Zoned(make) => {
                let Made { target, notes } = make(device, spec).map_err(named)?;
                Made { target: Box::new(ZonesAsBlocks::new(target)), notes }
            }
            MakeOf::Log(_) | MakeOf::Table(_) | MakeOf::KeyValue(_) => {
                return Err(named(format!(
                    "it speaks of {}, not of blocks, and here blocks are needed; `ocssd targets` lists the kinds of each interface",
                    self.make.interface()
                )));
            }
        };
        made.target = around(made.target)?;
        if let Some(bytes) = small {
            let target = SmallBlocks::new(made.target, bytes, device.buffers()).map_err(named)?;
            #[cfg(feature = "canaries")]
            let target = target.with_canary(planted);
            made.target = Box::new(target);
            made.notes.push(format!(
                "blocks of {bytes} B: a write of a part of a sector of {} B reads, merges and writes it",
                format.sector_bytes
            ));
        }
        Ok(made)
    }

    /// The size of blocks asked for, and the options that are the kind's own.
    fn block_bytes_of(&self, spec: &TargetSpec<'_>) -> Result<(Option<u32>, TargetOptions), String> {
        let mut options = spec.options.to_vec();
        if !self.overwrites {
            return Ok((None, options));
        }
        let asked = options.iter().rfind(|(name, _)| name == BLOCK_BYTES).map(|(_, value)| value.clone());
        options.retain(|(name, _)| name != BLOCK_BYTES);
        let number = |text: String| {
            text.parse().map_err(|_| format!("{BLOCK_BYTES} should be a whole number, but is \"{text}\""))
        };
        Ok((asked.map(number).transpose()?, options))
    }
}

/// The bug to be planted in small blocks, and the other options.
#[cfg(feature = "canaries")]
fn small_blocks_canary(
    mut options: TargetOptions,
) -> Result<(Option<small_blocks::Canary>, TargetOptions), String> {
    let at = options.iter().position(|(name, _)| name == "small_blocks_canary");
    let found = at.map(|at| options.remove(at).1.parse()).transpose()?;
    Ok((found, options))
}

/// The option of every kind that can be overwritten.
const BLOCK_BYTES: &str = "block_bytes";

/// Every kind.
pub const ALL: &[Kind] = &[
    Kind {
        name: "linear",
        about: "a raw window on parallel units: zones written in order, no mapping, vector I/O (option: plane_reads=aligned|never)",
        overwrites: false,
        limits: Limits::NONE,
        runs_on_host: false,
        make: MakeOf::Block(make_linear),
    },
    Kind {
        name: "pblk",
        about: "a block device: mapping, write buffer, garbage collection, recovery (options: mode=faithful|improved, ...)",
        overwrites: true,
        limits: Limits::NONE,
        runs_on_host: true,
        make: MakeOf::Block(make_pblk),
    },
    Kind {
        name: "block_ssd",
        about: "a traditional SSD, a black box: its own FTL over all parallel units, DRAM cache (option: dram_cache_bytes=...)",
        overwrites: true,
        limits: Limits::NONE,
        runs_on_host: false,
        make: MakeOf::Block(make_block_ssd),
    },
    Kind {
        name: "linux-pblk",
        about: "a block device in the format of Linux's own pblk, which mounts it again (options: create=yes, read_only=yes, ...)",
        overwrites: true,
        limits: linux_pblk::LIMITS,
        runs_on_host: true,
        make: MakeOf::Block(make_linux_pblk),
    },
    Kind {
        name: "ox-block",
        about: "a block device whose requests up to 1 MiB are transactions: log, checkpoints, recovery (options: durability=request|flush, ...)",
        overwrites: true,
        limits: Limits::NONE,
        runs_on_host: true,
        make: MakeOf::Block(make_ox_block),
    },
    Kind::of(
        "eleos",
        "a page store for log-structured hosts: sessions, atomic flushes of pages of any length (options: log_copies=1|2, ...)",
        MakeOf::Log(make_eleos),
    ),
    Kind::of(
        "kv",
        "keys and values straight on open-channel units: a log of records, an index in memory or in part, checkpoints (options: index_percent=..., ...)",
        MakeOf::KeyValue(make_kv),
    ),
    Kind::of(
        "kv-block",
        "keys and values on a block device: kv's log of records on extents of another target (options: over=pblk|block_ssd|ox-block, ...)",
        MakeOf::KeyValue(make_kv_block),
    ),
    Kind {
        name: "lightlsm",
        about: "tables and logs of an LSM tree on whole chunks, atomic edits (options: placement=horizontal|vertical|width:K|level, ...)",
        overwrites: false,
        limits: Limits::NONE,
        runs_on_host: true,
        make: MakeOf::Table(make_lightlsm),
    },
    Kind::of(
        "table-block",
        "tables and logs on a block device: lightlsm's tables and journal on extents of another target (options: over=pblk|block_ssd|ox-block, ...)",
        MakeOf::Table(make_table_block),
    ),
    Kind::of(
        "zns",
        "zones of chunks on an open-channel drive (options: width=all|group|N, zone_chunks=..., buffer_bytes=..., ...)",
        MakeOf::Zoned(make_zns),
    ),
    Kind {
        name: "null",
        about: "answers at once and keeps nothing: the ceiling of a generator",
        overwrites: false,
        limits: Limits::NONE,
        runs_on_host: false,
        make: MakeOf::Block(make_null),
    },
];

/// Reads options, name and value, one by one.
fn read<O>(
    mut options: O,
    set: fn(&mut O, &str, &str) -> Result<(), String>,
    asked: &[(String, String)],
) -> Result<O, String> {
    asked.iter().try_for_each(|(name, value)| set(&mut options, name, value))?;
    Ok(options)
}

/// Whether the kind called `name` knows these options and can read their values; of a kind that is none of this project's nothing
/// is known. Whether a drive has room for what they ask is not looked at: that a mount says.
///
/// # Errors
/// A sentence of the first that it does not.
pub fn check_options(name: &str, asked: &[(String, String)]) -> Result<(), String> {
    let overwrites = ALL.iter().any(|kind| kind.name == name && kind.overwrites);
    let own: TargetOptions =
        asked.iter().filter(|(option, _)| !overwrites || option != BLOCK_BYTES).cloned().collect();
    match name {
        "pblk" => read(pblk::Options::unstated(), pblk::Options::set, &own).map(drop),
        "block_ssd" => read(BlockSsdOptions::unstated(), BlockSsdOptions::set, &own).map(drop),
        "linux-pblk" => read(linux_pblk::Options::default(), linux_pblk::Options::set, &own).map(drop),
        "ox-block" => read(ox_block::Options::default(), ox_block::Options::set, &own).map(drop),
        "eleos" => read(eleos::Options::default(), eleos::Options::set, &own).map(drop),
        "lightlsm" => read(lightlsm::Options::default(), lightlsm::Options::set, &own).map(drop),
        "kv" => read(kv::Options::default(), kv::Options::set, &own).map(drop),
        "kv-block" => {
            let options = read(kv_block::Options::default(), kv_block::Options::set, &own)?;
            check_options(&options.blocks.over, &options.blocks.below)
        }
        "table-block" => {
            let options = read(table_block::Options::default(), table_block::Options::set, &own)?;
            check_options(&options.blocks.over, &options.blocks.below)
        }
        "zns" => read(zns::Options::default(), zns::Options::set, &own).map(drop),
        _ => Ok(()),
    }
}

/// Errors: a kind without options was given one.
pub fn no_options(spec: &TargetSpec<'_>) -> Result<(), String> {
    match spec.options.first() {
        None => Ok(()),
        Some((name, _)) => Err(format!("it has no options, but \"{name}\" was given; leave it out")),
    }
}

fn make_null(_: &mut dyn BlockingDevice, spec: &TargetSpec<'_>) -> Result<BlocksMade, String> {
    no_options(spec)?;
    Ok(Made { target: Box::new(Null::default()), notes: Vec::new() })
}

fn make_linear(device: &mut dyn BlockingDevice, spec: &TargetSpec<'_>) -> Result<BlocksMade, String> {
    let mut plane_reads = PlaneReads::default();
    for (name, value) in spec.options {
        match name.as_str() {
            "plane_reads" => plane_reads = value.parse()?,
            _ => return Err(format!("linear has no option \"{name}\"; its option is plane_reads")),
        }
    }
    let geometry = device.geometry().clone();
    let report = |chunk| device.chunk(chunk);
    let parts =
        Parts { geometry: &geometry, units: spec.units, report: &report, layout: spec.layout, plane_reads };
    Ok(Made { target: Box::new(Linear::new(&parts)?), notes: Vec::new() })
}

fn make_pblk(device: &mut dyn BlockingDevice, spec: &TargetSpec<'_>) -> Result<BlocksMade, String> {
    let options = read(pblk::Options::unstated(), pblk::Options::set, spec.options)?;
    let (target, report) = Pblk::mount(device, spec.units, &options).map_err(|error| error.to_string())?;
    let notes = target.notes(target.describe(&report), &report, spec.options);
    Ok(Made { notes, target: Box::new(target) })
}

fn make_block_ssd(device: &mut dyn BlockingDevice, spec: &TargetSpec<'_>) -> Result<BlocksMade, String> {
    let options = read(BlockSsdOptions::unstated(), BlockSsdOptions::set, spec.options)?;
    let (target, report) = block_ssd::mount(device, spec.units, &options)?;
    let described =
        format!("block_ssd over {} units, its FTL: {}", spec.units.len(), target.describe(&report));
    let notes = target.notes(described, &report, spec.options);
    Ok(Made { notes, target: Box::new(target) })
}

fn make_linux_pblk(device: &mut dyn BlockingDevice, spec: &TargetSpec<'_>) -> Result<BlocksMade, String> {
    let options = read(linux_pblk::Options::default(), linux_pblk::Options::set, spec.options)?;
    let (target, report) =
        LinuxPblk::mount(device, spec.units, &options).map_err(|error| error.to_string())?;
    Ok(Made { notes: vec![target.describe(&report)], target: Box::new(target) })
}

fn make_ox_block(device: &mut dyn BlockingDevice, spec: &TargetSpec<'_>) -> Result<BlocksMade, String> {
    let options = read(ox_block::Options::default(), ox_block::Options::set, spec.options)?;
    let (target, report) = OxBlock::mount(device, spec.units, &options).map_err(|error| error.to_string())?;
    Ok(Made { notes: target.notes(&report, device.geometry(), spec.options), target: Box::new(target) })
}

fn make_eleos(device: &mut dyn BlockingDevice, spec: &TargetSpec<'_>) -> Result<Made<dyn LogTarget>, String> {
    let options = read(eleos::Options::default(), eleos::Options::set, spec.options)?;
    let (target, report) = Eleos::mount(device, spec.units, &options).map_err(|error| error.to_string())?;
    Ok(Made { notes: target.notes(&report, device.geometry(), spec.options), target: Box::new(target) })
}

fn make_lightlsm(
    device: &mut dyn BlockingDevice,
    spec: &TargetSpec<'_>,
) -> Result<Made<dyn TableTarget>, String> {
    let options = read(lightlsm::Options::default(), lightlsm::Options::set, spec.options)?;
    let (target, report) =
        LightLsm::mount(device, spec.units, &options).map_err(|error| error.to_string())?;
    Ok(Made { notes: target.notes(&report, device.geometry(), spec.options), target: Box::new(target) })
}

fn make_kv(device: &mut dyn BlockingDevice, spec: &TargetSpec<'_>) -> Result<Made<dyn KvTarget>, String> {
    let options = read(kv::Options::default(), kv::Options::set, spec.options)?;
    let (target, report) = Kv::mount(device, spec.units, &options).map_err(|error| error.to_string())?;
    Ok(Made { notes: target.notes(&report, device.geometry(), spec.options), target: Box::new(target) })
}

fn make_kv_block(
    device: &mut dyn BlockingDevice,
    spec: &TargetSpec<'_>,
) -> Result<Made<dyn KvTarget>, String> {
    let options = read(kv_block::Options::default(), kv_block::Options::set, spec.options)?;
    let (target, notes) = KvOverBlock::mount(device, spec, &options.blocks, &options.keys)?;
    Ok(Made { notes, target: Box::new(target) })
}

fn make_table_block(
    device: &mut dyn BlockingDevice,
    spec: &TargetSpec<'_>,
) -> Result<Made<dyn TableTarget>, String> {
    let options = read(table_block::Options::default(), table_block::Options::set, spec.options)?;
    let (target, notes) = TablesOverBlock::mount(device, spec, &options.blocks, &options.tables)?;
    Ok(Made { notes, target: Box::new(target) })
}

fn make_zns(device: &mut dyn BlockingDevice, spec: &TargetSpec<'_>) -> Result<Made<dyn ZonedTarget>, String> {
    let options = read(zns::Options::default(), zns::Options::set, spec.options)?;
    let (target, report) = Zns::mount(device, spec.units, &options).map_err(|error| error.to_string())?;
    Ok(Made { notes: vec![target.describe(&report)], target: Box::new(target) })
}

/// The kind of this name.
///
/// # Errors
/// A sentence that names the kinds there are.
pub fn find(name: &str) -> Result<&'static Kind, String> {
    find_among(ALL.iter(), name)
}

/// The kind of this name among these.
///
/// # Errors
/// A sentence that names the kinds there are.
pub fn find_among(
    kinds: impl Iterator<Item = &'static Kind> + Clone,
    name: &str,
) -> Result<&'static Kind, String> {
    kinds.clone().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<&str> = kinds.map(|kind| kind.name).collect();
        format!("there is no target \"{name}\"; the targets are: {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_is_mounted_says_which_options_it_cannot_read() {
        let one = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        for kind in ALL.iter().filter(|kind| !matches!(kind.name, "linear" | "null")) {
            let error = check_options(kind.name, &one("nobody", "1")).expect_err(kind.name);
            assert!(error.contains("nobody"), "{}: {error}", kind.name);
            assert_eq!(check_options(kind.name, &one("seed", "3")), Ok(()), "{}", kind.name);
            assert_eq!(check_options(kind.name, &one(BLOCK_BYTES, "512")).is_ok(), kind.overwrites);
        }
        assert!(check_options("pblk", &one("victim", "d-choices")).is_err(), "it has a number");
        for kind in ["kv-block", "table-block"] {
            assert!(check_options(kind, &one("over.victim", "d-choices")).is_err(), "options below count");
        }
        assert_eq!(check_options("mine", &one("nobody", "1")), Ok(()), "not of this project");
    }
}
