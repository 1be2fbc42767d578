//! `ocssd target`: leases of an image.

use crate::args::TargetVerb;
use crate::table;
use ocssd_drive::image::Access;
use ocssd_drive::{OpenDrive, OpenOptions, Source};
use ocssd_lightnvm::media_manager::{MediaManager, UnitSelection};
use serde_json::json;
use std::path::{Path, PathBuf};

fn open(image: &Path) -> anyhow::Result<OpenDrive> {
    Ok(crate::open_drive::open_drive(&Source::Image(PathBuf::from(image)), &OpenOptions::default())?)
}

/// Prints who has which units.
pub fn print_leases(manager: &MediaManager, as_json: bool) {
    let lines: Vec<Vec<String>> = manager
        .list()
        .iter()
        .map(|lease| {
            vec![lease.name.clone(), lease.kind.clone(), UnitSelection::of(&lease.units).to_string()]
        })
        .collect();
    if as_json {
        let list: Vec<_> =
            lines.iter().map(|line| json!({ "name": line[0], "kind": line[1], "units": line[2] })).collect();
        table::print_json(&json!(list));
    } else if lines.is_empty() {
        table::line("No targets: every parallel unit is free.");
    } else {
        table::print(&["target", "kind", "units"], &lines);
    }
}

/// Carries out the verb.
pub fn target(verb: TargetVerb, as_json: bool) -> anyhow::Result<()> {
    match verb {
        TargetVerb::Create { image, name, kind, units } => {
            let selection: UnitSelection = units.parse().map_err(anyhow::Error::msg)?;
            crate::kinds::find(&kind).map_err(anyhow::Error::msg)?;
            let mut drive = open(&image)?;
            let units = selection.resolve(&drive.spec.config.geometry)?;
            drive.media_manager.create(&name, &kind, &units)?;
            drive.save_leases()?;
            print_leases(&drive.media_manager, as_json);
        }
        TargetVerb::Remove { image, name } => {
            let mut drive = open(&image)?;
            drive.media_manager.remove(&name)?;
            drive.save_leases()?;
            print_leases(&drive.media_manager, as_json);
        }
        TargetVerb::List { image } => {
            // Looking needs no right to write.
            let options = OpenOptions { access: Access::Inspect, ..OpenOptions::default() };
            let drive = crate::open_drive::open_drive(&Source::Image(image), &options)?;
            print_leases(&drive.media_manager, as_json);
        }
    }
    Ok(())
}
