//! A target of tables that a server holds, as a target of this process: LightLSM on the storage controller.
//!
//! A request becomes one command of the command set of tables, and its completion the reply. Requests take effect in the order
//! in which they came: a command whose data the server has not asked for yet holds back all that change something. Deliberately
//! not here: content in several pieces or stages, which a store does not give; connecting (`connect`).

use crate::alarm::Alarm;
use crate::connect::TableAssociation;
use crate::drive::SILENCE_MAX;
use crate::error::HostError;
use crate::link::Link;
use crate::pdu::{self, Answer};
use crate::queue::{in_capsule, transported};
use ocssd_base::{Nanos, usize_of};
use ocssd_lightnvm::interface::table::{
    TableAnswer, TableEdit, TableEntry, TableKind, TableLimits, TableOp, TableRefusal, TableReply,
    TableRequest, TableTarget,
};
use ocssd_lightnvm::interface::{Content, Durability, Entry, List, Piece};
use ocssd_lightnvm::{Admission, BufId, Buffers, Completion, Out, Status, Target};
use ocssd_nvme::identify::Uuid;
use ocssd_nvme::tables::{
    AppendTable, CreateTable, EditTables, ListTables, ReadTable, TableCommand, refusal_of,
};
use ocssd_nvme::{Cqe, Sqe};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Requests at once (chosen: more threads than an LSM tree has).
const REQUESTS_MAX: usize = 1024;

/// What whoever asks a served target wants to know of it from outside.
#[derive(Clone, Debug)]
pub struct TableLine {
    /// What to wait for it by.
    pub alarm: Arc<Alarm>,
    /// Why it cannot be asked any more, once that is so.
    pub failure: Arc<OnceLock<String>>,
    /// Bytes that one request moves at most.
    pub bytes_max: usize,
    /// The target's name among all.
    pub uuid: Uuid,
    /// Bytes that went over the connection, both ways.
    wire_bytes: Arc<AtomicU64>,
}

impl TableLine {
    /// Bytes that went over the connection, both ways.
    #[must_use]
    pub fn wire_bytes(&self) -> u64 {
        self.wire_bytes.load(Ordering::Relaxed)
    }
}

/// A target of tables that a server holds.
#[derive(Debug)]
pub struct ServedTables {
    limits: TableLimits,
    nsid: u32,
    data_max: usize,
    capsule_max: usize,
    io: Link,
    line: TableLine,
    /// Requests that were sent, at the identifiers of their entries.
    sent: Vec<Option<Asked>>,
    free: Vec<u16>,
    waiting: VecDeque<TableRequest>,
    /// Commands whose data the server may yet ask for.
    owed: u32,
    /// When the server was heard last, or began to owe an answer.
    heard: Nanos,
}

/// A request that was sent.
#[derive(Clone, Copy, Debug)]
struct Asked {
    request: TableRequest,
    /// The server may yet ask for its data.
    is_owed: bool,
}

/// A piece of a buffer.
type Span = (BufId, usize, usize);

fn span(piece: Piece) -> Span {
    (piece.buffer, usize_of(piece.first_byte), usize_of(piece.bytes))
}

/// The bytes of a content in one piece; `None` of what is none.
fn spans_of(content: Content) -> Option<Vec<Span>> {
    match content {
        Content::Empty => Some(Vec::new()),
        Content::Piece(piece) => Some(vec![span(piece)]),
        _ => None,
    }
}

fn rows<E: Entry>(list: List<E>) -> Span {
    (list.buffer, 0, usize_of(list.count) * E::BYTES)
}

/// The command of a request, what it sends, and what it fills; `None` of content that does not travel.
fn command_of(op: &TableOp) -> Option<(TableCommand, Vec<Span>, Vec<Span>)> {
    let bytes = |spans: &[Span]| -> u32 {
        u32::try_from(spans.iter().map(|(_, _, bytes)| bytes).sum::<usize>()).expect("a request fits 32 bits")
    };
    Some(match *op {
        TableOp::Create { table, kind, hint, bytes_expected } => {
            let is_log = kind == TableKind::Log;
            let create = CreateTable {
                table: table.0,
                is_log,
                level: hint.level,
                stream: hint.stream,
                bytes_expected,
            };
            (TableCommand::Create(create), vec![], vec![])
        }
        TableOp::Append { table, content, durability } => {
            let spans = spans_of(content)?;
            let force_unit_access = durability == Durability::AtReply;
            let append = AppendTable { table: table.0, bytes: bytes(&spans), force_unit_access };
            (TableCommand::Append(append), spans, vec![])
        }
        TableOp::Sync { table } => (TableCommand::Sync(table.0), vec![], vec![]),
        TableOp::Read { table, offset, into } => {
            let spans = spans_of(into)?;
            (TableCommand::Read(ReadTable { table: table.0, bytes: bytes(&spans), offset }), vec![], spans)
        }
        TableOp::Attributes { table, into } => {
            let spans = spans_of(into)?;
            let read = ReadTable { table: table.0, bytes: bytes(&spans), offset: 0 };
            (TableCommand::Attributes(read), vec![], spans)
        }
        TableOp::Edit { edits, attributes } => {
            let of_attributes = spans_of(attributes)?;
            let edit = EditTables { rows: edits.count, attributes_bytes: bytes(&of_attributes) };
            let spans = std::iter::once(rows::<TableEdit>(edits)).chain(of_attributes).collect();
            (TableCommand::Edit(edit), spans, vec![])
        }
        TableOp::List { from, into } => {
            let list = ListTables { from: from.0, rows: into.count };
            (TableCommand::List(list), vec![], vec![rows::<TableEntry>(into)])
        }
        // Nothing is left of a target that goes on without this host but what is durable.
        TableOp::Flush | TableOp::Shutdown => (TableCommand::Flush, vec![], vec![]),
        // One row each, which a store asks as an edit.
        TableOp::Publish { .. } | TableOp::Delete { .. } => return None,
    })
}

const fn changes(op: &TableOp) -> bool {
    !matches!(op, TableOp::Read { .. } | TableOp::Attributes { .. } | TableOp::List { .. })
}

/// What a completion says to a request.
fn reply_of(request: &TableRequest, cqe: &Cqe) -> TableReply {
    let (tag, status) = (request.tag, cqe.status.status);
    if !status.is_success() {
        let refusal = refusal_of(cqe.dw1);
        let row = Some(cqe.dw0).filter(|_| refusal.is_some() && matches!(request.op, TableOp::Edit { .. }));
        return TableReply { tag, status, refusal, row, answer: TableAnswer::Done };
    }
    let answer = match request.op {
        TableOp::Read { .. } => TableAnswer::Read { bytes: cqe.dw0 },
        TableOp::Attributes { .. } => TableAnswer::Attributes { bytes: cqe.dw0 },
        TableOp::List { into, .. } => {
            let listed = List::new(into.buffer, cqe.dw0.min(into.count));
            TableAnswer::Listed { listed, matching: cqe.dw1 }
        }
        _ => TableAnswer::Done,
    };
    TableReply::success(tag, answer)
}

/// Walks the part from byte `offset` on, `count` bytes, of spans that follow each other.
fn walk(spans: &[Span], offset: usize, count: usize, mut each: impl FnMut(Span, usize)) {
    let (mut begin, end) = (0, offset + count);
    for &(buffer, first, bytes) in spans {
        let (from, to) = (offset.max(begin), end.min(begin + bytes));
        if from < to {
            each((buffer, first + from - begin, to - from), from - offset);
        }
        begin += bytes;
    }
}

impl ServedTables {
    /// The target that was claimed.
    ///
    /// # Errors
    /// If this process has no descriptors left.
    pub fn new(association: TableAssociation) -> Result<Self, HostError> {
        let TableAssociation { begun, limits, nsid, bytes_max, uuid } = association;
        let alarm = Arc::new(Alarm::of(&begun.io, &begun.admin)?);
        let (failure, wire_bytes) = (Arc::default(), Arc::default());
        let line = TableLine { alarm, failure, bytes_max, uuid, wire_bytes };
        let entries = crate::connect::QUEUE_ENTRIES - 1;
        Ok(Self {
            limits,
            nsid,
            data_max: begun.data_max,
            capsule_max: begun.capsule_max,
            io: begun.io,
            line,
            sent: vec![None; usize::from(entries)],
            free: (0..entries).collect(),
            waiting: VecDeque::new(),
            owed: 0,
            heard: Nanos::ZERO,
        })
    }

    /// What whoever asks it wants to know from outside.
    #[must_use]
    pub fn line(&self) -> TableLine {
        self.line.clone()
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.free.len() == self.sent.len()
    }

    /// Sends what may go now.
    fn send(&mut self, buffers: &Buffers) -> Result<(), HostError> {
        while let Some(&request) = self.waiting.front() {
            if self.owed > 0 && changes(&request.op) {
                break;
            }
            let Some(cid) = self.free.pop() else { break };
            self.waiting.pop_front();
            let (command, out, into) = command_of(&request.op).expect("it was judged when it came");
            let sqe: Sqe = command.entry(self.nsid).with_cid(cid);
            let bytes: usize = out.iter().chain(&into).map(|(_, _, bytes)| bytes).sum();
            let is_owed = !out.is_empty() && bytes > self.capsule_max;
            self.sent[usize::from(cid)] = Some(Asked { request, is_owed });
            self.owed += u32::from(is_owed);
            if !out.is_empty() && !is_owed {
                let mut data = Vec::with_capacity(bytes);
                walk(&out, 0, bytes, |part, _| data.extend_from_slice(of(buffers, part)));
                pdu::push_command(self.io.out(), &in_capsule(sqe, bytes), &data);
            } else {
                pdu::push_command(self.io.out(), &transported(sqe, bytes), &[]);
            }
        }
        self.io.flush()?;
        self.line.alarm.set_wants_room(self.io.wants_room());
        self.line.wire_bytes.store(self.io.bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Takes what the server has said.
    fn exchange(&mut self, now: Nanos, out: &mut Out<TableReply>) -> Result<(), HostError> {
        self.send(&out.buffers)?;
        if self.io.fill()? {
            self.heard = now;
        }
        while let Some(answer) = self.io.next()? {
            match answer {
                Answer::Completion(cqe) => self.end(&cqe, out)?,
                Answer::Data { cid, offset, bytes, is_success } => {
                    let Asked { request, .. } = sent(&self.sent, cid)?;
                    let (_, _, into) = command_of(&request.op).expect("it was judged when it came");
                    let room: usize = into.iter().map(|(_, _, bytes)| bytes).sum();
                    if offset.checked_add(bytes.len()).is_none_or(|end| end > room) {
                        return Err(HostError::broken("the server sent more than was asked for"));
                    }
                    walk(&into, offset, bytes.len(), |(buffer, first, count), from| {
                        let place = out.buffers.bytes_mut(buffer, first, count);
                        place.copy_from_slice(&bytes[from..][..count]);
                    });
                    if is_success {
                        self.end(&Cqe { cid, ..Cqe::decode(&[0; Cqe::BYTES]) }, out)?;
                    }
                }
                Answer::Ask { cid, tag, offset, bytes } => {
                    let Asked { request, is_owed } = sent(&self.sent, cid)?;
                    let (_, spans, _) = command_of(&request.op).expect("it was judged when it came");
                    let whole: usize = spans.iter().map(|(_, _, bytes)| bytes).sum();
                    if (offset, bytes) != (0, whole) || !is_owed {
                        return Err(HostError::broken(
                            "the server asks for data that a command does not have",
                        ));
                    }
                    for from in (0..whole).step_by(self.data_max) {
                        let count = self.data_max.min(whole - from);
                        let bytes = self.io.out();
                        pdu::push_data_header(bytes, (cid, tag), from, count, from + count == whole);
                        walk(&spans, from, count, |part, _| {
                            bytes.extend_from_slice(of(&out.buffers, part));
                        });
                    }
                    self.sent[usize::from(cid)] = Some(Asked { request, is_owed: false });
                    self.owed -= 1;
                }
                Answer::Hello { .. } => return Err(HostError::broken("the server greets twice")),
            }
        }
        self.send(&out.buffers)
    }

    fn end(&mut self, cqe: &Cqe, out: &mut Out<TableReply>) -> Result<(), HostError> {
        let Asked { request, is_owed } = sent(&self.sent, cqe.cid)?;
        self.sent[usize::from(cqe.cid)] = None;
        self.free.push(cqe.cid);
        // One that was refused is not asked for its data.
        self.owed -= u32::from(is_owed);
        out.reply(reply_of(&request, cqe));
        Ok(())
    }

    /// Nothing can be asked any more: everything that was ends.
    fn fail(&mut self, why: String, out: &mut Out<TableReply>) {
        // The first reason counts.
        let _ = self.line.failure.set(why);
        let sent = self.sent.iter_mut().filter_map(Option::take).map(|asked| asked.request);
        for request in sent.chain(self.waiting.drain(..)) {
            out.reply(failed(&request));
        }
        self.free = (0..crate::connect::QUEUE_ENTRIES - 1).collect();
        self.owed = 0;
    }
}

fn failed(request: &TableRequest) -> TableReply {
    let answer = TableAnswer::Done;
    TableReply { tag: request.tag, status: Status::INTERNAL_ERROR, refusal: None, row: None, answer }
}

fn of(buffers: &Buffers, (buffer, first, bytes): Span) -> &[u8] {
    buffers.bytes(buffer, first, bytes)
}

/// The request of an identifier.
fn sent(requests: &[Option<Asked>], cid: u16) -> Result<Asked, HostError> {
    let found = requests.get(usize::from(cid)).copied().flatten();
    found
        .ok_or_else(|| HostError::broken(format!("the server answers command {cid}, which it was not asked")))
}

impl Target for ServedTables {
    type Request = TableRequest;
    type Reply = TableReply;

    fn submit(&mut self, now: Nanos, request: &TableRequest, out: &mut Out<TableReply>) -> Admission {
        if self.waiting.len() >= REQUESTS_MAX {
            return Admission::Full;
        }
        if self.line.failure.get().is_some() {
            out.reply(failed(request));
        } else if command_of(&request.op).is_none() {
            out.reply(TableReply::refused(request.tag, TableRefusal::BadContent, None));
        } else {
            if self.is_idle() {
                self.heard = now;
            }
            self.waiting.push_back(*request);
        }
        Admission::Taken
    }

    fn on_completion(&mut self, _: Nanos, completion: Completion, _: &mut Out<TableReply>) {
        unreachable!("a served target gives no commands, and {completion:?} ended");
    }

    fn on_deadline(&mut self, now: Nanos, out: &mut Out<TableReply>) {
        if self.deadline().is_some_and(|at| at <= now) {
            let (address, silent) = (self.io.address(), SILENCE_MAX.0 / 1_000_000_000);
            let why =
                format!("the server at {address} has not answered for {silent} s; the tables are given up");
            self.fail(why, out);
        }
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<TableReply>) {
        if !self.is_idle()
            && let Err(error) = self.exchange(now, out)
        {
            self.fail(error.sentence, out);
        }
    }

    fn deadline(&self) -> Option<Nanos> {
        (!self.is_idle()).then(|| self.heard + SILENCE_MAX)
    }

    fn check(&self) {
        let sent = self.sent.iter().flatten().count();
        assert_eq!(sent + self.free.len(), self.sent.len(), "an identifier is used or free");
        let owed = self.sent.iter().flatten().filter(|asked| asked.is_owed).count();
        assert_eq!(usize_of(self.owed), owed, "of {sent} that were sent");
    }
}

impl TableTarget for ServedTables {
    fn limits(&self) -> TableLimits {
        self.limits
    }
}
