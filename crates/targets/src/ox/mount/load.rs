//! The newest whole checkpoint, and the log behind it.
//!
//! Deliberately not here: what chunks are used for after that (`mod`).

use super::media::Media;
use super::survey::Survey;
use crate::mount_error::MountError;
use crate::ox::checkpoint::{INFO, Info, Kept};
use crate::ox::options::Options;
use crate::ox::space::Role;
use crate::ox::store::Store;
use ocssd_base::Nanos;
use ocssd_ftl::checkpoint::{CheckpointPage, Checkpoints, Sections, Serial};
use ocssd_ftl::log::{Generation, LogPage, Lsn, PageError, Replay, TransactionId};
use ocssd_ftl::{ChunkIndex, InstanceId, Shape};
use ocssd_lightnvm::{Geometry, Ppa};
use std::collections::{BTreeMap, BTreeSet};

/// An instance as recovery found it.
pub struct Recovered<S: Store> {
    pub instance: InstanceId,
    pub info: Info,
    pub kept: Kept,
    pub map: S::Map,
    /// The page after the last of the log.
    pub end: Lsn,
    pub applied: TransactionId,
    /// Pages, transactions, and entries that were aborted by the end of the log.
    pub replayed: (u64, u64, usize),
}

/// What of it is needed once its map was taken.
#[derive(Clone, Copy)]
pub struct KnownInstance {
    pub instance: InstanceId,
    pub kept: Kept,
    pub end: Lsn,
    pub applied: TransactionId,
    pub sequence: u64,
}

impl<S: Store> Recovered<S> {
    /// All but the map.
    pub const fn known(&self) -> KnownInstance {
        let Self { instance, kept, end, applied, .. } = *self;
        KnownInstance { instance, kept, end, applied, sequence: self.info.sequence }
    }
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
    /// When the log began to be read, and how many pages were.
    pub log_began: Nanos,
    pub log_pages_read: u64,
    /// The checkpoints in each chunk.
    pub serials_in: BTreeMap<ChunkIndex, BTreeSet<Serial>>,
}

/// What mount knows of the drive.
pub struct Known<'a> {
    pub geometry: &'a Geometry,
    pub shape: &'a Shape,
    pub survey: &'a Survey,
    pub options: &'a Options,
}

/// Finds the instance; none on units that never had one.
///
/// # Errors
/// If there was one and no checkpoint of it is whole, or the drive fails.
pub fn load<S: Store>(
    media: &mut Media<'_>,
    known: &Known<'_>,
) -> Result<(Option<Recovered<S>>, Pages), MountError> {
    let mut pages = Pages::default();
    let places = checkpoint_places(media, known, &mut pages)?;
    let newest = newest_whole(media, known, &places)?;
    pages.log_began = media.device.now();
    let log = read_log::<S>(media, known, &mut pages)?;
    let Some((serial, instance, sections)) = newest else {
        // The first checkpoint comes before the first request: without one nothing was ever answered.
        if pages.newest_serial > Serial(1) || !log.is_empty() {
            return Err(MountError::Unreadable(format!(
                "there was an instance of {} on these units, but none of its checkpoints can be read; nothing was changed, and \
                 to use the units anew the target must be removed and its chunks reset",
                S::NAME
            )));
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
        let Some(tag) = tag.filter(|tag| tag.kind == ocssd_ftl::Kind::Map) else { continue };
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

fn read_log<S: Store>(
    media: &mut Media<'_>,
    known: &Known<'_>,
    pages: &mut Pages,
) -> Result<Vec<LogPage<S::Entry>>, MountError> {
    let Known { geometry, shape, survey, .. } = known;
    let found = survey.pages(geometry, shape, Role::Log, geometry.ws_min);
    let firsts: Vec<Ppa> = found.iter().map(|&(_, ppa)| ppa).collect();
    pages.log_pages_read = u64::try_from(firsts.len()).expect("an index");
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

fn recover<S: Store>(
    known: &Known<'_>,
    pages: &mut Pages,
    (serial, instance): (Serial, InstanceId),
    sections: &Sections,
    log: Vec<LogPage<S::Entry>>,
) -> Result<Recovered<S>, MountError> {
    let unreadable = |sentence: String| MountError::Unreadable(sentence);
    let info = sections.get(INFO).map_err(|error| unreadable(error.to_string()))?;
    let info = Info::decode(info).map_err(unreadable)?;
    let shape = known.shape;
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
    let mut map = S::load_map(sections, known.geometry, shape, info.blocks).map_err(unreadable)?;
    let mut found = Replay::default();
    log.into_iter().filter(|page| page.instance == instance).for_each(|page| found.add(page));
    let applied = TransactionId(info.applied);
    let replayed = found.run(info.start, Generation(info.generation), applied);
    let replayed = replayed.map_err(|error| unreadable(error.to_string()))?;
    for transaction in &replayed.transactions {
        if !S::replay(&mut map, &transaction.entries, shape, known.options) {
            return Err(unreadable(format!(
                "transaction {} in the log names blocks or places that the instance does not have: the log was written by a \
                 program with a defect",
                transaction.id.0
            )));
        }
    }
    // What was reset since can only be named by a map whose log the media lost.
    S::retain(&mut map, shape, &|place| {
        let (chunk, sector) = shape.chunk_of(place);
        sector < known.survey.readable(known.geometry, chunk)
    });
    let count = u64::try_from(replayed.transactions.len()).expect("an index");
    Ok(Recovered {
        instance,
        info,
        kept: Kept { serial, start: info.start },
        map,
        end: replayed.end,
        applied: replayed.transactions.last().map_or(applied, |last| last.id),
        replayed: (replayed.pages, count, replayed.aborted_entries),
    })
}
