//! Targets of zones and of keys for tests: the simulator's models, which need no drive.

use ocssd_base::{Nanos, Prng};
use ocssd_lightnvm::interface::key_value::{KvLimits, KvTarget, ListOrder};
use ocssd_lightnvm::interface::zoned::{ZoneDescriptor, ZoneGeometry, ZonedReply, ZonedRequest, ZonedTarget};
use ocssd_lightnvm::interface::{AnyTarget, StageLimits};
use ocssd_lightnvm::{Admission, Completion, Out, Target};
use ocssd_sim::kv::KvModel;
use ocssd_sim::model::target::ReferenceTarget;
use ocssd_sim::zoned::ZonedModel;

/// Eight zones of 64 blocks of 4 KiB, of which 48 hold data; four may be active and three open.
pub fn zones() -> AnyTarget {
    AnyTarget::from(Box::new(reference()) as Box<dyn ZonedTarget>)
}

fn reference() -> ReferenceTarget<ZonedModel> {
    let geometry = ZoneGeometry {
        capacity_blocks: 48,
        active_max: Some(4),
        open_max: Some(3),
        append_blocks_max: 8,
        ..ZoneGeometry::plain(64, 8)
    };
    ReferenceTarget::new(ZonedModel::new(geometry), &Prng::new(1))
}

/// A megabyte of values up to 300 KB, under keys up to 16 bytes.
pub fn keys() -> AnyTarget {
    let limits = KvLimits {
        key_bytes_max: 16,
        value_bytes_max: 300_000,
        batch_entries_max: 8,
        capacity_bytes: 1_000_000,
        list_order: ListOrder::Bytewise,
        stages: StageLimits { stages_max: 4, bytes_max: 300_000 },
    };
    let target = ReferenceTarget::new(KvModel::new(limits), &Prng::new(1));
    AnyTarget::from(Box::new(target) as Box<dyn KvTarget>)
}

/// The same as [`zones`], of which some change by themselves: they are told of with the first request.
pub fn zones_that_change(changed: &[u32]) -> AnyTarget {
    let target = Changing { inner: reference(), changed: changed.to_vec(), asked: false };
    AnyTarget::from(Box::new(target) as Box<dyn ZonedTarget>)
}

/// Zones of which some change by themselves.
struct Changing {
    inner: ReferenceTarget<ZonedModel>,
    changed: Vec<u32>,
    asked: bool,
}

impl Target for Changing {
    type Request = ZonedRequest;
    type Reply = ZonedReply;

    fn submit(&mut self, now: Nanos, request: &ZonedRequest, out: &mut Out<ZonedReply>) -> Admission {
        self.asked = true;
        self.inner.submit(now, request, out)
    }

    fn on_completion(&mut self, now: Nanos, completion: Completion, out: &mut Out<ZonedReply>) {
        self.inner.on_completion(now, completion, out);
    }

    fn on_deadline(&mut self, now: Nanos, out: &mut Out<ZonedReply>) {
        self.inner.on_deadline(now, out);
    }

    fn advance(&mut self, now: Nanos, out: &mut Out<ZonedReply>) {
        self.inner.advance(now, out);
    }

    fn deadline(&self) -> Option<Nanos> {
        self.inner.deadline()
    }

    fn check(&self) {
        self.inner.check();
    }
}

impl ZonedTarget for Changing {
    fn zone_geometry(&self) -> ZoneGeometry {
        self.inner.zone_geometry()
    }

    fn zone(&self, zone: u32) -> ZoneDescriptor {
        self.inner.zone(zone)
    }

    fn poll_changed_zone(&mut self) -> Option<u32> {
        if self.asked && !self.changed.is_empty() { Some(self.changed.remove(0)) } else { None }
    }
}
