//! Targets: their units and options.
//!
//! A target this file knows nothing of is tested as it is by default. Deliberately not here: what its options mean.

use super::{Asked, Draw, Size};
use crate::plan::WorldPlan;
use ocssd_flash::Config;
use ocssd_lightnvm::{Geometry, PuId, VECTOR_MAX};

/// Drives of fewer sectors get the options of tiny ones: space is tight (chosen: no tiny drive has as many).
const TINY_SECTORS: u64 = 1500;

/// Options drawn, and what they promise.
pub(super) struct Chosen {
    pub options: Vec<(String, String)>,
    pub discards_are_durable: bool,
    pub answers_are_durable: bool,
    pub atomic_blocks: u32,
}

impl Chosen {
    /// Options of a target whose discards survive what writes do, and no more.
    const fn durable(options: Vec<(String, String)>) -> Self {
        Self { options, discards_are_durable: true, answers_are_durable: false, atomic_blocks: 0 }
    }
}

/// The units a target is on: as a rule all of them.
pub(super) fn units(draw: &mut Draw, geometry: &Geometry, target: &str) -> Vec<PuId> {
    let all = geometry.pu_count();
    // A black box shows none.
    if all < 3 || draw.percent(75) || target == "block_ssd" {
        return (0..all).map(PuId).collect();
    }
    let first = draw.between(0, all - 2);
    let last = draw.between(first, all - 1);
    (first..=last).map(PuId).collect()
}

/// Options of the target that is asked for.
pub(super) fn draw(draw: &mut Draw, asked: &Asked<'_>, config: &Config, size: Size) -> Chosen {
    match asked.target {
        "pblk" => pblk(draw, config, size, asked.fixed("mode")),
        "block_ssd" => block_ssd(draw, config, size),
        "linux-pblk" => linux_pblk(draw),
        "ox-block" => ox_block(draw, config, size, asked.fixed("durability")),
        "eleos" => eleos(draw, config, size),
        "zns" => zns(draw, config),
        "lightlsm" => lightlsm(draw, config),
        "kv" => kv(draw, config, size),
        "kv-block" => kv_block(draw, config, size, asked.fixed("over")),
        "table-block" => table_block(draw, config, size, asked.fixed("over")),
        _ => Chosen::durable(Vec::new()),
    }
}

/// Options that are held at a value take the place of drawn ones.
pub(super) fn hold(options: &mut Vec<(String, String)>, fixed: &[(String, String)]) {
    options.retain(|(name, _)| fixed.iter().all(|(other, _)| other != name));
    options.extend_from_slice(fixed);
}

/// Options that later mounts of an instance may change: what is none of its format.
const CHANGEABLE: &[&str] = &[
    "over_provisioning_percent",
    "classification",
    "victim",
    "writes_per_unit",
    "checkpoint_interval_bytes",
    "write_buffer_bytes",
    "active_units",
    "dram_cache_bytes",
    "destage_percent",
];

/// True of a target that writes each page of its log to two chunks.
pub(super) fn has_two_logs(name: &str) -> bool {
    matches!(name, "ox-block" | "eleos" | "lightlsm" | "zns")
}

/// Now and then later mounts have other options, drawn as those of another seed.
pub(super) fn draw_changes(draw: &mut Draw, asked: &Asked<'_>, plan: &mut WorldPlan) {
    if !matches!(asked.target, "pblk" | "block_ssd") || !plan.beside.is_empty() || !draw.percent(30) {
        return;
    }
    let value = |options: &[(String, String)], name: &str| {
        options.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    };
    let mode = value(&plan.options, "mode");
    let size = if plan.config.geometry.sector_count() < TINY_SECTORS { Size::Tiny } else { asked.size };
    for _ in 0..draw.between(1, 3) {
        let others = match asked.target {
            "pblk" => pblk(draw, &plan.config, size, mode.as_deref()),
            _ => block_ssd(draw, &plan.config, size),
        };
        let mut options = plan.options.clone();
        options.retain(|(name, _)| !CHANGEABLE.contains(&name.as_str()));
        let changed = others.options.into_iter().filter(|(name, _)| CHANGEABLE.contains(&name.as_str()));
        options.extend(changed);
        hold(&mut options, asked.fixed);
        plan.later_options.push(options);
    }
}

/// Options that came later, drawn beside the others so that these stay what a seed means.
pub(super) fn draw_later(draw: &mut Draw, name: &str, units: usize, options: &mut Vec<(String, String)>) {
    if name == "pblk" && units > 1 && draw.percent(60) {
        // Units written one after the other: what is written last need not be the last to reach the media.
        let most = u32::try_from(units - 1).expect("fewer units than 2^32");
        options.push(("active_units".to_owned(), draw.between(1, most).to_string()));
    }
}

/// Writes of several units, where chunks have room for them and buffer units are not fewer than pblk needs.
pub(super) fn draw_sec_per_write(draw: &mut Draw, config: &Config, options: &mut Vec<(String, String)>) {
    let Geometry { ws_opt, sectors_per_chunk, .. } = config.geometry;
    let most = (VECTOR_MAX / ws_opt).min(sectors_per_chunk / ws_opt / 2);
    let is_faithful = options.iter().any(|(name, value)| name == "mode" && value == "faithful");
    if is_faithful || most < 2 || !draw.percent(25) {
        return;
    }
    let units = draw.between(2, most);
    // Now and then as few buffer units as there may be: then what is flushed fills up all of one.
    let as_many = draw.percent(60);
    for (name, value) in options.iter_mut().filter(|(name, _)| as_many && name == "write_buffer_bytes") {
        let bytes: u64 = value.parse().unwrap_or_else(|_| panic!("{name} was drawn as a number"));
        *value = (bytes * u64::from(units)).to_string();
    }
    options.push(("sec_per_write".to_owned(), (units * ws_opt).to_string()));
}

/// On fresh media there is no instance: it is made, by the first mount that finds none.
fn linux_pblk(draw: &mut Draw) -> Chosen {
    let mut options =
        vec![("create".to_owned(), "yes".to_owned()), ("seed".to_owned(), draw.raw().to_string())];
    if draw.percent(50) {
        options.push(("over_provisioning_percent".to_owned(), draw.between(35, 70).to_string()));
    }
    Chosen::durable(options)
}

/// A black box has few.
fn block_ssd(draw: &mut Draw, config: &Config, size: Size) -> Chosen {
    let mut options = Vec::new();
    let mut set = |name: &str, value: String| options.push((name.to_owned(), value));
    let least = if size == Size::Tiny { 60 } else { 25 };
    set("over_provisioning_percent", draw.between(least, 85).to_string());
    if size == Size::Tiny || draw.percent(50) {
        let unit = config.geometry.ws_opt * config.geometry.sector_bytes;
        set("dram_cache_bytes", (u64::from(unit) * u64::from(draw.between(12, 60))).to_string());
    }
    if draw.percent(70) {
        set("destage_percent", draw.between(0, 100).to_string());
    }
    set("seed", draw.raw().to_string());
    Chosen::durable(options)
}

/// Transactions: each request of up to 1 MiB.
fn ox_block(draw: &mut Draw, config: &Config, size: Size, durability: Option<&str>) -> Chosen {
    let drawn = draw.percent(30);
    let is_volatile = durability.map_or(drawn, |durability| durability == "flush");
    let mut options =
        vec![("durability".to_owned(), if is_volatile { "flush" } else { "request" }.to_owned())];
    let seed = ox_machines(draw, config, size, &mut options);
    if seed % 5 < 2 {
        // Part of the map is on media: hardly any of it is in memory, half of it, or all.
        let pick = |numbers: [u32; 4], by: u64| numbers[usize::try_from(seed / by % 4).expect("below four")];
        let pages = if size == Size::Tiny { [128, 128, 256, 512] } else { [128, 128, 512, 4096] };
        let page = pick(pages, 5).min(config.geometry.sector_bytes);
        options.push(("map_page_bytes".to_owned(), page.to_string()));
        options.push(("map_cache_bytes".to_owned(), (page * pick([4, 6, 12, 1000], 20)).to_string()));
    }
    Chosen { answers_are_durable: !is_volatile, atomic_blocks: 256, ..Chosen::durable(options) }
}

/// Flushes of pages, each a transaction.
fn eleos(draw: &mut Draw, config: &Config, size: Size) -> Chosen {
    let mut options = Vec::new();
    ox_machines(draw, config, size, &mut options);
    Chosen::durable(options)
}

/// Zones: narrow and wide, a chunk or a few deep.
fn zns(draw: &mut Draw, config: &Config) -> Chosen {
    let mut options = Vec::new();
    let mut set = |name: &str, value: String| options.push((name.to_owned(), value));
    let width: &str = draw.one_of(&["all", "group", "1", "1"]);
    set("width", width.to_owned());
    if draw.percent(40) {
        set("zone_chunks", draw.between(1, 4).to_string());
    }
    if draw.percent(30) {
        set("partial", "pad".to_owned());
    }
    if draw.percent(30) {
        set("finish", "pad".to_owned());
    }
    if draw.percent(50) {
        set("area_units", draw.between(1, 3).to_string());
    }
    if draw.percent(60) {
        let pages: u32 = draw.one_of(&[8, 12, 40, 200]);
        let page = config.geometry.ws_min * config.geometry.sector_bytes;
        set("checkpoint_log_bytes", (u64::from(page) * u64::from(pages)).to_string());
    }
    if draw.percent(50) {
        set("writes_per_unit", draw.between(1, 4).to_string());
    }
    let seed = draw.raw();
    set("seed", seed.to_string());
    if draw.percent(40) {
        let spread: u32 = draw.one_of(&[1, 1, 2, 4]);
        set("wear_spread", spread.to_string());
    }
    // Two in five, by what was drawn already.
    if seed % 5 < 2 {
        set("metadata", "apart".to_owned());
    }
    Chosen::durable(options)
}

/// What all FTLs of OX's machines have.
fn ox_machines(draw: &mut Draw, config: &Config, size: Size, options: &mut Vec<(String, String)>) -> u64 {
    let mut set = |name: &str, value: String| options.push((name.to_owned(), value));
    let least = if size == Size::Tiny { 50 } else { 25 };
    set("over_provisioning_percent", draw.between(least, 85).to_string());
    if draw.percent(60) {
        let pages: u32 = draw.one_of(&[8, 12, 40, 200]);
        let page = config.geometry.ws_min * config.geometry.sector_bytes;
        set("checkpoint_log_bytes", (u64::from(page) * u64::from(pages)).to_string());
    }
    if draw.percent(50) {
        set("writes_per_unit", draw.between(1, 4).to_string());
    }
    if draw.percent(40) {
        set("gc_groups_max", draw.between(1, 4).to_string());
    }
    if draw.percent(40) {
        set("victim", draw.one_of(&["greedy", "cost-benefit", "d-choices:3"]).to_owned());
    }
    let seed = draw.raw();
    set("seed", seed.to_string());
    seed
}

/// Tables: few and large ones, or as many as a drive has room for.
fn lightlsm(draw: &mut Draw, config: &Config) -> Chosen {
    let mut options = Vec::new();
    let mut set = |name: &str, value: String| options.push((name.to_owned(), value));
    set(
        "placement",
        draw.one_of(&["horizontal", "horizontal", "vertical", "groups:1", "width:2", "level"]).to_owned(),
    );
    set("spare_percent", draw.between(5, 30).to_string());
    if draw.percent(60) {
        set("tables_max", draw.between(3, 9).to_string());
    }
    if draw.percent(60) {
        let pages: u32 = draw.one_of(&[8, 12, 40]);
        let page = config.geometry.ws_min * config.geometry.sector_bytes;
        set("checkpoint_log_bytes", (u64::from(page) * u64::from(pages)).to_string());
    }
    if draw.percent(50) {
        set("writes_per_unit", draw.between(1, 4).to_string());
    }
    if draw.percent(20) {
        set("read_unit", "write_unit".to_owned());
    }
    set("seed", draw.raw().to_string());
    Chosen::durable(options)
}

/// Keys and values: small drives have checkpoints all the time.
fn kv(draw: &mut Draw, config: &Config, size: Size) -> Chosen {
    let mut options = Vec::new();
    let mut set = |name: &str, value: String| options.push((name.to_owned(), value));
    let least = if size == Size::Tiny { 40 } else { 15 };
    set("over_provisioning_percent", draw.between(least, 75).to_string());
    if draw.percent(60) {
        let units: u32 = draw.one_of(&[1, 4, 16, 100]);
        let unit = config.geometry.ws_opt * config.geometry.sector_bytes;
        set("checkpoint_interval_bytes", (u64::from(unit) * u64::from(units)).to_string());
    }
    if draw.percent(40) {
        set("victim", draw.one_of(&["greedy", "cost-benefit", "d-choices:3"]).to_owned());
    }
    if draw.percent(60) {
        // Garbage is collected all the time.
        set("gc_start_chunks", draw.between(1, config.geometry.chunk_count()).to_string());
    }
    if draw.percent(30) {
        set("index_percent", draw.between(1, 20).to_string());
    }
    let seed = draw.raw();
    set("seed", seed.to_string());
    if seed % 7 < 2 {
        set("writes_per_unit", (1 + seed % 7 * 3).to_string());
        set("resets_per_unit", (1 + seed % 7).to_string());
    }
    if seed % 5 < 2 {
        // Part of the index is on media: hardly any of it is in memory, or half of it.
        set(
            "index_cache_bytes",
            [0, 500, 2000, 20_000][usize::try_from(seed / 5 % 4).expect("below four")].to_string(),
        );
        set(
            "index_page_bytes",
            [266, 300, 500, 1024][usize::try_from(seed / 20 % 4).expect("below four")].to_string(),
        );
    }
    if seed.is_multiple_of(3) {
        let spread = [1, 1, 2, 4][usize::try_from(seed / 3 % 4).expect("below four")];
        set("wear_spread", spread.to_string());
    }
    if seed % 11 < 5 {
        // Few buffer units beside those that the drive holds back.
        let entries = [1, 2, 8, 128][usize::try_from(seed / 11 % 4).expect("below four")];
        set("batch_entries_max", entries.to_string());
        set("write_buffer_units", (1 + seed / 44 % 3).to_string());
    }
    Chosen::durable(options)
}

/// Keys and values on a block target: garbage is collected twice.
fn kv_block(draw: &mut Draw, config: &Config, size: Size, over: Option<&str>) -> Chosen {
    let below = below(draw, config, size, over);
    let mut options = kv(draw, config, size).options;
    // Room for both; wear is the block target's.
    options.retain(|(name, _)| name != "over_provisioning_percent" && name != "wear_spread");
    options.push(("over_provisioning_percent".to_owned(), draw.between(5, 40).to_string()));
    options.extend(below.options(draw));
    Chosen::durable(options)
}

/// Tables on a block target.
fn table_block(draw: &mut Draw, config: &Config, size: Size, over: Option<&str>) -> Chosen {
    let below = below(draw, config, size, over);
    let mut options = lightlsm(draw, config).options;
    options.retain(|(name, _)| name != "placement");
    let is_pblk = below.over == "pblk";
    options.extend(below.options(draw));
    draw_active_units(draw, is_pblk, config, &mut options);
    Chosen::durable(options)
}

/// Units of pblk below written one after the other: a write with FUA need not be the last to reach the media.
fn draw_active_units(draw: &mut Draw, is_pblk: bool, config: &Config, options: &mut Vec<(String, String)>) {
    let units = config.geometry.pu_count();
    if is_pblk && units > 1 && draw.percent(60) {
        options.push(("over.active_units".to_owned(), draw.between(1, units - 1).to_string()));
    }
}

/// A block target that something stands on.
struct Below<'a> {
    over: &'a str,
    chosen: Chosen,
}

fn below<'a>(draw: &mut Draw, config: &Config, size: Size, over: Option<&'a str>) -> Below<'a> {
    let drawn = draw.one_of(&["pblk", "pblk", "block_ssd", "ox-block"]);
    let over = over.unwrap_or(drawn);
    let chosen = match over {
        "pblk" => pblk(draw, config, size, Some("improved")),
        "block_ssd" => block_ssd(draw, config, size),
        _ => ox_block(draw, config, size, None),
    };
    Below { over, chosen }
}

impl Below<'_> {
    /// Its options, as what stands on it takes them.
    fn options(self, draw: &mut Draw) -> Vec<(String, String)> {
        let mut options = vec![("over".to_owned(), self.over.to_owned())];
        // What nobody asks for is as much as a block target needs to work, and most drives are too small for more.
        let is_stated = self.over == "ox-block" || draw.percent(30);
        for (name, value) in self.chosen.options {
            if name == "over_provisioning_percent" && !is_stated {
                continue;
            }
            let value = match name.as_str() {
                "over_provisioning_percent" => draw.between(20, 45).to_string(),
                "victim" => draw.one_of(&["greedy", "cost-benefit", "d-choices:3"]).to_owned(),
                _ => value,
            };
            options.push((format!("over.{name}"), value));
        }
        options
    }
}

fn pblk(draw: &mut Draw, config: &Config, size: Size, mode: Option<&str>) -> Chosen {
    let mut options = Vec::new();
    let mut set = |name: &str, value: String| options.push((name.to_owned(), value));
    let drawn = draw.percent(30);
    let faithful = mode.map_or(drawn, |mode| mode == "faithful");
    set("mode", if faithful { "faithful" } else { "improved" }.to_owned());
    let least = if size == Size::Tiny { 60 } else { 25 };
    set("over_provisioning_percent", draw.between(least, 85).to_string());
    let classification = draw.one_of(&["none", "user-gc", "sepbit"]);
    if !faithful {
        // Stated also where none is drawn: the default follows the number of lines, and worlds should not change with it.
        let drawn = if draw.percent(60) { classification } else { "user-gc" };
        set("classification", drawn.to_owned());
    }
    if draw.percent(40) {
        set("victim", draw.one_of(&["greedy", "cost-benefit", "d-choices:3"]).to_owned());
    }
    if draw.percent(50) {
        set("writes_per_unit", draw.between(1, 4).to_string());
    }
    if !faithful && draw.percent(60) {
        let sectors = draw.one_of(&[0, 4, 40, 400, 4000]);
        set("checkpoint_interval_bytes", (sectors * config.geometry.sector_bytes).to_string());
    }
    // Chunks so small that the usual buffer would not fit beside the data.
    if size == Size::Tiny || draw.percent(50) {
        let unit = config.geometry.ws_opt * config.geometry.sector_bytes;
        set("write_buffer_bytes", (u64::from(unit) * u64::from(draw.between(12, 60))).to_string());
    }
    set("seed", draw.raw().to_string());
    Chosen { discards_are_durable: !faithful, ..Chosen::durable(options) }
}
