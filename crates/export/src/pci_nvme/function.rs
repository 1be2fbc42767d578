//! The function: owner of registers, queues, drive and memory, and what a guest can do to it.

use super::admin::Adapted;
use super::complete::FLUSH_QUEUE;
use super::config_space::{ConfigSpace, PciId};
use super::counters::Counters;
use super::doorbell::ShadowPages;
use super::drive::{OpenChannelDrive, Units};
use super::event::Events;
use super::interrupts::Interrupts;
use super::memory::GuestMemory;
use super::queue::{CompletionQueue, SubmissionQueue};
use super::queue_admin::QUEUES;
use super::registers::{BAR0_BYTES, ControllerChange, DOORBELLS, MSIX_PENDING, MSIX_TABLE, Registers};
use super::transfer::Staging;
use ocssd_base::Nanos;
use ocssd_nvme::identify::IdentifyController;

/// The region of the registers (`VFIO_PCI_BAR0_REGION_INDEX`).
pub const BAR0: u32 = 0;
/// The region of the configuration space (`VFIO_PCI_CONFIG_REGION_INDEX`).
pub const CONFIG: u32 = 7;

/// A region, or a place in one, that the function does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchPlace;

/// How far a shutdown is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Shutdown {
    #[default]
    None,
    /// Commands in progress end first.
    Waits,
    /// The drive makes durable what it holds.
    Flushes,
}

/// An NVMe controller on PCI with one open-channel drive.
#[derive(Debug)]
pub struct Function<D, M> {
    pub(super) drive: D,
    pub(super) memory: M,
    pub(super) id: PciId,
    pub(super) units: Units,
    pub(super) identify: IdentifyController,
    pub(super) adapted: Adapted,
    pub(super) config: ConfigSpace,
    pub(super) registers: Registers,
    pub(super) interrupts: Interrupts,
    /// What the MSI-X table holds, for who reads it: vectors are given by the transport.
    pub(super) msix_table: Vec<u8>,
    pub(super) submission: Vec<Option<SubmissionQueue>>,
    pub(super) completion: Vec<Option<CompletionQueue>>,
    pub(super) shadow: Option<ShadowPages>,
    pub(super) events: Events,
    pub(super) staging: Staging,
    pub(super) shutdown: Shutdown,
    /// The drive took no more, and has ended nothing since.
    pub(super) drive_full: bool,
    /// The I/O queue that is looked at first next time.
    pub(super) next: u16,
    pub(super) counters: Counters,
}

impl<D: OpenChannelDrive, M: GuestMemory> Function<D, M> {
    /// The function of a drive, powered on.
    ///
    /// # Panics
    /// If the drive moves less than a page at once.
    pub fn new(drive: D, memory: M, id: PciId) -> Self {
        let units = drive.units();
        assert!(
            units.transfer_bytes_max >= 4096 && units.transfer_bytes_max.is_power_of_two(),
            "a transfer of {} bytes is no power of two of pages",
            units.transfer_bytes_max
        );
        let identify = drive.identify_controller();
        let mut function = Self {
            drive,
            memory,
            id,
            units,
            identify,
            adapted: Adapted::default(),
            config: ConfigSpace::new(id),
            registers: Registers::default(),
            interrupts: Interrupts::new(),
            msix_table: vec![0; usize::from(super::VECTORS) * MSIX_ENTRY_BYTES],
            submission: Vec::new(),
            completion: Vec::new(),
            shadow: None,
            events: Events::default(),
            staging: Staging::default(),
            shutdown: Shutdown::None,
            drive_full: false,
            next: 0,
            counters: Counters::default(),
        };
        function.drop_queues();
        function
    }

    /// The drive.
    pub const fn drive_mut(&mut self) -> &mut D {
        &mut self.drive
    }

    /// Why the drive itself has failed; none of one that works.
    pub fn failure(&self) -> Option<&str> {
        self.drive.failure()
    }

    /// The drive back; what it has begun it finishes unheard.
    pub fn into_drive(self) -> D {
        self.drive
    }

    /// The guest's memory, to map and unmap it between calls.
    pub const fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The guest reads a region.
    ///
    /// # Errors
    /// [`NoSuchPlace`].
    pub fn read(&self, region: u32, offset: u64, into: &mut [u8]) -> Result<(), NoSuchPlace> {
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
    pub fn write(&mut self, now: Nanos, region: u32, offset: u64, from: &[u8]) -> Result<(), NoSuchPlace> {
        let at = place(region, offset, from.len())?;
        if region == CONFIG {
            if self.config.write(at, from) {
                self.reset(now);
            }
            return Ok(());
        }
        let table = index(MSIX_TABLE);
        if at >= table {
            for (at, &byte) in (at - table..).zip(from) {
                if let Some(place) = self.msix_table.get_mut(at) {
                    *place = byte;
                }
            }
            return Ok(());
        }
        // Registers are written in dwords; of other sizes nothing is said (NVMe base 1.4 section 3.1).
        let (dwords, rest) = from.as_chunks::<4>();
        if !at.is_multiple_of(4) || !rest.is_empty() {
            return Ok(());
        }
        for (offset, dword) in (offset..).step_by(4).zip(dwords) {
            self.write_dword(now, offset, u32::from_le_bytes(*dword));
        }
        Ok(())
    }

    fn write_dword(&mut self, now: Nanos, offset: u64, value: u32) {
        if offset >= DOORBELLS {
            if self.is_running() {
                self.ring(offset, value);
            }
            return;
        }
        let at = usize::try_from(offset).expect("below the doorbells");
        match self.registers.write(at, value) {
            None => {}
            Some(ControllerChange::Enable) => self.enable(),
            Some(ControllerChange::Disable) => self.disable(now),
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
    fn disable(&mut self, now: Nanos) {
        self.counters.resets += 1;
        self.registers.reset();
        self.drop_queues();
        self.drive.reset(now);
    }

    fn drop_queues(&mut self) {
        self.submission = (0..QUEUES).map(|_| None).collect();
        self.completion = (0..QUEUES).map(|_| None).collect();
        self.interrupts.forget();
        self.adapted = Adapted::default();
        self.shadow = None;
        self.events = Events::default();
        self.shutdown = Shutdown::None;
        self.drive_full = false;
    }

    /// A reset of the function: as after power-on, but for what the drive holds.
    pub fn reset(&mut self, now: Nanos) {
        self.disable(now);
        self.registers = Registers::default();
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

    /// Masks an interrupt vector or unmasks it.
    pub fn mask(&mut self, vector: u32, masked: bool) {
        self.interrupts.mask(vector, masked);
    }

    /// The next vector to signal to the guest.
    pub fn take_interrupt(&mut self) -> Option<u16> {
        let vector = self.interrupts.take()?;
        self.counters.interrupts += 1;
        Some(vector)
    }

    /// Fetches commands and posts completions. True if there was anything to do: then there may be more.
    pub fn turn(&mut self, now: Nanos) -> bool {
        let mut any = self.fetch(now);
        any |= self.take_completions(now);
        any |= self.tell_events(now);
        any |= self.go_on_shutting_down(now);
        any | self.post()
    }

    /// Commands of the guest that the drive has.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.submission.iter().flatten().map(|queue| u64::from(queue.in_flight)).sum()
    }

    /// When the drive next has something to say.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanos> {
        self.drive.deadline()
    }

    fn go_on_shutting_down(&mut self, now: Nanos) -> bool {
        if self.shutdown != Shutdown::Waits || self.in_flight() > 0 {
            return false;
        }
        let flush = ocssd_nvme::Sqe::flush(1);
        let none = super::Pointed { data: &mut [], metadata: &mut [], addresses: &[], destinations: &[] };
        if self.drive.submit(now, FLUSH_QUEUE, &flush, none).is_ok() {
            self.shutdown = Shutdown::Flushes;
        }
        true
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

    /// Queues there can be, the admin queue among them.
    pub(super) const fn queue_count(&self) -> u16 {
        QUEUES
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
