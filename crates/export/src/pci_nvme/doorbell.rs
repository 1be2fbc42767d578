//! Doorbells: registers, and their shadows in the guest's memory.
//!
//! With Doorbell Buffer Config a guest writes a queue's index into its own memory and rings the register only if the index
//! passes what the controller wrote beside it (EventIdx). The controller looks at the shadows while it is busy, and writes
//! EventIdx before it sleeps ([`Port::arm`]). Source: NVMe base 1.4 sections 5.7 and 7.13.

use super::event::BadDoorbell;
use super::memory::{GuestMemory, Unmapped};
use super::port::Port;
use super::prp::PAGE_BYTES;
use super::queue_admin::QUEUES;
use super::registers::DOORBELLS;
use ocssd_lightnvm::Status;
use ocssd_nvme::{HostAddress, Sqe};

/// Where the guest's copies are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShadowPages {
    doorbells: HostAddress,
    event_indexes: HostAddress,
}

/// Which doorbell: a submission queue's tail, or a completion queue's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doorbell {
    Tail(u16),
    Head(u16),
}

impl Doorbell {
    /// The doorbell at an offset of BAR0.
    fn at(offset: u64) -> Option<Self> {
        let index = offset.checked_sub(DOORBELLS)? / 4;
        let queue = u16::try_from(index / 2).ok()?;
        Some(if index.is_multiple_of(2) { Self::Tail(queue) } else { Self::Head(queue) })
    }

    /// Bytes from the beginning of the doorbells to it.
    fn offset(self) -> u64 {
        match self {
            Self::Tail(queue) => u64::from(queue) * 8,
            Self::Head(queue) => u64::from(queue) * 8 + 4,
        }
    }
}

impl ShadowPages {
    fn doorbell(&self, doorbell: Doorbell) -> HostAddress {
        HostAddress(self.doorbells.0.wrapping_add(doorbell.offset()))
    }

    fn event_index(&self, doorbell: Doorbell) -> HostAddress {
        HostAddress(self.event_indexes.0.wrapping_add(doorbell.offset()))
    }
}

impl<M: GuestMemory> Port<M> {
    /// A doorbell register is written.
    pub(super) fn ring(&mut self, offset: u64, value: u32) {
        self.counters.doorbells += 1;
        let Some(doorbell) = Doorbell::at(offset) else { return };
        if self.shadowed(doorbell).is_some() {
            // The shadow is as new or newer, and is looked at in every turn.
            return;
        }
        self.set(doorbell, value);
    }

    /// The pages that hold a queue's shadow. The admin queue has none: Linux does not write it.
    fn shadowed(&self, doorbell: Doorbell) -> Option<ShadowPages> {
        let (Doorbell::Tail(queue) | Doorbell::Head(queue)) = doorbell;
        self.shadow.filter(|_| queue > 0)
    }

    fn set(&mut self, doorbell: Doorbell, value: u32) {
        let set = match doorbell {
            Doorbell::Tail(queue) => self.submission_mut(queue).map(|queue| queue.set_tail(value)),
            Doorbell::Head(queue) => self.completion_mut(queue).map(|queue| queue.set_head(value)),
        };
        match set {
            Some(Ok(())) => {}
            Some(Err(_)) => self.events.note(BadDoorbell::Value),
            None => self.events.note(BadDoorbell::Register),
        }
    }

    /// Doorbell Buffer Config.
    pub(super) fn configure_shadow(&mut self, sqe: &Sqe) -> Result<(), Status> {
        let pages = ShadowPages { doorbells: sqe.prp1, event_indexes: sqe.prp2 };
        for page in [pages.doorbells, pages.event_indexes] {
            if page.0 == 0 || !page.0.is_multiple_of(PAGE_BYTES) {
                return Err(Status::INVALID_FIELD);
            }
            if !self.memory.is_writable(page, usize::try_from(PAGE_BYTES).expect("4096")) {
                return Err(Status::DATA_TRANSFER_ERROR);
            }
        }
        self.shadow = Some(pages);
        // Queues that are there go on where they are.
        for queue in 1..QUEUES {
            if let Some(tail) = self.submission_mut(queue).map(|queue| queue.tail) {
                self.begin_shadow(Doorbell::Tail(queue), tail);
            }
            if let Some(head) = self.completion_mut(queue).map(|queue| queue.head) {
                self.begin_shadow(Doorbell::Head(queue), head);
            }
        }
        Ok(())
    }

    /// A queue's shadow holds what the controller knows: Linux 5.10 leaves there what was true before a reset.
    pub(super) fn begin_shadow(&mut self, doorbell: Doorbell, value: u32) {
        let Some(pages) = self.shadowed(doorbell) else { return };
        let written = self
            .memory
            .store(pages.doorbell(doorbell), value)
            .and_then(|()| self.memory.store(pages.event_index(doorbell), value));
        if written.is_err() {
            self.fail();
        }
    }

    /// Takes over what a shadow says. True if it is news.
    pub(super) fn look_at_shadow(&mut self, doorbell: Doorbell) -> bool {
        let Some(pages) = self.shadowed(doorbell) else { return false };
        let known = match doorbell {
            Doorbell::Tail(queue) => self.submission_mut(queue).map(|queue| queue.tail),
            Doorbell::Head(queue) => self.completion_mut(queue).map(|queue| queue.head),
        };
        let Some(known) = known else { return false };
        let Ok(value) = self.memory.load(pages.doorbell(doorbell)) else {
            self.fail();
            return false;
        };
        if value == known {
            return false;
        }
        let accepted = self.accepts(doorbell, value);
        self.counters.shadow_doorbells += u64::from(accepted);
        self.set(doorbell, value);
        accepted
    }

    /// The value may be written to the doorbell now.
    fn accepts(&self, doorbell: Doorbell, value: u32) -> bool {
        match doorbell {
            Doorbell::Tail(queue) => self.submission(queue).is_some_and(|queue| value < queue.entries),
            Doorbell::Head(queue) => self.completion(queue).is_some_and(|queue| queue.may_take(value)),
        }
    }

    /// The guest rings the register for what comes next. False if something has come already: then there is another turn
    /// to take before sleeping.
    pub(super) fn arm(&mut self) -> bool {
        let Some(pages) = self.shadow.filter(|_| self.is_running()) else { return true };
        for queue in 1..QUEUES {
            let tail = self.submission_mut(queue).map(|queue| queue.tail);
            // What a full completion queue waits for.
            let waiting = self.completion_mut(queue).filter(|queue| !queue.backlog.is_empty());
            let head = waiting.map(|queue| queue.head);
            let armed = [(Doorbell::Tail(queue), tail), (Doorbell::Head(queue), head)];
            for (doorbell, known) in armed {
                let Some(known) = known else { continue };
                match self.arm_one(pages, doorbell, known) {
                    Ok(true) => {}
                    Ok(false) => return false,
                    Err(Unmapped) => {
                        self.fail();
                        return true;
                    }
                }
            }
        }
        true
    }

    /// Writes EventIdx, then looks whether the guest was faster. A value that was refused is no news again.
    fn arm_one(&self, pages: ShadowPages, doorbell: Doorbell, known: u32) -> Result<bool, Unmapped> {
        self.memory.store(pages.event_index(doorbell), known)?;
        let value = self.memory.load(pages.doorbell(doorbell))?;
        Ok(value == known || !self.accepts(doorbell, value))
    }
}
