//! Drives: shape, media, cache, wear, and how often media fail.
//!
//! `ws_opt` is at most 64 sectors, because no vector command could write a larger unit (OCSSD 2.0 section 3.4), so drives
//! that would need 72 are drawn with 48 or 64. Deliberately not here: the target.

use super::target::has_two_logs;
use super::{Draw, Size};
use crate::watched::BILLION;
use ocssd_base::{Nanos, Prng};
use ocssd_flash::config::{CacheConfig, CellType, FaultConfig, PlaneReads, Scheduler, Suspension};
use ocssd_flash::{Config, presets};
use ocssd_lightnvm::{Geometry, LbaFormat, Payload};

/// Sectors of a drive at most, so that reading all of it stays quick (chosen).
const SECTORS_MAX: u32 = 40_000;

/// Commands a drive takes at once: as many as pblk sends, so that none is refused.
const QUEUE_DEPTH: u32 = 8192;
/// The same for one or two units and a handful of requests (chosen: more than these ever have in flight).
const QUEUE_DEPTH_TINY: u32 = 512;

/// A drive.
pub(super) fn draw(draw: &mut Draw, size: Size, seed: u64) -> Config {
    let geometry = match size {
        Size::Tiny => tiny(draw),
        Size::Any => any(draw),
    };
    let mut config = presets::find("tiny").expect("a preset of that name").config();
    config.seed = seed;
    config.queue_depth = match size {
        Size::Tiny => QUEUE_DEPTH_TINY,
        Size::Any => QUEUE_DEPTH,
    };
    media(draw, &mut config, &geometry);
    // Apart from the other draws, which give each seed its drive.
    if Prng::new(seed).split("plane reads").chance(1 << 31) {
        config.media.plane_reads = PlaneReads::Asked;
    }
    config.cache = cache(draw);
    config.payload = Payload::Stamp;
    if size == Size::Any && geometry.sector_count() < 4000 && draw.percent(20) {
        config.payload = Payload::Bytes;
    }
    if size == Size::Any && draw.percent(30) {
        let erase = Suspension {
            suspend: Nanos::from_micros(20),
            resume: Nanos::from_micros(50),
            suspends_max: draw.between(1, 8),
        };
        // Apart from the other draws, as above.
        let suspends_max = u32::try_from(Prng::new(seed).split("program suspend").below(4)).expect("few");
        let program = Suspension { suspends_max, ..erase };
        config.scheduler = Scheduler::ReadPriority { erase, program, bypasses_max: draw.between(1, 16) };
    }
    config.geometry = geometry;
    config
}

fn tiny(draw: &mut Draw) -> Geometry {
    let units = draw.between(1, 2);
    let unit = draw.one_of(&[2, 4]);
    let chunk = unit * draw.one_of(&[6, 8]);
    let mw_cunits = unit * draw.between(0, 2);
    Geometry { mw_cunits, ..Geometry::example(1, units, 40 / units, chunk, unit) }
}

/// On one unit the two copies of a log have chunks of their own: so many more leave about as much room for data in a tiny drive as
/// one copy beside the other would.
pub(super) fn enlarge_one_unit(geometry: &mut Geometry, size: Size, target: &str) {
    if size == Size::Tiny && has_two_logs(target) && geometry.pu_count() == 1 {
        geometry.chunks_per_pu += 4;
    }
}

fn any(draw: &mut Draw) -> Geometry {
    let (groups, units) = draw.one_of(&[(1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (3, 5), (8, 4), (16, 8)]);
    let minimum = draw.one_of(&[1, 2, 4, 8, 24]);
    let unit = (minimum * draw.one_of(&[1, 1, 2, 4])).min(64 / minimum * minimum);
    let most = (SECTORS_MAX / (groups * units) / unit / 12).clamp(4, 40);
    let chunk = unit * draw.between(4, most);
    let window = draw.one_of(&[0, 0, 1, 2, 3, 8]) * unit;
    let chunks = draw.between(12, (SECTORS_MAX / (groups * units) / chunk).clamp(12, 120));
    let mut geometry = Geometry::example(groups, units, chunks, chunk, unit);
    geometry.ws_min = minimum;
    geometry.mw_cunits = window.min(chunk / unit / 2 * unit);
    geometry.capabilities.multiple_resets = draw.percent(50);
    geometry.capabilities.early_reset = draw.percent(50);
    if draw.percent(20) {
        geometry.max_open_chunks_per_pu = draw.between(3, 8);
    }
    // Fields wider than they need be leave holes between addresses.
    let LbaFormat { group_bits, pu_bits, chunk_bits, sector_bits } = geometry.lba_format;
    let mut wider = |bits: u8| bits + u8::try_from(draw.between(0, 3)).expect("small");
    geometry.lba_format = LbaFormat {
        group_bits: wider(group_bits),
        pu_bits: wider(pu_bits),
        chunk_bits: wider(chunk_bits),
        sector_bits: wider(sector_bits),
    };
    geometry
}

fn media(draw: &mut Draw, config: &mut Config, geometry: &Geometry) {
    let planes = (1..=4).filter(|planes| geometry.ws_opt.is_multiple_of(planes * geometry.ws_min));
    let planes: Vec<u32> = planes.collect();
    config.media.planes = draw.one_of(&planes);
    config.media.sectors_per_page = geometry.ws_min;
    config.media.registers = draw.between(1, 2);
    let micros = |times: &[u64]| times.iter().map(|&time| Nanos::from_micros(time)).collect();
    (config.media.cell, config.media.read, config.media.program) =
        match draw.one_of(&[CellType::Slc, CellType::Mlc, CellType::Tlc, CellType::Qlc]) {
            CellType::Slc => (CellType::Slc, micros(&[3]), micros(&[75])),
            CellType::Mlc => (CellType::Mlc, micros(&[45, 60]), micros(&[400, 1300])),
            CellType::Tlc => (CellType::Tlc, micros(&[60, 80, 100]), micros(&[600, 1500, 2700])),
            CellType::Qlc => (CellType::Qlc, micros(&[80, 110, 140, 170]), micros(&[2000])),
        };
    // Media as fast as memory turn every wait into a race.
    if draw.percent(10) {
        (config.media.read, config.media.program) = (vec![Nanos(1)], vec![Nanos(1)]);
        config.media.erase = Nanos(1);
    }
}

fn cache(draw: &mut Draw) -> CacheConfig {
    if draw.percent(50) {
        return CacheConfig { sectors: 0, power_loss_protection: false };
    }
    CacheConfig { sectors: draw.one_of(&[64, 128, 1024]), power_loss_protection: draw.percent(30) }
}

/// How often the media fail.
pub(super) fn draw_faults(draw: &mut Draw, config: &mut Config) {
    if draw.percent(40) {
        return;
    }
    let mut rate =
        |percent: u64, choices: &[u32]| if draw.percent(percent) { draw.one_of(choices) } else { 0 };
    let thousandth = 1_000_000;
    config.faults = FaultConfig {
        factory_bad: rate(30, &[10 * thousandth, 60 * thousandth]),
        unrecovered_read: rate(20, &[thousandth / 20, thousandth]),
        unrecovered_read_worn: 0,
        high_ecc: rate(30, &[thousandth, 10 * thousandth]),
        high_ecc_worn: 0,
        write_next_unit: rate(40, &[thousandth, 10 * thousandth, 50 * thousandth]),
        early_close: rate(40, &[thousandth, 10 * thousandth]),
        reset_failure: rate(30, &[thousandth, 10 * thousandth, 200 * thousandth]),
        latency_spike: rate(30, &[thousandth, 20 * thousandth]),
        ..FaultConfig::default()
    };
    config.faults.unrecovered_read_worn = config.faults.unrecovered_read * 4;
    config.faults.high_ecc_worn = config.faults.high_ecc * 4;
    // A spike of seconds is a unit that is stuck.
    config.faults.spike = Nanos::from_millis(draw.one_of(&[1, 20, 500, 5000]));
    if draw.percent(20) {
        config.wear.endurance = draw.between(8, 60);
        config.wear.initial_cycles = 0;
    }
}

/// Linux empties a line in which a write failed as soon as it is closed, into others: where each of them has such a write, too,
/// that never ends (docs/linux-pblk.md). Of a target as Linux makes it more than half of the lines are without one.
pub(super) fn spare_lines(config: &mut Config, units: usize, target: &str) {
    if target != "linux-pblk" {
        return;
    }
    let Geometry { sectors_per_chunk, ws_opt, .. } = config.geometry;
    let writes = u32::try_from(units).expect("fewer units than 2^32") * (sectors_per_chunk / ws_opt);
    assert!(writes > 0, "a line takes writes");
    let most = BILLION / writes / 4;
    config.faults.write_next_unit = config.faults.write_next_unit.min(most);
    config.faults.early_close = config.faults.early_close.min(most);
}
