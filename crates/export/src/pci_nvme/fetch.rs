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
pub(super) const BURST: u32 = 32;

impl<D: OpenChannelDrive, M: GuestMemory> Function<D, M> {
    /// Takes what queues hold, the admin queue first, I/O queues in turn. True if something was taken.
    pub(super) fn fetch(&mut self, now: Nanos) -> bool {
        let mut any = false;
        for qid in self.port.take_turn() {
            any |= self.fetch_from(now, qid);
        }
        any
    }

    fn fetch_from(&mut self, now: Nanos, qid: u16) -> bool {
        if self.port.submission(qid).is_none() {
            return false;
        }
        let mut any = self.port.look_at_shadow(Doorbell::Tail(qid));
        for _ in 0..BURST {
            if qid > 0 && self.drive_full {
                break;
            }
            let Some(sqe) = self.port.peek(qid) else { break };
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
            self.port.take_entry(0);
            self.port.counters.admins += 1;
            self.admin(now, sqe);
            return Ok(());
        }
        let moves = Moves::of_io(sqe, &self.units);
        let loaded = self.staging.load(&self.port.memory, sqe, &moves, self.units.transfer_bytes_max);
        match loaded {
            Ok(()) => self.give(now, qid, sqe, moves.way)?,
            Err(status) => {
                self.port.take_entry(qid);
                self.port.counters.commands += 1;
                self.port.end(qid, sqe.cid, refusal(status), 0);
            }
        }
        Ok(())
    }

    /// The drive gets a command whose data is there.
    fn give(&mut self, now: Nanos, qid: u16, sqe: &Sqe, way: Way) -> Result<(), DriveFull> {
        let Staging { data, metadata, addresses, destinations, .. } = &mut self.staging;
        let pointed = Pointed { data, metadata, addresses, destinations };
        self.drive.submit(now, qid, sqe, pointed)?;
        self.port.take_entry(qid);
        self.port.counters.commands += 1;
        if way == Way::ToDrive {
            self.port.counters.received_bytes += self.staging.moved();
        }
        self.port.counters.sent_bytes += self.staging.store(&self.port.memory);
        self.port.submission_mut(qid).expect("its entry was just taken").in_flight += 1;
        Ok(())
    }
}

/// What was wrong with pointers: the same command would fail again, but for what was not in memory.
pub(super) fn refusal(status: Status) -> StatusField {
    if status == Status::DATA_TRANSFER_ERROR { StatusField::retry(status) } else { StatusField::rule(status) }
}
