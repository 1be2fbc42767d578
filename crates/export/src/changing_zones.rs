//! Zones of which some change by themselves, for tests of who hears of it.

use crate::model_targets::reference;
use ocssd_base::Nanos;
use ocssd_lightnvm::interface::AnyTarget;
use ocssd_lightnvm::interface::zoned::{ZoneDescriptor, ZoneGeometry, ZonedReply, ZonedRequest, ZonedTarget};
use ocssd_lightnvm::{Admission, Completion, Out, Target};
use ocssd_sim::model::target::ReferenceTarget;
use ocssd_sim::zoned::ZonedModel;

/// Zones of which some change by themselves: they are told of with the first request.
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
