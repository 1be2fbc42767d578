//! The function of an open-channel drive: a port, and the drive that carries commands out.

use super::config_space::PciId;
use super::counters::Counters;
use super::drive::{OpenChannelDrive, Units};
use super::memory::GuestMemory;
use super::port::{NoSuchPlace, Port, Shutdown, Written};
use super::registers::Shape;
use super::transfer::Staging;
use ocssd_base::Nanos;
use ocssd_nvme::identify::IdentifyController;

/// The queue that a shutdown's flush comes from: no guest has it.
pub(super) const FLUSH_QUEUE: u16 = u16::MAX;

/// What a transport of PCI does to a function on behalf of its guest.
pub trait PciFunction {
    /// The guest's memory.
    type Memory;

    /// The guest reads a region.
    ///
    /// # Errors
    /// [`NoSuchPlace`].
    fn read(&self, region: u32, offset: u64, into: &mut [u8]) -> Result<(), NoSuchPlace>;

    /// The guest writes a region.
    ///
    /// # Errors
    /// [`NoSuchPlace`].
    fn write(&mut self, now: Nanos, region: u32, offset: u64, from: &[u8]) -> Result<(), NoSuchPlace>;

    /// A reset of the function: as after power-on, but for what the media holds.
    fn reset(&mut self, now: Nanos);

    /// Masks an interrupt vector or unmasks it.
    fn mask(&mut self, vector: u32, masked: bool);

    /// The guest's memory, to map and unmap it between calls.
    fn memory_mut(&mut self) -> &mut Self::Memory;
}

/// An NVMe controller on PCI with one open-channel drive.
#[derive(Debug)]
pub struct Function<D, M> {
    pub(super) port: Port<M>,
    pub(super) drive: D,
    pub(super) units: Units,
    pub(super) identify: IdentifyController,
    pub(super) staging: Staging,
    /// The drive took no more, and has ended nothing since.
    pub(super) drive_full: bool,
    /// The drive has an event request.
    pub(super) drive_asked: bool,
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
        let port = Port::new(memory, id, Shape::NVM_1_4);
        let staging = Staging::default();
        Self { port, drive, units, identify, staging, drive_full: false, drive_asked: false }
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

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.port.counters
    }

    /// Commands in progress end unheard.
    fn reset_drive(&mut self, now: Nanos) {
        self.drive_full = false;
        self.drive_asked = false;
        self.drive.reset(now);
    }

    /// The next vector to signal to the guest.
    pub fn take_interrupt(&mut self) -> Option<u16> {
        self.port.take_interrupt()
    }

    /// The guest rings for what comes next. False if something has come already: then there is another turn to take before
    /// sleeping.
    pub fn arm(&mut self) -> bool {
        self.port.arm()
    }

    /// Fetches commands and posts completions. True if there was anything to do: then there may be more.
    pub fn turn(&mut self, now: Nanos) -> bool {
        let mut any = self.fetch(now);
        any |= self.take_completions(now);
        any |= self.tell_events(now);
        any |= self.go_on_shutting_down(now);
        any | self.port.post()
    }

    /// Commands of the guest that the drive has.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.port.in_flight()
    }

    /// When the drive next has something to say.
    #[must_use]
    pub fn deadline(&self) -> Option<Nanos> {
        self.drive.deadline()
    }

    fn go_on_shutting_down(&mut self, now: Nanos) -> bool {
        if self.port.shutdown != Shutdown::Waits || self.port.in_flight() > 0 {
            return false;
        }
        let flush = ocssd_nvme::Sqe::flush(1);
        let none = super::Pointed { data: &mut [], metadata: &mut [], addresses: &[], destinations: &[] };
        if self.drive.submit(now, FLUSH_QUEUE, &flush, none).is_ok() {
            self.port.shutdown = Shutdown::Flushes;
        }
        true
    }

    /// Takes what the drive has ended. True if there was something.
    fn take_completions(&mut self, now: Nanos) -> bool {
        let mut any = false;
        while let Some((qid, completion)) = self.drive.poll(now) {
            any = true;
            self.drive_full = false;
            if qid == FLUSH_QUEUE {
                self.port.shutdown_is_done();
            } else {
                self.port.put_ended(qid, completion);
            }
        }
        any
    }
}

impl<D: OpenChannelDrive, M: GuestMemory> PciFunction for Function<D, M> {
    type Memory = M;

    fn read(&self, region: u32, offset: u64, into: &mut [u8]) -> Result<(), NoSuchPlace> {
        self.port.read(region, offset, into)
    }

    fn write(&mut self, now: Nanos, region: u32, offset: u64, from: &[u8]) -> Result<(), NoSuchPlace> {
        if matches!(self.port.write(region, offset, from)?, Written::Disabled | Written::Reset) {
            self.reset_drive(now);
        }
        Ok(())
    }

    fn reset(&mut self, now: Nanos) {
        self.port.reset();
        self.reset_drive(now);
    }

    fn mask(&mut self, vector: u32, masked: bool) {
        self.port.interrupts.mask(vector, masked);
    }

    fn memory_mut(&mut self) -> &mut M {
        &mut self.port.memory
    }
}
