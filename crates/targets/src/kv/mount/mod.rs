//! Mounting: an instance is made on fresh units, or recovered, which may be cut short at any command and begun again.
//!
//! Survey, checkpoint, records behind it, then a checkpoint of the result, before which nothing that recovery read is reset
//! or written over: so a recovery that is cut leaves what it found. Linear code; commands go to the device in batches.
//!
//! If nothing lies behind the newest checkpoint, as after a shutdown, the mount writes none: the instance goes on as if it had
//! just written the one that was found. So a mount of what was shut down reads the index and writes nothing.
//!
//! If the media lost a page of the index that the records behind the checkpoint change, there is no checkpoint, for nobody could
//! say what it should have: all that recovery needs stays as it is, no changes are taken, and other keys are found.
//!
//! Deliberately not here: anything a running instance does; the last step is the running instance's own checkpoint.

mod counts;
mod load;
mod survey;

use super::buffer_units::BufferUnits;
use super::canary::Canary;
use super::checkpoint::CheckpointState;
use super::collect::GarbageCollection;
use super::copy_budget::CopyBudget;
use super::flight::Purpose;
use super::index::Index;
use super::index_pages::{IndexPages, page_record_bytes};
use super::long_values::LongValues;
use super::options::Options;
use super::queue::Queue;
use super::read::Reads;
use super::ready::Ready;
use super::record::UnitNumber;
use super::released::Released;
use super::sizes::Sizes;
use super::space::{Needed, Role, Space};
use super::state::{Changes, Kv, Points};
use super::stats::KvStats;
use crate::chunk_wear::ChunkWear;
use crate::flight::{COMMANDS_MAX, Flight};
use crate::journal::PageIo;
use crate::mount_error::MountError;
use crate::plane_reads::PlaneRule;
use crate::recovery::media::Media;
use load::{Known, Pages, Recovered, load};
use ocssd_base::Prng;
use ocssd_ftl::{
    AppendConfig, AppendPoint, ChunkIndex, ChunkPool, ChunkUse, InstanceGeometry, InstanceId, UnitIndex,
};
use ocssd_lightnvm::{BlockingDevice, ChunkState, Command, Geometry, PuId};
use std::collections::{BTreeMap, VecDeque};
use survey::{FoundChunk, Survey};

/// What a mount did.
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
    /// Units behind the checkpoint.
    pub units_replayed: u64,
    /// Records in them that the checkpoint did not have.
    pub records_replayed: u64,
    /// Records of changes that were cut short.
    pub records_dropped: u64,
    /// Pages of the index that are lost and that records behind the checkpoint change: the instance takes no changes.
    pub index_pages_lost: u64,
}

impl Kv {
    /// Makes an instance on fresh units, or recovers the one that is there.
    ///
    /// # Errors
    /// [`MountError`] if the units cannot carry one, it cannot be read, the drive fails or the power goes.
    pub fn mount(
        device: &mut dyn BlockingDevice,
        units: &[PuId],
        options: &Options,
    ) -> Result<(Self, MountReport), MountError> {
        let shape = InstanceGeometry::new(device.geometry(), units);
        // Before anything is written.
        Sizes::new(device.geometry(), &shape, options, shape.chunks(), None)
            .map_err(MountError::DoesNotFit)?;
        let mut media = Media::new(device);
        let settled = media.settle_reports(&shape);
        media.end();
        settled?;
        Self::mount_as_reported(device, units, options)
    }

    /// The same on a device that knows how far each of its chunks is written.
    ///
    /// # Errors
    /// As of [`Self::mount`].
    pub fn mount_as_reported(
        device: &mut dyn BlockingDevice,
        units: &[PuId],
        options: &Options,
    ) -> Result<(Self, MountReport), MountError> {
        let geometry = device.geometry().clone();
        let shape = InstanceGeometry::new(&geometry, units);
        // Before anything is written.
        Sizes::new(&geometry, &shape, options, shape.chunks(), None).map_err(MountError::DoesNotFit)?;
        let mut media = Media::new(device);
        let mut survey = Survey::new(&media, &shape);
        let good = survey.good();
        if !options.has_canary(Canary::WindowForgotten) {
            survey.make_readable(&mut media, &shape)?;
        }
        survey.identify(&mut media, &shape)?;
        let known = Known { geometry: &geometry, shape: &shape, survey: &survey, options };
        let (found, pages) = load(&mut media, &known)?;
        let promised = found.as_ref().map(|found| found.info.promised);
        let sizes = Sizes::new(&geometry, &shape, options, good, promised).map_err(MountError::DoesNotFit)?;
        let mut points = points(&shape, &sizes);
        adopt(&mut media, &shape, &mut survey, &mut points, sizes.streams())?;
        let (sectors_read, sectors_padded) = media.end();
        let count = |of: fn(&Recovered) -> u64| found.as_ref().map_or(0, of);
        let report = MountReport {
            is_new: found.is_none(),
            sectors_read,
            sectors_padded,
            bad_chunks: shape.chunks() - good,
            units_replayed: count(|found| found.units),
            records_replayed: count(|found| found.records),
            records_dropped: count(|found| found.dropped),
            index_pages_lost: count(|found| u64::try_from(found.lost_pages.len()).expect("a length")),
        };
        let space = space(&shape, &sizes, &survey, &pages, found.as_ref());
        let parts = Mounting { geometry, sizes, points, space, pages };
        let mut target = assemble(device, options, parts, found);
        first_checkpoint(device, &mut target)?;
        Ok((target, report))
    }
}

fn points(shape: &InstanceGeometry, sizes: &Sizes) -> Points {
    let all: Vec<UnitIndex> = (0..shape.units()).map(UnitIndex).collect();
    let config = |width, depth| AppendConfig {
        chunk_sectors: sizes.chunk,
        mw_cunits: sizes.mw_cunits,
        width,
        // Buffer units bound what is in flight.
        depth,
    };
    let stream = || AppendPoint::new(config(sizes.width, sizes.buffer_units + sizes.gc_buffer_units), &all);
    Points {
        streams: [stream(), stream(), stream(), stream()],
        checkpoint: AppendPoint::new(config(sizes.checkpoint_width, 2), &all),
    }
}

/// Open chunks go on where they are; those for which there is no place are written to their end, for an open chunk cannot be
/// reset.
fn adopt(
    media: &mut Media<'_>,
    shape: &InstanceGeometry,
    survey: &mut Survey,
    points: &mut Points,
    streams: usize,
) -> Result<(), MountError> {
    let mut left = Vec::new();
    for (chunk, found) in survey.iter().filter(|(_, found)| found.state == ChunkState::Open) {
        let (_, unit) = shape.split_chunk(chunk);
        let is_adopted = match found.role {
            Some(Role::Checkpoint) => points.checkpoint.adopt(chunk, unit, found.written),
            Some(Role::Records) | None => {
                points.streams[..streams].iter_mut().any(|point| point.adopt(chunk, unit, found.written))
            }
        };
        if !is_adopted {
            left.push(chunk);
        }
    }
    survey.close(media, shape, &left)
}

/// What each chunk is used for.
fn space(
    shape: &InstanceGeometry,
    sizes: &Sizes,
    survey: &Survey,
    pages: &Pages,
    found: Option<&Recovered>,
) -> Space {
    let needed = found.map_or_else(Needed::default, |found| found.needed);
    let live = |chunk: ChunkIndex| found.map_or(0, |found| found.counts.live[chunk.index()]);
    let is_needed = |chunk: ChunkIndex, role: Option<Role>| match role {
        Some(Role::Records) | None => live(chunk) > 0,
        Some(Role::Checkpoint) => {
            pages.newest_in.get(&chunk).is_some_and(|newest| newest.0 >= needed.serial && found.is_some())
        }
    };
    let usage = |chunk: ChunkIndex| {
        let &FoundChunk { state, role, .. } = survey.get(chunk);
        match state {
            ChunkState::Offline => ChunkUse::Bad,
            ChunkState::Free => ChunkUse::Free,
            ChunkState::Open => ChunkUse::Open,
            ChunkState::Closed if is_needed(chunk, role) => ChunkUse::Closed,
            ChunkState::Closed => ChunkUse::Dead,
        }
    };
    let groups = vec![0; usize::try_from(shape.units()).expect("32 bits fit an index")];
    let pool = ChunkPool::new(shape, &groups, usage);
    let uses: Vec<(ChunkIndex, ChunkUse)> = pool.iter().collect();
    let mut space = Space::new(shape.clone(), pool, sizes, needed);
    for (chunk, of) in uses {
        let found = survey.get(chunk);
        match found.role {
            Some(Role::Checkpoint) if !matches!(of, ChunkUse::Free | ChunkUse::Bad) => {
                space.set_role(chunk, Role::Checkpoint);
                space.has_number(chunk, pages.newest_in.get(&chunk).map_or(0, |serial| serial.0));
            }
            Some(Role::Records) => space.has_number(chunk, found.newest.0),
            Some(Role::Checkpoint) | None => {}
        }
        if of == ChunkUse::Dead {
            space.found_dead(chunk);
        }
    }
    let all = (0..shape.chunks()).map(ChunkIndex);
    all.filter(|&chunk| live(chunk) > 0).for_each(|chunk| space.add(chunk, live(chunk)));
    space
}

/// What a mount has found out and made.
struct Mounting {
    geometry: Geometry,
    sizes: Sizes,
    points: Points,
    space: Space,
    pages: Pages,
}

/// How worn each chunk is: what the checkpoint says, and the drive.
fn wear_of(
    device: &dyn BlockingDevice,
    sizes: &Sizes,
    shape: &InstanceGeometry,
    found: Option<&Recovered>,
) -> ChunkWear<()> {
    let chunks = (0..shape.chunks()).map(|chunk| shape.chunk_id(ChunkIndex(chunk)));
    let wear_index: Vec<u8> = chunks.map(|chunk| device.chunk(chunk).wear_index).collect();
    ChunkWear::new(sizes.wear_bound, found.map_or(&[][..], |found| &found.wear), &wear_index)
}

/// Of each unit the group of the drive that it is in.
fn groups_of(shape: &InstanceGeometry, geometry: &Geometry) -> Vec<u32> {
    (0..shape.units()).map(|unit| shape.pu(UnitIndex(unit)).0 / geometry.pus_per_group).collect()
}

fn assemble(
    device: &mut dyn BlockingDevice,
    options: &Options,
    mounting: Mounting,
    found: Option<Recovered>,
) -> Kv {
    let Mounting { geometry, sizes, points, space, pages } = mounting;
    let named = InstanceId::new(Prng::new(options.seed).split("instance").next_u64());
    let (instance, sequence, number) = found
        .as_ref()
        .map_or((named, 0, UnitNumber(0)), |found| (found.instance, found.sequence, found.number));
    let (user, kept) = found.as_ref().map_or((0, 0), |found| (found.counts.user, found.counts.kept));
    let wear = wear_of(device, &sizes, &space.shape, found.as_ref());
    let covered = found.as_ref().filter(|found| found.is_covered).map(|found| found.sequence);
    let lost_pages = found.as_ref().map_or_else(Vec::new, |found| found.lost_pages.clone());
    let (index, long) = found.map_or_else(
        || (Index::new(sizes.page_bytes), LongValues::default()),
        |found| (found.index, found.long),
    );
    // Those that replay changed are still named by the checkpoint that it began with.
    let of_pages =
        index.places().chain(index.released()).map(|place| u64::from(page_record_bytes(place))).sum();
    let (now, buffers) = (device.now(), device.buffers());
    let io = PageIo::new(sizes.unit, 2 * sizes.checkpoint_width, buffers);
    let ready = Ready::new(&groups_of(&space.shape, &geometry), options.writes_per_unit);
    let mut target = Kv {
        options: options.clone(),
        instance,
        buffer_units: BufferUnits::new(&sizes, ready, buffers),
        reads: Reads::new(&sizes, buffers),
        pages: IndexPages::new(&sizes, of_pages, buffers),
        gc: GarbageCollection::new(&sizes, options.seed, buffers),
        checkpoint: CheckpointState::new(io, pages.newest.next(), covered),
        flight: Flight::<Purpose>::new(COMMANDS_MAX, PlaneRule::new(options.plane_reads, geometry.ws_opt)),
        queue: Queue::default(),
        taking: None,
        stages: BTreeMap::new(),
        appending: None,
        waiters: VecDeque::new(),
        replies: VecDeque::new(),
        user_bytes: user,
        kept_bytes: kept,
        released: Released::default(),
        sequence,
        number,
        written: 0,
        shutdown: None,
        is_shut_down: false,
        changes: Changes::Taken,
        resets: BTreeMap::new(),
        is_mounting: true,
        copies: CopyBudget::new(),
        work_due: true,
        now,
        stats: KvStats::default(),
        index,
        long,
        wear,
        space,
        points,
        sizes,
    };
    assert!(
        user <= target.sizes.promised.capacity_bytes,
        "{user} bytes were found, more than there is room for"
    );
    assert!(target.space.needed().start.0 <= number.0 + 1, "replay begins beyond the last unit");
    target.lost_at_mount(&lost_pages);
    target
}

/// The running instance writes its checkpoint, a batch of commands at a time, unless the one that was found says all there is.
fn first_checkpoint(device: &mut dyn BlockingDevice, target: &mut Kv) -> Result<(), MountError> {
    while target.checkpoint.covered().is_none() && target.changes != Changes::IndexLost {
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
                "no chunk is left for a checkpoint: too many chunks went bad; read what is there with the drive's own tools"
                    .to_owned(),
            ));
        }
        for completion in device.call(&commands)? {
            target.completed(device.now(), completion, device.buffers());
        }
    }
    if let Changes::DriveFailed(status) = target.changes {
        return Err(MountError::Drive { what: "a write of a checkpoint", status });
    }
    assert_eq!(
        target.buffer_units.first_of_filling(super::buffer_units::Stream::Small),
        0,
        "a mount stores nothing"
    );
    target.is_mounting = false;
    target.work_due = true;
    Ok(())
}
