//! The slot of a guest: its messages, carried out on the function that is in it, and its interrupts.
//!
//! Deliberately not here: the function, and when messages are looked at.

use super::listener_thread::ListenerThread;
use super::mapped::MappedMemory;
use super::message::{Answer, Change, Message};
use super::signal::{self, Signals};
use crate::pci_nvme::{NoSuchPlace, PciFunction};
use ocssd_base::Nanos;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;

/// The queues are looked at for so long after there was something to do, before the server sleeps (chosen: what a quiet machine
/// takes to wake a thread, so a guest that submits one command after the other rings no doorbell).
pub(super) const SPIN: Nanos = Nanos::from_micros(50);
/// Messages taken before the queues are looked at again (chosen).
const ASKS_AT_ONCE: usize = 64;

/// A slot.
pub(super) struct Slot {
    interrupts: Signals,
    listener_thread: ListenerThread,
    /// Guests that came and went.
    pub(super) guests: u64,
    /// One is there.
    pub(super) has_guest: bool,
    /// What is to be said.
    sentences: VecDeque<String>,
}

impl Slot {
    /// An empty slot at this listener thread.
    pub(super) fn new(listener_thread: ListenerThread) -> Self {
        let (interrupts, sentences) = (Signals::new(), VecDeque::new());
        Self { interrupts, listener_thread, guests: 0, has_guest: false, sentences }
    }

    /// Lets guests come. Once is as good as twice.
    ///
    /// # Errors
    /// As the system says.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        self.listener_thread.begin()
    }

    /// It rings when there is a message.
    pub(super) fn bell(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.listener_thread.bell)
    }

    /// The bell was heard: it counts, and what it counted is in the channel.
    pub(super) fn hush(&self) {
        let _ = rustix::io::read(&self.listener_thread.bell, &mut [0; 8]);
    }

    /// Interrupts the guest.
    pub(super) fn signal(&mut self, vector: u16) {
        self.interrupts.signal(vector);
    }

    /// What is to be said, in whole sentences.
    pub(super) fn poll_sentence(&mut self) -> Option<String> {
        self.sentences.pop_front()
    }

    /// Does what the guest asks for. True if it asked for anything.
    pub(super) fn answer_all(
        &mut self,
        now: Nanos,
        function: &mut impl PciFunction<Memory = MappedMemory>,
    ) -> bool {
        for done in 0..ASKS_AT_ONCE {
            match self.listener_thread.server_end.messages.try_recv() {
                Ok(message) => {
                    let awaited = !matches!(message, Message::Write { awaited: false, .. });
                    let answer = self.answer(now, message, function);
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

    fn answer(
        &mut self,
        now: Nanos,
        message: Message,
        function: &mut impl PciFunction<Memory = MappedMemory>,
    ) -> Answer {
        let nothing = |()| Vec::new();
        self.has_guest |= !matches!(message, Message::Say { .. });
        match message {
            Message::Read { region, offset, count } => {
                let mut bytes = vec![0; count];
                function.read(region, offset, &mut bytes).map_err(no_such_place)?;
                Ok(bytes)
            }
            Message::Write { region, offset, bytes, .. } => {
                function.write(now, region, offset, &bytes).map_err(no_such_place).map(nothing)
            }
            Message::Map { at, bytes, file, writable } => {
                function.memory_mut().map(at, bytes, file, writable).map(nothing)
            }
            Message::Unmap { range: Some((at, bytes)) } => {
                function.memory_mut().unmap(at, bytes).map(nothing)
            }
            Message::Unmap { range: None } => {
                function.memory_mut().clear();
                Ok(Vec::new())
            }
            Message::Interrupts { start, count, change } => {
                self.change(start, count, change, function).map(nothing)
            }
            Message::Reset => {
                function.reset(now);
                Ok(Vec::new())
            }
            Message::Say { sentence } => {
                self.sentences.push_back(sentence);
                Ok(Vec::new())
            }
            Message::Gone { sentence } => {
                self.sentences.extend(sentence);
                self.guests += 1;
                self.has_guest = false;
                self.interrupts.clear();
                // What it lent goes, and the function is as after power-on. What was begun on media is finished.
                function.reset(now);
                function.memory_mut().clear();
                Ok(Vec::new())
            }
        }
    }

    fn change(
        &mut self,
        start: u32,
        count: u32,
        change: Change,
        function: &mut impl PciFunction<Memory = MappedMemory>,
    ) -> io::Result<()> {
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
                    function.mask(vector, matches!(change, Change::Mask));
                }
            }
        }
        Ok(())
    }
}

fn no_such_place(NoSuchPlace: NoSuchPlace) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the function has no such region, or none so large")
}
