//! An instance and its mount in words.
//!
//! Deliberately not here: what is counted later (`stats`).

use super::mount::MountReport;
use super::state::Kv;

impl Kv {
    /// One sentence for whoever mounted it.
    #[must_use]
    pub fn describe(&self, report: &MountReport) -> String {
        let how = if report.is_new {
            "new".to_owned()
        } else {
            format!(
                "recovered from checkpoint and records: {} keys, {} units read behind the checkpoint, {} records replayed",
                self.index.keys(),
                report.units_replayed,
                report.records_replayed
            )
        };
        let lost = match report.records_dropped {
            0 => String::new(),
            dropped => format!(", {dropped} records of changes that were cut short dropped"),
        };
        let pages = match report.index_pages_lost {
            0 => String::new(),
            pages => format!(", {pages} pages of the index cannot be read, so no changes are taken"),
        };
        format!(
            "kv for {} bytes of keys and values, values up to {} bytes, on {} units, {how}{lost}{pages}; {} sectors read, {} padded, {} \
             chunks bad",
            self.sizes.promised.capacity_bytes,
            self.sizes.promised.value_bytes_max,
            self.space.shape.units(),
            report.sectors_read,
            report.sectors_padded,
            report.bad_chunks,
        )
    }
}
