//! Admin commands: all end at once, but event requests.
//!
//! What is the raw namespace's own goes to its drive. Deliberately not here: the structures that are returned.

use super::association::Purpose;
use super::command::{Command, State, Transfer};
use super::respond::Refusal;
use super::session::Session;
use super::subsystem::{Namespace, namespace};
use crate::dispatcher::Dispatcher;
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::log_page::LogPageId;
use ocssd_nvme::sqe::{Abort, GetFeatures, GetLogPage};
use ocssd_nvme::{AdminOpcode, Sqe, StatusField};

/// Event requests held at once; AERL is this less one (the NVMe specification recommends at least four).
pub(super) const EVENT_REQUESTS_MAX: usize = 4;

/// What an admin command comes to.
pub(super) enum Reply {
    /// DW0 of the completion.
    Dword(u32),
    /// Data for the host.
    Data(Vec<u8>),
}

impl Session {
    /// Carries out an admin command, and answers it unless it waits for news.
    pub(super) fn admin(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        let sqe = self.queue.commands.get(key).sqe;
        if is_of_raw(&sqe, dispatcher) {
            return self.raw_admin(key, &sqe, dispatcher);
        }
        let bytes = self.queue.commands.get(key).transfer.bytes();
        let reply = match sqe.admin_opcode() {
            AdminOpcode::ASYNC_EVENT_REQUEST => return self.hold(key, dispatcher),
            AdminOpcode::IDENTIFY => self.identify(&sqe, dispatcher).map(Reply::Data),
            AdminOpcode::GET_LOG_PAGE => self.log_page(&sqe, bytes, dispatcher).map(Reply::Data),
            AdminOpcode::GET_FEATURES => self.get_features(&sqe, dispatcher).map(Reply::Dword),
            AdminOpcode::SET_FEATURES => self.set_features(&sqe, dispatcher).map(Reply::Dword),
            AdminOpcode::KEEP_ALIVE => {
                self.keep_alive(dispatcher);
                Ok(Reply::Dword(0))
            }
            AdminOpcode::ABORT => Ok(Reply::Dword(self.abort(&sqe, dispatcher))),
            _ => Err(Status::INVALID_OPCODE),
        };
        let answer = reply.and_then(|reply| self.place(key, reply, dispatcher)).map_err(Refusal::from);
        self.answer(key, answer, dispatcher);
    }

    /// Puts data for the host where it is sent from.
    fn place(
        &mut self,
        key: SlabKey,
        reply: Reply,
        dispatcher: &mut Dispatcher,
    ) -> Result<(u32, u32), Status> {
        let command = self.queue.commands.get_mut(key);
        let data = match reply {
            Reply::Data(data) => data,
            Reply::Dword(dw0) if command.transfer == Transfer::None => return Ok((dw0, 0)),
            Reply::Dword(_) => return Err(Status::INVALID_SGL_LENGTH),
        };
        let (Transfer::ToHost { bytes }, Some(piece)) = (command.transfer, &command.piece) else {
            return Err(Status::INVALID_SGL_LENGTH);
        };
        if data.len() > bytes {
            return Err(Status::INVALID_SGL_LENGTH);
        }
        dispatcher.buffers.bytes_mut(piece.buffer, 0, data.len()).copy_from_slice(&data);
        Ok((0, 0))
    }

    /// An admin command of the raw drive: its own namespace is 1.
    fn raw_admin(&mut self, key: SlabKey, sqe: &Sqe, dispatcher: &mut Dispatcher) {
        let command = self.queue.commands.get(key);
        let bytes = command.transfer.bytes();
        let data = match &command.piece {
            Some(piece) => dispatcher.buffers.bytes_mut(piece.buffer, 0, bytes),
            None => &mut [],
        };
        let raw = dispatcher.raw.as_mut().expect("it was found");
        let cqe = raw.drive.admin(dispatcher.now, &Sqe { nsid: 1, ..*sqe }, data);
        let command = self.queue.commands.get_mut(key);
        command.result = (cqe.dw0, cqe.dw1);
        command.failure = (!cqe.status.status.is_success()).then_some(cqe.status);
        self.respond(key, dispatcher);
    }

    fn hold(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        let held = self.queue.commands.iter().filter(|(_, command)| command.state == State::Held).count();
        if held >= EVENT_REQUESTS_MAX {
            return self.answer(key, Err(Status::AER_LIMIT_EXCEEDED.into()), dispatcher);
        }
        self.queue.commands.get_mut(key).state = State::Held;
        self.tell_events(dispatcher);
    }

    /// Ends an event request that is held. DW0 of the answer: 0, or 1 for any other command, which is not aborted: it was begun
    /// when it came, what is begun is finished, and memory or data that it waits for may come at any time.
    fn abort(&mut self, sqe: &Sqe, dispatcher: &mut Dispatcher) -> u32 {
        let Abort { sqid, cid } = Abort::of(sqe);
        let is_meant = |command: &Command| command.state == State::Held && command.sqe.cid == cid;
        let held = self.queue.commands.iter().find(|(_, command)| is_meant(command)).filter(|_| sqid == 0);
        let Some((key, _)) = held else { return 1 };
        let status = StatusField::retry(Status::ABORT_REQUESTED);
        self.answer(key, Err(Refusal { status, dw0: 0 }), dispatcher);
        0
    }

    /// Answers event requests, as many as there is news.
    pub(super) fn tell_events(&mut self, dispatcher: &mut Dispatcher) {
        loop {
            let held = self.queue.commands.iter().find(|(_, command)| command.state == State::Held);
            let (Some((key, _)), Some(bound)) = (held, self.bound()) else { return };
            let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
            let event = subsystem.association_mut(bound.cntlid).and_then(|one| one.events.pop_front());
            let Some(event) = event else { return };
            self.answer(key, Ok((event, 0)), dispatcher);
        }
    }

    fn keep_alive(&self, dispatcher: &mut Dispatcher) {
        let Some(bound) = self.bound() else { return };
        let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
        if let Some(association) = subsystem.association_mut(bound.cntlid) {
            association.heard = dispatcher.now;
        }
    }

    /// It tells where subsystems are, and has no namespace.
    pub(super) fn is_discovery(&self) -> bool {
        self.bound().is_some_and(|bound| bound.purpose == Purpose::Discovery)
    }
}

/// The raw drive's own commands, pages and features, for its namespace.
fn is_of_raw(sqe: &Sqe, dispatcher: &Dispatcher) -> bool {
    if namespace(sqe.nsid, &dispatcher.exports, dispatcher.raw.is_some()) != Some(Namespace::Raw) {
        return false;
    }
    let own_features = [FeatureId::ERROR_RECOVERY, FeatureId::MEDIA_FEEDBACK];
    let own_pages = [LogPageId::CHUNK_INFORMATION, LogPageId::CHUNK_NOTIFICATION];
    match sqe.admin_opcode() {
        AdminOpcode::GEOMETRY => true,
        AdminOpcode::GET_LOG_PAGE => own_pages.contains(&GetLogPage::of(sqe).lid),
        AdminOpcode::GET_FEATURES | AdminOpcode::SET_FEATURES => {
            own_features.contains(&GetFeatures::of(sqe).fid)
        }
        _ => false,
    }
}
