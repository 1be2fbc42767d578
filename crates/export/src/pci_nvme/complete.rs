//! Completions on their way to the guest's queues.

use super::doorbell::Doorbell;
use super::memory::GuestMemory;
use super::port::{Port, Shutdown};
use super::queue_admin::QUEUES;
use ocssd_nvme::{Cqe, StatusField};

impl<M: GuestMemory> Port<M> {
    /// A command that was taken has ended.
    pub(super) fn put_ended(&mut self, qid: u16, completion: Cqe) {
        let queue = self.submission_mut(qid).expect("a queue is deleted when its commands have ended");
        assert!(queue.in_flight > 0, "queue {qid} has no command in progress, and one ended");
        queue.in_flight -= 1;
        self.put(qid, completion);
        self.go_on_deleting(qid);
    }

    /// All is durable that was answered.
    pub(super) fn shutdown_is_done(&mut self) {
        assert_eq!(self.shutdown, Shutdown::Flushes, "a flush ended that nobody asked for");
        self.shutdown = Shutdown::None;
        self.registers.csts.shutdown = 2;
    }

    /// Ends a command of a queue.
    pub(super) fn end(&mut self, qid: u16, cid: u16, status: StatusField, dw0: u32) {
        self.put(qid, Cqe { dw0, dw1: 0, sqhd: 0, sqid: qid, cid, phase: false, status });
    }

    /// Ends an admin command.
    pub(super) fn end_admin(&mut self, cid: u16, status: StatusField, dw0: u32) {
        self.end(0, cid, status, dw0);
    }

    /// A completion waits for its place in the guest's queue.
    pub(super) fn put(&mut self, qid: u16, completion: Cqe) {
        self.counters.errors += u64::from(!completion.status.status.is_success());
        let queue = self.submission(qid).expect("a queue outlives its commands");
        let (sqhd, cqid) = (queue.sqhd(), queue.cqid);
        let queue = self.completion_mut(cqid).expect("a completion queue outlives its submission queues");
        queue.backlog.push_back(Cqe { sqhd, sqid: qid, ..completion });
    }

    /// Writes completions into the guest's queues, as far as there is room. True if there were any.
    pub(super) fn post(&mut self) -> bool {
        let mut any = false;
        for cqid in 0..QUEUES {
            if !self.is_running() {
                break;
            }
            if self.completion(cqid).is_none_or(|queue| queue.backlog.is_empty()) {
                continue;
            }
            self.look_at_shadow(Doorbell::Head(cqid));
            any |= self.post_to(cqid);
        }
        any
    }

    fn post_to(&mut self, cqid: u16) -> bool {
        let queue = self.completion[usize::from(cqid)].as_mut().expect("it has a backlog");
        let Ok(posted) = queue.post(&self.memory) else {
            self.fail();
            return true;
        };
        if let (Some(vector), true) = (queue.vector, posted > 0) {
            self.interrupts.raise(vector);
        }
        self.counters.completions += u64::from(posted);
        posted > 0
    }
}
