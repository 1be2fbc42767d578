//! `ocssd inspect`: what LightNVM's sysfs showed, and more.

mod chunks;
mod geometry;
mod tables;
mod tables_copy;
mod zones;

use crate::args::{InspectArgs, InspectVerb};
use crate::{table, target};
use ocssd_drive::image::Access;
use ocssd_drive::{OpenOptions, Source};
use serde_json::{Value, json};

/// Shows what was asked for.
pub fn inspect(args: &InspectArgs, as_json: bool) -> anyhow::Result<()> {
    if let Some(InspectVerb::Tables(of_tables)) = &args.what {
        return tables::tables(&args.drive, of_tables, as_json);
    }
    if let Some(InspectVerb::Zones(of_zones)) = &args.what {
        return zones::zones(&args.drive, of_zones, as_json);
    }
    let source = Source::named(&args.drive)?;
    let options = OpenOptions { access: Access::Inspect, ..OpenOptions::default() };
    let drive = crate::open_drive::open_drive(&source, &options)?;
    match args.what.clone().unwrap_or(InspectVerb::Drive) {
        InspectVerb::Drive => show_rows(&geometry::summary(&drive), as_json),
        InspectVerb::Geometry => show_rows(&geometry::fields(&drive), as_json),
        InspectVerb::Chunks { all } => chunks::list(&drive, all, as_json),
        InspectVerb::Chunk { at } => chunks::one(&drive, at, as_json)?,
        InspectVerb::Wear => chunks::wear(&drive, as_json),
        InspectVerb::Targets => target::print_leases(&drive.media_manager, as_json),
        InspectVerb::Toml if as_json => table::print_json(&json!({ "toml": drive.spec.to_toml() })),
        InspectVerb::Tables(_) | InspectVerb::Zones(_) => unreachable!("what is mounted was shown above"),
        InspectVerb::Toml => table::show(&drive.spec.to_toml()),
    }
    Ok(())
}

fn show_rows(rows: &[(String, String)], as_json: bool) {
    if as_json {
        let map: serde_json::Map<String, Value> =
            rows.iter().map(|(name, value)| (name.clone(), to_json(value))).collect();
        table::print_json(&map.into());
    } else {
        let lines: Vec<Vec<String>> =
            rows.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect();
        table::print_folded(&["", ""], &lines);
    }
}

/// Counts and yes-or-no as what they are, everything else as text.
fn to_json(value: &str) -> Value {
    if let Ok(number) = value.parse::<u64>() {
        return json!(number);
    }
    value.parse::<bool>().map_or_else(|_| json!(value), |flag| json!(flag))
}
