//! The zone table of the newest whole checkpoint, and what the log has behind it.
//!
//! Deliberately not here: finding them (`recovery`), what zones look like on media (`recover`).

use crate::chunk_wear;
use crate::mount_error::MountError;
use crate::recovery::found::{Found, Known, LogEnd, Pages, ReplayFrom};
use crate::recovery::media::Media;
use crate::zns::checkpoint::{EXTENSIONS, INFO, Info, TAILS, WEAR, ZONES, decode_extensions, decode_zones};
use crate::zns::journal::Table;
use crate::zns::sizes::Sizes;
use ocssd_ftl::ChunkIndex;
use ocssd_ftl::checkpoint::Sections;
use ocssd_ftl::log::LogEntry;
use std::fmt::Display;

/// The zone table, as checkpoint and log have it.
pub struct Loaded {
    pub info: Info,
    pub end: LogEnd,
    pub table: Table,
    /// How often chunks were reset; empty if the checkpoint does not say.
    pub wear: Vec<u32>,
    pub log_pages: u64,
    pub transactions: u64,
}

fn unreadable(error: &dyn Display) -> MountError {
    MountError::Unreadable(error.to_string())
}

/// What a checkpoint says of the instance.
///
/// # Errors
/// If it says nothing that is known.
pub fn info(sections: &Sections) -> Result<Info, MountError> {
    let info = sections.get(INFO).map_err(|error| unreadable(&error))?;
    Info::decode(info).map_err(|error| unreadable(&error))
}

/// The zone table: the checkpoint's, and what the log has behind it.
///
/// # Errors
/// If they contradict each other.
pub fn replay(
    media: &mut Media<'_>,
    known: &Known<'_>,
    (found, info): (Found, Info),
    sizes: &Sizes,
    pages: &mut Pages,
) -> Result<Loaded, MountError> {
    let shape = known.shape;
    let zones = found.sections.get(ZONES).map_err(|error| unreadable(&error))?;
    let mut table = decode_zones(zones, sizes, shape.chunks()).ok_or_else(|| {
        unreadable(&"the zone table of the checkpoint names what the instance does not have: it was written by another program")
    })?;
    let tails = found.sections.get(TAILS).map_err(|error| unreadable(&error))?;
    let (tails, _) = tails.as_chunks::<4>();
    table.tails = tails.iter().map(|bytes| ChunkIndex(u32::from_le_bytes(*bytes))).collect();
    let extended = found.sections.get(EXTENSIONS).unwrap_or(&[]);
    table.extensions = decode_extensions(extended, sizes.zone_count).ok_or_else(|| {
        unreadable(&"the extensions of the checkpoint are of zones the instance does not have: it was written by another program")
    })?;
    let wear = chunk_wear::decode(found.sections.get(WEAR).unwrap_or(&[]));
    let from = ReplayFrom { generation: info.generation, start: info.start, applied: info.applied };
    let log = found.replay::<LogEntry>(media, known, from, pages)?;
    for entry in log.transactions.iter().flat_map(|transaction| &transaction.entries) {
        table.replay(entry, sizes, shape.chunks()).map_err(|error| unreadable(&error))?;
    }
    if table.tails.iter().any(|chunk| chunk.0 >= shape.chunks()) {
        return Err(unreadable(
            &"a chunk of tails is none of the instance: it was written by another program",
        ));
    }
    let transactions = u64::try_from(log.transactions.len()).expect("an index");
    Ok(Loaded { info, end: log.end, table, wear, log_pages: log.pages, transactions })
}
