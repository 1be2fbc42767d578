//! `ocssd_queue_*`: commands that end while the caller does something else.

use crate::boundary::{call, put, shared};
use crate::command::Command;
use crate::core::Core;
use crate::drive::Drive;
use crate::failure::Failure;
use crate::queues::{CommandEnded, QueueId, Waiter};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// A queue pair of a drive.
pub struct QueueHandle {
    core: Core,
    id: QueueId,
    polling: Polling,
}

/// Whether a poll is calling back.
#[derive(Debug, Default)]
pub struct Polling(AtomicBool);

impl Polling {
    /// Begins a poll, which ends when what is returned is dropped.
    ///
    /// # Errors
    /// EBUSY within another.
    pub fn begin(&self) -> Result<PollingEnds<'_>, Failure> {
        if self.0.swap(true, Ordering::Acquire) {
            return Err(Failure::new(libc::EBUSY, "a poll is calling back; polls are not made within polls"));
        }
        Ok(PollingEnds(&self.0))
    }

    /// Fails within a poll.
    ///
    /// # Errors
    /// EBUSY.
    pub fn check_none(&self) -> Result<(), Failure> {
        if self.0.load(Ordering::Acquire) {
            return Err(Failure::new(libc::EBUSY, "a poll is calling back; close after it has returned"));
        }
        Ok(())
    }
}

/// Ends a poll when dropped.
pub struct PollingEnds<'a>(&'a AtomicBool);

impl Drop for PollingEnds<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Queue for admin commands; a drive has one.
pub const OCSSD_QUEUE_ADMIN: u32 = 0;
/// Queue for I/O commands.
pub const OCSSD_QUEUE_IO: u32 = 1;

/// Opens a queue pair for up to `depth` commands, 1 to 65535, of a kind (`OCSSD_QUEUE_IO`, `OCSSD_QUEUE_ADMIN`). Create and
/// delete queue commands do not exist on the wire: this is how queues are made.
///
/// Errors: -EINVAL for another kind or depth, -EBUSY for a second admin queue; `*queue` is then NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_queue_open(
    drive: *mut Drive,
    kind: u32,
    depth: u32,
    queue: *mut *mut QueueHandle,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for room for a handle, and for an open drive.
        let drive = unsafe {
            put(queue, "queue", std::ptr::null_mut())?;
            shared(drive, "drive")?
        };
        if kind != OCSSD_QUEUE_ADMIN && kind != OCSSD_QUEUE_IO {
            return Err(Failure::invalid(format!("kind is {kind}, but should be 0 (admin) or 1 (I/O)")));
        }
        let id = drive.core.enter()?.queues.open(kind == OCSSD_QUEUE_ADMIN, depth)?;
        let handle = QueueHandle { core: drive.core.clone(), id, polling: Polling::default() };
        // SAFETY: as above.
        unsafe { put(queue, "queue", Box::into_raw(Box::new(handle)))? };
        Ok(0)
    })
}

/// Closes a queue whose completions were all told, and sets `*queue` to NULL. Event requests that the drive still holds are
/// forgotten: their callbacks are not called.
///
/// Errors: -EBUSY if commands were not told yet, or from a callback of the queue; -EINVAL if the queue is NULL (closed
/// already). Nothing is changed then. -ENOTRECOVERABLE after a bug: the queue is closed all the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_queue_close(queue: *mut *mut QueueHandle) -> c_int {
    call(|| {
        // SAFETY: the header asks for a pointer to a handle.
        let handle = unsafe { *shared(queue, "queue")? };
        // SAFETY: as above.
        let QueueHandle { core, id, polling } = unsafe { shared(handle, "*queue")? };
        polling.check_none()?;
        let closed = match core.enter() {
            Ok(mut state) => Ok(state.queues.close(*id)?),
            Err(poisoned) if core.is_poisoned() => Err(poisoned),
            Err(busy) => return Err(busy),
        };
        // SAFETY: the handle was made by `ocssd_queue_open`, and the caller's copy of it is taken away.
        unsafe {
            put(queue, "queue", std::ptr::null_mut())?;
            drop(Box::from_raw(handle));
        }
        closed.map(|()| 0)
    })
}

/// Submits a command. `ended` is called with `context` by the poll that finds it complete; it may be NULL. The command itself
/// may change when this returns; what its pointers name must stay until then.
///
/// Returns 0 if the drive has the command: how it ends is in the completion. Errors: -EAGAIN if the queue or the drive has as
/// many commands as it can, -EBUSY if the command would change parallel units of an open target, -EINVAL for pointers that
/// cannot be used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_queue_submit(
    queue: *mut QueueHandle,
    command: *const Command,
    ended: CommandEnded,
    context: *mut c_void,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open queue and a command.
        let (queue, command) = unsafe { (shared(queue, "queue")?, shared(command, "command")?) };
        let mut state = queue.core.enter()?;
        if queue.id == QueueId::ADMIN {
            // SAFETY: the header asks for pointers as the struct says.
            let resolved = unsafe { command.resolve_admin(state.units())? };
            let waiter = Waiter { ended, context, cid: resolved.sqe.cid };
            state.queues.get(queue.id).has_room()?;
            if let Some(cqe) = state.admin(&resolved, Some(waiter))? {
                state.queues.post_admin(waiter, &cqe);
            }
            return Ok(0);
        }
        // SAFETY: the header asks for pointers as the struct says.
        let resolved = unsafe { command.resolve_io(state.units())? };
        let place = state.queues.get(queue.id).take(Waiter { ended, context, cid: resolved.sqe.cid })?;
        let taken = state.submit(queue.id, place, &resolved);
        if !matches!(taken, Ok(true)) {
            state.queues.get(queue.id).give_back(place);
        }
        let full =
            || Failure::new(libc::EAGAIN, "the drive has as many commands as its queue_depth; poll first");
        taken?.then_some(0).ok_or_else(full)
    })
}

/// Tells completions of the queue, `budget` at most, by calling back. With the machine's clock it tells what is due and never
/// waits. In virtual time, if nothing is due and a command is in progress, time jumps to the next completion of the queue.
/// Returns how many were told.
///
/// Errors: -EBUSY within a callback of the same queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_queue_poll(queue: *mut QueueHandle, budget: u32) -> c_int {
    call(|| {
        // SAFETY: the header asks for an open queue.
        let QueueHandle { core, id, polling } = unsafe { shared(queue, "queue")? };
        let _ends = polling.begin()?;
        {
            let mut state = core.enter()?;
            state.turn();
            let queue = state.queues.get(*id);
            if budget > 0 && queue.in_drive() > 0 && !queue.has_ended() && state.host.clock().is_virtual() {
                state.until(|state| state.queues.get(*id).has_ended());
            }
        }
        let mut told = 0;
        while told < c_int::try_from(budget).unwrap_or(c_int::MAX) {
            // Nothing is locked while the caller's code runs: it may submit.
            let Some((waiter, completion)) = core.enter()?.queues.get(*id).tell() else { break };
            told += 1;
            if let Some(ended) = waiter.ended {
                // SAFETY: the callback and its argument are what the caller gave, and the completion lives until it returns.
                unsafe { ended(waiter.context, &raw const completion) };
            }
        }
        Ok(told)
    })
}
