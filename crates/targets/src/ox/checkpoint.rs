//! Checkpoints: what the store maps and where replay begins, written beside everything else; then the log before the
//! checkpoint before is cut.
//!
//! Two checkpoints and the log from the older one on are on media at any time, and a third is written in places of its own:
//! a power cut at any write, or one checkpoint that the media lost, leaves one that is whole. Deliberately not here: pages
//! (`ocssd_ftl::checkpoint`), reading them (`mount`).

use super::canary::Canary;
use super::flight::Purpose;
use super::log_pages::tag_page;
use super::page_io::PageIo;
use super::sizes::INFO_BYTES;
use super::space::Claim;
use super::state::Ox;
use super::store::Store;
use ocssd_base::SlabKey;
use ocssd_ftl::Kind;
use ocssd_ftl::checkpoint::{CheckpointWriter, PageIndex, SectionName, Serial};
use ocssd_ftl::log::Lsn;
use ocssd_lightnvm::{Buffers, Completion, Op};

/// The section about the instance.
pub(crate) const INFO: SectionName = *b"instance";
/// The layout of the section about the instance; raised when an older reader would misread it.
const VERSION: u32 = 1;

/// What a checkpoint says of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Info {
    pub chunk: u32,
    pub units: u32,
    pub lines: u32,
    pub blocks: u64,
    /// The generation of the pages that replay begins with.
    pub generation: u64,
    /// The page that replay begins with.
    pub start: Lsn,
    /// The newest transaction that the map has.
    pub applied: u64,
    /// Blocks written so far.
    pub sequence: u64,
}

impl Info {
    pub fn encode(&self) -> [u8; INFO_BYTES] {
        let mut bytes = [0; INFO_BYTES];
        let small = [VERSION, self.chunk, self.units, self.lines];
        for (place, number) in bytes.chunks_exact_mut(4).zip(small) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let large = [self.blocks, self.generation, self.start.0, self.applied, self.sequence];
        for (place, number) in bytes[16..].chunks_exact_mut(8).zip(large) {
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
            |at: usize| u64::from_le_bytes(bytes[16 + 8 * at..24 + 8 * at].try_into().expect("eight bytes"));
        if small(0) != VERSION {
            return Err(format!(
                "an instance of version {VERSION} was expected, but it has {}: use a newer program",
                small(0)
            ));
        }
        Ok(Self {
            chunk: small(1),
            units: small(2),
            lines: small(3),
            blocks: large(0),
            generation: large(1),
            start: Lsn(large(2)),
            applied: large(3),
            sequence: large(4),
        })
    }
}

/// A checkpoint on media: its number, and where replay from it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub serial: Serial,
    pub start: Lsn,
}

/// How checkpoints stand.
#[derive(Clone, Debug)]
pub(crate) struct CheckpointState {
    pub io: PageIo<PageIndex>,
    /// The newest that is whole.
    pub current: Option<Kept>,
    /// The one before.
    pub previous: Option<Kept>,
    /// The number of the next.
    pub next: Serial,
    pub writer: Option<CheckpointWriter>,
    /// Where replay from the one being written begins.
    pub start: Lsn,
}

impl CheckpointState {
    pub fn new(io: PageIo<PageIndex>, current: Option<Kept>, next: Serial) -> Self {
        assert!(current.is_none_or(|kept| kept.serial < next), "checkpoints go back");
        Self { io, current, previous: None, next, writer: None, start: Lsn(0) }
    }

    /// The oldest checkpoint that recovery may need; of a new instance the first.
    pub fn oldest_serial(&self) -> u64 {
        self.previous.or(self.current).map_or(0, |kept| kept.serial.0)
    }

    /// True while one is being written.
    pub const fn is_writing(&self) -> bool {
        self.writer.is_some()
    }
}

impl<S: Store> Ox<S> {
    /// Begins a checkpoint when one is due, and goes on with it. True if anything was done.
    pub(crate) fn write_checkpoint(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        if !self.checkpoint.is_writing() && self.is_checkpoint_due() {
            self.begin_checkpoint();
            any = true;
        }
        while self.flight.has_room(1) && self.write_checkpoint_page(buffers) {
            any = true;
        }
        any
    }

    fn is_checkpoint_due(&self) -> bool {
        let Some(current) = self.checkpoint.current else { return true };
        let since = self.log.next().0 - current.start.0;
        let waits = self.commits.front().is_some_and(|front| !self.log.has_room(front.entries.len() + 1));
        let is_full = waits && since > 0;
        let is_first = self.is_mounting && self.checkpoint.previous.is_none();
        is_first || since >= u64::from(self.sizes.interval_pages) || is_full || self.is_last_due()
    }

    pub(crate) fn begin_checkpoint(&mut self) {
        let start = self.replay_start();
        let info = Info {
            chunk: self.sizes.chunk,
            units: self.space.shape.units(),
            lines: self.space.shape.lines(),
            blocks: self.sizes.blocks,
            generation: self.generation,
            start,
            applied: self.applied.0,
            sequence: self.sequence,
        };
        let image = S::image(self);
        let serial = self.checkpoint.next;
        self.checkpoint.next = serial.next();
        let page_bytes = self.sizes.unit * self.sector_bytes;
        let info = info.encode();
        let own = image.iter().map(|(name, bytes)| (*name, bytes.as_slice()));
        let sections: Vec<(SectionName, &[u8])> = [(INFO, &info[..])].into_iter().chain(own).collect();
        self.checkpoint.writer = Some(CheckpointWriter::new(self.instance, serial, page_bytes, &sections));
        self.checkpoint.start = start;
        assert!(self.checkpoint.current.is_none_or(|kept| kept.start <= start), "replay would begin earlier");
        if self.has_canary(Canary::TruncatedTooEarly) && !self.is_mounting {
            self.cut_log(start);
        }
    }

    fn write_checkpoint_page(&mut self, buffers: &mut Buffers) -> bool {
        let is_again = self.checkpoint.io.has_again();
        let is_fresh = self.checkpoint.writer.as_ref().is_some_and(CheckpointWriter::has_page);
        if !is_again && (!is_fresh || self.checkpoint.io.spare().is_none()) {
            return false;
        }
        let sectors = self.checkpoint.io.sectors();
        let Self { points, space, .. } = self;
        let next = points.checkpoint.next(sectors, |units| space.open(units, Claim::Checkpoint));
        let Some(at) = next else { return false };
        let fresh = (!is_again).then(|| {
            let buffer = self.checkpoint.io.spare().expect("it was looked at");
            let writer = self.checkpoint.writer.as_mut().expect("it was looked at");
            let index = writer.take_page(buffers.whole_mut(buffer, 0, sectors)).expect("a page is due");
            let serial = writer.serial();
            tag_page(Kind::Map, (u64::from(index.0), serial.0), buffer, sectors, buffers);
            index
        });
        let written = if is_again { &mut self.stats.rewritten } else { &mut self.stats.checkpoint_written };
        *written += u64::from(sectors);
        self.stats.programmed += u64::from(sectors);
        let (page, buffer) = self.checkpoint.io.issue(fresh, at);
        let addresses = self.run_at(at, sectors);
        self.flight.send(
            Purpose::CheckpointPage { page },
            Op::Write { fua: true },
            addresses,
            Some(buffer),
            0,
        );
        true
    }

    /// A write of a page ended.
    pub(crate) fn checkpoint_page_done(&mut self, page: SlabKey, completion: &Completion) {
        let status = completion.status;
        let (index, at) = self.checkpoint.io.ended(page, status.is_success());
        if status.is_drive_failure() {
            self.stop(status);
        }
        if let Some(writer) = self.checkpoint.writer.as_mut().filter(|_| status.is_success()) {
            writer.on_written(index);
            let (serial, is_complete) = (writer.serial(), writer.is_complete());
            self.space.has_page(at.chunk, serial.0);
            if is_complete {
                self.checkpoint.writer = None;
                self.checkpoint_complete(serial);
            }
        }
        let mut events = Vec::new();
        self.points.checkpoint.landed(at, Self::landing(status, ()), &mut events);
        self.close_chunks(&events);
    }

    fn checkpoint_complete(&mut self, serial: Serial) {
        assert!(
            self.checkpoint.current.is_none_or(|kept| kept.serial < serial),
            "checkpoint {} goes back",
            serial.0
        );
        self.stats.checkpoints += 1;
        let start = self.checkpoint.start;
        self.checkpoint.previous = self.checkpoint.current.replace(Kept { serial, start });
        let oldest = self.checkpoint.previous.map_or(start, |kept| kept.start);
        self.cut_log(oldest);
        self.work_due = true;
    }

    /// Pages of the log before `oldest` are not needed any more.
    fn cut_log(&mut self, oldest: Lsn) {
        let oldest = oldest.min(self.log.durable());
        if oldest > self.log.tail() {
            self.log.truncate(oldest);
        }
        for chunk in self.space.closed_pages() {
            self.look_at(chunk);
        }
    }

    /// A checkpoint under way is given up: the drive failed.
    pub(crate) fn abandon_checkpoint(&mut self) {
        self.checkpoint.writer = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_instance_comes_back() {
        let info = Info {
            chunk: 1,
            units: 2,
            lines: 3,
            blocks: 1 << 40,
            generation: 5,
            start: Lsn(6),
            applied: 7,
            sequence: 8,
        };
        let mut bytes = info.encode();
        assert_eq!(Info::decode(&bytes), Ok(info));
        assert!(Info::decode(&bytes[1..]).is_err_and(|error| error.contains("64 bytes")));
        bytes[0] = 9;
        assert!(Info::decode(&bytes).is_err_and(|error| error.contains("newer program")));
    }
}
