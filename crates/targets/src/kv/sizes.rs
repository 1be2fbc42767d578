//! How large everything of an instance is, and whether the units are enough for it.
//!
//! Users get what the percentage leaves, but never what the target needs to work: open chunks of three streams, two
//! checkpoints, a reserve for garbage collection, and room for the longest values that are on their way while what they
//! replace is still there. Deliberately not here: what any of it is used for at a moment.

use super::canary::Canary;
use super::index::ENTRY_BYTES;
use super::long_values::LongValues;
use super::options::Options;
use super::record::{RECORD_HEADER_BYTES, UNIT_HEADER_BYTES};
use super::state::record_bytes;
use crate::journal::narrow;
use ocssd_base::usize_of;
use ocssd_ftl::InstanceGeometry;
use ocssd_ftl::checkpoint::CheckpointWriter;
use ocssd_lightnvm::Geometry;
use ocssd_lightnvm::interface::StageLimits;
use ocssd_lightnvm::interface::key_value::{KEY_BYTES_MAX, KvLimits, ListOrder};

/// Entries of a batch at most (chosen: a pipeline of a client, and few enough that their records fit the write buffer at once).
pub const BATCH_ENTRIES_MAX: u32 = 128;
/// Stages (chosen: values of several clients on their way; each has room set apart).
const STAGES_MAX: u32 = 2;
/// Longest values (chosen: a gigabyte, four times what stores of KV caches ask for).
const VALUE_BYTES_MAX: u64 = 1 << 30;
/// Shortest limit of values with which an instance is of use (chosen).
const VALUE_BYTES_MIN: u64 = 64 << 10;
/// Values may be as long as this part of what there is room for (chosen: those on their way take three times as much).
const VALUE_SHARE: u64 = 32;
/// Write units from which a record takes an eighth at most, and not a quarter (chosen: shorter ones would cut values of a few
/// kilobytes).
const LARGE_UNIT_BYTES: u64 = 32 << 10;
/// Bytes of the checkpoint's section about the instance.
pub const INFO_BYTES: usize = 96;
/// Sections of a checkpoint: the instance, keys, pages of the index, long values, live bytes.
const SECTIONS: u64 = 5;
/// Bytes of those of pages and of live bytes beside their lists.
const COUNTS_BYTES: u64 = 32 + 8 * (BATCH_ENTRIES_MAX as u64 + STAGES_MAX as u64);
/// Room for pages of the index, in times of all entries: pages are two thirds full or more, and those that the newest checkpoint
/// names stay beside what replaced them (chosen: once, a half of it for what is not full, and as much for what is replaced).
const INDEX_ROOM: u64 = 3;
/// Bytes of how often a chunk was reset, of an instance that levels wear.
const WEAR_BYTES: u64 = 4;
/// Bytes of entries that there is always room for (chosen: the keys of a small drive).
const INDEX_BYTES_MIN: u64 = 48 << 10;
/// Chunks lost to failures before a checkpoint lacks room (chosen).
const SPARE_CHUNKS: u32 = 1;
/// Buffer units beside those of the largest batch, unless asked for otherwise (chosen: units in flight that keep a drive busy).
const BUFFER_UNITS_IN_FLIGHT: u32 = 32;
/// The same for each chunk that a stream is striped over (chosen: one that is filled, one in flight).
const BUFFER_UNITS_PER_CHUNK: u32 = 2;

/// What an instance promises, and keeps at every mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promised {
    /// Bytes of keys and values.
    pub capacity_bytes: u64,
    /// Bytes of a value.
    pub value_bytes_max: u32,
    /// Bytes of entries in the index.
    pub index_bytes_max: u64,
    /// Bytes of records that are kept.
    pub live_bytes_max: u64,
}

/// The sizes of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Sectors of a write: WS_OPT.
    pub unit: u32,
    pub unit_bytes: u32,
    pub sector_bytes: u32,
    /// Sectors of a chunk.
    pub chunk: u32,
    /// Sectors that must follow one before it can be read.
    pub mw_cunits: u32,
    /// Bytes of a record at most; longer values are in pieces.
    pub record_bytes_max: u32,
    pub promised: Promised,
    /// Bytes of entries of a page of the index.
    pub page_bytes: u32,
    /// Bytes of such pages on media; 0 if all stay in memory.
    pub index_room_bytes: u64,
    /// Chunks a stream is striped over.
    pub width: u32,
    /// Entries of a batch.
    pub batch_entries_max: u32,
    /// Buffer units of users' streams and of garbage collection.
    pub buffer_units: u32,
    pub gc_buffer_units: u32,
    /// Chunks checkpoints may take, and are striped over.
    pub checkpoint_chunks: u32,
    pub checkpoint_width: u32,
    /// Bytes written between checkpoints.
    pub interval_bytes: u64,
    /// Free chunks that users leave to garbage collection.
    pub reserve: u32,
    /// Free chunks beyond these at which it begins.
    pub gc_start: u32,
    /// Resets a chunk may lag; `None` if wear is not levelled, or the instance has no room for counts of it.
    pub wear_bound: Option<u32>,
    /// Good chunks with which changes are taken.
    pub chunks_needed: u32,
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).expect("an index fits 64 bits")
}

/// What follows from the drive alone.
#[derive(Clone, Copy)]
struct Base {
    unit_bytes: u64,
    /// Bytes of the longest record.
    record: u64,
    /// Bytes of records that fit a unit however they come.
    unit_room: u64,
    units_per_chunk: u64,
    width: u32,
}

impl Base {
    fn new(geometry: &Geometry, shape: &InstanceGeometry) -> Self {
        let unit_bytes = u64::from(geometry.ws_opt) * u64::from(geometry.sector_bytes);
        let all = unit_bytes - wide(UNIT_HEADER_BYTES);
        // A thirty-second of the chunks is open for each stream at most.
        let width = (shape.chunks() / 32).clamp(1, shape.units());
        let record = if unit_bytes < LARGE_UNIT_BYTES { all / 4 } else { all / 8 };
        Self {
            unit_bytes,
            record,
            unit_room: all - record,
            units_per_chunk: u64::from(geometry.sectors_per_chunk / geometry.ws_opt),
            width,
        }
    }

    /// Pages of a checkpoint of as many entries and pieces as there may be.
    fn checkpoint_pages(&self, promised: &Promised, chunks: u32, levels: bool) -> u64 {
        let pieces = promised.live_bytes_max / self.record * 2 + 64;
        let long = pieces * LongValues::PIECE_BYTES_MAX;
        let wear = if levels { WEAR_BYTES * u64::from(chunks) } else { 0 };
        let counts = COUNTS_BYTES + 8 * u64::from(chunks) + wear;
        let bytes = promised.index_bytes_max + long + counts + wide(INFO_BYTES);
        CheckpointWriter::pages_of(SECTIONS + u64::from(levels), bytes, narrow(self.unit_bytes))
    }
}

impl Sizes {
    /// The sizes of an instance that promised this, or of a new one if that is `None`, on units with `good` good chunks.
    ///
    /// # Errors
    /// A sentence, if the units cannot carry one.
    pub fn new(
        geometry: &Geometry,
        shape: &InstanceGeometry,
        options: &Options,
        good: u32,
        promised: Option<Promised>,
    ) -> Result<Self, String> {
        check(geometry, shape, options)?;
        let base = Base::new(geometry, shape);
        if let Some(promised) = promised {
            return Ok(Self::of_promised(geometry, shape, options, (base, promised), good));
        }
        let share = u64::from(100 - options.over_provisioning_percent);
        let chunk_room = base.units_per_chunk * base.unit_room;
        let mut chunks = u64::from(good) * share / 100;
        while chunks > 0 {
            let room = chunks * chunk_room;
            let value = (room / VALUE_SHARE).clamp(VALUE_BYTES_MIN, VALUE_BYTES_MAX);
            let live = room.saturating_sub(on_the_way(value));
            let capacity = live / 10 * 9;
            let index = (capacity * u64::from(options.index_percent) / 100).max(INDEX_BYTES_MIN);
            let promised = Promised {
                capacity_bytes: capacity,
                value_bytes_max: narrow(value),
                index_bytes_max: index,
                live_bytes_max: live,
            };
            let sizes = Self::of(geometry, shape, options, base, promised);
            let sizes = sizes.with_index_room(options, base, None);
            if capacity >= value && sizes.chunks_needed <= good {
                return Ok(sizes);
            }
            chunks -= 1;
        }
        Err(format!(
            "kv has no room on {} units with {good} good chunks: it needs some for three streams, two checkpoints, garbage \
             collection and values on their way; lease more units or choose a drive with more chunks",
            shape.units()
        ))
    }

    /// The sizes of an instance that exists. One that was made without counts of wear and has no room for them goes on
    /// without: no option takes changes away.
    fn of_promised(
        geometry: &Geometry,
        shape: &InstanceGeometry,
        options: &Options,
        (base, promised): (Base, Promised),
        good: u32,
    ) -> Self {
        let of = |options: &Options| {
            Self::of(geometry, shape, options, base, promised).with_index_room(options, base, Some(good))
        };
        let asked = of(options);
        if asked.chunks_needed <= good {
            return asked;
        }
        of(&Options { wear_spread: 0, ..options.clone() })
    }

    fn of(
        geometry: &Geometry,
        shape: &InstanceGeometry,
        options: &Options,
        base: Base,
        promised: Promised,
    ) -> Self {
        let Base { unit_bytes, record, unit_room, units_per_chunk, width } = base;
        let wear_bound = options.wear_bound();
        let pages = base.checkpoint_pages(&promised, shape.chunks(), wear_bound.is_some());
        assert!(pages > 1, "a checkpoint has a page and a commit page");
        assert!(record > wide(RECORD_HEADER_BYTES) && record <= unit_room, "records of {record} bytes");
        let checkpoint_width = narrow(pages / units_per_chunk).clamp(1, width);
        // The newest, the one being written, and the end of one that was given up.
        let stripe = units_per_chunk * u64::from(checkpoint_width);
        let checkpoint_chunks = checkpoint_width * (narrow((3 * pages).div_ceil(stripe)) + 1) + SPARE_CHUNKS;
        let reserve = width + 2;
        let data = (promised.live_bytes_max + on_the_way(u64::from(promised.value_bytes_max)))
            .div_ceil(units_per_chunk * unit_room);
        let instance_bytes = shape.places() * u64::from(geometry.sector_bytes);
        assert!(promised.capacity_bytes <= promised.live_bytes_max, "{promised:?} cannot be kept");
        Self {
            unit: geometry.ws_opt,
            unit_bytes: narrow(unit_bytes),
            sector_bytes: geometry.sector_bytes,
            chunk: geometry.sectors_per_chunk,
            mw_cunits: geometry.mw_cunits,
            record_bytes_max: narrow(record),
            gc_start: options.gc_start_chunks.unwrap_or(2 * width + 1),
            promised,
            width,
            batch_entries_max: options.batch_entries_max,
            buffer_units: buffer_units(geometry, options, base),
            gc_buffer_units: 8 + width * (geometry.mw_cunits / geometry.ws_opt + 2),
            page_bytes: options.page_bytes().min(narrow(record - wide(RECORD_HEADER_BYTES))),
            index_room_bytes: 0,
            checkpoint_chunks,
            checkpoint_width,
            interval_bytes: options.checkpoint_interval_bytes.unwrap_or(instance_bytes / 16),
            reserve,
            wear_bound,
            // Open chunks of three streams, and two for what is dead and waits for a checkpoint.
            chunks_needed: narrow(data).saturating_add(3 * width + checkpoint_chunks + reserve + 2),
        }
    }

    /// The same with room for pages of the index, if these may leave memory: as much as they may need, or of an instance that
    /// exists what `good` chunks leave.
    fn with_index_room(self, options: &Options, base: Base, good: Option<u32>) -> Self {
        if options.index_cache_bytes.is_none() {
            return self;
        }
        let chunk_room = base.units_per_chunk * base.unit_room;
        let asked = INDEX_ROOM * self.promised.index_bytes_max;
        // The open chunks of its stream come before any page.
        let chunks = narrow(asked.div_ceil(chunk_room)).saturating_add(self.width);
        let left = good.map_or(chunks, |good| good.saturating_sub(self.chunks_needed).min(chunks));
        let room = u64::from(left.saturating_sub(self.width)) * chunk_room;
        Self {
            index_room_bytes: room.min(asked),
            chunks_needed: self.chunks_needed + if room > 0 { left } else { 0 },
            gc_buffer_units: 2 * self.gc_buffer_units,
            ..self
        }
    }

    /// What the host is told.
    pub const fn limits(&self) -> KvLimits {
        KvLimits {
            key_bytes_max: KEY_BYTES_MAX,
            value_bytes_max: self.promised.value_bytes_max,
            batch_entries_max: self.batch_entries_max,
            capacity_bytes: self.promised.capacity_bytes,
            list_order: ListOrder::Bytewise,
            stages: StageLimits { stages_max: STAGES_MAX, bytes_max: self.promised.value_bytes_max },
        }
    }

    /// Bytes of records that a value takes under a key.
    pub fn kept_of(&self, key: usize, bytes: u32) -> u64 {
        let one = record_bytes(key, bytes);
        if one <= self.record_bytes_max {
            return u64::from(one);
        }
        let pieces = u64::from(bytes.div_ceil(self.piece_bytes()));
        u64::from(bytes) + pieces * u64::from(record_bytes(0, 0))
    }

    /// Bytes of a piece of a long value, but for its last.
    pub fn piece_bytes(&self) -> u32 {
        self.record_bytes_max - u32::try_from(RECORD_HEADER_BYTES).expect("small")
    }

    /// Streams that are written: that of pages of the index only if these may leave memory.
    pub const fn streams(&self) -> usize {
        if self.index_room_bytes > 0 { 4 } else { 3 }
    }

    /// Bytes of records in a chunk however they come: one with as many gives nothing.
    pub fn chunk_room(&self) -> u64 {
        u64::from(self.chunk / self.unit) * u64::from(self.unit_room() - self.record_bytes_max)
    }

    /// Bytes of records a unit takes.
    pub fn unit_room(&self) -> u32 {
        self.unit_bytes - u32::try_from(UNIT_HEADER_BYTES).expect("small")
    }
}

/// Buffer units of users: those of a batch, which has room for all its records before it begins; those in flight; and of both
/// streams those that the drive cannot read back before more of their chunks is written. With fewer one stream could hold what
/// the other waits for, for ever.
fn buffer_units(geometry: &Geometry, options: &Options, base: Base) -> u32 {
    let Base { record, unit_room, width, .. } = base;
    let batch = narrow((u64::from(options.batch_entries_max) * record).div_ceil(unit_room)) + 1;
    let held = width * geometry.mw_cunits.div_ceil(geometry.ws_opt);
    let streams = if options.has_canary(Canary::OneWindowHeld) { 1 } else { 2 };
    let in_flight =
        options.write_buffer_units.unwrap_or(BUFFER_UNITS_IN_FLIGHT + BUFFER_UNITS_PER_CHUNK * width);
    assert!(in_flight > 0 && batch > 1, "{in_flight} units in flight, and batches of {batch}");
    batch + in_flight + streams * held
}

/// Bytes of values that are on their way while what they replace is there: one in each stage and one that is stored.
fn on_the_way(value: u64) -> u64 {
    (u64::from(STAGES_MAX) + 1) * (value + value / 8)
}

fn check(geometry: &Geometry, shape: &InstanceGeometry, options: &Options) -> Result<(), String> {
    options.check()?;
    if geometry.sectors_per_chunk < 4 * geometry.ws_opt {
        return Err(
            "kv needs chunks of four write units or more; choose a drive with larger chunks".to_owned()
        );
    }
    let unit_bytes = usize_of(geometry.ws_opt) * usize_of(geometry.sector_bytes);
    // A record has room for the longest key, or its entry.
    if (unit_bytes - UNIT_HEADER_BYTES) / 4 < RECORD_HEADER_BYTES + ENTRY_BYTES + usize_of(KEY_BYTES_MAX) {
        return Err(format!(
            "kv needs write units of 2 KiB or more, but the drive's have {unit_bytes} bytes"
        ));
    }
    // Three streams or four, a checkpoint, and one of these that is about to be full.
    let open = if options.index_cache_bytes.is_some() { 7 } else { 6 };
    let (per_unit, all) = (geometry.max_open_chunks_per_pu, geometry.max_open_chunks);
    if per_unit > 0 && per_unit < open || all > 0 && all < open * shape.units() {
        return Err(format!(
            "kv has up to {open} chunks open on each unit, but the drive allows fewer (max_open_chunks {all}, \
             max_open_chunks_per_pu {per_unit}); raise these"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::PuId;

    fn sizes(percent: u32, good: u32, promised: Option<Promised>) -> Result<Sizes, String> {
        let geometry = Geometry::example(1, 2, 40, 48, 4);
        let shape = InstanceGeometry::new(&geometry, &[PuId(0), PuId(1)]);
        let options = Options { over_provisioning_percent: percent, ..Options::default() };
        Sizes::new(&geometry, &shape, &options, good, promised)
    }

    #[test]
    fn users_get_what_was_asked_for_or_what_fits() {
        let (some, most) =
            (sizes(70, 80, None).expect("it fits"), sizes(1, 80, None).expect("less than asked for"));
        assert!(some.promised.capacity_bytes < most.promised.capacity_bytes, "{some:?} {most:?}");
        assert!(most.chunks_needed <= 80 && most.promised.capacity_bytes > 64 << 10, "{most:?}");
        let error = sizes(20, 12, None).expect_err("too few");
        assert!(error.contains("12 good chunks"), "{error}");
    }

    #[test]
    fn drives_that_cannot_carry_one_are_told_why() {
        let geometry = Geometry::example(1, 2, 400, 64, 4);
        let told = |change: Geometry| {
            let shape = InstanceGeometry::new(&change, &[PuId(0), PuId(1)]);
            Sizes::new(&change, &shape, &Options::default(), 800, None).err()
        };
        let of = |sector_bytes| Geometry { sector_bytes, ..geometry.clone() };
        assert_eq!(told(of(512)), None, "a quarter of 2 KiB has room for the longest key");
        for (change, says) in [
            (Geometry { ws_opt: 2, ws_min: 2, ..of(512) }, "write units of 2 KiB or more"),
            (Geometry { ws_opt: 32, ws_min: 32, ..of(4_096) }, "four write units"),
            (Geometry { max_open_chunks_per_pu: 5, ..of(4_096) }, "up to 6 chunks open on each unit"),
            (Geometry { max_open_chunks: 11, ..of(4_096) }, "max_open_chunks 11"),
        ] {
            let sentence = told(change).unwrap_or_else(|| panic!("it fits, but should say {says}"));
            assert!(sentence.contains(says), "{sentence}");
        }
        assert_eq!(told(Geometry { max_open_chunks: 12, max_open_chunks_per_pu: 6, ..of(4_096) }), None);
    }

    #[test]
    fn a_checkpoint_takes_eight_bytes_of_each_chunk_and_more_where_wear_is_levelled() {
        let geometry = Geometry::example(1, 2, 40, 48, 4);
        let base = Base::new(&geometry, &InstanceGeometry::new(&geometry, &[PuId(0), PuId(1)]));
        let promised = sizes(70, 80, None).expect("it fits").promised;
        let page = u32::try_from(base.unit_bytes).expect("a unit is small");
        let pages =
            |pages_of_counts, levels| base.checkpoint_pages(&promised, pages_of_counts * page / 8, levels);
        let (none, counts) = (pages(0, false), pages(20, false));
        assert!((20..22).contains(&(counts - none)), "{none} and {counts} pages");
        let wear = 20 * WEAR_BYTES / 8;
        assert!(
            (wear..wear + 2).contains(&(pages(20, true) - counts)),
            "{counts} and {} pages",
            pages(20, true)
        );
    }

    #[test]
    fn pages_of_the_index_have_three_times_their_bytes_on_media_or_what_is_left() {
        let geometry = Geometry::example(1, 2, 400, 96, 4);
        let shape = InstanceGeometry::new(&geometry, &[PuId(0), PuId(1)]);
        let options =
            Options { index_cache_bytes: Some(0), over_provisioning_percent: 50, ..Options::default() };
        let all = Sizes::new(&geometry, &shape, &options, 800, None).expect("it fits");
        assert_eq!(all.index_room_bytes, INDEX_ROOM * all.promised.index_bytes_max);
        let in_memory = Options { index_cache_bytes: None, ..options };
        let base = Base::new(&geometry, &shape);
        let chunk_room = base.units_per_chunk * base.unit_room;
        assert!(all.index_room_bytes > 4 * chunk_room, "{all:?}");
        let needed = Sizes::new(&geometry, &shape, &in_memory, 800, Some(all.promised)).expect("it exists");
        let good = needed.chunks_needed + needed.width + 2;
        let some = Sizes::new(&geometry, &shape, &options, good, Some(all.promised)).expect("it exists");
        assert_eq!(some.index_room_bytes, 2 * chunk_room, "two chunks beside those that are open");
    }

    #[test]
    fn an_instance_that_exists_keeps_what_it_promised() {
        let promised = sizes(20, 80, None).expect("it fits").promised;
        let again = sizes(50, 10, Some(promised)).expect("it exists");
        assert!(again.promised == promised && again.chunks_needed > 10);
    }
}
