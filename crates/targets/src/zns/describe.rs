//! An instance and its mount in words.
//!
//! Deliberately not here: what is counted later (`stats`).

use super::mount::MountReport;
use super::state::Zns;

impl Zns {
    /// One sentence for whoever mounted it.
    #[must_use]
    pub fn describe(&self, report: &MountReport) -> String {
        let how = if report.is_new {
            "new".to_owned()
        } else {
            format!(
                "recovered from checkpoint and log: {} log pages, {} transactions replayed, {} zones cut, {} blocks from tails, {} \
                 zones copied",
                report.log_pages,
                report.transactions,
                report.zones_cut,
                report.tail_blocks,
                report.zones_copied
            )
        };
        let sizes = &self.sizes;
        format!(
            "zns of {} zones of {} chunks ({} blocks) over {} of {} units, {} open and {} active at most, {how}; {} sectors read, {} \
             padded, {} chunks bad, new checkpoint of {} sectors",
            sizes.zone_count,
            sizes.zone_chunks,
            sizes.capacity(),
            sizes.width,
            self.space.shape.units(),
            sizes.open_max,
            sizes.active_max,
            report.sectors_read,
            report.sectors_padded,
            report.bad_chunks,
            report.checkpoint_sectors,
        )
    }
}
