//! The transmission phase: requests in, jobs out, answers back, in any order.
//!
//! Requests of a client that wait for room wait in the order they came. Payload of a write goes to the target piece by piece
//! as it comes, so a write of 32 MiB needs the memory of one piece. Deliberately not here: the socket, and the handshake.

use super::answer;
use super::handshake::Agreed;
use super::intake::{Filling, Intake};
use super::open_request::{NextStep, OpenRequest};
use super::plan::{self, Kind};
use super::wire::{NbdError, REQUEST_BYTES, REQUEST_BYTES_MAX, RequestHeader, command};
use crate::dispatcher::Dispatcher;
use crate::exports::Export;
use crate::job::{Done, Job, JobOwner, Work};
use crate::protocol::{ProtocolError, Space};
use crate::send_queue::SendQueue;
use crate::shares::Want;
use ocssd_base::{Slab, SlabKey};
use std::collections::VecDeque;

/// Requests of a client at once (chosen: the deepest queue of the clients tested is 128; a 129th waits in the socket).
const REQUESTS_MAX: u32 = 128;

/// Bytes received at once while no write is expected (chosen: 585 headers).
const TEXT_BYTES: usize = 16 << 10;

/// Longest payload of a refused write that is read to stay in step with the client; beyond it the client is dropped
/// (chosen: twice what a client may send).
const SKIPPED_BYTES_MAX: u32 = 2 * REQUEST_BYTES_MAX;

/// Most extents of one answer (chosen: 8 KiB of them).
const EXTENTS_MAX: u32 = 1024;

/// The transmission phase of one connection.
#[derive(Debug)]
pub struct Transmission {
    agreed: Agreed,
    owner: JobOwner,
    requests: Slab<OpenRequest>,
    /// Requests that have jobs to give out, but not writes: theirs come with their payload.
    todo: VecDeque<SlabKey>,
    intake: Intake,
    /// The last request was a write: the next probably is one too.
    writing: bool,
    stopping: bool,
    closing: bool,
}

impl Transmission {
    /// Of this connection.
    #[must_use]
    pub fn new(agreed: Agreed, connection: u32, generation: u32) -> Self {
        Self {
            agreed,
            owner: JobOwner { connection, generation, request: 0 },
            requests: Slab::new(REQUESTS_MAX),
            todo: VecDeque::new(),
            intake: Intake::header(),
            writing: false,
            stopping: false,
            closing: false,
        }
    }

    /// Takes what the client sent; returns how much.
    ///
    /// # Errors
    /// [`ProtocolError`], for bytes that are no request.
    pub fn on_bytes(
        &mut self,
        bytes: &[u8],
        send_queue: &mut SendQueue,
        dispatcher: &mut Dispatcher,
    ) -> Result<usize, ProtocolError> {
        let mut used = 0;
        while used < bytes.len() && !self.closing {
            let rest = &bytes[used..];
            let taken = match &mut self.intake {
                Intake::Header { have: 0, .. } if self.requests.is_full() || send_queue.is_long() => 0,
                Intake::Header { held, have } => {
                    let taken = rest.len().min(REQUEST_BYTES - *have);
                    held[*have..][..taken].copy_from_slice(&rest[..taken]);
                    *have += taken;
                    if *have == REQUEST_BYTES {
                        let held = *held;
                        self.on_header(&held, send_queue, dispatcher)?;
                    }
                    taken
                }
                Intake::Payload { .. } => self.copy_payload(rest, dispatcher),
                Intake::Skip { left, cookie, error } => {
                    let (taken, cookie, error) = (rest.len().min(usize_of(*left)), *cookie, *error);
                    *left -= u32::try_from(taken).expect("at most what is left");
                    if *left == 0 {
                        self.refuse(cookie, error, false, send_queue, dispatcher);
                        self.intake = Intake::header();
                    }
                    taken
                }
            };
            if taken == 0 {
                break;
            }
            used += taken;
        }
        Ok(used)
    }

    /// A header is complete.
    fn on_header(
        &mut self,
        held: &[u8; REQUEST_BYTES],
        send_queue: &mut SendQueue,
        dispatcher: &mut Dispatcher,
    ) -> Result<(), ProtocolError> {
        let Some(header) = RequestHeader::decode(held) else {
            return Err(ProtocolError::garbage("a request does not begin with its magic number"));
        };
        self.intake = Intake::header();
        self.writing = header.command == command::WRITE;
        if header.command == command::DISC {
            self.closing = true;
            return Ok(());
        }
        let plan = plan::plan(&header, dispatcher.exports.get(self.agreed.export), &self.agreed);
        let plan = if self.stopping { Err(NbdError::Shutdown) } else { plan };
        match plan {
            Err(error) if self.writing && header.length > 0 => {
                if header.length > SKIPPED_BYTES_MAX {
                    return Err(ProtocolError::oversized(format!("a write of {} bytes", header.length)));
                }
                self.intake = Intake::Skip { left: header.length, cookie: header.cookie, error };
            }
            Err(error) => {
                let chunked = matches!(header.command, command::READ | command::BLOCK_STATUS);
                self.refuse(header.cookie, error, chunked, send_queue, dispatcher);
            }
            Ok(plan) => {
                plan::count(&mut dispatcher.stats, &plan);
                let request = OpenRequest::new(&header, plan);
                let key = self.requests.insert(request).expect("there was room before the header came");
                if self.writing {
                    self.intake = Intake::Payload { request: key, filling: None };
                    self.find_piece(dispatcher);
                } else {
                    self.todo.push_back(key);
                    self.issue(dispatcher);
                }
            }
        }
        Ok(())
    }

    fn refuse(
        &self,
        cookie: u64,
        error: NbdError,
        chunked: bool,
        send_queue: &mut SendQueue,
        dispatcher: &mut Dispatcher,
    ) {
        dispatcher.stats.errors += 1;
        answer::failure(send_queue, chunked && self.agreed.structured, cookie, error);
    }

    /// Payload that came behind a header is copied to where it belongs; returns how much.
    fn copy_payload(&mut self, bytes: &[u8], dispatcher: &mut Dispatcher) -> usize {
        let Some(space) = self.payload_space() else { return 0 };
        let taken = space.count.min(bytes.len());
        dispatcher.buffers.bytes_mut(space.buffer, space.first, taken).copy_from_slice(&bytes[..taken]);
        dispatcher.stats.received_copied_bytes += u64::try_from(taken).expect("a length");
        self.on_payload(taken, dispatcher);
        taken
    }

    /// Where payload that comes next belongs.
    #[must_use]
    pub fn payload_space(&self) -> Option<Space> {
        self.intake.space()
    }

    /// Payload is where it belongs. A full piece goes to the target.
    pub fn on_payload(&mut self, count: usize, dispatcher: &mut Dispatcher) {
        dispatcher.stats.received_bytes += u64::try_from(count).expect("a length");
        let Intake::Payload { request, filling } = &mut self.intake else {
            unreachable!("payload came where there is no space for it")
        };
        let request = *request;
        let current = filling.as_mut().expect("payload came where there is no space for it");
        current.filled += count;
        assert!(current.filled <= current.bytes, "more payload came than there is space for");
        if current.filled < current.bytes || !dispatcher.has_room(self.owner.client()) {
            return;
        }
        let full = filling.take().expect("it was there");
        self.give_write(request, full, dispatcher);
        self.find_piece(dispatcher);
    }

    fn give_write(&mut self, key: SlabKey, full: Filling, dispatcher: &mut Dispatcher) {
        let request = self.requests.get_mut(key);
        let bytes = u32::try_from(full.bytes).expect("a piece is small");
        let work = Work::Write { fua: request.plan.fua };
        request.on_issued(bytes);
        let job = self.job(key, work, full.offset, bytes, dispatcher);
        dispatcher.give(Job { piece: Some(full.piece), ..job });
    }

    /// A job of a request over bytes of the export.
    fn job(&self, key: SlabKey, work: Work, offset: u64, bytes: u32, dispatcher: &Dispatcher) -> Job {
        let block_bytes = dispatcher.exports.get(self.agreed.export).block_bytes;
        Job {
            owner: JobOwner { request: key.0, ..self.owner },
            export: self.agreed.export,
            work,
            block: offset / u64::from(block_bytes),
            count: bytes / block_bytes,
            piece: None,
            beside: Vec::new(),
        }
    }

    /// The next piece for a write's payload, or its end. True if it must wait for one.
    fn find_piece(&mut self, dispatcher: &mut Dispatcher) -> bool {
        let Intake::Payload { request, filling: filling @ None } = &mut self.intake else { return false };
        let NextStep::Job { offset, bytes } = self.requests.get(*request).next_step() else {
            self.intake = Intake::header();
            return false;
        };
        let bytes = usize_of(bytes);
        let piece = dispatcher.pool.take(self.owner.client(), bytes, Want::Share);
        *filling = piece.map(|piece| Filling { piece, offset, bytes, filled: 0 });
        filling.is_none()
    }

    /// Bytes that may be received beside payload.
    #[must_use]
    pub fn text_wanted(&self) -> usize {
        match &self.intake {
            _ if self.closing => 0,
            Intake::Payload { filling: None, .. } => 0,
            // The next header with the payload, but nothing of the payload behind it: that has its own place.
            Intake::Payload { .. } => REQUEST_BYTES,
            Intake::Header { have, .. } if self.writing => REQUEST_BYTES - have,
            Intake::Header { .. } | Intake::Skip { .. } => TEXT_BYTES,
        }
    }

    /// Gives out what waits; true if something still does.
    pub fn go_on(&mut self, dispatcher: &mut Dispatcher) -> bool {
        if self.payload_space().is_some_and(|space| space.count == 0) {
            // A full piece waited for room among the jobs.
            self.on_payload(0, dispatcher);
        }
        let starved =
            self.find_piece(dispatcher) || self.payload_space().is_some_and(|space| space.count == 0);
        self.issue(dispatcher);
        starved || !self.todo.is_empty()
    }

    /// Gives out jobs of requests in order, until one must wait.
    fn issue(&mut self, dispatcher: &mut Dispatcher) {
        while let Some(&key) = self.todo.front() {
            match self.requests.get(key).next_step() {
                // First: it is given out whole, and may be gone when there is room again.
                NextStep::Wait | NextStep::Over => {
                    self.todo.pop_front();
                }
                _ if !dispatcher.has_room(self.owner.client()) => return,
                NextStep::Job { offset, bytes } => {
                    if !self.issue_range(key, offset, bytes, dispatcher) {
                        return;
                    }
                }
                NextStep::Flush => {
                    let job = self.job(key, Work::Flush, 0, 0, dispatcher);
                    dispatcher.give(job);
                    self.requests.get_mut(key).on_issued(0);
                }
            }
        }
    }

    /// Gives out one job over a range; false if there is no piece for it.
    fn issue_range(&mut self, key: SlabKey, offset: u64, bytes: u32, dispatcher: &mut Dispatcher) -> bool {
        let client = self.owner.client();
        let request = self.requests.get(key);
        if request.gathers() && !dispatcher.pool.claim(client, request.pieces()) {
            return false;
        }
        let want = if request.gathers() { Want::Claimed } else { Want::Share };
        let (work, needs_piece) = match request.plan.kind {
            Kind::Read { .. } | Kind::Cache => (Work::Read, true),
            Kind::Zeroes => (Work::Write { fua: false }, true),
            Kind::Range(work) => (work, false),
            Kind::Map { one } => (Work::Map { extents_max: if one { 1 } else { EXTENTS_MAX } }, false),
            Kind::Write | Kind::Flush => unreachable!("they give out nothing over a range here"),
        };
        let piece = if needs_piece { dispatcher.pool.take(client, usize_of(bytes), want) } else { None };
        if needs_piece && piece.is_none() {
            return false;
        }
        if let (Kind::Zeroes, Some(piece)) = (request.plan.kind, &piece) {
            dispatcher.buffers.bytes_mut(piece.buffer, 0, usize_of(bytes)).fill(0);
        }
        let request = self.requests.get_mut(key);
        request.on_issued(bytes);
        if request.gathers() && request.is_issued() {
            dispatcher.pool.end_claim(client);
        }
        let job = self.job(key, work, offset, bytes, dispatcher);
        dispatcher.give(Job { piece, ..job });
        true
    }

    /// A job has ended: a part of the answer, or its end.
    pub fn on_done(&mut self, done: Done, send_queue: &mut SendQueue, dispatcher: &mut Dispatcher) {
        let key = SlabKey(done.job.owner.request);
        let export: &Export = dispatcher.exports.get(self.agreed.export);
        let request = self.requests.get_mut(key);
        request.on_done(done, export, send_queue, &mut dispatcher.pool);
        match request.next_step() {
            NextStep::Over => {
                let request = self.requests.remove(key);
                let error = request.answer(self.agreed.structured, send_queue, &mut dispatcher.pool);
                dispatcher.stats.errors += u64::from(error.is_some());
            }
            NextStep::Flush => {
                self.todo.push_back(key);
                self.issue(dispatcher);
            }
            NextStep::Job { .. } | NextStep::Wait => {}
        }
    }

    /// New requests are refused from now on.
    pub const fn on_stop(&mut self) {
        self.stopping = true;
    }

    /// The client has asked to disconnect, and everything is answered.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.closing && self.requests.is_empty()
    }

    /// No request is open, and nothing of one has come.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && (self.closing || self.intake.is_between())
    }

    /// The connection is over: what is held comes back.
    pub fn release(&mut self, dispatcher: &mut Dispatcher) {
        if let Intake::Payload { filling: Some(filling), .. } =
            std::mem::replace(&mut self.intake, Intake::header())
        {
            dispatcher.pool.give_back(filling.piece);
        }
        let open: Vec<SlabKey> = self.requests.iter().map(|(key, _)| key).collect();
        for key in open {
            self.requests.remove(key).release(&mut dispatcher.pool);
        }
        self.todo.clear();
        dispatcher.pool.end_claim(self.owner.client());
    }
}

fn usize_of(value: u32) -> usize {
    ocssd_base::usize_of(value)
}
