//! Writes that memory took: a write buffer, or the drive's cache, answered them before media had them.
//!
//! Their rate is that of memory then, however the media are. It is judged over the whole run, by what the media began to program
//! until the last job ended. Deliberately not here: jobs that took no time at all; they have no rate, and fail.

use super::execute::Finished;
use crate::table::bytes;
use ocssd_base::Nanos;
use ocssd_flash::FlashCounters;
use ocssd_lightnvm::Geometry;

/// Of what was written, so many parts, of which media must have had one (chosen: below, the rate is more than twice theirs).
const PARTS: u64 = 2;

/// A caution, if media had less than half of what the jobs wrote when they ended.
pub fn caution(finished: &Finished) -> Option<String> {
    // A target without units keeps nothing.
    let with_media = finished.parties.iter().filter(|party| !party.units.is_empty());
    let jobs = with_media.flat_map(|party| &party.jobs).map(|&job| &finished.jobs[job]);
    let written: u64 = jobs.filter(|job| job.run_time > Nanos::ZERO).map(|job| job.write.io_bytes).sum();
    let programmed = programmed_bytes(&finished.counters, &finished.geometry);
    (PARTS.saturating_mul(programmed) < written).then(|| {
        format!(
            "when the jobs ended, media had {} of the {} that they wrote: the rate of writes is that of memory (a write buffer, or \
             the drive's cache) and says nothing about media; write more, or flush at the end (end_fsync=1)",
            bytes(programmed),
            bytes(written)
        )
    })
}

/// At most so much went to media: a unit may be programmed with less than is optimal, and targets write of their own.
fn programmed_bytes(counters: &FlashCounters, geometry: &Geometry) -> u64 {
    let unit_bytes = u64::from(geometry.ws_opt) * u64::from(geometry.sector_bytes);
    counters.media.programs.saturating_mul(unit_bytes)
}
