//! A target as the command line and job files name it: its kind, its options, its place on the drive.
//!
//! What every verb shares that puts targets on a drive. Deliberately not here: jobs, and the drive.

use anyhow::{Context, bail};
use ocssd_lightnvm::media_manager::{MediaManager, UnitSelection};
use ocssd_lightnvm::{Geometry, PuId};
use ocssd_targets::linear::Layout;
use ocssd_targets::registry::{self, TargetOptions, TargetSpec};

/// A target as the command line or a job names it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTarget {
    /// Its kind, as the registry calls it.
    pub kind: String,
    /// Its options, name and value.
    pub options: TargetOptions,
    /// The lease of the image it stands for, if it is one.
    pub lease: Option<String>,
    /// The units it is made of.
    pub units: Vec<PuId>,
    /// How raw windows lie on them.
    pub layout: Layout,
}

impl NamedTarget {
    /// What `NAME[:OPTION=VALUE,..]` means at a place: a kind, or a target of the image, which has its place already.
    ///
    /// # Errors
    /// A sentence, if there is no such target or place.
    pub fn named(
        text: &str,
        place: &UnitSelection,
        geometry: &Geometry,
        manager: &MediaManager,
    ) -> Result<Self, String> {
        let (name, options) = registry::parse(text)?;
        let layout = Layout::Striped;
        if let Some(lease) = manager.find(name) {
            let (kind, units) = (lease.kind.clone(), lease.units.clone());
            let asked = place.resolve(geometry).map_err(|error| error.to_string())?;
            if *place != UnitSelection::All && asked != units {
                return Err(format!(
                    "the image's target \"{name}\" lies on {}, but {place} was asked for; leave the place out",
                    UnitSelection::of(&units)
                ));
            }
            return Ok(Self { kind, options, lease: Some(lease.name.clone()), units, layout });
        }
        crate::kinds::find(name)?;
        let units = place.resolve(geometry).map_err(|error| error.to_string())?;
        Ok(Self { kind: name.to_owned(), options, lease: None, units, layout })
    }

    /// A target that keeps nothing, on no units.
    pub fn null(layout: Layout) -> Self {
        Self { kind: "null".to_owned(), options: Vec::new(), lease: None, units: Vec::new(), layout }
    }

    /// As the registry takes it.
    pub fn spec(&self) -> TargetSpec<'_> {
        TargetSpec { units: &self.units, layout: self.layout, options: &self.options }
    }

    /// Leases the units for as long as the program runs; a lease of the image stands already. `kept` are the image's.
    ///
    /// # Errors
    /// If the units are another's; `advice` says what to change.
    pub fn lease(
        &self,
        manager: &mut MediaManager,
        name: &str,
        kept: &[String],
        advice: [&str; 2],
    ) -> anyhow::Result<()> {
        if self.lease.is_some() || self.units.is_empty() {
            return Ok(());
        }
        let taken =
            manager.list().iter().find(|lease| lease.units.iter().any(|unit| self.units.contains(unit)));
        if let Some(taken) = taken.filter(|taken| kept.contains(&taken.name)) {
            let units = UnitSelection::of(&taken.units);
            let [instead, _] = advice;
            let instead = instead.replace("NAME", &taken.name);
            bail!("the image leases {units} to its target \"{}\"; {instead}", taken.name);
        }
        manager.create(name, &self.kind, &self.units).with_context(|| advice[1].to_owned())?;
        Ok(())
    }

    /// Where and what it is, in words.
    pub fn describe(&self) -> String {
        let units = if self.units.is_empty() {
            "no units".to_owned()
        } else {
            UnitSelection::of(&self.units).to_string()
        };
        let layout =
            if self.kind == "linear" { format!(", {:?}", self.layout).to_lowercase() } else { String::new() };
        let options: Vec<String> =
            self.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let options = if options.is_empty() { String::new() } else { format!(", {}", options.join(",")) };
        format!("{} on {}{layout}{options}", self.kind, units.to_lowercase())
    }
}
