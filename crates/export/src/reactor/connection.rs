//! One client's connection: its stream, its protocol, and the bytes between that neither has taken.
//!
//! Deliberately not here: other connections, and when it is looked at.

use super::listener::Socket;
use super::pace::Pace;
use super::poller::Interest;
use super::stream::Stream;
use crate::dispatcher::Dispatcher;
use crate::protocol::{Phase, Protocol};
use crate::stats::DropReason;
use ocssd_base::Nanos;
use std::io::{self, IoSlice};

/// Receives in one go, so that one client does not hold up the others (chosen: a megabyte or two of payload).
const RECEIVES_MAX: usize = 8;

/// Parts sent by one call: as many as the system takes is 1024, and 128 are 64 answers (chosen).
const SLICES_MAX: usize = 128;

/// Bytes sent in one go, likewise; what is left goes in the next round, for a client that takes as fast as it is sent may take
/// megabytes (chosen: as much as targets are given in a round).
const SEND_BYTES_MAX: usize = 1 << 20;

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// In peace.
    Closed,
    /// It was dropped.
    Dropped(DropReason, String),
}

/// Which connection it is.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// Of those that had its place.
    pub generation: u32,
    /// Where it came to.
    pub endpoint: usize,
}

/// A connection.
pub struct Connection {
    pub(super) stream: Stream,
    pub(super) session: Box<dyn Protocol>,
    staging: Box<[u8]>,
    /// What was received and not taken: these bytes of the staging.
    staged: std::ops::Range<usize>,
    pub(super) generation: u32,
    /// Where it came to.
    pub(super) endpoint: usize,
    /// What is waited for now.
    pub(super) interest: Interest,
    /// When it came.
    pub(super) since: Nanos,
    /// When bytes moved last, either way.
    pub(super) moved: Nanos,
    /// How fast, while it owes the next step.
    pub(super) pace: Pace,
    /// The socket took less than was given.
    pub(super) send_blocked: bool,
    /// It is on the list of those that wait for room.
    pub(super) waits: bool,
    /// It is on the list of those to look at.
    pub(super) listed: bool,
}

impl Connection {
    /// A connection that has just come.
    pub fn new(socket: Socket, session: Box<dyn Protocol>, from: Origin, now: Nanos) -> Self {
        let Origin { generation, endpoint } = from;
        Self {
            stream: Stream::plain(socket),
            staging: vec![0; session.staging_bytes()].into(),
            session,
            staged: 0..0,
            generation,
            endpoint,
            interest: Interest::default(),
            since: now,
            moved: now,
            pace: Pace::default(),
            send_blocked: false,
            waits: false,
            listed: false,
        }
    }

    /// It is still being agreed what is served.
    pub fn greets(&self) -> bool {
        matches!(self.session.phase(), Phase::Greeting | Phase::StartTls)
    }

    /// It would take bytes from the client.
    pub fn wants_bytes(&self) -> bool {
        self.staged.is_empty() && (self.session.text_wanted() > 0 || self.session.payload_space().is_some())
    }

    /// Gives the protocol what was received and not taken. True if it took something.
    pub fn offer(&mut self, dispatcher: &mut Dispatcher) -> Result<bool, End> {
        let mut any = false;
        while !self.staged.is_empty() {
            let bytes = &self.staging[self.staged.clone()];
            let taken = self.session.on_bytes(bytes, dispatcher);
            let taken = taken
                .map_err(|protocol_error| End::Dropped(protocol_error.reason, protocol_error.sentence))?;
            if taken == 0 {
                break;
            }
            any = true;
            self.staged.start += taken;
        }
        Ok(any)
    }

    /// Receives what is there, within bounds.
    pub fn receive(&mut self, now: Nanos, dispatcher: &mut Dispatcher) -> Result<(), End> {
        for _ in 0..RECEIVES_MAX {
            self.offer(dispatcher)?;
            if !self.wants_bytes() {
                return Ok(());
            }
            let (count, asked) = match self.receive_once(dispatcher) {
                Ok(both) => both,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.failure(&error)),
            };
            if count == 0 {
                return Err(self.on_hang_up());
            }
            self.moved = now;
            self.pace.on_moved(as_u64(count));
            if count < asked && !self.stream.is_encrypted() {
                break;
            }
        }
        self.offer(dispatcher).map(drop)
    }

    /// One receive: payload to its place, the rest to the staging.
    fn receive_once(&mut self, dispatcher: &mut Dispatcher) -> io::Result<(usize, usize)> {
        let text = self.session.text_wanted().min(self.staging.len());
        let staging = &mut self.staging[..text];
        dispatcher.stats.receives += 1;
        let Some(space) = self.session.payload_space() else {
            let count = self.stream.receive(&mut [], staging)?;
            self.staged = 0..count;
            return Ok((count, text));
        };
        let place = dispatcher.buffers.bytes_mut(space.buffer, space.first, space.count);
        let count = self.stream.receive(place, staging)?;
        let payload = count.min(space.count);
        if payload > 0 {
            if self.stream.is_encrypted() {
                dispatcher.stats.received_copied_bytes += as_u64(payload);
            }
            self.session.on_payload(payload, dispatcher);
        }
        self.staged = 0..count - payload;
        Ok((count, space.count + text))
    }

    fn failure(&self, error: &io::Error) -> End {
        let reason = match error.kind() {
            io::ErrorKind::InvalidData => DropReason::Tls,
            _ => DropReason::Vanished,
        };
        End::Dropped(reason, error.to_string())
    }

    /// The client sends nothing more.
    pub fn on_hang_up(&self) -> End {
        if self.session.is_idle() && self.staged.is_empty() && self.session.phase() != Phase::Greeting {
            return End::Closed;
        }
        End::Dropped(DropReason::Vanished, "the client went in the middle of something".to_owned())
    }

    /// Sends what is in the send queue, as far as it goes.
    pub fn send(&mut self, now: Nanos, dispatcher: &mut Dispatcher) -> Result<(), End> {
        self.send_blocked = false;
        // Who has asked to disconnect need not wait for the answer to it.
        let leaving = self.session.phase() == Phase::Leaving;
        let gone = |error: io::Error| match leaving {
            true => End::Closed,
            false => End::Dropped(DropReason::Vanished, error.to_string()),
        };
        let mut left = SEND_BYTES_MAX;
        while !self.session.send_queue().is_empty() {
            if left == 0 {
                self.send_blocked = true;
                return Ok(());
            }
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let used = self.session.send_queue().slices(&dispatcher.buffers, &mut slices);
            let (used, asked) = within(&slices[..used], left);
            dispatcher.stats.sends += 1;
            let count = match self.stream.send(&slices[..used]) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(gone(error)),
            };
            left = left.saturating_sub(count);
            let payload = self.session.send_queue().sent(count, &mut dispatcher.pool);
            dispatcher.stats.sent_bytes += as_u64(payload);
            if self.stream.is_encrypted() {
                dispatcher.stats.sent_copied_bytes += as_u64(payload);
            }
            if count > 0 {
                self.moved = now;
                self.pace.on_moved(as_u64(count));
            }
            if count == 0 || count < asked && !self.stream.is_encrypted() {
                self.send_blocked = true;
                return Ok(());
            }
        }
        self.send_blocked = !self.stream.flush().map_err(gone)?;
        Ok(())
    }

    /// The client owes the next step: it has not taken what is to be sent, or not sent what it began.
    pub fn is_owed(&self) -> bool {
        self.send_blocked || self.session.is_owed()
    }
}

/// How many of the first slices are sent at once that should be no more than `most` bytes, but one at least; and their bytes.
fn within(slices: &[IoSlice<'_>], most: usize) -> (usize, usize) {
    let (mut used, mut bytes) = (0, 0);
    for slice in slices {
        if used > 0 && bytes + slice.len() > most {
            break;
        }
        (used, bytes) = (used + 1, bytes + slice.len());
    }
    (used, bytes)
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).expect("a length fits 64 bits")
}
