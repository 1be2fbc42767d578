//! Commands carried out: memory, jobs given, ends gathered.
//!
//! Those that wait for memory wait in the order they came, and so do those that wait for places among the jobs.
//! Deliberately not here: what a
//! transport carries out itself.

use super::command::{Command, State, Transfer};
use super::commands::{Commands, Refusal, Shutdown, Step};
use super::pages;
use super::plan::{self, BlockKind, BlockPlan, CommandPlan};
use super::subsystem::{Namespace, namespace};
use super::zoned::{self, ZonedPlan};
use super::{key_value, staged, tables};
use crate::dispatcher::Dispatcher;
use crate::exports::ExportId;
use crate::job::{Answer, Done, Job, Work};
use crate::pool::PoolPiece;
use crate::shares::{ClientId, Want};
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;
use ocssd_nvme::ocssd20::{Claim, DsmRange};
use ocssd_nvme::opcode::DataDirection;
use ocssd_nvme::pages::PageOpcode;
use ocssd_nvme::sqe::Fuse;
use ocssd_nvme::{IoOpcode, Sqe, StatusField};

/// The owner of flushes that belong to a shutdown, not to a command.
const SHUTDOWN: u32 = u32::MAX;

/// All namespaces.
const NSID_ALL: u32 = u32::MAX;

/// Which way an I/O command moves data: as the bits of its opcode say, and of a namespace of pages as its command set says.
#[must_use]
pub fn direction(sqe: &Sqe, dispatcher: &Dispatcher) -> DataDirection {
    match namespace(sqe.nsid, &dispatcher.exports, dispatcher.raw.is_some()) {
        Some(Namespace::Pages(_)) => PageOpcode(sqe.opcode).direction(),
        _ => DataDirection::of(sqe.opcode),
    }
}

impl<P> Commands<P> {
    /// What an I/O command comes to whose data moves as `transfer` says, before any of its data is looked at.
    ///
    /// # Errors
    /// The answer to one that is not carried out.
    pub fn judge(
        &self,
        sqe: &Sqe,
        transfer: Transfer,
        dispatcher: &Dispatcher,
    ) -> Result<CommandPlan, Refusal> {
        if sqe.fuse != Fuse::Normal {
            return Err(Status::INVALID_FIELD.into());
        }
        let subsystem = dispatcher.subsystem.as_ref().expect("an association lies in a subsystem");
        if !subsystem.association(self.cntlid).is_some_and(|association| association.is_ready()) {
            return Err(Status::COMMAND_SEQUENCE_ERROR.into());
        }
        if self.stopping {
            return Err(Refusal { status: StatusField::retry(Status::NAMESPACE_NOT_READY), dw0: 0 });
        }
        if sqe.io_opcode() == IoOpcode::FLUSH && sqe.nsid == NSID_ALL && transfer == Transfer::None {
            let count = u32::try_from(dispatcher.exports.len()).expect("at most 256");
            return Ok(CommandPlan::Flush { first: 0, count });
        }
        let claim = subsystem.claim(sqe.nsid);
        if claim.is_some_and(|holder| holder != self.cntlid) {
            return Err(Status::RESERVATION_CONFLICT.into());
        }
        match namespace(sqe.nsid, &dispatcher.exports, dispatcher.raw.is_some()) {
            None => Err(Status::INVALID_NAMESPACE.into()),
            Some(Namespace::Raw) => {
                let raw = dispatcher.raw.as_ref().expect("it was found");
                Ok(super::raw::judge(sqe, transfer, raw, claim.is_some())?)
            }
            Some(
                Namespace::Block(id)
                | Namespace::Zoned(id)
                | Namespace::KeyValue(id)
                | Namespace::Pages(id)
                | Namespace::Tables(id),
            ) if sqe.io_opcode() == IoOpcode::FLUSH => match transfer {
                Transfer::None => Ok(CommandPlan::Flush { first: id.0, count: 1 }),
                _ => Err(Status::INVALID_SGL_LENGTH.into()),
            },
            Some(Namespace::Block(id)) => Ok(plan::block(sqe, id, dispatcher.exports.get(id), transfer)?),
            Some(Namespace::Zoned(id)) => Ok(zoned::judge(sqe, id, dispatcher.exports.get(id), transfer)?),
            Some(Namespace::Pages(id)) => Ok(pages::judge(sqe, id, dispatcher.exports.get(id), transfer)?),
            Some(Namespace::Tables(id)) => Ok(tables::judge(sqe, id, dispatcher.exports.get(id), transfer)?),
            Some(Namespace::KeyValue(id)) => {
                let absent = subsystem.absent_key(sqe.nsid);
                Ok(key_value::judge(sqe, id, dispatcher.exports.get(id), transfer, absent)?)
            }
        }
    }

    /// Goes on with what can go on: first with what may give memory back, then with what waits for it.
    pub fn issue(&mut self, dispatcher: &mut Dispatcher) {
        self.go_on_shutting_down(dispatcher);
        while self.carry_out_ready(dispatcher) {
            let Some(&key) = self.waiting.front() else { return };
            if !self.find_memory(key, dispatcher) {
                return;
            }
            self.waiting.pop_front();
        }
    }

    /// Carries out what is ready, in order; false if something must wait.
    fn carry_out_ready(&mut self, dispatcher: &mut Dispatcher) -> bool {
        while let Some(&key) = self.ready.front() {
            let command = self.open.get(key);
            if command.failure.is_some() && command.running == 0 {
                self.respond(key, dispatcher);
            } else if !self.carry_out(key, dispatcher) {
                return false;
            }
            self.ready.pop_front();
        }
        true
    }

    /// Finds memory for one that waits, which then gets its data or is ready; false if there is none.
    fn find_memory(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) -> bool {
        let client = self.client();
        let command = self.open.get_mut(key);
        assert_eq!(command.state, State::Waiting, "only one that waits finds memory");
        if !take_piece(command, client, dispatcher) {
            return false;
        }
        if let Transfer::FromHost { bytes } = command.transfer {
            command.state = State::Receiving;
            assert!(bytes > 0, "data of no byte is awaited");
            self.steps.push_back(Step::Receive(key));
        } else {
            command.state = State::Ready;
            self.ready.push_back(key);
        }
        true
    }

    /// Carries out one whose data is there; false if it must wait.
    fn carry_out(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) -> bool {
        match self.open.get(key).plan {
            CommandPlan::Own => {
                self.steps.push_back(Step::Own(key));
                true
            }
            CommandPlan::Nothing => {
                self.respond(key, dispatcher);
                true
            }
            CommandPlan::Raw => self.give_raw(key, dispatcher),
            CommandPlan::Claim(claim) => self.carry_out_claim(key, claim, dispatcher),
            CommandPlan::Tables(plan) => self.give_tables(key, plan, dispatcher),
            CommandPlan::Flush { first, count } => self.give_flushes(key, first, count, dispatcher),
            CommandPlan::Block(BlockPlan { export, kind: BlockKind::Discard { ranges }, .. }) => {
                self.give_discards(key, export, ranges, dispatcher)
            }
            CommandPlan::Block(plan) => self.give_block(key, plan, dispatcher),
            CommandPlan::Zoned(ZonedPlan { export, kind, block }) => {
                let (work, count) = kind.work(self.always_durable);
                self.give_one(key, dispatcher, |piece| {
                    // Of no data there is no piece.
                    Job { export, work, block, count, ..Job::flush(export, piece) }
                })
            }
            CommandPlan::KeyValue(plan) => self.give_key_value(key, plan, dispatcher),
            CommandPlan::Pages(plan) => self.give_pages(key, plan, dispatcher),
        }
    }

    /// A namespace becomes this host's, or everybody's; false if that must wait.
    fn carry_out_claim(&mut self, key: SlabKey, claim: Claim, dispatcher: &mut Dispatcher) -> bool {
        let nsid = self.open.get(key).sqe.nsid;
        let found = namespace(nsid, &dispatcher.exports, dispatcher.raw.is_some());
        if let Some(Namespace::Tables(id)) = found {
            return self.claim_tables(key, id, claim, dispatcher);
        }
        let answer = self.claim_raw(nsid, claim, dispatcher);
        self.answer(key, answer, dispatcher);
        true
    }

    /// Gives the only job of a command, with its piece; false if there is no room.
    pub(super) fn give_one(
        &mut self,
        key: SlabKey,
        dispatcher: &mut Dispatcher,
        job: impl FnOnce(Option<PoolPiece>) -> Job,
    ) -> bool {
        if !dispatcher.has_room(self.client()) {
            return false;
        }
        let owner = self.owner(key);
        let command = self.open.get_mut(key);
        command.given += 1;
        command.running += 1;
        dispatcher.give(Job { owner, ..job(command.piece.take()) });
        true
    }

    fn give_block(&mut self, key: SlabKey, plan: BlockPlan, dispatcher: &mut Dispatcher) -> bool {
        if !dispatcher.has_room(self.client()) {
            return false;
        }
        let owner = self.owner(key);
        let durable = plan.fua || self.always_durable;
        let command = self.open.get_mut(key);
        let (work, piece) = match plan.kind {
            BlockKind::Read => (Work::Read, command.piece.take()),
            BlockKind::Compare => (Work::Read, command.there.take()),
            BlockKind::Write | BlockKind::ZeroesToZone { .. } => {
                (Work::Write { fua: durable }, command.piece.take())
            }
            BlockKind::Zeroes | BlockKind::Discard { .. } => (Work::WriteZeroes, None),
        };
        command.given += 1;
        command.running += 1;
        let BlockPlan { export, block, count, .. } = plan;
        dispatcher.give(Job { owner, export, work, block, count, piece, beside: Vec::new() });
        true
    }

    /// A flush of each export; false if there is no room for the next.
    fn give_flushes(&mut self, key: SlabKey, first: u32, count: u32, dispatcher: &mut Dispatcher) -> bool {
        let (owner, client) = (self.owner(key), self.client());
        let command = self.open.get_mut(key);
        while command.given < count {
            if !dispatcher.has_room(client) {
                return false;
            }
            let export = ExportId(first + command.given);
            dispatcher.give(Job { owner, ..Job::flush(export, None) });
            command.given += 1;
            command.running += 1;
        }
        if count == 0 {
            self.respond(key, dispatcher);
        }
        true
    }

    /// A job for each range; false if there is no room for the next.
    fn give_discards(&mut self, key: SlabKey, id: ExportId, count: u16, dispatcher: &mut Dispatcher) -> bool {
        let (owner, client) = (self.owner(key), self.client());
        let command = self.open.get_mut(key);
        let piece = command.piece.as_ref().expect("a dataset management has data");
        let bytes = usize::from(count) * DsmRange::BYTES;
        let found =
            plan::ranges(dispatcher.buffers.bytes(piece.buffer, 0, bytes), count, dispatcher.exports.get(id));
        let ranges = match found {
            Ok(ranges) => ranges,
            Err(status) => {
                command.failure = Some(StatusField::rule(status));
                self.respond(key, dispatcher);
                return true;
            }
        };
        for range in ranges.iter().skip(ocssd_base::usize_of(command.given)) {
            if !dispatcher.has_room(client) {
                return false;
            }
            command.given += 1;
            if range.nlb > 0 {
                command.running += 1;
                let (block, count) = (range.slba.0, range.nlb);
                dispatcher.give(Job { owner, work: Work::Discard, block, count, ..Job::flush(id, None) });
            }
        }
        if command.running == 0 {
            self.respond(key, dispatcher);
        }
        true
    }

    /// A job has ended.
    pub fn on_done(&mut self, done: Done, dispatcher: &mut Dispatcher) {
        if done.job.owner.request == SHUTDOWN {
            let shutdown = self.shutdown.as_mut().expect("a flush of a shutdown ended");
            shutdown.running -= 1;
            return self.go_on_shutting_down(dispatcher);
        }
        let key = SlabKey(done.job.owner.request);
        if key == staged::NOBODY {
            return;
        }
        let command = self.open.get_mut(key);
        command.running -= 1;
        let counts = staged::on_stage_done(&command.plan, &done.job, done.status.is_success(), dispatcher);
        if command.compares() {
            command.there = done.job.piece;
        } else if done.job.piece.is_some() {
            command.piece = done.job.piece;
        }
        match done.answer {
            Answer::Zoned(answer) => zoned::on_done(command, answer, dispatcher),
            Answer::KeyValue(reply) => key_value::on_done(command, &reply, dispatcher),
            Answer::Log(reply) => pages::on_done(command, &reply, dispatcher),
            Answer::Table(reply) => tables::on_done(command, &reply, dispatcher),
            _ => {}
        }
        if let CommandPlan::Claim(_) = command.plan {
            // What it gave up may have been published since.
            self.ready.push_back(key);
            return self.issue(dispatcher);
        }
        if let Answer::Raw(completion) = done.answer {
            command.result = (completion.dw0, completion.dw1);
            command.failure = Some(completion.status).filter(|status| *status != StatusField::SUCCESS);
        } else if counts && !done.status.has_data() {
            command.failure.get_or_insert(status_field(done.status));
        }
        if command.running > 0 || command.given < jobs(&command.plan) {
            return;
        }
        if command.failure.is_none() && !is_same(command, dispatcher) {
            command.failure = Some(StatusField::rule(Status::COMPARE_FAILURE));
        }
        if let CommandPlan::Block(BlockPlan { kind: BlockKind::Zeroes, export, fua, .. }) = command.plan
            && (fua || self.always_durable)
            && command.failure.is_none()
        {
            // Zeroes have no FUA of their own below: a flush makes them durable.
            command.plan = CommandPlan::Flush { first: export.0, count: 1 };
            command.given = 0;
            self.ready.push_back(key);
            return self.issue(dispatcher);
        }
        self.respond(key, dispatcher);
    }

    /// Makes everything durable that was answered, because the host says that it goes. [`Step::ShutDown`] tells when it is.
    pub fn shut_down(&mut self, dispatcher: &mut Dispatcher) {
        if self.shutdown.is_none() {
            self.shutdown = Some(Shutdown::default());
            self.go_on_shutting_down(dispatcher);
        }
    }

    fn go_on_shutting_down(&mut self, dispatcher: &mut Dispatcher) {
        let (owner, client) = (self.owner(SlabKey(SHUTDOWN)), self.client());
        let Some(shutdown) = &mut self.shutdown else { return };
        let count = u32::try_from(dispatcher.exports.len()).expect("at most 256");
        while shutdown.given < count && dispatcher.has_room(client) {
            dispatcher.give(Job { owner, ..Job::flush(ExportId(shutdown.given), None) });
            shutdown.given += 1;
            shutdown.running += 1;
        }
        if shutdown.given == count && shutdown.running == 0 {
            self.shutdown = None;
            self.steps.push_back(Step::ShutDown);
        }
    }
}

/// Memory for the data of a command that does not carry it; false if there is none.
fn take_piece<P>(command: &mut Command<P>, client: ClientId, dispatcher: &mut Dispatcher) -> bool {
    let bytes = command.memory_bytes();
    if bytes == 0 || command.piece.is_some() {
        return true;
    }
    if !command.take_memory(client, Want::Share, &mut dispatcher.pool) {
        return false;
    }
    let is_zeroed = match command.plan {
        CommandPlan::Own | CommandPlan::Raw => true,
        CommandPlan::Block(BlockPlan { kind, .. }) => matches!(kind, BlockKind::ZeroesToZone { .. }),
        _ => false,
    };
    if let (Some(piece), true) = (&command.piece, is_zeroed) {
        zero(piece, bytes, dispatcher);
    }
    true
}

/// What a compare has read is what the host sent; true of all other commands.
fn is_same<P>(command: &Command<P>, dispatcher: &Dispatcher) -> bool {
    let (Some(sent), Some(there)) = (&command.piece, &command.there) else { return true };
    let bytes = command.transfer.bytes();
    dispatcher.buffers.bytes(sent.buffer, 0, bytes) == dispatcher.buffers.bytes(there.buffer, 0, bytes)
}

/// What another left in a piece is not sent.
fn zero(piece: &PoolPiece, bytes: usize, dispatcher: &mut Dispatcher) {
    dispatcher.buffers.bytes_mut(piece.buffer, 0, bytes).fill(0);
}

/// Jobs of a plan.
fn jobs(plan: &CommandPlan) -> u32 {
    match plan {
        CommandPlan::Flush { count, .. } => *count,
        CommandPlan::Block(BlockPlan { kind: BlockKind::Discard { ranges }, .. }) => u32::from(*ranges),
        _ => 1,
    }
}

/// Media that lost data has lost it: only what may be different next time is to be tried again.
fn status_field(status: Status) -> StatusField {
    match status {
        Status::NAMESPACE_NOT_READY | Status::INTERNAL_ERROR | Status::POWER_LOSS_ABORT => {
            StatusField::retry(status)
        }
        _ => StatusField::rule(status),
    }
}
