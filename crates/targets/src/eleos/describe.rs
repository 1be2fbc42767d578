//! An instance and its mount in words.
//!
//! Deliberately not here: what is counted later (`stats`).

use super::extent::{GRAIN_BYTES, PART_BYTES_MAX, SPOT_MAX};
use super::options::Options;
use super::store::Eleos;
use crate::kept_size;
use crate::mount_error::MountError;
use crate::ox::mount::MountReport;
use ocssd_lightnvm::{BlockingDevice, Geometry, PuId};

impl Eleos {
    /// Makes an instance on fresh units, or recovers the one that is there.
    ///
    /// # Errors
    /// [`MountError`] if the units cannot carry one, it cannot be read, the drive fails or the power goes.
    pub fn mount(
        device: &mut dyn BlockingDevice,
        units: &[PuId],
        options: &Options,
    ) -> Result<(Self, MountReport), MountError> {
        let geometry = device.geometry();
        let count = u64::try_from(units.len()).expect("an index");
        let sectors = count * u64::from(geometry.chunks_per_pu) * u64::from(geometry.sectors_per_chunk);
        let bytes = sectors * u64::from(geometry.sector_bytes);
        let buffer_unit = u64::from(geometry.ws_opt) * u64::from(geometry.sector_bytes);
        if bytes / u64::from(GRAIN_BYTES) >= SPOT_MAX || buffer_unit > u64::from(PART_BYTES_MAX) {
            return Err(MountError::DoesNotFit(format!(
                "eleos reaches 64 TiB in write units of less than 16 MiB, but the units have {bytes} bytes in units of {buffer_unit}: \
                 lease fewer"
            )));
        }
        if !geometry.sector_bytes.is_multiple_of(GRAIN_BYTES) {
            return Err(MountError::DoesNotFit(format!(
                "eleos needs sectors of a multiple of {GRAIN_BYTES} bytes, but the drive's have {}",
                geometry.sector_bytes
            )));
        }
        Self::mount_with(device, units, &options.common)
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
                "recovered from checkpoint and log: {} log pages, {} transactions replayed, {} entries aborted, {} pages and {} \
                 sessions found",
                report.log_pages,
                report.transactions,
                report.aborted_entries,
                self.store.pages,
                self.store.sessions.len()
            )
        };
        let limits = &self.store.limits;
        format!(
            "eleos for {} bytes of pages on {} units, flushes of up to {} bytes and {} pages, {how}; {} sectors read, {} padded, \
             {} chunks bad, new checkpoint of {} sectors; {}",
            limits.capacity_bytes,
            self.space.shape.units(),
            limits.flush_bytes_max,
            limits.flush_pages_max,
            report.sectors_read,
            report.sectors_padded,
            report.bad_chunks,
            report.checkpoint_sectors,
            report.phases,
        )
    }
}
