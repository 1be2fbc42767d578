//! The newest whole checkpoint, and the log behind it: the catalog as it was.
//!
//! Deliberately not here: what chunks are used for after that (`mod`).

use super::survey::Survey;
use crate::lightlsm::catalog::Catalog;
use crate::lightlsm::change::{decode, from_records};
use crate::lightlsm::journal::{CATALOG, INFO, Info, Whole};
use crate::lightlsm::space::Role;
use crate::mount_error::MountError;
use crate::ox::mount::media::Media;
use ocssd_ftl::checkpoint::{CheckpointPage, Checkpoints, Sections, Serial};
use ocssd_ftl::log::{Generation, LogPage, Lsn, PageError, Replay, Transaction, TransactionId};
use ocssd_ftl::{ChunkIndex, InstanceId, Kind, Shape};
use ocssd_lightnvm::{Geometry, Ppa};
use std::collections::{BTreeMap, BTreeSet};

/// An instance as recovery found it.
pub struct Recovered {
    pub instance: InstanceId,
    pub info: Info,
    pub whole: Whole,
    pub catalog: Catalog,
    /// A number that no table had of which the log knows.
    pub next_number: u64,
    /// The page after the last of the log.
    pub end: Lsn,
    pub applied: TransactionId,
    /// Pages, transactions, and entries that were aborted by the end of the log.
    pub replayed: (u64, u64, usize),
    /// Tables that were not published.
    pub dropped: usize,
}

/// What lies in chunks of pages.
#[derive(Default)]
pub struct Pages {
    /// The newest checkpoint of which there is a page, whole or not.
    pub newest_serial: Serial,
    /// The newest generation of any page.
    pub newest_generation: Generation,
    /// The newest page of the log in each chunk.
    pub newest_in: BTreeMap<ChunkIndex, Lsn>,
    /// The checkpoints in each chunk.
    pub serials_in: BTreeMap<ChunkIndex, BTreeSet<Serial>>,
}

/// What mount knows of the drive.
pub struct Known<'a> {
    pub geometry: &'a Geometry,
    pub shape: &'a Shape,
    pub survey: &'a Survey,
    /// A planted bug.
    pub is_log_ignored: bool,
}

/// Finds the instance; none on units that never had one.
///
/// # Errors
/// If there was one and no checkpoint of it is whole, or the drive fails.
pub fn load(media: &mut Media<'_>, known: &Known<'_>) -> Result<(Option<Recovered>, Pages), MountError> {
    let mut pages = Pages::default();
    let places = checkpoint_places(media, known, &mut pages)?;
    let newest = newest_whole(media, known, &places)?;
    let log = read_log(media, known, &mut pages)?;
    let Some((serial, instance, sections)) = newest else {
        // The first checkpoint comes before the first request: without one nothing was ever answered.
        if pages.newest_serial > Serial(1) || !log.is_empty() {
            return Err(MountError::Unreadable(
                "there was a lightlsm instance on these units, but none of its checkpoints can be read; nothing was changed, and \
                 to use the units anew the target must be removed and its chunks reset"
                    .to_owned(),
            ));
        }
        return Ok((None, pages));
    };
    recover(known, &mut pages, (serial, instance), &sections, log).map(|found| (Some(found), pages))
}

type Places = BTreeMap<Serial, Vec<Ppa>>;

/// Where the pages of each checkpoint are.
fn checkpoint_places(
    media: &mut Media<'_>,
    known: &Known<'_>,
    pages: &mut Pages,
) -> Result<Places, MountError> {
    let Known { geometry, shape, survey, .. } = known;
    let found = survey.pages(geometry, shape, Role::Checkpoint, geometry.ws_opt);
    let firsts: Vec<Ppa> = found.iter().map(|&(_, ppa)| ppa).collect();
    let tags = media.read_tags(&firsts)?;
    let mut places = Places::new();
    for (&(chunk, ppa), tag) in found.iter().zip(tags) {
        let Some(tag) = tag.filter(|tag| tag.kind == Kind::Map) else { continue };
        let serial = Serial(tag.sequence.0);
        pages.newest_serial = pages.newest_serial.max(serial);
        pages.serials_in.entry(chunk).or_default().insert(serial);
        places.entry(serial).or_default().push(ppa);
    }
    Ok(places)
}

type Found = (Serial, InstanceId, Sections);

fn newest_whole(
    media: &mut Media<'_>,
    known: &Known<'_>,
    places: &Places,
) -> Result<Option<Found>, MountError> {
    for (&serial, firsts) in places.iter().rev() {
        let (mut found, mut instance) = (Checkpoints::default(), None);
        media.read_pages(firsts, known.geometry.ws_opt, |_, bytes| {
            if let Some(Ok((page, piece))) = bytes.map(CheckpointPage::decode) {
                instance = Some(page.instance);
                found.add(page, piece);
            }
        })?;
        if let (Some(instance), Ok(sections)) = (instance, found.assemble(serial)) {
            return Ok(Some((serial, instance, sections)));
        }
    }
    Ok(None)
}

fn read_log(media: &mut Media<'_>, known: &Known<'_>, pages: &mut Pages) -> Result<Vec<LogPage>, MountError> {
    let Known { geometry, shape, survey, .. } = known;
    let found = survey.pages(geometry, shape, Role::Log, geometry.ws_min);
    let firsts: Vec<Ppa> = found.iter().map(|&(_, ppa)| ppa).collect();
    let (mut log, mut unknown) = (Vec::new(), None);
    media.read_pages(&firsts, geometry.ws_min, |index, bytes| match bytes.map(LogPage::decode) {
        Some(Ok(page)) => {
            let newest = pages.newest_in.entry(found[index].0).or_default();
            *newest = (*newest).max(page.lsn);
            pages.newest_generation = pages.newest_generation.max(page.generation);
            log.push(page);
        }
        Some(Err(error @ PageError::Version(_))) => unknown = Some(error),
        Some(Err(PageError::NotALogPage | PageError::Corrupt)) | None => {}
    })?;
    match unknown {
        Some(error) => Err(MountError::Unreadable(error.to_string())),
        None => Ok(log),
    }
}

fn recover(
    known: &Known<'_>,
    pages: &mut Pages,
    (serial, instance): (Serial, InstanceId),
    sections: &Sections,
    log: Vec<LogPage>,
) -> Result<Recovered, MountError> {
    let unreadable = |sentence: String| MountError::Unreadable(sentence);
    let info = sections.get(INFO).map_err(|error| unreadable(error.to_string()))?;
    let info = Info::decode(info).map_err(unreadable)?;
    let Known { geometry, shape, .. } = known;
    if (info.chunk, info.units, info.lines) != (shape.sectors_per_chunk(), shape.units(), shape.lines()) {
        return Err(MountError::DoesNotFit(format!(
            "the instance was made on {} units of {} chunks of {} sectors, but is opened on {} of {} of {}: lease the units it \
             was made on",
            info.units,
            info.lines,
            info.chunk,
            shape.units(),
            shape.lines(),
            shape.sectors_per_chunk()
        )));
    }
    pages.newest_generation = pages.newest_generation.max(Generation(info.generation));
    let unit_bytes = u64::from(geometry.ws_opt) * u64::from(geometry.sector_bytes);
    let mut catalog = Catalog::new(geometry.ws_opt, unit_bytes);
    let image = sections.get(CATALOG).map_err(|error| unreadable(error.to_string()))?;
    let mut next = info.next_number;
    apply(&mut catalog, &mut next, image)
        .map_err(|error| unreadable(format!("the catalog in the checkpoint: {error}")))?;
    let mut found = Replay::default();
    log.into_iter().filter(|page| page.instance == instance).for_each(|page| found.add(page));
    let applied = TransactionId(info.applied);
    let replayed = found.run(info.start, Generation(info.generation), applied);
    let mut replayed = replayed.map_err(|error| unreadable(error.to_string()))?;
    if known.is_log_ignored {
        replayed.transactions.clear();
    }
    for Transaction { id, entries } in &replayed.transactions {
        let bytes = from_records(entries).ok_or_else(|| "it is of another kind of target".to_owned());
        let done = bytes.and_then(|bytes| apply(&mut catalog, &mut next, &bytes));
        done.map_err(|error| unreadable(format!("transaction {} in the log: {error}", id.0)))?;
    }
    let dropped = catalog.drop_unpublished();
    Ok(Recovered {
        instance,
        info,
        whole: Whole { serial, start: info.start },
        catalog,
        next_number: next,
        end: replayed.end,
        applied: replayed.transactions.last().map_or(applied, |last| last.id),
        replayed: (replayed.pages, replayed.transactions.len() as u64, replayed.aborted_entries),
        dropped,
    })
}

fn apply(catalog: &mut Catalog, next: &mut u64, bytes: &[u8]) -> Result<(), String> {
    let changes = decode(bytes).ok_or_else(|| "its changes should be whole, but are not".to_owned())?;
    *next = changes.iter().map(|change| change.number().0 + 1).fold(*next, u64::max);
    changes.iter().try_for_each(|change| catalog.apply(change))
}
