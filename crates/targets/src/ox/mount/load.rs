//! The map of the newest whole checkpoint, and what the log has behind it.
//!
//! Deliberately not here: finding them (`recovery`), what chunks are used for after that (`mod`).

use crate::mount_error::MountError;
use crate::ox::checkpoint::{INFO, Info};
use crate::ox::options::Options;
use crate::ox::store::Store;
use crate::recovery::found::{Known, LogEnd, Pages, ReplayFrom, check_units, find};
use crate::recovery::media::Media;
use ocssd_ftl::log::TransactionId;

/// An instance as recovery found it.
pub struct Recovered<S: Store> {
    pub info: Info,
    pub end: LogEnd,
    pub map: S::Map,
    /// Pages, transactions, and entries that were aborted by the end of the log.
    pub replayed: (u64, u64, usize),
}

/// Finds the instance; none on units that never had one.
///
/// # Errors
/// If there was one and no checkpoint of it is whole, or the drive fails.
pub fn load<S: Store>(
    media: &mut Media<'_>,
    known: &Known<'_>,
    options: &Options,
) -> Result<(Option<Recovered<S>>, Pages), MountError> {
    let (found, mut pages) = find::<S::Entry>(media, known, S::NAME)?;
    let Some(found) = found else { return Ok((None, pages)) };
    let unreadable = MountError::Unreadable;
    let info = found.sections.get(INFO).map_err(|error| unreadable(error.to_string()))?;
    let info = Info::decode(info).map_err(unreadable)?;
    let Known { geometry, shape, survey, .. } = *known;
    check_units(shape, (info.chunk, info.units, info.lines))?;
    let of = (info.blocks, TransactionId(info.applied));
    let mut map = S::load_map(&found.sections, geometry, shape, of, options).map_err(unreadable)?;
    let from = ReplayFrom { generation: info.generation, start: info.start, applied: info.applied };
    let log = found.replay(media, known, from, &mut pages)?;
    for transaction in &log.transactions {
        if !S::replay(&mut map, transaction, shape, options) {
            return Err(unreadable(format!(
                "transaction {} in the log names blocks or places that the instance does not have: the log was written by a \
                 program with a defect",
                transaction.id.0
            )));
        }
    }
    S::complete(&mut map, media, known, options)?;
    // What was reset since can only be named by a map whose log the media lost.
    S::retain(&mut map, shape, &|place| {
        let (chunk, sector) = shape.chunk_of(place);
        sector < survey.readable(geometry, chunk)
    });
    let count = u64::try_from(log.transactions.len()).expect("an index");
    let replayed = (log.pages, count, log.aborted_entries);
    Ok((Some(Recovered { info, end: log.end, map, replayed }), pages))
}
