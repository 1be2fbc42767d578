//! The answers: completions, data with them, refusals.
//!
//! Deliberately not here: what leads to them.

use super::command::{Command, Transfer};
use super::plan::Plan;
use super::raw::COUNT_MASK;
use super::session::Session;
use super::subsystem::{Namespace, namespace};
use crate::dispatcher::Dispatcher;
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;
use ocssd_nvme::log_page::ErrorLogEntry;
use ocssd_nvme::{Cqe, IoOpcode, Lba, Sqe, StatusField};

/// A command that is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusField,
    pub(super) dw0: u32,
}

impl From<Status> for Refusal {
    /// It broke a rule: the same command would be refused again.
    fn from(status: Status) -> Self {
        Self { status: StatusField::rule(status), dw0: 0 }
    }
}

/// Whether a command brought data: of a vector read of which some entries failed those of the others, which the bitmap tells
/// apart.
fn has_data(plan: &Plan, sqe: &Sqe, status: StatusField, (dw0, dw1): (u32, u32)) -> bool {
    let is_vector_read = *plan == Plan::Raw && sqe.io_opcode() == IoOpcode::VECTOR_READ;
    let failed = dw0.count_ones() + dw1.count_ones();
    status.status.has_data() || is_vector_read && (1..=sqe.cdw12 & COUNT_MASK).contains(&failed)
}

impl Session {
    /// Answers a command that was not taken.
    pub(super) fn refuse(&mut self, sqe: &Sqe, refusal: Refusal, dispatcher: &mut Dispatcher) {
        self.complete(sqe, refusal.status, (refusal.dw0, 0), dispatcher);
    }

    /// Answers a command, with its data if it has any.
    pub(super) fn respond(&mut self, key: SlabKey, dispatcher: &mut Dispatcher) {
        let Command { sqe, transfer, plan, piece, there, failure, result, .. } =
            self.queue.commands.remove(key);
        there.into_iter().for_each(|piece| dispatcher.pool.give_back(piece));
        let status = failure.unwrap_or(StatusField::SUCCESS);
        match (transfer, piece) {
            (Transfer::ToHost { bytes }, Some(piece)) if has_data(&plan, &sqe, status, result) => {
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
            (_, Some(piece)) => dispatcher.pool.give_back(piece),
            (_, None) => {}
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
            self.note_error(sqe, &cqe, dispatcher);
        }
    }

    fn note_error(&self, sqe: &Sqe, cqe: &Cqe, dispatcher: &mut Dispatcher) {
        dispatcher.stats.errors += 1;
        let found = namespace(sqe.nsid, &dispatcher.exports, dispatcher.raw.is_some());
        let has_lba =
            self.queue.qid > 0 && !matches!(found, Some(Namespace::KeyValue(_) | Namespace::Pages(_)));
        let association = self.bound().and_then(|bound| {
            let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
            subsystem.association_mut(bound.cntlid)
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
}
