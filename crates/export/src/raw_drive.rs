//! The seam to an open-channel drive that is served as it is, without a target on it: NVMe commands in, completions out.
//!
//! Who has a drive's controller implements it; this crate knows none. Deliberately not here: who asked, which is the
//! dispatcher's to remember.

use ocssd_base::Nanos;
use ocssd_nvme::identify::IdentifyNamespace;
use ocssd_nvme::{Cqe, Sqe};

/// The drive has as many commands as it takes; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawBusy;

/// A drive whose controller speaks OCSSD 2.0 over one namespace, number 1.
pub trait RawDrive {
    /// What the namespace says about itself.
    fn identify_namespace(&self) -> IdentifyNamespace;

    /// How large its sectors and chunks are.
    fn shape(&self) -> RawShape;

    /// Carries out an admin command that ends at once; `data` is filled, or read.
    fn admin(&mut self, now: Nanos, sqe: &Sqe, data: &mut [u8]) -> Cqe;

    /// Takes an I/O command. Reads have filled its buffers when this returns; the completion comes later, with the identifier
    /// of the command.
    ///
    /// # Errors
    /// [`RawBusy`].
    fn submit(&mut self, now: Nanos, sqe: &Sqe, buffers: RawBuffers<'_>) -> Result<(), RawBusy>;

    /// The next completion that is due.
    fn poll(&mut self, now: Nanos) -> Option<Cqe>;

    /// DW0 of the next event, if there is news that hosts are to be told.
    fn poll_event(&mut self) -> Option<u32>;

    /// When [`Self::poll`] next has something.
    fn deadline(&self) -> Option<Nanos>;

    /// Why the drive itself has failed, in a sentence; none of one that works.
    fn failure(&self) -> Option<&str>;

    /// Nobody asks for anything any more: what the drive holds is kept.
    ///
    /// # Errors
    /// A sentence, if it cannot be kept.
    fn sync(&mut self) -> Result<(), String>;
}

/// What a command of a raw drive points to.
#[derive(Debug, Default)]
pub struct RawBuffers<'a> {
    /// Its data.
    pub data: &'a mut [u8],
    /// The metadata of its sectors; empty if none moves.
    pub metadata: &'a mut [u8],
    /// The addresses of a vector command of more than one.
    pub addresses: &'a [u64],
}

/// How large the sectors of a raw drive are, and how its addresses follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawShape {
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Bytes of metadata beside each.
    pub metadata_bytes: u32,
    /// Addresses from the beginning of a chunk to that of the next.
    pub chunk_stride: u64,
}
