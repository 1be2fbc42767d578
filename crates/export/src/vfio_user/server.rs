//! The server: owner of the controller, the guest's memory and the drive, and the loop over them.

use super::listener_thread::ListenerThread;
use super::mapped::MappedMemory;
use super::slot::{SPIN, Slot};
use crate::pci_nvme::{Counters, Function, OpenChannelDrive, PciId};
use crate::reactor::{Interest, LogLimit, Poller, Signal, Signals as ProcessSignals, Told};
use ocssd_base::Nanos;
use ocssd_engine::{Clock, WallClock};
use std::io;
use std::time::Duration;

/// Numbers of what is waited for.
const STOP: u64 = 0;
const REPORT: u64 = 1;
const BELL: u64 = 2;

/// What a server did, and what it leaves.
pub struct Served<D> {
    /// The drive.
    pub drive: D,
    /// What the controller counted.
    pub counters: Counters,
    /// Guests that came and went.
    pub guests: u64,
}

/// A drive in a PCI slot of one virtual machine at a time.
pub struct Server<D> {
    function: Function<D, MappedMemory>,
    slot: Slot,
    poller: Poller,
    signals: ProcessSignals,
    clock: WallClock,
    /// What was told of the drive.
    told: Told,
    log: Box<dyn FnMut(&str)>,
    /// How often it is told.
    log_limit: LogLimit,
}

impl<D: OpenChannelDrive> Server<D> {
    /// A server of this drive for this listener thread. `log` is told in a sentence of every guest that is dropped.
    ///
    /// # Errors
    /// As the system says.
    pub fn new(
        drive: D,
        id: PciId,
        listener_thread: ListenerThread,
        signals: ProcessSignals,
        log: Box<dyn FnMut(&str)>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        let receive = Interest { receive: true, send: false };
        poller.add(signals.socket(Signal::Stop), STOP, receive)?;
        poller.add(signals.socket(Signal::Report), REPORT, receive)?;
        let slot = Slot::new(listener_thread);
        poller.add(slot.bell(), BELL, receive)?;
        let function = Function::new(drive, MappedMemory::default(), id);
        let clock = WallClock::starting_at(Nanos::ZERO);
        Ok(Self {
            function,
            slot,
            poller,
            signals,
            clock,
            told: Told::default(),
            log,
            log_limit: LogLimit::default(),
        })
    }

    /// Serves until it is told to stop. `report` is called when a signal asks for it.
    ///
    /// # Errors
    /// If waiting fails, which no guest can cause.
    pub fn run(mut self, report: &mut dyn FnMut(&Counters)) -> io::Result<Served<D>> {
        crate::reactor::wait_precisely();
        self.slot.begin()?;
        let mut busy_until = Nanos::ZERO;
        loop {
            let now = self.clock.now();
            let mut any = self.slot.answer_all(now, &mut self.function);
            any |= self.function.turn(now);
            while let Some(vector) = self.function.take_interrupt() {
                self.slot.signal(vector);
            }
            while let Some(sentence) = self.slot.poll_sentence() {
                self.say(now, &sentence);
            }
            if let Some(news) = self.told.news(self.function.failure()) {
                (self.log)(&news);
            }
            if any {
                busy_until = now + SPIN;
            }
            let timeout = if any || now < busy_until || !self.function.arm() {
                Some(Duration::ZERO)
            } else {
                let deadline = self.function.deadline();
                deadline.map(|at| Duration::from_nanos(at.saturating_since(now + SPIN).0))
            };
            if self.wait(timeout, report)? {
                if let Some(line) = self.log_limit.poll(now, true) {
                    (self.log)(&line);
                }
                let (counters, guests) = (self.function.counters(), self.slot.guests);
                return Ok(Served { drive: self.function.into_drive(), counters, guests });
            }
        }
    }

    /// Waits for the listener thread, signals and time. True if the server is to stop.
    fn wait(&mut self, timeout: Option<Duration>, report: &mut dyn FnMut(&Counters)) -> io::Result<bool> {
        self.poller.wait(timeout)?;
        let mut place = 0;
        while let Some(ready) = self.poller.ready(place) {
            place += 1;
            match ready.number {
                STOP if self.signals.take(Signal::Stop) => return Ok(true),
                REPORT if self.signals.take(Signal::Report) => report(&self.function.counters()),
                BELL => self.slot.hush(),
                _ => {}
            }
        }
        Ok(false)
    }

    /// Tells the log, unless that is told too much already; then how much it was not told.
    fn say(&mut self, now: Nanos, sentence: &str) {
        if let Some(line) = self.log_limit.poll(now, false) {
            (self.log)(&line);
        }
        if self.log_limit.admits(now) {
            (self.log)(sentence);
        }
    }
}
