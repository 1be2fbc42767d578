//! What a retrieve waits for beside stores of long values: in virtual time, so that it is the drive's time alone.

use crate::rig::{Rig, key_of};
use ocssd_base::{Nanos, Prng, usize_of};
use ocssd_engine::{Clock, RunEnd};
use ocssd_flash::presets;
use ocssd_lightnvm::interface::key_value::{KvOp, KvReply, KvRequest, KvTarget, StoreCondition};
use ocssd_lightnvm::interface::{Content, Durability, Piece};
use ocssd_lightnvm::{Buffers, Geometry, Payload, Source, Status, Tag, TargetId};

/// Keys that are asked for.
const KEYS: u32 = 6_000;
/// Bytes of a long value.
const LONG_BYTES: u32 = 8 << 20;
/// Retrieves of a measurement.
const RETRIEVES: u32 = 1_000;
/// Stores of long values at a time.
const STORES: u32 = 4;

/// One retrieve after the other, beside stores of long values.
struct Asking {
    into: Piece,
    long: Vec<Piece>,
    idle: Vec<u32>,
    is_asking: bool,
    left: u32,
    asked_at: Nanos,
    took: Vec<Nanos>,
    stored: u32,
    prng: Prng,
}

impl Source<dyn KvTarget> for Asking {
    fn next_arrival(&self) -> Option<Nanos> {
        (!self.idle.is_empty() || !self.is_asking).then_some(Nanos::ZERO)
    }

    fn poll_request(&mut self, now: Nanos, _: &mut Buffers) -> Option<(TargetId, KvRequest)> {
        let (tag, op) = if let Some(writer) = self.idle.pop() {
            let content = Content::Piece(self.long[usize_of(writer)]);
            let (condition, durability) = (StoreCondition::Always, Durability::AtFlush);
            (1 + writer, KvOp::Store { key: key_of(KEYS + writer), content, condition, durability })
        } else if !self.is_asking && self.left > 0 {
            (self.is_asking, self.asked_at) = (true, now);
            let key = u32::try_from(self.prng.below(u64::from(KEYS))).expect("below the keys");
            (0, KvOp::Retrieve { key: key_of(key), offset: 0, into: Content::Piece(self.into) })
        } else {
            return None;
        };
        Some((TargetId(0), KvRequest { tag: Tag(tag), op }))
    }

    fn on_refused(&mut self, _: Nanos, _: TargetId, request: KvRequest) {
        panic!("{request:?} is refused");
    }

    fn on_reply(&mut self, now: Nanos, _: TargetId, reply: KvReply, _: &mut Buffers) {
        assert_eq!(reply.status, Status::SUCCESS, "{reply:?}");
        if reply.tag.0 == 0 {
            self.is_asking = false;
            self.left -= 1;
            self.took.push(now.saturating_since(self.asked_at));
        } else {
            self.stored += 1;
            self.idle.push(reply.tag.0 - 1);
        }
    }

    fn is_finished(&self) -> bool {
        self.left == 0
    }
}

/// Two channels of a drive whose units program as fast as said, or as they do; keys are on it.
fn rig(program: Option<Nanos>) -> Rig {
    let mut rig = Rig::of_shape(|config| {
        *config = presets::find("westlake").expect("a preset").config();
        if let Some(program) = program {
            (config.media.read, config.media.program) = (vec![Nanos::from_micros(2)], vec![program]);
        }
        config.payload = Payload::Bytes;
        config.geometry = Geometry { groups: 2, chunks_per_pu: 64, ..config.geometry };
    });
    (0..KEYS).for_each(|key| assert_eq!(rig.store(key, 1), Status::SUCCESS, "key {key}"));
    assert_eq!(rig.flush(), Status::SUCCESS);
    rig
}

/// The p99 of retrieves beside so many stores at a time, and bytes of long values stored in a second.
fn measure(rig: &mut Rig, writers: u32) -> (Nanos, u64) {
    let into = rig.room();
    let sector = u32::try_from(rig.host.buffers().format().sector_bytes).expect("short");
    let mut room = || Piece {
        buffer: rig.host.buffers_mut().take_whole(LONG_BYTES / sector),
        first_byte: 0,
        bytes: LONG_BYTES,
    };
    let mut asking = Asking {
        into,
        long: (0..writers).map(|_| room()).collect(),
        idle: (0..writers).collect(),
        is_asking: false,
        left: RETRIEVES,
        asked_at: Nanos::ZERO,
        took: Vec::new(),
        stored: 0,
        prng: Prng::new(7),
    };
    let begin = rig.host.clock().now();
    assert_eq!(rig.host.run(&mut asking, Nanos::MAX), RunEnd::Finished);
    let took = rig.host.clock().now().saturating_since(begin);
    asking.took.sort();
    let stored = u64::from(asking.stored) * u64::from(LONG_BYTES);
    (asking.took[asking.took.len() * 99 / 100], stored * 1_000_000 / (took.0 / 1000))
}

/// Bytes that two channels of the drive carry in a second.
const CHANNELS: u64 = 2 * 281_100_000;

#[test]
fn reads_wait_for_few_of_the_writes_of_a_channel_which_stays_busy() {
    let mut rig = rig(Some(Nanos::from_micros(5)));
    let (alone, _) = measure(&mut rig, 0);
    let (beside, stored) = measure(&mut rig, STORES);
    assert!(beside.0 < 10 * alone.0, "{beside} beside stores, {alone} alone");
    assert!(stored > CHANNELS / 10 * 9, "{stored} bytes a second");
}

/// Half of the pages of MLC take nearly three times as long to program as the others: that is no row of writes.
#[test]
fn slow_pages_take_nothing_from_what_is_stored() {
    let (_, stored) = measure(&mut rig(None), STORES);
    assert!(stored > CHANNELS / 10 * 9, "{stored} bytes a second");
}
