//! Which procedures are due: only those that an event may have unblocked are asked to go on.
//!
//! Three procedures can have work for a long time and be unable to do it: garbage collection, the admission of writes and the
//! writer. Each has a bit, set by whatever may let it go on, and taken when it is asked. The others know from their own state
//! whether there is anything for them: reads that wait, flushes and empty lines, lines to be reset, a checkpoint, a shutdown,
//! padding behind what is read. They go on in the order of [`Pblk::run_due`], until none does anything; a bit that one sets for a
//! later one counts in the same round.
//!
//! Nearly every event is rare, or ends a command, and sets all bits. Two are neither: a write that comes lets nothing go on but
//! admission, and the end of a user's read nothing but what waits for a place of a command. Deliberately not here: what each
//! procedure does, and when all of them are called (`Pblk::work_due`).

use super::Pblk;
use ocssd_base::Nanos;
use ocssd_lightnvm::Buffers;
use std::ops::BitOr;

/// A set of procedures that have bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due(u8);

impl Due {
    /// Garbage collection: `gc`.
    pub(super) const GC: Self = Self(1);
    /// The admission of writes and discards: `write`.
    pub(super) const ADMISSION: Self = Self(1 << 1);
    /// The writer: `writer` and `tails`.
    pub(super) const WRITER: Self = Self(1 << 2);
    pub(super) const ALL: Self = Self(Self::GC.0 | Self::ADMISSION.0 | Self::WRITER.0);
    /// After the writer: what it sent is counted where garbage collection is paced, and whether a line was had says what writes
    /// wait for. Itself it went on as far as it could.
    const AFTER_WRITER: Self = Self(Self::GC.0 | Self::ADMISSION.0);

    /// These are due, too.
    pub(super) const fn add(&mut self, more: Self) {
        self.0 |= more.0;
    }

    /// True if one of these is due.
    pub(super) const fn has(self, some: Self) -> bool {
        self.0 & some.0 != 0
    }

    /// True if this one was due; it is not any more.
    pub(super) const fn take(&mut self, one: Self) -> bool {
        let was_due = self.has(one);
        self.0 &= !one.0;
        was_due
    }
}

impl BitOr for Due {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Pblk {
    /// Something happened that may let these go on: they are called soon.
    pub(super) const fn call(&mut self, due: Due) {
        self.due.add(due);
        self.work_due = true;
    }

    /// What has work goes on, each once. True if anything was done.
    #[inline]
    pub(super) fn run_due(&mut self, now: Nanos, buffers: &mut Buffers) -> bool {
        let mut any = false;
        if self.due.take(Due::GC) && self.collect(now, buffers) {
            any = self.went_on(Due::ALL);
        }
        if self.due.take(Due::ADMISSION) && self.admit(buffers) {
            any = self.went_on(Due::ALL);
        }
        if self.has_to_flush() {
            // Users may take more lines where fewer wait for a record.
            self.due.add(Due::WRITER);
            if self.flush() {
                any = self.went_on(Due::ALL);
            }
        }
        if self.has_to_reset() && self.reset(buffers) {
            any = self.went_on(Due::ALL);
        }
        if self.checkpoint(buffers) | self.shut_down() | self.pad_for_reads() {
            any = self.went_on(Due::ALL);
        }
        if self.due.take(Due::WRITER) && self.write_out(buffers) {
            any = self.went_on(Due::AFTER_WRITER);
        }
        assert!(self.work_due || !self.due.has(Due::WRITER) || any, "a writer that is due is not called");
        any
    }

    /// A procedure did something, so that these may go on.
    const fn went_on(&mut self, due: Due) -> bool {
        self.due.add(due);
        true
    }

    /// A user's read ended, in flight until now: what waited for a place may go on.
    #[inline(always)]
    pub(super) fn read_left(&mut self) {
        // With room for two before it ended nobody waited for it.
        if self.flight.len() == 0 || !self.flight.has_room(2) {
            self.due.add(Due::ALL);
        }
    }

    /// A write or discard came.
    pub(super) fn write_came(&mut self) {
        // What waits to be written together waits no longer once somebody else waits for the buffer.
        let spells = self.options.destage_percent > 0;
        self.call(if spells { Due::ADMISSION | Due::WRITER } else { Due::ADMISSION });
    }
}
