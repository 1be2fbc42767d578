//! Ends of requests to targets, as the caller is told of them.
//!
//! Deliberately not here: when they are told (a poll, or the end of a call that waits).

use crate::failure::Failure;
use ocssd_lightnvm::Status;
use std::ffi::{c_int, c_void};

/// What came of a request to a target. What does not apply is zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// 0, or a negative number of errno.h: `ocssd_last_error` says why within the callback.
    pub result: c_int,
    /// The drive's status (SCT and SC), 0 for success.
    pub status: u16,
    /// Zero.
    pub reserved: u16,
    /// Where an append landed: its first byte on the target, or in the table.
    pub offset: u64,
    /// How many: zones that match a report, from its zone on; tables from a name on; keys of a list; pages that are stored.
    pub count: u64,
    /// Bytes: of the whole page or value; of a list of keys; of all pages; that were read of a table; of all attributes.
    pub bytes: u64,
    /// Of a session and of a flush: the last flush of the session that is applied.
    pub applied: u64,
    /// Of a session and of a flush: the last flush of the session that survives a power cut.
    pub durable: u64,
    /// Which row of a page table or of an edit, or entry of a batch, it was refused for, from 0; all ones without.
    pub entry: u64,
}

/// No row and no entry.
const NO_ENTRY: u64 = u64::MAX;

impl Reply {
    /// A reply with this status and nothing else.
    pub const fn of(status: Status) -> Self {
        Self {
            result: 0,
            status: status.to_bits(),
            reserved: 0,
            offset: 0,
            count: 0,
            bytes: 0,
            applied: 0,
            durable: 0,
            entry: NO_ENTRY,
        }
    }
}

/// Called by `ocssd_target_poll` when a block request has ended: `result` is 0 or a negative number of errno.h, `status` the
/// drive's (SCT and SC, 0 for success); `ocssd_last_error` says what failed. It may submit, and call everything but polls and
/// closes of the target that calls it. It must return: no longjmp, no C++ exception.
pub type RequestEnded = Option<unsafe extern "C" fn(context: *mut c_void, result: c_int, status: u16)>;

/// Called by `ocssd_target_poll` when a request has ended whose reply has more to tell. The reply is there during the call. The
/// rules are those of `ocssd_request_ended`.
pub type ReplyEnded = Option<unsafe extern "C" fn(context: *mut c_void, reply: *const Reply)>;

/// Who is told of a request's end.
#[derive(Clone, Copy)]
pub enum Owner {
    /// The call that waits.
    Waiting,
    /// A callback, by the next poll.
    Callback(RequestEnded, *mut c_void),
    /// A callback that wants the whole reply, by the next poll.
    Replied(ReplyEnded, *mut c_void),
}

/// How a request ended.
#[derive(Debug)]
pub struct End {
    /// What it brought.
    pub reply: Reply,
    /// What failed, in words.
    pub words: Option<String>,
}

impl End {
    /// The reply, or why there is none.
    pub fn into_result(self) -> Result<Reply, Failure> {
        let Self { reply, words } = self;
        match words {
            None => Ok(reply),
            Some(words) => Err(Failure::new(-reply.result, words)),
        }
    }
}

/// The end of a request whose callback was not called yet.
pub struct Told {
    /// Whom to call.
    pub owner: Owner,
    /// What with.
    pub end: End,
}

impl Told {
    /// Calls back.
    ///
    /// # Safety
    /// The callback and its argument are what the caller of the library gave for this.
    pub unsafe fn tell(self) {
        let Self { owner, end: End { reply, words } } = self;
        if let Some(words) = words {
            Failure::new(-reply.result, words).keep();
        }
        match owner {
            Owner::Callback(Some(ended), context) => {
                // SAFETY: the caller's promise.
                unsafe { ended(context, reply.result, reply.status) }
            }
            Owner::Replied(Some(ended), context) => {
                // SAFETY: the caller's promise; the reply outlives the call.
                unsafe { ended(context, &raw const reply) }
            }
            Owner::Callback(None, _) | Owner::Replied(None, _) | Owner::Waiting => {}
        }
    }
}
