//! How large everything of an instance is, and whether the units are enough for it.
//!
//! Users get what the percentage leaves, but never what the target needs to work: a chunk open on every unit for users
//! and one for garbage collection, the log up to its bound, three checkpoints, and a reserve for garbage collection.
//! Deliberately not here: what any of it is used for at a moment.

use super::canary::Canary;
use super::options::Options;
use super::store::Store;
use crate::journal::{JournalSizes, checkpoint_chunks_of, chunks_of, log_width, narrow, reach_of_loss};
use ocssd_base::{Nanos, usize_of};
use ocssd_ftl::checkpoint::CheckpointWriter;
use ocssd_ftl::{InstanceGeometry, TAG_BYTES};
use ocssd_lightnvm::Geometry;

/// Bytes of log between checkpoints at most by default (chosen: read back in parallel in a tenth of a second).
const CHECKPOINT_LOG_BYTES_MAX: u64 = 64 << 20;
/// Pages of log between checkpoints at least (chosen: a checkpoint takes two pages or more itself).
const INTERVAL_PAGES_MIN: u64 = 8;
/// Chunks the log is striped over at most (chosen: with eight for each of two copies, the next page finds two that are not
/// written behind the same pages, also where MW_CUNITS says eight units).
const LOG_WIDTH_MAX: u32 = 16;
/// The same where there are few chunks (chosen: four pages in flight keep up with a drive's commits in groups).
const LOG_WIDTH_OF_FEW: u32 = 4;
/// Chunks of an instance for each chunk that the log is striped over beyond these (chosen: the log takes a few of a hundred).
const CHUNKS_PER_LOG_CHUNK: u32 = 64;
/// Sectors that wait in buffer units beyond what open chunks hold (chosen: a transaction of OX, 1 MiB of 4 KiB sectors).
const BUFFERED_SECTORS: u32 = 256;
/// Times the senses of an interval that a bound on recovery counts with (chosen): two intervals are read, of which the second is
/// what is written while the next checkpoint is; and pages of a stripe may lie on one channel, where a sense and four transfers
/// take six times as long as the sense (70 us, and 90 us for 32 KiB), which the drive does not tell.
const READ_INTERVALS: u64 = 12;
/// Bytes of the checkpoint's section about the instance.
pub const INFO_BYTES: usize = 64;

/// What the map and the transactions of a store take, for so many sectors of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Sectors of the largest transaction: what it replaces stays until it is committed as a whole.
    pub gathered: u64,
    /// Entries of the largest transaction in the log, its commit counted.
    pub log_entries: u64,
    /// Bytes of the map in a checkpoint.
    pub map_bytes: u64,
    /// Sectors that are written to hold the data: more than these where units are not filled to their end.
    pub data: u64,
    /// Pages of the map that lie on media, a sector each; 0 if all of it is in memory.
    pub map_pages: u64,
}

/// The sizes of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Sectors of a write of data or of a checkpoint: WS_OPT.
    pub unit: u32,
    /// Sectors of a page of the log: WS_MIN.
    pub page: u32,
    /// Sectors of a chunk.
    pub chunk: u32,
    /// Sectors that must follow one before it can be read.
    pub mw_cunits: u32,
    /// Sectors of data: of a block device, its blocks.
    pub blocks: u64,
    /// Buffer units of the write buffer, for users and for garbage collection each.
    pub buffer_units: u32,
    /// Chunks the log is striped over.
    pub log_width: u32,
    /// Pages of the log between checkpoints.
    pub interval_pages: u32,
    /// Pages of the log at most.
    pub log_pages_max: u32,
    /// Chunks the log may take.
    pub log_chunks: u32,
    /// Chunks a checkpoint is striped over.
    pub checkpoint_width: u32,
    /// Chunks checkpoints may take.
    pub checkpoint_chunks: u32,
    /// Buffer units of pages of the map; 0 if all of it is in memory, and so are the next three.
    pub map_buffer_units: u32,
    /// Chunks that pages of the map are striped over.
    pub map_width: u32,
    /// Chunks that pages of the map may take.
    pub map_chunks: u32,
    /// Of these, how many are left to pages that move so that a chunk can be reset.
    pub map_keep: u32,
    /// Free chunks that users leave to garbage collection.
    pub reserve: u32,
    /// Sectors of transactions that may be on their way beyond those the chunks are needed for: the largest transaction.
    pub gathered: u32,
    /// Good chunks that hold the users' blocks and all that is needed beside them: with as many, changes are taken.
    pub chunks_needed: u32,
}

/// Pages of the log between checkpoints for which recovery reads no longer than this, striped over `width` units.
fn pages_within(within: Nanos, geometry: &Geometry, width: u32) -> u64 {
    let page = geometry.times.read_typical.0.max(1);
    assert!(width > 0, "a log on no unit");
    within.0 / page * u64::from(width) / READ_INTERVALS
}

impl Sizes {
    /// The sizes of an instance of `blocks` blocks, or of a new one if that is `None`, on units with `good` good chunks in
    /// `groups` groups.
    ///
    /// # Errors
    /// A sentence, if the units cannot carry one.
    pub fn new<S: Store>(
        geometry: &Geometry,
        shape: &InstanceGeometry,
        options: &Options,
        (good, groups): (u32, u32),
        blocks: Option<u64>,
    ) -> Result<Self, String> {
        check(S::NAME, geometry, shape, options)?;
        S::suits(geometry, shape, options)?;
        let chunk = geometry.sectors_per_chunk;
        if let Some(blocks) = blocks {
            return Ok(Self::of::<S>(geometry, shape, options, groups, blocks));
        }
        let share = u64::from(100 - options.over_provisioning_percent);
        let mut blocks = u64::from(good) * u64::from(chunk) * share / 100;
        loop {
            let sizes = Self::of::<S>(geometry, shape, options, groups, blocks);
            if blocks > 0 && sizes.chunks_needed <= good {
                return Ok(sizes);
            }
            let over = u64::from(sizes.chunks_needed.saturating_sub(good).max(1)) * u64::from(chunk);
            if over >= blocks {
                return Err(format!(
                    "{} needs {} chunks beside its data, but the {} units have {good} good chunks in all: lease more units or choose \
                     a drive with more chunks",
                    S::NAME,
                    sizes.chunks_needed.saturating_sub(narrow(blocks.div_ceil(u64::from(chunk)))),
                    shape.units()
                ));
            }
            blocks -= over;
        }
    }

    /// What the journal needs to know of them.
    pub fn of_journal(&self, options: &Options, sector_bytes: u32) -> JournalSizes {
        let is_at_risk = options.has_canary(Canary::CopiesAtRisk);
        JournalSizes {
            chunk: self.chunk,
            mw_cunits: self.mw_cunits,
            reach: if is_at_risk { 0 } else { reach_of_loss(self.unit, self.mw_cunits) },
            depth: options.writes_per_unit,
            page: self.page,
            unit: self.unit,
            sector_bytes,
            log_width: self.log_width,
            checkpoint_width: self.checkpoint_width,
            copies: options.log_copies,
            interval_pages: self.interval_pages,
            log_pages_max: self.log_pages_max,
        }
    }

    fn of<S: Store>(
        geometry: &Geometry,
        shape: &InstanceGeometry,
        options: &Options,
        groups: u32,
        blocks: u64,
    ) -> Self {
        let demand = S::demand(geometry, shape, blocks, options);
        assert!(demand.data >= blocks, "{blocks} sectors of data take fewer: {demand:?}");
        assert!(demand.log_entries > 1 && demand.map_bytes > 0, "a store of nothing: {demand:?}");
        let &Geometry { ws_opt: unit, ws_min: page, sectors_per_chunk: chunk, mw_cunits, .. } = geometry;
        let units = shape.units();
        let page_bytes = u64::from(page) * u64::from(geometry.sector_bytes);
        let instance_bytes = shape.places() * u64::from(geometry.sector_bytes);
        let most = (shape.chunks() / CHUNKS_PER_LOG_CHUNK).clamp(LOG_WIDTH_OF_FEW, LOG_WIDTH_MAX);
        let log_width = log_width(units, most, options.log_copies);
        let asked =
            options.checkpoint_log_bytes.unwrap_or((instance_bytes / 64).min(CHECKPOINT_LOG_BYTES_MAX))
                / page_bytes;
        let copies = u64::from(options.log_copies);
        let within = options.recovery.map(|within| pages_within(within, geometry, log_width) / copies);
        let interval_pages = within.map_or(asked, |within| within.min(asked)).max(INTERVAL_PAGES_MIN);
        // From the start of the checkpoint before the last, and while the next is written; and one largest transaction.
        let per_page = page_bytes / u64::try_from(ocssd_ftl::log::ENTRY_BYTES).expect("small");
        let largest = demand.log_entries.div_ceil(per_page.max(1));
        let log_pages_max = 3 * interval_pages + 2 * u64::from(log_width) + largest + 4;
        let info = u64::try_from(INFO_BYTES).expect("small");
        let checkpoint = CheckpointWriter::pages_of(
            S::SECTIONS + 1,
            demand.map_bytes + info,
            unit * geometry.sector_bytes,
        );
        let checkpoint_width = narrow(checkpoint / u64::from(chunk / unit)).clamp(1, units);
        assert!(unit.is_multiple_of(page) && chunk.is_multiple_of(unit), "units do not divide chunks");
        assert!(log_width > 0 && log_pages_max > 3 * interval_pages, "a log of {log_pages_max} pages");
        assert!(checkpoint >= 2, "a checkpoint has a page and a commit page");
        let log_chunks = chunks_of(log_pages_max * u64::from(options.log_copies), page, chunk, log_width);
        let checkpoint_chunks = checkpoint_chunks_of(checkpoint, (unit, chunk), checkpoint_width, units);
        let reserve = groups + 2;
        let gathered = narrow(demand.gathered.next_multiple_of(u64::from(unit)));
        let data = narrow((demand.data + u64::from(gathered)).div_ceil(u64::from(chunk)));
        let map = MapSizes::new(demand.map_pages, geometry, options, units);
        let beside = 2 * units + log_chunks + checkpoint_chunks + map.chunks + reserve + 2;
        Self {
            unit,
            page,
            chunk,
            mw_cunits,
            blocks,
            buffer_units: buffer_units(geometry, options, units),
            log_width,
            interval_pages: narrow(interval_pages),
            log_pages_max: narrow(log_pages_max),
            log_chunks,
            checkpoint_width,
            checkpoint_chunks,
            map_buffer_units: map.buffer_units,
            map_width: map.width,
            map_chunks: map.chunks,
            map_keep: map.keep,
            reserve,
            gathered,
            chunks_needed: data.saturating_add(beside),
        }
    }
}

/// What the pages of a map take that lie on media.
#[derive(Clone, Copy, Debug, Default)]
struct MapSizes {
    buffer_units: u32,
    width: u32,
    chunks: u32,
    keep: u32,
}

impl MapSizes {
    /// Chunks are a quarter more than the pages fill, so that one that is emptied gives a fifth of itself, and so many that the
    /// emptiest holds a write unit less than it has room for, so that it gives one in any case; beside these are those that are
    /// open, and those that what waits in buffer units may need before the first is emptied.
    fn new(pages: u64, geometry: &Geometry, options: &Options, units: u32) -> Self {
        if pages == 0 {
            return Self::default();
        }
        let &Geometry { ws_opt: unit, sectors_per_chunk: chunk, mw_cunits, .. } = geometry;
        let width = narrow(pages / u64::from(chunk)).clamp(1, units);
        let buffer_units = width * (mw_cunits.div_ceil(unit) + 1 + options.writes_per_unit) + 2;
        let keep = width + (buffer_units * unit).div_ceil(chunk);
        let emptiest = u64::from(chunk - unit);
        let filled = (pages + pages / 4).div_ceil(u64::from(chunk)).max(pages.div_ceil(emptiest));
        assert!(filled * emptiest >= pages, "of {filled} chunks of {pages} pages none gives a write unit");
        Self { buffer_units, width, chunks: narrow(filled) + width + keep + 2, keep }
    }
}

/// Buffer units: what every open chunk holds until it can be read and has in flight, what is buffered beyond, and two more.
fn buffer_units(geometry: &Geometry, options: &Options, units: u32) -> u32 {
    let window = geometry.mw_cunits.div_ceil(geometry.ws_opt) + 1;
    assert!(units > 0 && options.writes_per_unit > 0, "nothing is written");
    let held = units * (window + options.writes_per_unit);
    held + BUFFERED_SECTORS.div_ceil(geometry.ws_opt) + 2
}

fn check(name: &str, geometry: &Geometry, shape: &InstanceGeometry, options: &Options) -> Result<(), String> {
    options.check()?;
    if options.recovery.is_some() && geometry.times.read_typical == Nanos(0) {
        return Err(format!(
            "{name} cannot bound recovery by a time: the drive does not say how long a read takes; give checkpoint_log_bytes"
        ));
    }
    if usize_of(geometry.oob_bytes) < TAG_BYTES {
        return Err(format!(
            "{name} keeps {TAG_BYTES} bytes beside each sector, but the drive has {}; choose a drive with more metadata",
            geometry.oob_bytes
        ));
    }
    if geometry.sectors_per_chunk < 2 * geometry.ws_opt {
        return Err(format!(
            "{name} needs chunks of two write units or more; choose a drive with larger chunks"
        ));
    }
    let (per_unit, all) = (geometry.max_open_chunks_per_pu, geometry.max_open_chunks);
    let open = open_chunks(shape.units(), options);
    if per_unit > 0 && per_unit < open || all > 0 && all < open * shape.units() {
        return Err(format!(
            "{name} has up to {open} chunks open on each unit, but the drive allows fewer (max_open_chunks {all}, \
             max_open_chunks_per_pu {per_unit}); raise these"
        ));
    }
    Ok(())
}

/// Chunks that are open on a unit at most: users', garbage collection's, the log's (of each copy, where there is one unit), a
/// checkpoint's, that of pages of the map, and one of these that is about to be full.
fn open_chunks(units: u32, options: &Options) -> u32 {
    let log = if units == 1 { options.log_copies } else { 1 };
    assert!((1..=2).contains(&log), "{log} copies of the log");
    4 + log + u32::from(options.map_cache_bytes.is_some())
}
