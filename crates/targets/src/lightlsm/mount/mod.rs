//! Mounting: an instance is made on fresh units, or recovered, which may be cut short at any command and begun again.
//!
//! Survey, identify, checkpoint, log, then a checkpoint of a new generation, before which nothing that recovery read is reset
//! or written over. Tables are not read: a mount takes as long as the log, the checkpoint and a sector of each chunk. Linear
//! code; commands go to the device in batches. Deliberately not here: anything a running instance does; the last step is the
//! running instance's own checkpoint.

mod load;
mod shelve;
mod survey;

use super::canary::Canary;
use super::catalog::Catalog;
use super::flight::Purpose;
use super::journal::Journal;
use super::options::Options;
use super::placement::Placer;
use super::read::Reads;
use super::requests::{REQUESTS_MAX, Requests};
use super::shelf::Shelf;
use super::sizes::Sizes;
use super::space::{Role, Space};
use super::state::{Changes, LightLsm};
use super::stats::LightLsmStats;
use crate::flight::{COMMANDS_MAX, Flight};
use crate::mount_error::MountError;
use crate::ox::mount::media::Media;
use crate::ox::page_io::PageIo;
use crate::plane_reads::PlaneRule;
use load::{Known, Pages, Recovered, load};
use ocssd_base::Prng;
use ocssd_ftl::log::{Generation, Log, LogConfig, Lsn, TransactionId};
use ocssd_ftl::{
    AppendConfig, AppendPoint, ChunkIndex, ChunkPool, ChunkUse, InstanceId, SectorTag, Shape, TAG_BYTES,
    UnitIndex,
};
use ocssd_lightnvm::{BlockingDevice, BufId, Buffers, ChunkState, Command, Geometry, PuId};
use std::collections::{BTreeSet, VecDeque};
use survey::{FoundChunk, Survey};

/// Units of fill on their way at once (chosen: as many as a drive has units).
const FILLS: usize = 32;

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
    /// Sectors of fill written, so that what was written last can be read.
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
        let shape = Shape::new(&geometry, units);
        let fits =
            |good, kept| Sizes::new(&geometry, &shape, options, good, kept).map_err(MountError::DoesNotFit);
        let mut media = Media::new(device);
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
        let known = Known { geometry: &geometry, shape: &shape, survey: &survey, is_log_ignored };
        let (found, pages) = load(&mut media, &known)?;
        let sizes = fits(good, found.as_ref().map(|found| found.info.kept))?;
        if let Some(found) = found.as_ref().filter(|_| !options.has_canary(Canary::WindowForgotten)) {
            survey.make_readable(&mut media, &shape, &shelve::ends(&found.catalog, sizes.unit))?;
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
        let parts =
            Mounting { geometry: geometry.clone(), shape: shape.clone(), groups, sizes, survey, pages };
        let mut target = assemble(device, options, parts, found);
        first_checkpoint(device, &mut target)?;
        report.checkpoint_sectors = target.stats.checkpoint_written;
        Ok((target, report))
    }
}

/// Finds chunks of pages, and makes all of them readable.
fn find_pages(
    media: &mut Media<'_>,
    shape: &Shape,
    survey: &mut Survey,
    options: &Options,
) -> Result<(), MountError> {
    let ws_min = media.device.geometry().ws_min;
    let firsts: Vec<(ChunkIndex, u32)> = survey
        .iter()
        .filter(|(_, found)| found.state == ChunkState::Open)
        .map(|(chunk, found)| (chunk, ws_min.min(found.written)))
        .collect();
    survey.make_readable(media, shape, &firsts)?;
    survey.identify(media, shape)?;
    if options.has_canary(Canary::WindowForgotten) {
        return Ok(());
    }
    let is_pages = |found: &FoundChunk| matches!(found.role, Some(Role::Log | Role::Checkpoint));
    let pages: Vec<(ChunkIndex, u32)> = survey
        .iter()
        .filter(|(_, found)| found.state == ChunkState::Open && is_pages(found))
        .map(|(chunk, found)| (chunk, found.written))
        .collect();
    survey.make_readable(media, shape, &pages)
}

/// The group of each unit, counted densely.
fn groups(geometry: &Geometry, units: &[PuId]) -> Vec<u32> {
    let mut seen: Vec<u32> = Vec::new();
    let of = units.iter().map(|unit| {
        let group = unit.0 / geometry.pus_per_group;
        let at = seen.iter().position(|&other| other == group).unwrap_or_else(|| {
            seen.push(group);
            seen.len() - 1
        });
        u32::try_from(at).expect("fewer groups than 2^32")
    });
    of.collect()
}

/// What a mount has found out.
struct Mounting {
    geometry: Geometry,
    shape: Shape,
    groups: Vec<u32>,
    sizes: Sizes,
    survey: Survey,
    pages: Pages,
}

fn config(sizes: &Sizes, options: &Options, width: u32) -> AppendConfig {
    AppendConfig {
        chunk_sectors: sizes.chunk,
        mw_cunits: sizes.mw_cunits,
        width,
        depth: options.writes_per_unit,
    }
}

fn journal(
    buffers: &mut Buffers,
    options: &Options,
    mounting: &Mounting,
    found: Option<&Recovered>,
) -> Journal {
    let Mounting { geometry, shape, sizes, pages, .. } = mounting;
    let all: Vec<UnitIndex> = (0..shape.units()).map(UnitIndex).collect();
    let named = InstanceId::new(Prng::new(options.seed).split("instance").next_u64());
    let instance = found.map_or(named, |found| found.instance);
    let generation = Generation(pages.newest_generation.0 + 1);
    let (first, tail) = found.map_or((Lsn(1), Lsn(1)), |found| (found.end, found.whole.start));
    let old_pages = u32::try_from(first.0 - tail.0).expect("a log is bounded");
    let page_bytes = sizes.page * geometry.sector_bytes;
    let depth = sizes.log_width;
    // Pages of a mount with a longer interval may be there still.
    let pages_max = sizes.log_pages_max.max(old_pages + sizes.interval_pages + 2 * depth);
    let copies = options.log_copies;
    Journal {
        instance,
        generation: generation.0,
        log: Log::new(LogConfig { instance, generation, first, tail, page_bytes, depth, copies, pages_max }),
        log_io: PageIo::new(sizes.page, depth * copies, buffers),
        log_point: AppendPoint::new(config(sizes, options, sizes.log_width), &all),
        checkpoint_io: PageIo::new(sizes.unit, 2 * sizes.checkpoint_width, buffers),
        checkpoint_point: AppendPoint::new(config(sizes, options, sizes.checkpoint_width), &all),
        current: found.map(|found| found.whole),
        previous: None,
        next: pages.newest_serial.next(),
        writer: None,
        start: Lsn(0),
        last: found.map_or(TransactionId(0), |found| found.applied),
    }
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
        fills: (0..FILLS).map(|_| fill(sizes.unit, buffers)).collect(),
        shutdown: None,
        is_shut_down: false,
        changes: Changes::Taken,
        next_number,
        resets: 0,
        closings: 0,
        is_mounting: true,
        work_due: true,
        stats: LightLsmStats::default(),
        geometry,
        sizes,
    }
}

/// A unit of fill.
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

/// What each chunk is used for.
fn space(mounting: &Mounting, found: Option<&Recovered>) -> Space {
    let Mounting { shape, groups, sizes, survey, pages, .. } = mounting;
    let usage = |chunk: ChunkIndex| match survey.get(chunk).state {
        ChunkState::Offline => ChunkUse::Bad,
        ChunkState::Free => ChunkUse::Free,
        ChunkState::Open => ChunkUse::Open,
        ChunkState::Closed => ChunkUse::Closed,
    };
    let mut space = Space::new(shape.clone(), ChunkPool::new(shape, groups, usage), sizes);
    for (chunk, FoundChunk { state, role, .. }) in survey.iter() {
        let is_written = matches!(state, ChunkState::Open | ChunkState::Closed);
        if let Some(role @ (Role::Log | Role::Checkpoint)) = *role
            && is_written
            && found.is_some()
        {
            space.set_pages(chunk, role);
            let serial = pages.serials_in.get(&chunk).and_then(|serials| serials.last());
            let newest = match role {
                Role::Log => pages.newest_in.get(&chunk).map(|lsn| lsn.0),
                Role::Checkpoint | Role::Content => serial.map(|serial| serial.0),
            };
            space.has_page(chunk, newest.unwrap_or(0));
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
        let point = match space.role(chunk) {
            Role::Content => None,
            Role::Log => Some(&mut journal.log_point),
            Role::Checkpoint => Some(&mut journal.checkpoint_point),
        };
        match point {
            None => space.dispose(chunk, found.written),
            Some(_) if found.state == ChunkState::Closed => {
                let oldest = journal.current.map_or(0, |whole| whole.serial.0);
                space.look_at_pages(chunk, journal.log.tail().0, oldest);
            }
            Some(point) => {
                if !point.adopt(chunk, unit, found.written) {
                    space.orphan(chunk, found.written);
                }
            }
        }
    }
}

/// The running instance writes its checkpoint, a batch of commands at a time; a new one two, so that one that the media lose
/// is never the only one.
fn first_checkpoint(device: &mut dyn BlockingDevice, target: &mut LightLsm) -> Result<(), MountError> {
    while target.journal.previous.is_none() {
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
            target.completed(&completion, device.buffers());
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
