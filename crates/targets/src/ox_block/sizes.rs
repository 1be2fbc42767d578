//! How large everything of an instance is, and whether the units are enough for it.
//!
//! Users get what the percentage leaves, but never what the target needs to work: a chunk open on every unit for users
//! and one for garbage collection, the log up to its bound, three checkpoints, and a reserve for garbage collection.
//! Deliberately not here: what any of it is used for at a moment.

use super::options::Options;
use ocssd_base::usize_of;
use ocssd_ftl::checkpoint::CheckpointWriter;
use ocssd_ftl::{Shape, TAG_BYTES};
use ocssd_lightnvm::Geometry;

/// Blocks of a transaction: 1 MiB of 4 KiB sectors (CIDR 2020 section 3.2; `ox.md` 0.2).
pub const TRANSACTION_BLOCKS_MAX: u32 = 256;
/// Bytes of log between checkpoints at most by default (chosen: read back in parallel in a tenth of a second).
const CHECKPOINT_LOG_BYTES_MAX: u64 = 64 << 20;
/// Pages of log between checkpoints at least (chosen: a checkpoint takes two pages or more itself).
const INTERVAL_PAGES_MIN: u64 = 8;
/// Chunks the log is striped over at most (chosen: four pages in flight keep up with a drive's commits in groups).
const LOG_WIDTH_MAX: u32 = 4;
/// Chunks lost to failures before the log or a checkpoint lacks room (chosen).
const SPARE_CHUNKS: u32 = 1;
/// Bytes of the checkpoint's section about the instance.
pub const INFO_BYTES: usize = 64;
/// Sections of a checkpoint: the instance, the map.
const SECTIONS: u64 = 2;

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
    /// Blocks users get.
    pub blocks: u64,
    /// Frames of the write buffer, for users and for garbage collection each.
    pub frames: u32,
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
    /// Free chunks that users leave to garbage collection.
    pub reserve: u32,
    /// Sectors of transactions that may be on their way beyond those the chunks are needed for: the largest transaction.
    pub gathered: u32,
    /// Good chunks that hold the users' blocks and all that is needed beside them: with as many, changes are taken.
    pub chunks_needed: u32,
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Chunks that `pages` of `page` sectors take, striped over `width` chunks, wherever they begin.
fn chunks_of(pages: u64, page: u32, chunk: u32, width: u32) -> u32 {
    assert!(page > 0 && chunk >= page && width > 0, "pages of {page} sectors in chunks of {chunk}");
    let per_chunk = u64::from(chunk / page);
    width * (narrow(pages.div_ceil(per_chunk * u64::from(width))) + 1) + SPARE_CHUNKS
}

/// Bytes of a map entry on media: as `ocssd_ftl::L2p` decides.
const fn entry_bytes(places: u64) -> u64 {
    if places < 1 << 32 { 4 } else { 8 }
}

impl Sizes {
    /// The sizes of an instance of `blocks` blocks, or of a new one if that is `None`, on units with `good` good chunks in
    /// `groups` groups.
    ///
    /// # Errors
    /// A sentence, if the units cannot carry one.
    pub fn new(
        geometry: &Geometry,
        shape: &Shape,
        options: &Options,
        (good, groups): (u32, u32),
        blocks: Option<u64>,
    ) -> Result<Self, String> {
        check(geometry, shape, options)?;
        let chunk = geometry.sectors_per_chunk;
        if let Some(blocks) = blocks {
            return Ok(Self::of(geometry, shape, options, groups, blocks));
        }
        let share = u64::from(100 - options.over_provisioning_percent);
        let mut blocks = u64::from(good) * u64::from(chunk) * share / 100;
        loop {
            let sizes = Self::of(geometry, shape, options, groups, blocks);
            if blocks > 0 && sizes.chunks_needed <= good {
                return Ok(sizes);
            }
            let over = u64::from(sizes.chunks_needed.saturating_sub(good).max(1)) * u64::from(chunk);
            if over >= blocks {
                return Err(format!(
                    "ox-block needs {} chunks beside its data, but the {} units have {good} good chunks in all: lease more units \
                     or choose a drive with more chunks",
                    sizes.chunks_needed.saturating_sub(narrow(blocks.div_ceil(u64::from(chunk)))),
                    shape.units()
                ));
            }
            blocks -= over;
        }
    }

    fn of(geometry: &Geometry, shape: &Shape, options: &Options, groups: u32, blocks: u64) -> Self {
        let &Geometry { ws_opt: unit, ws_min: page, sectors_per_chunk: chunk, mw_cunits, .. } = geometry;
        let units = shape.units();
        let page_bytes = u64::from(page) * u64::from(geometry.sector_bytes);
        let instance_bytes = shape.places() * u64::from(geometry.sector_bytes);
        let asked =
            options.checkpoint_log_bytes.unwrap_or((instance_bytes / 64).min(CHECKPOINT_LOG_BYTES_MAX));
        let interval_pages = (asked / page_bytes).max(INTERVAL_PAGES_MIN);
        let log_width = units.min(LOG_WIDTH_MAX);
        // From the start of the checkpoint before the last, and while the next is written; and one largest transaction.
        let per_page = page_bytes / u64::try_from(ocssd_ftl::log::ENTRY_BYTES).expect("small");
        let largest = u64::from(2 * TRANSACTION_BLOCKS_MAX).div_ceil(per_page.max(1));
        let log_pages_max = 3 * interval_pages + 2 * u64::from(log_width) + largest + 4;
        let map_bytes = blocks * entry_bytes(shape.places());
        let info = u64::try_from(INFO_BYTES).expect("small");
        let checkpoint = CheckpointWriter::pages_of(SECTIONS, map_bytes + info, unit * geometry.sector_bytes);
        let checkpoint_width = narrow(checkpoint / u64::from(chunk / unit)).clamp(1, units);
        assert!(unit.is_multiple_of(page) && chunk.is_multiple_of(unit), "units do not divide chunks");
        assert!(log_width > 0 && log_pages_max > 3 * interval_pages, "a log of {log_pages_max} pages");
        assert!(checkpoint >= 2, "a checkpoint has a page and a commit page");
        let log_chunks = chunks_of(log_pages_max * u64::from(options.log_copies), page, chunk, log_width);
        let checkpoint_chunks = chunks_of(3 * checkpoint, unit, chunk, checkpoint_width);
        let reserve = groups + 2;
        // What a transaction replaces stays until it is committed as a whole.
        let gathered =
            narrow(blocks.min(u64::from(TRANSACTION_BLOCKS_MAX)).next_multiple_of(u64::from(unit)));
        let data = narrow((blocks + u64::from(gathered)).div_ceil(u64::from(chunk)));
        let beside = 2 * units + log_chunks + checkpoint_chunks + reserve + 2;
        Self {
            unit,
            page,
            chunk,
            mw_cunits,
            blocks,
            frames: frames(geometry, options, units),
            log_width,
            interval_pages: narrow(interval_pages),
            log_pages_max: narrow(log_pages_max),
            log_chunks,
            checkpoint_width,
            checkpoint_chunks,
            reserve,
            gathered,
            chunks_needed: data.saturating_add(beside),
        }
    }
}

/// Frames: what every open chunk holds until it can be read and has in flight, the largest transaction, and two more.
fn frames(geometry: &Geometry, options: &Options, units: u32) -> u32 {
    let window = geometry.mw_cunits.div_ceil(geometry.ws_opt) + 1;
    assert!(units > 0 && options.writes_per_unit > 0, "nothing is written");
    let held = units * (window + options.writes_per_unit);
    held + TRANSACTION_BLOCKS_MAX.div_ceil(geometry.ws_opt) + 2
}

fn check(geometry: &Geometry, shape: &Shape, options: &Options) -> Result<(), String> {
    options.check()?;
    if usize_of(geometry.oob_bytes) < TAG_BYTES {
        return Err(format!(
            "ox-block keeps {TAG_BYTES} bytes beside each sector, but the drive has {}; choose a drive with more metadata",
            geometry.oob_bytes
        ));
    }
    if geometry.sectors_per_chunk < 2 * geometry.ws_opt {
        return Err(
            "ox-block needs chunks of two write units or more; choose a drive with larger chunks".to_owned()
        );
    }
    // Users', garbage collection's, the log's, a checkpoint's, and one of these that is about to be full.
    let (per_unit, all) = (geometry.max_open_chunks_per_pu, geometry.max_open_chunks);
    if per_unit > 0 && per_unit < 5 || all > 0 && all < 5 * shape.units() {
        return Err(format!(
            "ox-block has up to five chunks open on each unit, but the drive allows fewer (max_open_chunks {all}, \
             max_open_chunks_per_pu {per_unit}); raise these"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::PuId;

    fn sizes(percent: u32, good: u32) -> Result<Sizes, String> {
        let geometry = Geometry::example(1, 2, 40, 24, 4);
        let shape = Shape::new(&geometry, &[PuId(0), PuId(1)]);
        let options = Options { over_provisioning_percent: percent, ..Options::default() };
        Sizes::new(&geometry, &shape, &options, (good, 1), None)
    }

    #[test]
    fn users_get_what_was_asked_for_or_what_fits() {
        let large = sizes(75, 80).expect("it fits");
        assert_eq!(large.blocks, 80 * 24 / 4);
        let tight = sizes(1, 80).expect("less than asked for");
        assert!(
            tight.blocks < 80 * 24 * 99 / 100 && tight.blocks > 0 && tight.chunks_needed <= 80,
            "{tight:?}"
        );
        let error = sizes(50, 12).expect_err("too few");
        assert!(error.contains("12 good chunks"), "{error}");
    }

    #[test]
    fn an_instance_that_exists_keeps_its_blocks() {
        let geometry = Geometry::example(1, 1, 60, 24, 4);
        let shape = Shape::new(&geometry, &[PuId(0)]);
        let sizes = Sizes::new(&geometry, &shape, &Options::default(), (3, 1), Some(500)).expect("it exists");
        assert!(sizes.blocks == 500 && sizes.chunks_needed > 3);
    }
}
