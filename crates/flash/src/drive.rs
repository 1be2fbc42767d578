//! The drive: owner of every piece of state, and the typed path targets use.
//!
//! Deliberately not here: what each command does (`exec`), how it travels (`flow`), how long it takes (`media`).

use crate::addresses::AddressList;
use crate::chunk_notifications::{ChunkNotifications, Notification};
use crate::chunks::{ChunkRecord, Chunks};
use crate::config::{Config, FaultConfig};
use crate::deferred_copies::{DeferredCopies, Destination};
use crate::exec::{Operation, OperationKind, ReadPolicy, SavedChunk, WholeScratch};
use crate::faults::{FailedOp, Faults, ScheduledFault, is_factory_bad};
use crate::flow::Flow;
use crate::media::{Done, Media, MediaCounters, PartId, PartKind, SlowCommand};
use crate::store::{Failures, Memory, Store, StoreError, StoreErrorKind};
use ocssd_base::{Nanos, Prng, Problems};
use ocssd_lightnvm::{
    Addresses, Buffers, ChunkDescriptor, ChunkId, ChunkState, Command, Completion, Device, Geometry, Op,
    PayloadFormat, Ppa, Rejected, Status,
};
use std::fmt;
use std::hint::black_box;

/// What a drive did since it was made or opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlashCounters {
    /// Sectors read by the host.
    pub sectors_read: u64,
    /// Sectors served from the write-back cache.
    pub sectors_read_cached: u64,
    /// Sectors written by the host.
    pub sectors_written: u64,
    /// Sectors moved by copies.
    pub sectors_copied: u64,
    /// Chunks reset.
    pub resets: u64,
    /// Commands refused for a broken rule.
    pub refused: u64,
    /// Array operations that took a latency spike longer.
    pub latency_spikes: u64,
    /// Commands that failed as such, by a fault that was asked for.
    pub commands_failed: u64,
    /// Media operations.
    pub media: MediaCounters,
    /// Time each parallel unit's array has been busy.
    pub unit_busy: Vec<Nanos>,
    /// Time each channel has been busy.
    pub channel_busy: Vec<Nanos>,
}

/// Why a drive cannot be made or opened.
#[derive(Debug)]
pub enum OpenError {
    /// Settings that cannot be used.
    Problems(Problems),
    /// The backing failed.
    Store(StoreError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problems(problems) => problems.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

/// A virtual open-channel SSD.
pub struct Flash {
    pub(crate) config: Config,
    pub(crate) chunks: Chunks,
    pub(crate) store: Store,
    pub(crate) media: Media,
    pub(crate) flow: Flow,
    pub(crate) faults: Faults,
    pub(crate) deferred_copies: DeferredCopies,
    /// Most sectors of a read that can take the short way.
    pub(crate) plain_max: u32,
    pub(crate) chunk_notifications: ChunkNotifications,
    pub(crate) saved: Vec<SavedChunk>,
    /// Units the last power cut took although they were on media.
    pub(crate) lost_pairs: Vec<(Ppa, u32)>,
    /// Content on its way through a copy: 64 sectors.
    pub(crate) scratch: (Box<[u8]>, Box<[u8]>),
    pub(crate) scratch_whole: WholeScratch,
    pub(crate) counters: FlashCounters,
    pub(crate) failures: Failures,
    pub(crate) format: PayloadFormat,
}

impl Flash {
    /// A freshly formatted drive that keeps its content in memory.
    ///
    /// # Errors
    /// Every setting that cannot be used.
    pub fn format(config: Config) -> Result<Self, Problems> {
        config.check()?;
        let geometry = &config.geometry;
        let format = PayloadFormat::new(config.payload, geometry);
        let memory = Memory::new(format, geometry.chunk_count(), geometry.sectors_per_chunk);
        let mut flash = Self::assemble(config, Store::Memory(memory));
        flash.mark_factory_bad();
        Ok(flash)
    }

    /// A freshly formatted drive on a backing that knows nothing yet.
    ///
    /// # Errors
    /// Settings that cannot be used, or a failing backing.
    pub fn format_on(config: Config, backing: Box<dyn crate::store::Backing>) -> Result<Self, OpenError> {
        config.check().map_err(OpenError::Problems)?;
        let mut flash = Self::assemble(config, Store::Backed(backing));
        flash.mark_factory_bad();
        for chunk in (0..flash.config.geometry.chunk_count()).map(ChunkId) {
            let record = flash.chunks.record(chunk);
            flash.store.keep(chunk, &record).map_err(OpenError::Store)?;
        }
        Ok(flash)
    }

    /// A drive as its backing remembers it: a record per chunk in flat order, and the unreadable sectors of some.
    ///
    /// # Errors
    /// Settings that cannot be used, or records that are impossible.
    pub fn open_on(
        config: Config,
        backing: Box<dyn crate::store::Backing>,
        records: &[ChunkRecord],
        unreadable: Vec<(ChunkId, Vec<u64>)>,
    ) -> Result<Self, OpenError> {
        config.check().map_err(OpenError::Problems)?;
        let expected = ChunkId(config.geometry.chunk_count()).index();
        assert_eq!(records.len(), expected, "the image gives one record per chunk");
        let mut flash = Self::assemble(config, Store::Backed(backing));
        for (chunk, record) in (0..).map(ChunkId).zip(records) {
            flash.check_record(chunk, record).map_err(OpenError::Store)?;
            flash.chunks.put(chunk, *record);
        }
        for (chunk, bits) in unreadable {
            flash.chunks.put_unreadable(chunk, bits);
        }
        Ok(flash)
    }

    fn check_record(&self, chunk: ChunkId, record: &ChunkRecord) -> Result<(), StoreError> {
        let (pointer, end) = (record.write_pointer, self.config.geometry.sectors_per_chunk);
        let possible = match record.state {
            ChunkState::Free | ChunkState::Offline => pointer == 0,
            ChunkState::Open => pointer > 0 && pointer < end,
            ChunkState::Closed => pointer <= end,
        };
        if possible {
            return Ok(());
        }
        let state = record.state;
        let sentence = format!(
            "the image says chunk {} is {state} with write pointer {pointer} of {end}, which is impossible; \
             the image is damaged, restore it from a copy or format it anew",
            chunk.0
        );
        Err(StoreError { kind: StoreErrorKind::Failed, sentence })
    }

    fn assemble(config: Config, store: Store) -> Self {
        let format = PayloadFormat::new(config.payload, &config.geometry);
        let scratch = 64;
        let faults = Faults::new(&config);
        Self {
            chunks: Chunks::new(&config.geometry, &config.wear),
            media: Media::new(&config),
            flow: Flow::new(&config),
            plain_max: Self::plain_read_max(&config, &faults, &store),
            faults,
            deferred_copies: DeferredCopies::new(),
            chunk_notifications: ChunkNotifications::default(),
            lost_pairs: Vec::new(),
            saved: Vec::with_capacity(usize::try_from(config.queue_depth).expect("32 bits fit an index")),
            scratch: (
                vec![0; scratch * format.data_bytes].into_boxed_slice(),
                vec![0; scratch * format.oob_bytes].into_boxed_slice(),
            ),
            scratch_whole: WholeScratch::default(),
            counters: FlashCounters::default(),
            failures: Failures::default(),
            format,
            store,
            config,
        }
    }

    fn mark_factory_bad(&mut self) {
        let mut prng = Prng::new(self.config.seed).split("factory bad");
        for chunk in (0..self.config.geometry.chunk_count()).map(ChunkId) {
            if is_factory_bad(&self.config, &mut prng) {
                self.chunks.take_offline(chunk);
            }
        }
    }

    /// The drive's settings.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// How sectors lie in buffers for this drive.
    #[must_use]
    pub const fn payload_format(&self) -> PayloadFormat {
        self.format
    }

    /// What the chunk information log page says of a chunk.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.chunks.descriptor(&self.config.geometry, chunk)
    }

    /// Resets a chunk has behind it.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn cycles(&self, chunk: ChunkId) -> u32 {
        self.chunks.get(chunk).cycles
    }

    /// Which sectors of a chunk cannot be read (torn or failed writes), one bit each; empty if all can.
    #[must_use]
    pub fn unreadable(&self, chunk: ChunkId) -> &[u64] {
        self.chunks.unreadable(chunk)
    }

    /// What the drive did so far.
    #[must_use]
    pub fn counters(&self) -> FlashCounters {
        let (unit_busy, channel_busy) = self.media.busy();
        let latency_spikes = self.latency_spikes();
        let media = self.media.counters;
        let commands_failed = self.commands_failed();
        FlashCounters {
            latency_spikes,
            commands_failed,
            media,
            unit_busy,
            channel_busy,
            ..self.counters.clone()
        }
    }

    /// Array operations so far that took a latency spike longer, as [`FlashCounters::latency_spikes`], at no cost.
    pub const fn latency_spikes(&self) -> u64 {
        self.faults.spikes()
    }

    /// Commands so far that failed as such, as [`FlashCounters::commands_failed`], at no cost.
    #[must_use]
    pub const fn commands_failed(&self) -> u64 {
        self.faults.commands_failed()
    }

    /// From now on notes what commands wait for, and keeps the slowest. What was kept before is forgotten.
    pub fn watch_waits(&mut self) {
        self.media.watch_waits();
    }

    /// The slowest reads and writes of targets since [`Self::watch_waits`], in no order: at most 4096 of each, and none if nobody
    /// watches. What the units were doing when the watch began counts from then on.
    pub fn slowest_commands(&self) -> impl Iterator<Item = &SlowCommand> {
        self.media.waits.iter().flat_map(|waits| waits.slowest())
    }

    /// The latest commands that failed as such, at most 256, and how; each is told once.
    pub fn take_failed_commands(&mut self) -> impl Iterator<Item = (FailedOp, Status)> + use<> {
        self.faults.take_failed_commands()
    }

    /// Chunk notifications not read yet, oldest first.
    pub fn chunk_notifications(&self) -> impl Iterator<Item = &Notification> {
        self.chunk_notifications.iter()
    }

    /// Forgets the notifications up to and including number `count`.
    pub fn chunk_notifications_read(&mut self, count: u64) {
        self.chunk_notifications.read_up_to(count);
    }

    /// Makes a fault happen at a place of its own.
    ///
    /// # Panics
    /// If the chunk does not exist, or the fault is to happen zero times.
    pub fn schedule_fault(&mut self, fault: ScheduledFault) {
        self.chunks.flags_mut(fault.chunk).has_scheduled = true;
        self.faults.schedule(fault);
    }

    /// True if all bytes of a sector are kept beside its stamp: it was written whole.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[must_use]
    pub fn is_whole(&self, at: Ppa) -> bool {
        let entry = self.chunks.get(at.chunk);
        entry.state != ChunkState::Offline
            && at.sector < entry.write_pointer
            && self.store.whole_sectors(at.chunk, at.sector, 1) != 0
    }

    /// What the media hold of a written sector, `data_bytes` of it, whether it can be read or not: for simulators, which say
    /// what a fault costs. `None` if nothing was written there, or the backing fails.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn content(&mut self, at: Ppa) -> Option<Vec<u8>> {
        let entry = self.chunks.get(at.chunk);
        if entry.state == ChunkState::Offline || at.sector >= entry.write_pointer {
            return None;
        }
        let mut data = vec![0; self.format.data_bytes];
        self.store.read(at.chunk, at.sector, &mut data, &mut []).ok()?;
        Some(data)
    }

    /// Flips a bit of a written sector without anyone being told: silent corruption, which only a checksum above can find.
    /// Bits are counted modulo how many the metadata, or the content, has. False if nothing was written there, or the
    /// content is not in memory.
    ///
    /// # Panics
    /// If there is no such chunk.
    pub fn flip_bit(&mut self, at: Ppa, metadata: bool, bit: u64) -> bool {
        let entry = self.chunks.get(at.chunk);
        let is_written = entry.state != ChunkState::Offline && at.sector < entry.write_pointer;
        is_written && self.store.flip(at, metadata, bit)
    }

    /// Whether reads may be misdirected at all from now on, as the rate says: a simulator spares readers that have no other way
    /// to know whose sector they got.
    pub const fn let_reads_be_misdirected(&mut self, may: bool) {
        self.faults.let_reads_be_misdirected(may);
    }

    /// No more faults, by rates or by schedule. What cannot be read already stays so.
    pub fn stop_faults(&mut self) {
        self.config.faults = FaultConfig::default();
        self.faults.stop();
        self.plain_max = Self::plain_read_max(&self.config, &self.faults, &self.store);
    }

    /// Takes up to `bytes` bytes of memory for content ahead, so that writes find it there: the first touch of memory costs more
    /// than what is written to it. Returns how much was taken: no more than empty chunks need, and none if content is not in
    /// memory.
    pub fn take_memory_ahead(&mut self, bytes: u64) -> u64 {
        match &mut self.store {
            Store::Memory(memory) => memory.take_ahead(bytes),
            Store::Backed(_) => 0,
        }
    }

    /// What made the backing fail: the first failure that ended changes, else the first read that failed.
    #[must_use]
    pub fn store_error(&self) -> Option<&StoreError> {
        self.failures.first()
    }

    /// False once the backing failed to store or to sync something: every change ends with that failure's status, until the
    /// drive is opened again. Reads go on.
    #[must_use]
    pub fn takes_changes(&self) -> bool {
        self.failures.ends_changes().is_none()
    }

    /// Makes everything the drive holds survive a crash of the host, as far as its backing can.
    ///
    /// # Errors
    /// If the backing fails, or failed to do so before: what was not written then would not be written now.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        if let Some(error) = self.failures.ends_syncs() {
            return Err(error.clone());
        }
        self.store.sync().inspect_err(|error| self.failures.on_sync(error.clone()))
    }

    /// [`Self::sync`] for the last time, before the drive is left.
    ///
    /// # Errors
    /// Also if changes ended before: what was refused, or given up by a target, is not there.
    pub fn close(&mut self) -> Result<(), StoreError> {
        let synced = self.sync();
        match self.failures.first().filter(|_| !self.takes_changes()) {
            Some(error) => Err(error.clone()),
            None => synced,
        }
    }

    /// Bytes of memory that hold content; `None` if a backing holds it.
    #[must_use]
    pub fn content_bytes(&self) -> Option<u64> {
        match &self.store {
            Store::Memory(memory) => Some(memory.content_bytes()),
            Store::Backed(_) => None,
        }
    }

    /// A second drive in exactly this state, to try what happens to it; `None` if a backing holds the content.
    #[must_use]
    pub fn fork(&self) -> Option<Self> {
        let Store::Memory(memory) = &self.store else { return None };
        Some(Self {
            config: self.config.clone(),
            chunks: self.chunks.clone(),
            store: Store::Memory(memory.clone()),
            media: self.media.clone(),
            flow: self.flow.clone(),
            faults: self.faults.clone(),
            deferred_copies: self.deferred_copies.clone(),
            plain_max: self.plain_max,
            chunk_notifications: self.chunk_notifications.clone(),
            saved: self.saved.clone(),
            lost_pairs: self.lost_pairs.clone(),
            scratch: self.scratch.clone(),
            scratch_whole: self.scratch_whole.clone(),
            counters: self.counters.clone(),
            failures: self.failures.clone(),
            format: self.format,
        })
    }

    /// Asserts every invariant of the whole state. Slow; for simulators and tests.
    pub fn check(&self) {
        self.chunks.check();
        self.media.check();
        self.flow.check(&self.media);
        self.deferred_copies.check();
        for saved in &self.saved {
            let entry = self.chunks.get(saved.chunk);
            assert!(entry.resetting, "old content is kept of a chunk that is not being reset");
            assert_eq!(entry.cycles, saved.cycles, "old content is kept of another life");
            assert!(saved.record.cycles < saved.cycles, "a reset makes a chunk older");
        }
    }

    /// Takes a typed command the long way.
    #[inline(never)]
    fn take_typed(&mut self, now: Nanos, command: Command, buffers: &mut Buffers) -> Result<(), Rejected> {
        let (mut data, mut oob, mut list): (&mut [u8], &mut [u8], &[_]) = (&mut [], &mut [], &[]);
        let (mut whole, format): (&mut [u8], _) = (&mut [], self.format);
        self.deferred_copies.wanted = Self::wanted_bytes(&command, buffers);
        if let Some(id) = command.buffer {
            let first = usize::try_from(command.buffer_first).expect("32 bits fit an index");
            let parts = buffers.parts_mut(id);
            data = parts.data.get_mut(first * format.data_bytes..).unwrap_or_default();
            whole = parts.whole.get_mut(first * format.sector_bytes..).unwrap_or_default();
            if command.oob && self.deferred_copies.wanted.is_none() {
                oob = parts.oob.get_mut(first * format.oob_bytes..).unwrap_or_default();
            }
            list = parts.addresses;
        }
        let entries = |offset: u32, count: u32| {
            let offset = usize::try_from(offset).expect("32 bits fit an index");
            let count = usize::try_from(count).expect("32 bits fit an index");
            list.get(offset..offset + count).unwrap_or_default()
        };
        let (addresses, destinations) = match command.addresses {
            Addresses::Run { first, count } => (AddressList::Run { first, count }, AddressList::List(&[])),
            Addresses::List { offset, count } => (
                AddressList::List(entries(offset, count)),
                AddressList::List(if command.op == Op::Copy { entries(offset + count, count) } else { &[] }),
            ),
            Addresses::None => (AddressList::List(&[]), AddressList::List(&[])),
        };
        let kind = match command.op {
            Op::Read => {
                OperationKind::Read(ReadPolicy { plane_mode: command.plane_mode, ..ReadPolicy::STRICT })
            }
            Op::Write { fua } => OperationKind::Write { fua },
            Op::Reset => OperationKind::Reset,
            Op::Copy => OperationKind::Copy(destinations),
            Op::Flush => OperationKind::Flush,
        };
        let destination = command.buffer.map(|buffer| Destination {
            buffer,
            first: command.buffer_first,
            oob: command.oob,
        });
        self.take(now, Operation { tag: command.tag, kind, addresses, data, oob, whole }, destination)
    }

    /// Copies the content reads wait for.
    #[inline(never)]
    pub(crate) fn copy_deferred(&mut self, buffers: &mut Buffers) {
        if let Store::Memory(memory) = &self.store {
            self.deferred_copies.copy(memory, buffers);
        }
    }

    /// Lets everything happen that is due by `now`.
    pub(crate) fn advance(&mut self, now: Nanos) {
        loop {
            let (arrival, media) = (self.flow.arrival(), self.media.next_at());
            if arrival.min(media) > now {
                return;
            }
            self.step_apart(arrival, media);
        }
    }

    /// As [`Self::step`], for those whom time has overtaken: nearly all steps are taken ahead.
    #[inline(never)]
    fn step_apart(&mut self, arrival: Nanos, media: Nanos) {
        self.step(arrival, media);
    }

    /// Lets the next command arrive or the next thing happen on the media, which are due at these times.
    #[inline(always)]
    fn step(&mut self, arrival: Nanos, media: Nanos) {
        if arrival <= media {
            self.flow.arrive(&mut self.media);
        } else {
            match self.media.step() {
                Some(Done::Read { at, command }) => self.flow.on_read_done(at, command, &mut self.media),
                Some(Done::Change { at, id }) => self.finish_change(at, id),
                None => {}
            }
        }
    }

    fn finish_change(&mut self, at: Nanos, id: PartId) {
        let part = *self.media.part(id);
        self.media.remove(id);
        match part.kind {
            PartKind::Read => unreachable!("a read changes nothing"),
            PartKind::Program => self.chunks.programmed_to(part.chunk, part.first + part.count, part.cycles),
            PartKind::Erase => self.forget_saved(part.chunk, part.cycles),
        }
        self.flow.on_change_done(at, &part);
    }
}

impl Device for Flash {
    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        Self::chunk(self, chunk)
    }

    fn geometry(&self) -> &Geometry {
        &self.config.geometry
    }

    /// Takes a typed command. A read gives what is there now; its buffer is filled by the completion. A read of what is
    /// not written fails with 287h, as with DULBE set, and High ECC is reported.
    #[inline(always)]
    fn submit(&mut self, now: Nanos, command: Command, buffers: &mut Buffers) -> Result<(), Rejected> {
        let changes = !matches!(command.op, Op::Read | Op::Flush);
        if self.deferred_copies.is_full() || (changes && !self.deferred_copies.is_empty()) {
            self.copy_deferred(buffers);
        }
        if command.op == Op::Read && self.take_plain_read(now, &command, buffers) {
            return Ok(());
        }
        // A copy that the compiler sees as one, or every read would be written to memory for what goes the long way.
        self.take_typed(now, black_box(command), buffers)
    }

    #[inline(always)]
    fn room(&self) -> u32 {
        self.flow.room()
    }

    fn deadline(&self) -> Option<Nanos> {
        let at = self.flow.next_end().min(self.flow.arrival()).min(self.media.next_at());
        (at < Nanos::MAX).then_some(at)
    }

    #[inline(never)]
    fn work_ahead(&mut self, limit: Nanos) -> Option<Nanos> {
        loop {
            let (arrival, media) = (self.flow.arrival(), self.media.next_at());
            let (next, end) = (arrival.min(media), self.flow.next_end());
            // Never past an end: the host may submit when it hears of it.
            if end < next || next >= limit {
                return (end < limit && end < next).then_some(end);
            }
            self.step(arrival, media);
        }
    }

    #[inline(always)]
    fn poll_completion(&mut self, now: Nanos, buffers: &mut Buffers) -> Option<Completion> {
        self.advance(now);
        let (deferred_copy, completion) = self.flow.poll(now, &mut self.media)?;
        if self.deferred_copies.is_waiting(deferred_copy) {
            self.copy_deferred(buffers);
        }
        Some(completion)
    }
}
