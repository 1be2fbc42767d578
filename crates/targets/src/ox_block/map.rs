//! What transactions do to the map of blocks, while the instance runs and in replay.
//!
//! Moves of garbage collection are applied only where the block still is where it was copied from; replay decides the same,
//! because it meets the same order. Deliberately not here: when a transaction is true (`ox::commit`).

use super::store::{Owner, OxBlock, Slot, TransactionPart};
use crate::ox::canary::Canary;
use crate::ox::commit::{Commit, Done};
use crate::ox::write_buffer::BufferUnitId;
use ocssd_ftl::log::LogEntry;
use ocssd_ftl::{L2p, Mapped, PhysicalAddress};

/// Adds a block that lies at `place` to the entries of its transaction, if it follows the last one there.
pub(super) fn join(
    entries: &mut Vec<LogEntry>,
    lba: u64,
    place: PhysicalAddress,
    from: Option<PhysicalAddress>,
    is_chunk_start: bool,
) {
    let entry = match from {
        Some(from) => LogEntry::Move { lba, from, to: place, count: 1 },
        None => LogEntry::Write { lba, place, count: 1 },
    };
    let follows = |first: u64, count: u32, now: u64| first + u64::from(count) == now;
    match (entries.last_mut(), from) {
        (Some(LogEntry::Write { lba: first, place: at, count }), None)
            if !is_chunk_start && follows(*first, *count, lba) && follows(at.0, *count, place.0) =>
        {
            *count += 1;
        }
        (Some(LogEntry::Move { lba: first, from: old, to, count }), Some(from))
            if !is_chunk_start
                && follows(*first, *count, lba)
                && follows(to.0, *count, place.0)
                && follows(old.0, *count, from.0) =>
        {
            *count += 1;
        }
        _ => entries.push(entry),
    }
}

impl OxBlock {
    /// A buffer unit of users' blocks was programmed at `place`: parts that are whole are committed.
    pub(super) fn user_programmed(&mut self, buffer_unit: BufferUnitId, place: PhysicalAddress) {
        let by_part = self.has_canary(Canary::CommitByPart);
        let slots: Vec<Slot> = self.buffer.slots(buffer_unit).to_vec();
        for (offset, slot) in (0..).zip(slots) {
            let at = PhysicalAddress(place.0 + offset);
            let is_start = self.space.shape.chunk_of(at).1 == 0;
            let key = match slot.owner {
                Owner::User(key) => key,
                Owner::Transaction(transaction, nth) => {
                    self.transaction_programmed(transaction, (slot.lba, nth), at);
                    continue;
                }
                Owner::Copy(_) | Owner::Page => unreachable!("a buffer unit of users holds {slot:?}"),
            };
            let part = self.store.parts.get_mut(key);
            assert!(part.left > 0, "more of a transaction was programmed than it has");
            join(&mut part.entries, slot.lba, at, None, is_start);
            part.left -= 1;
            if part.left == 0 {
                let TransactionPart { request, blocks, entries, .. } = self.store.parts.remove(key);
                self.commits.push_back(Commit { entries, blocks, done: Done::User(request) });
            } else if by_part {
                let entries = std::mem::take(&mut part.entries);
                self.commits.push_back(Commit { entries, blocks: 0, done: Done::Piece });
            }
        }
    }

    /// What makes the copies of a buffer unit at `place` true, together.
    pub(super) fn copies_entries(
        &mut self,
        buffer_unit: BufferUnitId,
        place: PhysicalAddress,
    ) -> Vec<LogEntry> {
        let mut entries = Vec::new();
        let slots: Vec<Slot> = self.buffer.slots(buffer_unit).to_vec();
        for (offset, slot) in (0..).zip(slots) {
            let at = PhysicalAddress(place.0 + offset);
            let Owner::Copy(from) = slot.owner else {
                unreachable!("a buffer unit of copies holds {slot:?}")
            };
            self.copy_ended(self.space.shape.chunk_of(from).0);
            if self.move_uncommitted(slot.lba, from, at) {
                continue;
            }
            // A run of places that were moved lies in one chunk, too.
            let is_start = [at, from].iter().any(|&place| self.space.shape.chunk_of(place).1 == 0);
            join(&mut entries, slot.lba, at, Some(from), is_start);
        }
        entries
    }

    /// A transaction is true.
    pub(super) fn apply_entries(&mut self, entries: &[LogEntry]) {
        if let Some(&LogEntry::Write { lba, .. }) = entries.first().filter(|_| self.store.cache.is_some())
            && lba >= self.sizes.blocks
        {
            return self.apply_pages(entries);
        }
        for entry in entries {
            match *entry {
                LogEntry::Write { lba, place, count } => self.apply_write(lba, place, count),
                LogEntry::Move { lba, from, to, count } => self.apply_move(lba, from, to, count),
                LogEntry::Discard { lba, count } => {
                    for lba in lba..lba + u64::from(count) {
                        let old = self.store.l2p.set(lba, Mapped::Nowhere);
                        self.forget_place(old);
                    }
                }
                LogEntry::Commit { .. } | LogEntry::Owner { .. } => unreachable!("{entry:?} is no change"),
            }
        }
        self.pages_changed(entries);
    }

    /// Pages of the map are where they were written.
    fn apply_pages(&mut self, entries: &[LogEntry]) {
        for entry in entries {
            let LogEntry::Write { lba, place, count: 1 } = *entry else {
                unreachable!("{entry:?} is no page")
            };
            self.page_is_at(lba, place);
        }
    }

    fn apply_write(&mut self, lba: u64, place: PhysicalAddress, count: u32) {
        assert!(lba + u64::from(count) <= self.sizes.blocks, "blocks beyond the instance are written");
        let (chunk, _) = self.space.shape.chunk_of(place);
        if self.space.live.is_valid(place) {
            // Of a transaction over several requests: its blocks are needed since they were programmed.
            self.ends_uncommitted(count);
        } else {
            self.validate(place, count);
            self.space.unpin(chunk, count);
        }
        for offset in 0..u64::from(count) {
            let old = self.store.l2p.set(lba + offset, Mapped::Media(PhysicalAddress(place.0 + offset)));
            self.forget_place(old);
        }
        self.look_at(chunk);
    }

    fn apply_move(&mut self, lba: u64, from: PhysicalAddress, to: PhysicalAddress, count: u32) {
        let ((source, _), (chunk, _)) = (self.space.shape.chunk_of(from), self.space.shape.chunk_of(to));
        assert!(source != chunk, "chunk {} is copied to itself", chunk.0);
        self.space.unpin(chunk, count);
        for offset in 0..u64::from(count) {
            let (from, to) = (PhysicalAddress(from.0 + offset), PhysicalAddress(to.0 + offset));
            if self.store.l2p.move_if(lba + offset, Mapped::Media(from), Mapped::Media(to)) {
                self.validate(to, 1);
                self.forget_place(Mapped::Media(from));
            } else {
                self.stats.gc_lost_races += 1;
                self.forget_orphan(from);
            }
            self.space.let_go(source);
        }
        self.look_at(chunk);
        self.look_at(source);
    }

    fn forget_place(&mut self, old: Mapped) {
        if let Mapped::Media(place) = old
            && !self.is_lost(place)
        {
            self.invalidate(place);
        }
    }

    /// A sector that is valid and that no block of the map is at: the page that had it was lost. It is of no use.
    fn forget_orphan(&mut self, place: PhysicalAddress) {
        if self.store.cache.is_some() && self.space.live.is_valid(place) {
            assert!(self.store.stats.map_lost > 0, "{place:?} is valid and of no block");
            self.invalidate(place);
        }
    }
}

/// Makes a transaction true in a map that is being recovered: as when it was applied, but for what only a running instance
/// has.
pub(super) fn replay(l2p: &mut L2p, entries: &[LogEntry], moves_stale: bool) {
    for entry in entries {
        match *entry {
            LogEntry::Write { lba, place, count } => {
                for offset in 0..u64::from(count) {
                    l2p.set(lba + offset, Mapped::Media(PhysicalAddress(place.0 + offset)));
                }
            }
            LogEntry::Move { lba, from, to, count } => {
                for offset in 0..u64::from(count) {
                    let (from, to) = (
                        Mapped::Media(PhysicalAddress(from.0 + offset)),
                        Mapped::Media(PhysicalAddress(to.0 + offset)),
                    );
                    if moves_stale {
                        l2p.set(lba + offset, to);
                    } else {
                        l2p.move_if(lba + offset, from, to);
                    }
                }
            }
            LogEntry::Discard { lba, count } => {
                for lba in lba..lba + u64::from(count) {
                    l2p.set(lba, Mapped::Nowhere);
                }
            }
            LogEntry::Commit { .. } | LogEntry::Owner { .. } => unreachable!("{entry:?} is no change"),
        }
    }
}

/// True if every number in a transaction is one that an instance of so many blocks and places has.
pub(super) fn fits(entries: &[LogEntry], blocks: u64, places: u64) -> bool {
    let within = |first: u64, count: u32, end: u64| {
        first.checked_add(u64::from(count)).is_some_and(|last| last <= end)
    };
    entries.iter().all(|entry| match *entry {
        LogEntry::Write { lba, place, count } => within(lba, count, blocks) && within(place.0, count, places),
        LogEntry::Move { lba, from, to, count } => {
            within(lba, count, blocks) && within(from.0, count, places) && within(to.0, count, places)
        }
        LogEntry::Discard { lba, count } => within(lba, count, blocks),
        LogEntry::Commit { .. } | LogEntry::Owner { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> L2p {
        L2p::new(1000, 10_000, 0)
    }

    /// Defect 4: the published replay invalidated an address in the record, which was always 0. Here the map alone says what
    /// is valid, and a block written twice is at the second place.
    #[test]
    fn defect_4_replay_takes_what_was_there_from_the_map() {
        let mut l2p = map();
        replay(&mut l2p, &[LogEntry::Write { lba: 7, place: PhysicalAddress(500), count: 3 }], false);
        replay(&mut l2p, &[LogEntry::Write { lba: 8, place: PhysicalAddress(900), count: 1 }], false);
        assert_eq!(
            [7, 8, 9].map(|lba| l2p.get(lba)),
            [500, 900, 502].map(|place| Mapped::Media(PhysicalAddress(place)))
        );
        assert_eq!(l2p.count_mapped(), 3);
    }

    /// Defect 5: dropped sectors were a list of 48 bytes, and the 257th could not be named. Here each sector of a move of any
    /// length is compared with where it was.
    #[test]
    fn defect_5_any_sector_of_a_long_move_may_have_been_overwritten() {
        let mut l2p = map();
        replay(&mut l2p, &[LogEntry::Write { lba: 0, place: PhysicalAddress(1000), count: 600 }], false);
        replay(&mut l2p, &[LogEntry::Write { lba: 300, place: PhysicalAddress(5000), count: 1 }], false);
        let moved =
            LogEntry::Move { lba: 0, from: PhysicalAddress(1000), to: PhysicalAddress(2000), count: 600 };
        replay(&mut l2p, &[moved], false);
        let expected = [(299, 2299), (300, 5000), (301, 2301), (599, 2599)];
        assert!(expected.iter().all(|&(lba, place)| l2p.get(lba) == Mapped::Media(PhysicalAddress(place))));
    }

    /// Defect 9: an unmapped block was read at address 0. Block 0 and place 0 are like any other here.
    #[test]
    fn defect_9_an_unmapped_block_is_nowhere_and_place_0_is_a_place() {
        let mut l2p = map();
        assert_eq!(l2p.get(0), Mapped::Nowhere);
        replay(&mut l2p, &[LogEntry::Write { lba: 0, place: PhysicalAddress(0), count: 1 }], false);
        assert_eq!(l2p.get(0), Mapped::Media(PhysicalAddress(0)));
        replay(&mut l2p, &[LogEntry::Discard { lba: 0, count: 1000 }], false);
        assert_eq!((l2p.get(0), l2p.count_mapped()), (Mapped::Nowhere, 0));
    }

    #[test]
    fn runs_join_within_a_chunk_and_nowhere_else() {
        let mut entries = Vec::new();
        for (lba, place, starts) in
            [(5, 40, true), (6, 41, false), (7, 42, true), (9, 43, false), (10, 45, false)]
        {
            join(&mut entries, lba, PhysicalAddress(place), None, starts);
        }
        let write = |lba, place, count| LogEntry::Write { lba, place: PhysicalAddress(place), count };
        assert_eq!(entries, [write(5, 40, 2), write(7, 42, 1), write(9, 43, 1), write(10, 45, 1)]);
        join(&mut entries, 11, PhysicalAddress(46), Some(PhysicalAddress(3)), false);
        join(&mut entries, 12, PhysicalAddress(47), Some(PhysicalAddress(4)), false);
        join(&mut entries, 13, PhysicalAddress(48), Some(PhysicalAddress(9)), false);
        assert_eq!(
            entries[4],
            LogEntry::Move { lba: 11, from: PhysicalAddress(3), to: PhysicalAddress(46), count: 2 }
        );
        assert_eq!(entries.len(), 6);
    }

    #[test]
    fn numbers_beyond_the_instance_are_found() {
        let fits = |entry: LogEntry| super::fits(&[entry], 1000, 10_000);
        assert!(fits(LogEntry::Write { lba: 999, place: PhysicalAddress(9_999), count: 1 }));
        assert!(!fits(LogEntry::Write { lba: 999, place: PhysicalAddress(5), count: 2 }));
        assert!(!fits(LogEntry::Write { lba: 5, place: PhysicalAddress(9_999), count: 2 }));
        assert!(!fits(LogEntry::Move {
            lba: 5,
            from: PhysicalAddress(10_000),
            to: PhysicalAddress(5),
            count: 1
        }));
        assert!(!fits(LogEntry::Discard { lba: u64::MAX, count: 1 }));
    }
}
