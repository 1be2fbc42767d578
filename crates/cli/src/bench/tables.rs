//! What a table of `lightlsm` costs from its creation until it is published, and what it keeps of memory.
//!
//! Processor time of host, target and drive under virtual time, so the media take none of it: create, one append, publish, each
//! when the one before is answered. The first tables are compared with the last, beside which many thousand lie.

use crate::cpu;
use crate::report;
use ocssd_base::Nanos;
use ocssd_engine::{Caller, Host, Requests, RunEnd, VirtualClock};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::block::CounterValue;
use ocssd_lightnvm::interface::table::{TableHint, TableId, TableKind, TableOp, TableRequest, TableTarget};
use ocssd_lightnvm::interface::{Content, Durability, Piece};
use ocssd_lightnvm::media_manager::UnitSelection;
use ocssd_lightnvm::{Buffers, Tag, TargetId};
use ocssd_targets::lightlsm::{LightLsm, Options};

/// Name of this benchmark.
pub const NAME: &str = "lightlsm_publish";
/// Tables in all (chosen: a database of a tebibyte in tables of 64 MiB).
const TABLES: u64 = 16_384;
/// Tables that are measured together.
const GROUP: u64 = 1_024;
/// Bytes of a table: a table of this length has one column.
const TABLE_BYTES: u32 = 4_096;
/// Bytes that are appended to one long table at a time.
const WIDE_BYTES: u32 = 1 << 20;
/// How often: 64 MiB, RocksDB's usual table.
const WIDE_APPENDS: u32 = 64;
/// Bytes of attributes (chosen: what the plugin's names and a level take).
const ATTRIBUTES_BYTES: u32 = 64;

type TableHost = Host<Flash, VirtualClock, dyn TableTarget>;

/// A fresh instance on the 128-unit Westlake, in shorter chunks; content can be read when it is written.
fn fresh() -> TableHost {
    let mut config = presets::find("westlake").expect("a preset").config();
    config.geometry.sectors_per_chunk = 256;
    config.geometry.mw_cunits = 0;
    let mut flash = Flash::format(config).expect("a sound preset");
    let units = UnitSelection::All.resolve(&flash.config().geometry).expect("every unit");
    let mut buffers = Buffers::new(flash.payload_format());
    let mut clock = VirtualClock::default();
    let mut caller = Caller { device: &mut flash, clock: &mut clock, buffers: &mut buffers, cut_at: None };
    let mut options = Options::default();
    options.set("tables_max", &(TABLES + 1).to_string()).expect("a number");
    let (target, _) = LightLsm::mount(&mut caller, &units, &options).expect("the drive is large enough");
    let mut host: TableHost = Host::new(flash, clock, buffers);
    host.add(Box::new(target));
    host
}

/// Asks one thing, and waits for it.
fn ask(host: &mut TableHost, op: TableOp) {
    let mut requests: Requests<dyn TableTarget> = Requests::default();
    requests.push(TableRequest { tag: Tag(0), op });
    assert_eq!(host.run(&mut requests, Nanos::MAX), RunEnd::Finished, "{op:?} is not answered");
    let replies = requests.take_replies();
    assert!(replies.iter().all(|reply| reply.status.is_success()), "{op:?}: {replies:?}");
}

fn publish(host: &mut TableHost, table: TableId, piece: Piece, appends: u32) {
    let hint = TableHint { level: 1, stream: 1 };
    let bytes_expected = u64::from(piece.bytes) * u64::from(appends);
    ask(host, TableOp::Create { table, kind: TableKind::Table, hint, bytes_expected });
    let content = Content::Piece(piece);
    for _ in 0..appends {
        ask(host, TableOp::Append { table, content, durability: Durability::AtFlush });
    }
    let attributes = Content::Piece(Piece { bytes: ATTRIBUTES_BYTES, ..piece });
    ask(host, TableOp::Publish { table, attributes });
}

fn gauge(host: &TableHost, name: &str) -> u64 {
    let counters = host.target(TargetId(0)).counters();
    let found = counters.iter().find(|counter| counter.name == name).expect("the target counts it");
    let CounterValue::Gauge(value) = found.value else { unreachable!("memory is a gauge") };
    value
}

/// Prints what the first and the last tables took, and what each keeps.
#[expect(clippy::cast_precision_loss, reason = "figures of a benchmark")]
pub fn measure() {
    let mut host = fresh();
    let sector = u32::try_from(host.buffers_mut().format().sector_bytes).expect("a sector is short");
    let buffer = host.buffers_mut().take_whole(TABLE_BYTES.div_ceil(sector));
    let piece = Piece { buffer, first_byte: 0, bytes: TABLE_BYTES };
    for first in (0..TABLES).step_by(usize::try_from(GROUP).expect("small")) {
        let before = cpu::thread_time();
        for table in first..first + GROUP {
            publish(&mut host, TableId(table), piece, 1);
        }
        let each = (cpu::thread_time() - before).0 as f64 / GROUP as f64 / 1e3;
        if first == 0 || first + GROUP == TABLES {
            report(NAME, &format!("behind_{first}_tables"), each, "cpu-us");
        }
    }
    let per_table = |bytes: u64| bytes as f64 / TABLES as f64;
    report(NAME, "map_of_a_table", per_table(gauge(&host, "table_map_bytes")), "B");
    report(NAME, "metadata_of_a_table", per_table(gauge(&host, "table_metadata_bytes")), "B");
    let before = gauge(&host, "table_map_bytes");
    let buffer = host.buffers_mut().take_whole(WIDE_BYTES.div_ceil(sector));
    publish(&mut host, TableId(TABLES), Piece { buffer, first_byte: 0, bytes: WIDE_BYTES }, WIDE_APPENDS);
    let extents = f64::from(WIDE_BYTES / 4_096 * WIDE_APPENDS);
    report(NAME, "map_of_an_extent", (gauge(&host, "table_map_bytes") - before) as f64 / extents, "B");
    host.target(TargetId(0)).check();
}
