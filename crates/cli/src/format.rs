//! `ocssd format`: makes an image.

use crate::args::FormatArgs;
use crate::table;
use anyhow::anyhow;
use ocssd_drive::{DriveError, DriveSpec, Existing, Image, Source};
use serde_json::json;

/// The settings of a preset or a drive file, with changes.
pub fn spec_of(name: &str, changes: &[String]) -> anyhow::Result<DriveSpec> {
    let mut spec = match Source::named(name)? {
        Source::Preset(preset) => DriveSpec::preset(&preset)?,
        Source::Settings(path) => {
            let text = std::fs::read_to_string(&path)?;
            DriveSpec::from_toml(&text, &path.display().to_string())?
        }
        Source::Image(path) => anyhow::bail!(
            "{} is an image; a new image is made from a preset or a .toml file (`ocssd inspect {} toml` prints one)",
            path.display(),
            path.display()
        ),
    };
    spec.apply_all(changes)?;
    Ok(spec)
}

/// Makes the image.
pub fn format(args: &FormatArgs, as_json: bool) -> anyhow::Result<()> {
    let mut spec = spec_of(&args.drive, &args.set)?;
    // An image is there to keep data; a stamp is asked for by name.
    let payload_named = args.set.iter().any(|change| change.starts_with("payload"));
    if !payload_named && matches!(Source::named(&args.drive), Ok(Source::Preset(_))) {
        spec.config.payload = ocssd_lightnvm::Payload::Bytes;
    }
    let existing = if args.replace { Existing::Replace } else { Existing::Refuse };
    let drive = Image::create(&args.image, &spec, existing).map_err(|error| match error {
        DriveError::Exists { path } => {
            anyhow!("{} exists; choose another name, or add --replace", path.display())
        }
        error => error.into(),
    })?;
    let geometry = &drive.spec.config.geometry;
    let path = args.image.display().to_string();
    if as_json {
        table::print_json(
            &json!({ "image": path, "model": drive.spec.config.model, "bytes": geometry.capacity_bytes() }),
        );
    } else {
        table::line(&format!(
            "{path}: {}, {} x {} units, {}, {} chunks free",
            drive.spec.config.model,
            geometry.groups,
            geometry.pus_per_group,
            table::bytes(geometry.capacity_bytes()),
            geometry.chunk_count()
        ));
        table::line(&format!("The file grows as the drive is written. Next: ocssd inspect {path}"));
    }
    Ok(())
}
