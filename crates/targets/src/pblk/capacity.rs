//! How much of the leased units the user gets, and whether the rest is enough to work with.
//!
//! Counted in sectors of data: heads and tails of chunks are gone before anything is divided. Deliberately not here:
//! what the rest is used for at any moment.

use super::options::{Mode, Options, PERCENT_MAX};
use super::pieces;
use ocssd_ftl::{ChunkLayout, InstanceGeometry, TAG_BYTES, UnitIndex, tail};
use ocssd_lightnvm::{ChunkDescriptor, ChunkId, ChunkState, Geometry, PuId, VECTOR_MAX};

/// Pages whose sectors pblk's ring of 4.12 to 4.16 held for each unit (Linux `pblk-init.c`).
const RING_PAGES: u64 = 8;
/// Fewest entries of that ring.
const RING_ENTRIES_MIN: u64 = 128;

/// Data between two checkpoints unless asked for otherwise, at most (chosen: a mount after a power cut reads what was written in
/// up to two intervals, whatever the capacity; a checkpoint of 2 TB, 2 GB, is then a thirtieth of what is written).
const CHECKPOINT_INTERVAL_BYTES_MAX: u64 = 64 << 30;

/// Write units smaller than this are written several at a time (chosen: 64 KiB, Westlake's unit. A host's work for a command is
/// the same for any size: docs/pblk.md has the numbers).
const SMALL_WRITE_SECTORS: u32 = 16;
/// Writes that a chunk takes at least where units are joined (chosen: then at most a sixty-fourth of it is filled at its end).
const CHUNK_WRITES_MIN: u32 = 64;

/// Most lines open at once (chosen: twice the streams there can be, with checkpoints, and as many left by a power cut).
const OPEN_LINES_MAX: u32 = 32;

/// Most lines that a drive too small is told to have (chosen: more than any needs of the smallest chunks).
const LEAST_LINES_MAX: u32 = 1024;

/// The sizes of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// How chunks are used.
    pub layout: ChunkLayout,
    /// Sectors the user gets.
    pub user_sectors: u64,
    /// Sectors the user would get of the percentage that was asked for; `None` if they would not fit.
    pub wanted_sectors: Option<u64>,
    /// The percentage a new instance is made with.
    pub over_provisioning_percent: u32,
    /// Good chunks that hold these and all that a new instance of this size needs beside them: with as many, changes are
    /// taken.
    pub chunks_needed: u64,
    /// Lines nobody but garbage collection and checkpoints may open.
    pub reserve_lines: u32,
    /// Of these, lines for what users have in the buffer already.
    pub buffer_lines: u32,
    /// Free lines at which garbage collection begins.
    pub start_lines: u32,
    /// Lines checkpoints may hold at a time: two of them, each begun in the middle of a line.
    pub map_lines: u32,
    /// Lines of a whole checkpoint.
    pub checkpoint_lines: u32,
    /// Buffer units of the write buffer.
    pub buffer_units: u32,
    /// Buffer units the device needs for every written sector to be readable.
    pub buffer_units_needed: u32,
    /// Lines that may be open at once.
    pub open_lines: u32,
    /// Data written between checkpoints, in sectors; 0 for none.
    pub checkpoint_interval: u64,
}

impl Capacity {
    /// Sectors of the write buffer.
    pub const fn slots(&self) -> u32 {
        self.buffer_units * self.layout.batch
    }
}

/// What options ask for, whatever lies on the media.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// How chunks are used.
    pub layout: ChunkLayout,
    open_lines: u32,
    buffer_units: u32,
    buffer_units_needed: u32,
}

/// Looks whether `options` fit each other and the drive, before anything is read or written.
///
/// # Errors
/// A sentence that says what does not fit, and what would.
pub fn ask(geometry: &Geometry, shape: &InstanceGeometry, options: &Options) -> Result<Asked, String> {
    options.check()?;
    check_oob(geometry)?;
    let layout = layout(geometry, options)?;
    let open_lines = open_lines(geometry, options)?;
    let streams = options.classification().streams();
    let (buffer_units, buffer_units_needed) = buffer_units(geometry, &layout, shape, options, streams)?;
    let commands = options.knobs.commands_max;
    if commands <= shape.units().div_ceil(VECTOR_MAX) {
        return Err(format!(
            "commands_max={commands} are too few to reset the chunks of {} units",
            shape.units()
        ));
    }
    assert!(open_lines > streams, "a stream without a line to write to");
    assert!(
        buffer_units >= buffer_units_needed || options.small_write_buffer,
        "a buffer too small was let through"
    );
    Ok(Asked { layout, open_lines, buffer_units, buffer_units_needed })
}

/// What must stay beside the users' sectors.
struct Beside {
    map_lines: u32,
    checkpoint_lines: u32,
    buffer_lines: u32,
    reserve_lines: u32,
    sectors: u64,
}

/// What that depends on, but for how much users get.
struct Needed<'a> {
    geometry: &'a Geometry,
    shape: &'a InstanceGeometry,
    options: &'a Options,
    layout: ChunkLayout,
    buffer_units: u32,
    streams: u32,
    /// Sectors of data of a line whose chunks are all good.
    line_sectors: u64,
}

impl<'a> Needed<'a> {
    fn new(geometry: &'a Geometry, shape: &'a InstanceGeometry, options: &'a Options, asked: &Asked) -> Self {
        let line_sectors = u64::from(shape.units()) * u64::from(asked.layout.data_sectors());
        let streams = options.classification().streams();
        let Asked { layout, buffer_units, .. } = *asked;
        Self { geometry, shape, options, layout, buffer_units, streams, line_sectors }
    }

    /// True if `users` sectors and what must stay beside them fit so many.
    fn fit(&self, sectors: u64, users: u64) -> bool {
        users > 0 && sectors - users >= self.beside(users).sectors
    }

    /// Fewest chunks of a unit, more than there are, with which the most over-provisioning that may be asked for is enough.
    fn least(&self) -> Option<u32> {
        let units: Vec<PuId> = (0..self.shape.units()).map(|unit| self.shape.pu(UnitIndex(unit))).collect();
        let fits = |&chunks_per_pu: &u32| {
            let geometry = Geometry { chunks_per_pu, ..self.geometry.clone() };
            let shape = InstanceGeometry::new(&geometry, &units);
            let sectors = u64::from(chunks_per_pu) * self.line_sectors;
            let larger = Needed { geometry: &geometry, shape: &shape, ..*self };
            larger.fit(sectors, sectors * u64::from(100 - PERCENT_MAX) / 100)
        };
        (self.shape.lines() + 1..=LEAST_LINES_MAX).find(fits)
    }

    fn beside(&self, user_sectors: u64) -> Beside {
        let Self { geometry, shape, options, layout, buffer_units, streams, line_sectors } = *self;
        // One checkpoint is written while the last one stands, each begun in the middle of a line.
        let checkpoint_lines =
            narrow(checkpoint_sectors(geometry, shape, options, user_sectors).div_ceil(line_sectors));
        let map_lines = 2 * checkpoint_lines + 1;
        // What users have put into the buffer must always find a place: lines drain only once it has been programmed.
        let buffer_lines = narrow((u64::from(buffer_units) * u64::from(layout.batch)).div_ceil(line_sectors));
        // Each stream has a line open and may need the next; one is being emptied.
        let reserve_lines = streams + map_lines + buffer_lines + 1;
        // A line that would give less than a buffer unit is never emptied: so much may be dead in each, and stay.
        let held = u64::from(layout.batch - layout.unit) * u64::from(shape.lines());
        let sectors = u64::from(reserve_lines + streams + 1) * line_sectors + held;
        assert!(sectors > 0 && reserve_lines > map_lines, "nothing is kept beside the users' sectors");
        Beside { map_lines, checkpoint_lines, buffer_lines, reserve_lines, sectors }
    }
}

/// The sizes for `options`, which ask for what `asked` says, on the units of `shape`. An instance that exists keeps its
/// blocks; chunks that died since make it read-only, and are no reason to refuse it.
///
/// # Errors
/// A sentence that says what does not fit, and what would.
pub fn plan(
    geometry: &Geometry,
    shape: &InstanceGeometry,
    options: &Options,
    asked: &Asked,
    existing: Option<u64>,
    report: &dyn Fn(ChunkId) -> ChunkDescriptor,
) -> Result<Capacity, String> {
    let Asked { layout, open_lines, buffer_units, buffer_units_needed } = *asked;
    let good = good_chunks(shape, report);
    let good_sectors = good * u64::from(layout.data_sectors());
    assert!(good_sectors <= shape.places(), "more data than places");
    let streams = options.classification().streams();
    let lines = Needed::new(geometry, shape, options, asked);
    let line_sectors = lines.line_sectors;
    let of_percent = |percent: u32| good_sectors * u64::from(100 - percent) / 100;
    let asked_percent = options.over_provisioning_percent;
    let most =
        if options.over_provisioning_stated || existing.is_some() { asked_percent } else { PERCENT_MAX };
    let fits = |percent: &u32| lines.fit(good_sectors, of_percent(*percent));
    let percent = (asked_percent..=most).find(fits).unwrap_or(asked_percent);
    let user_sectors = existing.unwrap_or(of_percent(percent));
    let beside = lines.beside(user_sectors);
    let Beside { map_lines, checkpoint_lines, buffer_lines, reserve_lines, sectors: need } = beside;
    assert!(line_sectors > 0 && reserve_lines > streams, "lines without data, or none kept");
    let spare = good_sectors.saturating_sub(user_sectors);
    if let Some(blocks) = existing {
        check_existing(blocks, need, u64::from(shape.lines()) * line_sectors)?;
    } else if !fits(&percent) {
        let least = (asked_percent..=PERCENT_MAX).find(fits);
        return Err(too_small(&lines, need, good_sectors, spare, least));
    }
    let spare_lines = narrow(spare / line_sectors);
    let interval = options.checkpoint_interval_bytes.map_or_else(
        || match options.mode {
            Mode::Improved => {
                (user_sectors / 16).min(CHECKPOINT_INTERVAL_BYTES_MAX / u64::from(geometry.sector_bytes))
            }
            Mode::Faithful => 0,
        },
        |bytes| bytes.div_ceil(u64::from(geometry.sector_bytes)),
    );
    let start_lines = match options.mode {
        // pblk began at an eighth of all chunks, whatever was spare (Linux 4.14, `pblk-rl.c`).
        Mode::Faithful => (shape.lines() / 8).clamp(reserve_lines + 1, spare_lines.max(reserve_lines + 1)),
        // Close to the end: the longer data may die, the less is moved.
        Mode::Improved => (reserve_lines + 1 + spare_lines / 16).min(spare_lines),
    };
    assert!(existing.is_some() || user_sectors < good_sectors, "nothing is spare");
    assert!(map_lines >= 3, "two checkpoints and the line between them do not fit {map_lines} lines");
    assert!(reserve_lines > buffer_lines + map_lines, "the reserve has no line for garbage collection");
    Ok(Capacity {
        layout,
        user_sectors,
        wanted_sectors: fits(&asked_percent).then(|| of_percent(asked_percent)),
        over_provisioning_percent: percent,
        chunks_needed: (user_sectors + need).div_ceil(u64::from(layout.data_sectors())),
        reserve_lines,
        buffer_lines,
        start_lines,
        map_lines,
        checkpoint_lines,
        buffer_units,
        buffer_units_needed,
        open_lines,
        checkpoint_interval: interval,
    })
}

/// Whether an instance of `blocks` can work on its units as asked, were all chunks good.
fn check_existing(blocks: u64, need: u64, sectors: u64) -> Result<(), String> {
    if blocks > 0 && blocks + need <= sectors {
        return Ok(());
    }
    Err(format!(
        "the pblk instance on these units has {blocks} blocks, and with these options needs {need} sectors beside them, but \
         the units have {sectors}; mount it on the units it was made on, or choose a classification with fewer streams or a \
         smaller write_buffer_bytes"
    ))
}

/// What is missing, and what would fit: `percent` on these units, or else larger ones.
fn too_small(lines: &Needed<'_>, need: u64, good_sectors: u64, spare: u64, percent: Option<u32>) -> String {
    let line_sectors = lines.line_sectors;
    let fits = percent.map_or_else(
        || {
            let least = lines.least().map_or_else(String::new, |least| {
                format!(": it needs units of at least {least} chunks (its setting chunks_per_pu)")
            });
            format!("this drive is too small for pblk{least}")
        },
        |percent| format!("over_provisioning_percent must be at least {percent}"),
    );
    format!(
        "pblk needs {} of {} lines for open lines, checkpoints and garbage collection, but {} % leave it {}; {fits}",
        need / line_sectors,
        good_sectors / line_sectors.max(1),
        lines.options.over_provisioning_percent,
        spare / line_sectors,
    )
}

/// Sectors a checkpoint takes at most: the entries of all shards, the bits of all lines, and the header.
fn checkpoint_sectors(
    geometry: &Geometry,
    shape: &InstanceGeometry,
    options: &Options,
    user_sectors: u64,
) -> u64 {
    let shard = options.knobs.map_shard.sectors();
    let sector_bytes = usize::try_from(geometry.sector_bytes).expect("32 bits fit an index");
    let piece = pieces::content_bytes(sector_bytes, options.knobs.checkpoint_piece_bytes);
    let piece = u64::try_from(piece).expect("a piece is small");
    let entry_bytes = if shape.places() < 1 << 31 { 4 } else { 8 };
    let map = user_sectors.div_ceil(shard) * user_sectors.min(shard).div_ceil(piece / entry_bytes);
    let lines = u64::from(shape.lines());
    let bits = (lines * shape.sectors_per_line().div_ceil(64) * 8).div_ceil(piece);
    // 32 bytes a line, 4 a chunk of an open one; the rest is a few numbers.
    let header = 128 + lines * 32 + u64::from(OPEN_LINES_MAX) * (8 + 4 * u64::from(shape.units()));
    map + bits + header.div_ceil(piece) + u64::from(geometry.ws_opt)
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).expect("fewer lines than 2^32")
}

/// Lines that may be open at once: what the drive's limits on open chunks leave this instance, if all its units are leased
/// to equals.
fn open_lines(geometry: &Geometry, options: &Options) -> Result<u32, String> {
    let none = |limit: u32| if limit == 0 { u32::MAX } else { limit };
    let per_unit = none(geometry.max_open_chunks_per_pu);
    let drive = none(geometry.max_open_chunks) / geometry.pu_count();
    let limit = OPEN_LINES_MAX.min(per_unit).min(drive);
    let needed = options.classification().streams() + 1;
    if limit < needed {
        return Err(format!(
            "pblk with classification={} keeps {needed} chunks open in every unit, but this drive allows {limit} \
             (max_open_chunks {}, max_open_chunks_per_pu {}); raise these, or choose a classification with fewer streams \
             (none needs 2)",
            options.classification(),
            geometry.max_open_chunks,
            geometry.max_open_chunks_per_pu,
        ));
    }
    Ok(limit)
}

fn check_oob(geometry: &Geometry) -> Result<(), String> {
    let least = u32::try_from(TAG_BYTES).expect("16");
    if geometry.oob_bytes < least {
        return Err(format!(
            "pblk keeps {least} bytes beside every sector, but this drive has {}; give it oob_bytes = {least}",
            geometry.oob_bytes
        ));
    }
    Ok(())
}

/// How chunks are used.
///
/// # Errors
/// A sentence, if they are too small, or `sec_per_write` is none for them.
fn layout(geometry: &Geometry, options: &Options) -> Result<ChunkLayout, String> {
    let (sectors, unit) = (geometry.sectors_per_chunk, geometry.ws_opt);
    let tail = tail::tail_sectors(sectors, unit, geometry.sector_bytes);
    let batch = options.sec_per_write.unwrap_or_else(|| batch_of(unit, sectors, options.mode));
    if batch == 0 || !batch.is_multiple_of(unit) || batch > unit.max(VECTOR_MAX) {
        return Err(format!(
            "sec_per_write must be a multiple of this drive's write unit of {unit} sectors, and at most {VECTOR_MAX}, what \
             one vector command takes, but is {batch}"
        ));
    }
    let least = tail + unit + batch;
    if sectors < least && batch == unit {
        return Err(format!(
            "pblk needs chunks of at least two write units ({least} sectors), but this drive's have {sectors}"
        ));
    }
    if sectors < least {
        return Err(format!(
            "sec_per_write={batch} needs chunks of at least {least} sectors, for a head, one write and what ends a chunk, but \
             this drive's have {sectors}; choose a smaller one"
        ));
    }
    Ok(ChunkLayout { unit, batch, sectors, tail, mw_cunits: geometry.mw_cunits })
}

/// Sectors of a write of data unless asked for otherwise: a write unit, or several small ones that are a sixty-fourth of a chunk
/// together at most, so that little is filled at its end. Faithful mode writes single ones.
fn batch_of(unit: u32, chunk_sectors: u32, mode: Mode) -> u32 {
    let most = SMALL_WRITE_SECTORS.min(chunk_sectors / CHUNK_WRITES_MIN);
    match mode {
        Mode::Improved if unit < most => most / unit * unit,
        Mode::Improved | Mode::Faithful => unit,
    }
}

fn good_chunks(shape: &InstanceGeometry, report: &dyn Fn(ChunkId) -> ChunkDescriptor) -> u64 {
    let chunks = (0..shape.lines()).flat_map(|line| {
        (0..shape.units()).map(move |unit| (ocssd_ftl::LineId(line), ocssd_ftl::UnitIndex(unit)))
    });
    let good =
        chunks.filter(|&(line, unit)| report(shape.chunk(line, unit)).state != ChunkState::Offline).count();
    u64::try_from(good).expect("a count fits 64 bits")
}

/// Buffer units to have, and buffer units the device needs.
fn buffer_units(
    geometry: &Geometry,
    layout: &ChunkLayout,
    shape: &InstanceGeometry,
    options: &Options,
    streams: u32,
) -> Result<(u32, u32), String> {
    let unit = u64::from(layout.batch);
    let units = u64::from(shape.units());
    let window = u64::from(geometry.mw_cunits.div_ceil(layout.batch));
    let (default, needed) = match options.mode {
        Mode::Faithful => {
            let entries = (RING_PAGES * unit * units).max(RING_ENTRIES_MIN).next_power_of_two();
            (entries.div_ceil(unit), window * units)
        }
        Mode::Improved => {
            // Per stream and unit: those that wait to be readable, those in flight, one being filled.
            let each = window + u64::from(options.writes_per_unit()) + 1;
            let all = each * units * u64::from(streams);
            (
                all.max(RING_ENTRIES_MIN.div_ceil(unit)),
                window * units * u64::from(streams) + 2 * u64::from(streams) + 1,
            )
        }
    };
    let buffer_units =
        options.write_buffer_bytes.map_or(default, |bytes| bytes / u64::from(geometry.sector_bytes) / unit);
    let bytes = |units: u64| units * unit * u64::from(geometry.sector_bytes);
    if buffer_units < needed && !options.small_write_buffer {
        return Err(format!(
            "write_buffer_bytes is {}, but this drive needs {} so that what is not readable yet (MW_CUNITS {}) stays in \
             the buffer; make it larger, or force it with mode=faithful and small_write_buffer=true",
            options.write_buffer_bytes.unwrap_or_else(|| bytes(buffer_units)),
            bytes(needed),
            geometry.mw_cunits
        ));
    }
    let least = u64::from(2 * streams + 2);
    if buffer_units < least {
        return Err(format!(
            "write_buffer_bytes must be at least {}: {least} write units of {} bytes",
            bytes(least),
            bytes(1)
        ));
    }
    let narrow = |count: u64| {
        let fits = |count: &u32| count.checked_mul(layout.batch).is_some();
        u32::try_from(count).ok().filter(fits).ok_or_else(|| {
            format!("write_buffer_bytes must stay below 2^32 sectors, but {count} write units were asked for")
        })
    };
    Ok((narrow(buffer_units)?, narrow(needed)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::Lba;

    #[test]
    fn small_write_units_are_joined_as_far_as_chunks_are_long_enough() {
        let cases = [
            (1, 256, 4),
            (1, 1024, 16),
            (1, 64, 1),
            (1, 12, 1),
            (4, 128, 4),
            (4, 1024, 16),
            (6, 1024, 12),
            (16, 4096, 16),
            (24, 4096, 24),
        ];
        for (unit, sectors, improved) in cases {
            assert_eq!(batch_of(unit, sectors, Mode::Improved), improved, "{unit} of {sectors}");
            assert_eq!(batch_of(unit, sectors, Mode::Faithful), unit, "{unit} of {sectors}");
        }
    }

    /// Goal: a drive too small is told the least that is enough. Method: with that it fits, and with one chunk of a unit less not.
    #[test]
    fn a_drive_too_small_is_told_what_is_enough() {
        let free = |id: ChunkId| ChunkDescriptor {
            state: ChunkState::Free,
            wear_index: 0,
            first: Lba(u64::from(id.0)),
            sectors: 32,
            write_pointer: Some(0),
        };
        for (groups, sectors, ws_opt, chunks) in
            [(2, 32, 8, 8), (3, 72, 24, 7), (1, 64, 4, 3), (2, 256, 4, 6)]
        {
            let planned = |chunks: u32| {
                let geometry = Geometry::example(groups, 2, chunks, sectors, ws_opt);
                let units: Vec<PuId> = (0..2 * groups).map(PuId).collect();
                let shape = InstanceGeometry::new(&geometry, &units);
                let options = Options::unstated().for_lines(chunks);
                let asked = ask(&geometry, &shape, &options)?;
                plan(&geometry, &shape, &options, &asked, None, &free)
            };
            let refused = planned(chunks).expect_err("it is too small");
            let least = refused.rsplit_once("at least ").and_then(|(_, rest)| rest.split(' ').next());
            let least: u32 = least.and_then(|least| least.parse().ok()).expect("it says what is enough");
            let fits = planned(least).map(|capacity| capacity.user_sectors > 0);
            assert_eq!(fits, Ok(true), "{chunks} chunks of {sectors}: {refused}");
            assert!(planned(least - 1).is_err(), "{chunks} chunks of {sectors}: fewer are enough: {refused}");
        }
    }

    #[test]
    fn an_instance_keeps_its_blocks_when_more_chunks_died_than_were_spare() {
        let geometry = Geometry::example(2, 2, 24, 64, 4);
        let shape = InstanceGeometry::new(&geometry, &[PuId(0), PuId(1), PuId(2), PuId(3)]);
        let options = Options { over_provisioning_percent: 50, ..Options::default() };
        let chunk = |state| ChunkDescriptor {
            state,
            wear_index: 0,
            first: Lba(0),
            sectors: 64,
            write_pointer: Some(0),
        };
        let asked = ask(&geometry, &shape, &options).expect("they fit");
        let made =
            plan(&geometry, &shape, &options, &asked, None, &|_| chunk(ChunkState::Free)).expect("it fits");
        let dead =
            |id: ChunkId| chunk(if id.0.is_multiple_of(3) { ChunkState::Free } else { ChunkState::Offline });
        let found = plan(&geometry, &shape, &options, &asked, Some(made.user_sectors), &dead);
        assert_eq!(found.map(|found| found.user_sectors), Ok(made.user_sectors));
    }
}
