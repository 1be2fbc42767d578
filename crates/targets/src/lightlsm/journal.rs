//! The log of changes and checkpoints of the catalog, on their way to media.
//!
//! Two checkpoints and the log from the older one on are on media at any time, and a third is written in places of its own: a
//! power cut at any write, or one checkpoint that the media lost, leaves one that is whole. Deliberately not here: what is
//! logged, and when a checkpoint is due (`commit`); reading them (`mount`).

use super::change::to_records;
use super::flight::Purpose;
use super::sizes::{INFO_BYTES, Kept};
use super::space::{Role, Space};
use super::stats::LightLsmStats;
use crate::flight::Flight;
use crate::ox::log_pages::tag_page;
use crate::ox::page_io::PageIo;
use ocssd_base::SlabKey;
use ocssd_ftl::checkpoint::{CheckpointWriter, PageIndex, SectionName, Serial};
use ocssd_ftl::log::{Log, Lsn, TransactionId};
use ocssd_ftl::{Append, AppendEvent, AppendPoint, InstanceId, Kind, Landing, Shape};
use ocssd_lightnvm::{Addresses, Buffers, Op, Ppa, Status};

/// The section about the instance.
pub const INFO: SectionName = *b"lightlsm";
/// The section of the catalog.
pub const CATALOG: SectionName = *b"catalog ";
/// The layout of both; raised when an older reader would misread them.
const VERSION: u32 = 1;

/// What a checkpoint says of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    pub chunk: u32,
    pub units: u32,
    pub lines: u32,
    pub kept: Kept,
    /// The generation of the pages that replay begins with.
    pub generation: u64,
    /// The page that replay begins with.
    pub start: Lsn,
    /// The newest transaction that the catalog has.
    pub applied: u64,
    /// A number that no table had.
    pub next_number: u64,
}

impl Info {
    pub fn encode(&self) -> [u8; INFO_BYTES] {
        let mut bytes = [0; INFO_BYTES];
        let small = [VERSION, self.chunk, self.units, self.lines, self.kept.tables_max, 0];
        for (place, number) in bytes.chunks_exact_mut(4).zip(small) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let large = [self.kept.capacity_bytes, self.generation, self.start.0, self.applied, self.next_number];
        for (place, number) in bytes[24..].chunks_exact_mut(8).zip(large) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// # Errors
    /// A sentence, if the bytes are of another layout.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let bytes: &[u8; INFO_BYTES] = bytes.try_into().map_err(|_| {
            format!("{INFO_BYTES} bytes about the instance were expected, but {} were found", bytes.len())
        })?;
        let small = |at: usize| u32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().expect("four bytes"));
        let large =
            |at: usize| u64::from_le_bytes(bytes[24 + 8 * at..32 + 8 * at].try_into().expect("eight bytes"));
        if small(0) != VERSION {
            return Err(format!(
                "a lightlsm instance of version {VERSION} was expected, but it has {}: use a newer program",
                small(0)
            ));
        }
        Ok(Self {
            chunk: small(1),
            units: small(2),
            lines: small(3),
            kept: Kept { tables_max: small(4), capacity_bytes: large(0) },
            generation: large(1),
            start: Lsn(large(2)),
            applied: large(3),
            next_number: large(4),
        })
    }
}

/// A checkpoint on media: its number, and where replay from it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    pub serial: Serial,
    pub start: Lsn,
}

/// What the journal needs of the instance.
pub struct Around<'a> {
    pub space: &'a mut Space,
    pub flight: &'a mut Flight<Purpose>,
    pub stats: &'a mut LightLsmStats,
    pub buffers: &'a mut Buffers,
}

/// Log and checkpoints.
#[derive(Clone, Debug)]
pub struct Journal {
    pub instance: InstanceId,
    /// The generation of this mount.
    pub generation: u64,
    pub log: Log,
    pub log_io: PageIo<Lsn>,
    pub log_point: AppendPoint<()>,
    pub checkpoint_io: PageIo<PageIndex>,
    pub checkpoint_point: AppendPoint<()>,
    /// The newest checkpoint that is whole, and the one before.
    pub current: Option<Whole>,
    pub previous: Option<Whole>,
    /// The number of the next.
    pub next: Serial,
    pub writer: Option<CheckpointWriter>,
    /// Where replay from the one being written begins.
    pub start: Lsn,
    /// The newest transaction.
    pub last: TransactionId,
}

/// A run of sectors of a chunk, as the drive calls it.
pub fn run_at(shape: &Shape, at: Append, count: u32) -> Addresses {
    assert!(at.sector + count <= shape.sectors_per_chunk(), "a run leaves its chunk");
    Addresses::Run { first: Ppa::new(shape.chunk_id(at.chunk), at.sector), count }
}

/// What a write's end says of its place.
pub fn landing<T>(status: Status, what: T) -> Landing<T> {
    match status {
        _ if status.is_success() => Landing::Written(what),
        Status::WRITE_NEXT_UNIT => Landing::Lost,
        _ if status.is_drive_failure() => Landing::Refused,
        _ => Landing::Closed,
    }
}

impl Journal {
    /// True if a transaction of so many records fits before the log must be cut.
    pub fn has_room(&self, records: usize) -> bool {
        self.log.has_room(records + 1)
    }

    /// Logs a transaction of these bytes. It is durable once the log is durable up to the page given.
    pub fn append(&mut self, changes: &[u8]) -> Lsn {
        assert!(!changes.is_empty(), "a transaction changes nothing");
        self.last = TransactionId(self.last.0 + 1);
        let (first, last) = self.log.append(self.last, &to_records(changes));
        assert!(first <= last, "transaction {} ends before it begins", self.last.0);
        last.next()
    }

    /// True if everything logged up to `until` is on media.
    pub const fn is_durable(&self, until: Lsn) -> bool {
        self.log.durable().0 >= until.0
    }

    /// True while a checkpoint is written.
    pub const fn is_writing(&self) -> bool {
        self.writer.is_some()
    }

    /// Gives out pages of the log: full ones, and others if `is_awaited`. True if any was.
    pub fn write_log(&mut self, is_awaited: bool, around: &mut Around<'_>) -> bool {
        let mut any = false;
        while around.flight.has_room(1) && self.write_log_page(is_awaited, around) {
            any = true;
        }
        any
    }

    fn write_log_page(&mut self, is_awaited: bool, around: &mut Around<'_>) -> bool {
        let is_again = self.log_io.has_again();
        let is_due = (is_awaited || self.log.has_full_page()) && self.log.has_page();
        if !(is_again || is_due && self.log_io.spare().is_some()) {
            return false;
        }
        let sectors = self.log_io.sectors();
        let space = &mut *around.space;
        let Some(at) = self.log_point.next(sectors, |units| space.open_pages(units, Role::Log)) else {
            return false;
        };
        let fresh = (!is_again).then(|| {
            let buffer = self.log_io.spare().expect("it was looked at");
            let lsn =
                self.log.take_page(around.buffers.whole_mut(buffer, 0, sectors)).expect("a page is due");
            tag_page(Kind::Log, (lsn.0, self.generation), buffer, sectors, around.buffers);
            lsn
        });
        count_page(is_again, sectors, Role::Log, around.stats);
        let (page, buffer) = self.log_io.issue(fresh, at);
        let addresses = run_at(&around.space.shape, at, sectors);
        around.flight.send(Purpose::LogPage { page }, Op::Write { fua: true }, addresses, Some(buffer), 0);
        true
    }

    /// A write of a page of the log ended.
    pub fn log_page_done(&mut self, page: SlabKey, status: Status, space: &mut Space) {
        let (lsn, at) = self.log_io.ended(page, status.is_success());
        assert_eq!(space.role(at.chunk), Role::Log, "page {} is in chunk {}", lsn.0, at.chunk.0);
        if status.is_success() {
            space.has_page(at.chunk, lsn.0);
            self.log.on_written(lsn);
        }
        let mut events = Vec::new();
        self.log_point.landed(at, landing(status, ()), &mut events);
        self.close_chunks(&events, space);
    }

    /// Begins a checkpoint of these sections, from which replay begins with the page that is being filled.
    pub fn begin_checkpoint(&mut self, info: &Info, catalog: &[u8], page_bytes: u32) {
        assert!(!self.is_writing(), "two checkpoints are written at once");
        let serial = self.next;
        self.next = serial.next();
        let sections = [(INFO, &info.encode()[..]), (CATALOG, catalog)];
        self.writer = Some(CheckpointWriter::new(self.instance, serial, page_bytes, &sections));
        self.start = info.start;
        assert!(self.current.is_none_or(|whole| whole.start <= self.start), "replay would begin earlier");
    }

    /// Gives out pages of a checkpoint. True if any was.
    pub fn write_checkpoint(&mut self, around: &mut Around<'_>) -> bool {
        let mut any = false;
        while around.flight.has_room(1) && self.write_checkpoint_page(around) {
            any = true;
        }
        any
    }

    fn write_checkpoint_page(&mut self, around: &mut Around<'_>) -> bool {
        let is_again = self.checkpoint_io.has_again();
        let is_fresh = self.writer.as_ref().is_some_and(CheckpointWriter::has_page);
        if !(is_again || is_fresh && self.checkpoint_io.spare().is_some()) {
            return false;
        }
        let sectors = self.checkpoint_io.sectors();
        let space = &mut *around.space;
        let next = self.checkpoint_point.next(sectors, |units| space.open_pages(units, Role::Checkpoint));
        let Some(at) = next else { return false };
        let fresh = (!is_again).then(|| {
            let buffer = self.checkpoint_io.spare().expect("it was looked at");
            let writer = self.writer.as_mut().expect("it was looked at");
            let index =
                writer.take_page(around.buffers.whole_mut(buffer, 0, sectors)).expect("a page is due");
            let name = (u64::from(index.0), writer.serial().0);
            tag_page(Kind::Map, name, buffer, sectors, around.buffers);
            index
        });
        count_page(is_again, sectors, Role::Checkpoint, around.stats);
        let (page, buffer) = self.checkpoint_io.issue(fresh, at);
        let addresses = run_at(&around.space.shape, at, sectors);
        around.flight.send(
            Purpose::CheckpointPage { page },
            Op::Write { fua: true },
            addresses,
            Some(buffer),
            0,
        );
        true
    }

    /// A write of a page of a checkpoint ended. True if the checkpoint is whole by it.
    pub fn checkpoint_page_done(&mut self, page: SlabKey, status: Status, space: &mut Space) -> bool {
        let (index, at) = self.checkpoint_io.ended(page, status.is_success());
        assert_eq!(space.role(at.chunk), Role::Checkpoint, "page {} is in chunk {}", index.0, at.chunk.0);
        let mut is_whole = false;
        if let Some(writer) = self.writer.as_mut().filter(|_| status.is_success()) {
            writer.on_written(index);
            let serial = writer.serial();
            is_whole = writer.is_complete();
            space.has_page(at.chunk, serial.0);
            if is_whole {
                self.writer = None;
                assert!(self.current.is_none_or(|whole| whole.serial < serial), "{serial:?} goes back");
                self.previous = self.current.replace(Whole { serial, start: self.start });
                let oldest = self.previous.map_or(self.start, |whole| whole.start);
                self.cut_log(oldest, space);
            }
        }
        let mut events = Vec::new();
        self.checkpoint_point.landed(at, landing(status, ()), &mut events);
        self.close_chunks(&events, space);
        is_whole
    }

    /// Pages of the log before `oldest` are not needed any more.
    pub fn cut_log(&mut self, oldest: Lsn, space: &mut Space) {
        let oldest = oldest.min(self.log.durable());
        assert!(self.log.tail() <= self.log.durable(), "the log was cut before it was on media");
        if oldest > self.log.tail() {
            self.log.truncate(oldest);
        }
        for chunk in space.closed_pages() {
            self.look_at(chunk, space);
        }
    }

    fn look_at(&self, chunk: ocssd_ftl::ChunkIndex, space: &mut Space) {
        let oldest = self.previous.or(self.current).map_or(0, |whole| whole.serial.0);
        space.look_at_pages(chunk, self.log.tail().0, oldest);
    }

    /// Chunks of pages were written to their end.
    fn close_chunks(&self, events: &[AppendEvent<()>], space: &mut Space) {
        for event in events {
            if let AppendEvent::Closed(chunk) = *event {
                space.pool.close(chunk);
                self.look_at(chunk, space);
            }
        }
    }

    /// Asserts what holds between calls.
    pub fn check(&self) {
        self.log.check();
        self.log_point.check();
        self.checkpoint_point.check();
        assert!(self.previous.is_none_or(|whole| whole.serial < self.next), "checkpoints go back");
    }
}

fn count_page(is_again: bool, sectors: u32, role: Role, stats: &mut LightLsmStats) {
    assert!(sectors > 0 && role != Role::Content, "a page of {sectors} sectors of {role:?}");
    let sectors = u64::from(sectors);
    let cause = match role {
        _ if is_again => &mut stats.rewritten,
        Role::Log => &mut stats.log_written,
        Role::Checkpoint | Role::Content => &mut stats.checkpoint_written,
    };
    *cause += sectors;
    stats.programmed += sectors;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_instance_comes_back() {
        let kept = Kept { tables_max: 9, capacity_bytes: 1 << 40 };
        let info = Info {
            chunk: 1,
            units: 2,
            lines: 3,
            kept,
            generation: 5,
            start: Lsn(6),
            applied: 7,
            next_number: 8,
        };
        let mut bytes = info.encode();
        assert_eq!(Info::decode(&bytes), Ok(info));
        assert!(Info::decode(&bytes[1..]).is_err_and(|error| error.contains("72 bytes")));
        bytes[0] = 9;
        assert!(Info::decode(&bytes).is_err_and(|error| error.contains("newer program")));
    }
}
