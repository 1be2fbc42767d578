//! The transport: a socket that one frontend at a time connects to, and when what came from it is looked at.
//!
//! Kicks are waited for by the reactor's poller, and nothing of them is read: a ring is looked at, not its eventfd. While
//! requests come, rings are looked at for a while before the server sleeps and wants kicks again. A second frontend is
//! turned away while the first is there.

use super::device::Device;
use super::frontend::{End, FRONTEND, Frontend};
use crate::dispatcher::Dispatcher;
use crate::exports::{Export, ExportId};
use crate::job::Done;
use crate::reactor::{Interest, Limits, Listener, Ready, Socket, Sockets, Transport};
use crate::stats::DropReason;
use ocssd_base::Nanos;
use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;

/// The number of the listener's socket; the frontend's are above it.
const LISTENER: u32 = 0;
const _: () = assert!(LISTENER < FRONTEND, "sockets have numbers of their own");

/// Connections accepted before anything else is looked at (chosen: as the server's own listeners).
const ACCEPTS_MAX: usize = 64;

/// Rings are looked at for so long after something came, before the server sleeps (chosen: less than a thread takes to
/// sleep and wake; experiments/serve-vhost-user-blk has what it brings).
const LOOK_ON: Nanos = Nanos::from_micros(20);

/// Whether a connection waits at the socket to be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accept {
    /// None that is known of.
    Idle,
    /// Perhaps one.
    Ready,
    /// One the system has no room for now.
    OutOfResources,
}

/// A served block device: a socket, and the frontend that is there.
pub struct VhostUserBlk {
    listener: Option<Listener>,
    accept: Accept,
    id: ExportId,
    export: Export,
    /// Jobs are told to this connection
    connection: u32,
    /// of this generation.
    generation: u32,
    frontend: Option<Frontend>,
    /// Jobs of frontends that went. The next one is heard when they have ended: it may ask for the same once more, and what it
    /// asks for after that must not be overtaken.
    left_behind: u32,
    sentences: VecDeque<String>,
    /// When something came last.
    busy: Nanos,
}

impl VhostUserBlk {
    /// Serves an export at a listener; its jobs have `connection` as their owner.
    #[must_use]
    pub fn new(listener: Listener, id: ExportId, export: Export, connection: u32) -> Self {
        Self {
            listener: Some(listener),
            accept: Accept::Idle,
            id,
            export,
            connection,
            generation: 0,
            frontend: None,
            left_behind: 0,
            sentences: VecDeque::new(),
            busy: Nanos::ZERO,
        }
    }

    /// Those who came: the first is served if nobody is, the others are turned away.
    fn accept(&mut self, dispatcher: &mut Dispatcher, sockets: &Sockets<'_>) {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok(socket) => self.admit(socket, dispatcher, sockets),
                // The client was gone before it was met.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.accept = Accept::Idle;
                    return;
                }
                Err(error) => {
                    self.accept = Accept::OutOfResources;
                    self.sentences.push_back(format!("a frontend cannot be accepted: {error}"));
                    return;
                }
            }
        }
        self.accept = Accept::Ready;
    }

    /// One came: it is served if nobody is.
    fn admit(&mut self, socket: Socket, dispatcher: &mut Dispatcher, sockets: &Sockets<'_>) {
        dispatcher.stats.connections += 1;
        let gone = self.frontend.as_ref().filter(|frontend| frontend.is_gone());
        if let Some(end) = gone.map(Frontend::end) {
            self.close(end, dispatcher, sockets);
        }
        if self.frontend.is_some() {
            dispatcher.stats.note_dropped(DropReason::Crowded);
            self.drop_saying("another frontend is served at this socket");
            return;
        }
        let begun =
            socket.into_unix().and_then(|stream| self.begin_frontend(stream, dispatcher.now, sockets));
        if let Err(error) = begun {
            self.drop_saying(&format!("it cannot be waited for: {error}"));
        }
        dispatcher.stats.connections_max = dispatcher.stats.connections_max.max(1);
    }

    /// Tells that a frontend is not served, or not any more.
    fn drop_saying(&mut self, why: &str) {
        self.sentences.push_back(format!("a client was dropped: {why}"));
    }

    fn begin_frontend(&mut self, stream: UnixStream, now: Nanos, sockets: &Sockets<'_>) -> io::Result<()> {
        let device = Device::new(self.id, self.export.clone(), self.connection, self.generation);
        self.frontend = Some(Frontend::begin(stream, device, now, sockets)?);
        Ok(())
    }

    /// Carries out the messages that are there.
    fn look_into(&mut self, dispatcher: &mut Dispatcher, sockets: &Sockets<'_>) {
        let Some(frontend) = &mut self.frontend else { return };
        if self.left_behind > 0 {
            frontend.unread = true;
            return;
        }
        if let Err(end) = frontend.carry_out(dispatcher.now, sockets) {
            self.close(end, dispatcher, sockets);
        }
    }

    /// The frontend goes: its memory is unmapped, and its requests end for nobody.
    fn close(&mut self, end: End, dispatcher: &mut Dispatcher, sockets: &Sockets<'_>) {
        let Some(mut frontend) = self.frontend.take() else { return };
        if let End::Dropped(reason, sentence) = end {
            dispatcher.stats.note_dropped(reason);
            self.drop_saying(&sentence);
            frontend.tell_error();
        }
        frontend.leave(sockets);
        self.left_behind += frontend.backend().device.jobs();
        self.generation = self.generation.wrapping_add(1);
    }
}

impl Transport for VhostUserBlk {
    fn begin(&mut self, sockets: &Sockets<'_>) -> io::Result<()> {
        match &self.listener {
            Some(listener) => sockets.add_eager(listener, LISTENER, Interest { receive: true, send: false }),
            None => Ok(()),
        }
    }

    fn on_ready(&mut self, number: u32, _ready: Ready, dispatcher: &mut Dispatcher, sockets: &Sockets<'_>) {
        self.busy = dispatcher.now;
        match number {
            LISTENER => self.accept(dispatcher, sockets),
            FRONTEND => self.look_into(dispatcher, sockets),
            // Rings are looked at in any case.
            _ => dispatcher.stats.kicks += 1,
        }
    }

    fn take(&mut self, dispatcher: &mut Dispatcher, sockets: &Sockets<'_>) -> bool {
        if self.accept == Accept::Ready {
            self.accept(dispatcher, sockets);
        }
        let Some(frontend) = &mut self.frontend else { return false };
        if frontend.has_work() {
            self.look_into(dispatcher, sockets);
        }
        let Some(frontend) = &mut self.frontend else { return true };
        let taken = frontend.backend().device.take(dispatcher);
        match taken {
            Ok(true) => self.busy = dispatcher.now,
            Ok(false) => return false,
            Err(protocol_error) => self.close(protocol_error.into(), dispatcher, sockets),
        }
        true
    }

    fn on_done(&mut self, done: Done, dispatcher: &mut Dispatcher) {
        match &mut self.frontend {
            Some(frontend) if done.job.owner.generation == self.generation => {
                frontend.backend().device.on_done(done, dispatcher);
            }
            _ => {
                assert!(self.left_behind > 0, "a job ended that no frontend left behind");
                self.left_behind -= 1;
                if let Some(piece) = done.job.piece {
                    dispatcher.pool.give_back(piece);
                }
            }
        }
    }

    fn tell(&mut self, dispatcher: &mut Dispatcher) {
        let Some(frontend) = &mut self.frontend else { return };
        loop {
            let Some(ring) = frontend.backend().device.poll_call() else { return };
            dispatcher.stats.calls += u64::from(frontend.call(ring));
        }
    }

    fn before_sleep(&mut self, dispatcher: &mut Dispatcher) -> bool {
        let Some(frontend) = &mut self.frontend else { return false };
        let mut backend = frontend.backend();
        backend.device.ask_for_kicks(dispatcher)
    }

    fn is_eager(&self, now: Nanos) -> bool {
        if self.accept == Accept::Ready {
            return true;
        }
        let Some(frontend) = &self.frontend else { return false };
        frontend.unread || now.saturating_since(self.busy) < LOOK_ON && frontend.backend().device.has_driver()
    }

    fn has_client(&self) -> bool {
        self.frontend.is_some() || self.accept == Accept::OutOfResources
    }

    fn waits_for_room(&self) -> bool {
        self.frontend.as_ref().is_some_and(|frontend| frontend.backend().device.waits_for_room())
    }

    fn watch(&mut self, limits: &Limits, dispatcher: &mut Dispatcher, sockets: &Sockets<'_>) {
        if self.accept == Accept::OutOfResources {
            self.accept(dispatcher, sockets);
        }
        let overdue = self.frontend.as_ref().and_then(|frontend| frontend.overdue(limits, dispatcher.now));
        if let Some(end) = overdue {
            self.close(end, dispatcher, sockets);
        }
    }

    fn stop(&mut self, is_late: bool, dispatcher: &mut Dispatcher, sockets: &Sockets<'_>) -> bool {
        if let Some(listener) = self.listener.take() {
            // It is closed next, which ends the wait for it as well.
            let _ = sockets.remove(&listener);
        }
        let Some(frontend) = &mut self.frontend else { return true };
        let is_idle = {
            let mut backend = frontend.backend();
            backend.device.stop();
            backend.device.is_idle()
        };
        if is_idle {
            self.close(End::Closed, dispatcher, sockets);
        } else if is_late {
            let sentence = "the server stops, and requests have not ended".to_owned();
            self.close(End::Dropped(DropReason::Stalled, sentence), dispatcher, sockets);
        }
        self.frontend.is_none()
    }

    fn poll_sentence(&mut self) -> Option<String> {
        self.sentences.pop_front()
    }
}
