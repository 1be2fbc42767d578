//! What becomes of a write: its sectors are the newest durable versions from now on, or it goes out again elsewhere.
//!
//! The version before stays valid until then, so that a power cut leaves a block old or new and never empty; pblk let go
//! of it when the new one entered the ring. Deliberately not here: which command ended.

use super::Pblk;
use super::canary::Canary;
use ocssd_ftl::{
    BufferUnitId, Committed, Kind, LineContent, LineId, LineState, PhysicalAddress, Slot, Write,
};
use ocssd_lightnvm::{BufId, Buffers, Completion, Status};

/// Neighbouring places that are no longer valid, and were not let go of yet.
struct Gone {
    first: PhysicalAddress,
    count: u64,
}

impl Pblk {
    /// A write of data ended.
    pub(super) fn buffer_unit_done(
        &mut self,
        buffer_unit: BufferUnitId,
        (line, write): (LineId, Write),
        completion: &Completion,
        buffers: &Buffers,
    ) {
        let sectors = self.write_buffer.sectors(buffer_unit);
        let is_sound = completion.status.is_success() && !self.is_headless(line, write);
        if is_sound || self.has_canary(Canary::FailedWriteCommits) {
            self.write_buffer.written(buffer_unit);
            self.commit_mapping(buffer_unit, buffers);
            self.limiter_written(buffer_unit);
            self.programmed(line, write, sectors, Some(buffer_unit), None);
        } else {
            self.note_failure(completion.status);
            if !completion.status.is_success() && self.has_canary(Canary::ReadOnlyAtFailedWrite) {
                self.end_changes();
            }
            self.write_buffer.failed(buffer_unit);
            let stream = self.write_buffer.stream(buffer_unit);
            self.streams[stream.index()].ready.push_front(buffer_unit);
            let failure = (!completion.status.is_success()).then_some(completion.status);
            self.programmed(line, write, sectors, None, failure);
        }
    }

    /// Counts a write that failed. If that is no chunk's fault, nothing is written any more.
    fn note_failure(&mut self, status: Status) {
        self.stats.write_failed += u64::from(!status.is_success());
        if self.is_of_drive(status) {
            self.stop(status);
        }
    }

    fn is_of_drive(&self, status: Status) -> bool {
        status.is_drive_failure() && !self.has_canary(Canary::DriveErrorIsEarlyClose)
    }

    /// True if a write was programmed in a chunk whose head the media lost: it goes out again, behind another head.
    fn is_headless(&self, line: LineId, write: Write) -> bool {
        let open = self.open[line.index()].as_ref().expect("a write went to an open line");
        assert_eq!(open.line(), line, "a write was programmed in another line than it went to");
        write.piece == LineContent::Data && open.is_headless(write.unit)
    }

    /// A write of the target's own ended. A lost tail is no harm: recovery reads what has none. What followed a lost head
    /// goes out again.
    pub(super) fn meta_done(
        &mut self,
        buffer: BufId,
        (line, write): (LineId, Write),
        pieces: (u32, u32),
        completion: &Completion,
    ) {
        let sectors = self.meta_sectors(write);
        assert!(pieces.1 <= sectors, "a unit of {sectors} sectors carried {} pieces", pieces.1);
        let failure = (!completion.status.is_success()).then_some(completion.status);
        let is_lost = failure.is_some() || self.is_headless(line, write);
        self.note_failure(completion.status);
        let goes_again = pieces.1 > 0 && is_lost && self.stopped().is_none();
        if pieces.1 > 0 {
            if goes_again {
                self.checkpoints.lost(pieces, buffer);
            } else if !is_lost {
                self.checkpoints.piece_done(pieces.1);
            }
        }
        if !goes_again {
            let spare = match write.piece {
                LineContent::Padding | LineContent::Tail => &mut self.tails,
                _ if self.is_whole_buffer(buffer) => &mut self.whole,
                LineContent::Head | LineContent::Data => &mut self.plain,
            };
            spare.push(buffer);
        }
        self.programmed(line, write, sectors, None, failure);
    }

    /// Tells the open line, and closes it if that was its last write.
    fn programmed(
        &mut self,
        line: LineId,
        write: Write,
        sectors: u32,
        buffer_unit: Option<BufferUnitId>,
        failure: Option<Status>,
    ) {
        let is_of_drive = failure.is_some_and(|status| self.is_of_drive(status));
        let Self { open, write_buffer, .. } = self;
        let entry = open[line.index()].as_mut().expect("a write went to an open line");
        match failure {
            Some(_) if is_of_drive => entry.refused(write),
            None => {
                let was_headless = entry.is_headless(write.unit);
                entry.acknowledged(write, sectors, buffer_unit, |buffer_unit| {
                    write_buffer.readable(buffer_unit)
                });
                if write.piece == LineContent::Head && was_headless {
                    self.lines.head_written(line);
                }
            }
            Some(status) => {
                let closed = status != Status::WRITE_NEXT_UNIT;
                entry.failed(write, sectors, closed, |buffer_unit| write_buffer.readable(buffer_unit));
            }
        }
        if entry.next_tail().is_some() && !self.tails_due.contains(&line) {
            self.tails_due.push_back(line);
        }
        if self.open[line.index()].as_ref().is_some_and(|open| open.is_finished()) {
            self.close_line(line);
        }
    }

    fn close_line(&mut self, line: LineId) {
        assert_eq!(self.lines.get(line).state, LineState::Open, "line {} is closed twice", line.0);
        assert!(self.open[line.index()].is_some(), "line {} is closed but not open", line.0);
        self.open[line.index()] = None;
        self.lines.close(line);
        self.wear.look(&self.lines);
        self.tails_due.retain(|&due| due != line);
        for stream in &mut self.streams {
            if stream.line == Some(line) {
                stream.line = None;
            }
        }
        self.reclaimer.suspect(line);
        self.told.is_stale = true;
    }

    /// The sectors of a buffer unit are on media: they take the place of the versions before them.
    fn commit_mapping(&mut self, buffer_unit: BufferUnitId, buffers: &Buffers) {
        let first = self.write_buffer.first_slot(buffer_unit).0;
        let start = self.write_buffer.place(buffer_unit);
        assert!(
            self.write_buffer.durable_place(self.write_buffer.first_slot(buffer_unit)).is_some(),
            "a buffer unit is settled before it was programmed"
        );
        let copies = self.write_buffer.copies(buffer_unit);
        if copies != 0 {
            self.commit_copies(buffer_unit, buffers);
        }
        if copies.count_ones() == self.write_buffer.filled(buffer_unit) {
            return;
        }
        let Self { write_buffer, valid, .. } = self;
        valid.fetch(write_buffer.live(buffer_unit).filter_map(|(_, entry)| entry.previous));
        // Neighbours become valid together, and what was moved died where its neighbours did.
        let mut run = 0;
        let mut gone = Gone { first: PhysicalAddress(0), count: 0 };
        let filled = self.write_buffer.filled(buffer_unit);
        for offset in 0..filled {
            let slot = Slot(first + offset);
            let place = PhysicalAddress(start.0 + u64::from(offset));
            let joins = match self.write_buffer.entry(slot).tag.kind {
                _ if copies >> offset & 1 == 1 => false,
                Kind::Data | Kind::Lost => self.commit_block(slot, place, &mut gone),
                Kind::Discard => self.commit_discard(slot, place),
                Kind::Pad => false,
                other => unreachable!("the buffer holds blocks, and not {other:?}"),
            };
            if joins {
                run += 1;
            } else {
                self.validate(place, std::mem::take(&mut run));
            }
        }
        self.validate(PhysicalAddress(start.0 + u64::from(filled)), run);
        self.let_go(&mut gone, None);
    }

    /// Adds `place` to the run of places that are no longer valid; what it does not join is let go of. `None` ends the last.
    fn let_go(&mut self, gone: &mut Gone, place: Option<PhysicalAddress>) {
        if let Some(place) = place
            && gone.count > 0
            && place.0 == gone.first.0 + gone.count
            && self.shape.is_same_line(gone.first, place)
        {
            gone.count += 1;
            return;
        }
        if gone.count > 0 {
            self.invalidate_run(gone.first, gone.count);
        }
        *gone = Gone { first: place.unwrap_or(PhysicalAddress(0)), count: u64::from(place.is_some()) };
    }

    /// The `run` places before `end` hold the newest durable versions of something.
    fn validate(&mut self, end: PhysicalAddress, run: u64) {
        if run > 0 {
            self.valid.set_run(PhysicalAddress(end.0 - run), run);
        }
    }

    /// A block is durable at `place`. True if that is its newest version, whose place is valid from now on; what is only
    /// the version before the newest was seen to.
    fn commit_block(&mut self, slot: Slot, place: PhysicalAddress, gone: &mut Gone) -> bool {
        assert!(place.0 < self.shape.places(), "a block was programmed beyond the instance");
        match self.versions().commit(slot, place) {
            Committed::Newest { gone: None } => true,
            Committed::Newest { gone: Some(previous) } => {
                self.let_go(gone, Some(previous));
                true
            }
            Committed::Superseded { gone: older } => {
                self.valid.set(place);
                if let Some(older) = older {
                    self.invalidate(older);
                }
                false
            }
            Committed::Dead => false,
        }
    }

    /// A discard's record is durable at `place`. True if it is valid there from now on.
    fn commit_discard(&mut self, slot: Slot, place: PhysicalAddress) -> bool {
        let previous = self.write_buffer.entry_mut(slot).previous.take();
        // A record a checkpoint covered meanwhile was let go of where it was; one that was moved twice is where it was first.
        let is_needed =
            self.discards.commit_mapping(self.write_buffer.entry(slot).tag.sequence, place, previous);
        if is_needed && let Some(previous) = previous {
            self.invalidate(previous);
        }
        is_needed
    }
}
