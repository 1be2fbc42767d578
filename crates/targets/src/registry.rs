//! Targets by name, as the media manager's leases call them.

use crate::linear::{Layout, Linear};
use crate::null::Null;
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::{ChunkDescriptor, ChunkId, Geometry, PuId};

/// What a target is made from: the drive's shape, its units, and what their chunks are now.
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

/// One kind of target.
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    make: fn(&Parts<'_>) -> Result<Box<dyn BlockTarget>, String>,
}

impl Kind {
    /// Makes a target of this kind.
    ///
    /// # Errors
    /// A sentence, if the units cannot carry one.
    pub fn make(&self, parts: &Parts<'_>) -> Result<Box<dyn BlockTarget>, String> {
        (self.make)(parts)
    }
}

/// Every kind.
pub const ALL: &[Kind] = &[
    Kind {
        name: "linear",
        about: "a raw window on parallel units: zones written in order, no mapping, vector I/O",
        make: |parts| Linear::new(parts).map(|target| -> Box<dyn BlockTarget> { Box::new(target) }),
    },
    Kind {
        name: "null",
        about: "answers at once and keeps nothing: the ceiling of a generator",
        make: |_| Ok(Box::new(Null::default())),
    },
];

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
