//! An instance and its mount in words.
//!
//! Deliberately not here: what is counted later (`stats`).

use super::mount::MountReport;
use super::sizes::Sizes;
use super::state::Kv;
use crate::kept_size::{self, KeptSize};
use ocssd_lightnvm::Geometry;

impl Kv {
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
        let (shape, kept) = (&self.space.shape, self.sizes.promised);
        assert!(report.bad_chunks < shape.chunks(), "an instance on chunks that are all bad");
        let good = shape.chunks() - report.bad_chunks;
        let wanted = Sizes::new(geometry, shape, &self.options, good, None).ok().map(|new| new.promised);
        let both = (&kept, wanted.as_ref());
        vec![
            KeptSize::new("over_provisioning_percent", "bytes of keys and values", both, |of| {
                of.capacity_bytes
            }),
            KeptSize::new("index_percent", "bytes of the index", both, |of| of.index_bytes_max),
        ]
    }

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
