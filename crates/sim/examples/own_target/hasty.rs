//! A target with a planted bug: pblk that answers a flush at once, before what was written lies on the media.
//!
//! The simulator's own tests use it as well: a simulator that does not find it is broken.

use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Zones};
use ocssd_lightnvm::{Admission, BlockingDevice, Completion, Out, Status, Target};
use ocssd_targets::registry::{self, BlocksMade, Kind, TargetSpec};

/// Called pblk, so that options are drawn as for pblk.
pub const HASTY: Kind = Kind::new("pblk", "pblk that answers a flush at once", make);

fn make(device: &mut dyn BlockingDevice, spec: &TargetSpec<'_>) -> Result<BlocksMade, String> {
    let BlocksMade { target, notes } = registry::find("pblk")?.make_blocks(device, spec)?;
    Ok(BlocksMade { target: Box::new(Hasty { pblk: target, flushed: Vec::new() }), notes })
}

struct Hasty {
    pblk: Box<dyn BlockTarget + Send>,
    flushed: Vec<BlockReply>,
}

impl Target for Hasty {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, now: Nanos, request: &BlockRequest, out: &mut Out<BlockReply>) -> Admission {
        if request.op != BlockOp::Flush {
            return self.pblk.submit(now, request, out);
        }
        self.flushed.push(BlockReply { tag: request.tag, status: Status::SUCCESS, violation: None });
        Admission::Taken
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<BlockReply>) {
        self.pblk.on_completion(now, completion, out);
    }

    fn on_deadline(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        self.pblk.on_deadline(now, out);
    }

    fn deadline(&self) -> Option<Nanos> {
        self.pblk.deadline()
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        self.flushed.drain(..).for_each(|reply| out.reply(reply));
        self.pblk.advance(now, out);
    }

    fn check(&self) {
        self.pblk.check();
    }
}

impl BlockTarget for Hasty {
    fn block_bytes(&self) -> u32 {
        self.pblk.block_bytes()
    }

    fn block_count(&self) -> u64 {
        self.pblk.block_count()
    }

    fn zones(&self) -> Option<Zones> {
        self.pblk.zones()
    }

    fn write_unit(&self) -> u32 {
        self.pblk.write_unit()
    }

    fn unreadable_tail(&self) -> u64 {
        self.pblk.unreadable_tail()
    }

    fn zone_written(&self, zone: u64) -> u64 {
        self.pblk.zone_written(zone)
    }
}
