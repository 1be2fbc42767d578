//! What an instance says of itself: one sentence after mount, and its counters under the names pblk's sysfs had.
//!
//! Deliberately not here: counting.

use super::mount::MountReport;
use super::options::Mode;
use super::state::Pblk;
use crate::kept_size::{self, KeptSize};
use ocssd_lightnvm::block::{Counter, CounterValue};

impl Pblk {
    /// What was mounted, how, and with which sizes.
    #[must_use]
    pub fn describe(&self, report: &MountReport) -> String {
        assert!(!(report.fresh && report.clean), "a new instance was shut down before");
        let sector = u64::from(self.block_bytes);
        let buffer = u64::from(self.write_buffer.slots()) * sector;
        let how = if report.fresh {
            "made anew".to_owned()
        } else if report.clean {
            format!("mounted after a shutdown in {}", report.phases[3])
        } else {
            format!(
                "recovered in {}: {} heads, checkpoint {}, {} tails, {} chunks scanned, {} newer versions",
                report.phases[3],
                report.heads_read,
                report.checkpoint.map_or_else(|| "none".to_owned(), |number| number.to_string()),
                report.tails_read,
                report.chunks_scanned,
                report.records
            )
        };
        let small = self.capacity.buffer_units < self.capacity.buffer_units_needed;
        let warning = if small { ", SMALLER than the drive needs" } else { "" };
        format!(
            "pblk ({}): {} of {} blocks of {} B for users, write buffer {} KiB{warning}, victims {}, classification {}; {how}",
            self.options.mode,
            self.l2p.sectors(),
            self.shape.places(),
            sector,
            buffer / 1024,
            self.options.victim(),
            self.options.classification(),
        )
    }

    /// What there is to say to whoever mounted it with these options, name and value; `described` is the instance in words.
    #[must_use]
    pub fn notes(&self, described: String, report: &MountReport, stated: &[(String, String)]) -> Vec<String> {
        let (kept, wanted) = (self.l2p.sectors(), self.capacity.wanted_sectors);
        assert!(
            !report.fresh || wanted.is_none_or(|wanted| kept == wanted),
            "a new instance of {kept} blocks was to have {wanted:?}"
        );
        let size = KeptSize { option: "over_provisioning_percent", what: "blocks", kept, wanted };
        let sizes = if report.fresh { &[][..] } else { &[size] };
        let mut notes = kept_size::notes(described, sizes, stated);
        notes.extend(self.unusual_size(report));
        notes
    }

    /// That a new instance keeps more from users than is usual, because it needs that much.
    fn unusual_size(&self, report: &MountReport) -> Option<String> {
        let (percent, usual) =
            (self.capacity.over_provisioning_percent, self.options.over_provisioning_percent);
        assert!(!report.fresh || percent >= usual, "a new instance keeps {percent} %, less than {usual}");
        (report.fresh && percent > usual).then(|| {
            format!(
                "over-provisioning is {percent} %, not the usual {usual} %: on so few chunks open lines, checkpoints and garbage \
                 collection need that much (over_provisioning_percent={percent})"
            )
        })
    }

    /// Counters and gauges, in a fixed order.
    pub(super) fn all_counters(&self) -> Vec<Counter> {
        let stats = &self.stats;
        let count = |name, about, value| Counter { name, about, value: CounterValue::Count(value) };
        let mut counters = vec![
            count("user_read_sectors", "sectors read by users", stats.user_read),
            count("read_cached_sectors", "of these, from the write buffer", stats.read_cached),
            count("read_empty_sectors", "of these, never written or discarded", stats.read_empty),
            count("read_failed", "reads the media failed", stats.read_failed),
            count("read_again", "sectors read again because the first try failed", stats.read_again),
            count("read_high_ecc", "reads the media called weak", stats.read_high_ecc),
            count("read_corrupt", "reads whose content did not match its checksum", stats.read_corrupt),
            count("read_parked", "reads that waited until more was written behind them", stats.read_parked),
            count("user_written_sectors", "sectors written by users", stats.user_written),
            count("user_discarded_sectors", "sectors discarded or zeroed by users", stats.user_discarded),
            count("flushes", "flushes and writes with FUA", stats.flushes),
            count("gc_written_sectors", "sectors moved by garbage collection", stats.gc_written),
            count("gc_read_sectors", "sectors read by garbage collection", stats.gc_read),
            count("gc_dead_sectors", "of these, dead when they arrived", stats.gc_dead),
            count("read_failed_gc", "reads of garbage collection the media failed", stats.read_failed_gc),
            count("padded_sectors", "sectors of padding", stats.padded),
            count("meta_written_sectors", "sectors of heads, tails and checkpoints", stats.meta_written),
            count("superseded_sectors", "sectors overwritten before they were programmed", stats.superseded),
            count("units_written", "write units sent to the media", stats.units_written),
            count("write_failed", "writes the media failed", stats.write_failed),
            self.flight.counter(),
            count("erase_failed", "chunks that could not be reset", stats.reset_failed),
            count("lines_opened", "lines opened", stats.lines_opened),
            count("lines_erased", "lines reset", stats.lines_reset),
            count("gc_victims", "lines emptied by garbage collection", stats.victims),
            count("gc_victim_valid_sectors", "valid sectors in them", stats.victim_valid),
            count("gave_up", "times nothing could go on and requests were refused", stats.gave_up),
            count("checkpoints", "checkpoints of the map", stats.checkpoints),
            count("map_shards_written", "shards of the map they wrote", stats.map_shards_written),
            count("map_shards_kept", "shards that had not changed, not written again", stats.map_shards_kept),
            count("waits_for_buffer", "times the oldest write found the buffer full", stats.waits_for_buffer),
            count("waits_for_limiter", "times the limiter held it back", stats.waits_for_limiter),
            count("waits_for_checkpoint", "times a checkpoint held it back", stats.waits_for_checkpoint),
            count("waits_for_line", "times no line was free", stats.waits_for_line),
        ];
        counters.extend(self.gauges());
        counters.extend(self.wear_counters());
        counters.extend(self.wait_counters());
        counters
    }

    /// What is now, and what follows from the counters.
    fn gauges(&self) -> [Counter; 10] {
        let occupancy = self.write_buffer.occupancy();
        let gauge = |name, about, value: u64| Counter { name, about, value: CounterValue::Gauge(value) };
        [
            gauge("lines_free", "free lines now", u64::from(self.lines.free_count())),
            gauge("mapped_sectors", "blocks that hold something", self.l2p.count_mapped()),
            gauge("map_bytes", "memory of the map", self.l2p.resident_bytes()),
            gauge(
                "buffer_unwritten_units",
                "units of the buffer not acknowledged",
                u64::from(occupancy.unwritten),
            ),
            gauge(
                "buffer_unreadable_units",
                "units of the buffer not readable yet",
                u64::from(occupancy.written),
            ),
            gauge(
                "buffer_cached_units",
                "units of the buffer kept as a cache",
                u64::from(occupancy.evictable),
            ),
            gauge("faithful", "1 if it runs as pblk was", u64::from(self.options.mode == Mode::Faithful)),
            gauge(
                "chunks_needed",
                "good chunks with which changes are taken in any case",
                self.capacity.chunks_needed,
            ),
            gauge(
                "read_only",
                "1 if so many chunks are bad that writes are refused",
                u64::from(self.is_read_only()),
            ),
            Counter {
                name: "write_amplification",
                about: "sectors of data and padding programmed for each sector users wrote",
                value: CounterValue::Ratio(self.stats.write_amplification()),
            },
        ]
    }

    /// What wear levelling did, and how wear differs.
    fn wear_counters(&self) -> [Counter; 7] {
        let stats = &self.stats;
        let count = |name, about, value| Counter { name, about, value: CounterValue::Count(value) };
        let gauge = |name, about, value: u64| Counter { name, about, value: CounterValue::Gauge(value) };
        [
            count("wear_moves", "lines moved for their wear", stats.wear_moves),
            count("wear_moved_sectors", "valid sectors in them", stats.wear_moved),
            count("waits_for_wear", "times the oldest write waited for such a move", stats.waits_for_wear),
            gauge("wear_erases_most", "resets of the most worn line", u64::from(self.lines.most_resets())),
            gauge("wear_lag", "resets the least worn closed line lags behind it", u64::from(self.wear.lag())),
            gauge(
                "wear_spread_bound",
                "what cold lines may lag; 0 for any",
                u64::from(self.wear.bound().unwrap_or(0)),
            ),
            Counter {
                name: "wear_amplification",
                about: "of these, moved for wear",
                value: CounterValue::Ratio(stats.wear_amplification()),
            },
        ]
    }
}
