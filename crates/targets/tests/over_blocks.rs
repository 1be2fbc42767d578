//! A target on extents of a block target: what is asked at the end of its life is answered before its end is, and both end.

use ocssd_base::Nanos;
use ocssd_engine::{Host, Requests, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::interface::key_value::{
    Key, KvAnswer, KvOp, KvReply, KvRequest, KvTarget, StoreCondition,
};
use ocssd_lightnvm::interface::{Content, Durability, Piece};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PuId, Status, Tag};
use ocssd_targets::Layout;
use ocssd_targets::kv_block::{KvOverBlock, Options};
use ocssd_targets::registry::TargetSpec;

/// Units of the drive.
const UNITS: u32 = 4;
/// Keys that are stored: more than any memory holds.
const KEYS: u32 = 400;
/// Bytes of each value.
const VALUE_BYTES: u32 = 3_000;

fn config() -> Config {
    let geometry = Geometry { mw_cunits: 8, ws_min: 4, ..Geometry::example(2, UNITS / 2, 200, 32, 8) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.payload = Payload::Bytes;
    config.geometry = geometry;
    config
}

/// Keys and values over pblk.
fn mounted(flash: Flash) -> Host<Flash, VirtualClock, dyn KvTarget> {
    let buffers = Buffers::new(flash.payload_format());
    let mut host: Host<Flash, VirtualClock, dyn KvTarget> =
        Host::new(flash, VirtualClock::default(), buffers);
    let units: Vec<PuId> = (0..UNITS).map(PuId).collect();
    let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &[] };
    let Options { blocks, keys } = Options::default();
    let made = KvOverBlock::mount(&mut host.caller(), &spec, &blocks, &keys);
    let (target, _) = made.unwrap_or_else(|error| panic!("{error}"));
    host.add(Box::new(target));
    host
}

fn key_of(key: u32) -> Key {
    Key::inline(&key.to_be_bytes()).expect("four bytes")
}

/// Asks for all of this at once: the replies in their order.
fn together(host: &mut Host<Flash, VirtualClock, dyn KvTarget>, ops: &[KvOp]) -> Vec<KvReply> {
    let mut requests = Requests::default();
    for (tag, &op) in (1..).zip(ops) {
        requests.push(KvRequest { tag: Tag(tag), op });
    }
    assert_eq!(host.run(&mut requests, Nanos::MAX), RunEnd::Finished);
    requests.take_replies()
}

#[test]
fn what_was_asked_before_a_shutdown_is_answered_and_is_not_taken_for_its_end() {
    let mut host = mounted(Flash::format(config()).expect("a sound drive"));
    let sector = 4_096;
    let mut pieces: Vec<Piece> = (0..8)
        .map(|_| {
            let buffer = host.buffers_mut().take_whole(VALUE_BYTES.div_ceil(sector));
            Piece { buffer, first_byte: 0, bytes: VALUE_BYTES }
        })
        .collect();
    let store = pieces.pop().expect("there are eight");
    for key in 0..KEYS {
        store.scatter(host.buffers_mut(), &[u8::try_from(key % 251).expect("small"); VALUE_BYTES as usize]);
        let (condition, durability) = (StoreCondition::Always, Durability::AtFlush);
        let op = KvOp::Store { key: key_of(key), content: Content::Piece(store), condition, durability };
        assert_eq!(together(&mut host, &[op])[0].status, Status::SUCCESS, "key {key}");
    }
    assert_eq!(together(&mut host, &[KvOp::Flush])[0].status, Status::SUCCESS);
    // These are read from media, and the end is asked for while they are.
    let mut ops: Vec<KvOp> = (0..)
        .zip(&pieces)
        .map(|(key, &into)| KvOp::Retrieve { key: key_of(3 * key), offset: 0, into: Content::Piece(into) })
        .collect();
    ops.push(KvOp::Shutdown);
    let replies = together(&mut host, &ops);
    assert_eq!(replies.len(), ops.len());
    let last = replies.last().expect("there are some");
    assert_eq!((last.tag, last.status), (Tag(8), Status::SUCCESS), "the end is told at the end: {replies:?}");
    for (key, piece) in (0..).zip(&pieces) {
        let reply = replies.iter().find(|reply| reply.tag == Tag(key + 1)).expect("each is answered");
        assert_eq!(reply.answer, KvAnswer::Value { bytes: VALUE_BYTES }, "{reply:?}");
        let mut found = Vec::new();
        piece.gather(host.buffers(), &mut found);
        assert_eq!(found, [u8::try_from(3 * key).expect("small"); VALUE_BYTES as usize], "key {}", 3 * key);
    }
    // Both ended well: the next mount has it all.
    let mut host = mounted(host.into_device());
    let reply = together(&mut host, &[KvOp::Exist { key: key_of(KEYS - 1) }])[0];
    assert_eq!(reply.answer, KvAnswer::Value { bytes: VALUE_BYTES });
}
