//! A frontend that is there: its socket, the messages on it, and the eventfds of its rings.
//!
//! Messages are carried out one after the other, by `vhost` on the backend; one that concerns requests waits until these have
//! ended. The transport owns it. Deliberately not here: who may come, and when rings are looked at (`transport`).

use super::backend::{Backend, Change};
use super::config::QUEUES_MAX;
use super::device::Device;
use super::message::{self, Barrier, Look};
use crate::protocol::ProtocolError;
use crate::reactor::{Interest, Limits, Sockets};
use crate::stats::DropReason;
use ocssd_base::Nanos;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};
use vhost::vhost_user::{BackendReqHandler, Error};

/// The number of the frontend's socket; that of the listener is below it.
pub const FRONTEND: u32 = 1;
/// The number of the first ring's kicks; those of the others follow.
const FIRST_KICK: u32 = 2;

/// Messages carried out before rings are looked at (chosen), so that who sends many holds up nobody.
const MESSAGES_MAX: usize = 64;

/// A frontend that is there.
pub struct Frontend {
    stream: UnixStream,
    messages: BackendReqHandler<Mutex<Backend>>,
    /// Shared with `messages`, which knows no other way to its owner; both are used by one thread, one after the other, so
    /// the lock is always free.
    backend: Arc<Mutex<Backend>>,
    kicks: Vec<Option<File>>,
    calls: Vec<Option<File>>,
    errs: Vec<Option<File>>,
    /// The next message waits for this.
    barrier: Option<Barrier>,
    /// Messages may lie in the socket.
    pub unread: bool,
    /// When it came.
    since: Nanos,
    /// Since when half a message lies in the socket, or an answer does not fit.
    owing: Option<Nanos>,
}

/// Why a frontend goes.
pub enum End {
    /// In peace.
    Closed,
    /// It was dropped.
    Dropped(DropReason, String),
}

impl From<ProtocolError> for End {
    fn from(protocol_error: ProtocolError) -> Self {
        Self::Dropped(protocol_error.reason, protocol_error.sentence)
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Dropped(DropReason::Vanished, error.to_string())
    }
}

impl Frontend {
    /// One that connected, for a device.
    pub fn begin(stream: UnixStream, device: Device, now: Nanos, sockets: &Sockets<'_>) -> io::Result<Self> {
        // `vhost` waits for what it reads; it is asked only when everything is there.
        stream.set_nonblocking(false)?;
        sockets.add_eager(&stream, FRONTEND, Interest { receive: true, send: true })?;
        let backend = Arc::new(Mutex::new(Backend::new(device)));
        let messages = BackendReqHandler::from_stream(stream.try_clone()?, Arc::clone(&backend));
        let none = || (0..QUEUES_MAX).map(|_| None).collect();
        Ok(Self {
            stream,
            messages,
            backend,
            kicks: none(),
            calls: none(),
            errs: none(),
            barrier: None,
            unread: true,
            since: now,
            owing: None,
        })
    }

    /// What is asked of the device.
    pub fn backend(&self) -> MutexGuard<'_, Backend> {
        self.backend.lock().expect("nothing panics while it is held and goes on")
    }

    /// Something of the frontend waits to be carried out.
    pub const fn has_work(&self) -> bool {
        self.unread || self.barrier.is_some()
    }

    /// The other end of the socket is closed.
    pub fn is_gone(&self) -> bool {
        message::is_gone(&self.stream)
    }

    /// Carries out messages until there is none, or one must wait.
    pub fn carry_out(&mut self, now: Nanos, sockets: &Sockets<'_>) -> Result<(), End> {
        for _ in 0..MESSAGES_MAX {
            self.unread = false;
            let barrier = match message::look(&self.stream)?? {
                Look::Whole(barrier) => barrier,
                Look::Nothing => {
                    self.owing = None;
                    return Ok(());
                }
                Look::Part => {
                    if self.is_gone() {
                        return Err(gone());
                    }
                    self.owing = self.owing.or(Some(now));
                    return Ok(());
                }
                Look::End => return Err(self.end()),
            };
            if !self.backend().pause(barrier) {
                self.barrier = Some(barrier);
                return Ok(());
            }
            if !message::takes_answers(&self.stream)? {
                self.owing = self.owing.or(Some(now));
                return Ok(());
            }
            (self.barrier, self.owing) = (None, None);
            let carried_out = self.messages.handle_request();
            self.backend().go_on(barrier);
            carried_out.map_err(ended)?;
            self.take_changes(sockets)?;
        }
        self.unread = true;
        Ok(())
    }

    /// The frontend sends nothing more.
    pub fn end(&self) -> End {
        if self.owing.is_none() && self.backend().device.is_idle() {
            return End::Closed;
        }
        gone()
    }

    /// Takes the descriptors that came.
    fn take_changes(&mut self, sockets: &Sockets<'_>) -> Result<(), End> {
        let changes = std::mem::take(&mut self.backend().changes);
        for change in changes {
            match change {
                Change::Kick(ring, kick) => {
                    if let Some(before) = self.kicks[ring].take() {
                        // The frontend may hold it open, so that closing it does not end the wait.
                        let _ = sockets.remove(&before);
                    }
                    if let Some(kick) = &kick {
                        let number = FIRST_KICK + u32::try_from(ring).expect("few");
                        let interest = Interest { receive: true, send: false };
                        sockets.add_eager(kick, number, interest).map_err(|error| {
                            let sentence = format!("a descriptor for kicks cannot be waited for: {error}");
                            End::Dropped(DropReason::Garbage, sentence)
                        })?;
                    }
                    self.kicks[ring] = kick;
                }
                Change::Call(ring, call) => {
                    if let Some(call) = &call {
                        never_wait(call)?;
                    }
                    self.calls[ring] = call;
                    // What ended before nobody was told of.
                    self.backend().device.rings[ring].untold = true;
                }
                Change::Err(ring, err) => {
                    if let Some(err) = &err {
                        never_wait(err)?;
                    }
                    self.errs[ring] = err;
                }
            }
        }
        Ok(())
    }

    /// Nothing of it is waited for any more.
    pub fn leave(&self, sockets: &Sockets<'_>) {
        for kick in self.kicks.iter().flatten() {
            // The frontend may hold it open, so that closing it does not end the wait.
            let _ = sockets.remove(kick);
        }
        let _ = sockets.remove(&self.stream);
    }

    /// Tells the guest that something of a ring has ended; false if it does not want to know.
    pub fn call(&mut self, ring: usize) -> bool {
        self.calls[ring].as_mut().map(notify).is_some()
    }

    /// Tells it that something went wrong.
    pub fn tell_error(&mut self) {
        self.errs.iter_mut().flatten().for_each(notify);
    }

    /// What a frontend may not do for ever.
    pub fn overdue(&self, limits: &Limits, now: Nanos) -> Option<End> {
        if !self.backend().owned && now.saturating_since(self.since) > limits.greeting {
            let sentence = format!("it said nothing for more than {}", limits.greeting);
            return Some(End::Dropped(DropReason::SlowGreeting, sentence));
        }
        if self.owing.is_some_and(|since| now.saturating_since(since) > limits.stall) {
            let sentence = format!("it owed the next step for more than {}", limits.stall);
            return Some(End::Dropped(DropReason::Stalled, sentence));
        }
        None
    }
}

/// It went when it should not have.
fn gone() -> End {
    End::Dropped(DropReason::Vanished, "the frontend went in the middle of something".to_owned())
}

/// Writing to it never waits, whoever else has it.
fn never_wait(file: &File) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags | rustix::fs::OFlags::NONBLOCK)?)
}

/// Why a message ended the connection.
fn ended(error: Error) -> End {
    match error {
        Error::Disconnected | Error::SocketBroken(_) | Error::PartialMessage => {
            End::Dropped(DropReason::Vanished, error.to_string())
        }
        Error::ReqHandlerError(sentence) => End::Dropped(DropReason::Garbage, sentence.to_string()),
        other => End::Dropped(DropReason::Garbage, format!("a message cannot be carried out: {other}")),
    }
}

/// Wakes who waits at an eventfd. If it is full somebody was told already; if it is no eventfd nobody is.
fn notify(file: &mut File) {
    let _ = file.write(&1_u64.to_ne_bytes());
}
