//! A target as a text names it: `pblk:mode=faithful`, or the name of one that has its units on the drive already.
//!
//! Deliberately not here: how it is made (`registry`), and who leases the units.

use crate::linear::Layout;
use crate::registry::{self, Kind, TargetOptions, TargetSpec};
use ocssd_lightnvm::media_manager::{MediaManager, UnitSelection};
use ocssd_lightnvm::{Geometry, PuId};
use std::fmt;

/// A target as a command line, a job or a program names it.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// Why a text names no target: a sentence each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// There is no such kind, nor a target of that name.
    NoSuchKind(String),
    /// The text or the place cannot be.
    Wrong(String),
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::NoSuchKind(sentence) | Self::Wrong(sentence)) = self;
        f.write_str(sentence)
    }
}

impl std::error::Error for NameError {}

impl NamedTarget {
    /// What `NAME[:OPTION=VALUE,..]` means at a place: a kind that `find` knows, or a target of the drive, which has its place
    /// already.
    ///
    /// # Errors
    /// If there is no such target or place, or a target of the drive lies elsewhere.
    pub fn named(
        text: &str,
        place: &UnitSelection,
        geometry: &Geometry,
        manager: &MediaManager,
        find: impl FnOnce(&str) -> Result<&'static Kind, String>,
    ) -> Result<Self, NameError> {
        let (name, options) = registry::parse(text).map_err(NameError::Wrong)?;
        let layout = Layout::Striped;
        let resolved = || place.resolve(geometry).map_err(|error| NameError::Wrong(error.to_string()));
        if let Some(lease) = manager.find(name) {
            let (kind, units) = (lease.kind.clone(), lease.units.clone());
            if *place != UnitSelection::All && resolved()? != units {
                return Err(NameError::Wrong(format!(
                    "the image's target \"{name}\" lies on {}, but {place} was asked for; leave the place out",
                    UnitSelection::of(&units)
                )));
            }
            assert!(!units.is_empty(), "target \"{name}\" of the image has no units");
            return Ok(Self { kind, options, lease: Some(lease.name.clone()), units, layout });
        }
        find(name).map_err(NameError::NoSuchKind)?;
        Ok(Self { kind: name.to_owned(), options, lease: None, units: resolved()?, layout })
    }

    /// A target that keeps nothing, on no units.
    #[must_use]
    pub fn null(layout: Layout) -> Self {
        Self { kind: "null".to_owned(), options: Vec::new(), lease: None, units: Vec::new(), layout }
    }

    /// As the registry takes it.
    #[must_use]
    pub fn spec(&self) -> TargetSpec<'_> {
        assert!(!self.units.is_empty() || self.kind == "null", "target {} has no units", self.kind);
        TargetSpec { units: &self.units, layout: self.layout, options: &self.options }
    }

    /// Where and what it is, in words.
    #[must_use]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_kinds_with_options_or_targets_that_stand() {
        let geometry = Geometry::example(1, 4, 2, 8, 8);
        let mut manager = MediaManager::new(&geometry);
        manager.create("db", "pblk", &[PuId(1)]).expect("the unit is free");
        let named = |text: &str, place: &str| {
            let place = place.parse().expect("a place");
            NamedTarget::named(text, &place, &geometry, &manager, registry::find)
        };
        let pblk = named("pblk:seed=3,mode=faithful", "pu:2-3").expect("there is such a kind");
        assert_eq!((pblk.units.len(), pblk.options.len(), pblk.lease.as_deref()), (2, 2, None));
        assert_eq!(pblk.describe(), "pblk on pu:2-3, seed=3,mode=faithful");
        for place in ["all", "pu:1"] {
            let db = named("db", place).expect("the target stands there");
            assert_eq!((db.units, db.lease.as_deref()), (vec![PuId(1)], Some("db")));
        }
        assert!(matches!(named("no_such", "all"), Err(NameError::NoSuchKind(_))));
        for (text, place) in [("pblk:seed", "all"), ("pblk", "pu:9"), ("db", "pu:2")] {
            assert!(matches!(named(text, place), Err(NameError::Wrong(_))), "{text} on {place}");
        }
    }
}
