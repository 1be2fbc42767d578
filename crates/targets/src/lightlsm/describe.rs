//! An instance and its mount in words, and how well its chunks are filled.
//!
//! Deliberately not here: what is counted later (`stats`).

use super::mount::MountReport;
use super::sizes::Sizes;
use super::state::LightLsm;
use crate::kept_size::{self, KeptSize};
use ocssd_lightnvm::Geometry;

impl LightLsm {
    /// Chunks of tables and logs, and the bytes of them that nothing fills.
    pub(super) fn fragmentation(&self) -> (u64, u64) {
        let chunks = u64::from(self.space.content_chunks());
        let bytes: u64 = self.shelf.objects.values().map(|object| object.bytes).sum();
        let all = chunks * u64::from(self.sizes.chunk) * u64::from(self.geometry.sector_bytes);
        (chunks, all.saturating_sub(bytes))
    }

    /// What there is to say to whoever mounted it with these options.
    #[must_use]
    pub fn notes(
        &self,
        report: &MountReport,
        geometry: &Geometry,
        stated: &[(String, String)],
    ) -> Vec<String> {
        kept_size::notes(self.describe(report), &self.kept_sizes(report, geometry), stated)
    }

    /// What an instance which was there keeps, whatever this mount's options would make of a new one.
    fn kept_sizes(&self, report: &MountReport, geometry: &Geometry) -> Vec<KeptSize> {
        if report.is_new {
            return Vec::new();
        }
        let (shape, kept) = (&self.space.shape, self.sizes.kept);
        assert!(report.bad_chunks < shape.chunks(), "an instance on chunks that are all bad");
        let good = shape.chunks() - report.bad_chunks;
        let wanted = Sizes::new(geometry, shape, &self.options, good, None).ok().map(|new| new.kept);
        let both = (&kept, wanted.as_ref());
        vec![
            KeptSize::new("tables_max", "tables and logs", both, |of| u64::from(of.tables_max)),
            KeptSize::new("spare_percent", "bytes of tables and logs", both, |of| of.capacity_bytes),
        ]
    }

    /// One sentence for whoever mounted it.
    #[must_use]
    pub fn describe(&self, report: &MountReport) -> String {
        let how = if report.is_new {
            "new".to_owned()
        } else {
            format!(
                "recovered from checkpoint and log: {} tables and logs, {} log pages, {} transactions replayed, {} entries \
                 aborted, {} unpublished tables dropped",
                report.tables, report.log_pages, report.transactions, report.aborted_entries, report.dropped
            )
        };
        format!(
            "lightlsm of {} bytes in at most {} tables and logs on {} units, placement {}, {how}; {} sectors read, {} padded, {} \
             chunks bad, new checkpoint of {} sectors",
            self.sizes.kept.capacity_bytes,
            self.sizes.kept.tables_max,
            self.space.shape.units(),
            self.options.placement,
            report.sectors_read,
            report.sectors_padded,
            report.bad_chunks,
            report.checkpoint_sectors,
        )
    }
}
