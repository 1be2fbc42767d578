//! An instance and its mount in words.
//!
//! Deliberately not here: what is counted later (`stats`).

use super::store::OxBlock;
use crate::kept_size;
use crate::mount_error::MountError;
use crate::ox::mount::MountReport;
use crate::ox::options::Options;
use ocssd_lightnvm::{BlockingDevice, Geometry, PuId};

impl OxBlock {
    /// Makes an instance on fresh units, or recovers the one that is there.
    ///
    /// # Errors
    /// [`MountError`] if the units cannot carry one, it cannot be read, the drive fails or the power goes.
    pub fn mount(
        device: &mut dyn BlockingDevice,
        units: &[PuId],
        options: &Options,
    ) -> Result<(Self, MountReport), MountError> {
        Self::mount_with(device, units, options)
    }

    /// What there is to say to whoever mounted it with these options.
    #[must_use]
    pub fn notes(
        &self,
        report: &MountReport,
        geometry: &Geometry,
        stated: &[(String, String)],
    ) -> Vec<String> {
        kept_size::notes(self.describe(report), self.kept_size(report, geometry).as_slice(), stated)
    }

    /// One sentence for whoever mounted it.
    #[must_use]
    pub fn describe(&self, report: &MountReport) -> String {
        let how = if report.is_new {
            "new".to_owned()
        } else {
            format!(
                "recovered from checkpoint and log: {} log pages, {} transactions replayed, {} entries aborted",
                report.log_pages, report.transactions, report.aborted_entries
            )
        };
        format!(
            "ox-block of {} blocks on {} units, requests durable at each {}, {how}; {} sectors read, {} padded, {} chunks bad, \
             new checkpoint of {} sectors; {}",
            self.sizes.blocks,
            self.space.shape.units(),
            self.options.durability,
            report.sectors_read,
            report.sectors_padded,
            report.bad_chunks,
            report.checkpoint_sectors,
            report.phases,
        )
    }
}
