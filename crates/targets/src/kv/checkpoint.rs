//! Checkpoints: the index, the pieces of long values, and where replay begins, written beside everything else.
//!
//! The image is made at once. It names places of units that are not on media yet, so its commit page waits until they are; if
//! one of them has to be written elsewhere, the checkpoint is given up and begun again. Replay takes records with a later
//! sequence, from units with a number from the start on. Deliberately not here: pages (`ocssd_ftl::checkpoint`), reading
//! them (`mount`).

use super::buffer_units::Stream;
use super::canary::Canary;
use super::change::Taking;
use super::flight::Purpose;
use super::long_values::LongValues;
use super::record::UnitNumber;
use super::sizes::{INFO_BYTES, Promised};
use super::space::{Claim, Needed};
use super::state::Kv;
use crate::journal::{PageIo, decode_info, encode_info, outcome};
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::checkpoint::{CheckpointWriter, PageIndex, SectionName, Serial};
use ocssd_ftl::{AppendEvent, ChunkIndex};
use ocssd_lightnvm::{Buffers, Completion, Op};

/// The section about the instance.
pub(super) const INFO: SectionName = *b"instance";
/// The section of keys.
pub(super) const KEYS: SectionName = *b"keys    ";
/// The section of long values.
pub(super) const LONG: SectionName = *b"long    ";
/// The section of pages of the index that lie on media.
pub(super) const PAGES: SectionName = *b"pages   ";
/// The section of what lives: bytes of users, bytes they take, live bytes of each chunk, and long values that no key holds.
pub(super) const LIVE: SectionName = *b"live    ";
/// The section of how often chunks were reset, of an instance that levels wear.
pub(super) const WEAR: SectionName = *b"wear    ";
/// The layout of the section about the instance; raised when an older reader would misread it.
const VERSION: u32 = 1;

/// What a checkpoint says of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Info {
    pub chunk: u32,
    pub units: u32,
    pub lines: u32,
    /// The unit that replay begins with.
    pub start: UnitNumber,
    /// The last sequence that the image has.
    pub sequence: u64,
    pub promised: Promised,
}

impl Info {
    pub fn encode(&self) -> [u8; INFO_BYTES] {
        let Promised { capacity_bytes, value_bytes_max, index_bytes_max, live_bytes_max } = self.promised;
        let value = u64::from(value_bytes_max);
        let large = [self.start.0, self.sequence, capacity_bytes, value, index_bytes_max, live_bytes_max];
        encode_info(VERSION, [self.chunk, self.units, self.lines], large)
    }

    /// # Errors
    /// A sentence, if the bytes are of another layout.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let ([chunk, units, lines], large) =
            decode_info::<INFO_BYTES, 3, 6>(bytes, VERSION, "a key-value instance")?;
        let [start, sequence, capacity_bytes, value, index_bytes_max, live_bytes_max] = large;
        let value_bytes_max = u32::try_from(value).map_err(|_| "values are longer than can be")?;
        let promised = Promised { capacity_bytes, value_bytes_max, index_bytes_max, live_bytes_max };
        Ok(Self { chunk, units, lines, start: UnitNumber(start), sequence, promised })
    }
}

/// A checkpoint that is being written.
#[derive(Clone, Debug)]
struct Writing {
    writer: CheckpointWriter,
    /// Pages given out.
    given: u32,
    /// What recovery needs once it is whole.
    needed: Needed,
    /// The last sequence that the image has.
    sequence: u64,
}

/// How checkpoints stand.
#[derive(Clone, Debug)]
pub(super) struct CheckpointState {
    io: PageIo<(Serial, PageIndex)>,
    /// The number of the next.
    next: Serial,
    writing: Option<Writing>,
    /// One of this mount is whole, or one that it found says all there was; the last sequence it has.
    covered: Option<u64>,
    /// One was given up: another must follow.
    is_due_again: bool,
}

impl CheckpointState {
    /// None is written; one that has everything up to the sequence `covered` was found, if there is one.
    pub const fn new(io: PageIo<(Serial, PageIndex)>, next: Serial, covered: Option<u64>) -> Self {
        Self { io, next, writing: None, covered, is_due_again: false }
    }

    pub const fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// One must follow, for somebody waits for it.
    pub const fn is_asked_for(&mut self) {
        self.is_due_again = true;
    }

    /// The last sequence of the newest that is whole: of this mount, or found by it with nothing behind.
    pub const fn covered(&self) -> Option<u64> {
        self.covered
    }
}

impl Kv {
    /// Begins a checkpoint if one is due, and gives out its pages. True if anything was done.
    pub(super) fn write_checkpoint(&mut self, buffers: &mut Buffers) -> bool {
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
        if self.is_mounting {
            return self.checkpoint.covered.is_none();
        }
        let is_for_space = self.is_short() && {
            let waiting = self.space.waits_for_checkpoint() + self.chunks_of_dying();
            waiting > 0 && (2 * waiting >= usize_of(self.sizes.gc_start) || self.space.spare() == 0)
        };
        self.written >= self.sizes.interval_bytes
            || self.checkpoint.is_due_again
            || is_for_space
            || self.is_last_checkpoint_due()
    }

    /// Chunks in which nothing lives but pages of the index that the next checkpoint does not name.
    fn chunks_of_dying(&self) -> usize {
        self.pages.dying().filter(|&(chunk, bytes)| self.space.live(chunk) == bytes).count()
    }

    pub(super) fn begin_checkpoint(&mut self) {
        assert!(!self.checkpoint.is_writing(), "a checkpoint is begun while another is written");
        for &stream in self.streams_named() {
            self.buffer_units.close(stream);
        }
        let start = UnitNumber(self.number.0 + 1);
        let info = Info {
            chunk: self.sizes.chunk,
            units: self.space.shape.units(),
            lines: self.space.shape.lines(),
            start,
            sequence: self.sequence,
            promised: self.sizes.promised,
        };
        let serial = self.checkpoint.next;
        self.checkpoint.next = serial.next();
        self.pages_imaged();
        let (keys, pages) = self.index.encode();
        let live = self.live();
        let long =
            if self.has_canary(Canary::StageForgotten) { self.long_of_keys() } else { self.long.encode() };
        let info = info.encode();
        let wear = self.wear.encode();
        let mut sections = vec![
            (INFO, &info[..]),
            (KEYS, keys.as_slice()),
            (PAGES, pages.as_slice()),
            (LONG, long.as_slice()),
            (LIVE, live.as_slice()),
        ];
        if self.wear.bound().is_some() {
            sections.push((WEAR, wear.as_slice()));
        }
        let writer = CheckpointWriter::new(self.instance, serial, self.sizes.unit_bytes, &sections);
        let needed = Needed { start, serial: serial.0 };
        let sequence = self.sequence;
        self.checkpoint.writing = Some(Writing { writer, given: 0, needed, sequence });
        self.checkpoint.is_due_again = false;
        self.written = 0;
    }

    /// Streams of which a checkpoint names records, which must be on media when it is committed.
    fn streams_named(&self) -> &'static [Stream] {
        if self.has_canary(Canary::CheckpointBeforePages) { &Stream::ALL[..3] } else { &Stream::ALL }
    }

    /// What lives, as a checkpoint has it: without pages of the index that it does not name.
    fn live(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.user_bytes.to_le_bytes());
        out.extend_from_slice(&self.kept_bytes.to_le_bytes());
        for chunk in (0..self.space.shape.chunks()).map(ChunkIndex) {
            let (live, dying) = (self.space.live(chunk), self.pages.dying_in(chunk));
            assert!(dying <= live, "chunk {} has {live} live bytes, and {dying} of them die", chunk.0);
            out.extend_from_slice(&(live - dying).to_le_bytes());
        }
        let staged = self.stages.values().map(|stage| stage.writer.value());
        let taken = self.taking.iter().flat_map(Taking::long_values);
        let unheld = staged.chain(taken).filter(|&value| value > 0);
        unheld.for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        out
    }

    /// Long values that keys hold, as a checkpoint has them: those of stages are missing.
    fn long_of_keys(&self) -> Vec<u8> {
        let mut long: LongValues = self.long.clone();
        let staged: Vec<u64> = self.stages.values().map(|stage| stage.writer.value()).collect();
        long.retain(|value| !staged.contains(&value));
        long.encode()
    }

    /// A unit whose first record has this sequence is written elsewhere: a checkpoint under way may name its old place.
    pub(super) fn checkpoint_is_stale(&mut self, first_sequence: u64) {
        if self.checkpoint.writing.as_ref().is_some_and(|writing| first_sequence <= writing.sequence) {
            self.checkpoint.writing = None;
            self.checkpoint.is_due_again = true;
            self.stats.checkpoints_given_up += 1;
        }
    }

    /// The drive failed: a checkpoint under way is given up.
    pub(super) fn abandon_checkpoint(&mut self) {
        self.checkpoint.writing = None;
    }

    fn write_checkpoint_page(&mut self, buffers: &mut Buffers) -> bool {
        let is_again = self.checkpoint.io.has_again();
        let durable = self.buffer_units.durable_before(self.streams_named(), self.sequence + 1);
        let is_fresh = self.checkpoint.writing.as_ref().is_some_and(|writing| {
            let is_commit = writing.given + 1 == writing.writer.pages();
            writing.writer.has_page() && (!is_commit || durable > writing.sequence)
        });
        if !is_again && (!is_fresh || self.checkpoint.io.spare().is_none()) {
            return false;
        }
        let sectors = self.checkpoint.io.sectors();
        let Self { points, space, .. } = self;
        let next = points.checkpoint.next(sectors, |units| space.open(units, Claim::Checkpoint));
        let Some(at) = next else { return false };
        let fresh = (!is_again).then(|| {
            let buffer = self.checkpoint.io.spare().expect("it was looked at");
            let writing = self.checkpoint.writing.as_mut().expect("it was looked at");
            writing.given += 1;
            assert!(writing.given <= writing.writer.pages(), "{} pages were given out", writing.given);
            let index =
                writing.writer.take_page(buffers.whole_mut(buffer, 0, sectors)).expect("a page is due");
            (writing.writer.serial(), index)
        });
        self.stats.checkpoint_bytes += u64::from(self.sizes.unit_bytes);
        let (page, buffer) = self.checkpoint.io.issue(fresh, at);
        let addresses = self.run_at(at, sectors);
        let write = Op::Write { fua: true };
        self.flight.send(Purpose::CheckpointPage { page }, write, addresses, Some(buffer), 0);
        true
    }

    /// A write of a page ended.
    pub(super) fn checkpoint_page_done(&mut self, page: SlabKey, completion: &Completion) {
        let status = completion.status;
        let ((serial, index), at) = self.checkpoint.io.ended(page, status.is_success());
        if status.is_drive_failure() {
            self.stop(status);
        }
        if status.is_success() {
            self.space.has_number(at.chunk, serial.0);
            let writing = self.checkpoint.writing.as_mut();
            if let Some(writing) = writing.filter(|writing| writing.writer.serial() == serial) {
                writing.writer.on_written(index);
                if writing.writer.is_complete() {
                    self.checkpoint_complete();
                }
            }
        }
        let mut events = Vec::new();
        self.points.checkpoint.programmed(at, outcome(status, ()), &mut events);
        for event in events {
            if let AppendEvent::Closed(chunk) = event {
                self.space.close(chunk, 0);
            }
        }
    }

    fn checkpoint_complete(&mut self) {
        let Writing { needed, sequence, .. } = self.checkpoint.writing.take().expect("it was being written");
        assert!(sequence <= self.sequence, "a checkpoint has record {sequence} of {}", self.sequence);
        assert!(needed.start <= UnitNumber(self.number.0 + 1), "replay begins beyond the last unit");
        assert!(self.checkpoint.covered.is_none_or(|before| before <= sequence), "checkpoints go back");
        self.stats.checkpoints += 1;
        self.checkpoint.covered = Some(sequence);
        self.space.set_needed(needed);
        self.pages_covered();
        self.work_due = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_instance_comes_back() {
        let promised =
            Promised { capacity_bytes: 1 << 40, value_bytes_max: 7, index_bytes_max: 8, live_bytes_max: 9 };
        let info = Info { chunk: 1, units: 2, lines: 3, start: UnitNumber(5), sequence: 6, promised };
        let mut bytes = info.encode();
        assert_eq!(Info::decode(&bytes), Ok(info));
        assert!(Info::decode(&bytes[1..]).is_err_and(|error| error.contains("96 bytes")));
        bytes[0] = 9;
        assert!(Info::decode(&bytes).is_err_and(|error| error.contains("newer program")));
    }
}
