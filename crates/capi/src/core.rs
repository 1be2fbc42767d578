//! What a drive's handle and the handles of its queues and targets share: the state, and the right to use it.
//!
//! The state is behind a [`Mutex`] although nothing here has threads: the callers may, and C cannot promise what Rust's
//! compiler checks. It is only ever tried. A second thread that comes while one is inside gets an error, not a race and not
//! a wait; and a panic poisons it, so that every later call is refused. A try without contention costs some nanoseconds.

use crate::failure::Failure;
use crate::state::State;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// The state, as something that one thread after the other may use.
pub struct Owned(State);

// SAFETY: the state is plain data that owns all it points to: the controller with its store (memory, or a file by its
// descriptor), targets of the registry, which are collections of numbers, and pointers and callbacks of the caller, which
// are only used inside calls of whichever thread holds the lock. Nothing in it names a thread or thread-local data, and no
// reference-counted part of it is reachable from outside. What the compiler can see of this is asserted below.
unsafe impl Send for Owned {}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<ocssd_targets::pblk::Pblk>();
    is_send::<ocssd_targets::Linear>();
    is_send::<ocssd_targets::Null>();
    is_send::<ocssd_lightnvm::Buffers>();
    is_send::<ocssd_drive::Image>();
    is_send::<ocssd_drive::DriveSpec>();
};

impl Deref for Owned {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

impl DerefMut for Owned {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0
    }
}

/// One drive, as its handles share it.
#[derive(Clone)]
pub struct Core(Arc<Mutex<Owned>>);

impl Core {
    /// Takes the state over.
    pub fn new(state: State) -> Self {
        Self(Arc::new(Mutex::new(Owned(state))))
    }

    /// The right to use the state until the guard is dropped.
    ///
    /// # Errors
    /// EBUSY while another thread is inside; ENOTRECOVERABLE after a bug.
    pub fn enter(&self) -> Result<MutexGuard<'_, Owned>, Failure> {
        self.0.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Failure::new(
                libc::EBUSY,
                "another thread is inside this drive; a drive, its queues and its targets are for one thread at a time",
            ),
            TryLockError::Poisoned(_) => Failure::new(
                libc::ENOTRECOVERABLE,
                "a bug in ocssd stopped an earlier call, so the drive cannot be used any more; close it, its targets and \
                 its queues, and open it anew",
            ),
        })
    }

    /// True after a panic inside.
    pub fn is_poisoned(&self) -> bool {
        self.0.is_poisoned()
    }
}
