//! Targets of zones, of keys, of tables and of pages for tests: the simulator's models, which need no drive.

use ocssd_base::Prng;
use ocssd_lightnvm::interface::key_value::{KvLimits, KvTarget, ListOrder};
use ocssd_lightnvm::interface::log_structured::{LogLimits, LogTarget};
use ocssd_lightnvm::interface::table::{TableLimits, TableTarget};
use ocssd_lightnvm::interface::zoned::{ZoneGeometry, ZonedTarget};
use ocssd_lightnvm::interface::{AnyTarget, StageLimits};
use ocssd_sim::kv::KvModel;
use ocssd_sim::log::LogModel;
use ocssd_sim::model::target::ReferenceTarget;
use ocssd_sim::table::TableModel;
use ocssd_sim::zoned::ZonedModel;

/// Eight zones of 64 blocks of 4 KiB, of which 48 hold data; four may be active and three open.
pub fn zones() -> AnyTarget {
    AnyTarget::from(Box::new(reference()) as Box<dyn ZonedTarget>)
}

/// The same, with its own type.
pub fn reference() -> ReferenceTarget<ZonedModel> {
    let geometry = ZoneGeometry {
        capacity_blocks: 48,
        active_max: Some(4),
        open_max: Some(3),
        append_blocks_max: 8,
        takes_extensions: true,
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

/// A mebibyte of twenty tables and logs.
pub fn tables() -> AnyTarget {
    let limits = TableLimits {
        tables_max: 20,
        table_bytes_max: 1 << 21,
        attributes_bytes_max: 64,
        edits_max: 4,
        capacity_bytes: 1 << 20,
    };
    let target = ReferenceTarget::new(TableModel::new(limits), &Prng::new(1));
    AnyTarget::from(Box::new(target) as Box<dyn TableTarget>)
}

/// Sixteen megabytes of pages up to 20,000 bytes, in flushes up to 8 MiB.
pub fn pages() -> AnyTarget {
    let limits = LogLimits {
        flush_bytes_max: 8 << 20,
        flush_pages_max: 2048,
        page_bytes_max: 20_000,
        page_align_bytes: 1,
        sessions_max: 3,
        capacity_bytes: 16 << 20,
        pages_max: 4096,
        stages: StageLimits { stages_max: 2, bytes_max: 8 << 20 },
    };
    let target = ReferenceTarget::new(LogModel::new(limits), &Prng::new(1));
    AnyTarget::from(Box::new(target) as Box<dyn LogTarget>)
}
