//! The health log (02h) and the error log (01h): what happened to the host's commands.

use super::front_end::Controller;
use super::pending::Counted;
use ocssd_base::Nanos;
use ocssd_lightnvm::Lba;
use ocssd_nvme::Cqe;
use ocssd_nvme::log_page::{ErrorLogEntry, SmartLog};
use std::collections::VecDeque;

/// Chosen: entries of the error log; ELPE is this less one.
pub(super) const ERRORS_MAX: usize = 64;

/// Chosen, as usual for drives: percent of the chunks that should be usable.
const SPARE_THRESHOLD: u8 = 10;

/// Warning bits of the health log (NVMe base 1.4 figure 194, byte 0).
const SPARE_LOW: u8 = 1;
const RELIABILITY_DEGRADED: u8 = 1 << 2;
const READ_ONLY: u8 = 1 << 3;

/// How a command ended, for the logs.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandEnd {
    pub(super) completion: Cqe,
    pub(super) counted: Counted,
    pub(super) lba: Lba,
    pub(super) nsid: u32,
    /// The media could not deliver or keep data.
    pub(super) media_failed: bool,
}

/// Counters of the health log that the drive does not keep, and the error log.
#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    read_commands: u64,
    write_commands: u64,
    media_errors: u64,
    errors: u64,
    /// Newest first.
    error_log: VecDeque<ErrorLogEntry>,
    busy: Nanos,
    busy_since: Option<Nanos>,
    power_cuts: u64,
}

impl Health {
    pub(super) fn work_begins(&mut self, now: Nanos) {
        self.busy_since.get_or_insert(now);
    }

    pub(super) fn work_ends(&mut self, now: Nanos) {
        if let Some(since) = self.busy_since.take() {
            assert!(since <= now, "work that began at {since} ended at {now}");
            self.busy += now.saturating_since(since);
        }
    }

    pub(super) fn power_was_cut(&mut self, now: Nanos) {
        self.work_ends(now);
        self.power_cuts += 1;
    }

    pub(super) fn command_ended(&mut self, end: &CommandEnd) {
        match end.counted {
            Counted::Read => self.read_commands += 1,
            Counted::Write => self.write_commands += 1,
            Counted::Neither => {}
        }
        if end.media_failed {
            self.media_errors += 1;
        }
        if !end.completion.status.status.has_data() {
            self.log_error(end);
        }
    }

    pub(super) fn log_error(&mut self, end: &CommandEnd) {
        let Cqe { sqid, cid, status, phase, .. } = end.completion;
        assert!(!status.status.has_data(), "{status} is no error");
        assert!(
            self.error_log.front().is_none_or(|entry| entry.error_count == self.errors),
            "an error was not counted"
        );
        self.errors += 1;
        if self.error_log.len() == ERRORS_MAX {
            self.error_log.pop_back();
        }
        self.error_log.push_front(ErrorLogEntry {
            error_count: self.errors,
            sqid,
            cid,
            status,
            phase,
            parameter_error_location: 0xFFFF,
            lba: end.lba,
            nsid: end.nsid,
            vendor_log_page: 0,
            command_specific: 0,
        });
        assert!(self.error_log.len() <= ERRORS_MAX, "the error log overflowed");
    }

    /// The error log page: all entries, newest first, then zeros.
    pub(super) fn error_page(&self) -> Vec<u8> {
        let mut page: Vec<u8> = self.error_log.iter().flat_map(ErrorLogEntry::encode).collect();
        assert!(
            page.len() <= ERRORS_MAX * ErrorLogEntry::BYTES,
            "the error log has more entries than its page"
        );
        page.resize(ERRORS_MAX * ErrorLogEntry::BYTES, 0);
        page
    }
}

/// Sectors as the health log counts data: thousands of 512 bytes, rounded up.
fn data_units(sectors: u64, sector_bytes: u32) -> u128 {
    (u128::from(sectors) * u128::from(sector_bytes)).div_ceil(512 * 1000)
}

fn percent(part: u64, whole: u64) -> u8 {
    assert!(part <= whole && whole > 0, "{part} is no part of {whole}");
    u8::try_from(part * 100 / whole).expect("at most 100")
}

impl Controller {
    /// Chunks that are not offline, in percent.
    fn spare(&self) -> u8 {
        percent(self.flash.chunks.usable_count().into(), self.geometry().chunk_count().into())
    }

    /// Resets done of those the usable chunks were made for, in percent; all of it when no chunk is left.
    fn life_used(&self) -> u8 {
        let endurance = u64::from(self.config().wear.endurance);
        let whole = endurance * u64::from(self.flash.chunks.usable_count());
        if whole == 0 { 100 } else { percent(self.flash.chunks.cycles_total(), whole) }
    }

    pub(super) fn critical_warning(&self) -> u8 {
        let low = if self.spare() < SPARE_THRESHOLD { SPARE_LOW } else { 0 };
        let worn = if self.flash.chunks.wear_average() == u8::MAX { RELIABILITY_DEGRADED } else { 0 };
        let read_only = if self.flash.chunks.usable_count() == 0 { READ_ONLY } else { 0 };
        low | worn | read_only
    }

    /// The health log at `now`. Zero: what the drive does not measure (temperatures), and graceful power cycles,
    /// which it is not told of.
    pub(super) fn smart_log(&self, now: Nanos) -> SmartLog {
        let (counters, sector_bytes) = (self.flash.counters(), self.geometry().sector_bytes);
        let minute = Nanos::from_secs(60);
        let busy_now = self.health.busy_since.map_or(Nanos::ZERO, |since| now.saturating_since(since));
        SmartLog {
            critical_warning: self.critical_warning(),
            available_spare: self.spare(),
            available_spare_threshold: SPARE_THRESHOLD,
            percentage_used: self.life_used(),
            data_units_read: data_units(counters.sectors_read, sector_bytes),
            data_units_written: data_units(counters.sectors_written, sector_bytes),
            host_read_commands: self.health.read_commands.into(),
            host_write_commands: self.health.write_commands.into(),
            controller_busy_minutes: u128::from((self.health.busy + busy_now).0 / minute.0),
            power_cycles: u128::from(self.health.power_cuts) + 1,
            power_on_hours: u128::from(now.0 / (60 * minute.0)),
            unsafe_shutdowns: self.health.power_cuts.into(),
            media_errors: self.health.media_errors.into(),
            error_log_entries: self.health.errors.into(),
            ..SmartLog::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_counted_in_thousands_of_512_bytes_rounded_up() {
        assert_eq!((data_units(0, 4096), data_units(1, 4096)), (0, 1));
        assert_eq!((data_units(125, 4096), data_units(126, 4096)), (1, 2));
    }
}
