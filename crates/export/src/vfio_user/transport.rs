//! Targets in a PCI slot, as the reactor serves them: messages and queues of the guest in its turns.
//!
//! The thread that blocks on the socket begins with the first turn, so that it is bound by whatever the program has given up until
//! then. Deliberately not here: what messages and commands do.

use super::listener_thread::ListenerThread;
use super::mapped::MappedMemory;
use super::slot::{SPIN, Slot};
use crate::dispatcher::Dispatcher;
use crate::job::Done;
use crate::pci_nvme::{Attended, TargetFunction};
use crate::reactor::{Interest, Limits, Ready, Sockets, Transport};
use ocssd_base::Nanos;
use std::collections::VecDeque;
use std::io;

/// The number of the bell among the transport's sockets.
const BELL: u32 = 0;

/// A slot with a controller of all exports, which one guest at a time finds there.
pub struct VfioUser {
    slot: Slot,
    function: TargetFunction<MappedMemory>,
    /// Guests may come.
    begun: bool,
    /// There was something to do last.
    busy: Nanos,
    sentences: VecDeque<String>,
}

impl VfioUser {
    /// Serves the exports at this listener thread; its jobs have `connection` as their owner.
    #[must_use]
    pub fn new(listener_thread: ListenerThread, connection: u32) -> Self {
        Self {
            slot: Slot::new(listener_thread),
            function: TargetFunction::new(MappedMemory::default(), connection),
            begun: false,
            busy: Nanos::ZERO,
            sentences: VecDeque::new(),
        }
    }

    fn begin_once(&mut self) {
        if self.begun {
            return;
        }
        self.begun = true;
        if let Err(error) = self.slot.begin() {
            self.sentences.push_back(format!("guests cannot be let in: {error}"));
        }
    }

    /// Takes messages, and counts guests that came and doorbells that were rung.
    fn answer_all(&mut self, dispatcher: &mut Dispatcher) -> bool {
        let (had_guest, rung) = (self.slot.has_guest, self.function.counters().doorbells);
        let (now, function) = (dispatcher.now, &mut self.function);
        let any = self.slot.answer_all(now, &mut Attended { function, dispatcher });
        let stats = &mut dispatcher.stats;
        stats.connections += u64::from(self.slot.has_guest && !had_guest);
        stats.connections_max = stats.connections_max.max(self.slot.has_guest.into());
        stats.kicks += self.function.counters().doorbells - rung;
        any
    }
}

impl Transport for VfioUser {
    fn begin(&mut self, sockets: &Sockets<'_>) -> io::Result<()> {
        sockets.add(self.slot.bell(), BELL, Interest { receive: true, send: false })
    }

    fn on_ready(&mut self, _number: u32, _ready: Ready, dispatcher: &mut Dispatcher, _sockets: &Sockets<'_>) {
        self.busy = dispatcher.now;
        self.slot.hush();
    }

    fn take(&mut self, dispatcher: &mut Dispatcher, _sockets: &Sockets<'_>) -> bool {
        self.begin_once();
        let any = self.answer_all(dispatcher) | self.function.take(dispatcher);
        if any {
            self.busy = dispatcher.now;
        }
        any
    }

    fn on_done(&mut self, done: Done, dispatcher: &mut Dispatcher) {
        self.busy = dispatcher.now;
        self.function.on_done(done, dispatcher);
    }

    fn tell(&mut self, dispatcher: &mut Dispatcher) {
        self.function.post();
        while let Some(vector) = self.function.take_interrupt() {
            self.slot.signal(vector);
            dispatcher.stats.calls += 1;
        }
    }

    fn before_sleep(&mut self, _dispatcher: &mut Dispatcher) -> bool {
        !self.function.arm()
    }

    fn is_eager(&self, now: Nanos) -> bool {
        !self.begun || self.slot.has_guest && now.saturating_since(self.busy) < SPIN
    }

    fn has_client(&self) -> bool {
        self.slot.has_guest
    }

    fn waits_for_room(&self) -> bool {
        self.function.waits_for_room()
    }

    /// A guest holds memory only while targets work for it: what it writes is there when it asks, and what it reads is copied at
    /// once.
    fn watch(&mut self, _limits: &Limits, _dispatcher: &mut Dispatcher, _sockets: &Sockets<'_>) {}

    fn stop(&mut self, is_late: bool, _dispatcher: &mut Dispatcher, _sockets: &Sockets<'_>) -> bool {
        self.function.stop();
        is_late || self.function.is_idle()
    }

    fn poll_sentence(&mut self) -> Option<String> {
        self.sentences.pop_front().or_else(|| self.slot.poll_sentence())
    }
}
