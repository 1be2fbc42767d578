//! Commands on their way from the guest's queues to the drive.

use super::doorbell::Doorbell;
use super::drive::{DriveFull, OpenChannelDrive, Pointed};
use super::function::Function;
use super::memory::GuestMemory;
use super::transfer::{Moves, Staging, Way};
use ocssd_base::Nanos;
use ocssd_lightnvm::Status;
use ocssd_nvme::{Sqe, StatusField};

/// Commands taken from one queue before the next is looked at (chosen: one doorbell of most guests).
const BURST: u32 = 32;

impl<D: OpenChannelDrive, M: GuestMemory> Function<D, M> {
    /// Takes what queues hold, the admin queue first, I/O queues in turn. True if something was taken.
    pub(super) fn fetch(&mut self, now: Nanos) -> bool {
        let mut any = self.fetch_from(now, 0);
        let others = self.queue_count() - 1;
        for step in 0..others {
            any |= self.fetch_from(now, 1 + (self.next + step) % others);
        }
        self.next = (self.next + 1) % others;
        any
    }

    fn fetch_from(&mut self, now: Nanos, qid: u16) -> bool {
        if self.submission(qid).is_none() {
            return false;
        }
        let mut any = self.look_at_shadow(Doorbell::Tail(qid));
        for _ in 0..BURST {
            if !self.is_running() || (qid > 0 && self.drive_full) {
                break;
            }
            let Some(queue) = self.submission(qid).filter(|queue| queue.has_entries()) else { break };
            // Completions that wait are a queue's limit.
            if self.completion(queue.cqid).is_none_or(|queue| !queue.backlog.is_empty()) {
                break;
            }
            let Ok(sqe) = queue.peek(&self.memory) else {
                self.fail();
                break;
            };
            if self.carry_out(now, qid, &sqe) == Err(DriveFull) {
                self.drive_full = true;
                break;
            }
            any = true;
        }
        any
    }

    fn carry_out(&mut self, now: Nanos, qid: u16, sqe: &Sqe) -> Result<(), DriveFull> {
        if qid == 0 {
            self.take_entry(0);
            self.counters.admins += 1;
            self.admin(now, sqe);
            return Ok(());
        }
        let moves = Moves::of_io(sqe, &self.units);
        let loaded = self.staging.load(&self.memory, sqe, &moves, self.units.transfer_bytes_max);
        match loaded {
            Ok(()) => self.give(now, qid, sqe, moves.way)?,
            Err(status) => {
                self.take_entry(qid);
                self.counters.commands += 1;
                self.end(qid, sqe.cid, refusal(status), 0);
            }
        }
        Ok(())
    }

    /// The drive gets a command whose data is there.
    fn give(&mut self, now: Nanos, qid: u16, sqe: &Sqe, way: Way) -> Result<(), DriveFull> {
        let Staging { data, metadata, addresses, destinations, .. } = &mut self.staging;
        let pointed = Pointed { data, metadata, addresses, destinations };
        self.drive.submit(now, qid, sqe, pointed)?;
        self.take_entry(qid);
        self.counters.commands += 1;
        if way == Way::ToDrive {
            self.counters.received_bytes += self.staging.moved();
        }
        self.counters.sent_bytes += self.staging.store(&self.memory);
        self.submission_mut(qid).expect("its entry was just taken").in_flight += 1;
        Ok(())
    }

    fn take_entry(&mut self, qid: u16) {
        self.submission_mut(qid).expect("its entry was just read").take();
    }
}

/// What was wrong with pointers: the same command would fail again, but for what was not in memory.
pub(super) fn refusal(status: Status) -> StatusField {
    if status == Status::DATA_TRANSFER_ERROR { StatusField::retry(status) } else { StatusField::rule(status) }
}
