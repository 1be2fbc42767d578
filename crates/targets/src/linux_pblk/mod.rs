//! `linux-pblk`: a block device that Linux's own pblk made, read from what it left on media.
//!
//! Linux 4.12 to 5.14 had pblk; its format is in `docs/pblk-format.md`. Whether Linux removed the instance or lost its power,
//! every block reads as Linux would read it after its next mount. Blocks are sectors. Requests that change something are
//! refused with "Attempted Write to Read Only Range"; a flush has nothing to do. The format is in `format`, the mount in
//! `mount`, map and lines are the FTL's parts. Deliberately not here: writing.

pub mod format;
mod map_crc;
mod mount;
mod options;
mod read;
mod requests;
mod size;
mod state;
mod stats;

pub use mount::{MountError, MountReport};
pub use options::{Options, Revision};
pub use size::OVER_PROVISIONING_PERCENT;
pub use state::LinuxPblk;
pub use stats::LinuxPblkStats;

use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Counter, Zones};
use ocssd_lightnvm::{Buffers, Command, Completion, Status, Target};

impl LinuxPblk {
    /// What a request comes to before the map is looked at; none of a read that can be tried.
    fn verdict(&self, request: &BlockRequest) -> Option<Status> {
        let end = request.block.checked_add(u64::from(request.count));
        let is_inside = end.is_some_and(|end| end <= self.l2p.sectors());
        match request.op {
            _ if self.is_shut_down => Some(Status::NAMESPACE_NOT_READY),
            BlockOp::Flush | BlockOp::Shutdown => Some(Status::SUCCESS),
            BlockOp::ResetZone => Some(Status::INVALID_OPCODE),
            _ if request.count == 0 => Some(Status::INVALID_FIELD),
            _ if !is_inside => Some(Status::LBA_OUT_OF_RANGE),
            BlockOp::Write { .. } | BlockOp::Discard | BlockOp::WriteZeroes => {
                Some(Status::WRITE_TO_READ_ONLY)
            }
            BlockOp::Read if request.buffer.is_none() => Some(Status::INVALID_FIELD),
            BlockOp::Read => None,
        }
    }
}

impl Target for LinuxPblk {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, _now: Nanos, request: BlockRequest) -> Result<(), BlockRequest> {
        let Some(status) = self.verdict(&request) else { return self.requests.take(request) };
        self.requests.answer(request, status)?;
        self.stats.refused += u64::from(status == Status::WRITE_TO_READ_ONLY);
        self.is_shut_down |= request.op == BlockOp::Shutdown;
        Ok(())
    }

    fn on_completion(&mut self, _now: Nanos, completion: Completion, buffers: &mut Buffers) {
        let purpose = self.flight.end(completion.tag);
        self.read_done(purpose, &completion, buffers);
    }

    fn on_deadline(&mut self, _now: Nanos) {}

    fn deadline(&self) -> Option<Nanos> {
        None
    }

    fn has_deadlines(&self) -> bool {
        false
    }

    fn poll_command(&mut self, _now: Nanos, buffers: &mut Buffers) -> Option<Command> {
        if !self.flight.has_next() {
            self.serve_reads(buffers);
        }
        self.flight.take()
    }

    fn poll_reply(&mut self) -> Option<BlockReply> {
        self.requests.poll_reply()
    }

    fn check(&self) {
        self.l2p.check();
        assert_eq!(self.l2p.count_mapped(), self.valid.total(), "the map and what is valid disagree");
        self.requests.check(self.flight.len());
    }
}

impl BlockTarget for LinuxPblk {
    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn block_count(&self) -> u64 {
        self.l2p.sectors()
    }

    fn zones(&self) -> Option<Zones> {
        None
    }

    fn write_unit(&self) -> u32 {
        1
    }

    fn unreadable_tail(&self) -> u64 {
        0
    }

    fn is_mapped(&self, block: u64) -> Option<bool> {
        Some(self.l2p.get(block) != ocssd_ftl::Mapped::Nowhere)
    }

    fn expect(&self, blocks: &[u64]) {
        self.l2p.fetch(blocks.iter().copied().filter(|&block| block < self.l2p.sectors()));
    }

    fn counters(&self) -> Vec<Counter> {
        self.stats.show(self.l2p.count_mapped())
    }

    fn zone_written(&self, zone: u64) -> u64 {
        unreachable!("zone {zone} of a target without zones")
    }
}
