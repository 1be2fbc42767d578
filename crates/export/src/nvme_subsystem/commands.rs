//! The I/O commands of a controller, or of one of its queues, that have not been answered, and what a transport is to do about
//! them.
//!
//! A transport judges an entry ([`Commands::judge`]), brings the command in ([`Commands::begin`]), tells of the ends of its jobs,
//! and takes out what it is to do ([`Commands::poll_step`]): bring data, carry out what is its own, answer. Deliberately not
//! here: what commands do (`execute`).

use super::association::Name;
use super::command::{Command, State, Transfer};
use super::plan::{self, CommandPlan};
use super::raw::COUNT_MASK;
use super::subsystem::{Namespace, namespace};
use crate::dispatcher::Dispatcher;
use crate::job::JobOwner;
use crate::pool::PoolPiece;
use crate::shares::ClientId;
use ocssd_base::{Slab, SlabKey};
use ocssd_lightnvm::Status;
use ocssd_nvme::log_page::ErrorLogEntry;
use ocssd_nvme::{Cqe, IoOpcode, Lba, Sqe, StatusField};
use std::collections::VecDeque;

/// A command that is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: StatusField,
    /// DW0.
    pub dw0: u32,
}

impl From<Status> for Refusal {
    /// It broke a rule: the same command would be refused again.
    fn from(status: Status) -> Self {
        Self { status: StatusField::rule(status), dw0: 0 }
    }
}

/// What a transport is to do.
#[derive(Debug)]
pub enum Step<P> {
    /// There is memory for the command's data, which is to be brought there; then [`Commands::on_received`].
    Receive(SlabKey),
    /// It carries the command out itself; then [`Commands::answer`].
    Own(SlabKey),
    /// The command has ended, and is to be answered.
    Ended(Ended<P>),
    /// All that was answered before the shutdown is durable.
    ShutDown,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ended<P> {
    /// The entry.
    pub sqe: Sqe,
    /// What the transport kept with it.
    pub kept: P,
    /// How it ended.
    pub status: StatusField,
    /// DW0 and DW1.
    pub result: (u32, u32),
    /// Data for the host, and how many bytes of it; the piece is the pool's again when it was sent.
    pub data: Option<(PoolPiece, usize)>,
}

/// A shutdown that is on its way: how many exports were asked to flush, and how many have not ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shutdown {
    pub(super) given: u32,
    pub(super) running: u32,
}

/// Commands that have not been answered; with each the transport keeps a `P`.
#[derive(Debug)]
pub struct Commands<P> {
    /// What its jobs are called.
    name: Name,
    /// Whose they are.
    pub(super) cntlid: u16,
    pub(super) open: Slab<Command<P>>,
    /// Of these, those that wait for memory, in the order they came,
    pub(super) waiting: VecDeque<SlabKey>,
    /// and those that have it or need none and wait for a place among the jobs: never behind the others, whose memory they hold.
    pub(super) ready: VecDeque<SlabKey>,
    pub(super) steps: VecDeque<Step<P>>,
    pub(super) shutdown: Option<Shutdown>,
    /// Every write is a FUA write.
    pub always_durable: bool,
    /// Nothing new is begun.
    pub stopping: bool,
}

impl<P> Commands<P> {
    /// No commands yet, and at most `count` at once, of an association.
    #[must_use]
    pub fn new(name: Name, cntlid: u16, count: u32) -> Self {
        Self {
            name,
            cntlid,
            open: Slab::new(count),
            waiting: VecDeque::new(),
            ready: VecDeque::new(),
            steps: VecDeque::new(),
            shutdown: None,
            always_durable: false,
            stopping: false,
        }
    }

    /// They are an association's from now on.
    pub const fn bind(&mut self, cntlid: u16) {
        self.cntlid = cntlid;
    }

    /// Whose share they count towards.
    #[must_use]
    pub const fn client(&self) -> ClientId {
        ClientId(self.name.0)
    }

    /// Who is told of a job of this command.
    pub(super) const fn owner(&self, key: SlabKey) -> JobOwner {
        JobOwner { connection: self.name.0, generation: self.name.1, request: key.0 }
    }

    /// There are as many as there can be.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.open.is_full()
    }

    /// All have been answered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// All, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (SlabKey, &Command<P>)> {
        self.open.iter()
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, key: SlabKey) -> &Command<P> {
        self.open.get(key)
    }

    /// One of them, to change.
    pub fn get_mut(&mut self, key: SlabKey) -> &mut Command<P> {
        self.open.get_mut(key)
    }

    /// Some wait for memory, or for places among the jobs.
    #[must_use]
    pub fn waits_for_room(&self) -> bool {
        let waits = !self.waiting.is_empty() || !self.ready.is_empty();
        waits || self.shutdown.is_some_and(|shutdown| shutdown.running == 0)
    }

    /// A shutdown is on its way.
    #[must_use]
    pub const fn is_shutting_down(&self) -> bool {
        self.shutdown.is_some()
    }

    /// Jobs of theirs that have not ended.
    #[must_use]
    pub fn jobs(&self) -> u32 {
        let of_shutdown = self.shutdown.map_or(0, |shutdown| shutdown.running);
        self.open.iter().map(|(_, command)| command.running).sum::<u32>() + of_shutdown
    }

    /// The next thing to do.
    pub fn poll_step(&mut self) -> Option<Step<P>> {
        self.steps.pop_front()
    }

    /// A command whose data is behind its entry: it goes on when that is here.
    ///
    /// # Panics
    /// If there is no room.
    pub fn begin_receiving(&mut self, command: Command<P>, dispatcher: &mut Dispatcher) -> SlabKey {
        let key = self.insert(command, dispatcher);
        self.open.get_mut(key).state = State::Receiving;
        key
    }

    /// A command that can go on.
    ///
    /// # Panics
    /// If there is no room.
    pub fn begin(&mut self, command: Command<P>, dispatcher: &mut Dispatcher) {
        let key = self.insert(command, dispatcher);
        self.waiting.push_back(key);
        self.issue(dispatcher);
    }

    fn insert(&mut self, command: Command<P>, dispatcher: &mut Dispatcher) -> SlabKey {
        plan::count(&mut dispatcher.stats, &command.plan);
        let inserted = self.open.insert(command);
        inserted.unwrap_or_else(|_| panic!("there was room when the command came"))
    }

    /// All data of a command is where it belongs.
    pub fn on_received(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        self.open.get_mut(key).state = State::Ready;
        self.ready.push_back(key);
        self.issue(dispatcher);
    }

    /// Answers with two dwords, or a refusal.
    pub fn answer(&mut self, key: SlabKey, answer: Result<(u32, u32), Refusal>, dispatcher: &mut Dispatcher) {
        let (result, failure) = match answer {
            Ok(result) => (result, None),
            Err(refusal) => ((refusal.dw0, 0), Some(refusal.status)),
        };
        self.end(key, result, failure, dispatcher);
    }

    /// A command that the transport carried out has ended.
    pub fn end(
        &mut self,
        key: SlabKey,
        result: (u32, u32),
        failure: Option<StatusField>,
        dispatcher: &mut Dispatcher,
    ) {
        let command = self.open.get_mut(key);
        (command.result, command.failure) = (result, failure);
        self.respond(key, dispatcher);
    }

    /// A command has ended; what it holds comes back, but for data that the host gets.
    pub(super) fn respond(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        let Command { sqe, transfer, plan, piece, there, failure, result, kept, .. } = self.open.remove(key);
        there.into_iter().for_each(|piece| dispatcher.pool.give_back(piece));
        let status = failure.unwrap_or(StatusField::SUCCESS);
        let data = match (transfer, piece) {
            (Transfer::ToHost { bytes }, Some(piece)) if has_data(&plan, &sqe, status, result) => {
                Some((piece, bytes))
            }
            (_, piece) => {
                piece.into_iter().for_each(|piece| dispatcher.pool.give_back(piece));
                None
            }
        };
        self.steps.push_back(Step::Ended(Ended { sqe, kept, status, result, data }));
    }

    /// One of them, and nothing but its memory is given back.
    pub fn forget(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        let command = self.open.remove(key);
        command.piece.into_iter().chain(command.there).for_each(|piece| dispatcher.pool.give_back(piece));
    }

    /// Commands that are not answered: what they hold comes back. Jobs that are out end without them.
    pub fn give_up(&mut self, dispatcher: &mut Dispatcher) {
        let open: Vec<SlabKey> = self.open.iter().map(|(key, _)| key).collect();
        open.into_iter().for_each(|key| self.forget(key, dispatcher));
        for step in self.steps.drain(..) {
            if let Step::Ended(Ended { data: Some((piece, _)), .. }) = step {
                dispatcher.pool.give_back(piece);
            }
        }
        self.waiting.clear();
        self.ready.clear();
        self.shutdown = None;
    }
}

/// Whether a command brought data: of a vector read of which some entries failed those of the others, which the bitmap tells
/// apart.
fn has_data(plan: &CommandPlan, sqe: &Sqe, status: StatusField, (dw0, dw1): (u32, u32)) -> bool {
    let is_vector_read = *plan == CommandPlan::Raw && sqe.io_opcode() == IoOpcode::VECTOR_READ;
    let failed = dw0.count_ones() + dw1.count_ones();
    status.status.has_data() || is_vector_read && (1..=sqe.cdw12 & COUNT_MASK).contains(&failed)
}

/// Counts an error, and puts it into the log of its controller if there is one.
pub fn note_error(sqe: &Sqe, cqe: &Cqe, cntlid: Option<u16>, dispatcher: &mut Dispatcher) {
    dispatcher.stats.errors += 1;
    let found = namespace(sqe.nsid, &dispatcher.exports, dispatcher.raw.is_some());
    let has_lba = cqe.sqid > 0
        && !matches!(found, Some(Namespace::KeyValue(_) | Namespace::Pages(_) | Namespace::Tables(_)));
    let association = cntlid.and_then(|cntlid| {
        let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
        subsystem.association_mut(cntlid)
    });
    let Some(association) = association else { return };
    let lba = if has_lba { u64::from(sqe.cdw11) << 32 | u64::from(sqe.cdw10) } else { 0 };
    association.note_error(ErrorLogEntry {
        error_count: 0,
        sqid: cqe.sqid,
        cid: cqe.cid,
        status: cqe.status,
        phase: false,
        parameter_error_location: 0xFFFF,
        lba: Lba(lba),
        nsid: sqe.nsid,
        vendor_log_page: 0,
        command_specific: 0,
    });
}
