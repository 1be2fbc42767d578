//! `ocssd presets`: the drives that can be asked for by name.

use crate::table;
use ocssd_flash::presets;
use ocssd_workload::results::fold::fold;
use serde_json::json;

/// Lists them.
pub fn presets(as_json: bool) {
    let shape = |preset: &presets::Preset| {
        let geometry = preset.config().geometry;
        (format!("{} x {}", geometry.groups, geometry.pus_per_group), geometry.capacity_bytes())
    };
    if as_json {
        let list: Vec<_> = presets::ALL
            .iter()
            .map(|preset| json!({ "name": preset.name, "units": shape(preset).0, "bytes": shape(preset).1, "about": preset.about,
                "default": preset.name == presets::DEFAULT }))
            .collect();
        table::print_json(&json!(list));
        return;
    }
    let rows: Vec<Vec<String>> = presets::ALL
        .iter()
        .map(|preset| {
            let (units, bytes) = shape(preset);
            let mark = if preset.name == presets::DEFAULT { "*" } else { "" };
            vec![format!("{}{mark}", preset.name), units, table::bytes(bytes), preset.about.to_owned()]
        })
        .collect();
    table::print_folded(&["preset", "groups x units", "capacity", "about"], &rows);
    table::line(&fold(
        "\n* used when no drive is named. `ocssd inspect PRESET toml` prints one as a file to change.",
    ));
}
