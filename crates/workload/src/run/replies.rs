//! What follows from a reply: recording it, comparing what was read, counting and surviving errors.
//!
//! Deliberately not here: who goes on then (`turns`).

use super::report;
use super::runner::{Runner, index};
use super::slots::{Purpose, Slot};
use crate::results::{Direction, VerifyStats};
use ocssd_base::Nanos;
use ocssd_lightnvm::block::BlockReply;
use ocssd_lightnvm::{Buffers, Status};

pub(super) const fn direction_of(purpose: Purpose) -> Direction {
    match purpose {
        Purpose::Read | Purpose::Verify => Direction::Read,
        Purpose::Trim => Direction::Trim,
        Purpose::Write | Purpose::Reset | Purpose::Flush => Direction::Write,
    }
}

impl Runner {
    pub(super) fn finish(&mut self, now: Nanos, number: u32, reply: &BlockReply, buffers: &Buffers) {
        let slot = self.slots[index(number)];
        self.slots[index(number)].count = 0;
        let id = slot.worker;
        let measured = now >= self.workers[index(id)].measured_from;
        let failed = !reply.status.has_data();
        let result = &mut self.results[index(id)];
        match slot.purpose {
            Purpose::Read | Purpose::Write | Purpose::Trim if !failed && measured => {
                let direction = direction_of(slot.purpose);
                let bytes = u64::from(slot.count) * u64::from(self.workers[index(id)].plan.block_bytes);
                let latency = now - slot.issued;
                result.direction_mut(direction).record_whole(now - self.origin, bytes, latency);
                result.iodepth_complete.record(1);
                if let Some(response) = &mut result.response {
                    response.record(now - slot.intended);
                }
                if self.workers[index(id)].search.is_some() {
                    self.on_searched(now, id, latency);
                }
            }
            Purpose::Flush if !failed && measured => {
                result.sync.total_ios += 1;
                result.sync.lat.record(now - slot.issued);
            }
            _ => {}
        }
        match slot.purpose {
            Purpose::Read | Purpose::Verify if !failed => self.compare(&slot, buffers),
            Purpose::Write if !failed => {
                if self.workers[index(id)].keeps_history {
                    self.workers[index(id)].history.push_back((slot.block, slot.count));
                }
                self.wake_all_blocked(self.workers[index(id)].plan.target);
            }
            Purpose::Trim if !failed && self.workers[index(id)].writes_what_it_trims() => {
                self.workers[index(id)].to_write.push_back((slot.block, slot.count));
            }
            Purpose::Reset => self.on_reset(&slot, !failed),
            Purpose::Flush => self.workers[index(id)].on_end_flush(now),
            _ => {}
        }
        if failed {
            self.on_failed(&slot, *reply);
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
    fn compare(&mut self, slot: &Slot, buffers: &Buffers) {
        let worker = &self.workers[index(slot.worker)];
        let shared = &self.targets[worker.plan.target.index()];
        if !shared.stamped && shared.oracle.is_none() {
            return;
        }
        let options = &self.plan.jobs[worker.plan.job].job.options;
        let fatal = options.verify.is_some() && options.verify_fatal;
        let written_by = |writer: u32| &self.workers[index(writer)].plan.content;
        let VerifyStats { checked, failed: wrong } =
            shared.compare(slot, self.sequence, fatal, buffers, &written_by);
        let result = &mut self.results[index(slot.worker)];
        let verify = result.verify.get_or_insert_default();
        verify.checked += checked;
        verify.failed += wrong;
        if wrong > 0 {
            result.error_count += 1;
            if fatal || !options.continue_on_error.verify {
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
