//! How large everything of an instance is, and whether the units are enough for it.
//!
//! What is promised fits whatever the tables are: `tables_max` tables and logs of `capacity_bytes` in all take at most a chunk
//! each beside the chunks their bytes fill. Spare chunks are kept beside that: stripes that are not full take of them, so that
//! tables are striped while there is room and not where there is none, and chunks that fail. Deliberately not here: what any
//! of it is used for at a moment (`space`).

use super::change::{CHANGE_BYTES, records_of};
use super::options::Options;
use crate::journal::{checkpoint_chunks_of, chunks_of, log_width, narrow};
use ocssd_base::usize_of;
use ocssd_ftl::checkpoint::CheckpointWriter;
use ocssd_ftl::log::ENTRY_BYTES;
use ocssd_ftl::{InstanceGeometry, TAG_BYTES};
use ocssd_lightnvm::Geometry;
use ocssd_lightnvm::interface::table::TableLimits;

/// Bytes of attributes of a table (chosen: level, two keys and sequence numbers, or a file's name and times).
pub const ATTRIBUTES_BYTES_MAX: u32 = 256;
/// Rows of an edit (chosen: a compaction of 32 tables into 32; RocksDB's limit of `max_compaction_bytes` is 25 outputs).
pub const EDITS_MAX: u32 = 64;
/// Rows of an edit on drives so small that the log has few pages (chosen).
const EDITS_MAX_SMALL: u32 = 8;
/// Bytes of a log in one transaction (chosen: of several that wait, each is durable when its own bytes are).
pub const TAIL_PIECE_BYTES: u32 = 4096;
/// Runs of a table in one transaction (chosen: as many bytes as a piece of a tail).
pub const RUNS_PIECE: usize = 100;

/// Bytes of log between checkpoints at most by default (chosen: read back in parallel in a tenth of a second).
const CHECKPOINT_LOG_BYTES_MAX: u64 = 64 << 20;
/// Pages of log between checkpoints at least (chosen: a checkpoint takes two pages or more itself).
const INTERVAL_PAGES_MIN: u64 = 8;
/// Chunks the log is striped over at most (chosen: four pages in flight keep up with a drive's commits in groups).
const LOG_WIDTH_MAX: u32 = 4;
/// Chunks for content that fail before anything else is short (chosen).
const FAILING_CHUNKS: u32 = 2;
/// Chunks to a table by default (chosen: an eighth of the drive is the price of the promise).
const CHUNKS_PER_TABLE: u32 = 8;
/// Tables an instance has at least by default (chosen: a log, a memtable's table, inputs and outputs of a compaction).
const TABLES_MIN: u32 = 4;
/// Tables by default at most (chosen: as `tables_max` may be).
const TABLES_DEFAULT_MAX: u32 = 1 << 14;
/// Bytes of the checkpoint's section about the instance.
pub const INFO_BYTES: usize = 72;
/// Sections of a checkpoint: the instance, the catalog, and of chunks how often each was reset.
const SECTIONS: u64 = 3;
/// Bytes of how often a chunk was reset.
const WEAR_BYTES: u64 = 4;

/// What is kept from the first mount on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Tables and logs at most.
    pub tables_max: u32,
    /// Bytes of them all.
    pub capacity_bytes: u64,
}

/// The sizes of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Sectors of a write of content or of a checkpoint: WS_OPT.
    pub unit: u32,
    /// Bytes of it.
    pub unit_bytes: u64,
    /// Units of a chunk.
    pub chunk_units: u32,
    /// Sectors of a page of the log: WS_MIN.
    pub page: u32,
    /// Sectors of a chunk.
    pub chunk: u32,
    /// Sectors that must follow one before it can be read.
    pub mw_cunits: u32,
    /// Kept from the first mount.
    pub kept: Kept,
    /// Rows of an edit.
    pub edits_max: u32,
    /// Records of the largest transaction.
    pub largest_records: usize,
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
    /// Chunks that all tables and logs may take, if none is striped.
    pub content_chunks: u32,
    /// Good chunks with which everything that is promised fits.
    pub chunks_needed: u32,
}

impl Sizes {
    /// The sizes of an instance that keeps `kept`, or of a new one if that is `None`, on units with `good` good chunks.
    ///
    /// # Errors
    /// A sentence, if the units cannot carry one.
    pub fn new(
        geometry: &Geometry,
        shape: &InstanceGeometry,
        options: &Options,
        good: u32,
        kept: Option<Kept>,
    ) -> Result<Self, String> {
        check(geometry, shape, options)?;
        if let Some(kept) = kept {
            return Ok(Self::of(geometry, shape, options, kept));
        }
        let chunk_bytes = u64::from(geometry.sectors_per_chunk) * u64::from(geometry.sector_bytes);
        let asked = (good / CHUNKS_PER_TABLE).clamp(TABLES_MIN, TABLES_DEFAULT_MAX);
        let tables_max = options.tables_max.unwrap_or(asked);
        let empty = Self::of(geometry, shape, options, Kept { tables_max, capacity_bytes: chunk_bytes });
        // What is promised, beside a chunk of it: the checkpoint does not grow with the capacity, but for runs.
        let spare = good * options.spare_percent / 100;
        let beside = empty.chunks_needed - 1;
        let content = good.saturating_sub(beside + spare);
        let runs = u64::from(good) * CHANGE_BYTES as u64 * 3;
        let for_runs = narrow(runs.div_ceil(chunk_bytes));
        let content = content.saturating_sub(for_runs);
        if content == 0 {
            return Err(format!(
                "lightlsm needs {} chunks beside its tables, but the {} units have {good} good chunks in all: lease more units, \
                 choose a drive with more chunks, or fewer tables_max than {tables_max}",
                beside + spare + for_runs,
                shape.units()
            ));
        }
        let capacity_bytes = u64::from(content) * chunk_bytes;
        let sizes = Self::of(geometry, shape, options, Kept { tables_max, capacity_bytes });
        assert!(sizes.chunks_needed <= good, "{sizes:?} does not fit {good} chunks");
        Ok(sizes)
    }

    fn of(geometry: &Geometry, shape: &InstanceGeometry, options: &Options, kept: Kept) -> Self {
        let &Geometry { ws_opt: unit, ws_min: page, sectors_per_chunk: chunk, mw_cunits, .. } = geometry;
        let units = shape.units();
        let sector = u64::from(geometry.sector_bytes);
        let (page_bytes, unit_bytes) = (u64::from(page) * sector, u64::from(unit) * sector);
        let instance_bytes = shape.places() * sector;
        let asked =
            options.checkpoint_log_bytes.unwrap_or((instance_bytes / 64).min(CHECKPOINT_LOG_BYTES_MAX));
        let interval_pages = (asked / page_bytes).max(INTERVAL_PAGES_MIN);
        let log_width = log_width(units, LOG_WIDTH_MAX, options.log_copies);
        let edits_max = if interval_pages * page_bytes < 1 << 20 { EDITS_MAX_SMALL } else { EDITS_MAX };
        let row = CHANGE_BYTES + usize_of(ATTRIBUTES_BYTES_MAX);
        let edit = usize_of(edits_max) * row;
        let piece = usize_of(TAIL_PIECE_BYTES).max(RUNS_PIECE * CHANGE_BYTES) + 2 * CHANGE_BYTES;
        let largest_records = records_of(edit.max(piece));
        let largest = ((largest_records + 1) * ENTRY_BYTES) as u64;
        let largest = largest.div_ceil(page_bytes) + 1;
        // From the start of the checkpoint before the last, and while the next is written; and one largest transaction.
        let log_pages_max = 3 * interval_pages + 2 * u64::from(log_width) + largest + 4;
        // Of every table its row, and the tail of a log; of every chunk a run, and as many again where writes failed.
        let tables = u64::from(kept.tables_max) * (row as u64 + CHANGE_BYTES as u64 * 2 + unit_bytes);
        let catalog = tables + u64::from(shape.chunks()) * 2 * CHANGE_BYTES as u64;
        let wear = if options.medium.has_tags() { u64::from(shape.chunks()) * WEAR_BYTES } else { 0 };
        let bytes = catalog + wear + INFO_BYTES as u64;
        let checkpoint = CheckpointWriter::pages_of(SECTIONS, bytes, narrow(unit_bytes));
        let checkpoint_width = narrow(checkpoint / u64::from(chunk / unit)).clamp(1, units);
        assert!(unit.is_multiple_of(page) && chunk.is_multiple_of(unit), "units do not divide chunks");
        assert!(checkpoint >= 2, "a checkpoint has a page and a commit page");
        let log_chunks = chunks_of(log_pages_max * u64::from(options.log_copies), page, chunk, log_width);
        let checkpoint_chunks = checkpoint_chunks_of(checkpoint, (unit, chunk), checkpoint_width, units);
        let content = narrow(kept.capacity_bytes.div_ceil(u64::from(chunk) * sector));
        let content_chunks = content.saturating_add(kept.tables_max);
        let beside = log_chunks + checkpoint_chunks + FAILING_CHUNKS;
        Self {
            unit,
            unit_bytes,
            chunk_units: chunk / unit,
            page,
            chunk,
            mw_cunits,
            kept,
            edits_max,
            largest_records,
            log_width,
            interval_pages: narrow(interval_pages),
            log_pages_max: narrow(log_pages_max),
            log_chunks,
            checkpoint_width,
            checkpoint_chunks,
            content_chunks,
            chunks_needed: content_chunks.saturating_add(beside),
        }
    }

    /// What the host is told.
    pub const fn limits(&self) -> TableLimits {
        TableLimits {
            tables_max: self.kept.tables_max,
            table_bytes_max: self.kept.capacity_bytes,
            attributes_bytes_max: ATTRIBUTES_BYTES_MAX,
            edits_max: self.edits_max,
            capacity_bytes: self.kept.capacity_bytes,
        }
    }

    /// Units that so many bytes fill, the last in part.
    pub const fn units_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.unit_bytes)
    }
}

fn check(geometry: &Geometry, shape: &InstanceGeometry, options: &Options) -> Result<(), String> {
    options.check()?;
    if usize_of(geometry.oob_bytes) < TAG_BYTES {
        return Err(format!(
            "lightlsm keeps {TAG_BYTES} bytes beside each sector, but the drive has {}; choose a drive with more metadata",
            geometry.oob_bytes
        ));
    }
    if geometry.sectors_per_chunk < 2 * geometry.ws_opt {
        return Err(
            "lightlsm needs chunks of two write units or more; choose a drive with larger chunks".to_owned()
        );
    }
    let (per_unit, all) = (geometry.max_open_chunks_per_pu, geometry.max_open_chunks);
    if per_unit > 0 || all > 0 {
        return Err(format!(
            "lightlsm has a chunk open for each column of each table that is written, but the drive allows only so many \
             (max_open_chunks {all}, max_open_chunks_per_pu {per_unit}); choose a drive without such a limit (0)"
        ));
    }
    assert!(shape.units() > 0, "an instance has units");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::PuId;

    fn sizes(geometry: &Geometry, options: &Options, good: u32) -> Result<Sizes, String> {
        let units: Vec<PuId> = (0..geometry.pu_count()).map(PuId).collect();
        Sizes::new(geometry, &InstanceGeometry::new(geometry, &units), options, good, None)
    }

    #[test]
    fn what_is_promised_fits_and_less_is_promised_of_more_tables() {
        let geometry = Geometry::example(2, 2, 100, 96, 4);
        let few =
            sizes(&geometry, &Options { tables_max: Some(10), ..Options::default() }, 400).expect("it fits");
        let many =
            sizes(&geometry, &Options { tables_max: Some(50), ..Options::default() }, 400).expect("it fits");
        assert!(few.kept.capacity_bytes > many.kept.capacity_bytes);
        for sizes in [few, many] {
            let promised = sizes.kept.capacity_bytes / (96 * 4096) + u64::from(sizes.kept.tables_max);
            assert_eq!(u64::from(sizes.content_chunks), promised);
            assert!(sizes.chunks_needed <= 400, "{sizes:?}");
        }
    }

    #[test]
    fn the_log_has_room_for_three_intervals_and_the_largest_transaction() {
        let geometry = Geometry::example(2, 2, 100, 96, 4);
        let options = Options { checkpoint_log_bytes: Some(4 << 20), ..Options::default() };
        let sizes = sizes(&geometry, &options, 400).expect("it fits");
        let page_bytes = u64::from(sizes.page) * 4096;
        let edit = usize_of(EDITS_MAX) * (CHANGE_BYTES + usize_of(ATTRIBUTES_BYTES_MAX));
        let largest = ((records_of(edit) + 1) * ENTRY_BYTES) as u64;
        let around = 3 * sizes.interval_pages + 2 * sizes.log_width + 4 + 1;
        let room = u64::from(sizes.log_pages_max - around) * page_bytes;
        assert!((largest..largest + 8 * page_bytes).contains(&room), "{room} bytes for {largest}");
    }

    #[test]
    fn drives_that_cannot_carry_one_are_told_why() {
        let geometry = Geometry::example(1, 1, 8, 24, 4);
        let error = sizes(&geometry, &Options::default(), 8).expect_err("too few chunks");
        assert!(error.contains("8 good chunks"), "{error}");
        for (bad, says) in [
            (Geometry { oob_bytes: 0, ..geometry.clone() }, "more metadata"),
            (Geometry { sectors_per_chunk: 4, ..geometry.clone() }, "two write units"),
            (Geometry { max_open_chunks_per_pu: 9, ..geometry }, "without such a limit"),
        ] {
            let error = sizes(&bad, &Options::default(), 8).expect_err(says);
            assert!(error.contains(says), "{error}");
        }
    }
}
