//! `ocssd_pages_*`: targets of pages, which are flushed in whole buffers.

use crate::ask::Asked;
use crate::boundary::{call, put, put_if_wanted, shared};
use crate::failure::Failure;
use crate::pages::{
    OCSSD_PAGES_CLOSE_SESSION, OCSSD_PAGES_FLUSH, OCSSD_PAGES_OPEN_SESSION, OCSSD_PAGES_READ,
    OCSSD_PAGES_STAT, Page, PagesRequest,
};
use crate::reply::{Owner, Reply, ReplyEnded};
use crate::request::OCSSD_STAGED;
use crate::target::TargetHandle;
use ocssd_lightnvm::interface::log_structured::LogLimits;
use std::ffi::{c_int, c_void};

/// What a target of pages takes. It never changes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagesLimits {
    /// Bytes of all pages that fit.
    pub capacity_bytes: u64,
    /// Pages that fit.
    pub pages_max: u64,
    /// Bytes of a flush.
    pub flush_bytes_max: u32,
    /// Rows of a page table.
    pub flush_pages_max: u32,
    /// Bytes of a page.
    pub page_bytes_max: u32,
    /// What the places of pages in a buffer are multiples of.
    pub page_align_bytes: u32,
    /// Sessions that are open at once.
    pub sessions_max: u32,
    /// Stages at once; their names are below.
    pub stages_max: u32,
    /// Bytes of a stage.
    pub stage_bytes_max: u32,
    /// Zero.
    pub reserved: u32,
}

impl PagesLimits {
    const fn of(limits: &LogLimits) -> Self {
        Self {
            capacity_bytes: limits.capacity_bytes,
            pages_max: limits.pages_max,
            flush_bytes_max: limits.flush_bytes_max,
            flush_pages_max: limits.flush_pages_max,
            page_bytes_max: limits.page_bytes_max,
            page_align_bytes: limits.page_align_bytes,
            sessions_max: limits.sessions_max,
            stages_max: limits.stages.stages_max,
            stage_bytes_max: limits.stages.bytes_max,
            reserved: 0,
        }
    }
}

/// Carries out a request and waits for its end.
///
/// # Safety
/// The target is open, and the request's memory is there.
unsafe fn wait_for(target: *mut TargetHandle, request: &PagesRequest) -> Result<Reply, Failure> {
    // SAFETY: the caller's promise.
    let TargetHandle { core, lane, .. } = unsafe { shared(target, "target")? };
    let mut state = core.enter()?;
    state.requests.lane(*lane).shape.pages()?;
    state.ask(*lane, std::iter::once(Asked { ask: request.ask()?, owner: Owner::Waiting }))
}

/// Gets what a target of pages takes.
///
/// Errors: -EOPNOTSUPP of a target that does not speak of pages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_pages_info(target: *mut TargetHandle, limits: *mut PagesLimits) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target.
        let TargetHandle { core, lane, .. } = unsafe { shared(target, "target")? };
        let found = PagesLimits::of(core.enter()?.requests.lane(*lane).shape.pages()?);
        // SAFETY: the header asks for room for such a struct.
        unsafe { put(limits, "limits", found)? };
        Ok(0)
    })
}

/// Begins the session of a number of the caller's, or resumes it. Puts the number of its last flush that is applied into `applied`,
/// and of the last that survives a power cut into `durable`; both may be NULL. A new session has 0. Durable when this returns.
///
/// Errors: -EMFILE if there are as many sessions as the target keeps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_pages_open_session(
    target: *mut TargetHandle,
    session: u64,
    applied: *mut u64,
    durable: *mut u64,
) -> c_int {
    let request = PagesRequest { session, ..PagesRequest::of(OCSSD_PAGES_OPEN_SESSION) };
    call(|| {
        // SAFETY: the header asks for an open target, and room for numbers or NULL.
        unsafe {
            let reply = wait_for(target, &request)?;
            put_if_wanted(applied, "applied", reply.applied)?;
            put_if_wanted(durable, "durable", reply.durable)?;
        }
        Ok(0)
    })
}

/// Ends a session, whose pages stay, and forgets how far it came. Durable when this returns.
///
/// Errors: -ENOENT if it is not open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_pages_close_session(target: *mut TargetHandle, session: u64) -> c_int {
    let request = PagesRequest { session, ..PagesRequest::of(OCSSD_PAGES_CLOSE_SESSION) };
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Stores the pages of a buffer as flush `number` of a session, and deletes others, all or nothing: `pages` has `page_count`
/// rows. A number that was applied before is answered and changes nothing, so that a flush whose answer was lost is sent again.
/// Flags are 0, or `OCSSD_FUA` to return only when it is durable. Puts the last flush of the session that survives a power cut
/// into `durable`, which may be NULL. Longer buffers than memory has are staged: `ocssd_stage_open`, `ocssd_pages_submit`.
///
/// Errors: -ENOENT if the session is not open; -EINVAL for a number that does not come next, or rows that overlap, lie outside
/// of the buffer or name a page twice; -EFBIG for more than the target takes; -ENOSPC if the pages do not fit. Nothing is
/// changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_pages_flush(
    target: *mut TargetHandle,
    session: u64,
    number: u64,
    data: *const c_void,
    bytes: u64,
    pages: *const Page,
    page_count: u32,
    flags: u32,
    durable: *mut u64,
) -> c_int {
    let request = PagesRequest {
        flags,
        session,
        number,
        data: data.cast_mut(),
        bytes,
        pages,
        page_count,
        ..PagesRequest::of(OCSSD_PAGES_FLUSH)
    };
    call(|| {
        if flags & OCSSD_STAGED != 0 {
            return Err(Failure::invalid(
                "what is staged is flushed by ocssd_pages_submit, which has a place for its stage",
            ));
        }
        // SAFETY: the header asks for an open target, memory that is only read, and room for a number or NULL.
        unsafe {
            let reply = wait_for(target, &request)?;
            put_if_wanted(durable, "durable", reply.durable)?;
        }
        Ok(0)
    })
}

/// Reads a page from byte `offset` on: as many bytes as there are, and as `data` has room for with its `bytes`. Puts the bytes of
/// the whole page into `page_bytes`, which may be NULL; with no room it is only asked for that.
///
/// Errors: -ENOENT if there is no such page, -EIO for what cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_pages_read(
    target: *mut TargetHandle,
    page: u64,
    offset: u64,
    data: *mut c_void,
    bytes: u64,
    page_bytes: *mut u64,
) -> c_int {
    let request = PagesRequest { page, offset, data, bytes, ..PagesRequest::of(OCSSD_PAGES_READ) };
    call(|| {
        // SAFETY: the header asks for an open target, room for so many bytes, and for a number or NULL.
        unsafe {
            let reply = wait_for(target, &request)?;
            put_if_wanted(page_bytes, "page_bytes", reply.bytes)?;
        }
        Ok(0)
    })
}

/// Gets how many pages are stored, and how many bytes they have; both may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_pages_stat(
    target: *mut TargetHandle,
    pages: *mut u64,
    bytes: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target, and room for numbers or NULL.
        unsafe {
            let reply = wait_for(target, &PagesRequest::of(OCSSD_PAGES_STAT))?;
            put_if_wanted(pages, "pages", reply.count)?;
            put_if_wanted(bytes, "bytes", reply.bytes)?;
        }
        Ok(0)
    })
}

/// Submits a request. `ended` is called with `context` by the poll that finds it ended; it may be NULL. Requests take effect in the
/// order in which they are submitted. `ocssd_target_submit` with `OCSSD_OP_FLUSH` makes durable what ended before.
///
/// Returns 0 if it was taken. Errors: -EAGAIN as `ocssd_target_submit`; -EINVAL for a request that cannot be; -EFBIG for a buffer
/// of more than 16 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_pages_submit(
    target: *mut TargetHandle,
    request: *const PagesRequest,
    ended: ReplyEnded,
    context: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target and a request.
        let (target, request) = unsafe { (shared(target, "target")?, shared(request, "request")?) };
        let mut state = target.core.enter()?;
        state.requests.lane(target.lane).shape.pages()?;
        state.submit_to(target.lane, Asked { ask: request.ask()?, owner: Owner::Replied(ended, context) })
    })
}
