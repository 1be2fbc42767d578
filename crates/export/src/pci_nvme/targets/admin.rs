//! The admin queue: what belongs to queues and PCI is the port's, all else the subsystem's. All commands end at once, but event
//! requests.

use super::super::memory::{GuestMemory, Segment, are_writable, scatter};
use super::super::transfer::follow_data;
use super::function::TargetFunction;
use crate::dispatcher::Dispatcher;
use crate::nvme_subsystem::{EVENT_REQUESTS_MAX, Reply, is_of_raw, note_error, of_raw, transfer_bytes_max};
use ocssd_lightnvm::Status;
use ocssd_nvme::identify::IdentifyController;
use ocssd_nvme::sqe::{Abort, Fuse, GetLogPage, Psdt};
use ocssd_nvme::{AdminOpcode, Cqe, Sqe, StatusField};

impl<M: GuestMemory> TargetFunction<M> {
    /// Carries out an admin command.
    pub(super) fn admin(&mut self, sqe: &Sqe, dispatcher: &mut Dispatcher) {
        self.port.counters.admins += 1;
        dispatcher.stats.admins += 1;
        // On PCI, admin commands have PRPs (NVMe base 2.0 figure 87, PSDT), and are alone.
        if sqe.psdt != Psdt::Prp || sqe.fuse != Fuse::Normal {
            return self.end_admin(sqe, StatusField::rule(Status::INVALID_FIELD), (0, 0), dispatcher);
        }
        if self.port.carry_out_own(sqe) {
            return self.note_queues(dispatcher);
        }
        match sqe.admin_opcode() {
            AdminOpcode::ASYNC_EVENT_REQUEST => self.port.hold_event(sqe, EVENT_REQUESTS_MAX),
            AdminOpcode::ABORT => {
                let dw0 = self.abort(sqe);
                self.end_admin(sqe, StatusField::SUCCESS, (dw0, 0), dispatcher);
            }
            _ => {
                let (status, result) = match self.answer(sqe, dispatcher) {
                    Ok(answer) => answer,
                    Err(status) => (super::super::fetch::refusal(status), (0, 0)),
                };
                self.end_admin(sqe, status, result, dispatcher);
                self.adapt(sqe, dispatcher);
            }
        }
    }

    /// Ends an event request that is held. DW0 of the answer: 0, or 1 for any other command, which is not aborted: what is
    /// begun is finished.
    fn abort(&mut self, sqe: &Sqe) -> u32 {
        let Abort { sqid, cid } = Abort::of(sqe);
        u32::from(sqid != 0 || !self.port.abort_event(cid))
    }

    /// What the subsystem or the raw drive answers, with its data in the guest's memory.
    fn answer(
        &mut self,
        sqe: &Sqe,
        dispatcher: &mut Dispatcher,
    ) -> Result<(StatusField, (u32, u32)), Status> {
        let most = transfer_bytes_max(dispatcher);
        let room = usize::try_from(room_of(sqe)).ok().filter(|room| *room <= most);
        let room = room.ok_or(Status::INVALID_FIELD)?;
        let mut segments = Vec::new();
        follow_data(&self.port.memory, sqe, (room, true), &mut segments)?;
        if !are_writable(&self.port.memory, &segments) {
            return Err(Status::DATA_TRANSFER_ERROR);
        }
        if is_of_raw(sqe, dispatcher) {
            let mut data = vec![0; room];
            let raw = dispatcher.raw.as_mut().expect("it was found");
            let cqe = of_raw(raw, dispatcher.now, sqe, &mut data);
            if cqe.status.status.is_success() {
                self.send(&segments, &data);
            }
            return Ok((cqe.status, (cqe.dw0, cqe.dw1)));
        }
        let bound = self.bound.ok_or(Status::COMMAND_SEQUENCE_ERROR)?;
        let dw0 = match bound.admin(sqe, room, dispatcher)? {
            Reply::Dword(dw0) => dw0,
            Reply::Data(data) => {
                assert!(data.len() <= room, "{} bytes are more than the {room} of the command", data.len());
                self.send(&segments, &data);
                0
            }
        };
        Ok((StatusField::SUCCESS, (dw0, 0)))
    }

    fn send(&mut self, segments: &[Segment], data: &[u8]) {
        let sent = scatter(&self.port.memory, segments, data);
        sent.expect("it was writable when the command began, and nothing came between");
        self.port.counters.sent_bytes += u64::try_from(data.len()).expect("a length");
    }

    fn end_admin(
        &mut self,
        sqe: &Sqe,
        status: StatusField,
        (dw0, dw1): (u32, u32),
        dispatcher: &mut Dispatcher,
    ) {
        let cqe = Cqe { dw0, dw1, sqhd: 0, sqid: 0, cid: sqe.cid, phase: false, status };
        if !status.status.is_success() {
            note_error(sqe, &cqe, self.bound.map(|bound| bound.cntlid), dispatcher);
        }
        self.port.put(0, cqe);
    }

    /// What the guest changed is so for queues and commands from now on.
    fn adapt(&mut self, sqe: &Sqe, dispatcher: &mut Dispatcher) {
        if sqe.admin_opcode() == AdminOpcode::GET_LOG_PAGE {
            self.port.events.log_was_read(&GetLogPage::of(sqe));
        }
        let Some(features) = self.association(dispatcher).map(|association| association.features) else {
            return;
        };
        self.commands.always_durable = !features.write_cache;
        self.port.granted.submission_queues = features.queues;
        self.port.granted.completion_queues = features.queues;
    }

    /// The controller knows which queues there are: with any, their number stays.
    fn note_queues(&mut self, dispatcher: &mut Dispatcher) {
        let name = self.name();
        let made: Vec<u16> = self.port.made_queues().collect();
        if let Some(association) = self.association(dispatcher) {
            association.queues = made.into_iter().map(|qid| (qid, name)).collect();
        }
    }

    /// Tells news, as much as somebody asked for. True if there was some.
    pub(super) fn tell_events(&mut self, dispatcher: &mut Dispatcher) -> bool {
        let mut any = false;
        while self.port.awaits_news() {
            let own = self.port.poll_news();
            let news = own.or_else(|| self.association(dispatcher)?.events.pop_front());
            let Some(dw0) = news else { break };
            self.port.tell(dw0);
            any = true;
        }
        any
    }
}

/// Bytes an admin command returns at most.
fn room_of(sqe: &Sqe) -> u64 {
    match sqe.admin_opcode() {
        AdminOpcode::IDENTIFY | AdminOpcode::GEOMETRY => {
            u64::try_from(IdentifyController::BYTES).expect("4096")
        }
        AdminOpcode::GET_LOG_PAGE => GetLogPage::of(sqe).byte_count(),
        _ => 0,
    }
}
