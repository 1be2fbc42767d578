//! A target of zones as a zoned block device: what fio sees of one with `zonemode=zbd`.
//!
//! Blocks are those that zones hold, without the addresses behind their capacity. Requests are translated one by one: zones are
//! opened by being written, and never finished. Deliberately not here: appends and the other actions on zones, for which blocks
//! have no words.

use ocssd_base::{Divisor, Nanos};
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, Counter, Zones};
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::zoned::{
    ZoneAction, ZoneGeometry, ZoneScope, ZonedOp, ZonedReply, ZonedRequest, ZonedTarget,
};
use ocssd_lightnvm::{Admission, Completion, Out, Status, Target};

/// The blocks of a target of zones.
pub struct ZonesAsBlocks {
    inner: Box<dyn ZonedTarget>,
    /// Its zones, which stay as they are: asked once.
    geometry: ZoneGeometry,
    per_capacity: Divisor,
    inner_out: Out<ZonedReply>,
}

/// What a request asks of zones.
///
/// # Errors
/// If zones cannot do it, or it is of more than one.
fn translated(
    request: &BlockRequest,
    geometry: &ZoneGeometry,
    per_capacity: Divisor,
) -> Result<ZonedRequest, Status> {
    let &BlockRequest { tag, op, block, count, buffer } = request;
    let (zone, within) = per_capacity.div_rem(block);
    let has_blocks = matches!(op, BlockOp::Read | BlockOp::Write { .. });
    if has_blocks && within + u64::from(count) > geometry.capacity_blocks {
        return Err(Status::ZONE_BOUNDARY_ERROR);
    }
    let manage = |action| ZonedOp::Manage { action, scope: ZoneScope::One };
    let (op, count) = match op {
        BlockOp::Read => (ZonedOp::Read, count),
        BlockOp::Write { fua } => {
            let durability = if fua { Durability::AtReply } else { Durability::AtFlush };
            (ZonedOp::Write { durability }, count)
        }
        BlockOp::Flush => (ZonedOp::Flush, 0),
        BlockOp::Shutdown => (ZonedOp::Shutdown, 0),
        BlockOp::ResetZone => (manage(ZoneAction::Reset), 0),
        BlockOp::Discard | BlockOp::WriteZeroes => return Err(Status::INVALID_OPCODE),
    };
    let start = zone.checked_mul(geometry.zone_blocks);
    let block = start.and_then(|start| start.checked_add(within)).ok_or(Status::LBA_OUT_OF_RANGE)?;
    Ok(ZonedRequest { tag, op, block, count, buffer })
}

impl ZonesAsBlocks {
    /// The blocks of `inner`.
    #[must_use]
    pub fn new(inner: Box<dyn ZonedTarget>) -> Self {
        let geometry = inner.zone_geometry();
        let per_capacity = Divisor::new(geometry.capacity_blocks);
        Self { inner, geometry, per_capacity, inner_out: Out::below() }
    }

    /// Calls the target below, whose replies become replies here.
    fn call<T>(
        &mut self,
        out: &mut Out<BlockReply>,
        call: impl FnOnce(&mut dyn ZonedTarget, &mut Out<ZonedReply>) -> T,
    ) -> T {
        let Self { inner, inner_out, .. } = self;
        let result = out.pass(inner_out, |below| call(inner.as_mut(), below));
        let (replies, _) = inner_out.replies_mut();
        for ZonedReply { tag, status, .. } in replies.drain(..) {
            out.reply(BlockReply { tag, status, violation: None });
        }
        assert_eq!(inner_out.reply_count(), 0, "a reply of the target below was left behind");
        result
    }
}

impl Target for ZonesAsBlocks {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, now: Nanos, request: &BlockRequest, out: &mut Out<BlockReply>) -> Admission {
        let request = match translated(request, &self.geometry, self.per_capacity) {
            Ok(request) => request,
            Err(status) => {
                out.reply(BlockReply { tag: request.tag, status, violation: None });
                return Admission::Taken;
            }
        };
        self.call(out, |inner, below| inner.submit(now, &request, below))
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<BlockReply>) {
        self.call(out, |inner, below| inner.on_completion(now, completion, below));
    }

    fn on_deadline(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        self.call(out, |inner, below| inner.on_deadline(now, below));
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<BlockReply>) {
        self.call(out, |inner, below| inner.advance(now, below));
    }

    fn deadline(&self) -> Option<Nanos> {
        self.inner.deadline()
    }

    fn has_deadlines(&self) -> bool {
        self.inner.has_deadlines()
    }

    fn check(&self) {
        self.inner.check();
    }

    fn counters(&self) -> Vec<Counter> {
        self.inner.counters()
    }

    fn summary(&self) -> String {
        self.inner.summary()
    }
}

impl BlockTarget for ZonesAsBlocks {
    fn block_bytes(&self) -> u32 {
        self.geometry.block_bytes
    }

    fn block_count(&self) -> u64 {
        self.geometry.capacity_blocks * u64::from(self.geometry.zone_count)
    }

    fn zones(&self) -> Option<Zones> {
        Some(Zones { blocks: self.geometry.capacity_blocks, count: u64::from(self.geometry.zone_count) })
    }

    fn zone_written(&self, zone: u64) -> u64 {
        let zone = self.inner.zone(u32::try_from(zone).expect("a target has 32-bit zones"));
        assert!(zone.write_pointer.is_none_or(|at| at >= zone.start), "a write pointer before {zone:?}");
        // What takes no more is as full.
        zone.write_pointer.map_or(zone.capacity, |at| at - zone.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::Tag;

    #[test]
    fn each_request_of_blocks_is_one_of_zones_or_refused() {
        let geometry = ZoneGeometry { capacity_blocks: 48, ..ZoneGeometry::plain(64, 8) };
        let of = |op, block, count| {
            let request = BlockRequest { tag: Tag(7), op, block, count, buffer: None };
            translated(&request, &geometry, Divisor::new(geometry.capacity_blocks))
                .map(|request| (request.op, request.block, request.count))
        };
        let reset = ZonedOp::Manage { action: ZoneAction::Reset, scope: ZoneScope::One };
        assert_eq!(of(BlockOp::Read, 47, 1), Ok((ZonedOp::Read, 47, 1)));
        assert_eq!(
            of(BlockOp::Write { fua: true }, 99, 3),
            Ok((ZonedOp::Write { durability: Durability::AtReply }, 64 * 2 + 3, 3))
        );
        assert_eq!(of(BlockOp::ResetZone, 48, 48), Ok((reset, 64, 0)));
        assert_eq!(of(BlockOp::Read, 47, 2), Err(Status::ZONE_BOUNDARY_ERROR));
        assert_eq!(of(BlockOp::Read, u64::MAX - 9, 1), Err(Status::LBA_OUT_OF_RANGE));
        for op in [BlockOp::Discard, BlockOp::WriteZeroes] {
            assert_eq!(of(op, 0, 3), Err(Status::INVALID_OPCODE));
        }
    }
}
