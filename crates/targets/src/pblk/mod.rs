//! `pblk`: a block device on open-channel units (LightNVM paper section 4.2; docs/pblk.md).
//!
//! Blocks are sectors. Writes go to a buffer, from there in whole units to open lines striped over all units leased; a
//! map finds every block; garbage collection empties lines; a limiter divides the buffer between both. Each procedure is
//! a file of its own: requests (`request`), reads, writes and discards, flushes, the writer (`writer`, `tails`), what becomes of
//! its writes (`programmed`), garbage collection (`gc`, `gc_read`, `gc_copy`), wear levelling (`level`), resets (`reset`),
//! checkpoints, what a failure of the drive ends (`stop`), and `mount`.
//!
//! Durability: a block is old or new after a power cut; new if a flush covered it. Deliberately not here: blocks smaller
//! than a sector, several instances (each is a target of its own), threads.

mod buffer_turn;
mod canary;
mod capacity;
mod checkpoint;
mod checkpoint_header;
mod describe;
mod destage;
mod discards;
mod due;
mod flight;
mod flush;
mod gc;
mod gc_copy;
mod gc_read;
mod give_up;
#[cfg(test)]
mod kept_sizes;
mod knobs;
mod last_room;
mod level;
mod limit;
mod map_shards;
mod mount;
mod options;
mod pieces;
mod programmed;
mod read;
mod request;
mod reset;
mod retry;
mod state;
mod stats;
mod stop;
mod summary;
mod tails;
mod waits;
mod write;
mod writer;

pub use crate::mount_error::MountError;
#[cfg(feature = "canaries")]
pub use canary::Canary;
#[cfg(not(feature = "canaries"))]
use canary::Canary;
pub use capacity::Capacity;
pub use knobs::Knobs;
pub use mount::MountReport;
pub use options::{FEW_LINES, Mode, OVER_PROVISIONING_PERCENT, Options, WEAR_SPREAD};
pub use state::Pblk;
pub use stats::PblkStats;
pub use waits::{LONG_WAIT, LongWaits, WaitCause};

use due::Due;
use flight::Purpose;
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::{Admission, Buffers, Completion, Out, Target};

impl Pblk {
    /// Lets every procedure that is due go on until none can.
    fn work(&mut self, now: Nanos, buffers: &mut Buffers) {
        // A deadline that has passed may not have been told yet.
        if self.limiter_deadline(self.told.at).is_some_and(|at| at <= now) {
            self.due.add(Due::GC);
        }
        (self.now, self.told.at) = (now, now);
        while std::mem::take(&mut self.work_due) || self.gives_up() {
            let mut any = self.requests.next_read().is_some() && self.serve_reads(buffers);
            any |= match self.stopped() {
                Some(status) => self.answer_stopped(status),
                None => self.run_due(now, buffers),
            };
            self.work_due |= any;
        }
    }

    /// As [`Self::give_up`]; what can go on then is not told otherwise.
    fn gives_up(&mut self) -> bool {
        let any = self.give_up();
        if any {
            self.due.add(Due::ALL);
        }
        any
    }

    /// Nothing waits to be given out, and no procedure would give anything.
    pub(super) fn is_quiet(&self) -> bool {
        let waits = self.requests.next_read().is_some() || self.requests.has_reply();
        !waits && !self.flight.has_next() && !self.work_due
    }

    /// Gives commands as long as there are any and there is room.
    #[inline(never)]
    fn give_commands(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        while out.has_room() {
            if !self.flight.has_next() {
                // Most reads need none of the other procedures.
                if self.requests.next_read().is_some() && !self.work_due {
                    let any = self.serve_reads(&mut out.buffers);
                    if !any {
                        // Of what waits to be written together, somebody may wait for all.
                        self.call(Due::WRITER);
                    }
                }
                if self.work_due {
                    self.work(now, &mut out.buffers);
                }
            }
            let Some(command) = self.flight.take() else { break };
            out.command(command);
        }
    }

    /// Gives the replies that wait.
    #[inline(always)]
    fn give_replies(&mut self, out: &mut Out<BlockReply>) {
        while let Some(reply) = self.requests.poll_reply() {
            out.reply(reply);
        }
    }

    /// A user's read ended; the reply of its request, if that is over.
    #[inline(always)]
    fn on_read_done(
        &mut self,
        purpose: Purpose,
        completion: &Completion,
        buffers: &Buffers,
    ) -> Option<BlockReply> {
        let Purpose::Read { request, index, count, first } = purpose else {
            unreachable!("it is a read's end")
        };
        self.reading.by_users -= 1;
        let reply = self.read_done(request, (index, count, first), completion, buffers);
        // The last reader of a line lets it be reset, and what waits may find room.
        let reads_wait = self.requests.next_read().is_some();
        self.work_due |= self.reclaimer.due().len() > 0 || reads_wait || self.flight.len() == 0;
        self.read_left();
        reply
    }

    /// The end of a command that is no user's read.
    fn on_other_done(&mut self, purpose: Purpose, completion: &Completion, buffers: &Buffers) {
        // There is a place for another, and what it did may let any go on.
        let is_forgotten = self.has_canary(Canary::GcNotDue) && matches!(purpose, Purpose::GcRead { .. });
        self.call(if is_forgotten { Due::ADMISSION } else { Due::ALL });
        match purpose {
            Purpose::Read { .. } => unreachable!("reads are dealt with elsewhere"),
            Purpose::Retry { number } => self.retry_done(number, completion, buffers),
            Purpose::BufferUnit { buffer_unit, line, write } => {
                self.buffer_unit_done(buffer_unit, (line, write), completion, buffers);
            }
            Purpose::Meta { buffer, line, write, pieces, first_piece } => {
                self.meta_done(buffer, (line, write), (first_piece, pieces), completion);
            }
            Purpose::GcRead { buffer, count, victim } => {
                self.gc_read_done((buffer, count), victim, completion, buffers);
            }
            Purpose::Reset { command, reset } => self.reset_done(command, reset, completion),
            Purpose::Barrier => self.barrier_done(completion.status),
        }
    }

    /// Writes behind what cannot be read yet, once nothing else goes on.
    fn pad_for_reads(&mut self) -> bool {
        let is_due =
            std::mem::take(&mut self.pad_behind) && self.pad_units_left == 0 && self.flight.len() == 0;
        if !is_due {
            return false;
        }
        if !self.close_filling() {
            let window = self.capacity.layout.mw_cunits.div_ceil(self.capacity.layout.unit) + 1;
            self.pad_units_left = window * self.shape.units();
        }
        true
    }
}

impl Target for Pblk {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, now: Nanos, request: &BlockRequest, out: &mut Out<BlockReply>) -> Admission {
        self.now = now;
        if out.has_room()
            && let Some(command) = self.take_direct_read(request)
        {
            out.command(command);
            return Admission::Taken;
        }
        self.take_request(*request)
    }

    fn on_completion(&mut self, now: Nanos, mut completion: Completion, out: &mut Out<BlockReply>) {
        self.now = now;
        let Some(purpose) = self.flight.end(now, &mut completion, &out.buffers) else { return };
        if matches!(purpose, Purpose::Read { .. }) {
            let reply = self.on_read_done(purpose, &completion, &out.buffers);
            self.give_replies(out);
            if let Some(reply) = reply {
                out.reply(reply);
            }
        } else {
            self.on_other_done(purpose, &completion, &out.buffers);
            self.give_replies(out);
        }
    }

    fn on_deadline(&mut self, now: Nanos, _out: &mut Out<BlockReply>) {
        self.now = now;
        self.flight.on_deadline(now);
        self.call(Due::ALL);
    }

    fn deadline(&self) -> Option<Nanos> {
        let restless = self.has_canary(Canary::NeverSettles) && self.stats.victims > 0;
        // As of the last work: a deadline that passed since, while a request came or a command ended, is still to be told.
        let own = self.limiter_deadline(self.told.at);
        let own = own.or_else(|| restless.then(|| self.now + Nanos::from_micros(1)));
        own.into_iter().chain(self.flight.deadline()).min()
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        // Most reads go out when they come, and end without a trace: this shall then cost nothing.
        if !self.is_quiet() {
            self.give_commands(now, out);
            self.give_replies(out);
        }
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

    fn counters(&self) -> Vec<ocssd_lightnvm::block::Counter> {
        self.all_counters()
    }

    fn summary(&self) -> String {
        Self::summary(self)
    }
}

impl BlockTarget for Pblk {
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
