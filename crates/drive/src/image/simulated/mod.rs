//! A file below an image that exists in memory only, on a disk that fills up, fails and forgets: for the simulator and for
//! tests.
//!
//! The file outlives those who open it, as a file does. What a process wrote and did not sync survives its end, but not that
//! of the host. Everything is drawn from a seed, so a run with it can be repeated. Deliberately not here: what an image
//! makes of it.

mod disk;
mod faults;

pub use disk::Unsynced;
pub use faults::FileFaults;

use disk::Disk;
use faults::{Met, disk_error};
use ocssd_base::Prng;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug)]
struct State {
    disk: Disk,
    bytes: u64,
    faults: FileFaults,
    prng: Prng,
    /// Somebody has it open.
    is_open: bool,
}

/// A simulated file. Clones are the same file.
#[derive(Clone, Debug)]
pub struct SimulatedFile(Arc<Mutex<State>>);

impl SimulatedFile {
    /// An empty file on a disk without faults; those that come are drawn from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let prng = Prng::new(seed).split("simulated file");
        let faults = FileFaults::default();
        Self(Arc::new(Mutex::new(State { disk: Disk::default(), bytes: 0, faults, prng, is_open: false })))
    }

    /// Another file with the same content, on a disk of its own with the same faults to come. Nobody has it open.
    #[must_use]
    pub fn fork(&self) -> Self {
        let state = State { is_open: false, ..self.state().clone() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// What goes wrong from now on.
    pub fn set_faults(&self, faults: FileFaults) {
        self.state().faults = faults;
    }

    /// Pages of 4096 bytes that the file takes on its file system.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.state().disk.allocated()
    }

    /// The host crashes and comes up again: memory is gone, and what was not synced as `unsynced` says.
    ///
    /// # Panics
    /// If the file is open: a process does not survive its host.
    pub fn crash(&self, unsynced: Unsynced) {
        let State { disk, prng, is_open, .. } = &mut *self.state();
        assert!(!*is_open, "a process survived the crash of its host");
        disk.crash(unsynced, prng);
    }

    /// Opens it, alone.
    pub(super) fn open(&self) -> io::Result<OpenSimulated> {
        let mut state = self.state();
        if state.is_open {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.is_open = true;
        drop(state);
        Ok(OpenSimulated(self.clone()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the file as a killed process would.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A simulated file that somebody has open.
#[derive(Debug)]
pub(super) struct OpenSimulated(SimulatedFile);

impl Drop for OpenSimulated {
    fn drop(&mut self) {
        self.0.state().is_open = false;
    }
}

impl OpenSimulated {
    pub(super) fn bytes(&self) -> u64 {
        self.0.state().bytes
    }

    pub(super) fn clear(&self, bytes: u64) -> io::Result<()> {
        let state = &mut *self.0.state();
        state.faults.count_write()?;
        state.disk = Disk::default();
        state.bytes = bytes;
        Ok(())
    }

    pub(super) fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        let State { disk, bytes: end, faults, prng, .. } = &mut *self.0.state();
        let left = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
        let length = bytes.len().min(left);
        let count = match faults.draw(prng, faults.read_error, length) {
            Met::Nothing => length,
            Met::Short(count) => count,
            Met::Interrupted => return Err(io::ErrorKind::Interrupted.into()),
            Met::Error(_) => return Err(disk_error()),
        };
        disk.read(&mut bytes[..count], at);
        Ok(count)
    }

    pub(super) fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        let State { disk, bytes: end, faults, prng, .. } = &mut *self.0.state();
        let length = u64::try_from(bytes.len()).expect("a length fits 64 bits");
        assert!(at + length <= *end, "an image writes {length} bytes at {at}, beyond its end at {end}");
        faults.count_write()?;
        let met = faults.draw_write(prng, bytes.len(), at);
        let count = match met {
            Met::Nothing => bytes.len(),
            Met::Short(count) | Met::Error(count) => count,
            Met::Interrupted => return Err(io::ErrorKind::Interrupted.into()),
        };
        let done = disk.write(&bytes[..count], at, faults.pages_max);
        if matches!(met, Met::Error(_)) {
            return Err(disk_error());
        }
        // As much as fits, and then nothing.
        if done == 0 && count > 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(done) }
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        let State { disk, faults, prng, .. } = &mut *self.0.state();
        if faults.is_read_only && disk.is_dirty() {
            disk.fail_sync(faults.failed_sync, prng);
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        if matches!(faults.draw(prng, faults.sync_error, 1), Met::Error(_)) {
            disk.fail_sync(faults.failed_sync, prng);
            return Err(disk_error());
        }
        disk.sync();
        Ok(())
    }

    pub(super) fn drop_clean_pages(&self) {
        self.0.state().disk.drop_clean();
    }
}

#[cfg(test)]
mod tests;
