//! A request's header judged: what is to be done, or which error is the answer.
//!
//! Source: doc/proto.md, "Request types" and "Error values". Deliberately not here: doing it.

use super::handshake::Agreed;
use super::wire::{NbdError, REQUEST_BYTES_MAX, RequestHeader, command, command_flag};
use crate::exports::Export;
use crate::job::Work;
use crate::stats::Stats;
use ocssd_lightnvm::Status;

/// What a request comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads; `whole` if the answer must go out at once.
    Read {
        /// One answer for all of it: a simple reply, or one chunk because the client asked so.
        whole: bool,
    },
    /// Writes what follows the header.
    Write,
    /// Writes zeroes as any data, so that the range holds something.
    Zeroes,
    /// One job over the whole range.
    Range(Work),
    /// Reads, for whatever keeps what was read.
    Cache,
    /// Makes durable what was answered.
    Flush,
    /// Tells what holds data; of the first extent only if `one`.
    Map {
        /// One extent is enough.
        one: bool,
    },
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NbdPlan {
    /// What.
    pub kind: Kind,
    /// Answered when durable only.
    pub fua: bool,
}

/// Judges a header.
///
/// # Errors
/// What the client is to hear.
pub fn plan(header: &RequestHeader, export: &Export, agreed: &Agreed) -> Result<NbdPlan, NbdError> {
    let kind = kind(header, export, agreed)?;
    let fua = header.flags & command_flag::FUA != 0;
    if kind == Kind::Flush {
        return Ok(NbdPlan { kind, fua: false });
    }
    let changes = matches!(kind, Kind::Write | Kind::Zeroes | Kind::Range(_));
    if changes && export.read_only {
        return Err(NbdError::Perm);
    }
    let block = u64::from(export.block_bytes);
    let aligned = header.offset.is_multiple_of(block) && u64::from(header.length).is_multiple_of(block);
    let payload = matches!(kind, Kind::Read { .. } | Kind::Write | Kind::Cache);
    if header.length == 0 || !aligned || payload && header.length > REQUEST_BYTES_MAX {
        return Err(NbdError::Inval);
    }
    let end = header.offset.checked_add(u64::from(header.length));
    if end.is_none_or(|end| end > export.bytes()) {
        let writes = changes && kind != Kind::Range(Work::Discard);
        return Err(if writes { NbdError::NoSpc } else { NbdError::Inval });
    }
    Ok(NbdPlan { kind, fua: fua && changes })
}

fn kind(header: &RequestHeader, export: &Export, agreed: &Agreed) -> Result<Kind, NbdError> {
    let has = |flag: u16| header.flags & flag != 0;
    let (kind, allowed) = match header.command {
        command::READ if agreed.structured => (Kind::Read { whole: has(command_flag::DF) }, command_flag::DF),
        command::READ => (Kind::Read { whole: true }, 0),
        command::WRITE => (Kind::Write, 0),
        command::FLUSH => (Kind::Flush, 0),
        command::TRIM => (Kind::Range(Work::Discard), 0),
        command::CACHE => (Kind::Cache, 0),
        command::WRITE_ZEROES => {
            let kind = if has(command_flag::NO_HOLE) { Kind::Zeroes } else { Kind::Range(Work::WriteZeroes) };
            if has(command_flag::FAST_ZERO) && (kind == Kind::Zeroes || !export.fast_zero) {
                return Err(NbdError::NotSup);
            }
            (kind, command_flag::NO_HOLE | command_flag::FAST_ZERO)
        }
        command::BLOCK_STATUS if agreed.allocation => {
            (Kind::Map { one: has(command_flag::REQ_ONE) }, command_flag::REQ_ONE)
        }
        _ => return Err(NbdError::Inval),
    };
    if header.flags & !(allowed | command_flag::FUA) != 0 { Err(NbdError::Inval) } else { Ok(kind) }
}

/// Counts a request.
pub fn count(stats: &mut Stats, plan: &NbdPlan) {
    let counter = match plan.kind {
        Kind::Read { .. } => &mut stats.reads,
        Kind::Write => &mut stats.writes,
        Kind::Zeroes | Kind::Range(Work::WriteZeroes) => &mut stats.zeroes,
        Kind::Range(_) => &mut stats.trims,
        Kind::Cache => &mut stats.caches,
        Kind::Flush => &mut stats.flushes,
        Kind::Map { .. } => &mut stats.maps,
    };
    *counter += 1;
    stats.fuas += u64::from(plan.fua);
}

/// What a client hears of a status that is no success.
#[must_use]
pub fn error_of(status: Status) -> Option<NbdError> {
    match status {
        Status::SUCCESS | Status::HIGH_ECC | Status::HIGH_ECC_12 => None,
        Status::WRITE_TO_READ_ONLY => Some(NbdError::Perm),
        Status::CAPACITY_EXCEEDED => Some(NbdError::NoSpc),
        Status::LBA_OUT_OF_RANGE | Status::INVALID_FIELD => Some(NbdError::Inval),
        Status::INVALID_OPCODE => Some(NbdError::NotSup),
        Status::NAMESPACE_NOT_READY => Some(NbdError::Shutdown),
        _ => Some(NbdError::Io),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::ExportId;

    fn export(read_only: bool) -> Export {
        Export { block_bytes: 4096, read_only, ..Export::example() }
    }

    fn check(command: u16, flags: u16, offset: u64, length: u32, expected: Result<Kind, NbdError>) {
        let header = RequestHeader { flags, command, cookie: 1, offset, length };
        let agreed = Agreed { export: ExportId(0), structured: true, allocation: true };
        let found = plan(&header, &export(false), &agreed).map(|plan| plan.kind);
        assert_eq!(found, expected, "{header:?}");
    }

    #[test]
    fn a_request_within_the_export_and_its_blocks_is_carried_out() {
        let end = export(false).bytes();
        check(command::READ, 0, end - 4096, 4096, Ok(Kind::Read { whole: false }));
        check(command::READ, command_flag::DF, 0, 8192, Ok(Kind::Read { whole: true }));
        check(command::WRITE, command_flag::FUA, 0, 4096, Ok(Kind::Write));
        check(command::FLUSH, 0, 77, 3, Ok(Kind::Flush));
        check(command::TRIM, 0, 0, 4096, Ok(Kind::Range(Work::Discard)));
        check(command::CACHE, 0, 4096, 4096, Ok(Kind::Cache));
        check(command::WRITE_ZEROES, 0, 0, 4096, Ok(Kind::Range(Work::WriteZeroes)));
        check(command::WRITE_ZEROES, command_flag::FAST_ZERO, 0, 4096, Ok(Kind::Range(Work::WriteZeroes)));
        check(command::WRITE_ZEROES, command_flag::NO_HOLE, 0, 4096, Ok(Kind::Zeroes));
        check(command::BLOCK_STATUS, command_flag::REQ_ONE, 0, 4096, Ok(Kind::Map { one: true }));
    }

    #[test]
    fn what_cannot_be_done_has_the_error_the_protocol_names() {
        let (end, inval, nospc) = (export(false).bytes(), Err(NbdError::Inval), Err(NbdError::NoSpc));
        check(command::READ, 0, end, 4096, inval);
        check(command::READ, 0, u64::MAX - 4095, 4096, inval);
        check(command::READ, 0, 1, 4096, inval);
        check(command::READ, 0, 0, 4095, inval);
        check(command::READ, 0, 0, 0, inval);
        check(command::READ, command_flag::NO_HOLE, 0, 4096, inval);
        check(command::WRITE, 0, end, 4096, nospc);
        check(command::WRITE, command_flag::DF, 0, 4096, inval);
        check(command::WRITE_ZEROES, 0, end - 4096, 8192, nospc);
        check(command::TRIM, 0, end - 4096, 8192, inval);
        check(command::BLOCK_STATUS, 0, end, 4096, inval);
        check(
            command::WRITE_ZEROES,
            command_flag::NO_HOLE | command_flag::FAST_ZERO,
            0,
            4096,
            Err(NbdError::NotSup),
        );
        check(8, 0, 0, 4096, inval);
        check(command::READ, 0, 0, REQUEST_BYTES_MAX + 4096, inval);
    }

    #[test]
    fn a_read_only_export_refuses_changes_and_nothing_else() {
        let agreed = Agreed { export: ExportId(0), structured: false, allocation: false };
        let commands = [command::WRITE, command::TRIM, command::WRITE_ZEROES, command::READ, command::FLUSH];
        let found = commands.map(|command| {
            let header = RequestHeader { flags: 0, command, cookie: 0, offset: 0, length: 4096 };
            plan(&header, &export(true), &agreed).err()
        });
        let perm = Some(NbdError::Perm);
        assert_eq!(found, [perm, perm, perm, None, None]);
        let header =
            RequestHeader { flags: 0, command: command::BLOCK_STATUS, cookie: 0, offset: 0, length: 4096 };
        assert_eq!(plan(&header, &export(true), &agreed), Err(NbdError::Inval), "it was not negotiated");
    }

    #[test]
    fn every_status_that_is_no_success_is_an_error() {
        for status in Status::all() {
            assert_eq!(error_of(status).is_none(), status.has_data(), "{status}");
        }
    }
}
