//! Mounting: an instance is made on fresh units, or recovered, which may be cut short at any command and begun again.
//!
//! Survey, checkpoint, log, then each zone that was being written: how far it is on media, and what of it is in tails; then a
//! checkpoint of a new generation, before which nothing that recovery read is reset. A zone that disturbances gave too many
//! chunks is copied. Linear code; commands go to the device in batches. Deliberately not here: anything a running instance does.

mod copy;
mod load;
mod recover;

use super::buffer_units::{BufferUnitId, BufferUnits};
use super::canary::Canary;
use super::checkpoint::Info;
use super::extension::Extensions;
use super::flight::Purpose;
use super::journal::Table;
use super::level::Levelling;
use super::options::Options;
use super::program::pad;
use super::requests::{REQUESTS_MAX, Requests};
use super::reset::Resets;
use super::retry::Retries;
use super::sizes::{Fixed, Ground, Sizes, most_metadata_lines};
use super::space::{Role, Space};
use super::state::{Changes, Zns};
use super::stats::ZnsStats;
use super::tails::Tails;
use crate::chunk_wear::ChunkWear;
use crate::flight::{COMMANDS_MAX, Flight};
use crate::journal::{Journal, JournalSizes, NewJournal, PageKind, PagePoints, reach_of_loss};
use crate::mount_error::MountError;
use crate::plane_reads::PlaneRule;
use crate::recovery::found::{Found, Known, Pages, check_units, find};
use crate::recovery::groups;
use crate::recovery::media::Media;
use crate::recovery::survey::{FoundChunk, Holds, Survey};
use load::Loaded;
use ocssd_base::{Divisor, Prng, Slab, usize_of};
use ocssd_ftl::log::{LogEntry, Lsn};
use ocssd_ftl::{AppendConfig, AppendPoint, ChunkIndex, ChunkUse, InstanceGeometry, InstanceId, UnitIndex};
use ocssd_lightnvm::interface::zoned::ZoneState;
use ocssd_lightnvm::{BlockingDevice, BufId, Buffers, ChunkState, Command, Geometry, PuId};
use recover::{FoundZone, Recovered, Sector};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Writes of padding in flight at once (chosen: a unit each of a drive with 32).
const PADDING: u32 = 32;

/// Lines in which a mount looks for a checkpoint first, at least (chosen: an instance that was told to keep some on a small drive
/// has about as many).
const FIRST_LINES: u32 = 2;

/// What a mount did, phase by phase.
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
    /// Zones that were being written, and go on with new segments.
    pub zones_cut: u32,
    /// Blocks that only tails had.
    pub tail_blocks: u64,
    /// Zones that were copied, because they had too many chunks.
    pub zones_copied: u32,
    /// Sectors of the checkpoint that ended the mount.
    pub checkpoint_sectors: u64,
}

/// Finds out what each chunk of the first lines holds, and makes chunks of pages readable, with those that do not say what they
/// hold.
fn find_pages(
    media: &mut Media<'_>,
    shape: &InstanceGeometry,
    (survey, lines): (&mut Survey, u32),
    options: &Options,
) -> Result<(), MountError> {
    let geometry = media.device.geometry().clone();
    let end = ChunkIndex(lines * shape.units());
    survey.identify(media, shape, end)?;
    let is_ours = |found: &FoundChunk| matches!(found.holds, None | Some(Holds::Pages(_)));
    let mut windows = survey.windows(&geometry, is_ours);
    windows.retain(|&(chunk, _)| chunk < end);
    if options.has_canary(Canary::WindowForgotten) {
        // To a border of write units, and no further.
        windows.iter_mut().for_each(|(_, until)| *until = 0);
    }
    survey.pad(media, shape, &windows)?;
    survey.identify(media, shape, end)
}

/// The newest checkpoint that is whole, what it says of the instance, and where pages are.
type Newest = (Option<(Found, Info)>, Pages);

/// Finds the newest checkpoint: first in the lines that are kept for it, if there are such, which it says itself; else among all
/// chunks.
fn find_newest(
    media: &mut Media<'_>,
    shape: &InstanceGeometry,
    survey: &mut Survey,
    options: &Options,
) -> Result<Newest, MountError> {
    let geometry = media.device.geometry().clone();
    let all = shape.lines();
    let mut lines = most_metadata_lines(all).max(FIRST_LINES).min(all);
    loop {
        find_pages(media, shape, (survey, lines), options)?;
        let known = Known { geometry: &geometry, shape, survey, lost_log: None };
        let found = find::<LogEntry>(media, &known, "zns");
        if lines == all {
            let (checkpoint, pages) = found?;
            let info = checkpoint.as_ref().map(|found| load::info(&found.sections)).transpose()?;
            return Ok((checkpoint.zip(info), pages));
        }
        let (checkpoint, pages) = match found {
            Ok((Some(checkpoint), pages)) => (checkpoint, pages),
            // The others may be of an instance whose pages lie anywhere.
            Ok((None, _)) | Err(MountError::Unreadable(_)) => {
                lines = all;
                continue;
            }
            Err(error) => return Err(error),
        };
        let info = load::info(&checkpoint.sections)?;
        assert!(lines < all, "all lines were asked, and there are {all}");
        if options.has_canary(Canary::MetadataElsewhere) || (1..=lines).contains(&info.metadata_lines) {
            return Ok((Some((checkpoint, info)), pages));
        }
        lines = if info.metadata_lines == 0 { all } else { info.metadata_lines.min(all) };
    }
}

/// Why nothing is mounted where nothing is to be made.
const NOT_THERE: &str = "there is no zns on these units, and none was to be made; choose the units it was made on, or make one \
                         with create=yes";

/// Where tails go.
fn tail_point(shape: &InstanceGeometry, sizes: &JournalSizes, width: u32) -> AppendPoint<()> {
    let all: Vec<UnitIndex> = (0..shape.units()).map(UnitIndex).collect();
    let &JournalSizes { chunk: chunk_sectors, mw_cunits, depth, .. } = sizes;
    AppendPoint::new(AppendConfig { chunk_sectors, mw_cunits, width, depth }, &all)
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

/// What a mount has found out.
struct Mounting {
    geometry: Geometry,
    shape: InstanceGeometry,
    groups: Vec<u32>,
    sizes: Sizes,
    survey: Survey,
    pages: Pages,
    loaded: Option<Loaded>,
    recovered: Recovered,
}

impl Zns {
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
        let groups = groups(&geometry, units);
        let group_units = (0..=groups.iter().copied().max().unwrap_or(0))
            .map(|group| groups.iter().filter(|&&other| other == group).count())
            .max()
            .and_then(|most| u32::try_from(most).ok())
            .expect("fewer units than 2^32");
        let chunks_in = |lines: u32| lines * shape.units();
        let ground = Ground { geometry: &geometry, shape: &shape, good_in: &chunks_in, group_units };
        // Before anything is written.
        Sizes::new(&ground, options, None).map_err(MountError::DoesNotFit)?;
        let mut media = Media::new(device).with_durable_padding();
        media.settle_reports(&shape)?;
        let mut survey = Survey::new(&media, &shape);
        let good = survey.good_of_lines(shape.units());
        let good_in = |lines: u32| good[..usize_of(lines)].iter().sum();
        let ground = Ground { good_in: &good_in, ..ground };
        let (checkpoint, mut pages) = find_newest(&mut media, &shape, &mut survey, options)?;
        let info = checkpoint.as_ref().map(|(_, info)| *info);
        if info.is_none() && !options.create {
            return Err(MountError::NotThere(NOT_THERE));
        }
        if let Some(info) = &info {
            check_units(&shape, (info.chunk, info.units, info.lines))?;
        }
        let fixed = info.map(|info| Fixed {
            zone_count: info.zone_count,
            zone_chunks: info.zone_chunks,
            metadata_lines: info.metadata_lines,
        });
        let sizes = Sizes::new(&ground, options, fixed).map_err(MountError::DoesNotFit)?;
        let known = Known { geometry: &geometry, shape: &shape, survey: &survey, lost_log: None };
        let loaded = checkpoint.map(|found| load::replay(&mut media, &known, found, &sizes, &mut pages));
        let mut loaded = loaded.transpose()?;
        let table = loaded.as_mut().map(|loaded| std::mem::replace(&mut loaded.table, Table::new(0)));
        let table = table.unwrap_or_else(|| Table::new(sizes.zone_count));
        let mounted = loaded.as_ref().map_or(0, |loaded| loaded.info.mounted);
        let recovered = Recovered::new(&mut media, (&shape, &sizes, options), &mut survey, (table, mounted))?;
        let (sectors_read, sectors_padded) = media.end();
        let mut report = MountReport {
            is_new: loaded.is_none(),
            sectors_read,
            sectors_padded,
            bad_chunks: shape.chunks() - good.iter().sum::<u32>(),
            log_pages: loaded.as_ref().map_or(0, |loaded| loaded.log_pages),
            transactions: loaded.as_ref().map_or(0, |loaded| loaded.transactions),
            zones_cut: recovered.zones_cut,
            tail_blocks: recovered.tail_blocks(),
            ..MountReport::default()
        };
        let mounting = Mounting { geometry, shape, groups, sizes, survey, pages, loaded, recovered };
        let mut target = assemble(device, options, mounting)?;
        first_checkpoint(device, &mut target)?;
        report.checkpoint_sectors = target.stats.checkpoint_written;
        report.zones_copied = copy::copy_zones(device, &mut target)?;
        target.is_mounting = false;
        target.work_due = true;
        Ok((target, report))
    }
}

/// What each chunk is used for, once the log, checkpoints and tails go on with those that are open.
fn space(
    mounting: &Mounting,
    (points, tails): (&mut PagePoints, &mut AppendPoint<()>),
) -> (Space, BTreeSet<ChunkIndex>) {
    let Mounting { geometry, shape, groups, sizes, survey, pages, loaded, recovered } = mounting;
    let mut adopted = BTreeSet::new();
    let mut role_of = BTreeMap::new();
    for (chunk, found) in survey.iter() {
        let (_, unit) = shape.split_chunk(chunk);
        let goes_on = found.is_open() && found.written.is_multiple_of(sizes.unit);
        let is_adopted = if recovered.table.tails.contains(&chunk) {
            role_of.insert(chunk, Role::Tail);
            goes_on && tails.adopt(chunk, unit, found.written)
        } else if let Some(kind) = found.pages() {
            role_of.insert(chunk, Role::of(kind));
            goes_on && points.adopt(kind, chunk, unit, found.written)
        } else {
            false
        };
        if is_adopted {
            adopted.insert(chunk);
        }
    }
    let is_needed = |chunk: ChunkIndex| match (role_of.get(&chunk), loaded) {
        (None | Some(Role::Data), _) => recovered.owned[chunk.index()],
        (Some(Role::Tail), _) => true,
        (_, None) => false,
        (Some(Role::Log), Some(found)) => pages.is_needed(chunk, PageKind::Log, found.end.kept),
        (Some(Role::Checkpoint), Some(found)) => pages.is_needed(chunk, PageKind::Checkpoint, found.end.kept),
    };
    let usage = |chunk: ChunkIndex| match survey.get(chunk).state {
        ChunkState::Offline => ChunkUse::Bad,
        _ if adopted.contains(&chunk) || recovered.columns.contains(&chunk) => ChunkUse::Open,
        ChunkState::Free => ChunkUse::Free,
        _ if is_needed(chunk) => ChunkUse::Closed,
        _ => ChunkUse::Dead,
    };
    let mut space = Space::new(shape.clone(), groups, usage, (sizes, geometry.max_open_chunks_per_pu));
    let uses: Vec<(ChunkIndex, ChunkUse)> = space.uses().collect();
    let mut closed_tails = BTreeSet::new();
    for (chunk, of) in uses {
        let found = survey.get(chunk);
        let tip = (found.state == ChunkState::Open).then_some(found.written);
        if of == ChunkUse::Dead {
            space.found_dead(chunk, tip);
        }
        if !matches!(of, ChunkUse::Open | ChunkUse::Closed) {
            continue;
        }
        let role = role_of.get(&chunk).copied().unwrap_or(Role::Data);
        space.set_role(chunk, role);
        space.found_written(chunk, tip);
        match role {
            Role::Log => space.has_page(chunk, pages.newest(chunk, PageKind::Log)),
            Role::Checkpoint => space.has_page(chunk, pages.newest(chunk, PageKind::Checkpoint)),
            Role::Tail if of == ChunkUse::Closed => drop(closed_tails.insert(chunk)),
            Role::Tail | Role::Data => {}
        }
    }
    (space, closed_tails)
}

/// Buffers of padding.
fn padding(unit: u32, buffers: &mut Buffers) -> Vec<BufId> {
    let padding: Vec<BufId> = (0..PADDING).map(|_| buffers.take(unit)).collect();
    padding.iter().for_each(|&buffer| pad(buffer, 0, unit, buffers));
    padding
}

fn new_tails(
    point: AppendPoint<()>,
    sizes: &Sizes,
    (recovered, closed): (&Recovered, BTreeSet<ChunkIndex>),
    buffers: &mut Buffers,
) -> Tails {
    let mut live: BTreeMap<ChunkIndex, u32> = recovered.table.tails.iter().map(|&chunk| (chunk, 0)).collect();
    recovered.count_tails(&mut live);
    Tails::new(point, sizes.tail_page, (live, closed), buffers)
}

/// How worn each chunk is, but those of the log and checkpoints where these lie apart: what the checkpoint says, and the drive.
fn wear_of(
    device: &dyn BlockingDevice,
    options: &Options,
    space: &Space,
    loaded: Option<&Loaded>,
) -> ChunkWear<u32> {
    if options.wear_bound().is_none() {
        return ChunkWear::new(None, &[], &[]);
    }
    let wear_index = |chunk: ChunkIndex| {
        let id = space.shape.chunk_id(chunk);
        if space.is_metadata(chunk) { 0 } else { device.chunk(id).wear_index }
    };
    let wear_index: Vec<u8> = (0..space.shape.chunks()).map(ChunkIndex).map(wear_index).collect();
    let saved = loaded.map_or(&[][..], |loaded| &loaded.wear);
    ChunkWear::new(options.wear_bound(), saved, &wear_index)
}

/// What survived of areas may take more buffer units than the write buffer has for one zone each: so many.
fn units_of_areas(sizes: &Sizes, recovered: &Recovered) -> u32 {
    let units = |found: &FoundZone| found.tail.len().div_ceil(usize_of(sizes.unit)).saturating_sub(1);
    let beside: usize = recovered.zones.values().map(units).sum();
    u32::try_from(beside).expect("fewer units than an instance has")
}

fn assemble(
    device: &mut dyn BlockingDevice,
    options: &Options,
    mounting: Mounting,
) -> Result<Zns, MountError> {
    let journal_sizes = journal_sizes(&mounting.sizes, options, mounting.geometry.sector_bytes);
    let mut points = PagePoints::new(&mounting.shape, &journal_sizes);
    let mut tail_point = tail_point(&mounting.shape, &journal_sizes, mounting.sizes.tail_width);
    let (space, closed_tails) = space(&mounting, (&mut points, &mut tail_point));
    let named = InstanceId::new(Prng::new(options.seed).split("instance").next_u64());
    let Mounting { geometry, shape, sizes, pages, loaded, mut recovered, .. } = mounting;
    let wear = wear_of(device, options, &space, loaded.as_ref());
    let buffers = device.buffers();
    let newest = (pages.newest_generation, pages.newest_serial);
    let new = NewJournal { named, found: loaded.as_ref().map(|found| found.end), newest };
    let journal = Journal::new(&journal_sizes, points, &new, buffers);
    let tails = new_tails(tail_point, &sizes, (&recovered, closed_tails), buffers);
    let sequence = loaded.as_ref().map_or(0, |found| found.info.sequence).max(recovered.sequence);
    let beside = units_of_areas(&sizes, &recovered);
    let zones = sizes.zone_geometry(geometry.sector_bytes);
    let mut target = Zns {
        options: options.clone(),
        geometry: zones,
        per_zone: Divisor::new(zones.zone_blocks),
        per_unit: Divisor::new(u64::from(sizes.unit)),
        per_width: Divisor::new(u64::from(sizes.width)),
        early_reset: geometry.capabilities.early_reset,
        has_open_limit: geometry.max_open_chunks_per_pu > 0 || geometry.max_open_chunks > 0,
        group_units: geometry.pus_per_group,
        zones: std::mem::take(&mut recovered.table.zones),
        extensions: Extensions::found(std::mem::take(&mut recovered.table.extensions)),
        areas: BTreeSet::new(),
        open: Vec::new(),
        active: 0,
        // A writer is large, and few zones have one at a time.
        writers: Slab::on_demand(sizes.zone_count),
        turns: VecDeque::new(),
        buffer_units: BufferUnits::new(sizes.buffer_units + beside, sizes.unit, buffers),
        requests: Requests::new(REQUESTS_MAX),
        flight: Flight::<Purpose>::new(COMMANDS_MAX, PlaneRule::new(options.plane_reads, geometry.ws_opt)),
        retries: Retries::new(COMMANDS_MAX),
        tails,
        space,
        filling: VecDeque::new(),
        padded: BTreeSet::new(),
        reset_after_padding: BTreeSet::new(),
        wear,
        levelling: Levelling::new(options.wear_bound().is_some(), sizes.unit, buffers),
        padding: padding(sizes.unit, buffers),
        journal,
        log_awaited: Lsn(0),
        log_is_full: false,
        waits: VecDeque::new(),
        flushes: VecDeque::new(),
        shutdown: None,
        is_shut_down: false,
        changes: Changes::Taken,
        sequence,
        mounted: sequence,
        resets: Resets::new(buffers),
        is_mounting: true,
        changed: VecDeque::new(),
        work_due: true,
        now: device.now(),
        stats: ZnsStats::default(),
        sizes,
    };
    target.begin_zones(&shape, recovered, device)?;
    Ok(target)
}

impl Zns {
    /// Zones begin as they were found: full, closed with their open chunks and the part of a unit that tails had, or empty.
    fn begin_zones(
        &mut self,
        shape: &InstanceGeometry,
        recovered: Recovered,
        device: &mut dyn BlockingDevice,
    ) -> Result<(), MountError> {
        for number in 0..self.sizes.zone_count {
            let zone = self.zone_mut(number);
            if zone.state == ZoneState::Offline {
                continue;
            }
            let finished_at = zone.finished_at();
            zone.written = finished_at.unwrap_or(0);
            if finished_at.is_none() {
                zone.found(0, 0);
            }
            if finished_at.is_some() {
                self.set_state(number, ZoneState::Full);
            } else if self.zone(number).state == ZoneState::Empty && self.extensions.logged(number).is_some()
            {
                self.set_state(number, ZoneState::Closed);
            }
        }
        // Zones that go on have a buffer unit each; read-only ones have what is left.
        let (read_only, active): (Vec<_>, Vec<_>) = recovered
            .zones
            .into_iter()
            .partition(|&(number, _)| self.zone(number).state == ZoneState::ReadOnly);
        for (number, found) in active.into_iter().chain(read_only) {
            self.begin_zone(number, found, device);
        }
        if self.has_open_limit {
            let tips = (0..shape.chunks()).map(ChunkIndex).filter(|&chunk| self.space.tip(chunk).is_some());
            self.filling = tips.collect();
        }
        Ok(())
    }

    /// A zone goes on where it ends, or can be read up to there.
    fn begin_zone(&mut self, number: u32, found: FoundZone, device: &mut dyn BlockingDevice) {
        let is_read_only = self.zone(number).state == ZoneState::ReadOnly;
        let (key, unit) = (self.writer_of(number), self.sizes.unit);
        let part = u32::try_from(found.tail.len()).expect("less than a zone");
        let (blocks, capacity) = (found.units * unit + part, self.sizes.capacity());
        assert!(blocks > 0 && blocks <= capacity, "zone {number} is closed with {blocks} blocks");
        assert!(found.in_row >= found.units * unit, "units of zone {number} are none of its row");
        let zone = self.zone_mut(number);
        zone.written = blocks;
        zone.found(blocks, found.in_row.min(blocks));
        if !is_read_only {
            self.set_state(number, if blocks == capacity { ZoneState::Full } else { ZoneState::Closed });
        }
        let writer = self.writers.get_mut(key);
        writer.is_given_up = is_read_only;
        writer.is_ending = is_read_only || blocks == capacity;
        writer.columns = found.columns;
        (writer.admitted, writer.next, writer.end, writer.programmed) =
            (found.units * unit, found.units, found.units, found.units);
        writer.tail.chunks = found.tail_chunks;
        for (at, sectors) in (found.units..).zip(found.tail.chunks(usize_of(unit))) {
            let Some(buffer_unit) = self.buffer_units.take(at) else {
                assert!(is_read_only, "zone {number} is active and has no buffer unit");
                break;
            };
            self.begin_buffer_unit(number, buffer_unit, sectors, device.buffers());
            let filled = self.buffer_units.filled(buffer_unit);
            let writer = self.writers.get_mut(key);
            writer.admitted += filled;
            writer.held.insert(at, buffer_unit);
            (writer.tail.end, writer.tail.sent) = (writer.admitted, writer.admitted);
            if is_read_only {
                continue;
            }
            if filled == unit {
                writer.ready.push_back(buffer_unit);
            } else {
                writer.filling = Some(buffer_unit);
            }
        }
    }

    /// What tails have of a unit goes to its buffer unit, and what was never written is filled.
    fn begin_buffer_unit(
        &mut self,
        zone: u32,
        buffer_unit: BufferUnitId,
        sectors: &[Option<Sector>],
        buffers: &mut Buffers,
    ) {
        let count = u32::try_from(sectors.len()).expect("a unit");
        assert!((1..=self.sizes.unit).contains(&count), "{count} blocks of a unit are found");
        let is_whole_row = sectors.iter().all(Option::is_some);
        if is_whole_row {
            self.buffer_units.push(buffer_unit, count);
        }
        for (at, sector) in (0..).zip(sectors) {
            let Some(sector) = sector else { continue };
            if !is_whole_row {
                self.buffer_units.place(buffer_unit, at, 1);
            }
            let (data, oob) = buffers.sectors_mut(self.buffer_units.buffer(buffer_unit), at, 1);
            data.copy_from_slice(&sector.data);
            oob.copy_from_slice(&sector.oob);
        }
        if !is_whole_row {
            self.pad_holes(zone, buffer_unit, count, buffers);
        }
    }
}

/// The running instance carries on until it has nothing to do.
fn carry_on(device: &mut dyn BlockingDevice, target: &mut Zns) -> Result<bool, MountError> {
    target.flight.wait(device)?;
    let mut commands: Vec<Command> = Vec::new();
    while let Some(command) = target.next_command(device.buffers()) {
        commands.push(command);
    }
    for completion in device.call(&commands)? {
        target.completed(device.now(), completion, device.buffers());
        assert!(usize_of(COMMANDS_MAX) >= target.flight.len(), "more commands than there is room");
    }
    match target.changes {
        Changes::DriveFailed(status) => Err(MountError::Drive { what: "a write of a checkpoint", status }),
        _ => Ok(!commands.is_empty()),
    }
}

/// The running instance writes its checkpoint; a new one two, so that one that the media lose is never the only one.
fn first_checkpoint(device: &mut dyn BlockingDevice, target: &mut Zns) -> Result<(), MountError> {
    while !target.journal.has_two() {
        if !carry_on(device, target)? && !target.journal.has_two() {
            return Err(MountError::DoesNotFit(
                "no chunk is left for a checkpoint: too many chunks went bad; read what is there with the drive's own tools".to_owned(),
            ));
        }
    }
    Ok(())
}
