//! The device: rings in a guest's memory on one side, jobs for a target on the other.
//!
//! It has no socket, no eventfd and no clock. Bytes are copied twice in all and nowhere else: from the guest's memory into a
//! piece before a write is given out, and from a piece into the guest's memory when a read has ended. So memory and rings may
//! go at any time; nothing points there. Deliberately not here: how a frontend sets it up (`backend`), and who that is
//! (`transport`).

use super::chain::{self, Broken, Chain};
use super::config;
use super::memory::{Memory, Segment};
use super::open_request::{NextStep, OpenRequest};
use super::plan::{self, Payload, Range, RingPlan, Step, TEXT_BYTES_MAX};
use super::request::{BlkStatus, HEADER_BYTES, Header, ID_BYTES};
use super::ring::{Ring, Taken};
use crate::dispatcher::Dispatcher;
use crate::exports::{Export, ExportId};
use crate::job::{Done, Job, JobOwner, Work};
use crate::protocol::ProtocolError;
use crate::shares::Want;
use ocssd_base::{Slab, SlabKey, usize_of};
use std::collections::VecDeque;

/// Requests of a frontend at once (chosen: half of the dispatcher's jobs; more wait in their rings).
const REQUESTS_MAX: u32 = 1024;

/// Chains taken from a ring before the next ring is looked at (chosen), so that none holds up the others.
const TAKES_MAX: usize = 64;

/// A device.
#[derive(Debug)]
pub struct Device {
    owner: JobOwner,
    id: ExportId,
    export: Export,
    /// The guest's memory.
    pub memory: Memory,
    pub(super) rings: Vec<Ring>,
    /// Features that were agreed on.
    pub(super) features: u64,
    /// Writes may end before they are durable.
    pub(super) writeback: bool,
    /// Nothing is taken any more.
    stopping: bool,
    requests: Slab<OpenRequest>,
    spare: Vec<OpenRequest>,
    /// Requests that wait for a piece or a place for a job, in order.
    todo: VecDeque<SlabKey>,
    chain: Chain,
}

impl Device {
    /// A device of an export, whose jobs are told to `connection` of `generation`.
    #[must_use]
    pub fn new(id: ExportId, export: Export, connection: u32, generation: u32) -> Self {
        Self {
            owner: JobOwner { connection, generation, request: 0 },
            id,
            export,
            memory: Memory::default(),
            rings: (0..config::QUEUES_MAX).map(|_| Ring::default()).collect(),
            features: 0,
            writeback: true,
            stopping: false,
            requests: Slab::new(REQUESTS_MAX),
            spare: Vec::new(),
            todo: VecDeque::new(),
            chain: Chain::default(),
        }
    }

    /// What it is a device of.
    #[must_use]
    pub const fn export(&self) -> &Export {
        &self.export
    }

    /// Takes what guests ask, and gives out what waits. True if anything was taken.
    ///
    /// # Errors
    /// [`ProtocolError`], if a ring or chain is such that no answer can be given.
    pub fn take(&mut self, dispatcher: &mut Dispatcher) -> Result<bool, ProtocolError> {
        self.go_on(dispatcher);
        let mut any = false;
        for place in 0..self.rings.len() {
            for _ in 0..TAKES_MAX {
                if !self.rings[place].runs() || self.stopping || self.is_full(dispatcher) {
                    break;
                }
                let ring = &mut self.rings[place];
                let Some(taken) = ring.take(self.memory.mapped(), &mut self.chain)? else { break };
                any = true;
                self.begin(place, taken, dispatcher)?;
            }
        }
        Ok(any)
    }

    /// No request can be begun; one that has ended makes room.
    fn is_full(&self, dispatcher: &Dispatcher) -> bool {
        !self.todo.is_empty() || self.requests.is_full() || !dispatcher.has_room(self.owner.client())
    }

    /// A chain was taken.
    fn begin(&mut self, ring: usize, taken: Taken, dispatcher: &mut Dispatcher) -> Result<(), ProtocolError> {
        let mut request = self.spare.pop().unwrap_or_default();
        (request.ring, request.head) = (ring, taken.head);
        if let Some(broken @ (Broken::Torn | Broken::Endless)) = taken.broken {
            return Err(ProtocolError::garbage(format!(
                "a chain of descriptors is broken ({broken:?}), and has no status"
            )));
        }
        let status = chain::take_last(&mut self.chain.writable).filter(|status| self.memory.holds(*status));
        let Some(status) = status else {
            return Err(ProtocolError::garbage("a request has no byte for its status"));
        };
        request.status = Some(status);
        let judged =
            if taken.broken.is_some() { Err(BlkStatus::IoErr) } else { self.judge(&mut request, dispatcher) };
        match judged {
            Ok(()) => {}
            Err(status) => request.fail(status),
        }
        let key = self.requests.insert(request).expect("there was room before the chain was taken");
        self.issue_or_queue(key, dispatcher);
        Ok(())
    }

    /// Reads a request's header and what belongs to it.
    fn judge(&mut self, request: &mut OpenRequest, dispatcher: &mut Dispatcher) -> Result<(), BlkStatus> {
        let Chain { readable, writable } = &mut self.chain;
        let mut header = [0; HEADER_BYTES];
        if !self.memory.gather(readable, 0, &mut header) {
            return Err(BlkStatus::IoErr);
        }
        let header = Header::decode(&header);
        let length = u32::try_from(HEADER_BYTES).expect("it is small");
        if !chain::drop_front(readable, length) {
            return Err(BlkStatus::IoErr);
        }
        plan::count(&mut dispatcher.stats, header.kind);
        let (readable_bytes, writable_bytes) = (chain::bytes_of(readable), chain::bytes_of(writable));
        let mut text = [0; TEXT_BYTES_MAX];
        let text_bytes = usize::try_from(readable_bytes).ok().filter(|bytes| *bytes <= TEXT_BYTES_MAX);
        let text = &mut text[..text_bytes.unwrap_or(0)];
        if !self.memory.gather(readable, 0, text) {
            return Err(BlkStatus::IoErr);
        }
        let payload = Payload { readable_bytes, writable_bytes, text };
        let plan = plan::plan(&header, &payload, &self.export, &mut request.ranges)?;
        let segments = match request.ranges.first().map(|range| range.step) {
            Some(Step::Write) => readable,
            _ => writable,
        };
        if !segments.iter().all(|segment| self.memory.holds(*segment)) {
            return Err(BlkStatus::IoErr);
        }
        request.payload.append(segments);
        match plan {
            RingPlan::Ranges => self.harden(request, dispatcher),
            RingPlan::Flush => request.flushes = true,
            RingPlan::Id => self.tell_name(request)?,
        }
        Ok(())
    }

    /// Without write-back, what changes is durable when it ends.
    fn harden(&self, request: &mut OpenRequest, dispatcher: &mut Dispatcher) {
        if self.writeback || request.ranges[0].step == Step::Read {
            return;
        }
        request.durable = true;
        let is_plain = |range: &Range| matches!(range.step, Step::Write | Step::Zeroes);
        request.flushes = !request.ranges.iter().all(is_plain);
        dispatcher.stats.fuas += 1;
    }

    /// The device's name, as its request ends.
    fn tell_name(&self, request: &mut OpenRequest) -> Result<(), BlkStatus> {
        let bytes = id_of(&self.export);
        let room = usize::try_from(chain::bytes_of(&request.payload)).unwrap_or(usize::MAX).min(ID_BYTES);
        if !self.memory.scatter(&request.payload, 0, &bytes[..room]) {
            return Err(BlkStatus::IoErr);
        }
        request.written = u32::try_from(room).expect("a name is short");
        Ok(())
    }

    /// Gives out what waited for room.
    fn go_on(&mut self, dispatcher: &mut Dispatcher) {
        while let Some(key) = self.todo.pop_front() {
            if !self.issue(key, dispatcher) {
                self.todo.push_front(key);
                return;
            }
        }
    }

    /// Gives out jobs of a request; what finds no room waits behind the others.
    fn issue_or_queue(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        if !self.issue(key, dispatcher) {
            self.requests.get_mut(key).queued = true;
            self.todo.push_back(key);
        }
    }

    /// Gives out jobs of a request, or ends it. False if there is no room for the next job.
    fn issue(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) -> bool {
        loop {
            match self.requests.get(key).next_step() {
                NextStep::Job(range) => {
                    if !self.issue_range(key, range, dispatcher) {
                        return false;
                    }
                }
                NextStep::Flush => {
                    if !dispatcher.has_room(self.owner.client()) {
                        return false;
                    }
                    self.requests.get_mut(key).on_flush_issued();
                    self.give(key, dispatcher, Job { work: Work::Flush, ..self.job(key, 0, 0) });
                }
                NextStep::Wait => {
                    self.requests.get_mut(key).queued = false;
                    return true;
                }
                NextStep::Over(status) => {
                    self.end(key, status, dispatcher);
                    return true;
                }
            }
        }
    }

    /// Gives out one job with payload or without. False if there is no room.
    fn issue_range(&mut self, key: SlabKey, range: Range, dispatcher: &mut Dispatcher) -> bool {
        if !dispatcher.has_room(self.owner.client()) {
            return false;
        }
        let client = self.owner.client();
        let mut job = self.job(key, range.offset, range.bytes);
        let request = self.requests.get_mut(key);
        job.work = match range.step {
            Step::Read => Work::Read,
            Step::Write | Step::Zeroes => Work::Write { fua: request.durable },
            Step::Discard => Work::Discard,
            Step::WriteZeroes => Work::WriteZeroes,
        };
        if matches!(range.step, Step::Read | Step::Write | Step::Zeroes) {
            let bytes = usize::try_from(range.bytes).expect("it fits a piece");
            let Some(piece) = dispatcher.pool.take(client, bytes, Want::Share) else { return false };
            let place = match range.step {
                Step::Read => &mut [],
                _ => dispatcher.buffers.bytes_mut(piece.buffer, 0, bytes),
            };
            if range.step == Step::Write {
                let offset = request.payload_offset(range.offset);
                if !self.memory.gather(&request.payload, offset, place) {
                    dispatcher.pool.give_back(piece);
                    request.fail(BlkStatus::IoErr);
                    return true;
                }
                dispatcher.stats.received_bytes += range.bytes;
                dispatcher.stats.received_copied_bytes += range.bytes;
            } else {
                place.fill(0);
            }
            job.piece = Some(piece);
        }
        request.on_issued(range.bytes);
        self.give(key, dispatcher, job);
        true
    }

    /// A job of a request over these bytes.
    fn job(&self, key: SlabKey, offset: u64, bytes: u64) -> Job {
        let block = u64::from(self.export.block_bytes);
        let count = u32::try_from(bytes / block).expect("a range has at most 2^32 sectors");
        let owner = JobOwner { request: key.0, ..self.owner };
        Job {
            owner,
            export: self.id,
            work: Work::Flush,
            block: offset / block,
            count,
            piece: None,
            beside: Vec::new(),
        }
    }

    fn give(&self, key: SlabKey, dispatcher: &mut Dispatcher, job: Job) {
        assert_eq!(job.owner.request, key.0, "a job of another request");
        dispatcher.give(job);
    }

    /// A job has ended.
    pub fn on_done(&mut self, done: Done, dispatcher: &mut Dispatcher) {
        let key = SlabKey(done.job.owner.request);
        let request = self.requests.get_mut(key);
        let mut status = plan::status_of(done.status);
        if let Some(piece) = done.job.piece {
            if done.job.work == Work::Read && status == BlkStatus::Ok {
                let block = u64::from(self.export.block_bytes);
                let bytes = usize_of(done.job.count) * usize_of(self.export.block_bytes);
                let offset = request.payload_offset(done.job.block * block);
                let data = dispatcher.buffers.bytes(piece.buffer, 0, bytes);
                if self.memory.scatter(&request.payload, offset, data) {
                    let count = u64::from(done.job.count) * block;
                    request.written += u32::try_from(count).expect("it fits a piece");
                    dispatcher.stats.sent_bytes += count;
                    dispatcher.stats.sent_copied_bytes += count;
                } else {
                    status = BlkStatus::IoErr;
                }
            }
            dispatcher.pool.give_back(piece);
        }
        request.on_ended(status);
        // One that waits for room goes on when it is its turn.
        if !request.queued {
            self.issue_or_queue(key, dispatcher);
        }
    }

    /// A request has ended: its status is written, and its chain goes back.
    fn end(&mut self, key: SlabKey, status: BlkStatus, dispatcher: &mut Dispatcher) {
        let mut request = self.requests.remove(key);
        dispatcher.stats.errors += u64::from(status != BlkStatus::Ok);
        let place: Segment = request.status.expect("no request is begun without a place for its status");
        let told = self.memory.scatter(&[place], 0, &[status.code()]);
        let written = request.written + u32::from(told);
        self.rings[request.ring].put_back(self.memory.mapped(), request.head, written);
        request.clear();
        self.spare.push(request);
    }

    /// The next ring whose guest wants to be told that something was put back.
    pub fn poll_call(&mut self) -> Option<usize> {
        let memory = self.memory.mapped();
        self.rings.iter_mut().position(|ring| ring.wants_call(memory))
    }

    /// The device is about to be left alone: guests must kick. True if something has come already.
    pub fn ask_for_kicks(&mut self, dispatcher: &Dispatcher) -> bool {
        if self.stopping || self.is_full(dispatcher) {
            return false;
        }
        let memory = self.memory.mapped();
        let mut has_come = false;
        for ring in self.rings.iter_mut().filter(|ring| ring.runs()) {
            has_come |= ring.ask_for_kicks(memory);
        }
        if has_come {
            self.rings.iter_mut().filter(|ring| ring.runs()).for_each(|ring| ring.decline_kicks(memory));
        }
        has_come
    }

    /// Nothing is taken any more; what was taken ends.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Requests wait for a piece or a place for a job.
    #[must_use]
    pub fn waits_for_room(&self) -> bool {
        !self.todo.is_empty()
    }

    /// No request is open.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
    }

    /// Jobs that have not ended.
    #[must_use]
    pub fn jobs(&self) -> u32 {
        self.requests.iter().map(|(_, request)| request.running()).sum()
    }

    /// Some ring was started: a driver is there.
    #[must_use]
    pub fn has_driver(&self) -> bool {
        self.rings.iter().any(|ring| ring.started)
    }
}

/// The name a guest has for the device (in `/dev/disk/by-id`): the export's, as far as it fits, and 32 bits of its UUID, by
/// which it differs from exports of the same name of other servers.
fn id_of(export: &Export) -> [u8; ID_BYTES] {
    let name = if export.name.is_empty() { "ocssd" } else { &export.name };
    let uuid = export.uuid.serial();
    let tail = format!("-{}", uuid[8..].to_lowercase());
    let head = name.floor_char_boundary(ID_BYTES - tail.len());
    let mut bytes = [0; ID_BYTES];
    let text = name[..head].bytes().chain(tail.bytes());
    bytes.iter_mut().zip(text).for_each(|(place, byte)| *place = byte);
    bytes
}
