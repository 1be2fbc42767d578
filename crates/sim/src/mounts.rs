//! How the targets of a plan are made and mounted again: each by its kind, on its units, with its options.
//!
//! Deliberately not here: when that is, and what the power does meanwhile (`run`, `world`).

use crate::plan::{Beside, WorldPlan};
use crate::world::Mount;
use ocssd_lightnvm::block::BlockTarget;
use ocssd_lightnvm::interface::AnyTarget;
use ocssd_lightnvm::interface::key_value::KvTarget;
use ocssd_lightnvm::interface::log_structured::LogTarget;
use ocssd_lightnvm::interface::table::TableTarget;
use ocssd_lightnvm::interface::zoned::ZonedTarget;
use ocssd_lightnvm::{BlockingDevice, PuId};
use ocssd_targets::linear::Layout;
use ocssd_targets::registry::{self, Kind, Make, MakeOf, TargetSpec};

/// The kind of the target beside one of `kind`.
///
/// # Panics
/// If the registry has none of that name: plans name those that are there.
pub(crate) fn kind_beside<'a>(kind: &'a Kind, beside: &Beside) -> &'a Kind {
    if beside.kind == kind.name {
        return kind;
    }
    registry::find(&beside.kind).unwrap_or_else(|sentence| panic!("a drawn kind: {sentence}"))
}

/// All targets of a plan, in the order in which they are mounted.
pub(crate) struct Mounts<'a> {
    /// The one that is asked for.
    pub first: KindMount<'a>,
    beside: Vec<KindMount<'a>>,
}

impl<'a> Mounts<'a> {
    pub(crate) fn of(plan: &'a WorldPlan, kind: &'a Kind) -> Self {
        let beside = plan.beside.iter().map(|beside| KindMount {
            kind: kind_beside(kind, beside),
            units: &beside.units,
            options: &beside.options,
        });
        let beside = beside.collect();
        Self { first: KindMount { kind, units: &plan.units, options: &plan.options }, beside }
    }

    /// True if all keep their size when chunks go bad.
    pub(crate) fn keep_size(&self) -> bool {
        std::iter::once(&self.first).chain(&self.beside).all(|mount| mount.kind.limits().keeps_size)
    }

    pub(crate) fn all<T: ?Sized>(&self) -> Vec<&dyn Mount<T>>
    where
        KindMount<'a>: Mount<T>,
    {
        let first: &dyn Mount<T> = &self.first;
        std::iter::once(first).chain(self.beside.iter().map(|beside| -> &dyn Mount<T> { beside })).collect()
    }
}

/// A kind of the registry, with its options.
pub struct KindMount<'a> {
    /// Which kind.
    pub kind: &'a Kind,
    /// On which units.
    pub units: &'a [PuId],
    /// With which options.
    pub options: &'a [(String, String)],
}

impl KindMount<'_> {
    const fn spec(&self) -> TargetSpec<'_> {
        TargetSpec { units: self.units, layout: Layout::Striped, options: self.options }
    }

    fn mount_by<T: ?Sized>(&self, device: &mut dyn BlockingDevice, make: Make<T>) -> Result<Box<T>, String> {
        let made = make(device, &self.spec());
        made.map(|made| made.target).map_err(|sentence| format!("target {}: {sentence}", self.kind.name))
    }
}

impl Mount<dyn BlockTarget> for KindMount<'_> {
    fn mount(&self, device: &mut dyn BlockingDevice) -> Result<Box<dyn BlockTarget>, String> {
        self.kind.make(device, &self.spec()).map(|made| made.target)
    }
}

impl Mount<AnyTarget> for KindMount<'_> {
    fn mount(&self, device: &mut dyn BlockingDevice) -> Result<Box<AnyTarget>, String> {
        self.kind.make_any(device, &self.spec()).map(|made| Box::new(made.target))
    }
}

impl Mount<dyn ZonedTarget> for KindMount<'_> {
    fn mount(&self, device: &mut dyn BlockingDevice) -> Result<Box<dyn ZonedTarget>, String> {
        let MakeOf::Zoned(make) = self.kind.make_of() else { unreachable!("a kind of zones") };
        self.mount_by(device, make)
    }
}

impl Mount<dyn LogTarget> for KindMount<'_> {
    fn mount(&self, device: &mut dyn BlockingDevice) -> Result<Box<dyn LogTarget>, String> {
        let MakeOf::Log(make) = self.kind.make_of() else { unreachable!("a kind of pages") };
        self.mount_by(device, make)
    }
}

impl Mount<dyn TableTarget> for KindMount<'_> {
    fn mount(&self, device: &mut dyn BlockingDevice) -> Result<Box<dyn TableTarget>, String> {
        let MakeOf::Table(make) = self.kind.make_of() else { unreachable!("a kind of tables") };
        self.mount_by(device, make)
    }
}

impl Mount<dyn KvTarget> for KindMount<'_> {
    fn mount(&self, device: &mut dyn BlockingDevice) -> Result<Box<dyn KvTarget>, String> {
        let MakeOf::KeyValue(make) = self.kind.make_of() else { unreachable!("a kind of keys and values") };
        self.mount_by(device, make)
    }
}
