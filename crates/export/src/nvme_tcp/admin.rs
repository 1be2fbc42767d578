//! Admin commands of a connection: what the subsystem says goes where it is sent from; event requests wait.
//!
//! All end at once, but event requests. Deliberately not here: what they say ([`crate::nvme_subsystem`]).

use super::session::Session;
use crate::dispatcher::Dispatcher;
use crate::nvme_subsystem::{
    Bound, Command, EVENT_REQUESTS_MAX, Refusal, Reply, State, Transfer, is_of_raw, of_raw,
};
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;
use ocssd_nvme::sqe::Abort;
use ocssd_nvme::{AdminOpcode, Sqe, StatusField};

impl Session {
    /// Carries out an admin command, and answers it unless it waits for news.
    pub(super) fn admin(&mut self, key: SlabKey, bound: Bound, dispatcher: &mut Dispatcher) {
        let sqe = self.commands.get(key).sqe;
        if is_of_raw(&sqe, dispatcher) {
            return self.raw_admin(key, &sqe, dispatcher);
        }
        let bytes = self.commands.get(key).transfer.bytes();
        let reply = match sqe.admin_opcode() {
            AdminOpcode::ASYNC_EVENT_REQUEST => return self.hold(key, dispatcher),
            AdminOpcode::ABORT => Ok(Reply::Dword(self.abort(&sqe, dispatcher))),
            _ => bound.admin(&sqe, bytes, dispatcher),
        };
        let answer = reply.and_then(|reply| self.place(key, reply, dispatcher)).map_err(Refusal::from);
        self.commands.answer(key, answer, dispatcher);
    }

    /// Puts data for the host where it is sent from.
    fn place(
        &mut self,
        key: SlabKey,
        reply: Reply,
        dispatcher: &mut Dispatcher,
    ) -> Result<(u32, u32), Status> {
        let command = self.commands.get_mut(key);
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

    fn raw_admin(&mut self, key: SlabKey, sqe: &Sqe, dispatcher: &mut Dispatcher) {
        let command = self.commands.get(key);
        let bytes = command.transfer.bytes();
        let data = match &command.piece {
            Some(piece) => dispatcher.buffers.bytes_mut(piece.buffer, 0, bytes),
            None => &mut [],
        };
        let raw = dispatcher.raw.as_mut().expect("it was found");
        let cqe = of_raw(raw, dispatcher.now, sqe, data);
        let failure = (!cqe.status.status.is_success()).then_some(cqe.status);
        self.commands.end(key, (cqe.dw0, cqe.dw1), failure, dispatcher);
    }

    fn hold(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        let held = self.commands.iter().filter(|(_, command)| command.state == State::Held).count();
        if held >= EVENT_REQUESTS_MAX {
            return self.commands.answer(key, Err(Status::AER_LIMIT_EXCEEDED.into()), dispatcher);
        }
        self.commands.get_mut(key).state = State::Held;
        self.tell_events(dispatcher);
    }

    /// Ends an event request that is held. DW0 of the answer: 0, or 1 for any other command, which is not aborted: it was begun
    /// when it came, what is begun is finished, and memory or data that it waits for may come at any time.
    fn abort(&mut self, sqe: &Sqe, dispatcher: &mut Dispatcher) -> u32 {
        let Abort { sqid, cid } = Abort::of(sqe);
        let is_meant = |command: &Command<usize>| command.state == State::Held && command.sqe.cid == cid;
        let held = self.commands.iter().find(|(_, command)| is_meant(command)).filter(|_| sqid == 0);
        let Some((key, _)) = held else { return 1 };
        let status = StatusField::retry(Status::ABORT_REQUESTED);
        self.commands.answer(key, Err(Refusal { status, dw0: 0 }), dispatcher);
        0
    }

    /// Answers event requests, as many as there is news.
    pub(super) fn tell_events(&mut self, dispatcher: &mut Dispatcher) {
        loop {
            let held = self.commands.iter().find(|(_, command)| command.state == State::Held);
            let (Some((key, _)), Some(bound)) = (held, self.bound()) else { return };
            let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
            let event = subsystem.association_mut(bound.cntlid).and_then(|one| one.events.pop_front());
            let Some(event) = event else { return };
            self.commands.answer(key, Ok((event, 0)), dispatcher);
        }
    }
}
