//! What targets say their maps take of the host's memory is what the allocator gives them for it: as the difference between an
//! instance that holds little and one that holds much, with the same buffers.
//!
//! Deliberately not here: what zones and chunks cost (`zones`), and what maps should take.

use crate::bytes_held;
use ocssd_base::Nanos;
use ocssd_engine::{Host, Requests, RunEnd, VirtualClock};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::counter::CounterValue;
use ocssd_lightnvm::interface::key_value::{Key, KvOp, KvRequest, StoreCondition};
use ocssd_lightnvm::interface::log_structured::{LogOp, LogRequest, PageEntry, PageId, SessionId, Wsn};
use ocssd_lightnvm::interface::table::{TableHint, TableId, TableKind, TableOp, TableRequest};
use ocssd_lightnvm::interface::{AnyReply, AnyRequest, AnyTarget, Content, Durability, List, Piece};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PuId, Status, Tag, Target, TargetId};
use ocssd_targets::registry::{self, TargetSpec};

/// Units of the drive.
const UNITS: u32 = 4;
/// How far what is told may be from what the allocator gave, in percent (chosen: trees and lists have room that is not counted
/// entry by entry).
const MORE_OR_LESS: std::ops::RangeInclusive<i64> = 75..=115;

type AnyHost = Host<Flash, VirtualClock, AnyTarget>;

fn config() -> Config {
    let geometry = Geometry { mw_cunits: 8, ws_min: 4, ..Geometry::example(2, UNITS / 2, 300, 32, 8) };
    let mut config = presets::find("tiny").expect("a preset").config();
    config.media.planes = 1;
    config.media.sectors_per_page = geometry.ws_min;
    config.payload = Payload::Bytes;
    config.geometry = geometry;
    config
}

fn mounted(kind: &str, options: &[(&str, &str)]) -> AnyHost {
    let flash = Flash::format(config()).expect("a sound drive");
    let buffers = Buffers::new(flash.payload_format());
    let mut host: AnyHost = Host::new(flash, VirtualClock::default(), buffers);
    let units: Vec<PuId> = (0..UNITS).map(PuId).collect();
    let options: Vec<_> =
        options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let spec = TargetSpec { units: &units, layout: ocssd_targets::Layout::Striped, options: &options };
    let made = registry::find(kind).expect("a kind").make_any(&mut host.caller(), &spec);
    host.add(Box::new(made.unwrap_or_else(|error| panic!("{kind}: {error}")).target));
    host
}

fn ask(host: &mut AnyHost, request: AnyRequest) {
    let mut requests = Requests::default();
    requests.push(request);
    assert_eq!(host.run(&mut requests, Nanos::MAX), RunEnd::Finished);
    let reply = requests.take_replies().pop().expect("an answer");
    let status = match reply {
        AnyReply::Log(reply) => reply.status,
        AnyReply::Table(reply) => reply.status,
        AnyReply::KeyValue(reply) => reply.status,
        AnyReply::Block(_) | AnyReply::Zoned(_) => unreachable!("nobody asked for {reply:?}"),
    };
    assert_eq!(status, Status::SUCCESS, "{request:?}: {reply:?}");
}

/// A buffer of whole bytes.
fn piece(host: &mut AnyHost, bytes: u32) -> Piece {
    Piece { buffer: host.buffers_mut().take_whole(bytes.div_ceil(4_096).max(1)), first_byte: 0, bytes }
}

/// What gauges of these names say in all, and bytes that the allocator gets back when the target is dropped.
fn memory(mut host: AnyHost, gauges: &[&str]) -> (i64, i64) {
    let interface = host.target(TargetId(0)).interface();
    ask(&mut host, AnyRequest::flush(interface, Tag(0)));
    host.settle();
    let counters = host.target(TargetId(0)).counters();
    let told =
        counters.iter().filter(|counter| gauges.contains(&counter.name)).map(|counter| match counter.value {
            CounterValue::Gauge(value) => i64::try_from(value).expect("less than memory"),
            _ => panic!("{} is no gauge", counter.name),
        });
    let told = told.sum();
    drop(counters);
    let before = bytes_held();
    let flash = host.into_device();
    let bytes = before - bytes_held();
    drop(flash);
    (told, bytes)
}

/// Asserts that what is told of `many` beyond `few` is what it takes.
fn assert_told(label: &str, few: (i64, i64), many: (i64, i64)) {
    let (told, bytes) = (many.0 - few.0, many.1 - few.1);
    println!("{label}: {told} bytes more are told, and {bytes} are taken; {few:?} and {many:?}");
    assert!(bytes > 10_000, "{label}: {bytes} bytes are no difference");
    assert!(
        MORE_OR_LESS.contains(&(told * 100 / bytes)),
        "{label}: {told} bytes are told, and {bytes} are taken"
    );
}

/// A page store with so many pages of some bytes, some of them in several parts.
fn pages(count: u64) -> (i64, i64) {
    let mut host = mounted("eleos", &[]);
    let session = SessionId(1);
    ask(&mut host, AnyRequest::Log(LogRequest { tag: Tag(1), op: LogOp::OpenSession { session } }));
    for (wsn, first) in (1..).zip((0..count).step_by(20)) {
        let row = |nth: u32| PageEntry {
            page: PageId((first + u64::from(nth)) * 7),
            offset: nth * 700,
            bytes: 650,
        };
        let rows: Vec<PageEntry> = (0..20).map(row).collect();
        let content = piece(&mut host, 20 * 700);
        let list = host.buffers_mut().take_whole(1);
        let pages = List::write(host.buffers_mut(), list, &rows);
        let (content_of, durability) = (Content::Piece(content), Durability::AtReply);
        let op = LogOp::Flush { session, wsn: Wsn(wsn), content: content_of, pages, durability };
        ask(&mut host, AnyRequest::Log(LogRequest { tag: Tag(2), op }));
        [list, content.buffer].into_iter().for_each(|buffer| host.buffers_mut().give_back(buffer));
    }
    memory(host, &["map_bytes"])
}

/// So many keys of some bytes.
fn keys(count: u32) -> (i64, i64) {
    let mut host = mounted("kv", &[]);
    let content = piece(&mut host, 100);
    for key in 0..count {
        let key = Key::inline(&(u64::from(key) * 0x9E37_79B9).to_be_bytes()).expect("eight bytes");
        let (condition, durability) = (StoreCondition::Always, Durability::AtFlush);
        let op = KvOp::Store { key, content: Content::Piece(content), condition, durability };
        ask(&mut host, AnyRequest::KeyValue(KvRequest { tag: Tag(1), op }));
    }
    host.buffers_mut().give_back(content.buffer);
    memory(host, &["index_bytes"])
}

/// So many tables of some bytes.
fn tables(count: u64) -> (i64, i64) {
    let mut host = mounted("lightlsm", &[("tables_max", "130")]);
    let (content, none) = (piece(&mut host, 40_000), piece(&mut host, 0));
    for table in (0..count).map(TableId) {
        let hint = TableHint { level: 0, stream: 0 };
        let durability = Durability::AtFlush;
        for op in [
            TableOp::Create { table, kind: TableKind::Table, hint, bytes_expected: 40_000 },
            TableOp::Append { table, content: Content::Piece(content), durability },
            TableOp::Publish { table, attributes: Content::Piece(none) },
        ] {
            ask(&mut host, AnyRequest::Table(TableRequest { tag: Tag(1), op }));
        }
    }
    [content.buffer, none.buffer].into_iter().for_each(|buffer| host.buffers_mut().give_back(buffer));
    memory(host, &["table_map_bytes", "table_metadata_bytes"])
}

#[test]
fn maps_of_pages_take_what_is_told() {
    assert_told("eleos", pages(400), pages(6_000));
}

#[test]
fn an_index_of_keys_takes_what_is_told() {
    assert_told("kv", keys(2_000), keys(40_000));
}

#[test]
fn tables_take_what_is_told() {
    assert_told("lightlsm", tables(20), tables(120));
}
