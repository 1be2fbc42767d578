//! A target as a text names it, in the form of the command line: `pblk:mode=faithful` on `pu:0-3`, or a name from the image.

use crate::failure::Failure;
use ocssd_lightnvm::media_manager::{MediaManager, UnitSelection};
use ocssd_lightnvm::{Geometry, PuId};
use ocssd_targets::registry::{self, TargetOptions};

/// A target as the command line or a job names it.
#[derive(Debug)]
pub struct NamedTarget {
    /// Its kind, as the registry calls it.
    pub kind: String,
    /// Its options, name and value.
    pub options: TargetOptions,
    /// The lease that stands already.
    pub lease: Option<String>,
    /// Its units.
    pub units: Vec<PuId>,
}

/// Parallel units as a text names them; all without one.
pub fn units(place: Option<&str>, geometry: &Geometry) -> Result<Vec<PuId>, Failure> {
    let selection: UnitSelection = match place {
        None => UnitSelection::All,
        Some(text) => text.parse::<UnitSelection>().map_err(Failure::invalid)?,
    };
    selection.resolve(geometry).map_err(|error| Failure::invalid(error.to_string()))
}

impl NamedTarget {
    /// What `text` means at `place`.
    pub fn of(
        text: &str,
        place: Option<&str>,
        geometry: &Geometry,
        manager: &MediaManager,
    ) -> Result<Self, Failure> {
        let (name, options) = registry::parse(text).map_err(Failure::invalid)?;
        if let Some(lease) = manager.find(name) {
            if place.is_some() {
                return Err(Failure::invalid(format!(
                    "\"{name}\" has its parallel units already; pass NULL for them"
                )));
            }
            let (kind, units) = (lease.kind.clone(), lease.units.clone());
            return Ok(Self { kind, options, lease: Some(lease.name.clone()), units });
        }
        registry::find(name).map_err(|sentence| Failure::new(libc::ENOENT, sentence))?;
        Ok(Self { kind: name.to_owned(), options, lease: None, units: units(place, geometry)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_kinds_with_options_or_targets_that_stand() {
        let geometry = Geometry::example(1, 4, 2, 8, 8);
        let mut manager = MediaManager::new(&geometry);
        manager.create("db", "pblk", &[PuId(1)]).unwrap();
        let named_target =
            NamedTarget::of("pblk:seed=3,mode=faithful", Some("pu:2-3"), &geometry, &manager).unwrap();
        assert_eq!((named_target.units.len(), named_target.options.len(), named_target.lease), (2, 2, None));
        let db = NamedTarget::of("db", None, &geometry, &manager).unwrap();
        assert_eq!((db.units, db.lease.as_deref()), (vec![PuId(1)], Some("db")));
        for (text, place, errno) in [
            ("no_such", None, libc::ENOENT),
            ("pblk:seed", None, libc::EINVAL),
            ("pblk", Some("pu:9"), libc::EINVAL),
            ("pblk", Some("nonsense"), libc::EINVAL),
            ("db", Some("pu:1"), libc::EINVAL),
        ] {
            assert_eq!(NamedTarget::of(text, place, &geometry, &manager).unwrap_err().errno, errno, "{text}");
        }
    }
}
