//! The state of an instance: its parts, and what is under way.
//!
//! Deliberately not here: what happens to it.

use super::buffer_turn::BufferTurn;
use super::canary::Canary;
use super::capacity::Capacity;
use super::checkpoint::{Checkpoints, Shutdown};
use super::destage::Destage;
use super::discards::Discards;
use super::due::Due;
use super::flight::Flight;
use super::flush::Apart;
use super::gc::Gc;
use super::knobs::Knobs;
use super::limit;
use super::options::{Mode, Options};
use super::request::RequestTable;
use super::retry::Reading;
use super::stats::PblkStats;
use super::stop::Changes;
use super::tails;
use crate::plane_reads::PlaneRule;
use ocssd_base::{Divisor, Nanos, Prng, usize_of};
use ocssd_ftl::{
    BufferUnitId, Candidate, Classification, Classifier, EmptyLine, FlushQueue, InstanceGeometry, InstanceId,
    L2p, LastWrites, LineId, LineSequence, LineState, Lines, Mapped, OpenLine, PhysicalAddress, RateLimiter,
    Reclaimer, Release, Sequence, Slot, Stream, UnitIndex, ValidMap, WearLeveller, WriteBuffer,
};
use ocssd_lightnvm::{BufId, Buffers, Geometry, VECTOR_MAX};
use std::collections::VecDeque;

/// Granularity of last write times, as a power of two of sectors (chosen: finer than any line).
const LAST_WRITES_SHIFT: u32 = 6;

/// The stream of checkpoints: the last there can be, whatever the classification, which may change from mount to mount.
pub(super) const MAP_STREAM: Stream = Stream(7);

/// A stream of data.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamState {
    /// The line it writes to.
    pub line: Option<LineId>,
    /// The buffer unit that takes its sectors.
    pub filling: Option<BufferUnitId>,
    /// Buffer units that wait for a unit, in order.
    pub ready: VecDeque<BufferUnitId>,
    /// When they go out.
    pub destage: Destage,
}

/// Streams of data, then that of checkpoints, which is written at once.
fn streams(options: &Options, capacity: &Capacity) -> Vec<StreamState> {
    let destage = Destage::new(capacity.buffer_units, options.destage_percent);
    let mut streams = vec![StreamState { destage, ..StreamState::default() }; MAP_STREAM.index()];
    streams.push(StreamState::default());
    streams
}

/// The target.
#[derive(Clone, Debug)]
pub struct Pblk {
    pub(super) options: Options,
    pub(super) capacity: Capacity,
    pub(super) shape: InstanceGeometry,
    /// To find the unit and the line of a chunk.
    pub(super) by_lines: Divisor,
    pub(super) block_bytes: u32,
    pub(super) instance: InstanceId,
    pub(super) now: Nanos,
    pub(super) prng: Prng,

    pub(super) l2p: L2p,
    pub(super) valid: ValidMap,
    pub(super) write_buffer: WriteBuffer,
    pub(super) lines: Lines,
    pub(super) open: Vec<Option<Box<OpenLine>>>,
    pub(super) discards: Discards,
    pub(super) classifier: Classifier,
    pub(super) last_writes: Option<LastWrites>,
    pub(super) limiter: RateLimiter,
    pub(super) told: limit::Told,
    /// The newest write.
    pub(super) sequence: Sequence,

    /// Streams of data, then that of checkpoints.
    pub(super) streams: Vec<StreamState>,
    pub(super) user_streams: u8,
    pub(super) turn: BufferTurn,
    /// Buffer units kept for garbage collection.
    pub(super) gc_buffer_units: u32,
    pub(super) active_units: u32,
    pub(super) open_lines_max: usize,
    /// Units in the order a line is written.
    pub(super) stripe: Vec<UnitIndex>,
    /// Units of this instance by the drive's numbers.
    pub(super) unit_of_pu: Vec<Option<UnitIndex>>,

    pub(super) requests: RequestTable,
    pub(super) flight: Flight,
    pub(super) flushes: FlushQueue<EmptyLine>,
    pub(super) apart: Apart,
    pub(super) gc: Gc,
    pub(super) wear: WearLeveller,
    pub(super) checkpoints: Checkpoints,
    pub(super) shutdown: Shutdown,
    pub(super) changes: Changes,

    /// Lines on their way to be free.
    pub(super) reclaimer: Reclaimer,
    /// Chunks one reset may name.
    pub(super) reset_sectors: u32,
    pub(super) tails_due: VecDeque<LineId>,
    /// Units of padding still to be written so that reads can go on.
    pub(super) pad_units_left: u32,
    pub(super) pad_behind: bool,

    /// The write buffer's memory.
    pub(super) ring: BufId,
    /// Buffers of a unit, for heads and padding.
    pub(super) plain: Vec<BufId>,
    /// Buffers of a unit that hold all bytes.
    pub(super) whole: Vec<BufId>,
    pub(super) whole_ids: Vec<BufId>,
    /// Buffers of a tail that hold all bytes; zero behind the list, once they were used.
    pub(super) tails: Vec<BufId>,
    /// Of these, so many from the first on were never used.
    pub(super) tails_fresh: usize,
    /// Lists of chunks to reset.
    pub(super) lists: Vec<BufId>,
    pub(super) scratch: Scratch,

    /// Procedures are called at the next occasion.
    pub(super) work_due: bool,
    /// Those that may be able to go on.
    pub(super) due: Due,
    pub(super) reading: Reading,
    pub(super) stats: PblkStats,
}

/// Memory of lists that are made anew each time.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// The list of a unit's blocks.
    pub(super) list: Vec<u8>,
    /// Lines that could be emptied.
    pub(super) candidates: Vec<Candidate>,
    /// Neighbours that were copied, of the buffer unit being settled.
    pub(super) runs: Vec<(Slot, PhysicalAddress, u32)>,
    /// What they hold, one after the other.
    pub(super) blocks: Vec<u64>,
}

impl Pblk {
    /// An instance with everything free: what mount fills in.
    pub(super) fn empty(
        geometry: &Geometry,
        shape: InstanceGeometry,
        options: Options,
        capacity: Capacity,
        lines: Lines,
        buffers: &mut Buffers,
    ) -> Self {
        let (knobs, (classification, user_streams)) = (options.knobs, streams_of(&options));
        let own = OwnBuffers::take(&shape, &capacity, &knobs, buffers);
        Self {
            l2p: L2p::with_shards(capacity.user_sectors, shape.places(), capacity.slots(), knobs.map_shard),
            valid: ValidMap::new(&shape),
            write_buffer: write_buffer(&options, &capacity),
            open: lines.iter().map(|_| None).collect(),
            discards: Discards::new(usize_of(knobs.discard_records_max)),
            classifier: Classifier::new(classification),
            last_writes: last_writes(classification, &capacity, &knobs),
            limiter: limit::limiter(&options, &capacity, &shape),
            told: limit::Told::default(),
            sequence: Sequence(0),
            streams: streams(&options, &capacity),
            user_streams,
            turn: BufferTurn::default(),
            gc_buffer_units: gc_buffer_units(&capacity, &shape, &options),
            active_units: options.active_units.unwrap_or(shape.units()).clamp(1, shape.units()),
            open_lines_max: usize::try_from(capacity.open_lines).expect("32 bits fit an index"),
            stripe: stripe(geometry, &shape),
            unit_of_pu: unit_of_pu(geometry, &shape),
            requests: RequestTable::new(knobs.requests_max),
            flight: Flight::new(knobs.commands_max, PlaneRule::new(options.plane_reads, geometry.ws_opt))
                .giving_up_at_once(options.has_canary(Canary::FailedCommandIsOfChunk)),
            flushes: FlushQueue::new(usize_of(knobs.requests_max)),
            apart: Apart::default(),
            gc: Gc::new(own.gc_reads, &shape, stripe(geometry, &shape), capacity.layout.unit),
            wear: WearLeveller::new(options.wear_spread()),
            checkpoints: Checkpoints::new(0, LineSequence(0)),
            shutdown: Shutdown::default(),
            changes: Changes::Taken,
            reclaimer: Reclaimer::new(),
            reset_sectors: VECTOR_MAX,
            tails_due: VecDeque::new(),
            pad_units_left: 0,
            pad_behind: false,
            ring: own.ring,
            plain: own.plain,
            whole_ids: own.whole.clone(),
            whole: own.whole,
            tails_fresh: own.tails.len(),
            tails: own.tails,
            lists: own.lists,
            scratch: Scratch::default(),
            work_due: true,
            due: Due::ALL,
            reading: Reading::default(),
            stats: PblkStats::default(),
            instance: InstanceId::new(0),
            by_lines: Divisor::new(u64::from(shape.lines())),
            now: Nanos::ZERO,
            prng: Prng::new(options.seed),
            block_bytes: geometry.sector_bytes,
            lines,
            options,
            capacity,
            shape,
        }
    }

    /// What the instance is asked to be.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Its sizes.
    #[must_use]
    pub const fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// What it counted since mount.
    #[must_use]
    pub const fn stats(&self) -> &PblkStats {
        &self.stats
    }

    /// Empties the best victim there is, space or no space (pblk's `gc_force`).
    pub fn force_gc(&mut self) {
        self.gc.force();
        self.call(Due::ALL);
    }

    /// Takes a checkpoint of the map soon.
    pub fn force_checkpoint(&mut self) {
        self.checkpoints.ask();
        self.call(Due::ALL);
    }

    /// True once writes are refused: so many chunks are bad, or the drive itself failed.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.changes != Changes::Taken
    }

    pub(super) fn is_faithful(&self) -> bool {
        self.options.mode == Mode::Faithful
    }

    /// Discards survive a power cut.
    pub(super) fn keeps_discards(&self) -> bool {
        !self.is_faithful()
    }

    pub(super) const fn streams_count(&self) -> u32 {
        self.classifier.streams()
    }

    pub(super) const fn map_stream(&self) -> Stream {
        MAP_STREAM
    }

    pub(super) fn is_map_stream(&self, stream: Stream) -> bool {
        stream == self.map_stream()
    }

    /// Streams only garbage collection writes.
    pub(super) fn is_gc_stream(&self, stream: Stream) -> bool {
        stream.0 >= self.user_streams && u32::from(stream.0) < self.streams_count()
    }

    pub(super) fn is_whole_buffer(&self, buffer: BufId) -> bool {
        self.whole_ids.contains(&buffer)
    }

    /// Asserts every invariant of the whole state.
    pub(super) fn check_all(&self) {
        self.flight.check();
        self.write_buffer.check();
        let is_free = |line: &LineId| matches!(self.lines.get(*line).state, LineState::Free { .. });
        self.lines.check(self.reclaimer.due().filter(is_free).count());
        self.l2p.check();
        self.valid.check();
        self.open.iter().flatten().for_each(|open| open.check());
        for (line, entry) in self.lines.iter() {
            let is_open = self.open[line.index()].is_some();
            assert_eq!(is_open, entry.state == LineState::Open, "line {} is {:?}", line.0, entry.state);
            let holds = self.valid.count(line);
            assert!(holds <= entry.data_sectors, "line {} holds {holds} of {}", line.0, entry.data_sectors);
        }
        self.check_copies();
        self.check_lists();
        self.check_owners();
    }

    /// What is listed is what the lists are for, and what was lent is back once nothing is under way.
    fn check_lists(&self) {
        for stream in &self.streams {
            let is_open = stream.line.is_none_or(|line| self.open[line.index()].is_some());
            assert!(is_open, "a stream writes to line {:?}, which is not open", stream.line);
        }
        for EmptyLine { line, .. } in self.reclaimer.empty() {
            assert_eq!(self.valid.count(*line), 0, "dead line {} holds something", line.0);
        }
        for line in &self.tails_due {
            assert!(self.open[line.index()].is_some(), "a tail is due in line {}, which is not open", line.0);
        }
        self.requests.check();
        if self.flight.len() > 0 || !self.gc.is_idle() {
            return;
        }
        assert!(self.lines.iter().all(|(_, line)| line.readers == 0), "a line is read by nobody");
        assert_eq!(self.reclaimer.resetting(), 0, "a line is reset by nobody");
        assert!(self.reading.is_first(), "a sector is read again by nobody");
        let own = usize_of(self.options.knobs.metadata_buffers);
        assert_eq!(self.plain.len(), own, "a buffer for heads was lost");
        let tails = if tails::sectors_at_once(&self.capacity.layout) > 0 { own } else { 0 };
        assert_eq!(self.tails.len(), tails, "a buffer for tails was lost");
    }

    /// Every valid sector belongs to exactly one block or record.
    fn check_owners(&self) {
        let (mut owned, mut in_slots) = (0, 0);
        for block in 0..self.l2p.sectors() {
            match self.l2p.get(block) {
                Mapped::Nowhere => {}
                Mapped::Media(place) => {
                    assert!(
                        self.valid.is_valid(place),
                        "block {block} is at place {} which is not valid",
                        place.0
                    );
                    owned += 1;
                }
                Mapped::Buffer(slot) => {
                    let entry = self.write_buffer.entry(slot);
                    assert_eq!(entry.tag.block, block, "block {block} is not in its slot");
                    assert!(entry.is_newest, "slot {} does not know that block {block} is in it", slot.0);
                    in_slots += 1;
                    let place =
                        self.write_buffer.durable_place(slot).or(self.write_buffer.entry(slot).previous);
                    if let Some(place) = place {
                        assert!(
                            self.valid.is_valid(place),
                            "block {block} was at place {}, not valid",
                            place.0
                        );
                        owned += 1;
                    }
                }
            }
        }
        assert_eq!(
            self.write_buffer.count_newest(),
            in_slots,
            "slots think they hold blocks that are elsewhere"
        );
        owned += u64::try_from(self.discards.durable().len()).expect("few");
        assert_eq!(self.valid.total(), owned, "valid sectors and their owners disagree");
        assert!(self.write_buffer.slots() >= self.write_buffer.unit(), "a buffer without a unit");
    }
}

/// pblk's ring lets go in order, because it is one; buffer units need not.
const fn release(mode: Mode) -> Release {
    match mode {
        Mode::Faithful => Release::InOrder,
        Mode::Improved => Release::AsReadable,
    }
}

/// When blocks were last written, where the streams depend on it.
fn last_writes(classification: Classification, capacity: &Capacity, knobs: &Knobs) -> Option<LastWrites> {
    let make = || LastWrites::with_shards(capacity.user_sectors, LAST_WRITES_SHIFT, knobs.map_shard);
    classification.needs_last_writes().then(make)
}

/// How data is told apart, and into how many streams users write.
fn streams_of(options: &Options) -> (Classification, u8) {
    let classification = options.classification();
    (classification, user_streams(classification.streams()))
}

/// Streams users write: SepBIT has two (FAST'22: classes 0 and 1).
fn user_streams(streams: u32) -> u8 {
    assert!((1..u32::from(MAP_STREAM.0)).contains(&streams), "data has the stream of checkpoints");
    if streams <= 2 { 1 } else { 2 }
}

/// The write buffer, empty.
fn write_buffer(options: &Options, capacity: &Capacity) -> WriteBuffer {
    WriteBuffer::new(capacity.buffer_units, capacity.layout.batch, release(options.mode))
}

/// Buffer units kept for garbage collection: what each of its streams may hold until it can be read, one being filled, one to go
/// on with.
fn gc_buffer_units(capacity: &Capacity, shape: &InstanceGeometry, options: &Options) -> u32 {
    let (classification, user_streams) = streams_of(options);
    let gc_streams = classification.streams() - u32::from(user_streams);
    let window = capacity.layout.mw_cunits.div_ceil(capacity.layout.batch);
    let buffer_units = if gc_streams == 0 { 2 } else { gc_streams * (window * shape.units() + 2) };
    assert!(
        buffer_units < capacity.buffer_units,
        "{buffer_units} buffer units of {} are kept from users",
        capacity.buffer_units
    );
    buffer_units
}

/// The buffers an instance takes for itself.
struct OwnBuffers {
    ring: BufId,
    plain: Vec<BufId>,
    whole: Vec<BufId>,
    tails: Vec<BufId>,
    gc_reads: Vec<BufId>,
    lists: Vec<BufId>,
}

impl OwnBuffers {
    fn take(shape: &InstanceGeometry, capacity: &Capacity, knobs: &Knobs, buffers: &mut Buffers) -> Self {
        let (unit, own) = (capacity.layout.unit, knobs.metadata_buffers);
        let mut take =
            |count: u32, sectors: u32| (0..count).map(|_| buffers.take(sectors)).collect::<Vec<_>>();
        let ring = take(1, capacity.slots())[0];
        let plain = take(own, unit);
        let gc_reads = take((shape.units() / 2).max(4).min(knobs.gc_reads_max), VECTOR_MAX);
        let lists = take(shape.units().div_ceil(VECTOR_MAX) * 4, 1);
        let whole: Vec<BufId> = (0..own).map(|_| buffers.take_whole(unit)).collect();
        assert!(buffers.is_whole(whole[0]), "metadata is kept in stamps");
        let tails = tails::take_buffers(&capacity.layout, own, buffers);
        Self { ring, plain, whole, tails, gc_reads, lists }
    }
}

/// Units in stripe order: the next group first (Linux `pblk-init.c`: across channels, then LUNs).
fn stripe(geometry: &Geometry, shape: &InstanceGeometry) -> Vec<UnitIndex> {
    let mut units: Vec<UnitIndex> = (0..shape.units()).map(UnitIndex).collect();
    units.sort_by_key(|&unit| {
        let pu = shape.pu(unit).0;
        (pu % geometry.pus_per_group, pu / geometry.pus_per_group)
    });
    units
}

fn unit_of_pu(geometry: &Geometry, shape: &InstanceGeometry) -> Vec<Option<UnitIndex>> {
    let mut units = vec![None; usize::try_from(geometry.pu_count()).expect("32 bits fit an index")];
    for unit in (0..shape.units()).map(UnitIndex) {
        units[shape.pu(unit).index()] = Some(unit);
    }
    units
}
