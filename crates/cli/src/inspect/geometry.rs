//! The drive in a few rows, and every field of its geometry.

use crate::table;
use ocssd_base::Nanos;
use ocssd_drive::OpenDrive;
use ocssd_flash::Config;
use ocssd_flash::config::{Revision, Scheduler};
use ocssd_lightnvm::{ChunkId, ChunkState};

/// Model, shape, media, state.
pub fn summary(drive: &OpenDrive) -> Vec<(String, String)> {
    let config = &drive.spec.config;
    let geometry = &config.geometry;
    let sectors = |count: u32| table::bytes(u64::from(count) * u64::from(geometry.sector_bytes));
    let revision = match config.revision {
        Revision::V12 => "1.2",
        Revision::V20 => "2.0",
    };
    let cache = match (config.cache.sectors, config.cache.power_loss_protection) {
        (0, _) => "none".to_owned(),
        (count, true) => format!("{}, protected against power loss", sectors(count)),
        (count, false) => format!("{}, volatile", sectors(count)),
    };
    let scheduler = match config.scheduler {
        Scheduler::Fifo => "in order".to_owned(),
        Scheduler::ReadPriority { erase, program, .. } if program.suspends_max > 0 => {
            format!("reads first, erases suspended in {}, programs in {}", erase.suspend, program.suspend)
        }
        Scheduler::ReadPriority { erase, .. } => {
            format!("reads first, erases suspended in {}", erase.suspend)
        }
    };
    let mut rows = vec![
        ("model", config.model.clone()),
        ("interface", format!("OCSSD {revision}")),
        ("capacity", table::bytes(geometry.capacity_bytes())),
        (
            "shape",
            format!(
                "{} groups x {} units x {} chunks x {} sectors of {} B + {} B",
                geometry.groups,
                geometry.pus_per_group,
                geometry.chunks_per_pu,
                geometry.sectors_per_chunk,
                geometry.sector_bytes,
                geometry.oob_bytes
            ),
        ),
        (
            "writes",
            format!(
                "at least {} (ws_min), best {} (ws_opt), readable {} later (mw_cunits)",
                sectors(geometry.ws_min),
                sectors(geometry.ws_opt),
                sectors(geometry.mw_cunits)
            ),
        ),
    ];
    let uuid = match drive.image {
        Some(_) => drive.uuid.to_string(),
        None => "drawn anew for each drive in memory".to_owned(),
    };
    rows.push(("uuid", uuid));
    rows.extend(speeds(config));
    rows.extend([
        ("write-back cache", cache),
        ("scheduler", scheduler),
        ("endurance", format!("{} resets a chunk", config.wear.endurance)),
        ("payload", format!("{:?}", config.payload).to_lowercase()),
        ("chunks", states(drive)),
    ]);
    if let Some(image) = &drive.image {
        rows.push(("image", image.path().display().to_string()));
    }
    rows.push(("targets", drive.media_manager.list().len().to_string()));
    rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The media and the ways to them.
fn speeds(config: &Config) -> Vec<(&'static str, String)> {
    let cell = format!("{:?}", config.media.cell).to_uppercase();
    let times = |list: &[Nanos]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    vec![
        ("media", format!("{}, {} planes, {} registers", cell, config.media.planes, config.media.registers)),
        ("sense", times(&config.media.read)),
        ("program", times(&config.media.program)),
        ("erase", config.media.erase.to_string()),
        (
            "channel",
            format!(
                "{}/s, {} a transfer",
                table::bytes(config.channel.bytes_per_second),
                config.channel.command
            ),
        ),
        (
            "link",
            format!(
                "{}/s read, {}/s write, {} a command",
                table::bytes(config.link.read_bytes_per_second),
                table::bytes(config.link.write_bytes_per_second),
                config.link.command
            ),
        ),
    ]
}

fn states(drive: &OpenDrive) -> String {
    let mut counts = [0u32; 4];
    for chunk in (0..drive.spec.config.geometry.chunk_count()).map(ChunkId) {
        let state = drive.flash.chunk(chunk).state;
        let place = ChunkState::ALL.iter().position(|&other| other == state).expect("one of four states");
        counts[place] += 1;
    }
    let parts = ChunkState::ALL.iter().zip(counts).filter(|&(_, count)| count > 0);
    parts.map(|(state, count)| format!("{count} {state}")).collect::<Vec<_>>().join(", ")
}

/// Every field by its name in the specification.
pub fn fields(drive: &OpenDrive) -> Vec<(String, String)> {
    let geometry = &drive.spec.config.geometry;
    let (format, capabilities, times) = (&geometry.lba_format, &geometry.capabilities, &geometry.times);
    let rows: [(&str, String); 25] = [
        ("num_grp", geometry.groups.to_string()),
        ("num_pu", geometry.pus_per_group.to_string()),
        ("num_chk", geometry.chunks_per_pu.to_string()),
        ("clba", geometry.sectors_per_chunk.to_string()),
        ("sector_bytes", geometry.sector_bytes.to_string()),
        ("oob_bytes", geometry.oob_bytes.to_string()),
        ("ws_min", geometry.ws_min.to_string()),
        ("ws_opt", geometry.ws_opt.to_string()),
        ("mw_cunits", geometry.mw_cunits.to_string()),
        ("maxoc", geometry.max_open_chunks.to_string()),
        ("maxocpu", geometry.max_open_chunks_per_pu.to_string()),
        ("wit", geometry.wear_index_threshold.to_string()),
        ("lbaf.grp_len", format.group_bits.to_string()),
        ("lbaf.pu_len", format.pu_bits.to_string()),
        ("lbaf.chk_len", format.chunk_bits.to_string()),
        ("lbaf.lbk_len", format.sector_bits.to_string()),
        ("mccap.vector_copy", capabilities.vector_copy.to_string()),
        ("mccap.multiple_resets", capabilities.multiple_resets.to_string()),
        ("mccap.early_reset", capabilities.early_reset.to_string()),
        ("trdt_ns", times.read_typical.0.to_string()),
        ("trdm_ns", times.read_max.0.to_string()),
        ("twrt_ns", times.write_typical.0.to_string()),
        ("twrm_ns", times.write_max.0.to_string()),
        ("tcrst_ns", times.reset_typical.0.to_string()),
        ("tcrsm_ns", times.reset_max.0.to_string()),
    ];
    rows.map(|(name, value)| (name.to_owned(), value)).to_vec()
}
