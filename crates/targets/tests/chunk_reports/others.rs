//! The same of targets that speak of zones, pages, tables, and keys and values.

use super::{all_shown, config};
use ocssd_base::{Nanos, Prng};
use ocssd_engine::{Host, VirtualClock};
use ocssd_flash::Flash;
use ocssd_lightnvm::interface::key_value::{Key, KvAnswer, KvOp, KvRequest, StoreCondition};
use ocssd_lightnvm::interface::log_structured::{
    LogAnswer, LogOp, LogRequest, PageEntry, PageId, SessionId, Wsn,
};
use ocssd_lightnvm::interface::table::{TableAnswer, TableHint, TableId, TableKind, TableOp, TableRequest};
use ocssd_lightnvm::interface::zoned::{ZoneAction, ZoneScope, ZonedOp, ZonedRequest};
use ocssd_lightnvm::interface::{AnyReply, AnyRequest, AnyTarget, Content, Durability, List, Piece};
use ocssd_lightnvm::{BufId, ChunkDescriptor, ChunkId, Status, Tag, Target, TargetId};
use std::collections::BTreeMap;

/// Zones, flushes, tables, and keys that are written.
const ITEMS: u32 = 12;
/// Bytes of each, as far as they have no other measure (chosen: all of them are some 150 sectors, as of blocks).
const BYTES: u32 = 50_000;
/// Blocks of each zone.
const BLOCKS: u32 = 12;
/// Blocks from one zone to the next: a chunk of each unit.
const ZONE_BLOCKS: u64 = 128;
/// Pages of each flush.
const PAGES: u32 = 5;
const TAG: Tag = Tag(1);

/// What an item is filled with, in the first version and in that which is there in the end.
fn byte(version: u8, item: u32) -> u8 {
    u8::try_from(1 + item * 3).expect("few") + 100 * version
}

/// A target on the drive, asked one request at a time.
struct Asked {
    host: Host<Flash, VirtualClock, AnyTarget>,
}

impl Asked {
    /// Mounts it with these reports.
    fn mount(kind: &str, flash: Flash, shown: BTreeMap<ChunkId, ChunkDescriptor>) -> Result<Self, String> {
        let host = super::mount(flash, shown, kind, |kind, device, spec| {
            Ok(Box::new(kind.make_any(device, spec)?.target))
        })?;
        Ok(Self { host })
    }

    /// A buffer of so many bytes, each of this value.
    fn filled(&mut self, bytes: u32, byte: u8) -> BufId {
        let buffers = self.host.buffers_mut();
        let sectors = bytes.div_ceil(4096);
        let buffer = buffers.take_whole(sectors);
        buffers.whole_mut(buffer, 0, sectors).fill(byte);
        buffer
    }

    fn done(&mut self, request: AnyRequest, what: &str) -> AnyReply {
        let reply = self.host.ask(request);
        let status = match &reply {
            AnyReply::Block(reply) => reply.status,
            AnyReply::Zoned(reply) => reply.status,
            AnyReply::Log(reply) => reply.status,
            AnyReply::Table(reply) => reply.status,
            AnyReply::KeyValue(reply) => reply.status,
        };
        assert_eq!(status, Status::SUCCESS, "{what}: {reply:?}");
        reply
    }

    /// The first bytes of a buffer, all of which must be of this value.
    fn compare(&mut self, buffer: BufId, bytes: u32, byte: u8, what: &str) {
        let buffers = self.host.buffers_mut();
        let found = &buffers.whole(buffer, 0, bytes.div_ceil(4096))[..usize::try_from(bytes).expect("few")];
        let wrong = found.iter().position(|&found| found != byte);
        assert_eq!(wrong.map(|at| (at, found[at])), None, "{what}: not {byte}");
        buffers.give_back(buffer);
    }
}

/// How an interface is spoken.
struct Speech {
    /// Writes an item in a version, over the one before.
    write: fn(&mut Asked, u8, u32),
    /// Compares it with the last version.
    compare: fn(&mut Asked, u32, &str),
    /// A request by which all is durable, and the last one.
    ends: [AnyRequest; 2],
}

fn zones() -> Speech {
    let zoned = |op| AnyRequest::Zoned(ZonedRequest { tag: TAG, op, block: 0, count: 0, buffer: None });
    Speech {
        write: |asked, version, item| {
            let block = u64::from(item) * ZONE_BLOCKS;
            let of =
                |op, count, buffer| AnyRequest::Zoned(ZonedRequest { tag: TAG, op, block, count, buffer });
            if version > 0 {
                let reset = ZonedOp::Manage { action: ZoneAction::Reset, scope: ZoneScope::One };
                asked.done(of(reset, 0, None), "a reset");
            }
            let buffers = asked.host.buffers_mut();
            let buffer = buffers.take(BLOCKS);
            buffers.data_mut(buffer, 0, BLOCKS).fill(byte(version, item));
            let write = ZonedOp::Write { durability: Durability::AtFlush };
            asked.done(of(write, BLOCKS, Some(buffer)), "a write");
            asked.host.buffers_mut().give_back(buffer);
        },
        compare: |asked, item, what| {
            let block = u64::from(item) * ZONE_BLOCKS;
            let buffer = asked.host.buffers_mut().take(BLOCKS);
            let read =
                ZonedRequest { tag: TAG, op: ZonedOp::Read, block, count: BLOCKS, buffer: Some(buffer) };
            asked.done(AnyRequest::Zoned(read), what);
            let buffers = asked.host.buffers_mut();
            let is_right = buffers.data(buffer, 0, BLOCKS).iter().all(|&found| found == byte(1, item));
            assert!(is_right, "{what}: zone {item}");
            buffers.give_back(buffer);
        },
        ends: [zoned(ZonedOp::Flush), zoned(ZonedOp::Shutdown)],
    }
}

fn keys() -> Speech {
    Speech {
        write: |asked, version, item| {
            let buffer = asked.filled(BYTES, byte(version, item));
            let content = Content::Piece(Piece { buffer, first_byte: 0, bytes: BYTES });
            let key = Key::inline(&item.to_be_bytes()).expect("a short key");
            let (condition, durability) = (StoreCondition::Always, Durability::AtFlush);
            asked.done(
                AnyRequest::KeyValue(KvRequest {
                    tag: TAG,
                    op: KvOp::Store { key, content, condition, durability },
                }),
                "a store",
            );
            asked.host.buffers_mut().give_back(buffer);
        },
        compare: |asked, item, what| {
            let buffer = asked.filled(BYTES, 0);
            let into = Content::Piece(Piece { buffer, first_byte: 0, bytes: BYTES });
            let key = Key::inline(&item.to_be_bytes()).expect("a short key");
            let reply = asked.done(
                AnyRequest::KeyValue(KvRequest { tag: TAG, op: KvOp::Retrieve { key, offset: 0, into } }),
                what,
            );
            let is_whole = matches!(reply, AnyReply::KeyValue(reply) if reply.answer == KvAnswer::Value { bytes: BYTES });
            assert!(is_whole, "{what}: key {item}");
            asked.compare(buffer, BYTES, byte(1, item), what);
        },
        ends: [KvOp::Flush, KvOp::Shutdown].map(|op| AnyRequest::KeyValue(KvRequest { tag: TAG, op })),
    }
}

fn pages() -> Speech {
    Speech {
        write: |asked, version, item| {
            let session = SessionId(1);
            if (version, item) == (0, 0) {
                asked.done(
                    AnyRequest::Log(LogRequest { tag: TAG, op: LogOp::OpenSession { session } }),
                    "a session",
                );
            }
            let buffer = asked.filled(BYTES, byte(version, item));
            let each = BYTES / PAGES / 64 * 64;
            let row = |nth| PageEntry {
                page: PageId(u64::from(item * PAGES + nth)),
                offset: nth * each,
                bytes: each,
            };
            let rows: Vec<PageEntry> = (0..PAGES).map(row).collect();
            let buffers = asked.host.buffers_mut();
            let table = buffers.take_whole(1);
            let op = LogOp::Flush {
                session,
                wsn: Wsn(u64::from(1 + item + ITEMS * u32::from(version))),
                content: Content::Piece(Piece { buffer, first_byte: 0, bytes: each * PAGES }),
                pages: List::write(buffers, table, &rows),
                durability: Durability::AtFlush,
            };
            asked.done(AnyRequest::Log(LogRequest { tag: TAG, op }), "a flush");
            [buffer, table].into_iter().for_each(|buffer| asked.host.buffers_mut().give_back(buffer));
        },
        compare: |asked, item, what| {
            let each = BYTES / PAGES / 64 * 64;
            for nth in 0..PAGES {
                let buffer = asked.filled(each, 0);
                let into = Content::Piece(Piece { buffer, first_byte: 0, bytes: each });
                let page = PageId(u64::from(item * PAGES + nth));
                let op = LogOp::Read { page, offset: 0, into };
                let reply = asked.done(AnyRequest::Log(LogRequest { tag: TAG, op }), what);
                let is_whole =
                    matches!(reply, AnyReply::Log(reply) if reply.answer == LogAnswer::Page { bytes: each });
                assert!(is_whole, "{what}: page {nth} of flush {item}");
                asked.compare(buffer, each, byte(1, item), what);
            }
        },
        ends: [LogOp::Sync, LogOp::Shutdown].map(|op| AnyRequest::Log(LogRequest { tag: TAG, op })),
    }
}

fn tables() -> Speech {
    Speech {
        write: |asked, version, item| {
            let table = TableId(u64::from(item));
            let of = |op| AnyRequest::Table(TableRequest { tag: TAG, op });
            if version > 0 {
                asked.done(of(TableOp::Delete { table }), "a deletion");
            }
            let buffer = asked.filled(BYTES, byte(version, item));
            let content = Content::Piece(Piece { buffer, first_byte: 0, bytes: BYTES });
            let hint = TableHint { level: 0, stream: 0 };
            let create = TableOp::Create { table, kind: TableKind::Table, hint, bytes_expected: 0 };
            asked.done(of(create), "a table");
            asked.done(of(TableOp::Append { table, content, durability: Durability::AtFlush }), "an append");
            asked.done(of(TableOp::Publish { table, attributes: Content::Empty }), "a publication");
            asked.host.buffers_mut().give_back(buffer);
        },
        compare: |asked, item, what| {
            let buffer = asked.filled(BYTES, 0);
            let into = Content::Piece(Piece { buffer, first_byte: 0, bytes: BYTES });
            let op = TableOp::Read { table: TableId(u64::from(item)), offset: 0, into };
            let reply = asked.done(AnyRequest::Table(TableRequest { tag: TAG, op }), what);
            let is_whole =
                matches!(reply, AnyReply::Table(reply) if reply.answer == TableAnswer::Read { bytes: BYTES });
            assert!(is_whole, "{what}: table {item}");
            asked.compare(buffer, BYTES, byte(1, item), what);
        },
        ends: [TableOp::Flush, TableOp::Shutdown].map(|op| AnyRequest::Table(TableRequest { tag: TAG, op })),
    }
}

/// A drive on which items were written and flushed, and whose power went.
fn written(kind: &str, speech: &Speech) -> Flash {
    let flash = Flash::format(config()).expect("a sound drive");
    let mut asked = Asked::mount(kind, flash, BTreeMap::new()).expect("it fits");
    for version in [0, 1] {
        (0..ITEMS).for_each(|item| (speech.write)(&mut asked, version, item));
        asked.done(speech.ends[0], "what makes all durable");
    }
    let mut flash = asked.host.device().fork().expect("a drive in memory");
    flash.power_cut(Nanos::from_secs(1), &mut Prng::new(1)).expect("memory does not fail");
    flash
}

fn finds_all(kind: &str, speech: &Speech) {
    let flash = written(kind, speech);
    for (what, shown) in all_shown(&flash) {
        let flash = flash.fork().expect("a drive in memory");
        let mut asked =
            Asked::mount(kind, flash, shown).unwrap_or_else(|error| panic!("{kind}, {what}: {error}"));
        let label = format!("{kind}, {what}");
        (0..ITEMS).for_each(|item| (speech.compare)(&mut asked, item, &label));
        asked.host.target(TargetId(0)).check();
        // It goes on, and the next mount finds the same.
        (speech.write)(&mut asked, 2, 0);
        asked.done(speech.ends[1], &label);
        let flash = asked.host.into_device();
        let mut again = Asked::mount(kind, flash, BTreeMap::new()).expect("it was shut down");
        (1..ITEMS).for_each(|item| (speech.compare)(&mut again, item, &format!("{label}, again")));
    }
}

#[test]
fn zns_finds_what_reports_hide() {
    finds_all("zns", &zones());
}

#[test]
fn kv_finds_what_reports_hide() {
    finds_all("kv", &keys());
}

#[test]
fn eleos_finds_what_reports_hide() {
    finds_all("eleos", &pages());
}

#[test]
fn lightlsm_finds_what_reports_hide() {
    finds_all("lightlsm", &tables());
}
