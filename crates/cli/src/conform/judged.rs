//! A zoned device against the model of the simulator: requests are drawn, asked one by one, and every answer is compared.
//!
//! The model is the one that judges `zns` in the simulator. The first answer after which device and model differ in what zones
//! are ends the comparison; two refusals that differ do not. Deliberately not here: how the device is asked (`wire`), power cuts.

use ocssd_base::Prng;
use ocssd_lightnvm::interface::zoned::{ZonedOp, ZonedReply, ZonedRequest};
use ocssd_lightnvm::{Status, Tag};
use ocssd_sim::contract::Answerer;
use ocssd_sim::model::Model;
use ocssd_sim::model::judge::Interface;
use ocssd_sim::model::trial::Requests;
use ocssd_sim::zoned::{DrawnZoned, ZonedInterface, ZonedModel};
use std::collections::BTreeMap;

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Decides on every request.
    pub seed: u64,
    /// How many.
    pub requests: u32,
    /// Most blocks of one: longer ones are cut to it.
    pub blocks_max: u32,
}

/// A request that was not answered as the model answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its number in the stream, from 0.
    pub number: u32,
    /// The request.
    pub request: String,
    /// What the model says.
    pub expected: String,
    /// What came.
    pub found: String,
    /// Where the specification says it, or what it leaves open.
    pub section: &'static str,
    /// Both refused it, so that nothing changed in either.
    pub is_refused_by_both: bool,
}

/// What a stream came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// By kind of request, how many succeeded and how many were refused.
    pub asked: BTreeMap<&'static str, (u32, u32)>,
    /// What differed.
    pub differences: Vec<Difference>,
}

impl Compared {
    /// True if the device did something else than the model.
    pub fn is_broken(&self) -> bool {
        self.differences.iter().any(|difference| !difference.is_refused_by_both)
    }
}

/// Both refuse, each for another reason.
const EITHER: &str =
    "both refuse it; where several rules are broken, which of their statuses comes is not specified";

/// Where the specification has a rule with this status.
const fn section(status: Status) -> &'static str {
    match status {
        Status::ZONE_BOUNDARY_ERROR | Status::ZONE_INVALID_WRITE => {
            "ZNS 1.1, write operations of Sequential Write Required zones"
        }
        Status::ZONE_IS_FULL | Status::ZONE_IS_READ_ONLY | Status::ZONE_IS_OFFLINE => "ZNS 1.1, zone states",
        Status::TOO_MANY_ACTIVE_ZONES | Status::TOO_MANY_OPEN_ZONES => {
            "ZNS 1.1, active and open resources (MAR, MOR)"
        }
        Status::INVALID_ZONE_TRANSITION => "ZNS 1.1, figure \"Zone State Machine\"",
        Status::INVALID_ZONE_OPERATION | Status::ZRWA_RESOURCES_UNAVAILABLE => {
            "ZNS 1.1, zone random write areas"
        }
        Status::LBA_OUT_OF_RANGE | Status::INVALID_FIELD => "NVMe base, generic command status values",
        _ => "ZNS 1.1, Zone Management Send and Receive, Zone Append; NVM command set, Read and Write",
    }
}

/// Asks `device`, whose zones are as `model` has them, and compares.
///
/// # Errors
/// A sentence, if the device stops answering.
pub fn compare(
    device: &mut dyn Answerer<ZonedRequest, ZonedReply>,
    mut model: ZonedModel,
    stream: Stream,
) -> Result<Compared, String> {
    let mut prng = Prng::new(stream.seed);
    let mut drawn = DrawnZoned::new(&model, &mut prng);
    let mut compared = Compared::default();
    for number in 0..stream.requests {
        let tag = Tag(number);
        let Some(mut request) = drawn.next(tag, &mut prng, &model, device.buffers()) else { continue };
        if matches!(request.op, ZonedOp::Read | ZonedOp::Write { .. } | ZonedOp::Append { .. }) {
            request.count = request.count.min(stream.blocks_max);
        }
        let expected = model.apply(&request, device.buffers());
        let reply = device.ask(request).map_err(|broken| format!("request {number}: {broken}"))?;
        let agrees = model.agrees(&expected, &reply, device.buffers());
        drawn.answered(&request, &reply, device.buffers());
        let counted = compared.asked.entry(ZonedInterface::name(&request)).or_default();
        *(if reply.status.is_success() { &mut counted.0 } else { &mut counted.1 }) += 1;
        if let Err(broken) = agrees {
            let refusals = [expected.reply.status, reply.status];
            let is_refused_by_both = refusals.iter().all(|status| !status.is_success());
            let section = if is_refused_by_both { EITHER } else { section(failed(refusals)) };
            let (expected, found) = (broken.promised, broken.found);
            let request = format!("{:?} of {} at block {}", request.op, request.count, request.block);
            let one = Difference { number, request, expected, found, section, is_refused_by_both };
            compared.differences.push(one);
            if !is_refused_by_both {
                return Ok(compared);
            }
            continue;
        }
        model.answered(&reply);
    }
    Ok(compared)
}

/// The refusal of the two, if there is one.
fn failed(statuses: [Status; 2]) -> Status {
    statuses.into_iter().find(|status| !status.is_success()).unwrap_or(Status::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::interface::zoned::{ZoneArea, ZoneGeometry};
    use ocssd_lightnvm::{Buffers, Geometry, Payload, PayloadFormat};
    use ocssd_sim::contract::Broken;
    use ocssd_sim::model::trial::Reference;

    const ZONES: ZoneGeometry = ZoneGeometry {
        capacity_blocks: 40,
        active_max: Some(4),
        open_max: Some(3),
        takes_extensions: true,
        area: Some(ZoneArea { blocks: 8, granularity: 4, areas_max: 2 }),
        ..ZoneGeometry::plain(64, 6)
    };

    /// A device that is right, but for what `lies` makes of its answers.
    struct Device {
        sound: Reference<ZonedModel>,
        lies: fn(&ZonedRequest, &mut ZonedReply, &mut Buffers),
    }

    impl Answerer<ZonedRequest, ZonedReply> for Device {
        fn buffers(&mut self) -> &mut Buffers {
            &mut self.sound.buffers
        }

        fn ask(&mut self, request: ZonedRequest) -> Result<ZonedReply, Broken> {
            let mut reply = self.sound.ask(request);
            (self.lies)(&request, &mut reply, &mut self.sound.buffers);
            Ok(reply)
        }
    }

    fn compared(lies: fn(&ZonedRequest, &mut ZonedReply, &mut Buffers)) -> Compared {
        compared_by(3, lies)
    }

    fn compared_by(seed: u64, lies: fn(&ZonedRequest, &mut ZonedReply, &mut Buffers)) -> Compared {
        let stream = Stream { seed, requests: 1_500, blocks_max: 32 };
        let format = PayloadFormat::new(Payload::Bytes, &Geometry::example(1, 1, 4, 24, 24));
        let sound = Reference { model: ZonedModel::new(ZONES), buffers: Buffers::new(format) };
        let mut device = Device { sound, lies };
        compare(&mut device, ZonedModel::new(ZONES), stream).expect("it answers")
    }

    #[test]
    fn a_sound_device_answers_as_the_model_whatever_is_asked() {
        // A stream has a mood: some describe zones, others have areas.
        let mut asked: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for seed in 0..8 {
            let sound = compared_by(seed, |_, _, _| {});
            assert_eq!(sound.differences, [], "seed {seed}");
            for (kind, (succeeded, refused)) in sound.asked {
                let all = asked.entry(kind).or_default();
                *all = (all.0 + succeeded, all.1 + refused);
            }
        }
        for kind in ["requests.writes", "requests.appends", "requests.zones_managed", "requests.extensions"] {
            let (succeeded, refused) = asked[kind];
            assert!(succeeded > 10 && refused > 3, "{kind}: {succeeded} and {refused}");
        }
        assert!(asked["requests.areas_committed"].0 > 3, "{asked:?}");
    }

    #[test]
    fn a_status_or_a_byte_that_is_wrong_is_found_and_explained() {
        let full = compared(|_, reply, _| {
            if reply.status == Status::ZONE_IS_FULL {
                reply.status = Status::SUCCESS;
            }
        });
        let last = full.differences.last().expect("it was found");
        assert!(full.is_broken() && last.section.contains("zone states"), "{last:?}");
        let swapped = compared(|_, reply, _| {
            if reply.status == Status::ZONE_INVALID_WRITE {
                reply.status = Status::ZONE_BOUNDARY_ERROR;
            }
        });
        assert!(!swapped.differences.is_empty() && !swapped.is_broken(), "both refuse: nothing changed");
        let byte = compared(|request, reply, buffers| {
            if request.op == ZonedOp::Read && reply.status.is_success() {
                let buffer = request.buffer.expect("a read has one");
                buffers.data_mut(buffer, 0, 1)[9] ^= 1;
            }
        });
        assert!(byte.is_broken(), "{byte:?}");
    }
}
