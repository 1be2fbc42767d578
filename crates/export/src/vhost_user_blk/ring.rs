//! One ring: whether it runs, what is taken from it, and what is put back.
//!
//! The walk over indices and its barriers are `virtio_queue`'s. Deliberately not here: eventfds, and what chains mean.

use super::chain::{Broken, Chain};
use super::config::RING_SIZE_MAX;
use super::inflight::RingLog;
use super::walk::Walk;
use crate::protocol::ProtocolError;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use virtio_queue::{Error, Queue, QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// The guest does not want to be told (VIRTIO 1.2, 2.7.6: VIRTQ_AVAIL_F_NO_INTERRUPT).
const NO_INTERRUPT: u16 = 1;

/// A ring.
#[derive(Debug)]
pub struct Ring {
    queue: Queue,
    /// The frontend lets it run (SET_VRING_ENABLE).
    pub enabled: bool,
    /// It has been started (SET_VRING_KICK), and not stopped since.
    pub started: bool,
    /// Nothing is taken from it until what was taken has ended.
    pub paused: bool,
    /// Requests taken that have not ended.
    pub open: u32,
    /// Something was put back, and the guest was not told yet.
    pub untold: bool,
    /// Where what was taken is noted, if the frontend keeps that.
    pub log: Option<RingLog>,
    /// Chains that a server before took and did not end.
    again: VecDeque<u16>,
}

/// What was taken from a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The first descriptor.
    pub head: u16,
    /// What is wrong with the chain.
    pub broken: Option<Broken>,
}

impl Default for Ring {
    fn default() -> Self {
        let queue = Queue::new(RING_SIZE_MAX).expect("the size is a power of two");
        Self {
            queue,
            enabled: false,
            started: false,
            paused: false,
            open: 0,
            untold: false,
            log: None,
            again: VecDeque::new(),
        }
    }
}

/// Addresses of a ring's parts in the guest.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// The table of descriptors.
    pub descriptors: GuestAddress,
    /// What the guest offers.
    pub available: GuestAddress,
    /// What comes back.
    pub used: GuestAddress,
}

impl Ring {
    /// Sets its size.
    ///
    /// # Errors
    /// A sentence, if it is no power of two or too large.
    pub fn set_size(&mut self, size: u32) -> Result<(), String> {
        let wanted = || format!("expected a ring of a power of two up to {RING_SIZE_MAX}, found {size}");
        let size = u16::try_from(size).map_err(|_| wanted())?;
        self.queue.try_set_size(size).map_err(|_| wanted())
    }

    /// Sets where it lies.
    ///
    /// # Errors
    /// A sentence, if a part is not aligned.
    pub fn set_parts(&mut self, parts: Parts) -> Result<(), String> {
        let queue = &mut self.queue;
        let set = queue
            .try_set_desc_table_address(parts.descriptors)
            .and_then(|()| queue.try_set_avail_ring_address(parts.available))
            .and_then(|()| queue.try_set_used_ring_address(parts.used));
        set.map_err(|error| format!("a ring cannot lie at {parts:?}: {error}"))
    }

    /// Sets which chain is next.
    pub fn set_next(&mut self, next: u16) {
        self.queue.set_next_avail(next);
    }

    /// Which chain is next.
    #[must_use]
    pub fn next(&self) -> u16 {
        self.queue.next_avail()
    }

    /// Begins; `event_idx`: both sides say which index they want to be told of. What a server before did not end comes first.
    ///
    /// # Errors
    /// A sentence, if it is not all in memory, or its log is not one.
    pub fn start(&mut self, memory: &GuestMemoryMmap, event_idx: bool) -> Result<(), String> {
        self.queue.set_ready(true);
        self.queue.set_event_idx(event_idx);
        if !self.queue.is_valid(memory) {
            self.queue.set_ready(false);
            return Err(format!(
                "a ring of {} descriptors lies beyond memory: descriptors at {:#x}, available at {:#x}, used at {:#x}",
                self.queue.size(),
                self.queue.desc_table(),
                self.queue.avail_ring(),
                self.queue.used_ring()
            ));
        }
        let used = self.queue.used_idx(memory, Ordering::Acquire);
        let used = used.map_err(|error| format!("a ring cannot be read: {error}"))?.0;
        self.queue.set_next_used(used);
        if let Some(log) = &mut self.log {
            let again = log.resume(self.queue.size(), used)?;
            // Whatever the frontend believes: what was taken is what has ended and what is in flight.
            if !again.is_empty() {
                let count = u16::try_from(again.len()).expect("as many as descriptors at most");
                self.queue.set_next_avail(used.wrapping_add(count));
            }
            self.again = again.into();
        }
        self.started = true;
        Ok(())
    }

    /// Ends; where it was stays.
    pub fn stop(&mut self) {
        assert_eq!(self.open, 0, "a ring was stopped with requests open");
        self.queue.set_ready(false);
        (self.started, self.paused, self.untold) = (false, false, false);
        // They stay in the log.
        self.again.clear();
    }

    /// The driver begins anew: what is in flight is nothing to it.
    pub fn forget(&mut self) {
        self.again.clear();
        self.log.iter().for_each(RingLog::forget);
    }

    /// All that was taken has ended. What a ring that may not run took before is not waited for.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.open == 0 && (self.again.is_empty() || !self.enabled)
    }

    /// Chains may be taken; those that were taken before also while it is paused.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.started && self.enabled && (!self.paused || !self.again.is_empty())
    }

    /// Takes the next chain, if there is one.
    ///
    /// # Errors
    /// [`ProtocolError`], if the guest's index jumps, or the ring is not there.
    pub fn take(
        &mut self,
        memory: &GuestMemoryMmap,
        chain: &mut Chain,
    ) -> Result<Option<Taken>, ProtocolError> {
        if let Some(head) = self.again.pop_front() {
            let table = GuestAddress(self.queue.desc_table());
            let descriptors = Walk::new(memory, table, self.queue.size(), head);
            self.open += 1;
            return Ok(Some(Taken { head, broken: chain.fill(descriptors).err() }));
        }
        let mut available = self.queue.iter(memory).map_err(|error| match error {
            Error::InvalidAvailRingIndex => {
                ProtocolError::garbage("a ring's index is further ahead than the ring is long")
            }
            other => ProtocolError::garbage(format!("a ring cannot be read: {other}")),
        })?;
        let Some(descriptors) = available.next() else { return Ok(None) };
        let head = descriptors.head_index();
        self.open += 1;
        let broken = chain.fill(descriptors).err();
        // What has no answer is not to be carried out again.
        if let (Some(log), None | Some(Broken::Mixed)) = (&mut self.log, broken) {
            log.taken(head);
        }
        Ok(Some(Taken { head, broken }))
    }

    /// Puts a chain back, of which `written` bytes were written. If the ring's memory is gone, nobody waits for it.
    pub fn put_back(&mut self, memory: &GuestMemoryMmap, head: u16, written: u32) {
        assert!(self.open > 0, "a chain was put back that was not taken");
        self.open -= 1;
        self.log.iter().for_each(|log| log.ends(head));
        if self.queue.add_used(memory, head, written).is_ok() {
            self.untold = true;
            self.log.iter().for_each(|log| log.ended(head, self.queue.next_used()));
        }
    }

    /// Whether the guest wants to be told of what was put back since it was told last.
    pub fn wants_call(&mut self, memory: &GuestMemoryMmap) -> bool {
        if !std::mem::take(&mut self.untold) {
            return false;
        }
        // Complete the entries before the guest's wish is read, as needs_notification does.
        let needed = self.queue.needs_notification(memory).unwrap_or(false);
        if self.queue.event_idx_enabled() {
            return needed;
        }
        let flags = memory.load::<u16>(GuestAddress(self.queue.avail_ring()), Ordering::Relaxed);
        flags.is_ok_and(|flags| u16::from_le(flags) & NO_INTERRUPT == 0)
    }

    /// Asks for kicks. True if a chain has come before that, so that no kick will tell of it.
    #[must_use]
    pub fn ask_for_kicks(&mut self, memory: &GuestMemoryMmap) -> bool {
        !self.again.is_empty() | self.queue.enable_notification(memory).unwrap_or(false)
    }

    /// Kicks are not needed: the ring is looked at anyway. If its memory is gone, the next look says so.
    pub fn decline_kicks(&mut self, memory: &GuestMemoryMmap) {
        let _ = self.queue.disable_notification(memory);
    }
}
