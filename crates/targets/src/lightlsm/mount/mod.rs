//! Mounting: an instance is made on fresh units, or recovered, which may be cut short at any command and begun again.
//!
//! Survey, identify, checkpoint, log, then a checkpoint of a new generation, before which nothing that recovery read is reset
//! or written over. Tables are not read: a mount takes as long as the log, the checkpoint and a sector of each chunk. Linear
//! code; commands go to the device in batches. Deliberately not here: anything a running instance does; the last step is the
//! running instance's own checkpoint.

mod load;
mod shelve;

use super::canary::Canary;
use super::catalog::Catalog;
use super::flight::Purpose;
use super::medium::Medium;
use super::meetings::Meetings;
use super::options::Options;
use super::placement::Placer;
use super::read::Reads;
use super::requests::{REQUESTS_MAX, Requests};
use super::shelf::Shelf;
use super::sizes::Sizes;
use super::space::{Role, Space};
use super::state::{Changes, LightLsm};
use super::stats::LightLsmStats;
use crate::chunk_wear::ChunkWear;
use crate::flight::{COMMANDS_MAX, Flight};
use crate::journal::{Journal, JournalSizes, NewJournal, PageKind, PagePoints, reach_of_loss};
use crate::mount_error::MountError;
use crate::plane_reads::PlaneRule;
use crate::recovery::found::{Known, Pages};
use crate::recovery::groups;
use crate::recovery::media::Media;
use crate::recovery::survey::Survey;
use load::{Recovered, load};
use ocssd_base::Prng;
use ocssd_ftl::{
    AppendConfig, ChunkIndex, ChunkPool, ChunkUse, InstanceGeometry, InstanceId, SectorTag, TAG_BYTES,
};
use ocssd_lightnvm::{BlockingDevice, BufId, Buffers, ChunkState, Command, Geometry, PuId};
use std::collections::{BTreeSet, VecDeque};

/// Units of padding on their way at once (chosen: as many as a drive has units).
const PADDINGS_MAX: usize = 32;

/// What a mount did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountReport {
    /// A new instance was made.
    pub is_new: bool,
    /// Tables and logs there are.
    pub tables: usize,
    /// Tables that were not published when the power went.
    pub dropped: usize,
    /// Sectors read in all.
    pub sectors_read: u64,
    /// Sectors of padding written, so that what was written last can be read.
    pub sectors_padded: u64,
    /// Chunks that are offline.
    pub bad_chunks: u32,
    /// Pages of the log that were replayed.
    pub log_pages: u64,
    /// Transactions in them that the checkpoint did not have.
    pub transactions: u64,
    /// Entries of a transaction that the end of the log aborted.
    pub aborted_entries: usize,
    /// Sectors of the checkpoint that ended the mount.
    pub checkpoint_sectors: u64,
}

impl LightLsm {
    /// Makes an instance on fresh units, or recovers the one that is there.
    ///
    /// # Errors
    /// [`MountError`] if the units cannot carry one, it cannot be read, the drive fails or the power goes.
    pub fn mount(
        device: &mut dyn BlockingDevice,
        units: &[PuId],
        options: &Options,
    ) -> Result<(Self, MountReport), MountError> {
        let geometry = device.geometry().clone();
        let shape = InstanceGeometry::new(&geometry, units);
        let fits =
            |good, kept| Sizes::new(&geometry, &shape, options, good, kept).map_err(MountError::DoesNotFit);
        let mut media = Media::new(device);
        if options.medium == Medium::Extents {
            media = media.without_tags();
        } else {
            media.settle_reports(&shape)?;
        }
        let mut survey = Survey::new(&media, &shape);
        let good = survey.good();
        let is_used =
            survey.iter().any(|(_, found)| matches!(found.state, ChunkState::Open | ChunkState::Closed));
        if !is_used {
            // Before anything is written.
            fits(good, None)?;
        }
        options.check().map_err(MountError::DoesNotFit)?;
        find_pages(&mut media, &shape, &mut survey, options)?;
        let is_log_ignored = options.has_canary(Canary::LogNotReplayed);
        let known = Known { geometry: &geometry, shape: &shape, survey: &survey, lost_log: None };
        let (found, pages) = load(&mut media, &known, is_log_ignored)?;
        let sizes = fits(good, found.as_ref().map(|found| found.info.kept))?;
        if let Some(found) = found.as_ref().filter(|_| !options.has_canary(Canary::WindowForgotten)) {
            let ends = shelve::ends(&found.catalog, sizes.unit, geometry.mw_cunits);
            match options.medium {
                Medium::Chunks => survey.pad(&mut media, &shape, &ends)?,
                Medium::Extents if options.has_canary(Canary::ContentGuessed) => {}
                Medium::Extents => survey.believe(&geometry, &ends),
            }
        }
        let (sectors_read, sectors_padded) = media.end();
        let replayed = found.as_ref().map_or((0, 0, 0), |found| found.replayed);
        let mut report = MountReport {
            is_new: found.is_none(),
            tables: found.as_ref().map_or(0, |found| found.catalog.iter().count()),
            dropped: found.as_ref().map_or(0, |found| found.dropped),
            sectors_read,
            sectors_padded,
            bad_chunks: shape.chunks() - good,
            log_pages: replayed.0,
            transactions: replayed.1,
            aborted_entries: replayed.2,
            checkpoint_sectors: 0,
        };
        let groups = groups(&geometry, units);
        let wear_index = wear_index(device, &shape, options.medium);
        let parts = Mounting {
            geometry: geometry.clone(),
            shape: shape.clone(),
            groups,
            sizes,
            survey,
            pages,
            wear_index,
        };
        let mut target = assemble(device, options, parts, found);
        first_checkpoint(device, &mut target)?;
        report.checkpoint_sectors = target.stats.checkpoint_written;
        Ok((target, report))
    }
}

/// Finds chunks of pages, and makes all of them readable.
fn find_pages(
    media: &mut Media<'_>,
    shape: &InstanceGeometry,
    survey: &mut Survey,
    options: &Options,
) -> Result<(), MountError> {
    let geometry = media.device.geometry().clone();
    let first = |written: u32| geometry.ws_min.min(written) + geometry.mw_cunits;
    let open = survey.iter().filter(|(_, found)| found.is_open());
    let firsts: Vec<(ChunkIndex, u32)> = open.map(|(chunk, found)| (chunk, first(found.written))).collect();
    survey.pad(media, shape, &firsts)?;
    survey.identify(media, shape, ChunkIndex(shape.chunks()))?;
    if options.has_canary(Canary::WindowForgotten) {
        return Ok(());
    }
    let windows = survey.windows(&geometry, |found| found.pages().is_some());
    survey.pad(media, shape, &windows)
}

/// What a mount has found out.
struct Mounting {
    geometry: Geometry,
    shape: InstanceGeometry,
    groups: Vec<u32>,
    sizes: Sizes,
    survey: Survey,
    pages: Pages,
    /// What the drive says of the wear of each chunk; nothing of extents.
    wear_index: Vec<u8>,
}

fn wear_index(device: &dyn BlockingDevice, shape: &InstanceGeometry, medium: Medium) -> Vec<u8> {
    let counted = if medium == Medium::Chunks { shape.chunks() } else { 0 };
    (0..counted).map(|chunk| device.chunk(shape.chunk_id(ChunkIndex(chunk))).wear_index).collect()
}

fn config(sizes: &Sizes, options: &Options, width: u32) -> AppendConfig {
    AppendConfig {
        chunk_sectors: sizes.chunk,
        mw_cunits: sizes.mw_cunits,
        width,
        depth: options.writes_per_unit,
    }
}

fn journal_sizes(sizes: &Sizes, options: &Options, sector_bytes: u32) -> JournalSizes {
    JournalSizes {
        chunk: sizes.chunk,
        mw_cunits: sizes.mw_cunits,
        reach: reach_of_loss(sizes.unit, sizes.mw_cunits),
        depth: options.writes_per_unit,
        page: sizes.page,
        unit: sizes.unit,
        sector_bytes,
        log_width: sizes.log_width,
        checkpoint_width: sizes.checkpoint_width,
        copies: options.log_copies,
        interval_pages: sizes.interval_pages,
        log_pages_max: sizes.log_pages_max,
    }
}

fn journal(
    buffers: &mut Buffers,
    options: &Options,
    mounting: &Mounting,
    found: Option<&Recovered>,
) -> Journal {
    let Mounting { geometry, shape, sizes, pages, .. } = mounting;
    let named = InstanceId::new(Prng::new(options.seed).split("instance").next_u64());
    let newest = (pages.newest_generation, pages.newest_serial);
    let new = NewJournal { named, found: found.map(|found| found.end), newest };
    let sizes = journal_sizes(sizes, options, geometry.sector_bytes);
    Journal::new(&sizes, PagePoints::new(shape, &sizes), &new, buffers)
}

fn assemble(
    device: &mut dyn BlockingDevice,
    options: &Options,
    mounting: Mounting,
    found: Option<Recovered>,
) -> LightLsm {
    let buffers = device.buffers();
    let mut journal = journal(buffers, options, &mounting, found.as_ref());
    let mut space = space(&mounting, found.as_ref());
    let Mounting { geometry, groups, sizes, survey, .. } = mounting;
    let next_number = found.as_ref().map_or(1, |found| found.next_number);
    let catalog = found.map_or_else(|| Catalog::new(sizes.unit, sizes.unit_bytes), |found| found.catalog);
    let mut shelf = Shelf::default();
    shelve::shelve(&catalog, &mut shelf, (&mut space, &sizes), &survey, buffers);
    let owned: BTreeSet<ChunkIndex> =
        shelf.objects.values().flat_map(|object| object.chunks.iter().copied()).collect();
    dispose(&mut space, &mut journal, &survey, &owned);
    let planes = PlaneRule::new(options.plane_reads, geometry.ws_opt);
    LightLsm {
        options: options.clone(),
        append: config(&sizes, options, 1),
        shelf,
        catalog,
        space,
        placer: Placer::new(options.placement, &groups),
        journal,
        requests: Requests::default(),
        reads: Reads::new(REQUESTS_MAX, sizes.unit, buffers),
        flight: Flight::<Purpose>::new(COMMANDS_MAX, planes),
        busy: BTreeSet::new(),
        unreserved: VecDeque::new(),
        edits: VecDeque::new(),
        syncs: Vec::new(),
        syncing: BTreeSet::new(),
        awaited: VecDeque::new(),
        leaving: Vec::new(),
        paddings: (0..PADDINGS_MAX).map(|_| fill(sizes.unit, buffers)).collect(),
        shutdown: None,
        is_shut_down: false,
        changes: Changes::Taken,
        next_number,
        resets: 0,
        closings: 0,
        is_mounting: true,
        work_due: true,
        reads_due: false,
        stats: LightLsmStats::default(),
        meetings: Meetings::new(u32::try_from(groups.len()).expect("fewer units than 2^32")),
        geometry,
        sizes,
    }
}

/// A unit of padding.
fn fill(unit: u32, buffers: &mut Buffers) -> BufId {
    let buffer = buffers.take(unit);
    for sector in 0..unit {
        let (data, oob) = buffers.sectors_mut(buffer, sector, 1);
        data.fill(0);
        oob.fill(0);
        oob[..TAG_BYTES].copy_from_slice(&SectorTag::PAD.encode(data));
    }
    buffer
}

/// How often each chunk was reset: what the checkpoint says, and the drive.
fn wear_of(mounting: &Mounting, found: Option<&Recovered>) -> ChunkWear<()> {
    if mounting.wear_index.is_empty() {
        return ChunkWear::new(None, &[], &[]);
    }
    ChunkWear::counting(found.map_or(&[][..], |found| &found.wear), &mounting.wear_index)
}

/// What each chunk is used for.
fn space(mounting: &Mounting, found: Option<&Recovered>) -> Space {
    let Mounting { shape, groups, sizes, survey, pages, .. } = mounting;
    let usage = |chunk: ChunkIndex| match survey.get(chunk).state {
        ChunkState::Offline => ChunkUse::Bad,
        ChunkState::Free => ChunkUse::Free,
        ChunkState::Open => ChunkUse::Open,
        ChunkState::Closed => ChunkUse::Closed,
    };
    let pool = ChunkPool::new(shape, groups, usage);
    let mut space = Space::new(shape.clone(), pool, wear_of(mounting, found), sizes);
    for (chunk, of) in survey.iter() {
        let is_written = matches!(of.state, ChunkState::Open | ChunkState::Closed);
        if let Some(kind) = of.pages().filter(|_| is_written && found.is_some()) {
            space.set_pages(chunk, Role::of(kind));
            space.has_page(chunk, pages.newest(chunk, kind));
        }
    }
    space
}

/// Open chunks of pages go on where they are; chunks that nobody needs are on their way to be free.
fn dispose(space: &mut Space, journal: &mut Journal, survey: &Survey, owned: &BTreeSet<ChunkIndex>) {
    for (chunk, found) in survey.iter() {
        if owned.contains(&chunk) || !matches!(found.state, ChunkState::Open | ChunkState::Closed) {
            continue;
        }
        let (_, unit) = space.shape.split_chunk(chunk);
        let kind = match space.role(chunk) {
            Role::Content => None,
            Role::Log => Some(PageKind::Log),
            Role::Checkpoint => Some(PageKind::Checkpoint),
        };
        match kind {
            None => space.dispose(chunk, found.written),
            Some(_) if found.state == ChunkState::Closed => {
                space.look_at_pages(chunk, journal.oldest());
            }
            Some(kind) => {
                if !journal.adopt(kind, chunk, unit, found.written) {
                    space.orphan(chunk, found.written);
                }
            }
        }
    }
}

/// The running instance writes its checkpoint, a batch of commands at a time; a new one two, so that one that the media lose
/// is never the only one.
fn first_checkpoint(device: &mut dyn BlockingDevice, target: &mut LightLsm) -> Result<(), MountError> {
    while !target.journal.has_two() {
        target.flight.wait(device)?;
        let mut commands: Vec<Command> = Vec::new();
        while let Some(command) = target.next_command(device.buffers()) {
            commands.push(command);
        }
        look_at(target)?;
        if commands.is_empty() {
            return Err(MountError::DoesNotFit(
                "no chunk is left for a checkpoint: too many chunks went bad; read what is there with the drive's own tools"
                    .to_owned(),
            ));
        }
        for completion in device.call(&commands)? {
            target.completed(device.now(), completion, device.buffers());
        }
        look_at(target)?;
    }
    target.is_mounting = false;
    target.space.dispose_orphans();
    target.work_due = true;
    Ok(())
}

fn look_at(target: &LightLsm) -> Result<(), MountError> {
    match target.changes {
        Changes::DriveFailed(status) => Err(MountError::Drive { what: "a write of a checkpoint", status }),
        Changes::Taken | Changes::NoSpare => Ok(()),
    }
}
