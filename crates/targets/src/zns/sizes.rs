//! How large everything of an instance is, and whether the units are enough for it.
//!
//! The host gets whole zones; beside them the target keeps the log up to its bound, three checkpoints, tails, one zone's
//! chunks to copy a zone to, what padding costs active zones, and a chunk in sixty-four to replace those that fail. On large drives
//! the log and checkpoints have the first lines for themselves, twice what they may take.
//! Deliberately not here: what any of it is used for at a moment.

use super::options::{Metadata, Options, Partial, Width};
use crate::journal::{checkpoint_chunks_of, chunks_of, log_width, narrow};
use ocssd_base::usize_of;
use ocssd_ftl::checkpoint::CheckpointWriter;
use ocssd_ftl::{InstanceGeometry, TAG_BYTES};
use ocssd_lightnvm::Geometry;
use ocssd_lightnvm::interface::zoned::{UnwrittenRead, ZoneArea, ZoneGeometry};

/// Open zones that the default write buffer is for (chosen: more than a file system writes at once; a ZN540 has 14).
const OPEN_ZONES: u64 = 8;
/// Active zones for each open one (chosen: a closed zone costs a write unit, an open one a unit for each of its columns).
const ACTIVE_OF_OPEN: u64 = 2;
/// Bytes of log between checkpoints at most by default (chosen: a zone of a hundred chunks takes a page).
const CHECKPOINT_LOG_BYTES_MAX: u64 = 4 << 20;
/// Pages of log between checkpoints at least (chosen: a checkpoint takes two pages or more itself).
const INTERVAL_PAGES_MIN: u64 = 8;
/// Chunks the log is striped over at most (chosen).
const LOG_WIDTH_MAX: u32 = 2;
/// Chunks tails are striped over at most (chosen: flushes of many zones share pages).
const TAIL_WIDTH_MAX: u32 = 2;
/// Chunks of tails beyond what they need before old ones are written anew (chosen).
const TAIL_CHUNKS: u32 = 2;
/// One good chunk in so many is kept to replace those that fail (chosen).
const SPARE_OF: u32 = 64;
/// Chunks of lines kept for the log and checkpoints, for each that these may take (chosen: as many may fail, and each half of the
/// units has enough for both).
const METADATA_CHUNKS_OF: u32 = 2;
/// By default such lines are kept where they are no more than one in so many (chosen: as much as is spare).
const METADATA_LINES_OF: u32 = 64;
/// Most blocks of an append by default: 1 MiB of 4 KiB blocks, as drives report for ZASL (chosen).
const APPEND_BLOCKS_MAX: u64 = 256;
/// Most blocks of a random write area: sixteen bits on the wire (ZRWASZ).
const AREA_BLOCKS_MAX: u64 = 65_535;
/// Bytes of the checkpoint's section about the instance.
pub const INFO_BYTES: usize = 80;
/// Bytes of the checkpoint for a zone, a segment and a column at most.
pub const ZONE_BYTES: u64 = 24;
/// Bytes of a segment's head.
pub const SEGMENT_BYTES: u64 = 8;
/// Bytes of a column.
pub const COLUMN_BYTES: u64 = 8;
/// Bytes of the extension of a zone: which zone, and itself.
pub const EXTENDED_BYTES: u64 = 68;
/// Sections of a checkpoint: the instance, the zones, the chunks of tails, the extensions of zones.
const SECTIONS: u64 = 4;
/// Bytes of how often a chunk was reset, of an instance that levels wear.
const WEAR_BYTES: u64 = 4;
/// Pages of tails on their way at once (chosen).
pub const TAIL_DEPTH: u32 = 8;

/// What an instance that exists was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// Zones.
    pub zone_count: u32,
    /// Chunks of a zone.
    pub zone_chunks: u32,
    /// Lines kept for the log and checkpoints.
    pub metadata_lines: u32,
}

/// The sizes of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Sectors of a write unit: WS_OPT.
    pub unit: u32,
    /// Sectors of a page of the log: WS_MIN.
    pub page: u32,
    /// Sectors of a page of tails.
    pub tail_page: u32,
    /// Sectors of a chunk.
    pub chunk: u32,
    /// Sectors that must follow one before it can be read.
    pub mw_cunits: u32,
    /// Units a zone is striped over.
    pub width: u32,
    /// Units of the largest group.
    pub group_units: u32,
    /// Chunks of a zone.
    pub zone_chunks: u32,
    /// Units of a zone.
    pub zone_units: u32,
    /// Zones.
    pub zone_count: u32,
    /// Most open zones.
    pub open_max: u32,
    /// Most active zones.
    pub active_max: u32,
    /// Buffer units of the write buffer.
    pub buffer_units: u32,
    /// Buffer units a zone takes at most.
    pub buffer_units_of_zone: u32,
    /// Units of a random write area; none if zones take none.
    pub area_units: u32,
    /// Most zones that have an area.
    pub areas_max: u32,
    /// Chunks the log is striped over.
    pub log_width: u32,
    /// Pages of the log between checkpoints.
    pub interval_pages: u32,
    /// Pages of the log at most.
    pub log_pages_max: u32,
    /// Chunks the log may take.
    pub log_chunks: u32,
    /// Lines in which the log and checkpoints lie, and nothing else; 0: they lie anywhere.
    pub metadata_lines: u32,
    /// Chunks a checkpoint is striped over.
    pub checkpoint_width: u32,
    /// Chunks checkpoints may take.
    pub checkpoint_chunks: u32,
    /// Chunks tails are striped over.
    pub tail_width: u32,
    /// Chunks tails may take.
    pub tail_chunks: u32,
    /// Chunks more than its share that an active zone may need.
    pub window_chunks: u32,
    /// Good chunks, but those of lines kept for the log and checkpoints, that hold all zones and what is needed beside them: with
    /// as many, zones are written.
    pub chunks_needed: u32,
}

/// Chunks more than its share that a zone over `width` units may need, because what lies at the end of its columns was padded.
pub const fn window_chunks(geometry: &Geometry, width: u32) -> u32 {
    let window = geometry.mw_cunits.div_ceil(geometry.ws_opt);
    (width * window).div_ceil(geometry.sectors_per_chunk / geometry.ws_opt)
}

/// What the drive and its units are.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// The drive.
    pub geometry: &'a Geometry,
    /// The units.
    pub shape: &'a InstanceGeometry,
    /// Of so many lines from the first on, the chunks that are not bad.
    pub good_in: &'a dyn Fn(u32) -> u32,
    /// Units of the largest group.
    pub group_units: u32,
}

impl Ground<'_> {
    /// Chunks that are not bad, but those of the first lines.
    fn good_behind(&self, lines: u32) -> u32 {
        (self.good_in)(self.shape.lines()) - (self.good_in)(lines)
    }
}

/// Pages of a checkpoint of so many zones at most.
fn checkpoint_pages(ground: &Ground<'_>, options: &Options, zone_count: u32) -> u64 {
    let places = u64::from(ground.shape.chunks());
    let bytes = u64::from(zone_count) * (ZONE_BYTES + SEGMENT_BYTES + EXTENDED_BYTES)
        + 2 * places * (COLUMN_BYTES + SEGMENT_BYTES / 8);
    let levels = options.wear_bound().is_some();
    let bytes = bytes + if levels { places * WEAR_BYTES } else { 0 };
    let info = u64::try_from(INFO_BYTES).expect("small");
    let page_bytes = ground.geometry.ws_opt * ground.geometry.sector_bytes;
    CheckpointWriter::pages_of(SECTIONS + u64::from(levels), bytes + info, page_bytes)
}

impl Sizes {
    /// The sizes of an instance that is `fixed`, or of a new one.
    ///
    /// # Errors
    /// A sentence, if the units cannot carry one.
    pub fn new(ground: &Ground<'_>, options: &Options, fixed: Option<Fixed>) -> Result<Self, String> {
        check(ground.geometry, options)?;
        let width = width(ground, options)?;
        let zone_chunks =
            fixed.map_or_else(|| options.zone_chunks.unwrap_or(width), |fixed| fixed.zone_chunks);
        if let Some(asked) = options.zone_chunks.filter(|&asked| asked != zone_chunks) {
            return Err(format!(
                "the instance has zones of {zone_chunks} chunks, but zone_chunks={asked} was asked for: leave it out, or make a new \
                 instance"
            ));
        }
        let width = width.min(zone_chunks);
        let capacity = u64::from(zone_chunks) * u64::from(ground.geometry.sectors_per_chunk);
        if capacity.next_power_of_two() >= 1 << 32 {
            return Err(format!(
                "zones of {zone_chunks} chunks have 2^32 blocks or more: ask for smaller ones"
            ));
        }
        let good = (ground.good_in)(ground.shape.lines());
        let lines = fixed.map(|fixed| fixed.metadata_lines);
        let of = |zone_count| Self::of(ground, (options, lines), (width, zone_chunks, zone_count));
        if let Some(fixed) = fixed {
            return of(fixed.zone_count);
        }
        let mut zone_count = good / zone_chunks;
        while zone_count > 0 {
            let sizes = of(zone_count)?;
            let good = ground.good_behind(sizes.metadata_lines);
            if sizes.chunks_needed <= good {
                return Ok(sizes);
            }
            let over = (sizes.chunks_needed - good).div_ceil(zone_chunks).max(1);
            zone_count = zone_count.saturating_sub(over);
        }
        Err(format!(
            "zns needs zones of {zone_chunks} chunks and {} chunks beside, but the {} units have {} good chunks in all: lease more \
             units, ask for smaller zones (zone_chunks, width) or choose a drive with more chunks",
            of(1)?.chunks_beside(ground),
            ground.shape.units(),
            good
        ))
    }

    /// Chunks that are needed beside one zone, if there is one.
    fn chunks_beside(&self, ground: &Ground<'_>) -> u32 {
        self.chunks_needed - self.zone_chunks + (ground.good_in)(self.metadata_lines)
    }

    fn of(
        ground: &Ground<'_>,
        (options, lines): (&Options, Option<u32>),
        zones: (u32, u32, u32),
    ) -> Result<Self, String> {
        let &Geometry { ws_opt: unit, ws_min: page, sectors_per_chunk: chunk, mw_cunits, .. } =
            ground.geometry;
        let (width, zone_chunks, zone_count) = zones;
        let limits = limits(ground, options, width, zone_count)?;
        check_area(ground.geometry, options, zone_chunks)?;
        let (units, sector) = (ground.shape.units(), ground.geometry.sector_bytes);
        let page_bytes = u64::from(page) * u64::from(sector);
        let instance_bytes = ground.shape.places() * u64::from(sector);
        let asked =
            options.checkpoint_log_bytes.unwrap_or((instance_bytes / 64).min(CHECKPOINT_LOG_BYTES_MAX));
        let interval_pages = (asked / page_bytes).max(INTERVAL_PAGES_MIN);
        let log_width = log_width(units, LOG_WIDTH_MAX, options.log_copies);
        let per_page = page_bytes / u64::try_from(ocssd_ftl::log::ENTRY_BYTES).expect("small");
        // A zone that failed again and again is logged as a whole.
        let largest = 16 * u64::from(zone_chunks + width) + 64;
        let log_pages_max =
            3 * interval_pages + 2 * u64::from(log_width) + largest.div_ceil(per_page.max(1)) + 4;
        let checkpoint = checkpoint_pages(ground, options, zone_count);
        assert!(zone_chunks >= width && width > 0, "zones of {zone_chunks} chunks over {width} units");
        let Limits { open, active, .. } = limits;
        assert!(open <= active, "more zones may be open than active: {open} of {active}");
        let checkpoint_width = narrow(checkpoint / u64::from(chunk / unit)).clamp(1, units);
        let tail_width = units.min(TAIL_WIDTH_MAX);
        assert!(unit.is_multiple_of(page) && chunk.is_multiple_of(unit), "units do not divide chunks");
        assert!(checkpoint >= 2 && log_width > 0, "a checkpoint has a page and a commit page");
        let log_chunks = chunks_of(log_pages_max * u64::from(options.log_copies), page, chunk, log_width);
        let checkpoint_chunks = checkpoint_chunks_of(checkpoint, (unit, chunk), checkpoint_width, units);
        let (tail_page, tail_chunks) = tails(ground.geometry, options, &limits, tail_width);
        let ragged = window_chunks(ground.geometry, width) * limits.active;
        let metadata_lines = metadata_lines(ground, options, lines, log_chunks + checkpoint_chunks)?;
        let metadata = if metadata_lines > 0 { 0 } else { log_chunks + checkpoint_chunks };
        let beside = metadata + tail_chunks + zone_chunks + ragged + 1;
        let needed = zone_count.saturating_mul(zone_chunks).saturating_add(beside);
        Ok(Self {
            unit,
            page,
            tail_page,
            chunk,
            mw_cunits,
            width,
            group_units: ground.group_units,
            zone_chunks,
            zone_units: zone_chunks * (chunk / unit),
            zone_count,
            open_max: limits.open,
            active_max: limits.active,
            buffer_units: limits.buffer_units,
            buffer_units_of_zone: limits.of_zone,
            area_units: options.area_units,
            areas_max: limits.areas,
            log_width,
            interval_pages: narrow(interval_pages),
            log_pages_max: narrow(log_pages_max),
            log_chunks,
            metadata_lines,
            checkpoint_width,
            checkpoint_chunks,
            tail_width,
            tail_chunks,
            window_chunks: window_chunks(ground.geometry, width),
            chunks_needed: needed.saturating_add(needed / SPARE_OF),
        })
    }

    /// Units of a chunk.
    pub const fn chunk_units(&self) -> u32 {
        self.chunk / self.unit
    }

    /// Blocks of a zone.
    pub const fn capacity(&self) -> u32 {
        self.zone_chunks * self.chunk
    }

    /// The zones as the host sees them.
    pub fn zone_geometry(&self, block_bytes: u32) -> ZoneGeometry {
        let capacity_blocks = u64::from(self.capacity());
        ZoneGeometry {
            block_bytes,
            zone_blocks: capacity_blocks.next_power_of_two(),
            capacity_blocks,
            zone_count: self.zone_count,
            active_max: Some(self.active_max),
            open_max: Some(self.open_max),
            append_blocks_max: narrow(capacity_blocks.min(APPEND_BLOCKS_MAX)),
            unwritten_read: UnwrittenRead::Zeroes,
            takes_extensions: true,
            area: (self.area_units > 0).then(|| ZoneArea {
                blocks: u16::try_from(self.area_units * self.unit).expect("it was checked"),
                granularity: u16::try_from(self.unit).expect("no more than an area"),
                areas_max: self.areas_max,
            }),
        }
    }
}

/// Most lines that a new instance keeps for the log and checkpoints unless it is told to: a mount looks there first.
pub const fn most_metadata_lines(lines: u32) -> u32 {
    lines / METADATA_LINES_OF
}

/// Lines that the log and checkpoints, which take `chunks`, have for themselves: those of the instance that exists, or of a new
/// one.
fn metadata_lines(
    ground: &Ground<'_>,
    options: &Options,
    found: Option<u32>,
    chunks: u32,
) -> Result<u32, String> {
    let (asked, all) = (options.metadata, ground.shape.lines());
    match (found, asked) {
        (Some(0), Metadata::Apart) => Err(
            "the log and checkpoints of the instance lie anywhere, but metadata=apart was asked for: leave it out, or make a new \
             instance"
                .to_owned(),
        ),
        (Some(lines), Metadata::Anywhere) if lines > 0 => Err(format!(
            "the log and checkpoints of the instance lie in the first {lines} chunks of each unit, but metadata=anywhere was asked \
             for: leave it out, or make a new instance"
        )),
        (Some(lines), _) => Ok(lines),
        (None, Metadata::Anywhere) => Ok(0),
        (None, _) => {
            let lines = (METADATA_CHUNKS_OF * chunks).div_ceil(ground.shape.units());
            let has_room = lines <= all && (ground.good_in)(lines) >= chunks;
            match asked {
                Metadata::Apart if has_room => Ok(lines),
                Metadata::Apart => Err(format!(
                    "the log and checkpoints may take {chunks} chunks, but of the first {lines} of {all} lines not as many are good: \
                     leave metadata=apart out, or lease more units"
                )),
                _ if has_room && lines <= most_metadata_lines(all) => Ok(lines),
                _ => Ok(0),
            }
        }
    }
}

fn width(ground: &Ground<'_>, options: &Options) -> Result<u32, String> {
    let units = ground.shape.units();
    let width = match options.width {
        Width::All => units,
        Width::Group => ground.group_units,
        Width::Units(width) => width,
    };
    if width > units {
        return Err(format!(
            "zones cannot be striped over {width} units, because {units} are leased: width must be at most {units}"
        ));
    }
    Ok(width)
}

/// Sectors of a page of tails, and how many chunks tails may take.
fn tails(geometry: &Geometry, options: &Options, limits: &Limits, width: u32) -> (u32, u32) {
    let &Geometry { ws_opt: unit, ws_min: page, sectors_per_chunk: chunk, .. } = geometry;
    let tail_page = if options.partial == Partial::Log { page } else { unit };
    // What all active zones may have in tails, those being written, and as many that are emptied. Of areas there are older
    // versions beside.
    let of_areas = limits.areas * options.area_units;
    let pages = (limits.active + 2 * of_areas) * unit.div_ceil(tail_page);
    (tail_page, width + pages.div_ceil(chunk / tail_page) + TAIL_CHUNKS)
}

/// An area is no larger than a zone, and its length fits the wire.
fn check_area(geometry: &Geometry, options: &Options, zone_chunks: u32) -> Result<(), String> {
    let area = u64::from(options.area_units) * u64::from(geometry.ws_opt);
    if area > AREA_BLOCKS_MAX.min(u64::from(zone_chunks) * u64::from(geometry.sectors_per_chunk)) {
        return Err(format!(
            "a random write area of {area} blocks is larger than a zone, or than {AREA_BLOCKS_MAX} blocks: ask for a smaller one \
             (area_units)"
        ));
    }
    Ok(())
}

struct Limits {
    open: u32,
    active: u32,
    buffer_units: u32,
    of_zone: u32,
    areas: u32,
}

/// How many zones may be open and active: what the write buffer has buffer units for.
///
/// An active zone holds the unit it fills and what cannot be read from its columns yet; an open one a unit on its way to each
/// column beside. Twice as many may be active as open. One with a random write area holds that beside; as many may have one as may
/// be open.
fn limits(ground: &Ground<'_>, options: &Options, width: u32, zone_count: u32) -> Result<Limits, String> {
    let geometry = ground.geometry;
    let unit_bytes = u64::from(geometry.ws_opt) * u64::from(geometry.sector_bytes);
    let window = u64::from(geometry.mw_cunits.div_ceil(geometry.ws_opt));
    let (active, open) = (u64::from(width) * window + 1, u64::from(width));
    let cost = ACTIVE_OF_OPEN * active + open + u64::from(options.area_units);
    let slack = u64::from(width) + 2;
    let default = OPEN_ZONES.min(u64::from(zone_count)) * cost + slack;
    let buffer_units = options.buffer_bytes.map_or(default, |bytes| bytes / unit_bytes);
    let open_max = buffer_units.saturating_sub(slack) / cost;
    if open_max == 0 {
        return Err(format!(
            "one open zone over {width} units takes a write buffer of {} bytes, but buffer_bytes is {}: raise it, or choose a smaller \
             width",
            (cost + slack) * unit_bytes,
            buffer_units * unit_bytes
        ));
    }
    let (drive, all) = (geometry.max_open_chunks_per_pu, geometry.max_open_chunks);
    // The log (of each copy, where there is one unit), a checkpoint and tails have a chunk each, and one zone more is closed.
    let units = ground.shape.units();
    let own = 2 + if units == 1 { options.log_copies } else { 1 };
    assert!((3..=4).contains(&own), "{own} chunks of the target's own on a unit");
    let by_drive = if drive > 0 { u64::from(drive).saturating_sub(u64::from(own + 1)) } else { u64::MAX };
    let beside = u64::from(own * units);
    let by_all =
        if all > 0 { u64::from(all).saturating_sub(beside) / u64::from(width) / 2 } else { u64::MAX };
    let most = by_drive.min(by_all);
    if most == 0 {
        return Err(format!(
            "zns has {} chunks open on each unit, but the drive allows fewer (max_open_chunks {all}, max_open_chunks_per_pu \
             {drive}); raise these",
            own + 2
        ));
    }
    let active_max = (ACTIVE_OF_OPEN * open_max).min(most).min(u64::from(zone_count).max(1));
    Ok(Limits {
        open: narrow(open_max.min(active_max)),
        active: narrow(active_max),
        areas: if options.area_units > 0 { narrow(open_max.min(active_max)) } else { 0 },
        buffer_units: narrow(buffer_units),
        of_zone: narrow(u64::from(width) * (window + u64::from(options.writes_per_unit)) + 2),
    })
}

fn check(geometry: &Geometry, options: &Options) -> Result<(), String> {
    options.check()?;
    if usize_of(geometry.oob_bytes) < TAG_BYTES {
        return Err(format!(
            "zns keeps {TAG_BYTES} bytes beside each sector, but the drive has {}; choose a drive with more metadata",
            geometry.oob_bytes
        ));
    }
    if geometry.sectors_per_chunk < 2 * geometry.ws_opt {
        return Err(
            "zns needs chunks of two write units or more; choose a drive with larger chunks".to_owned()
        );
    }
    if geometry.mw_cunits + geometry.ws_opt > geometry.sectors_per_chunk {
        return Err(format!(
            "a chunk of {} sectors cannot be read before {} more are written (mw_cunits); choose a drive with larger chunks",
            geometry.sectors_per_chunk, geometry.mw_cunits
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::PuId;

    fn sizes(options: &Options, good: u32, fixed: Option<Fixed>) -> Result<Sizes, String> {
        let geometry = Geometry { mw_cunits: 8, ..Geometry::example(2, 2, 40, 24, 4) };
        let shape = InstanceGeometry::new(&geometry, &(0..4).map(PuId).collect::<Vec<_>>());
        // The last chunks are bad.
        let good_in = |lines: u32| (4 * lines).min(good);
        let ground = Ground { geometry: &geometry, shape: &shape, good_in: &good_in, group_units: 2 };
        Sizes::new(&ground, options, fixed)
    }

    #[test]
    fn zones_have_the_chunks_of_their_width_and_a_size_that_linux_takes() {
        let wide = sizes(&Options::default(), 160, None).expect("it fits");
        assert_eq!((wide.width, wide.zone_chunks, wide.capacity(), wide.zone_units), (4, 4, 96, 24));
        assert!(wide.chunks_needed <= 160 && wide.zone_count > 20, "{wide:?}");
        let zones = wide.zone_geometry(4096).checked().expect("zones that Linux takes");
        assert_eq!((zones.zone_blocks, zones.capacity_blocks), (128, 96));
        let group = Options { width: Width::Group, zone_chunks: Some(6), ..Options::default() };
        let narrow = sizes(&group, 160, None).expect("it fits");
        assert_eq!((narrow.width, narrow.zone_chunks), (2, 6));
    }

    #[test]
    fn a_drive_on_which_too_few_chunks_may_be_open_is_refused() {
        for (units, log_copies, open) in [(2, 2, 5), (1, 1, 5), (1, 2, 6)] {
            let options = Options { log_copies, ..Options::default() };
            let made = |max_open_chunks_per_pu| {
                let geometry = Geometry {
                    max_open_chunks_per_pu,
                    mw_cunits: 8,
                    ..Geometry::example(1, units, 80, 24, 4)
                };
                let shape = InstanceGeometry::new(&geometry, &(0..units).map(PuId).collect::<Vec<_>>());
                let good_in = |lines: u32| lines * units;
                let ground =
                    Ground { geometry: &geometry, shape: &shape, good_in: &good_in, group_units: units };
                Sizes::new(&ground, &options, None)
            };
            assert!(made(open).is_ok(), "{units} units, {log_copies} copies: {:?}", made(open));
            let error = made(open - 1).expect_err("one too few");
            assert!(error.contains(&format!("zns has {open} chunks open on each unit")), "{error}");
        }
    }

    fn small_buffer(buffer_units: u64) -> Options {
        Options { buffer_bytes: Some(buffer_units * 16_384), ..Options::default() }
    }

    #[test]
    fn the_write_buffer_says_how_many_zones_are_open() {
        let wide = sizes(&Options::default(), 160, None).expect("it fits");
        // Two units cannot be read: an active zone holds 4 * 2 + 1 buffer units, an open one 4 more.
        assert_eq!((wide.open_max, wide.active_max, wide.buffer_units), (8, 16, 8 * (2 * 9 + 4) + 6));
        let small = Options { buffer_bytes: Some(28 * 16_384), ..Options::default() };
        let small = sizes(&small, 160, None).expect("one zone");
        assert_eq!((small.open_max, small.active_max), (1, 2));
        let area = Options { area_units: 2, ..small_buffer(30) };
        let area = sizes(&area, 160, None).expect("one zone and its area");
        assert_eq!((area.open_max, area.areas_max, wide.areas_max), (1, 1, 0));
        assert!(
            sizes(&Options { area_units: 3, ..small_buffer(30) }, 160, None).is_err(),
            "a buffer unit is missing"
        );
        let tiny = Options { buffer_bytes: Some(27 * 16_384), ..Options::default() };
        let error = sizes(&tiny, 160, None).expect_err("none");
        assert!(error.contains("458752 bytes"), "{error}");
    }

    #[test]
    fn what_does_not_fit_is_told_with_what_would() {
        for (options, good, says) in [
            (Options { width: Width::Units(5), ..Options::default() }, 160, "at most 4"),
            (Options { zone_chunks: Some(150), ..Options::default() }, 160, "160 good chunks"),
            (Options { area_units: 25, ..Options::default() }, 160, "larger than a zone"),
            (Options::default(), 12, "lease more units"),
        ] {
            let error = sizes(&options, good, None).expect_err(says);
            assert!(error.contains(says), "{error}");
        }
        let fixed = Some(Fixed { zone_count: 3, zone_chunks: 4, metadata_lines: 0 });
        let error =
            sizes(&Options { zone_chunks: Some(8), ..Options::default() }, 160, fixed).expect_err("fixed");
        assert!(error.contains("zones of 4 chunks"), "{error}");
        let same =
            sizes(&Options { width: Width::Units(2), ..Options::default() }, 3, fixed).expect("it exists");
        assert_eq!((same.zone_count, same.width, same.zone_chunks), (3, 2, 4));
    }
}
