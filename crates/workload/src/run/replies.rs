//! What follows from a reply: recording it, comparing what was read, counting and surviving errors.
//!
//! Deliberately not here: who goes on then (`turns`).

use super::report;
use super::runner::{Runner, index};
use super::slots::{Purpose, Slot};
use super::slowest::SlowIo;
use super::turns::stand_in_line;
use super::worker_profile::Profile;
use crate::job::{IoPriority, JobOptions};
use crate::results::{Direction, JobResult, VerifyStats};
use ocssd_base::Nanos;
use ocssd_lightnvm::block::BlockReply;
use ocssd_lightnvm::{Buffers, Status, TargetId};

pub(super) const fn direction_of(purpose: Purpose) -> Direction {
    match purpose {
        Purpose::Read | Purpose::Verify => Direction::Read,
        Purpose::Trim => Direction::Trim,
        Purpose::Write | Purpose::Reset | Purpose::Flush => Direction::Write,
    }
}

/// Of which direction an I/O may be one of the slowest; `None` if nobody asked for it as such.
const fn slow_direction(purpose: Purpose) -> Option<Direction> {
    match purpose {
        Purpose::Read => Some(Direction::Read),
        Purpose::Write => Some(Direction::Write),
        Purpose::Trim | Purpose::Reset | Purpose::Flush | Purpose::Verify => None,
    }
}

/// A measured I/O that did not fail.
struct Measured {
    purpose: Purpose,
    /// When it ended, in run time.
    at: Nanos,
    bytes: u64,
    /// Since it was issued, and since it was meant to be; the latter only where somebody may ask for it.
    latency: Nanos,
    response: Option<Nanos>,
    priority: IoPriority,
}

/// Puts a measured I/O into its job's results.
#[inline(always)]
fn record<P: Profile>(result: &mut JobResult, io: &Measured) {
    match io.purpose {
        Purpose::Read | Purpose::Write | Purpose::Trim => {
            let direction = result.direction_mut(direction_of(io.purpose));
            direction.record_whole(io.at, io.bytes, io.latency);
            result.iodepth_complete.record(1);
            if P::OPTIONS
                && let Some(priorities) = &mut result.priorities
            {
                let direction = direction_of(io.purpose);
                priorities.record(direction, io.priority, io.at, io.bytes, io.latency);
            }
            if let (Some(response), Some(after)) = (&mut result.response, io.response) {
                response.record(after);
            }
        }
        Purpose::Flush => {
            result.sync.total_ios += 1;
            result.sync.lat.record(io.latency);
        }
        Purpose::Reset | Purpose::Verify => {}
    }
}

impl Runner {
    /// A request of a worker ended. `P` as in [`super::worker_profile`].
    #[inline(never)]
    pub(super) fn take_reply<P: Profile>(
        &mut self,
        now: Nanos,
        number: u32,
        reply: &BlockReply,
        buffers: &Buffers,
    ) {
        let slot = &mut self.slots[index(number)];
        let ended = *slot;
        slot.count = 0;
        let id = ended.worker;
        self.workers[index(id)].on_reply::<P>(now);
        self.finish::<P>(now, &ended, reply, buffers);
        if P::OPTIONS && self.workers[index(id)].search.is_some() {
            self.follow_search(now, id);
        }
        let worker = &mut self.workers[index(id)];
        worker.free.push(number);
        stand_in_line(worker, &mut self.ready, id);
    }

    #[inline(always)]
    fn finish<P: Profile>(&mut self, now: Nanos, slot: &Slot, reply: &BlockReply, buffers: &Buffers) {
        let purpose = slot.purpose;
        let failed = !reply.status.has_data();
        let worker = &self.workers[index(slot.worker)];
        let target = worker.plan.target;
        if !failed && now >= worker.measured_from {
            let searches = P::OPTIONS && worker.search.is_some();
            let measured = Measured {
                purpose,
                at: now - self.origin,
                bytes: u64::from(slot.count) * u64::from(worker.plan.block_bytes),
                latency: now - slot.issued,
                response: P::OPTIONS.then(|| now - slot.intended),
                priority: slot.priority,
            };
            record::<P>(&mut self.results[index(slot.worker)], &measured);
            if let Some(direction) = slow_direction(purpose) {
                let io = SlowIo { latency: measured.latency, issued: slot.issued, buffer: slot.buffer };
                self.slowest.offer(direction, io);
            }
            if searches && matches!(purpose, Purpose::Read | Purpose::Write | Purpose::Trim) {
                self.on_searched(now, slot.worker, measured.latency);
            }
        }
        match purpose {
            Purpose::Read | Purpose::Verify if !failed => self.compare::<P>(target, slot, buffers),
            Purpose::Write if !failed => {
                let worker = &mut self.workers[index(slot.worker)];
                if P::OPTIONS && worker.keeps_history {
                    worker.history.push_back((slot.block, slot.count));
                }
                self.wake_all_blocked(target);
            }
            Purpose::Trim if P::OPTIONS && !failed => {
                let worker = &mut self.workers[index(slot.worker)];
                if worker.writes_what_it_trims() {
                    worker.to_write.push_back((slot.block, slot.count));
                }
            }
            Purpose::Reset => self.on_reset(slot, !failed),
            Purpose::Flush => self.workers[index(slot.worker)].on_end_flush(now),
            _ => {}
        }
        if failed {
            self.on_failed(slot, *reply);
        }
    }

    fn on_reset(&mut self, slot: &Slot, success: bool) {
        let worker = &mut self.workers[index(slot.worker)];
        let shared = &mut self.targets[worker.plan.target.index()];
        if let Some(zones) = &mut shared.zones {
            zones.on_reset(slot.block, success, &mut worker.open);
        }
        let target = self.workers[index(slot.worker)].plan.target;
        self.wake_all_blocked(target);
    }

    /// Checks what a read returned: in full for verifying jobs, else that every stamp names its own block.
    #[inline(always)]
    fn compare<P: Profile>(&mut self, target: TargetId, slot: &Slot, buffers: &Buffers) {
        let shared = &self.targets[target.index()];
        if !shared.stamped && shared.oracle.is_none() {
            return;
        }
        let is_fatal = |options: &JobOptions| options.verify.is_some() && options.verify_fatal;
        let fatal = P::OPTIONS && {
            let job = self.workers[index(slot.worker)].plan.job;
            is_fatal(&self.plan.jobs[job].job.options)
        };
        let written_by = |writer: u32| &self.workers[index(writer)].plan.content;
        let VerifyStats { checked, failed: wrong } =
            shared.compare(slot, self.sequence, fatal, buffers, &written_by);
        let result = &mut self.results[index(slot.worker)];
        let verify = result.verify.get_or_insert_default();
        verify.checked += checked;
        verify.failed += wrong;
        if wrong > 0 {
            result.error_count += 1;
            let go_on =
                self.plan.jobs[self.workers[index(slot.worker)].plan.job].job.options.continue_on_error;
            if fatal || !go_on.verify {
                result.error = report::EILSEQ;
                self.workers[index(slot.worker)].stopping = true;
            } else {
                result.first_error.get_or_insert(report::EILSEQ);
            }
        }
    }

    fn is_zoned(&self, worker: u32) -> bool {
        self.targets[self.workers[index(worker)].plan.target.index()].zones.is_some()
    }

    fn on_failed(&mut self, slot: &Slot, reply: BlockReply) {
        let id = index(slot.worker);
        // The newest blocks of an open zone cannot be read back yet (MW_CUNITS): said in the report, no failure.
        if slot.purpose == Purpose::Verify && reply.status == Status::UNWRITTEN && self.is_zoned(slot.worker)
        {
            self.unread += u64::from(slot.count);
            return;
        }
        let direction = direction_of(slot.purpose);
        let worker = &mut self.workers[id];
        let shared = &mut self.targets[worker.plan.target.index()];
        if slot.purpose == Purpose::Write {
            if let Some(zones) = &mut shared.zones {
                zones.on_write_failed(slot.block, slot.worker, &mut worker.open);
            }
            if let Some(oracle) = &mut shared.oracle {
                oracle.forget(slot.block..slot.block + u64::from(slot.count));
            }
        }
        self.failures[id].get_or_insert((direction, reply));
        let result = &mut self.results[id];
        result.error_count += 1;
        result.direction_mut(direction).errors += 1;
        let go_on = self.plan.jobs[worker.plan.job].job.options.continue_on_error;
        let survives = if direction == Direction::Read { go_on.read } else { go_on.write };
        if survives {
            result.first_error.get_or_insert(report::EIO);
        } else {
            result.error = report::EIO;
            worker.stopping = true;
        }
    }
}
