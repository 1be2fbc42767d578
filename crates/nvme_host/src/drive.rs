//! An open-channel drive that a server holds, as a device.
//!
//! Entries go out as there is room in the queue; answers are taken when the device is polled. `deadline` is when the server has
//! been silent for too long: that is all this device knows of time, and an [`Alarm`] ends a wait earlier. Once the server is lost
//! everything ends with an internal error, and the sentence is kept. Deliberately not here: connecting (`connect`).

use crate::alarm::Alarm;
use crate::chunk_report::{self, ChunkReport};
use crate::connect::{Association, Begun, QUEUE_ENTRIES};
use crate::error::HostError;
use crate::link::Link;
use crate::part::{Part, cut, spread};
use crate::pdu::{self, Answer};
use crate::queue::transported;
use ocssd_base::{Nanos, Slab, SlabKey, usize_of};
use ocssd_lightnvm::{
    Buffers, ChunkDescriptor, ChunkId, Command, Completion, Device, Geometry, Op, Payload, PayloadFormat,
    Rejected, Status,
};
use ocssd_nvme::identify::Uuid;
use ocssd_nvme::log_page::LogPageId;
use ocssd_nvme::sqe::GetLogPage;
use ocssd_nvme::{Cqe, Sqe, ocssd20};
use std::collections::VecDeque;
use std::sync::Arc;

/// Commands at once (chosen: more than a queue of the server takes; the rest wait here).
const COMMANDS_MAX: u32 = 1024;
/// The longest silence of a server that owes an answer (what Linux grants a command of NVMe before it resets the controller).
pub const SILENCE_MAX: Nanos = Nanos::from_millis(30_000);

/// A command that has not ended.
#[derive(Debug)]
struct Open {
    command: Command,
    /// Of its parts, those that have not ended.
    left: u32,
    status: Status,
    failed: u64,
}

/// An open-channel drive that a server holds.
#[derive(Debug)]
pub struct ServedDrive {
    geometry: Geometry,
    sectors_max: u32,
    data_max: usize,
    nsid: u32,
    uuid: Uuid,
    admin: Link,
    io: Link,
    report: ChunkReport,
    open: Slab<Open>,
    /// Those that were sent, at the identifiers of their entries.
    sent: Vec<Option<Part>>,
    /// Identifiers that no entry has.
    free: Vec<u16>,
    waiting: VecDeque<Part>,
    /// Parts that failed, of whose chunks the server is asked what they are now, the first of them just now.
    looks: VecDeque<Part>,
    /// What the server said of the first one's chunk so far.
    looked: Option<ChunkDescriptor>,
    ended: VecDeque<Completion>,
    /// When the server was heard last, or began to owe an answer.
    heard: Nanos,
    failure: Option<String>,
    alarm: Arc<Alarm>,
}

impl ServedDrive {
    /// The drive that was claimed.
    ///
    /// # Errors
    /// If this process has no descriptors left.
    pub fn new(association: Association) -> Result<Self, HostError> {
        let Association { begun, nsid, geometry, sectors_max, report, uuid } = association;
        let Begun { admin, io, data_max, .. } = begun;
        let alarm = Arc::new(Alarm::of(&io, &admin)?);
        Ok(Self {
            geometry,
            sectors_max,
            data_max,
            nsid,
            uuid,
            admin,
            io,
            report,
            open: Slab::new(COMMANDS_MAX),
            sent: vec![None; usize::from(QUEUE_ENTRIES) - 1],
            free: (0..QUEUE_ENTRIES - 1).collect(),
            waiting: VecDeque::new(),
            looks: VecDeque::new(),
            looked: None,
            ended: VecDeque::new(),
            heard: Nanos::ZERO,
            failure: None,
            alarm,
        })
    }

    /// What to wait for it by.
    #[must_use]
    pub fn alarm(&self) -> Arc<Alarm> {
        Arc::clone(&self.alarm)
    }

    /// Its name among all drives.
    #[must_use]
    pub const fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// The payload that its buffers carry.
    #[must_use]
    pub fn payload_format(&self) -> PayloadFormat {
        PayloadFormat::new(Payload::Bytes, &self.geometry)
    }

    /// Why it cannot be used any more.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Bytes that went over its connections, both ways.
    #[must_use]
    pub const fn wire_bytes(&self) -> u64 {
        self.io.bytes + self.admin.bytes
    }

    /// It has something to send that the connection did not take yet.
    #[must_use]
    pub fn wants_room(&self) -> bool {
        self.io.wants_room()
    }

    fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Sends what the queue has room for.
    fn send(&mut self) -> Result<(), HostError> {
        while let Some(&part) = self.waiting.front() {
            let Some(cid) = self.free.pop() else { break };
            self.sent[usize::from(cid)] = Some(part);
            self.waiting.pop_front();
            let bytes = self.moved_bytes(&part);
            let sqe = part.entry(self.nsid, &self.geometry).with_cid(cid);
            pdu::push_command(self.io.out(), &transported(sqe, bytes), &[]);
        }
        self.io.flush()?;
        self.alarm.set_wants_room(self.io.wants_room());
        Ok(())
    }

    /// Bytes of data and metadata of a part.
    fn moved_bytes(&self, part: &Part) -> usize {
        usize_of(part.sectors) * usize_of(self.geometry.sector_bytes + self.geometry.oob_bytes)
    }

    /// Takes what the server has said, and answers it.
    fn exchange(&mut self, now: Nanos, buffers: &mut Buffers) -> Result<(), HostError> {
        self.send()?;
        if self.io.fill()? {
            self.heard = now;
        }
        while let Some(answer) = self.io.next()? {
            match answer {
                Answer::Completion(cqe) => self.end(cqe)?,
                Answer::Data { cid, offset, bytes, is_success } => {
                    let part = sent(&self.sent, cid)?;
                    let command = &self.open.get(part.open).command;
                    let place = Place::of(&part, command, &self.geometry);
                    place.fill(offset, bytes, buffers)?;
                    if is_success {
                        self.end(Cqe { cid, ..Cqe::decode(&[0; Cqe::BYTES]) })?;
                    }
                }
                Answer::Ask { cid, tag, offset, bytes } => {
                    let part = sent(&self.sent, cid)?;
                    if bytes == 0 || offset + bytes > self.moved_bytes(&part) {
                        return Err(HostError::broken(
                            "the server asks for data that a command does not have",
                        ));
                    }
                    let place = Place::of(&part, &self.open.get(part.open).command, &self.geometry);
                    let data_max = self.data_max;
                    for from in (offset..offset + bytes).step_by(data_max) {
                        let count = data_max.min(offset + bytes - from);
                        let out = self.io.out();
                        pdu::push_data_header(out, (cid, tag), from, count, from + count == offset + bytes);
                        place.push(out, from, count, buffers);
                    }
                }
                Answer::Hello { .. } => return Err(HostError::broken("the server greets twice")),
            }
        }
        self.look(now)?;
        self.send()
    }

    /// A part has ended.
    fn end(&mut self, cqe: Cqe) -> Result<(), HostError> {
        let part = sent(&self.sent, cqe.cid)?;
        self.sent[usize::from(cqe.cid)] = None;
        self.free.push(cqe.cid);
        let status = cqe.status.status;
        let open = self.open.get_mut(part.open);
        if open.status.gives_way_to(status) {
            open.status = status;
        }
        if !status.is_success() {
            let told = if part.op == Op::Read { cqe.failed_entries() } else { 0 };
            open.failed |= if told == 0 { part.bits() } else { part.bits() & spread(told, part.first) };
        }
        match part.op {
            Op::Write { .. } if status.is_success() => {
                self.report.on_written(part.at.chunk, part.at.sector + part.sectors);
            }
            Op::Reset if status.is_success() => self.report.on_reset(part.at.chunk),
            Op::Write { .. } | Op::Reset => {
                self.ask_chunk(part);
                return Ok(());
            }
            Op::Read | Op::Flush | Op::Copy => {}
        }
        self.end_part(part.open);
        Ok(())
    }

    /// One part less; the command ends with its last.
    fn end_part(&mut self, key: SlabKey) {
        let open = self.open.get_mut(key);
        open.left -= 1;
        if open.left == 0 {
            let Open { command, status, failed, .. } = self.open.remove(key);
            self.ended.push_back(Completion { tag: command.tag, status, failed, violation: None });
        }
    }

    /// The server is asked what a part that failed has made of its chunk, before anybody is told of the end.
    fn ask_chunk(&mut self, part: Part) {
        self.looks.push_back(part);
        if self.looks.len() == 1 {
            self.push_look();
        }
        self.alarm.set_listens(true);
    }

    fn push_look(&mut self) {
        let Some(part) = self.looks.front() else { return };
        let bytes = ocssd20::ChunkDescriptor::BYTES;
        let offset_bytes = u64::from(part.at.chunk.0) * u64::try_from(bytes).expect("32");
        let lid = LogPageId::CHUNK_INFORMATION;
        let get = GetLogPage { lid, lsp: 0, retain_event: true, dword_count: 8, offset_bytes, csi: 0 };
        pdu::push_command(self.admin.out(), &transported(Sqe::get_log_page(self.nsid, get), bytes), &[]);
    }

    /// Takes answers of the admin queue.
    fn look(&mut self, now: Nanos) -> Result<(), HostError> {
        if self.looks.is_empty() {
            return Ok(());
        }
        self.admin.flush()?;
        if self.admin.fill()? {
            self.heard = now;
        }
        loop {
            let is_over = match self.admin.next()? {
                None => break,
                Some(Answer::Data { bytes, is_success, .. }) => {
                    self.looked = Some(chunk_report::decode(bytes, &self.geometry)?);
                    is_success
                }
                Some(Answer::Completion(_)) => true,
                Some(other) => return Err(HostError::broken(format!("the server sent {other:?}"))),
            };
            if is_over {
                let part = self.looks.pop_front();
                let part = part.ok_or_else(|| HostError::broken("the server answers twice"))?;
                if let Some(found) = self.looked.take() {
                    self.report.set(part.at.chunk, found);
                }
                self.end_part(part.open);
                self.push_look();
                self.admin.flush()?;
            }
        }
        self.alarm.set_listens(!self.looks.is_empty());
        Ok(())
    }

    /// Nothing can be asked any more: everything that was ends.
    fn fail(&mut self, why: String) {
        self.failure.get_or_insert(why);
        let open: Vec<SlabKey> = self.open.iter().map(|(key, _)| key).collect();
        for key in open {
            let tag = self.open.remove(key).command.tag;
            let (status, failed) = (Status::INTERNAL_ERROR, u64::MAX);
            self.ended.push_back(Completion { tag, status, failed, violation: None });
        }
        // Nothing is sent any more.
        self.waiting.clear();
        self.looks.clear();
    }
}

/// The part of an identifier.
fn sent(parts: &[Option<Part>], cid: u16) -> Result<Part, HostError> {
    let found = parts.get(usize::from(cid)).copied().flatten();
    found
        .ok_or_else(|| HostError::broken(format!("the server answers command {cid}, which it was not asked")))
}

/// Where the data of a part lies: its sectors in a buffer, and behind them their metadata.
struct Place {
    buffer: Option<ocssd_lightnvm::BufId>,
    first: u32,
    sectors: u32,
    data_bytes: usize,
    bytes: usize,
    /// The buffer's metadata goes along; else zeroes do.
    oob: bool,
}

impl Place {
    fn of(part: &Part, command: &Command, geometry: &Geometry) -> Self {
        let sectors = usize_of(part.sectors);
        let data_bytes = sectors * usize_of(geometry.sector_bytes);
        Self {
            buffer: command.buffer.filter(|_| part.sectors > 0),
            first: command.buffer_first + part.first,
            sectors: part.sectors,
            data_bytes,
            bytes: data_bytes + sectors * usize_of(geometry.oob_bytes),
            oob: command.oob,
        }
    }

    /// Puts `bytes` where byte `offset` on belongs.
    fn fill(&self, offset: usize, bytes: &[u8], buffers: &mut Buffers) -> Result<(), HostError> {
        let end = offset.checked_add(bytes.len()).filter(|&end| end <= self.bytes);
        let end = end.ok_or_else(|| HostError::broken("the server sent more than was asked for"))?;
        let Some(buffer) = self.buffer else { return Ok(()) };
        let data_end = end.min(self.data_bytes);
        let (of_data, of_metadata) = bytes.split_at(data_end.saturating_sub(offset));
        if !of_data.is_empty() {
            buffers.data_mut(buffer, self.first, self.sectors)[offset..data_end].copy_from_slice(of_data);
        }
        if self.oob && !of_metadata.is_empty() {
            let from = offset.max(self.data_bytes) - self.data_bytes;
            let place = buffers.oob_mut(buffer, self.first, self.sectors);
            place[from..][..of_metadata.len()].copy_from_slice(of_metadata);
        }
        Ok(())
    }

    /// Adds `count` bytes from byte `offset` on to what is sent.
    fn push(&self, out: &mut Vec<u8>, offset: usize, count: usize, buffers: &Buffers) {
        let buffer = self.buffer.expect("a write has a buffer");
        let end = offset + count;
        assert!(end <= self.bytes, "byte {end} of {} is sent", self.bytes);
        if offset < self.data_bytes {
            let data = buffers.data(buffer, self.first, self.sectors);
            out.extend_from_slice(&data[offset..end.min(self.data_bytes)]);
        }
        if end > self.data_bytes {
            let (from, to) = (offset.max(self.data_bytes) - self.data_bytes, end - self.data_bytes);
            if self.oob {
                out.extend_from_slice(&buffers.oob(buffer, self.first, self.sectors)[from..to]);
            } else {
                out.resize(out.len() + to - from, 0);
            }
        }
    }
}

impl Device for ServedDrive {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.report.get(chunk)
    }

    fn submit(&mut self, now: Nanos, command: Command, buffers: &mut Buffers) -> Result<(), Rejected> {
        if self.failure.is_some() || command.op == Op::Copy {
            let status = if command.op == Op::Copy { Status::INVALID_OPCODE } else { Status::INTERNAL_ERROR };
            self.ended.push_back(Completion { tag: command.tag, status, failed: u64::MAX, violation: None });
            return Ok(());
        }
        if self.is_idle() {
            self.heard = now;
        }
        let open = Open { command, left: 0, status: Status::SUCCESS, failed: 0 };
        let key = self.open.insert(open).map_err(|_| Rejected::QueueFull)?;
        let parts = cut(key, &command, buffers, &self.geometry, self.sectors_max);
        assert!(!parts.is_empty(), "a command acts somewhere: {command:?}");
        self.open.get_mut(key).left = u32::try_from(parts.len()).expect("few parts");
        self.waiting.extend(parts);
        if let Err(error) = self.send() {
            self.fail(error.sentence);
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Nanos> {
        if !self.ended.is_empty() {
            return Some(Nanos::ZERO);
        }
        (!self.is_idle()).then(|| self.heard + SILENCE_MAX)
    }

    fn poll_completion(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<Completion> {
        if self.ended.is_empty() && !self.is_idle() {
            if let Err(error) = self.exchange(now, buffers) {
                self.fail(error.sentence);
            } else if self.ended.is_empty() && now >= self.heard + SILENCE_MAX {
                let silent = SILENCE_MAX.0 / 1_000_000_000;
                let address = self.io.address();
                self.fail(format!(
                    "the server at {address} has not answered for {silent} s; the drive is given up"
                ));
            }
        }
        self.ended.pop_front()
    }
}
