//! Requests to a target: waited for, or submitted and told by a poll.

use crate::ask::Asked;
use crate::boundary::{call, shared};
use crate::failure::Failure;
use crate::reply::{Owner, Reply, ReplyEnded, RequestEnded};
use crate::request::{
    OCSSD_OP_DISCARD, OCSSD_OP_FLUSH, OCSSD_OP_READ, OCSSD_OP_RESET_ZONE, OCSSD_OP_WRITE,
    OCSSD_OP_WRITE_ZEROES, Request,
};
use crate::target::TargetHandle;
use std::ffi::{c_int, c_void};

/// Carries out a request and waits for its end.
///
/// # Safety
/// The target is open, and the request's memory is there.
pub unsafe fn wait_for(target: *mut TargetHandle, request: &Request) -> Result<Reply, Failure> {
    // SAFETY: the caller's promise.
    let TargetHandle { core, lane, .. } = unsafe { shared(target, "target")? };
    let mut state = core.enter()?;
    let range = request.range(&state.requests.lane(*lane).shape)?;
    state.ask(*lane, range.parts())
}

/// Submits a request.
///
/// # Safety
/// The target is open, and the request's memory is there.
unsafe fn submit(target: *mut TargetHandle, request: *const Request, owner: Owner) -> Result<c_int, Failure> {
    // SAFETY: the caller's promise.
    let (target, request) = unsafe { (shared(target, "target")?, shared(request, "request")?) };
    let mut state = target.core.enter()?;
    let range = request.range(&state.requests.lane(target.lane).shape)?;
    let mut parts = range.parts();
    let first = parts.next().expect("a request is at least one part");
    if parts.next().is_some() {
        return Err(Failure::invalid(format!(
            "{} bytes are more than a request that is submitted can have; submit several",
            request.bytes
        )));
    }
    state.submit_to(target.lane, Asked { owner, ..first })
}

/// Reads `bytes` bytes from `offset` on and waits for them.
///
/// Errors: -EINVAL for what is no whole blocks of the target or lies outside, -EIO for what cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_read(
    target: *mut TargetHandle,
    data: *mut c_void,
    bytes: u64,
    offset: u64,
) -> c_int {
    let request = Request { op: OCSSD_OP_READ, flags: 0, offset, bytes, data };
    // SAFETY: the header asks for an open target and room for so many bytes.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Writes `bytes` bytes from `offset` on and waits until that is done; with `OCSSD_FUA` in `flags`, until it is durable.
///
/// Errors: -EINVAL for what is no whole blocks or lies outside (of a target with zones, also what is not at a zone's end),
/// -ENOSPC if bad chunks have used up the spare, -EIO if the media failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_write(
    target: *mut TargetHandle,
    data: *const c_void,
    bytes: u64,
    offset: u64,
    flags: u32,
) -> c_int {
    let request = Request { op: OCSSD_OP_WRITE, flags, offset, bytes, data: data.cast_mut() };
    // SAFETY: the header asks for an open target and so many bytes, which are only read.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Waits until everything that ended before is durable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_flush(target: *mut TargetHandle) -> c_int {
    let data = std::ptr::null_mut();
    let request = Request { op: OCSSD_OP_FLUSH, flags: 0, offset: 0, bytes: 0, data };
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Gives a range back: it reads as zeroes. Of a target with blocks smaller than the drive's sectors only whole sectors are.
///
/// Errors: -EOPNOTSUPP of a target that cannot (`linear`); else as `ocssd_target_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_discard(target: *mut TargetHandle, bytes: u64, offset: u64) -> c_int {
    let request = Request { op: OCSSD_OP_DISCARD, flags: 0, offset, bytes, data: std::ptr::null_mut() };
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Makes a range read as zeroes.
///
/// Errors: as `ocssd_target_discard`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_write_zeroes(
    target: *mut TargetHandle,
    bytes: u64,
    offset: u64,
) -> c_int {
    let request = Request { op: OCSSD_OP_WRITE_ZEROES, flags: 0, offset, bytes, data: std::ptr::null_mut() };
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Empties the zone that begins at `offset`, of a target with zones.
///
/// Errors: -EOPNOTSUPP of a target without, -EINVAL if no zone begins there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_reset_zone(target: *mut TargetHandle, offset: u64) -> c_int {
    let request = Request { op: OCSSD_OP_RESET_ZONE, flags: 0, offset, bytes: 0, data: std::ptr::null_mut() };
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Submits a request. `ended` is called with `context` by the poll that finds it ended; it may be NULL.
///
/// Returns 0 if it was taken. Errors: -EAGAIN if as many requests as the target's `depth`, or 64 MiB of the drive's, were
/// not told yet; -EINVAL for a request that cannot be; -EOPNOTSUPP for one that no target of this kind has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_submit(
    target: *mut TargetHandle,
    request: *const Request,
    ended: RequestEnded,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the header asks for an open target and a request.
    call(|| unsafe { submit(target, request, Owner::Callback(ended, context)) })
}

/// As `ocssd_target_submit`, for requests that bring more than their end: `ended` is told where an append landed, and how many
/// zones match a report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_submit_for_reply(
    target: *mut TargetHandle,
    request: *const Request,
    ended: ReplyEnded,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the header asks for an open target and a request.
    call(|| unsafe { submit(target, request, Owner::Replied(ended, context)) })
}

/// Tells ends of the target's requests, `budget` at most, by calling back. With the machine's clock it tells what is due and
/// never waits. In virtual time, if nothing is due and a request is in progress, time jumps to the next end.
/// Returns how many were told.
///
/// Errors: -EBUSY within a callback of the same target.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_poll(target: *mut TargetHandle, budget: u32) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target.
        let TargetHandle { core, lane, polling } = unsafe { shared(target, "target")? };
        let _ends = polling.begin()?;
        {
            let mut state = core.enter()?;
            state.turn();
            let is_virtual = state.host.clock().is_virtual();
            let requests = state.requests.lane(*lane);
            if budget > 0 && requests.in_progress > 0 && requests.ended.is_empty() && is_virtual {
                state.until(|state| !state.requests.lane(*lane).ended.is_empty());
            }
        }
        let mut told = 0;
        while told < c_int::try_from(budget).unwrap_or(c_int::MAX) {
            // Nothing is locked while the caller's code runs: it may submit.
            let Some(end) = core.enter()?.requests.lane(*lane).ended.pop_front() else { break };
            told += 1;
            // SAFETY: the callback and its argument are what the caller gave.
            unsafe { end.tell() };
        }
        Ok(told)
    })
}
