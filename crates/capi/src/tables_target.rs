//! `ocssd_tables_*`: targets of an LSM tree's tables and logs.

use crate::ask::Asked;
use crate::boundary::{call, put, put_if_wanted, shared};
use crate::failure::Failure;
use crate::reply::{Owner, Reply, ReplyEnded};
use crate::tables::{
    Edit, OCSSD_TABLES_APPEND, OCSSD_TABLES_ATTRIBUTES, OCSSD_TABLES_CREATE, OCSSD_TABLES_DELETE,
    OCSSD_TABLES_EDIT, OCSSD_TABLES_LIST, OCSSD_TABLES_PUBLISH, OCSSD_TABLES_READ, OCSSD_TABLES_SYNC, Table,
    TablesRequest,
};
use crate::target::TargetHandle;
use ocssd_base::usize_of;
use ocssd_lightnvm::interface::table::TableLimits;
use std::ffi::{c_int, c_void};

/// What a target of tables takes. It never changes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TablesLimits {
    /// Bytes of tables and logs that fit at least.
    pub capacity_bytes: u64,
    /// Bytes of a table or log.
    pub table_bytes_max: u64,
    /// Tables and logs, those that are not published included.
    pub tables_max: u32,
    /// Bytes of the attributes of one.
    pub attributes_bytes_max: u32,
    /// Rows of an edit.
    pub edits_max: u32,
    /// Zero.
    pub reserved: u32,
}

impl TablesLimits {
    const fn of(limits: &TableLimits) -> Self {
        Self {
            capacity_bytes: limits.capacity_bytes,
            table_bytes_max: limits.table_bytes_max,
            tables_max: limits.tables_max,
            attributes_bytes_max: limits.attributes_bytes_max,
            edits_max: limits.edits_max,
            reserved: 0,
        }
    }
}

/// Carries out a request and waits for its end.
///
/// # Safety
/// The target is open, and the request's memory is there.
unsafe fn wait_for(target: *mut TargetHandle, request: &TablesRequest) -> Result<Reply, Failure> {
    // SAFETY: the caller's promise.
    let TargetHandle { core, lane, .. } = unsafe { shared(target, "target")? };
    let mut state = core.enter()?;
    let ask = request.ask(state.requests.lane(*lane).shape.tables()?)?;
    state.ask(*lane, std::iter::once(Asked { ask, owner: Owner::Waiting }))
}

/// Gets what a target of tables takes.
///
/// Errors: -EOPNOTSUPP of a target that does not speak of tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_tables_info(target: *mut TargetHandle, limits: *mut TablesLimits) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target.
        let TargetHandle { core, lane, .. } = unsafe { shared(target, "target")? };
        let found = TablesLimits::of(core.enter()?.requests.lane(*lane).shape.tables()?);
        // SAFETY: the header asks for room for such a struct.
        unsafe { put(limits, "limits", found)? };
        Ok(0)
    })
}

/// Begins a table or a log (`kind` is `OCSSD_TABLE` or `OCSSD_LOG`) under a name that is free. What is known of it decides where it
/// lies: the level of the tree it will be of and the stream that writes it, 0 to 255 each, and how many bytes it will have, 0 if
/// that is not known. A log can be read from now on, a table once it is published.
///
/// Errors: -EEXIST if the name is taken, -EMFILE if there are as many as the target keeps, -EFBIG for more bytes than one has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_tables_create(
    target: *mut TargetHandle,
    table: u64,
    kind: u32,
    level: u32,
    stream: u32,
    bytes_expected: u64,
) -> c_int {
    let named = TablesRequest::of(OCSSD_TABLES_CREATE, table);
    let request = TablesRequest { kind, level, stream, offset: bytes_expected, ..named };
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Adds bytes, at most 16 MiB, to the end of a table that is not published, or of a log. Puts the first byte's place in it into
/// `offset`, which may be NULL. A table becomes durable when it is published, a log by `ocssd_tables_sync`.
///
/// Errors: -ENOENT if there is no such table, -EROFS if it is published, -EFBIG for more bytes than one has, -ENOSPC if there is no
/// room. Nothing is changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_tables_append(
    target: *mut TargetHandle,
    table: u64,
    data: *const c_void,
    bytes: u64,
    offset: *mut u64,
) -> c_int {
    let request =
        TablesRequest { data: data.cast_mut(), bytes, ..TablesRequest::of(OCSSD_TABLES_APPEND, table) };
    call(|| {
        // SAFETY: the header asks for an open target, bytes that are only read, and room for a number or NULL.
        unsafe {
            let reply = wait_for(target, &request)?;
            put_if_wanted(offset, "offset", reply.offset)?;
        }
        Ok(0)
    })
}

/// Returns when every byte that was appended to the log before is durable, and so the log itself. `ocssd_target_flush` does that
/// for all logs.
///
/// Errors: -ENOENT if there is no such log, -EINVAL for a table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_tables_sync(target: *mut TargetHandle, table: u64) -> c_int {
    let request = TablesRequest::of(OCSSD_TABLES_SYNC, table);
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Reads a published table or a log from byte `offset` on: as many bytes as there are, and as `data` has room for with its `bytes`,
/// at most 16 MiB. Puts how many that were into `read`, which may be NULL: fewer than asked for at the end, and 0 behind it.
///
/// Errors: -ENOENT if there is no such table, -EBUSY if it is not published yet, -EIO for what cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_tables_read(
    target: *mut TargetHandle,
    table: u64,
    offset: u64,
    data: *mut c_void,
    bytes: u64,
    read: *mut u64,
) -> c_int {
    let request = TablesRequest { offset, data, bytes, ..TablesRequest::of(OCSSD_TABLES_READ, table) };
    call(|| {
        // SAFETY: the header asks for an open target, and room for so many bytes and for a number or NULL.
        unsafe {
            let reply = wait_for(target, &request)?;
            put_if_wanted(read, "read", reply.bytes)?;
        }
        Ok(0)
    })
}

/// Reads the attributes of a published table or of a log, as many bytes as `data` has room for with its `bytes`. Puts the bytes of
/// all of them into `attributes_bytes`, which may be NULL.
///
/// Errors: -ENOENT if there is no such table, -EBUSY if it is not published yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_tables_attributes(
    target: *mut TargetHandle,
    table: u64,
    data: *mut c_void,
    bytes: u64,
    attributes_bytes: *mut u64,
) -> c_int {
    let request = TablesRequest { data, bytes, ..TablesRequest::of(OCSSD_TABLES_ATTRIBUTES, table) };
    call(|| {
        // SAFETY: the header asks for an open target, and room for so many bytes and for a number or NULL.
        unsafe {
            let reply = wait_for(target, &request)?;
            put_if_wanted(attributes_bytes, "attributes_bytes", reply.bytes)?;
        }
        Ok(0)
    })
}

/// Publishes a table: it never changes any more, can be read, and has the `bytes` bytes of attributes at `attributes`. Its content
/// is durable when this returns, and so are the edits and creations before.
///
/// Errors: -ENOENT if there is no such table, -EROFS if it is published, -EINVAL for a log, -EFBIG for longer attributes than one
/// has. Nothing is changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_tables_publish(
    target: *mut TargetHandle,
    table: u64,
    attributes: *const c_void,
    bytes: u64,
) -> c_int {
    let named = TablesRequest::of(OCSSD_TABLES_PUBLISH, table);
    let request = TablesRequest { data: attributes.cast_mut(), bytes, ..named };
    // SAFETY: the header asks for an open target, and bytes that are only read.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Deletes a table or a log, published or not; its name is free then. Durable when this returns.
///
/// Errors: -ENOENT if there is no such table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_tables_delete(target: *mut TargetHandle, table: u64) -> c_int {
    let request = TablesRequest::of(OCSSD_TABLES_DELETE, table);
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Publishes, deletes and describes any number of tables and logs as one, in the order of the `edit_count` rows: a process that
/// dies, or a power cut, leaves all of that or none. So an engine needs no file that says which tables it has. Durable when this
/// returns.
///
/// Errors: as those of its rows, with the number of the row in words; -EBUSY to describe a table that is not published; -EFBIG for
/// more rows than `edits_max`. Nothing is changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_tables_edit(
    target: *mut TargetHandle,
    edits: *const Edit,
    edit_count: u32,
) -> c_int {
    let request = TablesRequest { edits, edit_count, ..TablesRequest::of(OCSSD_TABLES_EDIT, 0) };
    // SAFETY: the header asks for an open target, and memory that is only read.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Lists published tables, and logs, by ascending name from `table` on: puts them into `tables`, with room for `count`. Puts into
/// `matching`, which may be NULL, how many there are, with and without room. Returns how many were put there.
///
/// Errors: -EOPNOTSUPP of a target that does not speak of tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_tables_list(
    target: *mut TargetHandle,
    table: u64,
    tables: *mut Table,
    count: u32,
    matching: *mut u64,
) -> c_int {
    call(|| {
        if !tables.is_null() && !tables.is_aligned() {
            return Err(Failure::invalid("tables is misaligned, so it points to no tables"));
        }
        let bytes = u64::try_from(usize_of(count) * size_of::<Table>()).expect("fewer than 2^64");
        let named = TablesRequest::of(OCSSD_TABLES_LIST, table);
        let request = TablesRequest { data: tables.cast(), bytes, ..named };
        // SAFETY: the header asks for an open target, and room for so many tables and for a number or NULL.
        let found = unsafe {
            let found = wait_for(target, &request)?.count;
            put_if_wanted(matching, "matching", found)?;
            found
        };
        Ok(c_int::try_from(found.min(u64::from(count))).unwrap_or(c_int::MAX))
    })
}

/// Submits a request. `ended` is called with `context` by the poll that finds it ended; it may be NULL. Requests take effect in the
/// order in which they are submitted, so a sync or an edit need not wait for the ends of the appends before it.
/// `ocssd_target_submit` with `OCSSD_OP_FLUSH` makes all logs durable.
///
/// Returns 0 if it was taken. Errors: -EAGAIN as `ocssd_target_submit`; -EINVAL for a request that cannot be; -EFBIG for more
/// than 16 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_tables_submit(
    target: *mut TargetHandle,
    request: *const TablesRequest,
    ended: ReplyEnded,
    context: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target and a request.
        let (target, request) = unsafe { (shared(target, "target")?, shared(request, "request")?) };
        let mut state = target.core.enter()?;
        let ask = request.ask(state.requests.lane(target.lane).shape.tables()?)?;
        state.submit_to(target.lane, Asked { ask, owner: Owner::Replied(ended, context) })
    })
}
