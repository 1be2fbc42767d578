//! Requests to a target: waited for, or submitted and told by a poll.

use crate::boundary::{Memory, call, shared};
use crate::failure::Failure;
use crate::requests::{Asked, Lane, Owner, REQUEST_BYTES_MAX, RequestEnded};
use crate::state::State;
use crate::status::failure_of;
use crate::target::TargetHandle;
use ocssd_lightnvm::block::BlockOp;
use std::ffi::{c_int, c_void};

/// Fills `data`.
pub const OCSSD_OP_READ: u32 = 0;
/// Stores `data`.
pub const OCSSD_OP_WRITE: u32 = 1;
/// Ends when everything that ended before is durable. Offset and bytes are 0.
pub const OCSSD_OP_FLUSH: u32 = 2;
/// The range reads as zeroes, and its memory on the drive may be used for something else.
pub const OCSSD_OP_DISCARD: u32 = 3;
/// The range reads as zeroes.
pub const OCSSD_OP_WRITE_ZEROES: u32 = 4;
/// Empties the zone that begins at the offset, of a target with zones. Bytes are 0.
pub const OCSSD_OP_RESET_ZONE: u32 = 5;

/// A write ends only when it is durable.
pub const OCSSD_FUA: u32 = 1;

/// A request to a target. Offset and bytes are multiples of the target's `block_bytes`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// `OCSSD_OP_READ` and so on.
    pub op: u32,
    /// `OCSSD_FUA` of a write, or 0.
    pub flags: u32,
    /// First byte.
    pub offset: u64,
    /// How many bytes; at most `request_bytes_max` of reads and writes.
    pub bytes: u64,
    /// What is written: it may change when the call that submits returns. Or where to put what is read: it must stay until the
    /// request has ended. NULL of others.
    pub data: *mut c_void,
}

/// A range of blocks with its memory, checked against the target.
struct Range {
    op: BlockOp,
    block: u64,
    count: u64,
    memory: Memory,
}

impl Request {
    fn op(&self) -> Result<BlockOp, Failure> {
        let fua = self.flags == OCSSD_FUA;
        if self.flags != 0 && !(fua && self.op == OCSSD_OP_WRITE) {
            return Err(Failure::invalid(format!(
                "flags are {:#x}, but only writes have one, OCSSD_FUA",
                self.flags
            )));
        }
        Ok(match self.op {
            OCSSD_OP_READ => BlockOp::Read,
            OCSSD_OP_WRITE => BlockOp::Write { fua },
            OCSSD_OP_FLUSH => BlockOp::Flush,
            OCSSD_OP_DISCARD => BlockOp::Discard,
            OCSSD_OP_WRITE_ZEROES => BlockOp::WriteZeroes,
            OCSSD_OP_RESET_ZONE => BlockOp::ResetZone,
            other => return Err(Failure::invalid(format!("op is {other}, but the operations are 0 to 5"))),
        })
    }

    fn range(&self, lane: &Lane) -> Result<Range, Failure> {
        let op = self.op()?;
        let (offset, bytes, block_bytes) = (self.offset, self.bytes, u64::from(lane.block_bytes));
        let has_range = !matches!(op, BlockOp::Flush | BlockOp::ResetZone);
        let has_data = matches!(op, BlockOp::Read | BlockOp::Write { .. });
        if !offset.is_multiple_of(block_bytes) || !bytes.is_multiple_of(block_bytes) {
            return Err(Failure::invalid(format!(
                "{bytes} bytes at {offset} are no whole blocks of {block_bytes} bytes"
            )));
        }
        if (bytes == 0) == has_range {
            let what = if has_range { "has no bytes" } else { "has bytes, and should have 0" };
            return Err(Failure::invalid(format!("a request of operation {} {what}", self.op)));
        }
        let size = lane.block_count * block_bytes;
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= size);
        if op != BlockOp::Flush && (!is_inside || offset >= size) || op == BlockOp::Flush && offset != 0 {
            return Err(Failure::invalid(format!(
                "{bytes} bytes at {offset} do not lie in the target's {size}"
            )));
        }
        let memory = if has_data { Memory::new(self.data, bytes, "data")? } else { Memory::NONE };
        if !has_data && !self.data.is_null() {
            return Err(Failure::invalid(format!(
                "a request of operation {} has no data; pass NULL",
                self.op
            )));
        }
        Ok(Range { op, block: offset / block_bytes, count: bytes / block_bytes, memory })
    }
}

impl Range {
    /// The requests it takes: one, or of reads and writes one for each part of the largest size.
    fn parts(&self, block_bytes: u32) -> impl Iterator<Item = Asked> {
        let Self { op, block, count, memory } = *self;
        let has_data = matches!(op, BlockOp::Read | BlockOp::Write { .. });
        let largest = u64::try_from(REQUEST_BYTES_MAX).expect("1 MiB") / u64::from(block_bytes);
        // Parts of a range that is not copied are bounded by the type of a request's count.
        let part = if has_data { largest } else { u64::from(u32::MAX) };
        (0..count.div_ceil(part).max(1)).map(move |number| {
            let first = number * part;
            let blocks = part.min(count - first);
            let memory = memory.part(first * u64::from(block_bytes), blocks * u64::from(block_bytes));
            let count = u32::try_from(blocks).expect("at most a part");
            let block = block + first;
            Asked {
                op,
                block,
                count,
                memory: if has_data { memory } else { Memory::NONE },
                owner: Owner::Waiting,
            }
        })
    }
}

/// Carries out a request and waits for its end.
///
/// # Safety
/// The target is open, and the request's memory is there.
unsafe fn wait_for(target: *mut TargetHandle, request: &Request) -> Result<c_int, Failure> {
    // SAFETY: the caller's promise.
    let TargetHandle { core, lane, .. } = unsafe { shared(target, "target")? };
    let mut state = core.enter()?;
    let range = request.range(state.requests.lane(*lane))?;
    let block_bytes = state.requests.lane(*lane).block_bytes;
    let status = state.ask(*lane, range.parts(block_bytes))?;
    let Request { op, offset, bytes, .. } = *request;
    failure_of(status, || format!("operation {op} of {bytes} bytes at {offset}"))?;
    Ok(0)
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
    call(|| unsafe { wait_for(target, &request) })
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
    call(|| unsafe { wait_for(target, &request) })
}

/// Waits until everything that ended before is durable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_flush(target: *mut TargetHandle) -> c_int {
    let data = std::ptr::null_mut();
    let request = Request { op: OCSSD_OP_FLUSH, flags: 0, offset: 0, bytes: 0, data };
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, &request) })
}

/// Gives a range back: it reads as zeroes. Of a target with blocks smaller than the drive's sectors only whole sectors are.
///
/// Errors: -EOPNOTSUPP of a target that cannot (`linear`); else as `ocssd_target_write`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_discard(target: *mut TargetHandle, bytes: u64, offset: u64) -> c_int {
    let request = Request { op: OCSSD_OP_DISCARD, flags: 0, offset, bytes, data: std::ptr::null_mut() };
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, &request) })
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
    call(|| unsafe { wait_for(target, &request) })
}

/// Empties the zone that begins at `offset`, of a target with zones.
///
/// Errors: -EOPNOTSUPP of a target without, -EINVAL if no zone begins there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_reset_zone(target: *mut TargetHandle, offset: u64) -> c_int {
    let request = Request { op: OCSSD_OP_RESET_ZONE, flags: 0, offset, bytes: 0, data: std::ptr::null_mut() };
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, &request) })
}

/// Submits a request. `ended` is called with `context` by the poll that finds it ended; it may be NULL.
///
/// Returns 0 if it was taken. Errors: -EAGAIN if as many requests as the target's `depth`, or 64 MiB of the drive's, were
/// not told yet; -EINVAL for a request that cannot be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_target_submit(
    target: *mut TargetHandle,
    request: *const Request,
    ended: RequestEnded,
    context: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target and a request.
        let (target, request) = unsafe { (shared(target, "target")?, shared(request, "request")?) };
        let mut state = target.core.enter()?;
        let range = request.range(state.requests.lane(target.lane))?;
        let mut parts = range.parts(state.requests.lane(target.lane).block_bytes);
        let first = parts.next().expect("a request is at least one part");
        if parts.next().is_some() {
            return Err(Failure::invalid(format!(
                "{} bytes are more than a request that is submitted can have; submit several",
                request.bytes
            )));
        }
        let asked = Asked { owner: Owner::Callback(ended, context), ..first };
        let state: &mut State = &mut state;
        state.requests.take(target.lane, asked, state.host.buffers_mut())?;
        // The drive begins with it now, not at the next poll.
        state.turn();
        Ok(0)
    })
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
            if let Some(ended) = end.ended {
                // SAFETY: the callback and its argument are what the caller gave.
                unsafe { ended(end.context, end.result(), end.status.to_bits()) };
            }
        }
        Ok(told)
    })
}
