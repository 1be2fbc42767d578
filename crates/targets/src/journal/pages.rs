//! Pages of the log and of checkpoints, in places of their own, and what is on media by them.
//!
//! Deliberately not here: what is in a page (`ocssd_ftl::{log, checkpoint}`), commands.

use super::page_io::PageIo;
use super::points::PagePoints;
use crate::recovery::found::LogEnd;
use ocssd_base::SlabKey;
use ocssd_ftl::checkpoint::{CheckpointWriter, PageIndex, SectionName, Serial};
use ocssd_ftl::log::{Generation, Log, LogConfig, LogCopy, LogEntry, Lsn, Record, TransactionId};
use ocssd_ftl::{
    Append, AppendEvent, ChunkIndex, InstanceId, Kind, ProgramOutcome, SectorTag, Sequence, TAG_BYTES,
    UnitIndex,
};
use ocssd_lightnvm::{BufId, Buffers, Status};

/// The numbers in tags have 40 and 48 bits: lower bits are enough to tell pages apart.
const TAG_BLOCK_BITS: u64 = (1 << 40) - 1;

/// Writes the tags of a page of the target's own beside its sectors.
fn tag_page(kind: Kind, (block, sequence): (u64, u64), buffer: BufId, sectors: u32, buffers: &mut Buffers) {
    let whole_is_data = buffers.whole(buffer, 0, 1).len() == buffers.data(buffer, 0, 1).len();
    for sector in 0..sectors {
        let (data, oob) = buffers.sectors_mut(buffer, sector, 1);
        if !whole_is_data {
            data.fill(0);
        }
        let tag = SectorTag { kind, block: block & TAG_BLOCK_BITS, sequence: Sequence(sequence) };
        oob.fill(0);
        oob[..TAG_BYTES].copy_from_slice(&tag.encode(data));
    }
}

/// What a write's end says of its place.
pub fn outcome<T>(status: Status, what: T) -> ProgramOutcome<T> {
    match status {
        _ if status.is_success() => ProgramOutcome::Written(what),
        Status::WRITE_NEXT_UNIT => ProgramOutcome::Lost,
        _ if status.is_drive_failure() => ProgramOutcome::Refused,
        _ => ProgramOutcome::Closed,
    }
}

/// Of what a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// The log.
    Log,
    /// A checkpoint.
    Checkpoint,
}

/// A checkpoint on media: its number, and where replay from it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    pub serial: Serial,
    pub start: Lsn,
}

/// The oldest page of the log and the oldest checkpoint that recovery may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oldest {
    pub lsn: Lsn,
    pub serial: Serial,
}

impl Oldest {
    /// The number of a page of this kind below which none is needed.
    pub const fn of(self, kind: PageKind) -> u64 {
        match kind {
            PageKind::Log => self.lsn.0,
            PageKind::Checkpoint => self.serial.0,
        }
    }
}

/// The chunks pages lie in, as their owner accounts for them.
pub trait PageChunks {
    /// Opens a free chunk on one of these units for pages of this kind.
    fn open_for(&mut self, units: &[UnitIndex], kind: PageKind) -> Option<ChunkIndex>;

    /// A page of this number is in a chunk.
    fn has_page(&mut self, chunk: ChunkIndex, number: u64);

    /// A chunk of pages takes no more.
    fn close_pages(&mut self, chunk: ChunkIndex);

    /// Chunks of pages that are closed.
    fn closed_pages(&self) -> Vec<ChunkIndex>;

    /// Looks whether a closed chunk of pages is needed.
    fn look_at_pages(&mut self, chunk: ChunkIndex, oldest: Oldest);
}

/// A page that is to be written, with force unit access.
#[derive(Clone, Copy, Debug)]
pub struct PageWrite {
    pub kind: PageKind,
    /// The journal's name for the write.
    pub key: SlabKey,
    pub at: Append,
    pub sectors: u32,
    pub buffer: BufId,
    /// The media failed it before.
    pub is_again: bool,
}

/// How large the pages of an instance are, and how they are spread.
#[derive(Clone, Copy, Debug)]
pub struct JournalSizes {
    /// Sectors of a chunk.
    pub chunk: u32,
    /// Sectors that must follow before one can be read.
    pub mw_cunits: u32,
    /// Sectors that a program cut short may take along before it ([`reach_of_loss`](super::reach_of_loss)).
    pub reach: u32,
    /// Writes in flight to a chunk.
    pub depth: u32,
    /// Sectors of a page of the log.
    pub page: u32,
    /// Sectors of a page of a checkpoint.
    pub unit: u32,
    pub sector_bytes: u32,
    /// Chunks the log is striped over.
    pub log_width: u32,
    /// Chunks a checkpoint is striped over.
    pub checkpoint_width: u32,
    /// Times each page of the log is written.
    pub copies: u32,
    /// Pages of the log between checkpoints.
    pub interval_pages: u32,
    /// Pages of the log at most.
    pub log_pages_max: u32,
}

/// What a journal begins with.
#[derive(Clone, Copy, Debug)]
pub struct NewJournal {
    /// The name of a new instance.
    pub named: InstanceId,
    /// What recovery found; `None` of a new instance.
    pub found: Option<LogEnd>,
    /// The newest generation of any page, and the newest checkpoint of which there is a page.
    pub newest: (Generation, Serial),
}

/// A transaction in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    pub id: TransactionId,
    /// The page its first entry is in.
    pub first: Lsn,
    /// It is on media once the log is durable up to here: the page after its last.
    pub durable_at: Lsn,
}

/// Log and checkpoints of one mount.
#[derive(Clone, Debug)]
pub struct Journal<E = LogEntry> {
    pub instance: InstanceId,
    /// The generation of this mount.
    pub generation: u64,
    pub log: Log<E>,
    log_io: PageIo<LogCopy>,
    points: PagePoints,
    checkpoint_io: PageIo<PageIndex>,
    /// The newest checkpoint that is whole, and the one before.
    current: Option<Kept>,
    previous: Option<Kept>,
    /// The number of the next.
    next: Serial,
    writer: Option<CheckpointWriter>,
    /// Where replay from the one being written begins.
    start: Lsn,
    /// The newest transaction.
    last: TransactionId,
    /// Nothing becomes durable any more.
    is_stopped: bool,
}

impl<E: Record> Journal<E> {
    /// The journal of a mount, which writes a generation of its own.
    pub fn new(sizes: &JournalSizes, points: PagePoints, new: &NewJournal, buffers: &mut Buffers) -> Self {
        let NewJournal { named, found, newest: (newest_generation, newest_serial) } = *new;
        let instance = found.map_or(named, |found| found.instance);
        let generation = Generation(newest_generation.0 + 1);
        let (first, tail) = found.map_or((Lsn(1), Lsn(1)), |found| (found.end, found.kept.start));
        let old_pages = u32::try_from(first.0 - tail.0).expect("a log is bounded");
        let (page_bytes, depth, copies) = (sizes.page * sizes.sector_bytes, sizes.log_width, sizes.copies);
        // Pages of a mount with a longer interval may be there still.
        let pages_max = sizes.log_pages_max.max(old_pages + sizes.interval_pages + 2 * depth);
        let current = found.map(|found| found.kept);
        assert!(current.is_none_or(|kept| kept.serial <= newest_serial), "checkpoints go back");
        let log =
            Log::new(LogConfig { instance, generation, first, tail, page_bytes, depth, copies, pages_max });
        assert!(log.tail() <= log.next(), "the log ends before it begins");
        Self {
            instance,
            generation: generation.0,
            log,
            log_io: PageIo::new(sizes.page, depth * copies, buffers),
            points,
            checkpoint_io: PageIo::new(sizes.unit, 2 * sizes.checkpoint_width, buffers),
            current,
            previous: None,
            next: newest_serial.next(),
            writer: None,
            start: Lsn(0),
            last: found.map_or(TransactionId(0), |found| found.applied),
            is_stopped: false,
        }
    }

    /// Goes on in an open chunk of pages that was found at mount; false if there is no place for one more.
    pub fn adopt(&mut self, kind: PageKind, chunk: ChunkIndex, unit: UnitIndex, pointer: u32) -> bool {
        self.points.adopt(kind, chunk, unit, pointer)
    }

    /// The newest checkpoint that is whole.
    pub const fn current(&self) -> Option<Kept> {
        self.current
    }

    /// True if a checkpoint of this mount is whole, and another before it: one that the media lose is never the only one.
    pub const fn has_two(&self) -> bool {
        self.previous.is_some()
    }

    /// The newest transaction.
    pub const fn last_transaction(&self) -> TransactionId {
        self.last
    }

    /// What recovery may need.
    pub fn oldest(&self) -> Oldest {
        let serial = self.previous.or(self.current).map_or(Serial(0), |kept| kept.serial);
        Oldest { lsn: self.log.tail(), serial }
    }

    /// True if a transaction of so many entries fits before the log must be cut.
    pub fn has_room(&self, entries: usize) -> bool {
        self.log.has_room(entries + 1)
    }

    /// Logs a transaction.
    pub fn append(&mut self, entries: &[E]) -> Logged {
        assert!(!entries.is_empty(), "a transaction changes nothing");
        let id = TransactionId(self.last.0 + 1);
        self.last = id;
        let (first, last) = self.log.append(id, entries);
        assert!(first <= last, "transaction {} ends before it begins", id.0);
        Logged { id, first, durable_at: last.next() }
    }

    /// True if everything logged up to `until` is on media.
    pub const fn is_durable(&self, until: Lsn) -> bool {
        self.log.durable().0 >= until.0
    }

    /// True while a checkpoint is written.
    pub const fn is_writing(&self) -> bool {
        self.writer.is_some()
    }

    /// The next page: one that the media failed, or a fresh one if `fresh` may give it. `place` is told which failed.
    fn next_page<I: Copy>(
        kind: PageKind,
        io: &mut PageIo<I>,
        place: impl FnOnce(Option<I>, u32) -> Option<Append>,
        fresh: impl FnOnce(BufId, u32) -> Option<I>,
    ) -> Option<PageWrite> {
        let (is_again, sectors) = (io.has_again(), io.sectors());
        let spare = io.spare();
        if !is_again && spare.is_none() {
            return None;
        }
        let at = place(io.next_again(), sectors)?;
        let fresh = if is_again { None } else { fresh(spare.expect("it was looked at"), sectors) };
        assert!(is_again || fresh.is_some(), "a place for no page was taken at {at:?}");
        let (key, buffer) = io.issue(fresh, at);
        Some(PageWrite { kind, key, at, sectors, buffer, is_again })
    }

    /// The next page of the log that can be written: a full one, or one that is not if `is_awaited`.
    pub fn next_log_page(
        &mut self,
        is_awaited: bool,
        chunks: &mut impl PageChunks,
        buffers: &mut Buffers,
    ) -> Option<PageWrite> {
        let Self { log, log_io, points, generation, .. } = self;
        let is_due = (is_awaited || log.has_full_page()) && log.has_page();
        if !is_due && !log_io.has_again() {
            return None;
        }
        let next = log.next_to_take();
        let place =
            |again: Option<LogCopy>, sectors| points.next_of_log(again.unwrap_or(next), sectors, chunks);
        Self::next_page(PageKind::Log, log_io, place, |buffer, sectors| {
            let page = log.take_page(buffers.whole_mut(buffer, 0, sectors))?;
            tag_page(Kind::Log, (page.lsn.0, *generation), buffer, sectors, buffers);
            Some(page)
        })
    }

    /// The next page of the checkpoint that is being written.
    pub fn next_checkpoint_page(
        &mut self,
        chunks: &mut impl PageChunks,
        buffers: &mut Buffers,
    ) -> Option<PageWrite> {
        let Self { writer, checkpoint_io, points, .. } = self;
        let is_due = writer.as_ref().is_some_and(CheckpointWriter::has_page);
        if !is_due && !checkpoint_io.has_again() {
            return None;
        }
        let place = |_, sectors| points.next_of_checkpoint(sectors, chunks);
        Self::next_page(PageKind::Checkpoint, checkpoint_io, place, |buffer, sectors| {
            let writer = writer.as_mut()?;
            let index = writer.take_page(buffers.whole_mut(buffer, 0, sectors))?;
            tag_page(Kind::Map, (u64::from(index.0), writer.serial().0), buffer, sectors, buffers);
            Some(index)
        })
    }

    /// A write of a page of the log ended.
    pub fn log_page_done(&mut self, key: SlabKey, status: Status, chunks: &mut impl PageChunks) {
        let (LogCopy { lsn, .. }, at) = self.log_io.ended(key, status.is_success());
        if status.is_success() {
            chunks.has_page(at.chunk, lsn.0);
            if !self.is_stopped {
                self.log.on_written(lsn);
            }
        }
        self.programmed(PageKind::Log, at, status, chunks);
    }

    /// A write of a page of a checkpoint ended. The checkpoint that is whole by it, if one is: then the log before the one
    /// before it is cut.
    pub fn checkpoint_page_done(
        &mut self,
        key: SlabKey,
        status: Status,
        chunks: &mut impl PageChunks,
    ) -> Option<Kept> {
        let (index, at) = self.checkpoint_io.ended(key, status.is_success());
        let mut whole = None;
        if let Some(writer) = self.writer.as_mut().filter(|_| status.is_success()) {
            writer.on_written(index);
            let (serial, is_complete) = (writer.serial(), writer.is_complete());
            chunks.has_page(at.chunk, serial.0);
            if is_complete {
                whole = Some(Kept { serial, start: self.start });
            }
        }
        if let Some(kept) = whole {
            self.complete(kept, chunks);
        }
        self.programmed(PageKind::Checkpoint, at, status, chunks);
        whole
    }

    fn complete(&mut self, kept: Kept, chunks: &mut impl PageChunks) {
        self.writer = None;
        let is_next = self.current.is_none_or(|before| before.serial < kept.serial);
        assert!(is_next, "checkpoint {} goes back", kept.serial.0);
        self.previous = self.current.replace(kept);
        self.cut_log(self.previous.map_or(kept.start, |before| before.start), chunks);
    }

    fn programmed(&mut self, kind: PageKind, at: Append, status: Status, chunks: &mut impl PageChunks) {
        let mut events = Vec::new();
        self.points.programmed(kind, at, outcome(status, ()), &mut events);
        for event in events {
            if let AppendEvent::Closed(chunk) = event {
                chunks.close_pages(chunk);
                chunks.look_at_pages(chunk, self.oldest());
            }
        }
    }

    /// Begins a checkpoint of these sections, from which replay begins with page `start`.
    pub fn begin_checkpoint(&mut self, start: Lsn, page_bytes: u32, sections: &[(SectionName, &[u8])]) {
        assert!(!self.is_writing(), "a checkpoint begins within another");
        assert!(!self.is_stopped, "a checkpoint begins when nothing becomes durable");
        assert!(start >= self.log.tail(), "replay would begin before the log");
        assert!(self.current.is_none_or(|kept| kept.start <= start), "replay would begin earlier");
        let serial = self.next;
        self.next = serial.next();
        self.writer = Some(CheckpointWriter::new(self.instance, serial, page_bytes, sections));
        self.points.begin_checkpoint();
        self.start = start;
    }

    /// Pages of the log before `oldest` are not needed any more.
    pub fn cut_log(&mut self, oldest: Lsn, chunks: &mut impl PageChunks) {
        let oldest = oldest.min(self.log.durable());
        if oldest > self.log.tail() {
            self.log.truncate(oldest);
        }
        for chunk in chunks.closed_pages() {
            chunks.look_at_pages(chunk, self.oldest());
        }
    }

    /// No more changes are taken: nothing becomes durable from now on, and a checkpoint under way is given up.
    pub fn stop(&mut self) {
        self.writer = None;
        self.is_stopped = true;
    }

    /// Asserts what holds between calls.
    pub fn check(&self) {
        self.log.check();
        self.points.check();
        let is_next = |kept: Option<Kept>| kept.is_none_or(|kept| kept.serial < self.next);
        assert!(is_next(self.current) && is_next(self.previous), "checkpoints go back");
    }
}
