//! What is to be done about commands, done: data asked for, what is this transport's own carried out, answers sent.
//!
//! Deliberately not here: what leads to the answers ([`crate::nvme_subsystem`]).

use super::session::Session;
use crate::dispatcher::Dispatcher;
use crate::nvme_subsystem::{Ended, Refusal, Step, Transfer, note_error};
use ocssd_base::SlabKey;
use ocssd_nvme::{AdminOpcode, Cqe, Sqe, StatusField};

impl Session {
    /// Does what commands have come to.
    pub(super) fn settle(&mut self, dispatcher: &mut Dispatcher) {
        while let Some(step) = self.commands.poll_step() {
            match step {
                Step::Receive(key) => self.ask_for_data(key, dispatcher),
                Step::Own(key) => self.carry_out_own(key, dispatcher),
                Step::Ended(ended) => self.respond(ended, dispatcher),
                Step::ShutDown => self.on_shut_down(dispatcher),
            }
        }
    }

    fn ask_for_data(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        let command = self.commands.get(key);
        let Transfer::FromHost { bytes } = command.transfer else {
            unreachable!("data that is asked for comes from the host, but this is {:?}", command.transfer)
        };
        dispatcher.stats.asked += 1;
        let tag = u16::try_from(key.0).expect("a queue has few entries");
        self.agreed.push_r2t(&mut self.send_queue, command.sqe.cid, tag, bytes);
    }

    /// Admin commands, and those of Fabrics.
    fn carry_out_own(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        match self.bound() {
            Some(bound) if self.commands.get(key).sqe.opcode != AdminOpcode::FABRICS.0 => {
                self.admin(key, bound, dispatcher);
            }
            _ => self.fabrics(key, dispatcher),
        }
    }

    /// Answers a command that was not taken.
    pub(super) fn refuse(&mut self, sqe: &Sqe, refusal: Refusal, dispatcher: &mut Dispatcher) {
        self.complete(sqe, refusal.status, (refusal.dw0, 0), dispatcher);
    }

    /// Answers a command, with its data if it has any.
    fn respond(&mut self, ended: Ended<usize>, dispatcher: &mut Dispatcher) {
        let Ended { sqe, status, result, data, .. } = ended;
        if let Some((piece, bytes)) = data {
            let says_nothing = status == StatusField::SUCCESS && result == (0, 0);
            let is_success = says_nothing && self.queue.may_omit_completion();
            self.agreed.push_data_header(&mut self.send_queue, sqe.cid, bytes, is_success);
            let digest = self.agreed.data_digest;
            let digest = digest.then(|| crc32c::crc32c(dispatcher.buffers.bytes(piece.buffer, 0, bytes)));
            self.send_queue.push_payload(piece, 0, bytes);
            if let Some(digest) = digest {
                self.send_queue.push_text(&digest.to_le_bytes());
            }
            if is_success {
                return;
            }
        }
        self.complete(&sqe, status, result, dispatcher);
    }

    /// Sends a completion, and notes an error.
    fn complete(
        &mut self,
        sqe: &Sqe,
        status: StatusField,
        (dw0, dw1): (u32, u32),
        dispatcher: &mut Dispatcher,
    ) {
        let (sqhd, sqid) = (self.queue.head(), self.queue.qid);
        let cqe = Cqe { dw0, dw1, sqhd, sqid, cid: sqe.cid, phase: false, status };
        self.agreed.push_completion(&mut self.send_queue, &cqe);
        if !status.status.has_data() {
            note_error(sqe, &cqe, self.bound().map(|bound| bound.cntlid), dispatcher);
        }
    }

    /// All is durable that was answered: the host is told by CSTS.
    fn on_shut_down(&self, dispatcher: &mut Dispatcher) {
        let Some(bound) = self.bound() else { return };
        let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
        if let Some(association) = subsystem.association_mut(bound.cntlid)
            && association.status.shutdown == 1
        {
            association.status.shutdown = 2;
        }
    }
}
