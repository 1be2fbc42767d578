//! `ocssd targets`: the kinds of targets, and the options each takes after a colon.
//!
//! The names of options are the targets' own; a test holds this list against what they say of an option they do not have.

use crate::table;
use ocssd_workload::results::fold::fold;
use serde_json::json;

/// An option of a target.
struct TargetOption {
    name: &'static str,
    /// What it may be.
    values: &'static str,
    /// What it is if nothing is said.
    default: &'static str,
}

const fn option(name: &'static str, values: &'static str, default: &'static str) -> TargetOption {
    TargetOption { name, values, default }
}

const BLOCK_BYTES: TargetOption = option("block_bytes", "512 to a sector", "a sector");
const SEED: TargetOption = option("seed", "number", "1");

const LINEAR: &[TargetOption] = &[option("plane_reads", "aligned, never", "aligned")];

const PBLK: &[TargetOption] = &[
    option("mode", "improved, faithful", "improved"),
    option("over_provisioning_percent", "1 to 90", "11, or what fits"),
    option("write_buffer_bytes", "bytes", "by mode"),
    option("small_write_buffer", "true, false", "false"),
    option("active_units", "1 to all", "all"),
    option("victim", "greedy, cost-benefit, d-choices:N", "by mode"),
    option("classification", "none, user-gc, sepbit", "by mode"),
    option("checkpoint_interval_bytes", "bytes, 0 for none", "a sixteenth"),
    option("sec_per_write", "multiple of ws_opt, to 64", "enough for 64 KiB"),
    option("plane_reads", "aligned, never", "aligned"),
    option("writes_per_unit", "1 to 16", "by mode: 1, 2"),
    option("wear_spread", "erases, 0 for any", "by mode: 0, 64"),
    SEED,
    BLOCK_BYTES,
];

const BLOCK_SSD: &[TargetOption] = &[
    option("dram_cache_bytes", "bytes", "by the drive"),
    option("destage_percent", "0 to 100", "0, at once"),
    option("over_provisioning_percent", "1 to 90", "11, or what fits"),
    SEED,
    BLOCK_BYTES,
];

const LINUX_PBLK: &[TargetOption] = &[
    option("over_provisioning_percent", "1 to 90", "11"),
    option("read_only", "yes, no", "no"),
    option("create", "yes, no", "no"),
    SEED,
    option("map_crc", "1.2, 2.0", "not said"),
    BLOCK_BYTES,
];

const OX_BLOCK: &[TargetOption] = &[
    option("over_provisioning_percent", "1 to 95", "20"),
    option("durability", "request, flush", "request"),
    option("checkpoint_log_bytes", "bytes", "a 64th, to 64 MiB"),
    option("recovery", "time, as 100ms", "not bounded"),
    option("log_copies", "1, 2", "2"),
    option("lost_log", "refuse, drop", "refuse"),
    option("map_cache_bytes", "bytes", "all in memory"),
    option("map_page_bytes", "32 entries to a sector", "a sector"),
    option("gc_groups_max", "1 to all", "1"),
    option("victim", "greedy, cost-benefit, d-choices:N", "greedy"),
    option("writes_per_unit", "1 to 16", "2"),
    option("plane_reads", "aligned, never", "aligned"),
    SEED,
    BLOCK_BYTES,
];

/// As of `ox-block`; when a flush is durable it says itself.
const ELEOS: &[TargetOption] = &[
    option("over_provisioning_percent", "1 to 95", "20"),
    option("checkpoint_log_bytes", "bytes", "a 64th, to 64 MiB"),
    option("recovery", "time, as 100ms", "not bounded"),
    option("log_copies", "1, 2", "2"),
    option("gc_groups_max", "1 to all", "1"),
    option("victim", "greedy, cost-benefit, d-choices:N", "greedy"),
    option("writes_per_unit", "1 to 16", "2"),
    option("plane_reads", "aligned, never", "aligned"),
    SEED,
];

const KV: &[TargetOption] = &[
    option("over_provisioning_percent", "1 to 95", "20"),
    option("index_percent", "1 to 50", "5"),
    option("index_cache_bytes", "bytes", "all in memory"),
    option("index_page_bytes", "266 to 4096", "4096 or 1024"),
    option("checkpoint_interval_bytes", "bytes", "a sixteenth"),
    option("gc_start_chunks", "chunks", "by the drive"),
    option("batch_entries_max", "1 to 128", "128"),
    option("write_buffer_units", "write units", "by the stripe"),
    option("writes_per_unit", "writes", "2"),
    option("resets_per_unit", "resets", "1"),
    option("victim", "greedy, cost-benefit, d-choices:N", "greedy"),
    option("wear_spread", "resets, 0 for any", "0"),
    option("plane_reads", "aligned, never", "aligned"),
    SEED,
];

/// As of `kv`, on extents; options of the block target are written with its prefix.
const KV_BLOCK: &[TargetOption] = &[
    option("over", "pblk, block_ssd, ox-block", "pblk"),
    option("over.NAME", "option NAME of that target", "its own"),
    option("extent_bytes", "bytes", "a 512th"),
    option("over_provisioning_percent", "1 to 95", "20"),
    option("index_percent", "1 to 50", "5"),
    option("index_cache_bytes", "bytes", "all in memory"),
    option("index_page_bytes", "266 to 4096", "4096 or 1024"),
    option("checkpoint_interval_bytes", "bytes", "a sixteenth"),
    option("gc_start_chunks", "extents", "by the size"),
    option("batch_entries_max", "1 to 128", "128"),
    option("write_buffer_units", "write units", "by the stripe"),
    option("writes_per_unit", "writes", "all"),
    option("resets_per_unit", "discards", "all"),
    option("victim", "greedy, cost-benefit, d-choices:N", "greedy"),
    SEED,
];

const LIGHTLSM: &[TargetOption] = &[
    option("placement", "horizontal, vertical, width:K, level", "horizontal"),
    option("read_unit", "sector, write_unit", "sector"),
    option("tables_max", "1 to 65536", "one for 8 chunks"),
    option("spare_percent", "1 to 50", "10"),
    option("checkpoint_log_bytes", "bytes", "a 64th, to 64 MiB"),
    option("log_copies", "1, 2", "2"),
    option("writes_per_unit", "1 to 16", "2"),
    option("plane_reads", "aligned, never", "aligned"),
    SEED,
];

/// As of `lightlsm`, on extents; options of the block target are written with its prefix.
const TABLE_BLOCK: &[TargetOption] = &[
    option("over", "pblk, block_ssd, ox-block", "pblk"),
    option("over.NAME", "option NAME of that target", "its own"),
    option("extent_bytes", "bytes", "a 2048th"),
    option("read_unit", "sector, write_unit", "sector"),
    option("tables_max", "1 to 65536", "one for 8 extents"),
    option("spare_percent", "1 to 50", "10"),
    option("checkpoint_log_bytes", "bytes", "a 64th, to 64 MiB"),
    option("log_copies", "1, 2", "1"),
    option("writes_per_unit", "1 to 16", "2"),
    SEED,
];

const ZNS: &[TargetOption] = &[
    option("width", "all, group, 1 to all units", "all"),
    option("zone_chunks", "1 to all", "the width"),
    option("buffer_bytes", "bytes", "eight open zones"),
    option("area_units", "write units", "0: no areas"),
    option("partial", "log, pad", "log"),
    option("finish", "leave, pad", "leave"),
    option("metadata", "auto, apart, anywhere", "auto"),
    option("checkpoint_log_bytes", "bytes", "a 64th, to 4 MiB"),
    option("log_copies", "1, 2", "2"),
    option("writes_per_unit", "1 to 16", "2"),
    option("plane_reads", "aligned, never", "aligned"),
    option("wear_spread", "resets, 0 for any", "0"),
    option("create", "yes, no", "yes"),
    SEED,
];

fn options_of(kind: &str) -> &'static [TargetOption] {
    match kind {
        "linear" => LINEAR,
        "pblk" => PBLK,
        "block_ssd" => BLOCK_SSD,
        "linux-pblk" => LINUX_PBLK,
        "ox-block" => OX_BLOCK,
        "eleos" => ELEOS,
        "zns" => ZNS,
        "kv" => KV,
        "kv-block" => KV_BLOCK,
        "lightlsm" => LIGHTLSM,
        "table-block" => TABLE_BLOCK,
        _ => &[],
    }
}

/// Lists them.
pub fn targets(as_json: bool) {
    if as_json {
        let option = |option: &TargetOption| json!({ "name": option.name, "values": option.values, "default": option.default });
        let kinds = crate::kinds::all().map(|kind| {
            let options: Vec<_> = options_of(kind.name).iter().map(option).collect();
            json!({ "name": kind.name, "about": kind.about, "options": options })
        });
        return table::print_json(&kinds.collect());
    }
    for kind in crate::kinds::all() {
        table::line(&fold(&format!("{}: {}", kind.name, about(kind.about))));
        let row =
            |option: &TargetOption| vec![option.name.into(), option.values.into(), option.default.into()];
        let rows: Vec<Vec<String>> = options_of(kind.name).iter().map(row).collect();
        if !rows.is_empty() {
            table::print(&["option", "values", "default"], &rows);
        }
        table::line("");
    }
    table::line(&fold(
        "Name one as --target KIND or --target KIND:OPTION=VALUE,..; linear is used when none is named, pblk by serve. docs/pblk.md \
         explains pblk's options, docs/pblk-format.md those of linux-pblk.",
    ));
}

/// What a kind is, without the options in brackets, which are listed below it.
fn about(text: &str) -> &str {
    text.split(" (option").next().unwrap_or(text)
}
