//! A drive with a table target that many threads ask, each waiting for its own answer.
//!
//! One lock guards the loop of `engine`; whoever waits gives it its turns. Under virtual time waiting is a jump, so a thread
//! keeps the lock until it is answered. Under the machine's time it lets go of the lock while the media work, and the threads
//! that come meanwhile ask too. Deliberately not here: names and files (`store`).

use crate::error::{ErrorKind, StoreError};
use crate::power_cut::{AfterCut, PowerCut, power_is_off};
use crate::questions::Questions;
use crate::request_buffers::RequestBuffers;
use crate::store_drive::StoreDrive;
use ocssd_base::{Nanos, SlabKey, usize_of};
use ocssd_drive::Image;
use ocssd_engine::{Clock, DriveClock, EarlyWake, Host, RunEnd};
use ocssd_flash::{Flash, FlashCounters};
use ocssd_lightnvm::counter::Counter;
use ocssd_lightnvm::interface::table::{
    EditOp, TableAnswer, TableEdit, TableEntry, TableHint, TableId, TableKind, TableLimits, TableOp,
    TableReply, TableTarget,
};
use ocssd_lightnvm::interface::{Content, Durability, List, Piece};
use ocssd_lightnvm::{Buffers, Device, TargetId};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Most bytes of one request (chosen: what RocksDB appends at once, and little beside a write buffer).
pub const REQUEST_BYTES_MAX: usize = 1 << 20;
/// Entries of a listing that are asked for at once (chosen: 24 KiB).
const LIST_ENTRIES: u32 = 1_024;
/// Waits shorter than this are spun: a sleep would last longer (chosen; a sleeping thread wakes 50 to 60 us late).
const SPIN: Duration = Duration::from_micros(80);
/// When a socket that took no more is tried again while another thread waits for what it brings (chosen).
const SEND_AGAIN: Duration = Duration::from_millis(1);
/// The only target of the host.
const TARGET: TargetId = TargetId(0);

/// What the lock guards.
struct State {
    host: Host<StoreDrive, DriveClock, dyn TableTarget>,
    questions: Questions,
    buffers: RequestBuffers,
    /// Keeps the image locked.
    image: Option<Image>,
    phase: Phase,
    /// When the power goes; `None` if it stays.
    power_cut: Option<PowerCut>,
    /// Threads that wait to be told; of a served drive.
    listeners: u32,
    /// A thread waits for the server, and tells the others.
    is_watched: bool,
}

/// What of a drive can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Everything.
    On,
    /// Nothing: the target was shut down.
    Closed,
    /// Nothing: the power was cut.
    Off,
}

/// A drive with a table target, for any thread.
pub struct SharedDrive {
    state: Mutex<State>,
    /// Somebody was answered.
    told: Condvar,
    limits: TableLimits,
    has_image: bool,
    /// What a served drive is waited for by.
    alarm: Option<Arc<dyn EarlyWake>>,
    /// Bytes of one request at most.
    request_bytes: usize,
    /// Reads ask for whole sectors of so many bytes, which a target of this process reads into the request's buffer at once; 1 if
    /// the target is a server's, to which bytes are the way that costs.
    read_unit: usize,
}

/// What a drive did so far.
#[derive(Clone, Debug)]
pub struct DriveCounts {
    /// The media; a server keeps that to itself.
    pub flash: Option<FlashCounters>,
    /// Bytes that went over the connections to a server, both ways.
    pub wire_bytes: Option<u64>,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// The target.
    pub target: Vec<Counter>,
    /// The drive's time.
    pub now: Nanos,
}

/// One row of an edit, with its attributes.
pub type EditRow = (EditOp, TableId, Vec<u8>);

type Guard<'a> = MutexGuard<'a, State>;

impl SharedDrive {
    /// A drive whose target was mounted under this clock.
    #[must_use]
    pub fn new(
        drive: impl Into<StoreDrive>,
        clock: DriveClock,
        buffers: Buffers,
        target: Box<dyn TableTarget>,
        image: Option<Image>,
    ) -> Self {
        let (limits, drive) = (target.limits(), drive.into());
        let (alarm, request_bytes) = (drive.alarm(), drive.request_bytes_max());
        let read_unit = if drive.has_target_here() { buffers.format().sector_bytes } else { 1 };
        assert!(
            request_bytes.is_multiple_of(read_unit),
            "a request of {request_bytes} bytes is no whole sectors"
        );
        let mut host = Host::new(drive, clock, buffers);
        host.add(target);
        let has_image = image.is_some();
        let (questions, phase) = (Questions::new(), Phase::On);
        let buffers = RequestBuffers::default();
        let state = State {
            host,
            questions,
            buffers,
            image,
            phase,
            power_cut: None,
            listeners: 0,
            is_watched: false,
        };
        let (state, told) = (Mutex::new(state), Condvar::new());
        Self { state, told, limits, has_image, alarm, request_bytes, read_unit }
    }

    /// From now on the power goes in the middle of request number `requests`, counted from 1.
    ///
    /// # Errors
    /// After a bug.
    ///
    /// # Panics
    /// If `requests` is 0.
    pub fn cut_power_after(&self, requests: u64, then: AfterCut) -> Result<(), StoreError> {
        self.enter()?.power_cut = Some(PowerCut::after(requests, then));
        Ok(())
    }

    /// A second drive in exactly this one's state, and the time it has, to try what happens to it; `None` if an image holds the
    /// content. It can be asked for after a power cut too.
    ///
    /// # Errors
    /// After a bug.
    pub fn fork(&self) -> Result<Option<(Flash, Nanos)>, StoreError> {
        let state = self.state.lock().map_err(|_| after_a_bug())?;
        let now = state.host.clock().now();
        Ok(state.host.device().fork().map(|flash| (flash, now)))
    }

    /// What the target takes.
    #[must_use]
    pub const fn limits(&self) -> &TableLimits {
        &self.limits
    }

    /// True if an image keeps what is written, so that the next process finds it.
    #[must_use]
    pub const fn has_image(&self) -> bool {
        self.has_image
    }

    /// Begins a table or log.
    ///
    /// # Errors
    /// If the target refuses.
    pub fn create(
        &self,
        table: TableId,
        kind: TableKind,
        hint: TableHint,
        bytes_expected: u64,
    ) -> Result<(), StoreError> {
        let op = TableOp::Create { table, kind, hint, bytes_expected };
        self.ask(self.enter()?, "begin a table", op).map(|_| ())
    }

    /// Adds `bytes` to a table or log. Returns how many were added, all of them or those before the one that was refused, and
    /// why.
    pub fn append(
        &self,
        table: TableId,
        bytes: &[u8],
        durability: Durability,
    ) -> (usize, Result<(), StoreError>) {
        let mut added = 0;
        for part in bytes.chunks(self.request_bytes) {
            // Only the last must wait for the media: a log's bytes become durable from the first on.
            let last = added + part.len() == bytes.len();
            let durability = if last { durability } else { Durability::AtFlush };
            if let Err(error) = self.append_part(table, part, durability) {
                return (added, Err(error));
            }
            added += part.len();
        }
        (added, Ok(()))
    }

    fn append_part(&self, table: TableId, part: &[u8], durability: Durability) -> Result<(), StoreError> {
        let mut state = self.enter()?;
        let content = state.staged(part);
        let (mut state, reply) = self.answer(state, TableOp::Append { table, content, durability })?;
        state.give_back(content);
        state.successful("append to a table", &reply).map(|_| ())
    }

    /// Makes every byte of a log durable that was added before.
    ///
    /// # Errors
    /// If the drive fails.
    pub fn sync(&self, table: TableId) -> Result<(), StoreError> {
        self.ask(self.enter()?, "sync a log", TableOp::Sync { table }).map(|_| ())
    }

    /// Reads from `offset` on, as much as there is and as `into` has room for. Returns how many bytes that was.
    ///
    /// # Errors
    /// If the target refuses, or the media cannot be read.
    pub fn read(&self, table: TableId, offset: u64, into: &mut [u8]) -> Result<usize, StoreError> {
        let mut read = 0;
        while read < into.len() {
            let at = offset + read as u64;
            let before = self.before_in_unit(at);
            let wanted = (into.len() - read).min(self.request_bytes - before);
            let found = self.read_part(table, at, &mut into[read..read + wanted])?;
            read += found;
            if found < wanted {
                break;
            }
        }
        Ok(read)
    }

    /// Bytes between the begin of a read unit and `offset` in it.
    fn before_in_unit(&self, offset: u64) -> usize {
        usize::try_from(offset % self.read_unit as u64).expect("below a sector")
    }

    fn read_part(&self, table: TableId, offset: u64, into: &mut [u8]) -> Result<usize, StoreError> {
        let mut state = self.enter()?;
        let before = self.before_in_unit(offset);
        let asked = (before + into.len()).next_multiple_of(self.read_unit);
        assert!(asked <= self.request_bytes, "{asked} bytes are asked for at once");
        let (content, offset) = (state.room(asked), offset - before as u64);
        let (mut state, reply) = self.answer(state, TableOp::Read { table, offset, into: content })?;
        let answer = state.successful("read a table", &reply);
        let read = answer.map(|answer| match answer {
            TableAnswer::Read { bytes } => {
                assert!(usize_of(bytes) <= asked, "{bytes} bytes were read into {asked}");
                let all = &state.bytes_of(content)[..usize_of(bytes)];
                let wanted = all.get(before..).unwrap_or_default();
                let wanted = &wanted[..wanted.len().min(into.len())];
                into[..wanted.len()].copy_from_slice(wanted);
                wanted.len()
            }
            other => panic!("a read was answered with {other:?}"),
        });
        state.give_back(content);
        read
    }

    /// The attributes of a published table or of a log.
    ///
    /// # Errors
    /// If the target refuses, or the media cannot be read.
    pub fn attributes(&self, table: TableId) -> Result<Vec<u8>, StoreError> {
        let mut state = self.enter()?;
        let content = state.room(usize_of(self.limits.attributes_bytes_max));
        let (mut state, reply) = self.answer(state, TableOp::Attributes { table, into: content })?;
        let answer = state.successful("read a table's attributes", &reply);
        let found = answer.map(|answer| match answer {
            TableAnswer::Attributes { bytes } => state.bytes_of(content)[..usize_of(bytes)].to_vec(),
            other => panic!("a question for attributes was answered with {other:?}"),
        });
        state.give_back(content);
        found
    }

    /// Carries out all rows, or none.
    ///
    /// # Errors
    /// If the target refuses.
    pub fn edit(&self, rows: &[EditRow]) -> Result<(), StoreError> {
        assert!(!rows.is_empty(), "an edit without rows says nothing");
        let (mut attributes, mut edits) = (Vec::new(), Vec::with_capacity(rows.len()));
        for (op, table, of_row) in rows {
            let number = |length: usize| u32::try_from(length).expect("attributes are short");
            let (attributes_first, attributes_bytes) = (number(attributes.len()), number(of_row.len()));
            edits.push(TableEdit { op: *op, table: *table, attributes_first, attributes_bytes });
            attributes.extend_from_slice(of_row);
        }
        let mut state = self.enter()?;
        let content = if attributes.is_empty() { Content::Empty } else { state.staged(&attributes) };
        let count = u32::try_from(edits.len()).expect("an edit has few rows");
        let sectors = List::<TableEdit>::sectors(count, state.host.buffers());
        let buffer = state.host.buffers_mut().take_whole(sectors.next_power_of_two());
        let edits = List::write(state.host.buffers_mut(), buffer, &edits);
        let (mut state, reply) = self.answer(state, TableOp::Edit { edits, attributes: content })?;
        state.host.buffers_mut().give_back(buffer);
        state.give_back(content);
        state.successful("change the tables", &reply).map(|_| ())
    }

    /// Every published table and log, by ascending name.
    ///
    /// # Errors
    /// If the drive fails.
    pub fn list(&self) -> Result<Vec<TableEntry>, StoreError> {
        let (mut found, mut from) = (Vec::new(), TableId(0));
        loop {
            let mut state = self.enter()?;
            let sectors = List::<TableEntry>::sectors(LIST_ENTRIES, state.host.buffers());
            let buffer = state.host.buffers_mut().take_whole(sectors.next_power_of_two());
            let into = List::new(buffer, LIST_ENTRIES);
            let (mut state, reply) = self.answer(state, TableOp::List { from, into })?;
            let answer = state.successful("list the tables", &reply);
            let listed = answer.map(|answer| match answer {
                TableAnswer::Listed { listed, matching } => {
                    let entries = listed
                        .entries(state.host.buffers())
                        .map(|entry| entry.expect("a target lists entries"));
                    found.extend(entries);
                    listed.count < matching
                }
                other => panic!("a listing was answered with {other:?}"),
            });
            state.host.buffers_mut().give_back(buffer);
            match (listed?, found.last()) {
                (true, Some(last)) => from = TableId(last.table.0 + 1),
                _ => return Ok(found),
            }
        }
    }

    /// What the drive holds reaches the disk its image lies on: it survives a crash of this machine. Nothing without an image.
    ///
    /// # Errors
    /// If the image's disk fails.
    pub fn sync_image(&self) -> Result<(), StoreError> {
        if !self.has_image {
            return Ok(());
        }
        let mut state = self.enter()?;
        let synced = state.host.device_mut().sync();
        synced
            .map_err(|error| StoreError::new(ErrorKind::Io, format!("the image could not be kept: {error}")))
    }

    /// What drive and target counted, and the drive's time.
    ///
    /// # Errors
    /// After a bug.
    pub fn counts(&self) -> Result<DriveCounts, StoreError> {
        let state = self.enter()?;
        Ok(DriveCounts {
            flash: state.host.device().counters(),
            wire_bytes: state.host.device().wire_bytes(),
            sector_bytes: state.host.device().geometry().sector_bytes,
            target: state.host.target(TARGET).counters(),
            now: state.host.clock().now(),
        })
    }

    /// The target puts away what it keeps, and the image is complete; nothing may be asked afterwards. Twice is once.
    ///
    /// # Errors
    /// If the drive or its image fails.
    pub fn close(&self) -> Result<(), StoreError> {
        let state = self.state.lock().map_err(|_| after_a_bug())?;
        match state.phase {
            Phase::On => {}
            Phase::Closed => return Ok(()),
            Phase::Off => return Err(power_is_off()),
        }
        let (mut state, reply) = self.answer(state, TableOp::Shutdown)?;
        state.phase = Phase::Closed;
        state.successful("shut the target down", &reply)?;
        state.host.settle();
        if state.image.is_some() {
            let closed = state.host.device_mut().close();
            closed.map_err(|error| {
                StoreError::new(ErrorKind::Io, format!("the image could not be kept: {error}"))
            })?;
        }
        Ok(())
    }

    fn enter(&self) -> Result<Guard<'_>, StoreError> {
        let state = self.state.lock().map_err(|_| after_a_bug())?;
        match state.phase {
            Phase::On => Ok(state),
            Phase::Closed => Err(StoreError::new(ErrorKind::Io, "the drive was closed; open it again")),
            Phase::Off => Err(power_is_off()),
        }
    }

    fn ask<'a>(&'a self, state: Guard<'a>, doing: &str, op: TableOp) -> Result<TableAnswer, StoreError> {
        let (state, reply) = self.answer(state, op)?;
        state.successful(doing, &reply)
    }

    /// Asks, and waits for the answer.
    fn answer<'a>(
        &'a self,
        mut state: Guard<'a>,
        op: TableOp,
    ) -> Result<(Guard<'a>, TableReply), StoreError> {
        let key = loop {
            match state.questions.push(op) {
                Some(key) => break key,
                None => state = self.told.wait(state).map_err(|_| after_a_bug())?,
            }
        };
        if state.loses_power() {
            self.told.notify_all();
        }
        loop {
            if state.phase == Phase::Off {
                return Err(power_is_off());
            }
            if let Some(reply) = state.go_on(key) {
                // Whoever waits for a server may have to do so itself from now on.
                if state.questions.unfetched() > 0 || state.listeners > 0 {
                    self.told.notify_all();
                }
                return Ok((state, reply));
            }
            if state.questions.unfetched() > 0 {
                self.told.notify_all();
            }
            state = self.wait(state)?;
        }
    }

    /// Lets go of the lock until the media have done something, or another thread found this one's answer.
    fn wait<'a>(&'a self, state: Guard<'a>) -> Result<Guard<'a>, StoreError> {
        let at = state.host.next_deadline().expect("a question that was taken is answered");
        let ahead = Duration::from_nanos(at.saturating_since(state.host.clock().now()).0);
        if let Some(alarm) = &self.alarm {
            return self.wait_for_server(state, &**alarm, ahead);
        }
        if ahead > SPIN {
            let woken = self.told.wait_timeout(state, ahead - SPIN).map_err(|_| after_a_bug())?;
            return Ok(woken.0);
        }
        drop(state);
        std::thread::yield_now();
        self.state.lock().map_err(|_| after_a_bug())
    }

    /// One thread waits for the server, without the lock; the others wait for that one.
    fn wait_for_server<'a>(
        &'a self,
        mut state: Guard<'a>,
        alarm: &dyn EarlyWake,
        ahead: Duration,
    ) -> Result<Guard<'a>, StoreError> {
        if !state.is_watched {
            state.is_watched = true;
            drop(state);
            alarm.wait(ahead);
            let mut state = self.state.lock().map_err(|_| after_a_bug())?;
            state.is_watched = false;
            return Ok(state);
        }
        // The one that waits does not know of what has to be sent since.
        let ahead = if state.host.device().wants_room() { ahead.min(SEND_AGAIN) } else { ahead };
        state.listeners += 1;
        let (mut state, _) = self.told.wait_timeout(state, ahead).map_err(|_| after_a_bug())?;
        state.listeners -= 1;
        Ok(state)
    }
}

impl Drop for SharedDrive {
    fn drop(&mut self) {
        // Whoever wants to know how it ended has called it.
        drop(self.close());
    }
}

fn after_a_bug() -> StoreError {
    StoreError::new(
        ErrorKind::Io,
        "a bug in ocssd stopped an earlier call, so the drive cannot be used any more; end the process, and open it anew",
    )
}

impl State {
    /// Gives the loop its turns; virtual time passes until the question is answered.
    fn go_on(&mut self, key: SlabKey) -> Option<TableReply> {
        if !self.host.clock().is_virtual() {
            while self.host.step(&mut self.questions) {}
            return self.questions.fetch(key);
        }
        loop {
            let ended = self.host.run(&mut self.questions, Nanos::MAX);
            assert!(ended != RunEnd::Stuck, "a question that was taken is answered");
            if let Some(reply) = self.questions.fetch(key) {
                return Some(reply);
            }
        }
    }

    /// What a reply brought, or why there is nothing.
    fn successful(&self, doing: &str, reply: &TableReply) -> Result<TableAnswer, StoreError> {
        if reply.status.is_success() {
            return Ok(reply.answer);
        }
        let mut error = StoreError::of_reply(doing, reply);
        if let Some(cause) = self.host.device().failure() {
            error.sentence = format!("{}; {cause}", error.sentence);
        }
        Err(error)
    }

    /// Counts a request; the power goes in the middle of the last one. True if it did.
    fn loses_power(&mut self) -> bool {
        let Some(power_cut) = &mut self.power_cut else { return false };
        if self.phase == Phase::Off || !power_cut.is_due() {
            return false;
        }
        power_cut.happen(&mut self.host, &mut self.questions);
        self.phase = Phase::Off;
        true
    }

    /// Room for `bytes` bytes.
    fn room(&mut self, bytes: usize) -> Content {
        let length = u32::try_from(bytes).expect("a request is short");
        let buffer = self.buffers.take(bytes, self.host.buffers_mut());
        Content::Piece(Piece { buffer, first_byte: 0, bytes: length })
    }

    /// A copy of `bytes` for the target.
    fn staged(&mut self, bytes: &[u8]) -> Content {
        let content = self.room(bytes.len());
        if let Content::Piece(Piece { buffer, .. }) = content {
            let buffers = self.host.buffers_mut();
            let sectors = buffers.sectors(buffer);
            buffers.whole_mut(buffer, 0, sectors)[..bytes.len()].copy_from_slice(bytes);
        }
        content
    }

    /// The bytes of a piece of this store's making.
    fn bytes_of(&self, content: Content) -> &[u8] {
        let Content::Piece(Piece { buffer, bytes, .. }) = content else { return &[] };
        let buffers = self.host.buffers();
        &buffers.whole(buffer, 0, buffers.sectors(buffer))[..usize_of(bytes)]
    }

    fn give_back(&mut self, content: Content) {
        if let Content::Piece(Piece { buffer, .. }) = content {
            self.buffers.give_back(buffer, self.host.buffers());
        }
    }
}
