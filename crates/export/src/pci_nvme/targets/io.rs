//! I/O commands on their way from the guest's queues to targets and back, with their data.

use super::super::doorbell::Doorbell;
use super::super::fetch::{BURST, refusal};
use super::super::memory::{GuestMemory, Segment, are_writable, gather, scatter};
use super::super::transfer::follow_data;
use super::function::{Kept, TargetFunction};
use crate::dispatcher::Dispatcher;
use crate::nvme_subsystem::{
    Command, Ended, Refusal, Step, Transfer, data_bytes, direction, note_error, transfer_bytes_max,
};
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;
use ocssd_nvme::opcode::DataDirection;
use ocssd_nvme::sqe::Psdt;
use ocssd_nvme::{Cqe, Sqe, StatusField};

impl<M: GuestMemory> TargetFunction<M> {
    /// Takes what queues hold, the admin queue first, I/O queues in turn. True if something was taken.
    pub(super) fn fetch(&mut self, dispatcher: &mut Dispatcher) -> bool {
        let mut any = false;
        for qid in self.port.take_turn() {
            if self.port.submission(qid).is_none() {
                continue;
            }
            any |= self.port.look_at_shadow(Doorbell::Tail(qid));
            for _ in 0..BURST {
                if qid > 0 && self.is_full() {
                    break;
                }
                let Some(sqe) = self.port.peek(qid) else { break };
                any = true;
                self.port.take_entry(qid);
                if qid == 0 {
                    self.admin(&sqe, dispatcher);
                } else {
                    self.begin(qid, &sqe, dispatcher);
                }
            }
        }
        any
    }

    /// No I/O command can be begun; one that has ended makes room.
    fn is_full(&self) -> bool {
        self.commands.is_full() || self.commands.waits_for_room()
    }

    fn begin(&mut self, qid: u16, sqe: &Sqe, dispatcher: &mut Dispatcher) {
        self.port.counters.commands += 1;
        self.port.submission_mut(qid).expect("its entry was just taken").in_flight += 1;
        match self.judge(qid, sqe, dispatcher) {
            Ok(command) => {
                self.commands.begin(command, dispatcher);
                self.settle(dispatcher);
            }
            Err(Refusal { status, dw0 }) => self.complete(qid, sqe, status, (dw0, 0), dispatcher),
        }
    }

    /// What a command comes to, and where its data lies.
    fn judge(&mut self, qid: u16, sqe: &Sqe, dispatcher: &Dispatcher) -> Result<Command<Kept>, Refusal> {
        let most = transfer_bytes_max(dispatcher);
        let bytes = usize::try_from(data_bytes(sqe, dispatcher)).ok().filter(|bytes| *bytes <= most);
        let bytes = bytes.filter(|_| sqe.psdt != Psdt::Reserved).ok_or(Status::INVALID_FIELD)?;
        let transfer = match direction(sqe, dispatcher) {
            _ if bytes == 0 => Transfer::None,
            DataDirection::ToHost => Transfer::ToHost { bytes },
            DataDirection::ToDevice => Transfer::FromHost { bytes },
            DataDirection::None | DataDirection::Both => Transfer::None,
        };
        let plan = self.commands.judge(sqe, transfer, dispatcher)?;
        let mut segments = self.spare.pop().unwrap_or_default();
        if let Err(status) = self.follow(sqe, transfer, &mut segments) {
            self.keep(segments);
            return Err(Refusal { status: refusal(status), dw0: 0 });
        }
        Ok(Command::new(*sqe, transfer, plan, Kept { qid, segments }))
    }

    /// Where data lies. What the guest gets must have its place now; whether it still has when it comes is seen then.
    fn follow(&self, sqe: &Sqe, transfer: Transfer, segments: &mut Vec<Segment>) -> Result<(), Status> {
        let to_host = matches!(transfer, Transfer::ToHost { .. });
        follow_data(&self.port.memory, sqe, (transfer.bytes(), to_host), segments)?;
        let is_sound = !to_host || are_writable(&self.port.memory, segments);
        if is_sound { Ok(()) } else { Err(Status::DATA_TRANSFER_ERROR) }
    }

    /// A list of segments that is not needed any more.
    fn keep(&mut self, mut segments: Vec<Segment>) {
        segments.clear();
        self.spare.push(segments);
    }

    /// Does what commands have come to.
    pub(super) fn settle(&mut self, dispatcher: &mut Dispatcher) {
        while let Some(step) = self.commands.poll_step() {
            match step {
                Step::Receive(key) => self.receive(key, dispatcher),
                Step::Own(_) => unreachable!("admin commands are carried out when they come"),
                Step::Ended(ended) => self.end(ended, dispatcher),
                Step::ShutDown => self.port.shutdown_is_done(),
            }
        }
    }

    /// Data is copied to where the target reads it.
    fn receive(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        let command = self.commands.get_mut(key);
        let bytes = command.transfer.bytes();
        let piece = command.piece.as_ref().expect("memory was found for it");
        let place = dispatcher.buffers.bytes_mut(piece.buffer, 0, bytes);
        if gather(&self.port.memory, &command.kept.segments, place).is_ok() {
            let count = u64::try_from(bytes).expect("a length");
            self.port.counters.received_bytes += count;
            dispatcher.stats.received_bytes += count;
            dispatcher.stats.received_copied_bytes += count;
        } else {
            command.failure = Some(refusal(Status::DATA_TRANSFER_ERROR));
        }
        self.commands.on_received(key, dispatcher);
    }

    /// A command has ended: its data is copied to the guest, and then it is answered.
    fn end(&mut self, ended: Ended<Kept>, dispatcher: &mut Dispatcher) {
        let Ended { sqe, kept: Kept { qid, segments }, mut status, result, data } = ended;
        if let Some((piece, bytes)) = data {
            let from = dispatcher.buffers.bytes(piece.buffer, 0, bytes);
            if scatter(&self.port.memory, &segments, from).is_ok() {
                let count = u64::try_from(bytes).expect("a length");
                self.port.counters.sent_bytes += count;
                dispatcher.stats.sent_bytes += count;
                dispatcher.stats.sent_copied_bytes += count;
            } else {
                status = refusal(Status::DATA_TRANSFER_ERROR);
            }
            dispatcher.pool.give_back(piece);
        }
        self.keep(segments);
        self.complete(qid, &sqe, status, result, dispatcher);
    }

    /// Answers a command, and notes an error.
    fn complete(
        &mut self,
        qid: u16,
        sqe: &Sqe,
        status: StatusField,
        (dw0, dw1): (u32, u32),
        dispatcher: &mut Dispatcher,
    ) {
        let cqe = Cqe { dw0, dw1, sqhd: 0, sqid: qid, cid: sqe.cid, phase: false, status };
        if !status.status.has_data() {
            note_error(sqe, &cqe, self.bound.map(|bound| bound.cntlid), dispatcher);
        }
        self.port.put_ended(qid, cqe);
    }
}
