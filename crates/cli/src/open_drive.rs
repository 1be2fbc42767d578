//! Opens a drive for a verb, and says what was found that the user should know before anything else happens.

use ocssd_drive::{DriveError, OpenDrive, OpenOptions, Source};

/// Opens what was named. What an image has lost goes to stderr, a line each.
///
/// # Errors
/// As [`ocssd_drive::open_with`].
pub fn open_drive(source: &Source, options: &OpenOptions) -> Result<OpenDrive, DriveError> {
    let drive = ocssd_drive::open_with(source, options)?;
    let Some(image) = &drive.image else { return Ok(drive) };
    for sentence in image.damage() {
        eprintln!("ocssd: {sentence}");
    }
    let taken = image.taken_back();
    if taken.chunks > 0 {
        eprintln!(
            "ocssd: {}: the host crashed, or a sync failed: {} sectors that were not flushed are gone from {} chunks, which end \
             where they ended at the last flush",
            image.path().display(),
            taken.sectors,
            taken.chunks
        );
    }
    Ok(drive)
}
