//! A message judged: what is to be done about it, or which error is the answer. Files behave as block devices do: their size
//! stands.
//!
//! Deliberately not here: doing it.

use super::open_request::Task;
use super::wire::{Request, attribute, fallocate};
use crate::exports::Export;
use crate::job::Work;
use crate::pool::PIECE_BYTES_MAX;
use crate::stats::Stats;
use ocssd_base::usize_of;
use rustix::io::Errno;
use std::ops::Range;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FusePlan {
    /// Something with the content of a file.
    Content {
        /// What.
        task: Task,
        /// With which of its bytes.
        bytes: Range<u64>,
    },
    /// It is answered from what is known.
    AtOnce,
    /// Nothing, which is no error: the range is empty.
    Nothing,
}

/// Bits of the flags of `open` that say what a file is opened for, and that for reading only (`O_ACCMODE`, `O_RDONLY`).
const ACCESS_MODE: u32 = 0b11;
const READ_ONLY: u32 = 0;

/// Judges a message about a file, or about the directory.
///
/// # Errors
/// What the program hears.
pub fn plan(request: &Request<'_>, file: Option<&Export>) -> Result<FusePlan, Errno> {
    match (*request, file) {
        (Request::Other, _) => Err(Errno::NOSYS),
        (Request::Rearrange, _) => Err(Errno::PERM),
        (Request::Setattr { valid, size, .. }, file) => setattr(valid, size, file),
        (Request::Open { flags }, Some(export)) if export.read_only && flags & ACCESS_MODE != READ_ONLY => {
            Err(Errno::ROFS)
        }
        (
            Request::Open { .. } | Request::Read { .. } | Request::Write { .. } | Request::Fallocate { .. },
            None,
        ) => Err(Errno::ISDIR),
        (Request::Read { offset, size }, Some(export)) => {
            // More than was agreed on.
            if usize_of(size) > PIECE_BYTES_MAX {
                return Err(Errno::INVAL);
            }
            let end = offset.saturating_add(u64::from(size)).min(export.bytes());
            Ok(content(Task::Read, offset..end))
        }
        (Request::Write { offset, size }, Some(export)) => write(offset, size, export),
        (Request::Fallocate { offset, length, mode }, Some(export)) => clear(offset, length, mode, export),
        (Request::Fsync, Some(_)) => Ok(FusePlan::Content { task: Task::Flush, bytes: 0..0 }),
        _ => Ok(FusePlan::AtOnce),
    }
}

/// Work with bytes, if there are any.
fn content(task: Task, bytes: Range<u64>) -> FusePlan {
    if bytes.start < bytes.end { FusePlan::Content { task, bytes } } else { FusePlan::Nothing }
}

/// A size that changes nothing, and times, may be set.
fn setattr(valid: u32, size: u64, file: Option<&Export>) -> Result<FusePlan, Errno> {
    let resizes = valid & attribute::SIZE != 0 && file.is_none_or(|export| export.bytes() != size);
    if resizes || valid & attribute::ACCESS != 0 || file.is_none() {
        return Err(Errno::PERM);
    }
    let sets_time = valid & (attribute::MTIME | attribute::MTIME_NOW) != 0;
    if sets_time && file.is_some_and(|export| export.read_only) {
        return Err(Errno::ROFS);
    }
    Ok(FusePlan::AtOnce)
}

/// A write over the end goes as far as the end.
fn write(offset: u64, size: u32, export: &Export) -> Result<FusePlan, Errno> {
    if export.read_only {
        return Err(Errno::ROFS);
    }
    if size > 0 && offset >= export.bytes() {
        return Err(Errno::NOSPC);
    }
    let end = offset.saturating_add(u64::from(size)).min(export.bytes());
    // A write of nothing is answered as one, with its count.
    Ok(FusePlan::Content { task: Task::Write, bytes: offset..end.max(offset) })
}

/// A hole is punched as far as the end, as fallocate(2) has it; zeroes are written within the file only.
fn clear(offset: u64, length: u64, mode: u32, export: &Export) -> Result<FusePlan, Errno> {
    if export.read_only {
        return Err(Errno::ROFS);
    }
    let end = offset.saturating_add(length);
    match mode & !fallocate::KEEP_SIZE {
        fallocate::PUNCH_HOLE => {
            // Only who has a map reads zeroes for what was given up.
            let work = if export.has_map { Work::Discard } else { Work::WriteZeroes };
            Ok(content(Task::Clear(work), offset..end.min(export.bytes())))
        }
        fallocate::ZERO_RANGE if end > export.bytes() => Err(Errno::NOSPC),
        fallocate::ZERO_RANGE => Ok(content(Task::Clear(Work::WriteZeroes), offset..end)),
        _ => Err(Errno::OPNOTSUPP),
    }
}

/// Counts a request.
pub fn count(stats: &mut Stats, task: Task, bytes: u64) {
    let counter = match task {
        Task::Read => &mut stats.reads,
        Task::Write => {
            stats.received_bytes += bytes;
            &mut stats.writes
        }
        Task::Clear(Work::Discard) => &mut stats.trims,
        Task::Clear(_) => &mut stats.zeroes,
        Task::Flush => &mut stats.flushes,
    };
    *counter += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// 51 200 bytes.
    fn export(read_only: bool) -> Export {
        Export { read_only, ..Export::example() }
    }

    fn check(request: Request<'_>, expected: Result<FusePlan, Errno>) {
        let both = [plan(&request, Some(&export(false))), expected];
        assert_eq!(both[0], both[1], "{request:?}");
    }

    fn does(task: Task, bytes: Range<u64>) -> Result<FusePlan, Errno> {
        Ok(FusePlan::Content { task, bytes })
    }

    #[test]
    fn content_ends_where_the_file_does() {
        check(Request::Read { offset: 1, size: 7 }, does(Task::Read, 1..8));
        check(Request::Read { offset: 51_199, size: 4096 }, does(Task::Read, 51_199..51_200));
        check(Request::Read { offset: 51_200, size: 4096 }, Ok(FusePlan::Nothing));
        check(Request::Read { offset: u64::MAX, size: 4096 }, Ok(FusePlan::Nothing));
        check(Request::Read { offset: 0, size: u32::MAX }, Err(Errno::INVAL));
        check(Request::Write { offset: 51_000, size: 512 }, does(Task::Write, 51_000..51_200));
        check(Request::Write { offset: 51_200, size: 1 }, Err(Errno::NOSPC));
        check(Request::Write { offset: u64::MAX, size: 1 }, Err(Errno::NOSPC));
        check(Request::Fsync, does(Task::Flush, 0..0));
    }

    #[test]
    fn holes_and_zeroes_are_ranges_and_nothing_grows() {
        let keep = fallocate::KEEP_SIZE;
        let ask = |mode, offset, length| Request::Fallocate { offset, length, mode };
        let hole = Task::Clear(Work::Discard);
        let zeroes = Task::Clear(Work::WriteZeroes);
        check(ask(fallocate::PUNCH_HOLE | keep, 100, 1000), does(hole, 100..1100));
        check(ask(fallocate::PUNCH_HOLE | keep, 51_000, u64::MAX), does(hole, 51_000..51_200));
        check(ask(fallocate::PUNCH_HOLE | keep, 60_000, 1), Ok(FusePlan::Nothing));
        check(ask(fallocate::ZERO_RANGE, 0, 51_200), does(zeroes, 0..51_200));
        check(ask(fallocate::ZERO_RANGE | keep, 0, 51_201), Err(Errno::NOSPC));
        check(ask(0, 0, 512), Err(Errno::OPNOTSUPP));
        check(ask(keep, 0, 512), Err(Errno::OPNOTSUPP));
        let without_map = Export { has_map: false, ..export(false) };
        let punch = ask(fallocate::PUNCH_HOLE | keep, 0, 512);
        assert_eq!(plan(&punch, Some(&without_map)), does(zeroes, 0..512), "it must read as zeroes");
    }

    #[test]
    fn sizes_stand_and_times_may_be_set() {
        let ask = |valid, size| Request::Setattr { valid, size, mtime: Duration::ZERO };
        check(ask(attribute::SIZE, 51_200), Ok(FusePlan::AtOnce));
        check(ask(attribute::SIZE, 0), Err(Errno::PERM));
        check(ask(attribute::SIZE, 51_201), Err(Errno::PERM));
        check(ask(attribute::MTIME, 0), Ok(FusePlan::AtOnce));
        check(ask(1, 0), Err(Errno::PERM));
        check(Request::Rearrange, Err(Errno::PERM));
        check(Request::Other, Err(Errno::NOSYS));
        assert_eq!(plan(&ask(attribute::MTIME, 0), None), Err(Errno::PERM), "the directory is as it is");
    }

    #[test]
    fn a_file_that_may_not_be_changed_is_not() {
        let found = [
            Request::Open { flags: 2 },
            Request::Open { flags: 1 },
            Request::Write { offset: 0, size: 1 },
            Request::Fallocate { offset: 0, length: 1, mode: fallocate::PUNCH_HOLE },
            Request::Setattr { valid: attribute::MTIME, size: 0, mtime: Duration::ZERO },
        ]
        .map(|request| plan(&request, Some(&export(true))));
        assert!(found.iter().all(|one| *one == Err(Errno::ROFS)), "{found:?}");
        assert_eq!(plan(&Request::Open { flags: 0x8000 }, Some(&export(true))), Ok(FusePlan::AtOnce));
        assert!(plan(&Request::Read { offset: 0, size: 1 }, Some(&export(true))).is_ok());
    }
}
