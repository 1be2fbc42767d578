//! The chunk table, one chunk, and wear.

use crate::table;
use anyhow::Context;
use ocssd_drive::OpenDrive;
use ocssd_lightnvm::{ChunkId, ChunkState, GenericAddress, Ppa};
use serde_json::{Value, json};

fn address(drive: &OpenDrive, chunk: ChunkId) -> String {
    let at = drive.spec.config.geometry.generic(Ppa::new(chunk, 0));
    format!("g{}/p{}/c{}", at.group, at.pu, at.chunk)
}

fn row(drive: &OpenDrive, chunk: ChunkId) -> Vec<String> {
    let descriptor = drive.flash.chunk(chunk);
    let pointer = descriptor.write_pointer.map_or_else(|| "-".to_owned(), |pointer| pointer.to_string());
    let lost: u32 = drive.flash.unreadable(chunk).iter().map(|word| word.count_ones()).sum();
    vec![
        address(drive, chunk),
        descriptor.state.to_string(),
        pointer,
        descriptor.sectors.to_string(),
        descriptor.wear_index.to_string(),
        drive.flash.cycles(chunk).to_string(),
        lost.to_string(),
        format!("{:#x}", descriptor.first.0),
    ]
}

const HEADER: [&str; 8] = ["chunk", "state", "wp", "sectors", "wear index", "cycles", "unreadable", "slba"];

fn to_json(cells: &[String]) -> Value {
    let number = |cell: &String| cell.parse::<u64>().map_or_else(|_| json!(cell), |number| json!(number));
    HEADER.iter().zip(cells).map(|(name, cell)| (name.replace(' ', "_"), number(cell))).collect()
}

/// Every chunk, or those that are not FREE.
pub fn list(drive: &OpenDrive, all: bool, as_json: bool) {
    let chunks = (0..drive.spec.config.geometry.chunk_count()).map(ChunkId);
    let shown: Vec<Vec<String>> = chunks
        .filter(|&chunk| all || drive.flash.chunk(chunk).state != ChunkState::Free)
        .map(|chunk| row(drive, chunk))
        .collect();
    if as_json {
        table::print_json(&shown.iter().map(|cells| to_json(cells)).collect());
    } else if shown.is_empty() {
        table::line("Every chunk is FREE (--all lists them).");
    } else {
        table::print(&HEADER, &shown);
    }
}

/// One chunk.
pub fn one(drive: &OpenDrive, at: GenericAddress, as_json: bool) -> anyhow::Result<()> {
    let geometry = &drive.spec.config.geometry;
    let chunk = geometry.chunk_at(at).with_context(|| {
        format!(
            "the drive has groups 0 to {}, units 0 to {} and chunks 0 to {}, but g{}/p{}/c{} was asked for",
            geometry.groups - 1,
            geometry.pus_per_group - 1,
            geometry.chunks_per_pu - 1,
            at.group,
            at.pu,
            at.chunk
        )
    })?;
    let cells = row(drive, chunk);
    if as_json {
        table::print_json(&to_json(&cells));
    } else {
        let lines: Vec<Vec<String>> =
            HEADER.iter().zip(&cells).map(|(name, cell)| vec![(*name).to_owned(), cell.clone()]).collect();
        table::print(&["", ""], &lines);
    }
    Ok(())
}

/// How resets are spread: least, average, most, and a histogram by tenths of the endurance.
pub fn wear(drive: &OpenDrive, as_json: bool) {
    let geometry = &drive.spec.config.geometry;
    let endurance = u64::from(drive.spec.config.wear.endurance);
    let chunks = || (0..geometry.chunk_count()).map(ChunkId);
    let offline = chunks().filter(|&chunk| drive.flash.chunk(chunk).state == ChunkState::Offline).count();
    let cycles: Vec<u64> = chunks()
        .filter(|&chunk| drive.flash.chunk(chunk).state != ChunkState::Offline)
        .map(|chunk| u64::from(drive.flash.cycles(chunk)))
        .collect();
    let total: u64 = cycles.iter().sum();
    let least = cycles.iter().copied().min().unwrap_or_default();
    let most = cycles.iter().copied().max().unwrap_or_default();
    let average = total / u64::try_from(cycles.len().max(1)).expect("a length fits 64 bits");
    let mut tenths = [0u64; 10];
    for cycles in &cycles {
        let tenth = usize::try_from((cycles * 10 / endurance).min(9)).expect("below ten");
        tenths[tenth] += 1;
    }
    if as_json {
        table::print_json(&json!({ "endurance": endurance, "cycles_total": total, "cycles_least": least,
            "cycles_average": average, "cycles_most": most, "offline": offline, "chunks_by_tenth": tenths }));
        return;
    }
    table::line(&format!(
        "resets a chunk: least {least}, average {average}, most {most}, endurance {endurance}; offline chunks {offline}"
    ));
    let rows: Vec<Vec<String>> = tenths
        .iter()
        .enumerate()
        .map(|(tenth, count)| vec![format!("{} to {} %", tenth * 10, tenth * 10 + 10), count.to_string()])
        .collect();
    table::print(&["of endurance", "chunks"], &rows);
}
