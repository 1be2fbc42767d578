//! The newest whole checkpoint, and the log behind it, as they lie on media.
//!
//! Deliberately not here: what their sections and records mean (the target's mount), what chunks are used for after that.

use super::log_pages::read_log;
use super::lost_log::LostLog;
use super::media::Media;
use super::survey::Survey;
use crate::journal::{Kept, PageKind};
use crate::mount_error::MountError;
use ocssd_base::Nanos;
use ocssd_ftl::checkpoint::{Checkpoints, PageIndex, Sections, Serial};
use ocssd_ftl::log::{Generation, Lsn, Record, Replay, Transaction, TransactionId};
use ocssd_ftl::{ChunkIndex, InstanceGeometry, InstanceId, Kind};
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
    pub(super) newest_in: BTreeMap<ChunkIndex, Lsn>,
    /// The checkpoints in each chunk.
    serials_in: BTreeMap<ChunkIndex, BTreeSet<Serial>>,
    /// When the log began to be read, and how many pages were.
    pub log_began: Nanos,
    pub log_pages_read: u64,
}

impl Pages {
    /// The number of the newest page of a chunk: of the log, or of a checkpoint. 0 if none could be read.
    pub fn newest(&self, chunk: ChunkIndex, kind: PageKind) -> u64 {
        match kind {
            PageKind::Log => self.newest_in.get(&chunk).map_or(0, |lsn| lsn.0),
            PageKind::Checkpoint => {
                self.serials_in.get(&chunk).and_then(BTreeSet::last).map_or(0, |serial| serial.0)
            }
        }
    }

    /// True if recovery from this checkpoint needs what a chunk of pages holds.
    pub fn is_needed(&self, chunk: ChunkIndex, kind: PageKind, kept: Kept) -> bool {
        match kind {
            PageKind::Log => self.newest_in.get(&chunk).is_some_and(|&newest| newest >= kept.start),
            PageKind::Checkpoint => {
                self.serials_in.get(&chunk).is_some_and(|serials| serials.contains(&kept.serial))
            }
        }
    }
}

/// What mount knows of the drive.
pub struct Known<'a> {
    pub geometry: &'a Geometry,
    pub shape: &'a InstanceGeometry,
    pub survey: &'a Survey,
    /// What is done where the log has lost pages; `None`: the mount fails, and there is no other way.
    pub lost_log: Option<LostLog>,
}

/// A whole checkpoint.
pub struct Found {
    pub serial: Serial,
    pub instance: InstanceId,
    pub sections: Sections,
}

/// Where replay from a checkpoint begins.
#[derive(Clone, Copy, Debug)]
pub struct ReplayFrom {
    /// The generation of the pages it begins with.
    pub generation: u64,
    /// The page it begins with.
    pub start: Lsn,
    /// The newest transaction that the checkpoint has.
    pub applied: u64,
}

/// Where the log that was found goes on.
#[derive(Clone, Copy, Debug)]
pub struct LogEnd {
    pub instance: InstanceId,
    /// The checkpoint before it.
    pub kept: Kept,
    /// The page after its last.
    pub end: Lsn,
    /// Its last transaction.
    pub applied: TransactionId,
}

/// The log behind a checkpoint.
pub struct FoundLog<E> {
    pub end: LogEnd,
    /// Transactions that the checkpoint does not have, in order.
    pub transactions: Vec<Transaction<E>>,
    /// Pages that count.
    pub pages: u64,
    /// Entries of a transaction that the end of the log aborted.
    pub aborted_entries: usize,
}

/// Finds the instance of a target of this name; none on units that never had one.
///
/// # Errors
/// If there was one and no checkpoint of it is whole, or the drive fails.
pub fn find<E: Record>(
    media: &mut Media<'_>,
    known: &Known<'_>,
    name: &str,
) -> Result<(Option<Found>, Pages), MountError> {
    let mut pages = Pages::default();
    let places = checkpoint_places(media, known, &mut pages)?;
    let newest = newest_whole(media, known.geometry, places)?;
    pages.log_began = media.device.now();
    let Some((serial, instance, sections)) = newest else {
        // The first checkpoint comes before the first request: without one nothing was ever answered.
        let log = read_log::<E>(media, known, &mut pages, Lsn(0))?;
        if pages.newest_serial > Serial(1) || !log.is_empty() {
            return Err(MountError::Unreadable(format!(
                "there was an instance of {name} on these units, but none of its checkpoints can be read; nothing was changed, \
                 and to use the units anew the target must be removed and its chunks reset"
            )));
        }
        return Ok((None, pages));
    };
    Ok((Some(Found { serial, instance, sections }), pages))
}

/// That an instance is opened on units like those it was made on: sectors of a chunk, units, and chunks of a unit.
///
/// # Errors
/// A sentence, if it is not.
pub fn check_units(
    shape: &InstanceGeometry,
    (chunk, units, lines): (u32, u32, u32),
) -> Result<(), MountError> {
    let found = (shape.sectors_per_chunk(), shape.units(), shape.lines());
    if (chunk, units, lines) == found {
        return Ok(());
    }
    Err(MountError::DoesNotFit(format!(
        "the instance was made on {units} units of {lines} chunks of {chunk} sectors, but is opened on {} of {} of {}: lease the \
         units it was made on",
        found.1, found.2, found.0
    )))
}

impl Found {
    /// The log behind the checkpoint.
    ///
    /// # Errors
    /// If pages of the log contradict each other, the media lost some and that is not accepted, or the drive fails.
    pub fn replay<E: Record>(
        self,
        media: &mut Media<'_>,
        known: &Known<'_>,
        from: ReplayFrom,
        pages: &mut Pages,
    ) -> Result<FoundLog<E>, MountError> {
        let Self { serial, instance, .. } = self;
        pages.log_began = media.device.now();
        let log = read_log::<E>(media, known, pages, from.start)?;
        pages.newest_generation = pages.newest_generation.max(Generation(from.generation));
        let mut found = Replay::default();
        log.into_iter().filter(|page| page.instance == instance).for_each(|page| found.add(page));
        let applied = TransactionId(from.applied);
        let replayed = found.run(from.start, Generation(from.generation), applied);
        let replayed = replayed.map_err(|error| MountError::Unreadable(error.to_string()))?;
        LostLog::judge(known.lost_log, replayed.end, replayed.lost_before)?;
        let last = replayed.transactions.last().map_or(applied, |last| last.id);
        assert!(last >= applied, "transaction {} was logged after {}", last.0, applied.0);
        assert!(replayed.end >= from.start, "the log ends before it begins");
        let kept = Kept { serial, start: from.start };
        Ok(FoundLog {
            end: LogEnd { instance, kept, end: replayed.end, applied: last },
            transactions: replayed.transactions,
            pages: replayed.pages,
            aborted_entries: replayed.aborted_entries,
        })
    }
}

/// The first sectors of the pages of each checkpoint, and which pages they are said to be.
pub type Places = BTreeMap<Serial, Vec<(PageIndex, Ppa)>>;

/// Where the pages of each checkpoint are.
fn checkpoint_places(
    media: &mut Media<'_>,
    known: &Known<'_>,
    pages: &mut Pages,
) -> Result<Places, MountError> {
    let Known { geometry, shape, survey, .. } = known;
    let found = survey.pages(geometry, shape, PageKind::Checkpoint, geometry.ws_opt);
    let firsts: Vec<Ppa> = found.iter().map(|&(_, ppa)| ppa).collect();
    let tags = media.read_tags(&firsts)?;
    let mut places = Places::new();
    for (&(chunk, ppa), tag) in found.iter().zip(tags) {
        let Some(tag) = tag.filter(|tag| tag.kind == Kind::Map) else { continue };
        let serial = Serial(tag.sequence.0);
        pages.newest_serial = pages.newest_serial.max(serial);
        pages.serials_in.entry(chunk).or_default().insert(serial);
        // A tag that is whole and says otherwise is no page's.
        let Ok(index) = u32::try_from(tag.block) else { continue };
        places.entry(serial).or_default().push((PageIndex(index), ppa));
    }
    Ok(places)
}

/// A checkpoint, whose it is, and what it holds.
pub type Whole = (Serial, InstanceId, Sections);

/// The newest whole checkpoint; pages of older ones are not read. Its own are read in the order in which they make the image, which
/// is that in which they were striped over chunks.
///
/// # Errors
/// If the drive fails.
pub fn newest_whole(
    media: &mut Media<'_>,
    geometry: &Geometry,
    places: Places,
) -> Result<Option<Whole>, MountError> {
    for (serial, mut pages) in places.into_iter().rev() {
        pages.sort_unstable();
        let firsts: Vec<Ppa> = pages.into_iter().map(|(_, ppa)| ppa).collect();
        let (mut found, mut instance) = (Checkpoints::of_pages(firsts.len()), None);
        media.read_pages(&firsts, geometry.ws_opt, |_, bytes| {
            if let Some(Ok(page)) = bytes.map(|bytes| found.take(bytes)) {
                instance = Some(page.instance);
            }
        })?;
        if let (Some(instance), Ok(sections)) = (instance, found.assemble(serial)) {
            return Ok(Some((serial, instance, sections)));
        }
    }
    Ok(None)
}
