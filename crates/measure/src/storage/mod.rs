//! Real files and block devices, below the job engine of `workload`.
//!
//! [`Subject`] is what is measured, opened and probed; [`SystemRoot`] says whether a device may be written. A [`Backend`] does
//! I/O ([`UringBackend`], [`ThreadBackend`], [`NullBackend`]), a [`FileTarget`] makes a block target of it, and [`run`] is its
//! loop. What systems do differently is in `system`. [`IoAccounting`] attests what reached the disk; [`Surroundings`] are heat,
//! link and other users.
//!
//! Deliberately not here: what is asked, and what it means.

mod accounting;
mod backend;
mod buffer;
mod choice;
mod environment;
mod file_target;
mod guard;
#[cfg(target_os = "linux")]
mod nvme_device;
#[cfg(unix)]
mod resident;
mod stamp;
mod subject;
mod surroundings;
mod system;
mod threads;
#[cfg(target_os = "linux")]
mod uring;
mod wall_loop;

pub use accounting::{Attestation, IoAccounting};
pub use backend::{Backend, Ended, NullBackend, Transfer, TransferKind};
pub use buffer::{ALIGNMENT, AlignedBuffer};
pub use choice::{Engine, make_backend};
pub use environment::{description, environment};
pub use file_target::{FileCounts, FileShape, FileTarget, stamp_format};
pub use guard::{DeviceNumber, Disk, Refusal, SystemRoot};
#[cfg(target_os = "linux")]
pub use nvme_device::{NvmeDevice, Passed, PassedCommand, PassthroughQueue};
#[cfg(unix)]
pub use resident::resident_share;
pub use subject::{BYTES_MIN, Subject, SubjectError, SubjectKind, SubjectOptions, free_bytes};
pub use surroundings::Surroundings;
pub use system::process_cpu;
#[cfg(windows)]
pub use system::resident_share;
pub use threads::ThreadBackend;
#[cfg(target_os = "linux")]
pub use uring::UringBackend;
pub use wall_loop::{LoopEnd, LoopError, run};
