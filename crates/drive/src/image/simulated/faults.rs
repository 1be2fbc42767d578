//! What goes wrong below a simulated file, and how often.

use super::disk::{PAGE_BYTES, Unsynced};
use ocssd_base::Prng;
use std::io;

/// Chances are in millionths.
const CERTAIN: u64 = 1_000_000;

/// What goes wrong. Nothing does by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFaults {
    /// Pages of 4096 bytes that the file may have in all; a write that needs one more stores what fits and fails with
    /// ENOSPC. No limit, if there is none.
    pub pages_max: Option<u64>,
    /// The file system was mounted read-only, as after an error: writes fail with EROFS, and so does a sync that has
    /// something to write.
    pub is_read_only: bool,
    /// Chance in millionths that a write fails with EIO. Pages of it may be stored.
    pub write_error: u32,
    /// Chance in millionths that a read fails with EIO.
    pub read_error: u32,
    /// Chance in millionths that a sync fails with EIO: what it did not write is taken for written from then on.
    pub sync_error: u32,
    /// What a failed sync has written.
    pub failed_sync: Unsynced,
    /// Chance in millionths that a read does a part of what it was asked for, or a write some of its pages, or that either is
    /// interrupted (EINTR).
    pub short: u32,
    /// After so many more writes every one fails with EIO. No limit, if there is none.
    pub writes_left: Option<u32>,
}

/// What one call is to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    Nothing,
    /// Only so many bytes.
    Short(usize),
    /// EINTR.
    Interrupted,
    /// Only so many bytes, and the error.
    Error(usize),
}

impl FileFaults {
    /// What a call for `length` bytes meets, which fails with a chance of `error` millionths.
    pub(super) fn draw(&self, prng: &mut Prng, error: u32, length: usize) -> Met {
        let mut part = || {
            let length = u64::try_from(length).expect("a length fits 64 bits");
            usize::try_from(prng.below(length.max(1))).expect("below a length")
        };
        let part = if self.short == 0 && error == 0 { 0 } else { part() };
        if prng.below(CERTAIN) < u64::from(error) {
            return Met::Error(part);
        }
        match prng.below(CERTAIN) < u64::from(self.short) {
            false => Met::Nothing,
            true if part == 0 => Met::Interrupted,
            true => Met::Short(part),
        }
    }

    /// As [`Self::draw`], for a write from byte `at` on: what it stores ends with a page, for the system does not tear one.
    pub(super) fn draw_write(&self, prng: &mut Prng, length: usize, at: u64) -> Met {
        let whole = |part: usize| {
            let within = usize::try_from(at).map_or(0, |at| at % PAGE_BYTES);
            ((within + part) / PAGE_BYTES * PAGE_BYTES).saturating_sub(within)
        };
        match self.draw(prng, self.write_error, length) {
            Met::Short(part) if whole(part) == 0 => Met::Interrupted,
            Met::Short(part) => Met::Short(whole(part)),
            Met::Error(part) => Met::Error(whole(part)),
            met => met,
        }
    }

    /// One more write is asked for.
    pub(super) fn count_write(&mut self) -> io::Result<()> {
        if self.is_read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        match &mut self.writes_left {
            None => Ok(()),
            Some(0) => Err(disk_error()),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }
}

/// EIO, for which the standard library has no name.
pub(super) fn disk_error() -> io::Error {
    io::Error::from_raw_os_error(EIO)
}

/// The number of it on every Unix.
const EIO: i32 = 5;
