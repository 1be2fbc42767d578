//! One parallel unit: two queues (reads; programs and erases), an array, and page registers.

use super::part::{PartId, Parts};
use super::queue::Queue;
use super::sense::Held;
use ocssd_base::Nanos;

/// An erase or a program that was interrupted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspended {
    pub(super) id: PartId,
    pub(super) remaining: Nanos,
}

/// The state of a unit. In cache lines of its own: units are looked at in random order.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub(super) struct Unit {
    /// Its channel.
    pub(super) group: u32,
    pub(super) reads: Queue,
    pub(super) changes: Queue,
    sequence: u64,
    /// The part the array works on, since when, and until when.
    pub(super) array: Option<PartId>,
    pub(super) array_since: Nanos,
    pub(super) array_until: Nanos,
    pub(super) generation: u32,
    /// The array is not free before this: an operation is being suspended.
    pub(super) ready_at: Nanos,
    pub(super) suspended: Option<Suspended>,
    pub(super) suspends: u32,
    pub(super) bypasses: u32,
    /// A program's data is on its way into a register.
    pub(super) loading: bool,
    pub(super) registers_used: u32,
    /// A read has all registers: nothing else begins before its data has left.
    pub(super) exclusive: bool,
    /// What the page registers still hold.
    pub(super) held: Option<Held>,
    pub(super) busy: Nanos,
}

impl Unit {
    /// An idle unit on the channel of `group`.
    pub(super) fn new(group: u32) -> Self {
        Self { group, ..Self::default() }
    }

    pub(super) fn push(&mut self, parts: &mut Parts, id: PartId, is_read: bool) {
        parts.get_mut(id).sequence = self.sequence;
        self.sequence += 1;
        let queue = if is_read { &mut self.reads } else { &mut self.changes };
        queue.push(parts, id);
    }

    /// Nothing is in it, waits for it, or leaves it.
    pub(super) const fn is_idle(&self) -> bool {
        self.array.is_none() && self.registers_used == 0 && !self.has_work()
    }

    /// Something waits, and nothing has the unit for itself.
    pub(super) const fn can_begin(&self) -> bool {
        !self.exclusive && self.has_work()
    }

    /// Something waits for the array or a register.
    pub(super) const fn has_work(&self) -> bool {
        !self.reads.is_empty() || !self.changes.is_empty() || self.suspended.is_some()
    }

    /// Asserts that what the unit says of itself can be true.
    pub(super) fn check(&self, registers: u32) {
        assert!(self.registers_used <= registers, "more registers are used than there are");
        assert!(
            !self.exclusive || self.registers_used == registers,
            "a read has the unit, but not all of it"
        );
        assert!(!self.loading || self.registers_used > 0, "a program is loading without a register");
        assert!(
            self.array.is_none() || self.array_until >= self.array_since,
            "an operation ends before it began"
        );
        self.reads.check();
        self.changes.check();
        assert!(self.suspended.is_none() || self.suspends > 0, "an operation is suspended that never was");
    }

    /// Nothing is in progress any more; what was counted stays.
    pub(super) fn power_off(&mut self) {
        let generation = self.generation.wrapping_add(1);
        *self = Self { group: self.group, busy: self.busy, generation, ..Self::default() };
    }
}
