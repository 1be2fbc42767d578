//! The port of a function: registers, queues, doorbells and interrupts, and what a guest can do to them.
//!
//! It belongs to whoever carries commands out, who takes entries from it ([`Port::peek`], [`Port::take_entry`]) and gives it
//! completions ([`Port::put`]). Deliberately not here: what commands are.

use super::config_space::{ConfigSpace, PciId};
use super::counters::Counters;
use super::doorbell::ShadowPages;
use super::event::Events;
use super::interrupts::Interrupts;
use super::memory::GuestMemory;
use super::queue::{CompletionQueue, SubmissionQueue};
use super::queue_admin::{Granted, QUEUES};
use super::registers::{BAR0_BYTES, ControllerChange, DOORBELLS, MSIX_PENDING, MSIX_TABLE, Registers, Shape};
use ocssd_nvme::{AdminOpcode, Sqe};

/// The region of the registers (`VFIO_PCI_BAR0_REGION_INDEX`).
pub const BAR0: u32 = 0;
/// The region of the configuration space (`VFIO_PCI_CONFIG_REGION_INDEX`).
pub const CONFIG: u32 = 7;

/// Doorbell Buffer Config (NVMe base 1.4 section 5.7).
pub(super) const DOORBELL_BUFFER_CONFIG: AdminOpcode = AdminOpcode(0x7C);
/// OACS bit 8: there is Doorbell Buffer Config.
pub(super) const OACS_DOORBELL_BUFFER: u16 = 1 << 8;

/// A region, or a place in one, that the function does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchPlace;

/// What a write of the guest did to the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Nothing that concerns commands.
    Plain,
    /// CC.EN was set, and the controller is ready, or has failed.
    Enabled,
    /// CC.EN was cleared: queues and event requests are gone.
    Disabled,
    /// The function is as after power-on.
    Reset,
}

/// How far a shutdown is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shutdown {
    #[default]
    None,
    /// Commands in progress end first.
    Waits,
    /// What was answered is made durable.
    Flushes,
}

/// The port of a function.
#[derive(Debug)]
pub(super) struct Port<M> {
    pub(super) memory: M,
    id: PciId,
    shape: Shape,
    pub(super) config: ConfigSpace,
    pub(super) registers: Registers,
    pub(super) interrupts: Interrupts,
    /// What the MSI-X table holds, for who reads it: vectors are given by the transport.
    msix_table: Vec<u8>,
    pub(super) submission: Vec<Option<SubmissionQueue>>,
    pub(super) completion: Vec<Option<CompletionQueue>>,
    pub(super) granted: Granted,
    pub(super) shadow: Option<ShadowPages>,
    pub(super) events: Events,
    pub(super) shutdown: Shutdown,
    /// The I/O queue that is looked at first next time.
    next: u16,
    pub(super) counters: Counters,
}

impl<M: GuestMemory> Port<M> {
    /// The port of a function that was powered on.
    pub(super) fn new(memory: M, id: PciId, shape: Shape) -> Self {
        let mut port = Self {
            memory,
            id,
            shape,
            config: ConfigSpace::new(id),
            registers: Registers::new(shape),
            interrupts: Interrupts::new(),
            msix_table: vec![0; usize::from(super::VECTORS) * MSIX_ENTRY_BYTES],
            submission: Vec::new(),
            completion: Vec::new(),
            granted: Granted::default(),
            shadow: None,
            events: Events::default(),
            shutdown: Shutdown::None,
            next: 0,
            counters: Counters::default(),
        };
        port.drop_queues();
        port
    }

    /// The guest reads a region.
    ///
    /// # Errors
    /// [`NoSuchPlace`].
    pub(super) fn read(&self, region: u32, offset: u64, into: &mut [u8]) -> Result<(), NoSuchPlace> {
        let at = place(region, offset, into.len())?;
        if region == CONFIG {
            self.config.read(at, into);
            return Ok(());
        }
        let (table, pending) = (index(MSIX_TABLE), index(MSIX_PENDING));
        for (at, byte) in (at..).zip(into) {
            *byte = match at {
                _ if at >= pending => self.interrupts.pending_bits(at - pending),
                _ if at >= table => self.msix_table.get(at - table).copied().unwrap_or(0),
                _ => self.registers.read(at),
            };
        }
        Ok(())
    }

    /// The guest writes a region.
    ///
    /// # Errors
    /// [`NoSuchPlace`].
    pub(super) fn write(&mut self, region: u32, offset: u64, from: &[u8]) -> Result<Written, NoSuchPlace> {
        let at = place(region, offset, from.len())?;
        if region == CONFIG {
            if self.config.write(at, from) {
                self.reset();
                return Ok(Written::Reset);
            }
            return Ok(Written::Plain);
        }
        let table = index(MSIX_TABLE);
        if at >= table {
            for (at, &byte) in (at - table..).zip(from) {
                if let Some(place) = self.msix_table.get_mut(at) {
                    *place = byte;
                }
            }
            return Ok(Written::Plain);
        }
        // Registers are written in dwords; of other sizes nothing is said (NVMe base 1.4 section 3.1).
        let (dwords, rest) = from.as_chunks::<4>();
        if !at.is_multiple_of(4) || !rest.is_empty() {
            return Ok(Written::Plain);
        }
        let mut written = Written::Plain;
        for (offset, dword) in (offset..).step_by(4).zip(dwords) {
            let here = self.write_dword(offset, u32::from_le_bytes(*dword));
            // CC is written once at most: it is one dword.
            written = if here == Written::Plain { written } else { here };
        }
        Ok(written)
    }

    fn write_dword(&mut self, offset: u64, value: u32) -> Written {
        if offset >= DOORBELLS {
            if self.is_running() {
                self.ring(offset, value);
            }
            return Written::Plain;
        }
        let at = usize::try_from(offset).expect("below the doorbells");
        match self.registers.write(at, value) {
            None => {}
            Some(ControllerChange::Enable) => {
                self.enable();
                return Written::Enabled;
            }
            Some(ControllerChange::Disable) => {
                self.disable();
                return Written::Disabled;
            }
            Some(ControllerChange::ShutDown) if self.is_running() => {
                self.registers.csts.shutdown = 1;
                // Asked for again while it is on its way, it is the same.
                if self.shutdown == Shutdown::None {
                    self.shutdown = Shutdown::Waits;
                }
            }
            // Nothing was begun that could be shut down.
            Some(ControllerChange::ShutDown) => self.registers.csts.shutdown = 2,
        }
        Written::Plain
    }

    /// CC.EN was set: the admin queues are taken as the registers describe them, or the controller fails.
    fn enable(&mut self) {
        let Some(queues) = self.registers.admin_queues() else { return self.fail() };
        let ((submission, submissions), (completion, completions)) = (queues.submission, queues.completion);
        self.submission[0] = Some(SubmissionQueue::new(submission, submissions, 0));
        let mut queue = CompletionQueue::new(completion, completions, Some(0));
        queue.users = 1;
        self.completion[0] = Some(queue);
        self.registers.csts.ready = true;
    }

    /// CC.EN was cleared: queues, features and event requests are gone; commands in progress finish unheard.
    fn disable(&mut self) {
        self.counters.resets += 1;
        self.registers.reset();
        self.drop_queues();
    }

    fn drop_queues(&mut self) {
        self.submission = (0..QUEUES).map(|_| None).collect();
        self.completion = (0..QUEUES).map(|_| None).collect();
        self.interrupts.forget();
        self.granted = Granted::default();
        self.shadow = None;
        self.events = Events::default();
        self.shutdown = Shutdown::None;
    }

    /// A reset of the function: as after power-on, but for what the drive holds.
    pub(super) fn reset(&mut self) {
        self.disable();
        self.registers = Registers::new(self.shape);
        self.config = ConfigSpace::new(self.id);
        self.interrupts = Interrupts::new();
        self.msix_table.fill(0);
    }

    /// The controller cannot go on: the guest must reset it.
    pub(super) fn fail(&mut self) {
        if !self.registers.csts.fatal {
            self.counters.fatals += 1;
            self.registers.csts.fatal = true;
        }
    }

    /// Queues are looked at.
    pub(super) const fn is_running(&self) -> bool {
        self.registers.csts.ready && !self.registers.csts.fatal
    }

    /// The next vector to signal to the guest.
    pub(super) fn take_interrupt(&mut self) -> Option<u16> {
        let vector = self.interrupts.take()?;
        self.counters.interrupts += 1;
        Some(vector)
    }

    /// Commands of the guest that have been taken and have not ended.
    pub(super) fn in_flight(&self) -> u64 {
        self.submission.iter().flatten().map(|queue| u64::from(queue.in_flight)).sum()
    }

    /// I/O queues that there are, of either direction.
    pub(super) fn made_queues(&self) -> impl Iterator<Item = u16> {
        (1..QUEUES).filter(|&qid| self.submission(qid).is_some() || self.completion(qid).is_some())
    }

    /// The queues, the admin queue first, I/O queues in turn.
    pub(super) fn take_turn(&mut self) -> impl Iterator<Item = u16> + use<M> {
        let (others, first) = (QUEUES - 1, self.next);
        self.next = (first + 1) % others;
        std::iter::once(0).chain((0..others).map(move |step| 1 + (first + step) % others))
    }

    /// The next entry of a queue, if one may be taken.
    pub(super) fn peek(&mut self, qid: u16) -> Option<Sqe> {
        let queue = self.submission(qid).filter(|queue| self.is_running() && queue.has_entries())?;
        // Completions that wait are a queue's limit.
        if self.completion(queue.cqid).is_none_or(|queue| !queue.backlog.is_empty()) {
            return None;
        }
        let entry = queue.peek(&self.memory);
        if entry.is_err() {
            self.fail();
        }
        entry.ok()
    }

    /// The entry that was looked at is taken.
    pub(super) fn take_entry(&mut self, qid: u16) {
        self.submission_mut(qid).expect("its entry was just read").take();
    }

    pub(super) fn submission(&self, queue: u16) -> Option<&SubmissionQueue> {
        self.submission.get(usize::from(queue))?.as_ref()
    }

    pub(super) fn submission_mut(&mut self, queue: u16) -> Option<&mut SubmissionQueue> {
        self.submission.get_mut(usize::from(queue))?.as_mut()
    }

    pub(super) fn completion(&self, queue: u16) -> Option<&CompletionQueue> {
        self.completion.get(usize::from(queue))?.as_ref()
    }

    pub(super) fn completion_mut(&mut self, queue: u16) -> Option<&mut CompletionQueue> {
        self.completion.get_mut(usize::from(queue))?.as_mut()
    }
}

/// An entry of the MSI-X table (PCI Local Bus 3.0 section 6.8.2.6).
const MSIX_ENTRY_BYTES: usize = 16;

fn index(offset: u32) -> usize {
    usize::try_from(offset).expect("32 bits fit an index")
}

/// A place of a region, with `count` bytes behind it.
fn place(region: u32, offset: u64, count: usize) -> Result<usize, NoSuchPlace> {
    let bytes = match region {
        BAR0 => usize::try_from(BAR0_BYTES).map_err(|_| NoSuchPlace)?,
        CONFIG => super::CONFIG_BYTES,
        _ => return Err(NoSuchPlace),
    };
    let at = usize::try_from(offset).map_err(|_| NoSuchPlace)?;
    let end = at.checked_add(count).ok_or(NoSuchPlace)?;
    if end <= bytes { Ok(at) } else { Err(NoSuchPlace) }
}
