//! An open image beside its drive: keeps the table of targets, and says what was damaged.

use super::file::ImageFile;
use super::layout::Layout;
use super::leases::Table;
use crate::error::DriveError;
use ocssd_lightnvm::media_manager::MediaManager;
use std::path::Path;
use std::sync::Arc;

/// What chunks lost of what was written since the last sync, because a crash of the host, or a sync that failed, left not all
/// of it on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenBack {
    /// Chunks that end sooner than their records said.
    pub chunks: u32,
    /// Sectors they lost.
    pub sectors: u64,
}

/// The image of an open drive. The file stays locked until both the drive and this are dropped.
#[derive(Debug)]
pub struct Image {
    pub(super) file: Arc<ImageFile>,
    pub(super) layout: Layout,
    pub(super) table: Table,
    pub(super) damage: Vec<String>,
    pub(super) taken_back: TakenBack,
}

impl Image {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// False if the image was opened to be looked at.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.file.writable
    }

    /// What was found damaged and accepted, a sentence each; empty for a sound image.
    #[must_use]
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// What was not flushed and is gone, as after a power cut of the drive.
    #[must_use]
    pub const fn taken_back(&self) -> TakenBack {
        self.taken_back
    }

    /// Bytes the file has from its first to its last, holes included.
    #[must_use]
    pub const fn file_bytes(&self) -> u64 {
        self.layout.total_bytes
    }

    /// Keeps the table of targets. It survives a crash of the host when this returns, whole or not at all.
    ///
    /// # Errors
    /// If the image is read-only, or its file fails.
    pub fn save_leases(&mut self, leases: &MediaManager) -> Result<(), DriveError> {
        if !self.file.writable {
            return Err(DriveError::ReadOnly { path: self.path().to_owned() });
        }
        let text = leases.to_text();
        if text == self.table.text {
            return Ok(());
        }
        let table = Table { generation: self.table.generation + 1, text };
        table.write(&self.file, &self.layout)?;
        self.table = table;
        Ok(())
    }
}
