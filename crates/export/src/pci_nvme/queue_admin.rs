//! Admin commands that make and end I/O queues.
//!
//! A submission queue is deleted when the drive has ended what came from it; until then the command waits. Source: NVMe
//! base 1.4 sections 5.3 to 5.6.

use super::doorbell::Doorbell;
use super::interrupts::VECTORS;
use super::memory::GuestMemory;
use super::port::{DOORBELL_BUFFER_CONFIG, Port};
use super::prp::PAGE_BYTES;
use super::queue::{CompletionQueue, ENTRIES_MAX, SubmissionQueue};
use ocssd_lightnvm::Status;
use ocssd_nvme::{AdminOpcode, HostAddress, Sqe, StatusField};

/// Queues of each direction, the admin queue among them (chosen: an interrupt vector for each, and more than most guests
/// have processors).
pub(super) const QUEUES: u16 = VECTORS;

/// The common part of both commands that make a queue.
struct Ring {
    qid: u16,
    base: HostAddress,
    entries: u32,
    /// CDW11: flags 15:0, and the vector or the completion queue in 31:16.
    flags: u32,
    other: u16,
}

impl Ring {
    /// What a command asks for, if it is in one piece, on a page, and of a size there is.
    fn of(sqe: &Sqe, granted: u16) -> Result<Self, Status> {
        let [qid, size] = halves(sqe.cdw10);
        let [_, other] = halves(sqe.cdw11);
        if qid == 0 || qid > granted {
            return Err(Status::INVALID_QUEUE_ID);
        }
        // The size is 0-based; a queue of one entry would always be full.
        if size == 0 || u32::from(size) >= ENTRIES_MAX {
            return Err(Status::INVALID_QUEUE_SIZE);
        }
        // PC (bit 0): CAP.CQR says that queues are in one piece.
        if sqe.cdw11 & 1 == 0 {
            return Err(Status::INVALID_FIELD);
        }
        if !sqe.prp1.0.is_multiple_of(PAGE_BYTES) {
            return Err(Status::INVALID_PRP_OFFSET);
        }
        Ok(Self { qid, base: sqe.prp1, entries: u32::from(size) + 1, flags: sqe.cdw11, other })
    }
}

fn halves(dword: u32) -> [u16; 2] {
    let [a, b, c, d] = dword.to_le_bytes();
    [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])]
}

/// Queues that the guest was granted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    /// I/O submission queues.
    pub(super) submission_queues: u16,
    /// I/O completion queues.
    pub(super) completion_queues: u16,
}

impl Default for Granted {
    fn default() -> Self {
        Self { submission_queues: QUEUES - 1, completion_queues: QUEUES - 1 }
    }
}

/// Admin commands of queues and doorbells, which a port carries out itself.
pub(super) const OWN: [AdminOpcode; 5] = [
    AdminOpcode::DELETE_IO_SQ,
    AdminOpcode::CREATE_IO_SQ,
    AdminOpcode::DELETE_IO_CQ,
    AdminOpcode::CREATE_IO_CQ,
    DOORBELL_BUFFER_CONFIG,
];

impl<M: GuestMemory> Port<M> {
    /// Carries out an admin command of queues and doorbells; false of any other.
    pub(super) fn carry_out_own(&mut self, sqe: &Sqe) -> bool {
        let done = match sqe.admin_opcode() {
            AdminOpcode::CREATE_IO_CQ => self.create_completion(sqe),
            AdminOpcode::CREATE_IO_SQ => self.create_submission(sqe),
            AdminOpcode::DELETE_IO_CQ => self.delete_completion(sqe),
            DOORBELL_BUFFER_CONFIG => self.configure_shadow(sqe),
            AdminOpcode::DELETE_IO_SQ => {
                self.delete_submission(sqe);
                return true;
            }
            _ => return false,
        };
        let status = done.map_or_else(StatusField::rule, |()| StatusField::SUCCESS);
        self.end_admin(sqe.cid, status, 0);
        true
    }

    /// Create I/O Completion Queue.
    fn create_completion(&mut self, sqe: &Sqe) -> Result<(), Status> {
        let ring = Ring::of(sqe, self.granted.completion_queues)?;
        if self.completion(ring.qid).is_some() {
            return Err(Status::INVALID_QUEUE_ID);
        }
        // IEN (bit 1): interrupts are wanted, by this vector.
        let interrupts = ring.flags & 2 != 0;
        if interrupts && ring.other >= VECTORS {
            return Err(Status::INVALID_INTERRUPT_VECTOR);
        }
        if !self.registers.has_entry_sizes() {
            return Err(Status::INVALID_QUEUE_SIZE);
        }
        let queue = CompletionQueue::new(ring.base, ring.entries, interrupts.then_some(ring.other));
        self.completion[usize::from(ring.qid)] = Some(queue);
        self.begin_shadow(Doorbell::Head(ring.qid), 0);
        Ok(())
    }

    /// Create I/O Submission Queue. All queues have the same priority.
    fn create_submission(&mut self, sqe: &Sqe) -> Result<(), Status> {
        let ring = Ring::of(sqe, self.granted.submission_queues)?;
        if self.submission(ring.qid).is_some()
            || ring.other == 0
            || ring.other > self.granted.completion_queues
        {
            return Err(Status::INVALID_QUEUE_ID);
        }
        if !self.registers.has_entry_sizes() {
            return Err(Status::INVALID_QUEUE_SIZE);
        }
        let Some(completion) = self.completion_mut(ring.other) else { return Err(Status::CQ_INVALID) };
        completion.users += 1;
        let queue = SubmissionQueue::new(ring.base, ring.entries, ring.other);
        self.submission[usize::from(ring.qid)] = Some(queue);
        self.begin_shadow(Doorbell::Tail(ring.qid), 0);
        Ok(())
    }

    /// Delete I/O Completion Queue: nothing may use it any more. Completions nobody took are lost.
    fn delete_completion(&mut self, sqe: &Sqe) -> Result<(), Status> {
        let [qid, _] = halves(sqe.cdw10);
        let users = match self.completion(qid) {
            Some(queue) if qid > 0 => queue.users,
            _ => return Err(Status::INVALID_QUEUE_ID),
        };
        if users > 0 {
            return Err(Status::INVALID_QUEUE_DELETION);
        }
        self.completion[usize::from(qid)] = None;
        Ok(())
    }

    /// Delete I/O Submission Queue: nothing more is fetched from it.
    fn delete_submission(&mut self, sqe: &Sqe) {
        let [qid, _] = halves(sqe.cdw10);
        let found = self.submission_mut(qid).filter(|queue| qid > 0 && queue.deleted_by.is_none());
        let Some(queue) = found else {
            return self.end_admin(sqe.cid, StatusField::rule(Status::INVALID_QUEUE_ID), 0);
        };
        queue.deleted_by = Some(sqe.cid);
        self.go_on_deleting(qid);
    }

    /// A submission queue that is being deleted goes with its last command.
    pub(super) fn go_on_deleting(&mut self, qid: u16) {
        let Some(queue) = self.submission(qid).filter(|queue| queue.in_flight == 0) else { return };
        let (Some(cid), cqid) = (queue.deleted_by, queue.cqid) else { return };
        self.submission[usize::from(qid)] = None;
        let completion =
            self.completion_mut(cqid).expect("a completion queue outlives its submission queues");
        assert!(completion.users > 0, "queue {cqid} lost more users than it had");
        completion.users -= 1;
        self.end_admin(cid, StatusField::SUCCESS, 0);
    }
}
