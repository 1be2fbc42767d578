//! The newest whole checkpoint, and the log behind it.
//!
//! Deliberately not here: what zones look like on media (`recover`).

use super::survey::Survey;
use crate::mount_error::MountError;
use crate::ox::checkpoint::Kept;
use crate::ox::mount::media::Media;
use crate::zns::checkpoint::{INFO, Info, TAILS, ZONES, decode_zones};
use crate::zns::journal::Table;
use crate::zns::sizes::Sizes;
use crate::zns::space::Role;
use ocssd_ftl::checkpoint::{CheckpointPage, Checkpoints, Sections, Serial};
use ocssd_ftl::log::{Generation, LogPage, Lsn, PageError, Replay, TransactionId};
use ocssd_ftl::{ChunkIndex, InstanceId, Kind, Shape};
use ocssd_lightnvm::{Geometry, Ppa};
use std::collections::{BTreeMap, BTreeSet};

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
}

/// A checkpoint, and the log that was found.
pub struct Found {
    pub info: Info,
    serial: Serial,
    instance: InstanceId,
    sections: Sections,
    log: Vec<LogPage>,
}

/// The zone table, as checkpoint and log have it.
pub struct Loaded {
    pub instance: InstanceId,
    pub info: Info,
    pub kept: Kept,
    pub table: Table,
    /// The page after the last of the log.
    pub end: Lsn,
    pub applied: TransactionId,
    pub log_pages: u64,
    pub transactions: u64,
}

/// Finds the instance; none on units that never had one.
///
/// # Errors
/// If there was one and no checkpoint of it is whole, it was made on other units, or the drive fails.
pub fn find(media: &mut Media<'_>, known: &Known<'_>) -> Result<(Option<Found>, Pages), MountError> {
    let mut pages = Pages::default();
    let places = checkpoint_places(media, known, &mut pages)?;
    let newest = newest_whole(media, known, &places)?;
    let log = read_log(media, known, &mut pages)?;
    let Some((serial, instance, sections)) = newest else {
        // The first checkpoint comes before the first request: without one nothing was ever answered.
        if pages.newest_serial > Serial(1) || !log.is_empty() {
            return Err(MountError::Unreadable(
                "there were zones on these units, but none of their checkpoints can be read; nothing was changed, and to use the \
                 units anew the target must be removed and its chunks reset"
                    .to_owned(),
            ));
        }
        return Ok((None, pages));
    };
    let unreadable = |sentence: String| MountError::Unreadable(sentence);
    let info = sections.get(INFO).map_err(|error| unreadable(error.to_string()))?;
    let info = Info::decode(info).map_err(unreadable)?;
    let shape = known.shape;
    if (info.chunk, info.units, info.lines) != (shape.sectors_per_chunk(), shape.units(), shape.lines()) {
        return Err(MountError::DoesNotFit(format!(
            "the zones were made on {} units of {} chunks of {} sectors, but are opened on {} of {} of {}: lease the units they were \
             made on",
            info.units,
            info.lines,
            info.chunk,
            shape.units(),
            shape.lines(),
            shape.sectors_per_chunk()
        )));
    }
    pages.newest_generation = pages.newest_generation.max(Generation(info.generation));
    Ok((Some(Found { info, serial, instance, sections, log }), pages))
}

type Places = BTreeMap<Serial, Vec<Ppa>>;

/// Where the pages of each checkpoint are.
fn checkpoint_places(
    media: &mut Media<'_>,
    known: &Known<'_>,
    pages: &mut Pages,
) -> Result<Places, MountError> {
    let Known { geometry, shape, survey } = known;
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

type Whole = (Serial, InstanceId, Sections);

fn newest_whole(
    media: &mut Media<'_>,
    known: &Known<'_>,
    places: &Places,
) -> Result<Option<Whole>, MountError> {
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
    let Known { geometry, shape, survey } = known;
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
    unknown.map_or(Ok(log), |error| Err(MountError::Unreadable(error.to_string())))
}

/// The zone table: the checkpoint's, and what the log has behind it.
///
/// # Errors
/// If they contradict each other.
pub fn replay(found: Found, sizes: &Sizes, shape: &Shape) -> Result<Loaded, MountError> {
    let Found { info, serial, instance, sections, log } = found;
    let unreadable = |error: &dyn std::fmt::Display| MountError::Unreadable(error.to_string());
    let zones = sections.get(ZONES).map_err(|error| unreadable(&error))?;
    let mut table = decode_zones(zones, sizes, shape.chunks()).ok_or_else(|| {
        unreadable(&"the zone table of the checkpoint names what the instance does not have: it was written by another program")
    })?;
    let tails = sections.get(TAILS).map_err(|error| unreadable(&error))?;
    let (tails, _) = tails.as_chunks::<4>();
    table.tails = tails.iter().map(|bytes| ChunkIndex(u32::from_le_bytes(*bytes))).collect();
    let mut pages = Replay::default();
    log.into_iter().filter(|page| page.instance == instance).for_each(|page| pages.add(page));
    let applied = TransactionId(info.applied);
    let replayed = pages.run(info.start, Generation(info.generation), applied);
    let replayed = replayed.map_err(|error| unreadable(&error))?;
    for transaction in &replayed.transactions {
        for entry in &transaction.entries {
            table.replay(entry, sizes, shape.chunks()).map_err(|error| unreadable(&error))?;
        }
    }
    if table.tails.iter().any(|chunk| chunk.0 >= shape.chunks()) {
        return Err(unreadable(
            &"a chunk of tails is none of the instance: it was written by another program",
        ));
    }
    Ok(Loaded {
        instance,
        info,
        kept: Kept { serial, start: info.start },
        table,
        end: replayed.end,
        applied: replayed.transactions.last().map_or(applied, |last| last.id),
        log_pages: replayed.pages,
        transactions: u64::try_from(replayed.transactions.len()).expect("an index"),
    })
}
