//! The seam to the drive: NVMe commands with their memory in, completions out.
//!
//! Who has a drive's controller implements it; this crate knows none.

use ocssd_base::Nanos;
use ocssd_nvme::identify::IdentifyController;
use ocssd_nvme::{Cqe, Sqe};

/// The drive has as many commands as it takes; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveFull;

/// What the pointers of an I/O command point to, as slices.
#[derive(Debug)]
pub struct Pointed<'a> {
    /// Behind DPTR.
    pub data: &'a mut [u8],
    /// Behind MPTR; empty for none.
    pub metadata: &'a mut [u8],
    /// The list of addresses of a vector command with more than one.
    pub addresses: &'a [u64],
    /// The list of destinations of a vector copy with more than one.
    pub destinations: &'a [u64],
}

/// How much a command moves depends on these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Bytes of metadata beside a sector.
    pub oob_bytes: u32,
    /// The drive speaks OCSSD 1.2, not 2.0.
    pub is_v12: bool,
    /// Bytes of the bad block table of a lun (1.2).
    pub bad_block_table_bytes: u64,
    /// Most bytes of one transfer, a power of two of at least 4096 (MDTS).
    pub transfer_bytes_max: u64,
}

/// A drive whose controller speaks OCSSD, without queues and pointers.
pub trait OpenChannelDrive {
    /// What the controller says about itself; queues, pointers and PCI are added to it.
    fn identify_controller(&self) -> IdentifyController;

    /// How much commands move.
    fn units(&self) -> Units;

    /// Carries out an admin command; `data` is what DPTR points to. `None` if it is an event request, which
    /// [`Self::poll_event`] completes.
    fn admin(&mut self, now: Nanos, sqe: &Sqe, data: &mut [u8]) -> Option<Cqe>;

    /// Takes an I/O command of a queue. What it returns to the host is in `pointed` when this returns.
    ///
    /// # Errors
    /// [`DriveFull`].
    fn submit(&mut self, now: Nanos, queue: u16, sqe: &Sqe, pointed: Pointed<'_>) -> Result<(), DriveFull>;

    /// The next completion that is due, and the queue its command came from.
    fn poll(&mut self, now: Nanos) -> Option<(u16, Cqe)>;

    /// DW0 of the completion of the event request, if there is news.
    fn poll_event(&mut self) -> Option<u32>;

    /// When [`Self::poll`] next has something.
    fn deadline(&self) -> Option<Nanos>;

    /// Why the drive itself has failed, in a sentence; none of one that works.
    fn failure(&self) -> Option<&str>;

    /// A controller reset: commands in progress finish without a completion, features are as after power-on.
    fn reset(&mut self, now: Nanos);
}
