//! The server: owner of the controller, the guest's memory and the drive, and the loop over them.

use super::listener_thread::ListenerThread;
use super::mapped::MappedMemory;
use super::message::{Answer, Change, Message};
use super::signal::{self, Signals};
use crate::pci_nvme::{Counters, Function, NoSuchPlace, OpenChannelDrive, PciFunction, PciId};
use crate::reactor::{Interest, LogLimit, Poller, Signal, Signals as ProcessSignals, Told};
use ocssd_base::Nanos;
use ocssd_engine::{Clock, WallClock};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

/// Numbers of what is waited for.
const STOP: u64 = 0;
const REPORT: u64 = 1;
const BELL: u64 = 2;

/// The server looks at queues so long after it had something to do, before it sleeps (chosen: what a quiet machine takes to
/// wake a thread, so a guest that submits one command after the other rings no doorbell).
const SPIN: Nanos = Nanos::from_micros(50);
/// Messages taken before the queues are looked at again (chosen).
const ASKS_AT_ONCE: usize = 64;

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
    interrupts: Signals,
    listener_thread: ListenerThread,
    poller: Poller,
    signals: ProcessSignals,
    clock: WallClock,
    guests: u64,
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
        poller.add(Arc::clone(&listener_thread.bell), BELL, receive)?;
        let function = Function::new(drive, MappedMemory::default(), id);
        let clock = WallClock::starting_at(Nanos::ZERO);
        Ok(Self {
            function,
            interrupts: Signals::new(),
            listener_thread,
            poller,
            signals,
            clock,
            guests: 0,
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
        self.listener_thread.begin()?;
        let mut busy_until = Nanos::ZERO;
        loop {
            let now = self.clock.now();
            let mut any = self.answer_all(now);
            any |= self.function.turn(now);
            while let Some(vector) = self.function.take_interrupt() {
                self.interrupts.signal(vector);
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
                let (counters, guests) = (self.function.counters(), self.guests);
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
                BELL => {
                    // It counts; what it counted is in the channel.
                    let _ = rustix::io::read(&self.listener_thread.bell, &mut [0; 8]);
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// Does what the guest asks for. True if it asked for anything.
    fn answer_all(&mut self, now: Nanos) -> bool {
        for done in 0..ASKS_AT_ONCE {
            match self.listener_thread.server_end.messages.try_recv() {
                Ok(message) => {
                    let awaited = !matches!(message, Message::Write { awaited: false, .. });
                    let answer = self.answer(now, message);
                    if awaited {
                        // A listener thread that is gone waits for no answer.
                        let _ = self.listener_thread.server_end.answers.send(answer);
                    }
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return done > 0,
            }
        }
        true
    }

    fn answer(&mut self, now: Nanos, message: Message) -> Answer {
        let nothing = |()| Vec::new();
        match message {
            Message::Read { region, offset, count } => {
                let mut bytes = vec![0; count];
                self.function.read(region, offset, &mut bytes).map_err(no_such_place)?;
                Ok(bytes)
            }
            Message::Write { region, offset, bytes, .. } => {
                self.function.write(now, region, offset, &bytes).map_err(no_such_place).map(nothing)
            }
            Message::Map { at, bytes, file, writable } => {
                self.function.memory_mut().map(at, bytes, file, writable).map(nothing)
            }
            Message::Unmap { range: Some((at, bytes)) } => {
                self.function.memory_mut().unmap(at, bytes).map(nothing)
            }
            Message::Unmap { range: None } => {
                self.function.memory_mut().clear();
                Ok(Vec::new())
            }
            Message::Interrupts { start, count, change } => self.change(start, count, change).map(nothing),
            Message::Reset => {
                self.function.reset(now);
                Ok(Vec::new())
            }
            Message::Say { sentence } => {
                self.say(now, &sentence);
                Ok(Vec::new())
            }
            Message::Gone { sentence } => {
                self.guest_is_gone(now, sentence);
                Ok(Vec::new())
            }
        }
    }

    fn change(&mut self, start: u32, count: u32, change: Change) -> io::Result<()> {
        let vectors = signal::range(start, count)?;
        match change {
            Change::Files(files) => self.interrupts.set(start, count, files)?,
            Change::Trigger => {
                for vector in vectors {
                    self.interrupts.signal(u16::try_from(vector).expect("few"));
                }
            }
            Change::Mask | Change::Unmask => {
                for vector in start..start + count {
                    self.function.mask(vector, matches!(change, Change::Mask));
                }
            }
        }
        Ok(())
    }

    /// What the guest lent goes, and the function is as after power-on. What the drive has begun it finishes.
    fn guest_is_gone(&mut self, now: Nanos, sentence: Option<String>) {
        self.guests += 1;
        self.function.reset(now);
        self.function.memory_mut().clear();
        self.interrupts.clear();
        if let Some(sentence) = sentence {
            self.say(now, &sentence);
        }
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

fn no_such_place(NoSuchPlace: NoSuchPlace) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the function has no such region, or none so large")
}
