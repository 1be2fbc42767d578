//! Queues in the guest's memory: rings with a head and a tail, and the phase of a completion queue.
//!
//! Source: NVMe base 1.4 sections 4.1 and 4.6.

use super::memory::{GuestMemory, Unmapped};
use ocssd_nvme::{Cqe, HostAddress, Sqe};
use std::collections::VecDeque;

/// Most entries of a queue (CAP.MQES; chosen: Linux asks for 1024 at most).
pub(super) const ENTRIES_MAX: u32 = 1024;

/// A value that is no place in the ring, or not one that may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadValue;

/// A submission queue.
#[derive(Debug)]
pub(super) struct SubmissionQueue {
    pub(super) base: HostAddress,
    pub(super) entries: u32,
    /// The next entry to fetch.
    pub(super) head: u32,
    /// One behind the last that the guest has written.
    pub(super) tail: u32,
    /// Where completions go.
    pub(super) cqid: u16,
    /// Commands the drive has.
    pub(super) in_flight: u32,
    /// The admin command that deletes it waits for them.
    pub(super) deleted_by: Option<u16>,
}

impl SubmissionQueue {
    pub(super) fn new(base: HostAddress, entries: u32, cqid: u16) -> Self {
        Self { base, entries, head: 0, tail: 0, cqid, in_flight: 0, deleted_by: None }
    }

    pub(super) fn has_entries(&self) -> bool {
        self.head != self.tail && self.deleted_by.is_none()
    }

    /// The guest says where its entries end.
    pub(super) fn set_tail(&mut self, value: u32) -> Result<(), BadValue> {
        if value >= self.entries {
            return Err(BadValue);
        }
        self.tail = value;
        Ok(())
    }

    /// The entry at the head.
    pub(super) fn peek<M: GuestMemory>(&self, memory: &M) -> Result<Sqe, Unmapped> {
        let mut entry = [0; Sqe::BYTES];
        memory.read(entry_at(self.base, self.head, Sqe::BYTES), &mut entry)?;
        Ok(Sqe::decode(&entry))
    }

    /// The entry at the head is taken.
    pub(super) fn take(&mut self) {
        assert_ne!(self.head, self.tail, "an entry of an empty queue was taken");
        self.head = (self.head + 1) % self.entries;
    }

    /// SQHD of a completion.
    pub(super) fn sqhd(&self) -> u16 {
        u16::try_from(self.head).expect("at most 65536 entries")
    }
}

/// A completion queue.
#[derive(Debug)]
pub(super) struct CompletionQueue {
    pub(super) base: HostAddress,
    pub(super) entries: u32,
    /// The next entry the guest takes.
    pub(super) head: u32,
    /// The next entry to write.
    pub(super) tail: u32,
    /// What the next entry's phase is.
    pub(super) phase: bool,
    /// The interrupt vector, if the guest wants interrupts.
    pub(super) vector: Option<u16>,
    /// Completions that wait for room.
    pub(super) backlog: VecDeque<Cqe>,
    /// Submission queues that use it.
    pub(super) users: u32,
}

impl CompletionQueue {
    pub(super) fn new(base: HostAddress, entries: u32, vector: Option<u16>) -> Self {
        Self { base, entries, head: 0, tail: 0, phase: true, vector, backlog: VecDeque::new(), users: 0 }
    }

    fn is_full(&self) -> bool {
        (self.tail + 1) % self.entries == self.head
    }

    /// The guest says what it has taken: no more than was there.
    pub(super) fn set_head(&mut self, value: u32) -> Result<(), BadValue> {
        if !self.may_take(value) {
            return Err(BadValue);
        }
        self.head = value;
        Ok(())
    }

    /// A head of `value` takes no more than is there.
    pub(super) fn may_take(&self, value: u32) -> bool {
        let behind = |place: u32| (place + self.entries - self.head) % self.entries;
        value < self.entries && behind(value) <= behind(self.tail)
    }

    /// Writes what waits, as far as there is room; how many.
    pub(super) fn post<M: GuestMemory>(&mut self, memory: &M) -> Result<u32, Unmapped> {
        let mut posted = 0;
        while !self.is_full() {
            let Some(completion) = self.backlog.pop_front() else { break };
            let bytes = Cqe { phase: self.phase, ..completion }.encode();
            let at = entry_at(self.base, self.tail, Cqe::BYTES);
            let (text, last) = bytes.split_at(12);
            memory.write(at, text)?;
            // The phase is what the guest looks at: it comes last, with the rest of its dword.
            let last = u32::from_le_bytes(last.try_into().expect("four bytes"));
            memory.store(HostAddress(at.0.wrapping_add(12)), last)?;
            self.tail = (self.tail + 1) % self.entries;
            self.phase ^= self.tail == 0;
            posted += 1;
        }
        Ok(posted)
    }
}

fn entry_at(base: HostAddress, index: u32, bytes: usize) -> HostAddress {
    let bytes = u64::try_from(bytes).expect("small");
    HostAddress(base.0.wrapping_add(u64::from(index) * bytes))
}

#[cfg(test)]
mod tests {
    use super::super::memory::FlatMemory;
    use super::*;
    use ocssd_nvme::StatusField;

    fn completion(cid: u16) -> Cqe {
        Cqe { dw0: 0, dw1: 0, sqhd: 0, sqid: 1, cid, phase: false, status: StatusField::SUCCESS }
    }

    fn entry(memory: &FlatMemory, index: u64) -> (u16, bool) {
        let mut bytes = [0; 16];
        memory.read(HostAddress(0x1000 + 16 * index), &mut bytes).unwrap();
        let cqe = Cqe::decode(&bytes);
        (cqe.cid, cqe.phase)
    }

    #[test]
    fn the_phase_turns_with_the_ring_and_a_full_queue_waits() {
        let memory = FlatMemory::new(0x1000, 0x1000);
        let mut queue = CompletionQueue::new(HostAddress(0x1000), 3, None);
        queue.backlog.extend((10..14).map(completion));
        assert_eq!(queue.post(&memory), Ok(2), "one entry is always free");
        assert_eq!(
            (entry(&memory, 0), entry(&memory, 1), entry(&memory, 2)),
            ((10, true), (11, true), (0, false))
        );
        queue.set_head(2).unwrap();
        assert_eq!(queue.post(&memory), Ok(2));
        assert_eq!((entry(&memory, 2), entry(&memory, 0)), ((12, true), (13, false)));
    }

    #[test]
    fn a_guest_takes_no_more_than_is_there() {
        let memory = FlatMemory::new(0x1000, 0x1000);
        let mut queue = CompletionQueue::new(HostAddress(0x1000), 4, None);
        queue.backlog.extend((0..2).map(completion));
        queue.post(&memory).unwrap();
        for bad in [3, 4, 5, u32::MAX] {
            assert_eq!(queue.set_head(bad), Err(BadValue), "{bad}");
        }
        assert_eq!(
            (queue.set_head(1), queue.set_head(2), queue.set_head(1)),
            (Ok(()), Ok(()), Err(BadValue))
        );
    }

    #[test]
    fn entries_outside_memory_are_an_error() {
        let memory = FlatMemory::new(0x1000, 0x1000);
        let mut queue = CompletionQueue::new(HostAddress(0x1ff8), 4, None);
        queue.backlog.push_back(completion(1));
        assert_eq!(queue.post(&memory), Err(Unmapped));
        let mut queue = SubmissionQueue::new(HostAddress(0x1fc0), 2, 0);
        queue.set_tail(1).unwrap();
        assert!(queue.peek(&memory).is_ok());
        queue.take();
        assert_eq!((queue.has_entries(), queue.set_tail(2)), (false, Err(BadValue)));
        queue.set_tail(0).unwrap();
        assert_eq!(queue.peek(&memory), Err(Unmapped));
    }
}
