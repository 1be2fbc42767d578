//! `ocssd_kv_*`: targets of keys and values.

use crate::ask::Asked;
use crate::boundary::{Memory, call, put, put_if_wanted, shared};
use crate::failure::Failure;
use crate::keys::{
    Change, KeysRequest, OCSSD_KV_BATCH, OCSSD_KV_DELETE, OCSSD_KV_EXIST, OCSSD_KV_LIST, OCSSD_KV_RETRIEVE,
    OCSSD_KV_STORE,
};
use crate::reply::{Owner, Reply, ReplyEnded};
use crate::request::OCSSD_STAGED;
use crate::target::TargetHandle;
use ocssd_base::usize_of;
use ocssd_lightnvm::interface::key_value::{KvLimits, ListOrder};
use std::ffi::{c_int, c_void};

/// What a target of keys and values takes. It never changes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeysLimits {
    /// Bytes of keys and values that fit at least.
    pub capacity_bytes: u64,
    /// Bytes of a key; at least 1.
    pub key_bytes_max: u32,
    /// Bytes of a value.
    pub value_bytes_max: u32,
    /// Changes of a batch.
    pub batch_changes_max: u32,
    /// Stages at once; their names are below.
    pub stages_max: u32,
    /// Bytes of a stage.
    pub stage_bytes_max: u32,
    /// 1 if keys are listed in ascending order of their bytes, 0 if in an order of the target's.
    pub lists_in_order: u32,
}

impl KeysLimits {
    fn of(limits: &KvLimits) -> Self {
        Self {
            capacity_bytes: limits.capacity_bytes,
            key_bytes_max: limits.key_bytes_max,
            value_bytes_max: limits.value_bytes_max,
            batch_changes_max: limits.batch_entries_max,
            stages_max: limits.stages.stages_max,
            stage_bytes_max: limits.stages.bytes_max,
            lists_in_order: u32::from(limits.list_order == ListOrder::Bytewise),
        }
    }
}

/// Carries out a request and waits for its end.
///
/// # Safety
/// The target is open, and the request's memory is there.
unsafe fn wait_for(target: *mut TargetHandle, request: &KeysRequest) -> Result<Reply, Failure> {
    // SAFETY: the caller's promise.
    let TargetHandle { core, lane, .. } = unsafe { shared(target, "target")? };
    let mut state = core.enter()?;
    let ask = request.ask(state.requests.lane(*lane).shape.keys()?)?;
    state.ask(*lane, std::iter::once(Asked { ask, owner: Owner::Waiting }))
}

/// Gets what a target of keys and values takes.
///
/// Errors: -EOPNOTSUPP of a target that does not speak of keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_kv_info(target: *mut TargetHandle, limits: *mut KeysLimits) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target.
        let TargetHandle { core, lane, .. } = unsafe { shared(target, "target")? };
        let found = KeysLimits::of(core.enter()?.requests.lane(*lane).shape.keys()?);
        // SAFETY: the header asks for room for such a struct.
        unsafe { put(limits, "limits", found)? };
        Ok(0)
    })
}

/// Stores a value of `bytes` bytes, which may be none, under a key; the whole value or nothing of it. Flags are `OCSSD_FUA` to
/// return only when it is durable, and `OCSSD_MUST_EXIST` or `OCSSD_MUST_NOT_EXIST`. Values of more than 16 MiB are staged:
/// `ocssd_stage_open`, `ocssd_kv_store_staged`.
///
/// Errors: -EINVAL for a key of 0 or too many bytes, -EFBIG for a value that is too long, -ENOENT and -EEXIST if the key does not
/// exist, or exists, -ENOSPC if there is no room. Nothing is changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_kv_store(
    target: *mut TargetHandle,
    key: *const c_void,
    key_bytes: u32,
    data: *const c_void,
    bytes: u64,
    flags: u32,
) -> c_int {
    let request = KeysRequest {
        data: data.cast_mut(),
        bytes,
        ..KeysRequest::of(OCSSD_KV_STORE, flags, key, key_bytes)
    };
    call(|| {
        if flags & OCSSD_STAGED != 0 {
            return Err(Failure::invalid("what is staged is stored by ocssd_kv_store_staged"));
        }
        // SAFETY: the header asks for an open target, and memory that is only read.
        unsafe { wait_for(target, &request) }.map(|_| 0)
    })
}

/// Stores the `bytes` bytes that stage `stage` holds under a key, which ends the stage. Flags and errors as `ocssd_kv_store`;
/// -EINVAL if the stage is not begun or holds another number of bytes. A stage that is refused stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_kv_store_staged(
    target: *mut TargetHandle,
    key: *const c_void,
    key_bytes: u32,
    stage: u32,
    bytes: u64,
    flags: u32,
) -> c_int {
    let flags = flags | OCSSD_STAGED;
    let request = KeysRequest { stage, bytes, ..KeysRequest::of(OCSSD_KV_STORE, flags, key, key_bytes) };
    // SAFETY: the header asks for an open target, and memory that is only read.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Reads a value from byte `offset` on: as many bytes as there are, and as `data` has room for with its `bytes`, at most 16
/// MiB. Puts the bytes of the whole value into `value_bytes`, which may be NULL.
///
/// Errors: -ENOENT if the key does not exist, -EINVAL for one that cannot be, -EIO for what cannot be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_kv_retrieve(
    target: *mut TargetHandle,
    key: *const c_void,
    key_bytes: u32,
    offset: u64,
    data: *mut c_void,
    bytes: u64,
    value_bytes: *mut u64,
) -> c_int {
    let request =
        KeysRequest { offset, data, bytes, ..KeysRequest::of(OCSSD_KV_RETRIEVE, 0, key, key_bytes) };
    call(|| {
        // SAFETY: the header asks for an open target, a key, room for so many bytes, and for a number or NULL.
        unsafe {
            let reply = wait_for(target, &request)?;
            put_if_wanted(value_bytes, "value_bytes", reply.bytes)?;
        }
        Ok(0)
    })
}

/// Deletes a key. Flags are `OCSSD_FUA` to return only when that is durable, and `OCSSD_MUST_EXIST` to be refused if there is none.
///
/// Errors: -ENOENT if it should exist and does not, -EINVAL for a key that cannot be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_kv_delete(
    target: *mut TargetHandle,
    key: *const c_void,
    key_bytes: u32,
    flags: u32,
) -> c_int {
    let request = KeysRequest::of(OCSSD_KV_DELETE, flags, key, key_bytes);
    // SAFETY: the header asks for an open target and a key.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Asks whether a key exists: returns 0 and puts the bytes of its value into `value_bytes`, which may be NULL, or returns -ENOENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_kv_exist(
    target: *mut TargetHandle,
    key: *const c_void,
    key_bytes: u32,
    value_bytes: *mut u64,
) -> c_int {
    let request = KeysRequest::of(OCSSD_KV_EXIST, 0, key, key_bytes);
    call(|| {
        // SAFETY: the header asks for an open target, a key, and room for a number or NULL.
        unsafe {
            let reply = wait_for(target, &request)?;
            put_if_wanted(value_bytes, "value_bytes", reply.bytes)?;
        }
        Ok(0)
    })
}

/// Lists keys that exist, from `key` on, that key included, in the target's order; only those that begin with the first
/// `prefix_bytes` bytes of it. Puts as many as there is room for into `data`, in the form of the Key Value Command Set, which
/// `ocssd_kv_next_key` takes apart. Returns how many; fewer than exist if there was no room: go on behind the last one.
///
/// Errors: -EINVAL for a key that is too long, a prefix longer than the key, or room for less than 4 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_kv_list(
    target: *mut TargetHandle,
    key: *const c_void,
    key_bytes: u32,
    prefix_bytes: u32,
    data: *mut c_void,
    bytes: u64,
) -> c_int {
    let request =
        KeysRequest { prefix_bytes, data, bytes, ..KeysRequest::of(OCSSD_KV_LIST, 0, key, key_bytes) };
    call(|| {
        // SAFETY: the header asks for an open target, a key, and room for so many bytes.
        let reply = unsafe { wait_for(target, &request)? };
        Ok(c_int::try_from(reply.count).unwrap_or(c_int::MAX))
    })
}

/// Takes a list of keys apart that lies in `bytes` bytes of `data`. `place` is 0 at first, and where the next key lies afterwards.
/// Returns 1 and puts a pointer into the list into `key`, and its length into `key_bytes`; or returns 0 behind the last key.
///
/// Errors: -EINVAL if it is no list, or ends too early.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_kv_next_key(
    data: *const c_void,
    bytes: u64,
    place: *mut u64,
    key: *mut *const c_void,
    key_bytes: *mut u32,
) -> c_int {
    call(|| {
        let memory = Memory::new(data, bytes, "data")?;
        // SAFETY: the header asks for a list of so many bytes, and a number.
        let (list, at) = unsafe { (memory.as_shared(), *shared(place, "place")?) };
        let Some((start, length, next)) = next_key(list, at)? else { return Ok(0) };
        // SAFETY: the header asks for room for a pointer and numbers.
        unsafe {
            put(key, "key", data.cast::<u8>().wrapping_add(start).cast())?;
            put(key_bytes, "key_bytes", length)?;
            put(place, "place", next)?;
        }
        Ok(1)
    })
}

/// The key at a place of a list, its length, and where the next lies; `None` behind the last. Places keep the number of keys before
/// them in their high half, so that the end is known.
fn next_key(list: &[u8], at: u64) -> Result<Option<(usize, u32, u64)>, Failure> {
    let broken =
        || Failure::invalid("the list of keys ends too early; give all of what ocssd_kv_list filled");
    let count = u32::from_le_bytes(*list.first_chunk().ok_or_else(broken)?);
    let [number, behind] = [at >> 32, at & 0xFFFF_FFFF];
    if number >= u64::from(count) {
        return Ok(None);
    }
    let begin = 4 + usize_of(u32::try_from(behind).expect("the low half"));
    let length = list.get(begin..).and_then(|rest| rest.first_chunk()).ok_or_else(broken)?;
    let length = usize::from(u16::from_le_bytes(*length));
    let end = begin + 2 + length;
    if end > list.len() {
        return Err(broken());
    }
    let next = u64::try_from(end.next_multiple_of(4) - 4).expect("a list is short");
    Ok(Some((begin + 2, u32::try_from(length).expect("16 bits"), (number + 1) << 32 | next)))
}

/// Carries out `change_count` changes in their order, all of them or none. Flags are 0, or `OCSSD_FUA` to return only when they are
/// durable.
///
/// Errors: as those of its changes, with the number of the change in words; -EFBIG for more changes than `batch_changes_max`,
/// or more than 16 MiB. Nothing is changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_kv_batch(
    target: *mut TargetHandle,
    changes: *const Change,
    change_count: u32,
    flags: u32,
) -> c_int {
    let request =
        KeysRequest { changes, change_count, ..KeysRequest::of(OCSSD_KV_BATCH, flags, std::ptr::null(), 0) };
    // SAFETY: the header asks for an open target, and memory that is only read.
    call(|| unsafe { wait_for(target, &request) }.map(|_| 0))
}

/// Submits a request. `ended` is called with `context` by the poll that finds it ended; it may be NULL. Requests take effect in the
/// order in which they are submitted. `ocssd_target_submit` with `OCSSD_OP_FLUSH` makes durable what ended before.
///
/// Returns 0 if it was taken. Errors: -EAGAIN as `ocssd_target_submit`; -EINVAL for a request that cannot be; -EFBIG for more
/// than 16 MiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_kv_submit(
    target: *mut TargetHandle,
    request: *const KeysRequest,
    ended: ReplyEnded,
    context: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open target and a request.
        let (target, request) = unsafe { (shared(target, "target")?, shared(request, "request")?) };
        let mut state = target.core.enter()?;
        let ask = request.ask(state.requests.lane(target.lane).shape.keys()?)?;
        state.submit_to(target.lane, Asked { ask, owner: Owner::Replied(ended, context) })
    })
}
