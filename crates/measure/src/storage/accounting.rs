//! Proof that I/O was direct: what the system counted below, against what was asked of it, and what the page cache holds.
//!
//! Two counters, of which either may be missing. The process's own (`/proc/self/io`, proc(5)) counts bytes that this program
//! made the storage layer move; the disk's (`/sys/block/*/stat`) everybody's, and only if the file system says which disk
//! that is. Deliberately not here: judging, which is rule L07's.

use super::file_target::FileCounts;
use super::guard::{DeviceNumber, SystemRoot};
use super::resident_share;
use super::subject::Subject;
use serde_json::{Value, json};

/// Windows of the file that are looked at for resident pages (chosen: 16 of 64 MiB are asked about in milliseconds).
const WINDOWS: u64 = 16;

/// The counters at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reading {
    process: Option<(u64, u64)>,
    disk: Option<(u64, u64)>,
}

/// Watches a subject from its making on.
#[derive(Debug)]
pub struct IoAccounting {
    system: SystemRoot,
    device: DeviceNumber,
    before: Reading,
}

/// What was asked, and what the system saw of it. Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Attestation {
    /// Asked to be read.
    pub asked_read: u64,
    /// Asked to be written.
    pub asked_written: u64,
    /// Read and written by this process, as the kernel counts at the storage layer.
    pub process: Option<(u64, u64)>,
    /// Read and written by the disk, by anyone.
    pub disk: Option<(u64, u64)>,
    /// Share of the file that is in the page cache.
    pub resident: Option<f64>,
    /// Reads that were compared with where they came from, and those that held something else.
    pub checked: (u64, u64),
}

impl IoAccounting {
    /// Begins to watch.
    #[must_use]
    pub fn new(system: SystemRoot, device: DeviceNumber) -> Self {
        let mut accounting = Self { system, device, before: Reading::default() };
        accounting.before = accounting.reading();
        accounting
    }

    fn reading(&self) -> Reading {
        let text = self.system.text("proc/self/io");
        let number = |name: &str| -> Option<u64> {
            let line = text.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        let process = number("read_bytes:").zip(number("write_bytes:"));
        let disk = self.system.sectors(self.device).map(|(read, written)| (read * 512, written * 512));
        Reading { process, disk }
    }

    /// What happened since, of which `asked` was asked for.
    #[must_use]
    pub fn attest(&self, subject: &Subject, asked: FileCounts) -> Attestation {
        let now = self.reading();
        let since = |now: Option<(u64, u64)>, before: Option<(u64, u64)>| {
            let (now, before) = (now?, before?);
            Some((now.0.saturating_sub(before.0), now.1.saturating_sub(before.1)))
        };
        // The kernel answers "all of it" to who may not write the file (mincore(2)).
        let resident =
            if subject.writable { resident_share(&subject.file, subject.bytes, WINDOWS).ok() } else { None };
        // The kernel counts a process's reads where block devices are asked: of a file system on none (FUSE, a network), that
        // nothing was read says nothing.
        let process = since(now.process, self.before.process);
        let process =
            process.filter(|&(read, _)| read > 0 || asked.read_bytes == 0 || subject.disk.is_some());
        Attestation {
            asked_read: asked.read_bytes,
            asked_written: asked.written_bytes,
            process,
            disk: since(now.disk, self.before.disk),
            resident,
            checked: (asked.checked, asked.foreign),
        }
    }
}

impl Attestation {
    /// As part of a result, read back by `lint`.
    #[must_use]
    pub fn as_value(&self) -> Value {
        let pair = |pair: Option<(u64, u64)>| {
            pair.map(|(read, written)| json!({ "read_bytes": read, "written_bytes": written }))
        };
        json!({
            "asked": { "read_bytes": self.asked_read, "written_bytes": self.asked_written },
            "process": pair(self.process),
            "disk": pair(self.disk),
            "resident_share": self.resident,
            "reads_checked": self.checked.0,
            "reads_foreign": self.checked.1,
        })
    }

    /// One sentence for people.
    #[must_use]
    pub fn sentence(&self) -> String {
        let share = |seen: u64, asked: u64| {
            if asked == 0 { "-".to_owned() } else { format!("{:.3}", as_f64(seen) / as_f64(asked)) }
        };
        let pair = |name: &str, pair: Option<(u64, u64)>| {
            pair.map_or_else(
                || format!("{name}: not known"),
                |(read, written)| {
                    format!(
                        "{name}: {} of reads, {} of writes",
                        share(read, self.asked_read),
                        share(written, self.asked_written)
                    )
                },
            )
        };
        let resident =
            self.resident.map_or_else(|| "not known".to_owned(), |share| format!("{:.1} %", share * 100.0));
        format!(
            "seen below of what was asked: {}; {}; in the page cache: {resident}; {} of {} reads checked held other data",
            pair("this process", self.process),
            pair("the disk, by anyone", self.disk),
            self.checked.1,
            self.checked.0
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "shares of bytes, to three digits")]
const fn as_f64(number: u64) -> f64 {
    number as f64
}
