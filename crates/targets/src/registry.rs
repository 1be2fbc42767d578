//! Targets by name, as the media manager's leases call them.

use crate::linear::{Layout, Linear};
use crate::null::Null;
use crate::pblk::{self, MountError, Pblk};
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::{BlockingDevice, ChunkDescriptor, ChunkId, Geometry, PuId};

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
}

/// What a target is asked to be.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// The units leased to the target.
    pub units: &'a [PuId],
    /// How logical blocks lie on the units, for targets without a map.
    pub layout: Layout,
    /// Options of this kind of target, name and value.
    pub options: &'a [(String, String)],
}

/// A target, and what there is to say about how it was made.
pub struct Made {
    /// The target.
    pub target: Box<dyn BlockTarget>,
    /// Sentences for the user.
    pub notes: Vec<String>,
}

/// Makes a target of a kind, or mounts the one that lies on the units; a sentence if that cannot be.
pub type Make = fn(&mut dyn BlockingDevice, &Wish<'_>) -> Result<Made, String>;

/// One kind of target.
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    make: Make,
}

impl Kind {
    /// A kind that is not of this project: how a target of one's own is given to the simulator, or to a test.
    #[must_use]
    pub const fn new(name: &'static str, about: &'static str, make: Make) -> Self {
        Self { name, about, make }
    }

    /// Makes a target of this kind, or mounts the one that lies on the units.
    ///
    /// # Errors
    /// A sentence, if the units cannot carry one or an option is wrong.
    pub fn make(&self, device: &mut dyn BlockingDevice, wish: &Wish<'_>) -> Result<Made, String> {
        (self.make)(device, wish).map_err(|sentence| format!("target {}: {sentence}", self.name))
    }
}

/// Every kind.
pub const ALL: &[Kind] = &[
    Kind {
        name: "linear",
        about: "a raw window on parallel units: zones written in order, no mapping, vector I/O",
        make: make_linear,
    },
    Kind {
        name: "pblk",
        about: "a block device: mapping, write buffer, garbage collection, recovery (options: mode=faithful|improved, ...)",
        make: make_pblk,
    },
    Kind {
        name: "null",
        about: "answers at once and keeps nothing: the ceiling of a generator",
        make: |_, wish| {
            no_options(wish)?;
            Ok(Made { target: Box::new(Null::default()), notes: Vec::new() })
        },
    },
];

fn no_options(wish: &Wish<'_>) -> Result<(), String> {
    match wish.options.first() {
        None => Ok(()),
        Some((name, _)) => Err(format!("it has no options, but \"{name}\" was given; leave it out")),
    }
}

fn make_linear(device: &mut dyn BlockingDevice, wish: &Wish<'_>) -> Result<Made, String> {
    no_options(wish)?;
    let geometry = device.geometry().clone();
    let report = |chunk| device.chunk(chunk);
    let parts = Parts { geometry: &geometry, units: wish.units, report: &report, layout: wish.layout };
    Ok(Made { target: Box::new(Linear::new(&parts)?), notes: Vec::new() })
}

fn make_pblk(device: &mut dyn BlockingDevice, wish: &Wish<'_>) -> Result<Made, String> {
    let mut options = pblk::Options::default();
    for (name, value) in wish.options {
        options.set(name, value)?;
    }
    let (target, report) = Pblk::mount(device, wish.units, &options).map_err(|error| match error {
        MountError::DoesNotFit(sentence) => sentence,
        MountError::PowerCut(cut) => cut.to_string(),
    })?;
    Ok(Made { notes: vec![target.describe(&report)], target: Box::new(target) })
}

/// The kind of this name.
///
/// # Errors
/// A sentence that names the kinds there are.
pub fn find(name: &str) -> Result<&'static Kind, String> {
    ALL.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|kind| kind.name).collect();
        format!("there is no target \"{name}\"; the targets are: {}", names.join(", "))
    })
}
