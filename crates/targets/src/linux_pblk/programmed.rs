//! What becomes of a write: its sectors are the newest durable versions from now on, or it goes out again elsewhere.
//!
//! The version before stays valid until then, so that a power cut leaves a block old or new and never empty. Recovery takes
//! the last place that names a block, so what goes out again must not bring back what was overwritten meanwhile: that becomes
//! padding, and who waits for it waits for the newer version. Deliberately not here: which command ended.

use super::flight::Carried;
use super::open_line::{LineContent, UnitWrite};
use super::state::{LineEnd, LinuxPblk};
use ocssd_ftl::{BufferUnitId, Committed, Entry, Kind, PhysicalAddress, Slot};
use ocssd_lightnvm::{Completion, Status};

impl LinuxPblk {
    /// A write to the open line ended.
    pub(super) fn write_done(&mut self, write: UnitWrite, carried: Carried, completion: &Completion) {
        let is_sound = completion.status.is_success();
        let buffer_unit = match carried {
            Carried::Own(buffer) => {
                self.own.push(buffer);
                None
            }
            Carried::BufferUnit(buffer_unit) if is_sound => {
                self.write_buffer.written(buffer_unit);
                self.commit_mapping(buffer_unit);
                Some(buffer_unit)
            }
            Carried::BufferUnit(buffer_unit) => {
                self.retry(buffer_unit);
                None
            }
        };
        let Self { open, write_buffer, .. } = self;
        let line = open.as_mut().expect("a write went to the open line");
        if is_sound {
            line.acknowledged(write, buffer_unit, |buffer_unit| write_buffer.readable(buffer_unit));
            if write.piece == LineContent::Smeta {
                self.lines.head_written(line.line());
            }
        } else if completion.status.is_drive_failure() {
            self.stats.write_failed += 1;
            line.refused(write);
        } else {
            self.stats.write_failed += 1;
            let is_closed = completion.status != Status::WRITE_NEXT_UNIT;
            line.failed(write, is_closed, |buffer_unit| write_buffer.readable(buffer_unit));
        }
        if line.is_finished() {
            self.close_line();
        }
    }

    fn close_line(&mut self) {
        let open = self.open.take().expect("a line is open");
        self.lines.close(open.line());
        self.end = LineEnd::Ahead;
        // Linux finds its blocks, but may not find where they are: they go elsewhere before the next shutdown.
        if open.is_damaged() {
            self.condemned.insert(open.line());
        }
        self.reclaimer.suspect(open.line());
    }

    /// A buffer unit waits for another unit. What was overwritten meanwhile may be on media already.
    fn retry(&mut self, buffer_unit: BufferUnitId) {
        self.write_buffer.failed(buffer_unit);
        let first = self.write_buffer.first_slot(buffer_unit).0;
        for slot in (first..first + self.write_buffer.filled(buffer_unit)).map(Slot) {
            let entry = self.write_buffer.entry_mut(slot);
            if entry.is_newest || entry.tag.kind == Kind::Pad {
                continue;
            }
            assert!(entry.previous.is_none(), "a superseded sector still holds an older version");
            *entry = Entry::PAD;
            self.flushes.raise(self.sequence);
        }
        self.ready.push_front(buffer_unit);
    }

    /// The sectors of a buffer unit are on media: they take the place of the versions before them.
    fn commit_mapping(&mut self, buffer_unit: BufferUnitId) {
        let first = self.write_buffer.first_slot(buffer_unit).0;
        let start = self.write_buffer.place(buffer_unit);
        assert!(start.0 < self.shape.places(), "a buffer unit was programmed beyond the instance");
        for offset in 0..self.write_buffer.filled(buffer_unit) {
            let slot = Slot(first + offset);
            if self.write_buffer.entry(slot).tag.kind == Kind::Data {
                self.commit_block(slot, PhysicalAddress(start.0 + u64::from(offset)));
            }
        }
    }

    fn commit_block(&mut self, slot: Slot, place: PhysicalAddress) {
        let older = match self.versions().commit(slot, place) {
            Committed::Newest { gone } | Committed::Superseded { gone } => gone,
            Committed::Dead => return,
        };
        self.valid.set(place);
        if let Some(older) = older {
            self.invalidate(older);
        }
    }

    /// A place no longer holds the newest durable version of anything.
    fn invalidate(&mut self, place: PhysicalAddress) {
        let line = self.valid.clear(place, self.sequence.0);
        if self.valid.count(line) == 0 {
            self.reclaimer.suspect(line);
        }
    }
}
