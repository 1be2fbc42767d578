//! `linux-pblk`: a block device in the format of Linux's own pblk: what Linux left is read and written, and mounted by Linux
//! again.
//!
//! Linux 4.12 to 5.14 had pblk; its format is in `docs/pblk-format.md`. Whether Linux removed the instance or lost its power,
//! every block reads as Linux would read it after its next mount. Blocks are sectors. Each procedure is a file of its own:
//! requests, reads, writes and discards (`write`), flushes, the writer, what becomes of its writes (`programmed`), garbage
//! collection (`gc`), resets (`reset`), shutdown, what a failure of the drive ends (`stop`). The format is in
//! `format`, the mount in `mount`, map, buffer and lines are the FTL's parts. Deliberately not here: streams, limiters and
//! checkpoints, which the format has no place for.

mod canary;
mod describe;
mod flight;
mod flush;
pub mod format;
mod gc;
mod map_crc;
mod mount;
mod open_line;
mod options;
mod programmed;
mod read;
mod requests;
mod reset;
mod retry;
mod shutdown;
mod size;
mod state;
mod stats;
mod stop;
mod write;
mod writer;

pub use crate::mount_error::MountError;
#[cfg(feature = "canaries")]
pub use canary::Canary;
pub use mount::MountReport;
pub use options::{Options, Revision};
pub use size::OVER_PROVISIONING_PERCENT;
pub use state::LinuxPblk;
pub use stats::LinuxPblkStats;

use crate::refusal::{Takes, refusal};
use crate::registry::{Limits, Reach};
use flight::Purpose;
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Counter};
use ocssd_lightnvm::{Admission, Buffers, Completion, Out, Status, Target};

/// What the format has no place for: a checksum of data, and a size. The start of a line tells of all of it, and so does its
/// list of addresses.
pub const LIMITS: Limits =
    Limits { finds_changed_content: false, keeps_size: false, lost_record: Reach::Line };

impl LinuxPblk {
    /// Lets every procedure that is due go on until none can: where a read came or ended, only those that read.
    fn work(&mut self, buffers: &mut Buffers) {
        loop {
            let all_due = std::mem::take(&mut self.work_due) || self.give_up();
            if !std::mem::take(&mut self.reads_due) && !all_due {
                return;
            }
            let mut any = self.serve_reads(buffers);
            if !all_due {
                // What was read from memory may have been all that a shutdown waits for.
                self.work_due |= any && self.shutdown.is_begun();
                continue;
            }
            if let Some(status) = self.stopped {
                any |= self.answer_stopped(status);
                self.work_due |= any;
                continue;
            }
            any |= self.collect(buffers);
            any |= self.admit(buffers);
            any |= self.flush();
            any |= self.reset(buffers);
            any |= self.shut_down();
            any |= self.write_out(buffers);
            self.work_due |= any;
        }
    }

    /// Gives the replies that wait.
    fn give_replies(&mut self, out: &mut Out<BlockReply>) {
        while let Some(reply) = self.requests.poll_reply() {
            out.reply(reply);
        }
    }

    fn takes(&self) -> Takes {
        Takes {
            blocks: self.l2p.sectors(),
            is_shut_down: self.shutdown.is_begun(),
            refuses_changes: self.refuses_changes(),
        }
    }
}

impl Target for LinuxPblk {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, _now: Nanos, request: &BlockRequest, _out: &mut Out<BlockReply>) -> Admission {
        if !self.requests.has_room() {
            return Admission::Full;
        }
        let reads = request.op == BlockOp::Read;
        self.reads_due |= reads;
        self.work_due |= !reads;
        if let Some(status) = refusal(request, self.takes()) {
            self.requests.answer(request, status);
            self.stats.refused += u64::from(status == Status::WRITE_TO_READ_ONLY);
            return Admission::Taken;
        }
        let key = self.requests.take(*request);
        match request.op {
            BlockOp::Flush => self.await_durable(key),
            BlockOp::Shutdown => self.shutdown.begin(key),
            _ => {}
        }
        Admission::Taken
    }

    fn on_completion(&mut self, now: Nanos, mut completion: Completion, out: &mut Out<BlockReply>) {
        let buffers = &mut out.buffers;
        let Some(purpose) = self.flight.end(now, &mut completion, buffers) else { return };
        // The end of a user's read lets nothing else go on, unless it waited for the place, for the line or for the last command.
        let is_read = matches!(purpose, Purpose::Read(_));
        let is_awaited = !self.flight.has_room(2) || self.flight.len() == 0 || self.reclaimer.due().len() > 0;
        self.reads_due = true;
        self.work_due |= !is_read || is_awaited;
        if !matches!(purpose, Purpose::Read(_) | Purpose::GcRead { .. } | Purpose::Retry { .. }) {
            self.note_status(completion.status);
        }
        match purpose {
            Purpose::Read(_) | Purpose::GcRead { .. } => self.on_read_end(purpose, &completion, buffers),
            Purpose::Retry { number } => self.retry_done(number, &completion, buffers),
            Purpose::Write { write, carried } => self.write_done(write, carried, &completion),
            Purpose::Reset { command, reset } => self.reset_done(command, reset, &completion),
            Purpose::Barrier if self.shutdown.is_last_barrier() => {
                self.end_shutdown(completion.status);
            }
            Purpose::EndBarrier => self.end_barrier_done(completion.status.is_success()),
            Purpose::Barrier => self.barrier_done(completion.status),
        }
        self.give_replies(out);
    }

    fn on_deadline(&mut self, now: Nanos, _out: &mut Out<BlockReply>) {
        self.flight.on_deadline(now);
    }

    fn deadline(&self) -> Option<Nanos> {
        self.flight.deadline()
    }

    fn advance(&mut self, _now: Nanos, out: &mut Out<BlockReply>) {
        while out.has_room() {
            if !self.flight.has_next() {
                self.work(&mut out.buffers);
            }
            let Some(command) = self.flight.take() else { break };
            out.command(command);
        }
        self.give_replies(out);
    }

    fn prefetch(&self, blocks: &[u64]) {
        self.l2p.fetch(blocks.iter().copied());
    }

    fn prefetches(&self) -> bool {
        true
    }

    fn check(&self) {
        self.check_all();
    }

    fn summary(&self) -> String {
        self.in_words()
    }

    fn counters(&self) -> Vec<Counter> {
        let mut counters = self.stats.show(self.l2p.count_mapped());
        counters.push(self.flight.counter());
        counters
    }
}

impl BlockTarget for LinuxPblk {
    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn block_count(&self) -> u64 {
        self.l2p.sectors()
    }

    fn is_mapped(&self, block: u64) -> Option<bool> {
        Some(self.l2p.get(block) != ocssd_ftl::Mapped::Nowhere)
    }
}
