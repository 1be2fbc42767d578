//! `ocssd_stage_*`: content that is given in parts, of targets of pages and of keys and values.

use crate::ask::{Ask, Asked};
use crate::boundary::{Memory, call, shared};
use crate::content::{StageAsk, length};
use crate::failure::Failure;
use crate::keys::KeysAsk;
use crate::pages::PagesAsk;
use crate::reply::Owner;
use crate::requests::REQUEST_BYTES_MAX;
use crate::shape::TargetShape;
use crate::target::TargetHandle;
use std::ffi::{c_int, c_void};

/// As the target's interface has it.
fn of_shape(shape: &TargetShape, ask: StageAsk) -> Result<Ask, Failure> {
    if let Ok(_limits) = shape.keys() {
        return Ok(Ask::Keys(KeysAsk::Stage(ask)));
    }
    shape.pages()?;
    Ok(Ask::Pages(PagesAsk::Stage(ask)))
}

/// Asks about a stage and waits.
///
/// # Safety
/// The target is open, and the memory is there.
unsafe fn wait_for(
    target: *mut TargetHandle,
    asked: impl Iterator<Item = StageAsk>,
) -> Result<c_int, Failure> {
    // SAFETY: the caller's promise.
    let TargetHandle { core, lane, .. } = unsafe { shared(target, "target")? };
    let mut state = core.enter()?;
    let shape = state.requests.lane(*lane).shape;
    let asked: Result<Vec<Ask>, Failure> = asked.map(|ask| of_shape(&shape, ask)).collect();
    let asked = asked?.into_iter().map(|ask| Asked { ask, owner: Owner::Waiting });
    state.ask(*lane, asked).map(|_| 0)
}

/// Begins a stage for `bytes` bytes of content: a flush of pages or a value, that is given in parts. `stage` is below the target's
/// `stages_max` and not begun. What is staged is volatile, and nothing of it is there until a request with `OCSSD_STAGED` names the
/// stage and its `bytes`, which ends it when it succeeds.
///
/// Errors: -EINVAL for a name that cannot be or is begun, or more bytes than the target takes; -ENOSPC if they do not fit;
/// -EOPNOTSUPP of a target that has no stages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_stage_open(target: *mut TargetHandle, stage: u32, bytes: u64) -> c_int {
    call(|| {
        let ask = StageAsk::Open { stage, bytes: length(bytes, "bytes")? };
        // SAFETY: the header asks for an open target.
        unsafe { wait_for(target, std::iter::once(ask)) }
    })
}

/// Appends `bytes` bytes to a stage, which has `offset` bytes so far.
///
/// Errors: -EINVAL if it is not begun, has more or less, or was begun for less.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_stage_append(
    target: *mut TargetHandle,
    stage: u32,
    offset: u64,
    data: *const c_void,
    bytes: u64,
) -> c_int {
    call(|| {
        let whole = Memory::new(data, bytes, "data")?;
        let end = offset.saturating_add(bytes);
        length(end, "the end of the part")?;
        let part = u64::try_from(REQUEST_BYTES_MAX).expect("1 MiB");
        let parts = (0..bytes.div_ceil(part)).map(|number| {
            let (first, left) = (number * part, bytes - number * part);
            let offset = u32::try_from(offset + first).expect("the end has 32 bits");
            StageAsk::Append { stage, offset, memory: whole.part(first, left.min(part)) }
        });
        // SAFETY: the header asks for an open target and so many bytes, which are only read.
        unsafe { wait_for(target, parts) }
    })
}

/// Ends a stage and forgets its content.
///
/// Errors: -EINVAL if it is not begun.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_stage_abort(target: *mut TargetHandle, stage: u32) -> c_int {
    // SAFETY: the header asks for an open target.
    call(|| unsafe { wait_for(target, std::iter::once(StageAsk::Abort { stage })) })
}
