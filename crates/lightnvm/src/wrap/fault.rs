//! Makes chosen commands fail with any status, for tests of the code above.
//!
//! The command does not reach the device: the media stay as they were. Faults of the media themselves, which do change
//! chunk states, belong to the drive (`flash::faults`).

use crate::address::ChunkId;
use crate::buffers::Buffers;
use crate::chunk::ChunkDescriptor;
use crate::command::{Command, Completion, Op, Rejected, Tag};
use crate::device::Device;
use crate::geometry::Geometry;
use crate::status::Status;
use ocssd_base::{Nanos, Ring};

/// A kind of command, without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Reads.
    Read,
    /// Writes, forced or not.
    Write,
    /// Resets.
    Reset,
    /// Copies.
    Copy,
    /// Flushes.
    Flush,
}

impl From<Op> for OpKind {
    fn from(op: Op) -> Self {
        match op {
            Op::Read => Self::Read,
            Op::Write { .. } => Self::Write,
            Op::Reset => Self::Reset,
            Op::Copy => Self::Copy,
            Op::Flush => Self::Flush,
        }
    }
}

/// Which command fails, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRule {
    /// Commands of this kind are counted.
    pub kind: OpKind,
    /// How many of them pass first.
    pub after: u64,
    /// The status of the one that fails. Each rule fires once.
    pub status: Status,
}

/// A device some of whose commands fail.
#[derive(Clone, Debug)]
pub struct Fault<D> {
    inner: D,
    rules: Vec<FaultRule>,
    failed: Ring<(Nanos, Tag, u64, Status)>,
}

/// Failed commands waiting to be told; as many as one turn of a test submits.
const FAILED_MAX: usize = 1024;

impl<D: Device> Fault<D> {
    /// `inner`, with these rules.
    #[must_use]
    pub fn new(inner: D, rules: Vec<FaultRule>) -> Self {
        Self { inner, rules, failed: Ring::new(FAILED_MAX) }
    }

    /// Rules that have not fired.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.rules.len()
    }

    /// The status this command is to fail with, if a rule is due. Every rule of its kind counts it.
    fn due(&mut self, kind: OpKind) -> Option<Status> {
        let fires = self.rules.iter().position(|rule| rule.kind == kind && rule.after == 0);
        for rule in self.rules.iter_mut().filter(|rule| rule.kind == kind) {
            rule.after = rule.after.saturating_sub(1);
        }
        fires.map(|index| self.rules.remove(index).status)
    }
}

impl<D: Device> Device for Fault<D> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.inner.chunk(chunk)
    }

    fn submit(&mut self, now: Nanos, command: Command, buffers: &mut Buffers) -> Result<(), Rejected> {
        if self.failed.is_full() {
            return Err(Rejected::QueueFull);
        }
        let Some(status) = self.due(command.op.into()) else {
            return self.inner.submit(now, command, buffers);
        };
        let every = 1u64.checked_shl(command.addresses.count()).map_or(u64::MAX, |bit| bit - 1);
        let queued = self.failed.push((now, command.tag, every, status));
        assert!(queued.is_ok(), "room was checked above");
        Ok(())
    }

    fn room(&self) -> u32 {
        if self.failed.is_full() { 0 } else { self.inner.room() }
    }

    fn deadline(&self) -> Option<Nanos> {
        let failed = self.failed.front().map(|&(at, ..)| at);
        failed.into_iter().chain(self.inner.deadline()).min()
    }

    fn poll_completion(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<Completion> {
        if let Some((_, tag, failed, status)) = self.failed.pop() {
            return Some(Completion { tag, status, failed, violation: None });
        }
        self.inner.poll_completion(now, buffers)
    }
}
