//! Transactions: gathered while their data land, logged in order, true once the log has them on media, in the same order.
//!
//! The map changes when a transaction is durable (`durability=request`), so that nobody reads what a power cut can take; or
//! when it is logged (`durability=flush`). Moves of garbage collection go through the same queue, and are applied only where
//! the block still is where it was copied from; replay decides the same, because it meets the same order. Deliberately not
//! here: pages of the log (`log_pages`).

use super::canary::Canary;
use super::options::Durability;
use super::state::OxBlock;
use super::write_buffer::{FrameId, Owner, Slot};
use ocssd_base::SlabKey;
use ocssd_ftl::log::{LogEntry, Lsn, TransactionId};
use ocssd_ftl::{L2p, Mapped, Place};
use ocssd_lightnvm::block::BlockOp;

/// A transaction whose data are on their way.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub request: SlabKey,
    /// Blocks that did not land.
    pub left: u32,
    /// Blocks it has.
    pub blocks: u32,
    /// Where those lie that did.
    pub entries: Vec<LogEntry>,
}

/// Whose a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// A request's, which is answered.
    User(SlabKey),
    /// A part of one that is answered by another part.
    Piece,
    /// Garbage collection's.
    Gc,
}

/// A transaction that is ready to be logged.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    pub entries: Vec<LogEntry>,
    /// Blocks that were on their way.
    pub blocks: u32,
    pub done: Done,
}

/// A transaction in the log.
#[derive(Clone, Debug)]
pub(super) struct Logged {
    pub id: TransactionId,
    first: Lsn,
    last: Lsn,
    entries: Vec<LogEntry>,
    blocks: u32,
    /// What is still to be answered.
    done: Option<Done>,
    is_applied: bool,
}

/// Adds a block that lies at `place` to the entries of its transaction, if it follows the last one there.
fn join(entries: &mut Vec<LogEntry>, lba: u64, place: Place, from: Option<Place>, is_chunk_start: bool) {
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
    /// A frame of users' blocks landed at `place`: parts that are whole are committed.
    pub(super) fn user_landed(&mut self, frame: FrameId, place: Place) {
        let by_part = self.has_canary(Canary::CommitByPart);
        let slots: Vec<Slot> = self.buffer.slots(frame).to_vec();
        for (offset, slot) in (0..).zip(slots) {
            let at = Place(place.0 + offset);
            let is_start = self.space.shape.chunk_of(at).1 == 0;
            let Owner::User(key) = slot.owner else { unreachable!("a frame of users holds {slot:?}") };
            let part = self.parts.get_mut(key);
            assert!(part.left > 0, "more of a transaction landed than it has");
            join(&mut part.entries, slot.lba, at, None, is_start);
            part.left -= 1;
            if part.left == 0 {
                let Part { request, blocks, entries, .. } = self.parts.remove(key);
                self.commits.push_back(Commit { entries, blocks, done: Done::User(request) });
            } else if by_part {
                let entries = std::mem::take(&mut part.entries);
                self.commits.push_back(Commit { entries, blocks: 0, done: Done::Piece });
            }
        }
    }

    /// A frame of copies landed at `place`: they are committed together.
    pub(super) fn copies_landed(&mut self, frame: FrameId, place: Place) {
        let mut entries = Vec::new();
        let slots: Vec<Slot> = self.buffer.slots(frame).to_vec();
        for (offset, slot) in (0..).zip(slots) {
            let at = Place(place.0 + offset);
            let Owner::Copy(from) = slot.owner else { unreachable!("a frame of copies holds {slot:?}") };
            // A run of places that were moved lies in one chunk, too.
            let is_start = [at, from].iter().any(|&place| self.space.shape.chunk_of(place).1 == 0);
            join(&mut entries, slot.lba, at, Some(from), is_start);
        }
        assert!(!entries.is_empty(), "a frame of nothing landed");
        self.commits.push_back(Commit { entries, blocks: 0, done: Done::Gc });
    }

    /// Logs transactions that are ready, and makes true those that are durable. True if anything was done.
    pub(super) fn commit(&mut self) -> bool {
        let mut any = false;
        while let Some(front) = self.commits.front() {
            if !self.log.has_room(front.entries.len() + 1) {
                break;
            }
            let Commit { entries, blocks, done } = self.commits.pop_front().expect("it was looked at");
            self.log_transaction(entries, blocks, done);
            any = true;
        }
        while self.logged.front().is_some_and(|logged| logged.last < self.log.durable()) {
            let Logged { id, entries, blocks, done, is_applied, .. } =
                self.logged.pop_front().expect("it was looked at");
            if !is_applied {
                self.gathered -= u64::from(blocks);
                self.apply(id, &entries);
            }
            self.answer(done);
            any = true;
        }
        any
    }

    fn log_transaction(&mut self, entries: Vec<LogEntry>, blocks: u32, done: Done) {
        let id = TransactionId(self.last_transaction.0 + 1);
        self.last_transaction = id;
        assert!(!entries.is_empty(), "transaction {} changes nothing", id.0);
        let (first, last) = self.log.append(id, &entries);
        self.stats.transactions += u64::from(done != Done::Gc);
        let mut logged = Logged { id, first, last, entries, blocks, done: Some(done), is_applied: false };
        if self.options.durability == Durability::Flush {
            let entries = std::mem::take(&mut logged.entries);
            self.apply(id, &entries);
            logged.is_applied = true;
            self.gathered -= u64::from(blocks);
        }
        let is_forced = matches!(done, Done::User(key)
            if self.requests.get(key).request.op == BlockOp::Write { fua: true });
        let is_early = self.options.durability == Durability::Flush && !is_forced;
        if is_early || self.has_canary(Canary::AnsweredBeforeCommit) {
            let done = logged.done.take();
            self.answer(done);
        }
        self.logged.push_back(logged);
    }

    fn answer(&mut self, done: Option<Done>) {
        if let Some(Done::User(request)) = done {
            self.requests.part_done(request);
        }
    }

    /// True if somebody waits for what is in the log to be durable.
    pub(super) fn is_log_awaited(&self) -> bool {
        self.options.durability == Durability::Request
            || self.logged.iter().any(|logged| logged.done.is_some_and(|done| done != Done::Gc))
    }

    /// The page that replay must begin with to find every transaction that is not applied.
    pub(super) fn replay_start(&self) -> Lsn {
        let open = self.logged.iter().find(|logged| !logged.is_applied);
        open.map_or(self.log.next(), |logged| logged.first)
    }

    /// A transaction is true.
    fn apply(&mut self, id: TransactionId, entries: &[LogEntry]) {
        assert!(self.applied < id, "transaction {} is applied after {}", id.0, self.applied.0);
        assert!(id <= self.last_transaction, "transaction {} is applied before it is logged", id.0);
        self.applied = id;
        for entry in entries {
            match *entry {
                LogEntry::Write { lba, place, count } => self.apply_write(lba, place, count),
                LogEntry::Move { lba, from, to, count } => self.apply_move(lba, from, to, count),
                LogEntry::Discard { lba, count } => {
                    for lba in lba..lba + u64::from(count) {
                        let old = self.l2p.set(lba, Mapped::Nowhere);
                        self.forget_place(old);
                    }
                }
                LogEntry::Commit { .. } | LogEntry::Owner { .. } => unreachable!("{entry:?} is no change"),
            }
        }
    }

    fn apply_write(&mut self, lba: u64, place: Place, count: u32) {
        assert!(lba + u64::from(count) <= self.sizes.blocks, "blocks beyond the instance are written");
        let (chunk, _) = self.space.shape.chunk_of(place);
        self.space.validate(place, count);
        self.space.unpin(chunk, count);
        for offset in 0..u64::from(count) {
            let old = self.l2p.set(lba + offset, Mapped::Media(Place(place.0 + offset)));
            self.forget_place(old);
        }
        self.look_at(chunk);
    }

    fn apply_move(&mut self, lba: u64, from: Place, to: Place, count: u32) {
        let ((source, _), (chunk, _)) = (self.space.shape.chunk_of(from), self.space.shape.chunk_of(to));
        assert!(source != chunk, "chunk {} is copied to itself", chunk.0);
        self.space.unpin(chunk, count);
        for offset in 0..u64::from(count) {
            let (from, to) = (Place(from.0 + offset), Place(to.0 + offset));
            if self.l2p.move_if(lba + offset, Mapped::Media(from), Mapped::Media(to)) {
                self.space.validate(to, 1);
                self.forget_place(Mapped::Media(from));
            } else {
                self.stats.gc_lost_races += 1;
            }
            self.space.let_go(source);
        }
        self.look_at(chunk);
        self.look_at(source);
    }

    fn forget_place(&mut self, old: Mapped) {
        if let Mapped::Media(place) = old
            && let Some(chunk) = self.space.invalidate(place, self.applied.0)
        {
            self.look_at(chunk);
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
                    l2p.set(lba + offset, Mapped::Media(Place(place.0 + offset)));
                }
            }
            LogEntry::Move { lba, from, to, count } => {
                for offset in 0..u64::from(count) {
                    let (from, to) =
                        (Mapped::Media(Place(from.0 + offset)), Mapped::Media(Place(to.0 + offset)));
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
        replay(&mut l2p, &[LogEntry::Write { lba: 7, place: Place(500), count: 3 }], false);
        replay(&mut l2p, &[LogEntry::Write { lba: 8, place: Place(900), count: 1 }], false);
        assert_eq!(
            [7, 8, 9].map(|lba| l2p.get(lba)),
            [500, 900, 502].map(|place| Mapped::Media(Place(place)))
        );
        assert_eq!(l2p.count_mapped(), 3);
    }

    /// Defect 5: dropped sectors were a list of 48 bytes, and the 257th could not be named. Here each sector of a move of any
    /// length is compared with where it was.
    #[test]
    fn defect_5_any_sector_of_a_long_move_may_have_been_overwritten() {
        let mut l2p = map();
        replay(&mut l2p, &[LogEntry::Write { lba: 0, place: Place(1000), count: 600 }], false);
        replay(&mut l2p, &[LogEntry::Write { lba: 300, place: Place(5000), count: 1 }], false);
        let moved = LogEntry::Move { lba: 0, from: Place(1000), to: Place(2000), count: 600 };
        replay(&mut l2p, &[moved], false);
        let expected = [(299, 2299), (300, 5000), (301, 2301), (599, 2599)];
        assert!(expected.iter().all(|&(lba, place)| l2p.get(lba) == Mapped::Media(Place(place))));
    }

    /// Defect 9: an unmapped block was read at address 0. Block 0 and place 0 are like any other here.
    #[test]
    fn defect_9_an_unmapped_block_is_nowhere_and_place_0_is_a_place() {
        let mut l2p = map();
        assert_eq!(l2p.get(0), Mapped::Nowhere);
        replay(&mut l2p, &[LogEntry::Write { lba: 0, place: Place(0), count: 1 }], false);
        assert_eq!(l2p.get(0), Mapped::Media(Place(0)));
        replay(&mut l2p, &[LogEntry::Discard { lba: 0, count: 1000 }], false);
        assert_eq!((l2p.get(0), l2p.count_mapped()), (Mapped::Nowhere, 0));
    }

    #[test]
    fn runs_join_within_a_chunk_and_nowhere_else() {
        let mut entries = Vec::new();
        for (lba, place, starts) in
            [(5, 40, true), (6, 41, false), (7, 42, true), (9, 43, false), (10, 45, false)]
        {
            join(&mut entries, lba, Place(place), None, starts);
        }
        let write = |lba, place, count| LogEntry::Write { lba, place: Place(place), count };
        assert_eq!(entries, [write(5, 40, 2), write(7, 42, 1), write(9, 43, 1), write(10, 45, 1)]);
        join(&mut entries, 11, Place(46), Some(Place(3)), false);
        join(&mut entries, 12, Place(47), Some(Place(4)), false);
        join(&mut entries, 13, Place(48), Some(Place(9)), false);
        assert_eq!(entries[4], LogEntry::Move { lba: 11, from: Place(3), to: Place(46), count: 2 });
        assert_eq!(entries.len(), 6);
    }

    #[test]
    fn numbers_beyond_the_instance_are_found() {
        let fits = |entry: LogEntry| super::fits(&[entry], 1000, 10_000);
        assert!(fits(LogEntry::Write { lba: 999, place: Place(9_999), count: 1 }));
        assert!(!fits(LogEntry::Write { lba: 999, place: Place(5), count: 2 }));
        assert!(!fits(LogEntry::Write { lba: 5, place: Place(9_999), count: 2 }));
        assert!(!fits(LogEntry::Move { lba: 5, from: Place(10_000), to: Place(5), count: 1 }));
        assert!(!fits(LogEntry::Discard { lba: u64::MAX, count: 1 }));
    }
}
