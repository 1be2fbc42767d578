//! A volume that the connections of a process share, with the locks of its files.
//!
//! Deliberately not here: C (`vfs`, `io`).

use crate::counters::Counters;
use crate::locks::Locks;
use crate::volume::{FileId, Planted, Volume};
use ocssd_base::Nanos;
use ocssd_flash::FlashCounters;
use ocssd_lightnvm::counter::Counter;
use ocssd_table_store::{ErrorKind, StoreError, StoreOptions};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// Bytes of a region of the log's index, as SQLite asks for them; aligned for its 64-bit numbers.
type Region = Box<[u64]>;

/// What the connections to one file share.
#[derive(Default)]
pub struct Shared {
    /// The locks.
    pub locks: Locks,
    /// The write-ahead log's index.
    pub regions: Vec<Region>,
    /// Handles that are open.
    pub handles: u32,
}

/// How commits of SQLite reach the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// As transactions of the target.
    Batch,
    /// As SQLite writes them to a plain file: by a rollback journal, or a write-ahead log.
    Plain,
}

/// What the lock guards.
pub struct State {
    /// The files.
    pub volume: Volume,
    /// What is shared, by file.
    pub shared: BTreeMap<FileId, Shared>,
    /// Handles opened so far.
    pub handles: u64,
}

// SAFETY: `State` is one owner of everything it holds, and is only reached through the lock of `DriveVolume`. What the compiler
// does not see is whether the target, a `Box<dyn BlockTarget>`, may go to another thread. `Blocks` makes it with `registry`, whose
// targets own what they have: those that a volume takes are named below, and are `Send`.
unsafe impl Send for State {}

const fn may_go_to_another_thread<T: Send>() {}
const _: () = {
    may_go_to_another_thread::<ocssd_targets::ox_block::OxBlock>();
    may_go_to_another_thread::<ocssd_targets::pblk::Pblk>();
    may_go_to_another_thread::<ocssd_targets::linux_pblk::LinuxPblk>();
    may_go_to_another_thread::<ocssd_targets::Null>();
};
/// Kinds of targets that a volume takes (`block_ssd` is made of pblk).
const KINDS: [&str; 5] = ["ox-block", "pblk", "linux-pblk", "block_ssd", "null"];

/// A volume on a drive in this process.
pub struct DriveVolume {
    state: Mutex<State>,
    commit: Commit,
}

/// What media, target and files counted, and the drive's time.
#[derive(Clone, Debug)]
pub struct DriveCounts {
    /// The media.
    pub flash: FlashCounters,
    /// The target.
    pub target: Vec<Counter>,
    /// Files by kind, and batches.
    pub files: Counters,
    /// The drive's time.
    pub now: Nanos,
}

/// The kind of target if none is named.
const TARGET: &str = "ox-block";

impl DriveVolume {
    /// Opens what a text names: `drive=app.ocssd,create=qemu`. Beside the options of a drive
    /// ([`StoreOptions::parse`]), where `target` is `ox-block` if none is named:
    ///
    /// - `commit`: `batch`, as it is on a target with transactions: SQLite's commits are transactions of the target; or `plain`,
    ///   as it is on others.
    ///
    /// # Errors
    /// A sentence about what cannot be: an option, a drive, one that another process has, one that is too small.
    pub fn open(text: &str) -> Result<Self, StoreError> {
        Self::open_planted(text, Planted::Nothing)
    }

    /// As [`Self::open`], with a bug put in.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_planted(text: &str, planted: Planted) -> Result<Self, StoreError> {
        let mut options = StoreOptions::parse_for(text, TARGET)?;
        let at = options.target_options.iter().position(|(name, _)| name == "commit");
        let asked = at.map(|at| options.target_options.remove(at).1);
        let mut volume = Volume::open(&options, planted)?;
        let kind = volume.blocks().kind();
        assert!(KINDS.contains(&kind), "a target of kind {kind} was not looked at; see `State`");
        let has_transactions = volume.blocks().transaction_blocks() > 0;
        let invalid = |sentence: String| StoreError::new(ErrorKind::Invalid, sentence);
        let refusal = volume.blocks().refuses_transactions();
        let commit = match asked.as_deref() {
            None | Some("batch") if has_transactions && refusal.is_none() => Commit::Batch,
            None | Some("batch") if has_transactions => {
                return Err(invalid(format!(
                    "the target \"{}\" has no room for a transaction beside its blocks; use a larger drive, a larger over_provisioning_percent, or commit=plain",
                    options.target
                )));
            }
            None | Some("plain") => Commit::Plain,
            Some("batch") => {
                return Err(invalid(format!(
                    "commit=batch: the target \"{}\" has no transactions; use target=ox-block, or commit=plain",
                    options.target
                )));
            }
            Some(other) => {
                return Err(invalid(format!("commit should be batch or plain, but is \"{other}\"")));
            }
        };
        let state = State { volume, shared: BTreeMap::new(), handles: 0 };
        Ok(Self { state: Mutex::new(state), commit })
    }

    /// How commits reach the drive.
    #[must_use]
    pub const fn commit(&self) -> Commit {
        self.commit
    }

    /// The state, for one thread at a time.
    pub(crate) fn enter(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        self.state.lock().map_err(|_| {
            let sentence = "a bug in ocssd stopped an earlier call, so the drive cannot be used any more; end the process";
            StoreError::new(ErrorKind::Io, sentence)
        })
    }

    /// What the mount said, a sentence each.
    ///
    /// # Errors
    /// After a bug.
    pub fn notes(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.enter()?.volume.blocks().notes().to_vec())
    }

    /// What was counted so far.
    ///
    /// # Errors
    /// After a bug.
    pub fn counts(&self) -> Result<DriveCounts, StoreError> {
        let mut state = self.enter()?;
        let files = state.volume.counters();
        let blocks = state.volume.blocks();
        let (flash, target) = blocks.counts();
        Ok(DriveCounts { flash, target, files, now: blocks.now() })
    }

    /// The drive's time, also while its power is off.
    ///
    /// # Errors
    /// After a bug.
    pub fn now(&self) -> Result<Nanos, StoreError> {
        Ok(self.enter()?.volume.blocks().now())
    }

    /// The power of the drive will go at `at`, on the drive's clock; `seed` draws which pages of torn units survive. From then
    /// on everything fails, until [`Self::restart`].
    ///
    /// # Errors
    /// After a bug.
    pub fn cut_power_at(&self, at: Nanos, seed: u64) -> Result<(), StoreError> {
        self.enter()?.volume.blocks().cut_power_at(at, seed);
        Ok(())
    }

    /// True between the power cut and [`Self::restart`].
    ///
    /// # Errors
    /// After a bug.
    pub fn is_off(&self) -> Result<bool, StoreError> {
        Ok(self.enter()?.volume.blocks().is_off())
    }

    /// The power is there again, and the target is mounted anew. No connection may be open. A cut that is set before comes during
    /// the mount if it lasts so long; then the power is off again ([`Self::is_off`]).
    ///
    /// # Errors
    /// If target or volume cannot be mounted, or the power was cut.
    pub fn restart(&self) -> Result<(), StoreError> {
        let mut state = self.enter()?;
        assert!(state.shared.is_empty(), "a connection is open from before the power cut");
        state.volume.restart()
    }

    /// Everything is durable, and the next mount is quick. Nothing may be asked afterwards.
    ///
    /// # Errors
    /// If the drive fails.
    pub fn close(&self) -> Result<(), StoreError> {
        self.enter()?.volume.close()
    }
}
