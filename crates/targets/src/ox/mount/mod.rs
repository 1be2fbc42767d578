//! Mounting: an instance is made on fresh units, or recovered, which may be cut short at any command and begun again.
//!
//! Survey, identify, checkpoint, log, then a checkpoint of a new generation, before which nothing that recovery read is
//! reset or written over: so a recovery that is cut leaves what it found. Linear code; commands go to the device in batches.
//! Deliberately not here: anything a running instance does; the last step is the running instance's own checkpoint.

mod load;

use super::canary::Canary;
use super::collect::GarbageCollection;
use super::group_commit::GroupCommit;
use super::options::Options;
use super::retry::Retries;
use super::sizes::Sizes;
use super::space::{Live, Role, Space};
use super::state::{Changes, Ending, Ox};
use super::stats::OxStats;
use super::store::Store;
use super::write_buffer::{BufferUnitId, BufferUnitOf, WriteBuffer};
use crate::flight::{COMMANDS_MAX, Flight};
use crate::journal::{Journal, JournalSizes, Kept, NewJournal, PageKind, PagePoints};
use crate::kept_size::KeptSize;
use crate::mount_error::MountError;
use crate::plane_reads::PlaneRule;
use crate::recovery::found::{Known, Pages};
use crate::recovery::groups;
use crate::recovery::lost_log::LostLog;
use crate::recovery::media::Media;
use crate::recovery::survey::{FoundChunk, Holds, Survey};
use load::{Recovered, load};
use ocssd_base::{Nanos, Prng, usize_of};
use ocssd_ftl::log::TransactionId;
use ocssd_ftl::{
    AppendConfig, AppendPoint, ChunkIndex, ChunkPool, ChunkUse, InstanceGeometry, InstanceId, UnitIndex,
};
use ocssd_lightnvm::{BlockingDevice, BufId, ChunkState, Command, Geometry, PuId};
use std::collections::VecDeque;
use std::fmt;

/// How long each phase of a mount took, on the drive's clock, in the order in which they come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Block metadata: what was written last is made readable, and one tag of each chunk in use is read. Which blocks are bad
    /// the drive's report says at once.
    pub blocks: Nanos,
    /// The newest whole checkpoint, and the map in it.
    pub checkpoint: Nanos,
    /// The log.
    pub log: Nanos,
    /// Open chunks that cannot go on are closed, and the new checkpoint is written.
    pub new_checkpoint: Nanos,
}

impl fmt::Display for Phases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |time: Nanos| format!("{}.{:03} ms", time.0 / 1_000_000, time.0 / 1_000 % 1_000);
        write!(
            f,
            "block metadata {}, checkpoint and map read {}, log replay {}, new checkpoint {}",
            millis(self.blocks),
            millis(self.checkpoint),
            millis(self.log),
            millis(self.new_checkpoint)
        )
    }
}

impl Phases {
    /// The phases between these times; the new checkpoint is still to be written.
    fn before_checkpoint([began, surveyed, log_began, loaded]: [Nanos; 4]) -> Self {
        Self {
            blocks: surveyed.saturating_since(began),
            checkpoint: log_began.saturating_since(surveyed),
            log: loaded.saturating_since(log_began),
            new_checkpoint: Nanos(0),
        }
    }
}

/// What a mount did, phase by phase, as OX printed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountReport {
    /// A new instance was made.
    pub is_new: bool,
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
    /// Pages of the log that were read, whether they count or not.
    pub log_pages_read: u64,
    /// How long it took.
    pub phases: Phases,
}

impl<S: Store> Ox<S> {
    /// Makes an instance on fresh units, or recovers the one that is there.
    ///
    /// # Errors
    /// [`MountError`] if the units cannot carry one, it cannot be read, the drive fails or the power goes.
    pub(crate) fn mount_with(
        device: &mut dyn BlockingDevice,
        units: &[PuId],
        options: &Options,
    ) -> Result<(Self, MountReport), MountError> {
        let geometry = device.geometry().clone();
        let shape = InstanceGeometry::new(&geometry, units);
        let groups = groups(&geometry, units);
        let group_count = groups.iter().max().map_or(0, |&last| last + 1);
        // Before anything is written.
        Sizes::new::<S>(&geometry, &shape, options, (shape.chunks(), group_count), Some(1))
            .map_err(MountError::DoesNotFit)?;
        let mut media = Media::new(device);
        media.settle_reports(&shape)?;
        let mut survey = Survey::new(&media, &shape);
        let good = survey.good();
        let began = media.device.now();
        if !options.has_canary(Canary::WindowForgotten) {
            let windows = survey.windows(&geometry, |_| true);
            survey.pad(&mut media, &shape, &windows)?;
        }
        survey.identify(&mut media, &shape, ChunkIndex(shape.chunks()))?;
        let surveyed = media.device.now();
        let lost_log = lost_log::<S>(options);
        let known = Known { geometry: &geometry, shape: &shape, survey: &survey, lost_log };
        let (found, pages) = load::<S>(&mut media, &known, options)?;
        let loaded = media.device.now();
        let mut options = options.clone();
        if let Some(found) = &found {
            S::take_over(&found.map, &mut options).map_err(MountError::DoesNotFit)?;
        }
        let options = &options;
        let sizes = sizes_of(&geometry, &shape, options, (good, group_count), found.as_ref())?;
        let journal_sizes = sizes.of_journal(options, geometry.sector_bytes);
        let mw_cunits = if options.has_canary(Canary::WindowIgnored) { 0 } else { journal_sizes.mw_cunits };
        let of_points = JournalSizes { mw_cunits, ..journal_sizes };
        let mut data_points = data_points(&geometry, &shape, (&of_points, sizes.map_width), &groups);
        let mut page_points = PagePoints::new(&shape, &journal_sizes);
        adopt(&mut media, &shape, &mut survey, (&mut data_points, &mut page_points), sizes.map_width > 0)?;
        let (sectors_read, sectors_padded) = media.end();
        let replayed = found.as_ref().map_or((0, 0, 0), |found| found.replayed);
        let mut report = MountReport {
            is_new: found.is_none(),
            sectors_read,
            sectors_padded,
            bad_chunks: shape.chunks() - good,
            log_pages: replayed.0,
            transactions: replayed.1,
            aborted_entries: replayed.2,
            checkpoint_sectors: 0,
            log_pages_read: pages.log_pages_read,
            phases: Phases::before_checkpoint([began, surveyed, pages.log_began, loaded]),
        };
        let parts = Mounting {
            geometry,
            shape,
            groups,
            sizes,
            journal_sizes,
            data_points,
            page_points,
            survey,
            pages,
        };
        let mut target = assemble(device, options, parts, found);
        first_checkpoint(device, &mut target)?;
        report.checkpoint_sectors = target.stats.checkpoint_written;
        report.phases.new_checkpoint = device.now().saturating_since(loaded);
        Ok((target, report))
    }
}

impl<S: Store> Ox<S> {
    /// The size that an instance which was there keeps, whatever this mount's options would make of a new one.
    pub(crate) fn kept_size(&self, report: &MountReport, geometry: &Geometry) -> Option<KeptSize> {
        let Self { space: Space { shape, pool, .. }, options, sizes, .. } = self;
        assert!(report.bad_chunks < shape.chunks(), "an instance on chunks that are all bad");
        let counts = (shape.chunks() - report.bad_chunks, pool.groups());
        let wanted = || Sizes::new::<S>(geometry, shape, options, counts, None).ok().map(|new| new.blocks);
        (!report.is_new).then(|| KeptSize {
            option: "over_provisioning_percent",
            what: "sectors of data",
            kept: sizes.blocks,
            wanted: wanted(),
        })
    }
}

/// The sizes of the instance that was found, or of a new one.
fn sizes_of<S: Store>(
    geometry: &Geometry,
    shape: &InstanceGeometry,
    options: &Options,
    (good, groups): (u32, u32),
    found: Option<&Recovered<S>>,
) -> Result<Sizes, MountError> {
    let blocks = found.map(|found| found.info.blocks);
    let sizes = Sizes::new::<S>(geometry, shape, options, (good, groups), blocks);
    let sizes = sizes.map_err(MountError::DoesNotFit)?;
    if found.is_some_and(|found| S::takes_more(&found.map)) && sizes.chunks_needed > good {
        return Err(MountError::DoesNotFit(format!(
            "pages of the map take {} chunks, but this instance was made without them and leaves room for {}: mount it without \
             map_cache_bytes",
            sizes.map_chunks,
            sizes.map_chunks.saturating_sub(sizes.chunks_needed - good)
        )));
    }
    Ok(sizes)
}

/// What is done where the log has lost pages.
fn lost_log<S: Store>(options: &Options) -> Option<LostLog> {
    if options.has_canary(Canary::LossUnnoticed) {
        return Some(LostLog::Drop);
    }
    S::CAN_DROP_LOG.then_some(options.lost_log)
}

/// Where data go.
fn data_points(
    geometry: &Geometry,
    shape: &InstanceGeometry,
    (sizes, map_width): (&JournalSizes, u32),
    groups: &[u32],
) -> Vec<AppendPoint<BufferUnitId>> {
    let all: Vec<UnitIndex> = (0..shape.units()).map(UnitIndex).collect();
    // The next group comes first, so that neighbours in a stripe share no channel.
    let mut stripe = all.clone();
    stripe.sort_by_key(|unit| (shape.pu(*unit).0 % geometry.pus_per_group, unit.0));
    let config = |units: &[UnitIndex]| AppendConfig {
        chunk_sectors: sizes.chunk,
        mw_cunits: sizes.mw_cunits,
        width: u32::try_from(units.len()).expect("fewer units than 2^32"),
        depth: sizes.depth,
    };
    let group_count = groups.iter().max().map_or(0, |&last| last + 1);
    let mut points = vec![AppendPoint::new(config(&stripe), &stripe)];
    for group in 0..group_count {
        let units: Vec<UnitIndex> =
            all.iter().copied().filter(|unit| groups[unit.index()] == group).collect();
        points.push(AppendPoint::new(config(&units), &units));
    }
    if map_width > 0 {
        points.push(AppendPoint::new(AppendConfig { width: map_width, ..config(&stripe) }, &stripe));
    }
    points
}

/// Open chunks go on where they are; those for which there is no place are written to their end, for an open chunk cannot be
/// reset.
fn adopt(
    media: &mut Media<'_>,
    shape: &InstanceGeometry,
    survey: &mut Survey,
    (data, pages): (&mut [AppendPoint<BufferUnitId>], &mut PagePoints),
    has_map_pages: bool,
) -> Result<(), MountError> {
    let (mut left, of_map) = (Vec::new(), data.len() - usize::from(has_map_pages));
    for (chunk, found) in survey.iter().filter(|(_, found)| found.is_open()) {
        let (_, unit) = shape.split_chunk(chunk);
        let adopt = |points: &mut [AppendPoint<BufferUnitId>]| {
            points.iter_mut().any(|point| point.adopt(chunk, unit, found.written))
        };
        let is_adopted = match found.holds {
            Some(Holds::Pages(kind)) => pages.adopt(kind, chunk, unit, found.written),
            Some(Holds::MapPages) => adopt(&mut data[of_map..]),
            // It may hold either.
            None if has_map_pages => false,
            Some(Holds::Content) | None => adopt(&mut data[..of_map]),
        };
        if !is_adopted {
            left.push((chunk, shape.sectors_per_chunk()));
        }
    }
    survey.pad(media, shape, &left)
}

/// What a mount has found out and made.
struct Mounting {
    geometry: Geometry,
    shape: InstanceGeometry,
    groups: Vec<u32>,
    sizes: Sizes,
    journal_sizes: JournalSizes,
    data_points: Vec<AppendPoint<BufferUnitId>>,
    page_points: PagePoints,
    survey: Survey,
    pages: Pages,
}

fn assemble<S: Store>(
    device: &mut dyn BlockingDevice,
    options: &Options,
    mounting: Mounting,
    recovered: Option<Recovered<S>>,
) -> Ox<S> {
    let Mounting { geometry, shape, groups, sizes, journal_sizes, data_points, page_points, survey, pages } =
        mounting;
    let group_count = groups.iter().max().map_or(0, |&last| last + 1);
    let found = recovered.as_ref().map(|found| found.end);
    let sequence = recovered.as_ref().map_or(0, |found| found.info.sequence);
    let map =
        recovered.map_or_else(|| S::new_map(&geometry, &shape, sizes.blocks, options), |found| found.map);
    let space = space::<S>(&shape, &groups, &sizes, &map, &survey, &pages, found.map(|found| found.kept));
    let named = InstanceId::new(Prng::new(options.seed).split("instance").next_u64());
    let applied = found.map_or(TransactionId(0), |found| found.applied);
    let buffers = device.buffers();
    let new = NewJournal { named, found, newest: (pages.newest_generation, pages.newest_serial) };
    let journal = Journal::new(&journal_sizes, page_points, &new, buffers);
    let store = S::new(map, &geometry, &sizes, options, buffers);
    let planes = PlaneRule::new(options.plane_reads, geometry.ws_opt);
    let mut take = |of: BufferUnitOf, sectors: u32| -> BufId {
        let is_whole = S::WHOLE || of == BufferUnitOf::Map;
        if is_whole { buffers.take_whole(sectors) } else { buffers.take(sectors) }
    };
    Ox {
        options: options.clone(),
        sector_bytes: geometry.sector_bytes,
        buffer: WriteBuffer::new(&sizes, group_count, &mut take),
        gc: GarbageCollection::new(sizes.unit, &space.shape, group_count, options, &mut |sectors| {
            take(BufferUnitOf::Data, sectors)
        }),
        group_commit: GroupCommit::new(sizes.page, options.log_copies, sizes.buffer_units),
        journal,
        flight: Flight::new(COMMANDS_MAX, planes),
        gathered: 0,
        commits: VecDeque::new(),
        urgent: VecDeque::new(),
        logged: VecDeque::new(),
        retries: Retries::new(COMMANDS_MAX),
        ending: Ending::No,
        changes: Changes::Taken,
        sequence,
        applied,
        durable: applied,
        resets: 0,
        is_mounting: true,
        work_due: true,
        now: device.now(),
        stats: OxStats::default(),
        store,
        space,
        data_points,
        sizes,
    }
}

/// What each chunk is used for.
fn space<S: Store>(
    shape: &InstanceGeometry,
    groups: &[u32],
    sizes: &Sizes,
    map: &S::Map,
    survey: &Survey,
    pages: &Pages,
    kept: Option<Kept>,
) -> Space<S::Live> {
    let live = S::live(map, shape);
    let is_needed = |chunk: ChunkIndex, found: &FoundChunk| match found.pages() {
        None => live.count(chunk) > 0,
        Some(kind) => kept.is_some_and(|kept| pages.is_needed(chunk, kind, kept)),
    };
    let usage = |chunk: ChunkIndex| {
        let found = survey.get(chunk);
        match found.state {
            ChunkState::Offline => ChunkUse::Bad,
            ChunkState::Free => ChunkUse::Free,
            ChunkState::Open => ChunkUse::Open,
            ChunkState::Closed if is_needed(chunk, found) => ChunkUse::Closed,
            ChunkState::Closed => ChunkUse::Dead,
        }
    };
    let pool = ChunkPool::new(shape, groups, usage);
    let uses: Vec<(ChunkIndex, ChunkUse)> = pool.iter().collect();
    let mut space = Space::new(shape.clone(), pool, sizes, live);
    let of_map = S::page_chunks(map, shape);
    for (chunk, of) in uses {
        let in_use = matches!(of, ChunkUse::Open | ChunkUse::Closed);
        if in_use && (survey.get(chunk).holds == Some(Holds::MapPages) || of_map.contains(&chunk)) {
            space.set_role(chunk, Role::Map);
        }
        match (of, survey.get(chunk).pages()) {
            (ChunkUse::Dead, _) => space.found_dead(chunk),
            (ChunkUse::Open | ChunkUse::Closed, Some(kind)) => {
                let role = match kind {
                    PageKind::Log => Role::Log,
                    PageKind::Checkpoint => Role::Checkpoint,
                };
                space.set_role(chunk, role);
                space.has_page(chunk, pages.newest(chunk, kind));
            }
            _ => {}
        }
    }
    space
}

/// The running instance writes its checkpoint, a batch of commands at a time; a new one two, so that one that the media lose
/// is never the only one.
fn first_checkpoint<S: Store>(device: &mut dyn BlockingDevice, target: &mut Ox<S>) -> Result<(), MountError> {
    while !target.journal.has_two() {
        target.flight.wait(device)?;
        let mut commands: Vec<Command> = Vec::new();
        while let Some(command) = target.next_command(device.buffers()) {
            commands.push(command);
        }
        if let Changes::DriveFailed(status) = target.changes {
            return Err(MountError::Drive { what: "a write of a checkpoint", status });
        }
        if commands.is_empty() {
            return Err(MountError::DoesNotFit(
                "no chunk is left for a checkpoint: too many chunks went bad; read what is there with the drive's own tools".to_owned(),
            ));
        }
        for completion in device.call(&commands)? {
            target.completed(device.now(), completion, device.buffers());
            assert!(usize_of(COMMANDS_MAX) >= target.flight.len(), "more commands than there is room");
        }
        if let Changes::DriveFailed(status) = target.changes {
            return Err(MountError::Drive { what: "a write of a checkpoint", status });
        }
    }
    target.is_mounting = false;
    target.work_due = true;
    Ok(())
}
