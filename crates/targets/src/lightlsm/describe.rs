//! An instance and its mount in words, and how well its chunks are filled.
//!
//! Deliberately not here: what is counted later (`stats`).

use super::mount::MountReport;
use super::state::LightLsm;

impl LightLsm {
    /// Chunks of tables and logs, and the bytes of them that nothing fills.
    pub(super) fn fragmentation(&self) -> (u64, u64) {
        let chunks = u64::from(self.space.content_chunks());
        let bytes: u64 = self.shelf.objects.values().map(|object| object.bytes).sum();
        let all = chunks * u64::from(self.sizes.chunk) * u64::from(self.geometry.sector_bytes);
        (chunks, all.saturating_sub(bytes))
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
