//! Asserts the device contract from outside: time never falls, a tag is in flight once, a buffer has one owner, and
//! every completion answers a command, no earlier than it was submitted.

use crate::address::ChunkId;
use crate::buffers::{BufId, Buffers};
use crate::chunk::ChunkDescriptor;
use crate::command::{Addresses, Command, Completion, Rejected, Tag};
use crate::device::Device;
use crate::geometry::Geometry;
use ocssd_base::Nanos;

#[derive(Clone, Copy, Debug)]
struct InFlight {
    tag: Tag,
    submitted: Nanos,
    count: u32,
    span: Option<(BufId, u32)>,
}

/// A device whose every answer is checked. For tests and the simulator: a command costs a look at all others in flight.
#[derive(Clone, Debug)]
pub struct Check<D> {
    inner: D,
    now: Nanos,
    in_flight: Vec<InFlight>,
}

impl<D: Device> Check<D> {
    /// Checks `inner`.
    #[must_use]
    pub fn new(inner: D) -> Self {
        Self { inner, now: Nanos::ZERO, in_flight: Vec::new() }
    }

    /// Commands without a completion so far.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// The device within.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    /// The device inside, to change.
    pub fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// The power went: what was in flight will not be completed.
    pub fn power_cut(&mut self) {
        self.in_flight.clear();
    }

    fn advance(&mut self, now: Nanos) {
        assert!(now >= self.now, "time fell from {} to {now}", self.now);
        self.now = now;
    }
}

impl<D: Device> Device for Check<D> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.inner.chunk(chunk)
    }

    fn submit(&mut self, now: Nanos, command: Command, buffers: &mut Buffers) -> Result<(), Rejected> {
        self.advance(now);
        let count = command.addresses.count();
        let span = command.buffer.map(|id| (id, command.buffer_first));
        if let (Some((id, first)), Addresses::Run { .. }) = (span, command.addresses) {
            assert!(first + count <= buffers.sectors(id), "the command reaches beyond buffer {}", id.0);
            let shared = self.in_flight.iter().any(|other| {
                other.span.is_some_and(|(theirs, from)| {
                    theirs == id && from < first + count && first < from + other.count
                })
            });
            assert!(!shared, "buffer {} belongs to two commands at once", id.0);
        }
        self.inner.submit(now, command, buffers)?;
        let is_new = self.in_flight.iter().all(|other| other.tag != command.tag);
        assert!(is_new, "tag {} was in flight already", command.tag.0);
        self.in_flight.push(InFlight { tag: command.tag, submitted: now, count, span });
        assert!(self.inner.deadline().is_some(), "a device with a command in flight has a deadline");
        Ok(())
    }

    fn room(&self) -> u32 {
        self.inner.room()
    }

    fn deadline(&self) -> Option<Nanos> {
        self.inner.deadline()
    }

    fn poll_completion(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<Completion> {
        self.advance(now);
        let completion = self.inner.poll_completion(now, buffers)?;
        let place = self.in_flight.iter().position(|command| command.tag == completion.tag);
        let place = place.expect("a completion answers a command in flight");
        let command = self.in_flight.swap_remove(place);
        assert!(command.submitted <= now, "a completion came before its command");
        assert!(
            completion.failed == 0 || !completion.status.is_success(),
            "a success with failed sectors {:#x}",
            completion.failed
        );
        let beyond = u64::MAX.checked_shl(command.count).unwrap_or(0);
        assert_eq!(completion.failed & beyond, 0, "bits beyond the {} addresses of a command", command.count);
        assert!(
            completion.failed != 0 || completion.status.is_success() || !(1..=64).contains(&command.count),
            "{}, but no address that failed",
            completion.status
        );
        Some(completion)
    }
}
