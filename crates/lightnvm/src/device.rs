//! A thing that holds media: the virtual drive, or a wrapper around one.

use crate::address::ChunkId;
use crate::buffers::Buffers;
use crate::chunk::ChunkDescriptor;
use crate::command::{Command, Completion, Rejected};
use crate::geometry::Geometry;
use ocssd_base::Nanos;

/// A device never blocks and reads no clock: `now` never falls from one call to the next, and everything else follows.
///
/// A buffer named by a command belongs to the device until the completion. Reads may fill it at any time in between.
pub trait Device {
    /// The drive's shape and rules.
    fn geometry(&self) -> &Geometry;

    /// What the drive reports of a chunk (OCSSD 2.0 section 3.2.2), as of the commands submitted so far.
    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor;

    /// Takes a command. A broken rule is a completion with that status, not an error here.
    ///
    /// # Errors
    /// [`Rejected`] if the device takes no more commands now; nothing was changed.
    fn submit(&mut self, now: Nanos, command: Command, buffers: &mut Buffers) -> Result<(), Rejected>;

    /// How many more commands the device takes now, as far as it knows; [`Self::submit`] has the last word.
    fn room(&self) -> u32 {
        u32::MAX
    }

    /// When the device next has something to do, or a completion to give. `None` while it is idle.
    fn deadline(&self) -> Option<Nanos>;

    /// Takes the next completion due at `now`, in the order of their times.
    fn poll_completion(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<Completion>;

    /// Works ahead to its next completion, if that is due before `limit`, and says when; or says when to ask again.
    ///
    /// Only for virtual time, and only if nothing is submitted before that time: it spares the caller a turn for every
    /// step inside the device. `now` may then still be earlier than what the device has seen.
    fn work_ahead(&mut self, limit: Nanos) -> Option<Nanos> {
        self.deadline().filter(|&at| at < limit)
    }
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn geometry(&self) -> &Geometry {
        (**self).geometry()
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        (**self).chunk(chunk)
    }

    fn submit(&mut self, now: Nanos, command: Command, buffers: &mut Buffers) -> Result<(), Rejected> {
        (**self).submit(now, command, buffers)
    }

    fn room(&self) -> u32 {
        (**self).room()
    }

    fn deadline(&self) -> Option<Nanos> {
        (**self).deadline()
    }

    fn poll_completion(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<Completion> {
        (**self).poll_completion(now, buffers)
    }

    fn work_ahead(&mut self, limit: Nanos) -> Option<Nanos> {
        (**self).work_ahead(limit)
    }
}
