//! A new image: the file is made and filled, and its first page is written last, so that half an image is none.

use super::file::ImageFile;
use super::handle::{Image, TakenBack};
use super::header::{HEADER_BYTES, Header};
use super::layout::{Layout, SETTINGS_BYTES_MAX, padded};
use super::leases::Table;
use super::record::Kept;
use super::simulated::SimulatedFile;
use super::store::ImageStore;
use super::whole::WholeFlags;
use crate::error::DriveError;
use crate::identity;
use crate::open::OpenDrive;
use crate::spec::DriveSpec;
use ocssd_flash::Flash;
use ocssd_lightnvm::ChunkId;
use ocssd_lightnvm::media_manager::MediaManager;
use std::path::Path;
use std::sync::Arc;

/// What to do about a file that already has the image's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Leave it, and make no image.
    Refuse,
    /// Its content is lost.
    Replace,
}

impl Image {
    /// Makes an image of a freshly formatted drive, and opens it. Cost: a few writes and syncs; the file is holes at
    /// first, so a drive of terabytes takes kilobytes.
    ///
    /// # Errors
    /// Settings that cannot be used, a file that exists or is in use, or a file system that cannot take that size.
    pub fn create(path: &Path, spec: &DriveSpec, existing: Existing) -> Result<OpenDrive, DriveError> {
        let (layout, settings) = plan(path, spec)?;
        let (file, is_new) = match (ImageFile::create(path), existing) {
            (Err(DriveError::Exists { .. }), Existing::Replace) => (ImageFile::open_to_replace(path)?, false),
            (created, _) => (created?, true),
        };
        let filled = fill(file, layout, spec, settings);
        if filled.is_err() && is_new {
            // The first error is what the user needs; a file that cannot be removed is no image either.
            drop(std::fs::remove_file(path));
        }
        filled
    }

    /// The same on a simulated file, whose content is lost.
    ///
    /// # Errors
    /// Settings that cannot be used, a file that somebody has open, or that fails.
    pub fn create_simulated(file: &SimulatedFile, spec: &DriveSpec) -> Result<OpenDrive, DriveError> {
        let file = ImageFile::simulated(file, true)?;
        let (layout, settings) = plan(file.path(), spec)?;
        fill(file, layout, spec, settings)
    }
}

/// Where everything will lie in an image of a drive, and its settings' text.
fn plan(path: &Path, spec: &DriveSpec) -> Result<(Layout, String), DriveError> {
    spec.check()?;
    let settings = spec.to_toml();
    let settings_bytes = u64::try_from(settings.len()).expect("a length fits 64 bits");
    let layout = Layout::of(&spec.config, settings_bytes).filter(|_| settings_bytes <= SETTINGS_BYTES_MAX);
    let Some(layout) = layout else {
        let reason =
            "no file can hold a drive of this size; lower chunks_per_pu or sectors_per_chunk".to_owned();
        return Err(DriveError::Image { path: path.to_owned(), reason });
    };
    Ok((layout, settings))
}

fn fill(
    file: ImageFile,
    layout: Layout,
    spec: &DriveSpec,
    settings: String,
) -> Result<OpenDrive, DriveError> {
    let file = Arc::new(file);
    file.clear(layout.total_bytes)?;
    let mut region = settings.into_bytes();
    let bytes = padded(layout.settings_bytes).expect("at most 1 MiB");
    region.resize(usize::try_from(bytes).expect("at most 1 MiB"), 0);
    let uuid = identity::draw();
    let header = Header { layout, settings_crc: crc32fast::hash(&region), uuid };
    file.write(layout.settings_offset, &region).map_err(|error| file.failed("written", error))?;
    let table = Table { generation: 1, text: String::new() };
    table.write(&file, &layout)?;

    let fresh = Kept::fresh(spec.config.wear.initial_cycles);
    let kept = vec![fresh; ChunkId(layout.chunks).index()];
    let store = ImageStore::new(Arc::clone(&file), layout, kept, WholeFlags::default());
    let opened = Flash::format_on(spec.config.clone(), Box::new(store));
    let flash = opened.map_err(|error| DriveError::Open { path: file.path().to_owned(), error })?;

    file.settle()?;
    let page: [u8; HEADER_BYTES] = header.encode();
    file.write(0, &page).map_err(|error| file.failed("written", error))?;
    file.settle()?;
    let image = Image { file, layout, table, damage: Vec::new(), taken_back: TakenBack::default() };
    let leases = MediaManager::new(&spec.config.geometry);
    Ok(OpenDrive::new(flash, leases, Some(image), (spec.clone(), uuid)))
}
