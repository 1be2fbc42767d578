//! An instance and its mount in words.
//!
//! Deliberately not here: what is counted later (`stats`).

use super::store::OxBlock;
use crate::ox::mount::MountReport;

impl OxBlock {
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
             new checkpoint of {} sectors",
            self.sizes.blocks,
            self.space.shape.units(),
            self.options.durability,
            report.sectors_read,
            report.sectors_padded,
            report.bad_chunks,
            report.checkpoint_sectors,
        )
    }
}
