//! A device for code in which nothing runs concurrently: format, mount, recovery, inspection.
//!
//! A batch of commands goes down and is waited for. Deliberately not here: the clock that waits (`engine`).

use crate::address::ChunkId;
use crate::buffers::Buffers;
use crate::chunk::ChunkDescriptor;
use crate::command::{Command, Completion};
use crate::geometry::Geometry;
use ocssd_base::Nanos;
use std::fmt;

/// The power went before a batch was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut {
    /// When.
    pub at: Nanos,
}

impl fmt::Display for PowerCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the power was cut at {}", self.at)
    }
}

impl std::error::Error for PowerCut {}

/// A device that is used one batch at a time.
pub trait BlockingDevice {
    /// The drive's shape and rules.
    fn geometry(&self) -> &Geometry;

    /// What a chunk is now.
    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor;

    /// The buffers commands name.
    fn buffers(&mut self) -> &mut Buffers;

    /// The time.
    fn now(&self) -> Nanos;

    /// Runs a batch. The completions come in the order of the commands, whose tags must differ.
    ///
    /// # Errors
    /// [`PowerCut`] if the power goes first.
    fn call(&mut self, commands: &[Command]) -> Result<Vec<Completion>, PowerCut>;

    /// Lets so much time pass with nothing asked of the device.
    ///
    /// # Errors
    /// [`PowerCut`] if the power goes first.
    fn wait(&mut self, time: Nanos) -> Result<(), PowerCut>;
}
