//! Who may read and write a database: the five locks of SQLite's rollback mode, and the eight of its write-ahead log, among the
//! connections of this process. Another process cannot have the drive.
//!
//! Deliberately not here: waiting; SQLite's busy handler asks again.

use libsqlite3_sys::{SQLITE_LOCK_EXCLUSIVE, SQLITE_LOCK_PENDING, SQLITE_LOCK_RESERVED, SQLITE_LOCK_SHARED};

/// Slots of the write-ahead log (`SQLITE_SHM_NLOCK`).
const SLOTS: usize = 8;

/// A connection's handle of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder(pub u64);

/// The locks of one file.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    /// Who reads.
    shared: u32,
    /// Who will write, or does, and the lock it has.
    writer: Option<(Holder, i32)>,
    /// By slot: readers, or the one that has it alone.
    slots: [Slot; SLOTS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    shared: u32,
    exclusive: Option<Holder>,
}

impl Locks {
    /// Raises a holder's lock from `has` to `wanted`. Returns the lock it has then: less than `wanted` if others are in the way.
    pub fn raise(&mut self, holder: Holder, has: i32, wanted: i32) -> i32 {
        let others = self.writer.filter(|(writer, _)| *writer != holder);
        if wanted <= has {
            return has;
        }
        if wanted == SQLITE_LOCK_SHARED {
            if others.is_some_and(|(_, lock)| lock >= SQLITE_LOCK_PENDING) {
                return has;
            }
            self.shared += 1;
            return SQLITE_LOCK_SHARED;
        }
        assert!(has >= SQLITE_LOCK_SHARED, "a connection writes without reading");
        if others.is_some() {
            return has;
        }
        let got = match wanted {
            SQLITE_LOCK_EXCLUSIVE if self.shared > 1 => SQLITE_LOCK_PENDING,
            other => other,
        };
        self.writer = Some((holder, got));
        got
    }

    /// Lowers a holder's lock from `has` to `wanted`: shared or none.
    pub fn lower(&mut self, holder: Holder, has: i32, wanted: i32) {
        if self.writer.is_some_and(|(writer, _)| writer == holder) {
            self.writer = None;
        }
        if has >= SQLITE_LOCK_SHARED && wanted < SQLITE_LOCK_SHARED {
            assert!(self.shared > 0, "a lock is given back twice");
            self.shared -= 1;
        }
    }

    /// True if somebody has reserved the file for writing.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.writer.is_some_and(|(_, lock)| lock >= SQLITE_LOCK_RESERVED)
    }

    /// Takes slots of the log, alone or with others. False if others are in the way; then none is taken.
    pub fn take_slots(&mut self, holder: Holder, slots: std::ops::Range<usize>, alone: bool) -> bool {
        let is_free = |slot: &Slot| slot.exclusive.is_none() && (!alone || slot.shared == 0);
        if !self.slots[slots.clone()].iter().all(is_free) {
            return false;
        }
        for slot in &mut self.slots[slots] {
            if alone {
                slot.exclusive = Some(holder);
            } else {
                slot.shared += 1;
            }
        }
        true
    }

    /// Gives slots back that were taken so.
    pub fn give_slots(&mut self, holder: Holder, slots: std::ops::Range<usize>, alone: bool) {
        for slot in &mut self.slots[slots] {
            if alone {
                slot.exclusive = slot.exclusive.filter(|&other| other != holder);
            } else {
                slot.shared = slot.shared.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Holder = Holder(1);
    const B: Holder = Holder(2);

    #[test]
    fn one_writes_while_nobody_reads() {
        let mut locks = Locks::default();
        assert_eq!(locks.raise(A, 0, SQLITE_LOCK_SHARED), SQLITE_LOCK_SHARED);
        assert_eq!(locks.raise(B, 0, SQLITE_LOCK_SHARED), SQLITE_LOCK_SHARED);
        assert_eq!(locks.raise(A, 1, SQLITE_LOCK_RESERVED), SQLITE_LOCK_RESERVED);
        assert!(locks.is_reserved());
        assert_eq!(locks.raise(B, 1, SQLITE_LOCK_RESERVED), SQLITE_LOCK_SHARED, "two writers");
        assert_eq!(locks.raise(A, 2, SQLITE_LOCK_EXCLUSIVE), SQLITE_LOCK_PENDING, "B reads");
        locks.lower(B, 1, 0);
        assert_eq!(locks.raise(B, 0, SQLITE_LOCK_SHARED), 0, "A waits for readers to go");
        assert_eq!(locks.raise(A, 3, SQLITE_LOCK_EXCLUSIVE), SQLITE_LOCK_EXCLUSIVE);
        locks.lower(A, 4, 0);
        assert_eq!(locks.raise(B, 0, SQLITE_LOCK_SHARED), SQLITE_LOCK_SHARED);
    }

    #[test]
    fn slots_are_shared_or_alone() {
        let mut locks = Locks::default();
        assert!(locks.take_slots(A, 3..4, false) && locks.take_slots(B, 3..4, false));
        assert!(!locks.take_slots(A, 2..5, true), "slot 3 is read");
        locks.give_slots(A, 3..4, false);
        locks.give_slots(B, 3..4, false);
        assert!(locks.take_slots(A, 2..5, true) && !locks.take_slots(B, 4..5, false));
        locks.give_slots(A, 2..5, true);
        assert!(locks.take_slots(B, 4..5, false));
    }
}
