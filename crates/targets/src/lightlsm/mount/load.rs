//! The catalog of the newest whole checkpoint, and what the log has behind it.
//!
//! Deliberately not here: finding them (`recovery`), what chunks are used for after that (`mod`).

use crate::chunk_wear;
use crate::lightlsm::catalog::Catalog;
use crate::lightlsm::change::{decode, from_records};
use crate::lightlsm::journal::{CATALOG, INFO, Info, WEAR};
use crate::mount_error::MountError;
use crate::recovery::found::{Known, LogEnd, Pages, ReplayFrom, check_units, find};
use crate::recovery::media::Media;
use ocssd_ftl::log::{LogEntry, Transaction};

/// An instance as recovery found it.
pub struct Recovered {
    pub info: Info,
    pub end: LogEnd,
    pub catalog: Catalog,
    /// How often each chunk was reset when the checkpoint was written; nothing if it does not say.
    pub wear: Vec<u32>,
    /// A number that no table had of which the log knows.
    pub next_number: u64,
    /// Pages, transactions, and entries that were aborted by the end of the log.
    pub replayed: (u64, u64, usize),
    /// Tables that were not published.
    pub dropped: usize,
}

/// Finds the instance; none on units that never had one. `is_log_ignored` is a planted bug.
///
/// # Errors
/// If there was one and no checkpoint of it is whole, or the drive fails.
pub fn load(
    media: &mut Media<'_>,
    known: &Known<'_>,
    is_log_ignored: bool,
) -> Result<(Option<Recovered>, Pages), MountError> {
    let (found, mut pages) = find::<LogEntry>(media, known, "lightlsm")?;
    let Some(found) = found else { return Ok((None, pages)) };
    let unreadable = MountError::Unreadable;
    let info = found.sections.get(INFO).map_err(|error| unreadable(error.to_string()))?;
    let info = Info::decode(info).map_err(unreadable)?;
    let Known { geometry, shape, .. } = known;
    check_units(shape, (info.chunk, info.units, info.lines))?;
    let unit_bytes = u64::from(geometry.ws_opt) * u64::from(geometry.sector_bytes);
    let mut catalog = Catalog::new(geometry.ws_opt, unit_bytes);
    let image = found.sections.get(CATALOG).map_err(|error| unreadable(error.to_string()))?;
    let wear = found.sections.get(WEAR).map_or_else(|_| Vec::new(), chunk_wear::decode);
    let mut next = info.next_number;
    apply(&mut catalog, &mut next, image)
        .map_err(|error| unreadable(format!("the catalog in the checkpoint: {error}")))?;
    let from = ReplayFrom { generation: info.generation, start: info.start, applied: info.applied };
    let mut log = found.replay::<LogEntry>(media, known, from, &mut pages)?;
    if is_log_ignored {
        log.transactions.clear();
    }
    for Transaction { id, entries } in &log.transactions {
        let bytes = from_records(entries).ok_or_else(|| "it is of another kind of target".to_owned());
        let done = bytes.and_then(|bytes| apply(&mut catalog, &mut next, &bytes));
        done.map_err(|error| unreadable(format!("transaction {} in the log: {error}", id.0)))?;
    }
    let dropped = catalog.drop_unpublished();
    let count = u64::try_from(log.transactions.len()).expect("an index");
    let replayed = (log.pages, count, log.aborted_entries);
    Ok((Some(Recovered { info, end: log.end, catalog, wear, next_number: next, replayed, dropped }), pages))
}

fn apply(catalog: &mut Catalog, next: &mut u64, bytes: &[u8]) -> Result<(), String> {
    let changes = decode(bytes).ok_or_else(|| "its changes should be whole, but are not".to_owned())?;
    *next = changes.iter().map(|change| change.number().0 + 1).fold(*next, u64::max);
    changes.iter().try_for_each(|change| catalog.apply(change))
}
