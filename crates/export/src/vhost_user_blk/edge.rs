//! The edge: a socket that one frontend at a time connects to, its messages, and the eventfds of its rings.
//!
//! Kicks are waited for by the reactor's poller, and nothing of them is read: a ring is looked at, not its eventfd. While
//! requests come, rings are looked at for a while before the server sleeps and wants kicks again. A second frontend is
//! turned away while the first is there.

use super::backend::{Backend, Change};
use super::config::QUEUES_MAX;
use super::device::Device;
use super::message::{self, Barrier, Look};
use crate::desk::Desk;
use crate::exports::{Export, ExportId};
use crate::job::Done;
use crate::protocol::Rude;
use crate::reactor::{Edge, Interest, Limits, Listener, Ready, Socket, Sockets};
use crate::stats::DropReason;
use ocssd_base::{Nanos, usize_of};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};
use vhost::vhost_user::{BackendReqHandler, Error};

/// Numbers of sockets: the listener, the frontend's, then one for each ring's kicks.
const LISTENER: u32 = 0;
const FRONTEND: u32 = 1;
const FIRST_KICK: u32 = 2;

/// Connections accepted before anything else is looked at (chosen: as the server's own listeners).
const ACCEPTS_MAX: usize = 64;

/// Messages carried out before rings are looked at (chosen), so that who sends many holds up nobody.
const MESSAGES_MAX: usize = 64;

/// Rings are looked at for so long after something came, before the server sleeps (chosen: less than a thread takes to
/// sleep and wake; experiments/serve-vhost-user-blk has what it brings).
const LOOK_ON: Nanos = Nanos::from_micros(20);

/// A frontend that is there.
struct Frontend {
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
    unread: bool,
    /// When it came.
    since: Nanos,
    /// Since when half a message lies in the socket, or an answer does not fit.
    owing: Option<Nanos>,
}

/// Why a frontend goes.
enum End {
    /// In peace.
    Closed,
    /// It was dropped.
    Dropped(DropReason, String),
}

impl From<Rude> for End {
    fn from(rude: Rude) -> Self {
        Self::Dropped(rude.reason, rude.sentence)
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Dropped(DropReason::Vanished, error.to_string())
    }
}

/// Who waits at the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    /// Nobody that is known of.
    Quiet,
    /// Perhaps somebody.
    Knocking,
    /// Somebody the system has no room for now.
    Stuck,
}

/// A served block device: a socket, and the frontend that is there.
pub struct VhostUserBlk {
    listener: Option<Listener>,
    door: Door,
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
            door: Door::Quiet,
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
    fn accept(&mut self, desk: &mut Desk, sockets: &Sockets<'_>) {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok(socket) => self.admit(socket, desk, sockets),
                // The client was gone before it was met.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.door = Door::Quiet;
                    return;
                }
                Err(error) => {
                    self.door = Door::Stuck;
                    self.sentences.push_back(format!("a frontend cannot be accepted: {error}"));
                    return;
                }
            }
        }
        self.door = Door::Knocking;
    }

    /// One came: it is served if nobody is.
    fn admit(&mut self, socket: Socket, desk: &mut Desk, sockets: &Sockets<'_>) {
        desk.stats.connections += 1;
        let gone = self.frontend.as_ref().filter(|frontend| message::is_gone(&frontend.stream));
        if let Some(end) = gone.map(Frontend::end) {
            self.close(end, desk, sockets);
        }
        if self.frontend.is_some() {
            desk.stats.note_dropped(DropReason::Crowded);
            self.drop_saying("another frontend is served at this socket");
            return;
        }
        let begun = socket.into_unix().and_then(|stream| self.begin_frontend(stream, desk.now, sockets));
        if let Err(error) = begun {
            self.drop_saying(&format!("it cannot be waited for: {error}"));
        }
        desk.stats.connections_max = desk.stats.connections_max.max(1);
    }

    /// Tells that a frontend is not served, or not any more.
    fn drop_saying(&mut self, why: &str) {
        self.sentences.push_back(format!("a client was dropped: {why}"));
    }

    fn begin_frontend(&mut self, stream: UnixStream, now: Nanos, sockets: &Sockets<'_>) -> io::Result<()> {
        // `vhost` waits for what it reads; it is asked only when everything is there.
        stream.set_nonblocking(false)?;
        sockets.add_eager(&stream, FRONTEND, Interest { receive: true, send: true })?;
        let device = Device::new(self.id, self.export.clone(), self.connection, self.generation);
        let backend = Arc::new(Mutex::new(Backend::new(device)));
        let messages = BackendReqHandler::from_stream(stream.try_clone()?, Arc::clone(&backend));
        let none = || (0..QUEUES_MAX).map(|_| None).collect();
        self.frontend = Some(Frontend {
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
        });
        Ok(())
    }

    /// Carries out the messages that are there.
    fn look_into(&mut self, desk: &mut Desk, sockets: &Sockets<'_>) {
        let Some(frontend) = &mut self.frontend else { return };
        if self.left_behind > 0 {
            frontend.unread = true;
            return;
        }
        if let Err(end) = frontend.carry_out(desk.now, sockets) {
            self.close(end, desk, sockets);
        }
    }

    /// The frontend goes: its memory is unmapped, and its requests end for nobody.
    fn close(&mut self, end: End, desk: &mut Desk, sockets: &Sockets<'_>) {
        let Some(mut frontend) = self.frontend.take() else { return };
        if let End::Dropped(reason, sentence) = end {
            desk.stats.note_dropped(reason);
            self.drop_saying(&sentence);
            frontend.errs.iter_mut().flatten().for_each(notify);
        }
        for kick in frontend.kicks.iter().flatten() {
            // The frontend may hold it open, so that closing it does not end the wait.
            let _ = sockets.remove(kick);
        }
        let _ = sockets.remove(&frontend.stream);
        self.left_behind += frontend.backend().device.jobs();
        self.generation = self.generation.wrapping_add(1);
    }
}

/// Wakes who waits at an eventfd. If it is full somebody was told already; if it is no eventfd nobody is.
fn notify(file: &mut File) {
    let _ = file.write(&1_u64.to_ne_bytes());
}

impl Frontend {
    fn backend(&self) -> MutexGuard<'_, Backend> {
        self.backend.lock().expect("nothing panics while it is held and goes on")
    }

    /// Carries out messages until there is none, or one must wait.
    fn carry_out(&mut self, now: Nanos, sockets: &Sockets<'_>) -> Result<(), End> {
        for _ in 0..MESSAGES_MAX {
            self.unread = false;
            let barrier = match message::look(&self.stream)?? {
                Look::Whole(barrier) => barrier,
                Look::Nothing => {
                    self.owing = None;
                    return Ok(());
                }
                Look::Part => {
                    if message::is_gone(&self.stream) {
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
    fn end(&self) -> End {
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

    /// What a frontend may not do for ever.
    fn overdue(&self, limits: &Limits, now: Nanos) -> Option<End> {
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

impl Backend {
    /// Takes nothing from the rings a message is about. True if their requests have ended.
    fn pause(&mut self, barrier: Barrier) -> bool {
        let rings = self.concerned(barrier);
        rings.fold(true, |idle, ring| {
            ring.paused = true;
            idle && ring.is_idle()
        })
    }

    /// The message was carried out.
    fn go_on(&mut self, barrier: Barrier) {
        self.concerned(barrier).for_each(|ring| ring.paused = false);
    }

    fn concerned(&mut self, barrier: Barrier) -> impl Iterator<Item = &mut super::ring::Ring> {
        let is_concerned = move |place: usize| match barrier {
            Barrier::None => false,
            Barrier::Ring(ring) => place == usize_of(ring),
            Barrier::All => true,
        };
        let rings = self.device.rings.iter_mut().enumerate();
        rings.filter(move |(place, _)| is_concerned(*place)).map(|(_, ring)| ring)
    }
}

impl Edge for VhostUserBlk {
    fn begin(&mut self, sockets: &Sockets<'_>) -> io::Result<()> {
        match &self.listener {
            Some(listener) => sockets.add_eager(listener, LISTENER, Interest { receive: true, send: false }),
            None => Ok(()),
        }
    }

    fn on_ready(&mut self, number: u32, _ready: Ready, desk: &mut Desk, sockets: &Sockets<'_>) {
        self.busy = desk.now;
        match number {
            LISTENER => self.accept(desk, sockets),
            FRONTEND => self.look_into(desk, sockets),
            // Rings are looked at in any case.
            _ => desk.stats.kicks += 1,
        }
    }

    fn take(&mut self, desk: &mut Desk, sockets: &Sockets<'_>) -> bool {
        if self.door == Door::Knocking {
            self.accept(desk, sockets);
        }
        let Some(frontend) = &mut self.frontend else { return false };
        if frontend.unread || frontend.barrier.is_some() {
            self.look_into(desk, sockets);
        }
        let Some(frontend) = &mut self.frontend else { return true };
        let taken = frontend.backend().device.take(desk);
        match taken {
            Ok(true) => self.busy = desk.now,
            Ok(false) => return false,
            Err(rude) => self.close(rude.into(), desk, sockets),
        }
        true
    }

    fn on_done(&mut self, done: Done, desk: &mut Desk) {
        match &mut self.frontend {
            Some(frontend) if done.job.owner.generation == self.generation => {
                frontend.backend().device.on_done(done, desk);
            }
            _ => {
                assert!(self.left_behind > 0, "a job ended that no frontend left behind");
                self.left_behind -= 1;
                if let Some(piece) = done.job.piece {
                    desk.pool.give_back(piece);
                }
            }
        }
    }

    fn tell(&mut self, desk: &mut Desk) {
        let Some(frontend) = &mut self.frontend else { return };
        loop {
            let Some(ring) = frontend.backend().device.poll_call() else { return };
            if let Some(call) = &mut frontend.calls[ring] {
                notify(call);
                desk.stats.calls += 1;
            }
        }
    }

    fn before_sleep(&mut self, desk: &mut Desk) -> bool {
        let Some(frontend) = &mut self.frontend else { return false };
        let mut backend = frontend.backend();
        backend.device.ask_for_kicks(desk)
    }

    fn is_eager(&self, now: Nanos) -> bool {
        if self.door == Door::Knocking {
            return true;
        }
        let Some(frontend) = &self.frontend else { return false };
        frontend.unread || now.saturating_since(self.busy) < LOOK_ON && frontend.backend().device.has_driver()
    }

    fn has_client(&self) -> bool {
        self.frontend.is_some() || self.door == Door::Stuck
    }

    fn waits_for_room(&self) -> bool {
        self.frontend.as_ref().is_some_and(|frontend| frontend.backend().device.waits_for_room())
    }

    fn watch(&mut self, limits: &Limits, desk: &mut Desk, sockets: &Sockets<'_>) {
        if self.door == Door::Stuck {
            self.accept(desk, sockets);
        }
        let overdue = self.frontend.as_ref().and_then(|frontend| frontend.overdue(limits, desk.now));
        if let Some(end) = overdue {
            self.close(end, desk, sockets);
        }
    }

    fn stop(&mut self, is_late: bool, desk: &mut Desk, sockets: &Sockets<'_>) -> bool {
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
            self.close(End::Closed, desk, sockets);
        } else if is_late {
            let sentence = "the server stops, and requests have not ended".to_owned();
            self.close(End::Dropped(DropReason::Stalled, sentence), desk, sockets);
        }
        self.frontend.is_none()
    }

    fn poll_sentence(&mut self) -> Option<String> {
        self.sentences.pop_front()
    }
}
