//! Transactions over several requests: blocks go to buffer units as they come, and are logged together when the commit does.
//!
//! Until then nothing of them is mapped, so nobody sees them and a power cut leaves nothing. Each has room reserved for as many
//! blocks as it may have, beyond what other requests may count on: an open one holds up nobody. Deliberately not here: what a
//! request's own transaction is (`write`), where blocks lie meanwhile (`uncommitted`), and one that is given up for want of chunks
//! (`give_way`).

use super::give_way;
use super::map::join;
use super::requests::Role;
use super::sizes::TRANSACTION_BLOCKS_MAX;
use super::store::{Owner, OxBlock, Slot};
use crate::ox::canary::Canary;
use crate::ox::commit::{Commit, Done};
use crate::ox::state::Ending;
use crate::ox::write_buffer::StreamIndex;
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::log::LogEntry;
use ocssd_ftl::{Kind, PhysicalAddress};
use ocssd_lightnvm::block::{BlockOp, BlockRequest};
use ocssd_lightnvm::transaction::{
    BlockTransaction, TransactionLimits, TransactionPart, TransactionRefusal, Transactions,
};
use ocssd_lightnvm::{Buffers, Status, Tag};
use std::collections::{BTreeMap, BTreeSet};

/// Transactions open at a time (chosen: a database's connections, each with one).
const OPEN_MAX: u32 = 16;

/// A transaction may have the sixteenth part of an instance (chosen: on 16 MiB and more, as many blocks as a request).
const PART_OF_INSTANCE: u64 = 16;

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It is open.
    Open,
    /// Its commit waits for blocks to be programmed.
    Committed(SlabKey),
    /// It is given up once its blocks have been programmed.
    Aborted,
}

/// A block of a transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// Which of the blocks that came is the newest of it.
    nth: u32,
    /// Where that was programmed.
    pub place: Option<PhysicalAddress>,
}

/// A transaction that is not logged.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub end: End,
    /// Blocks of writes that were taken, and of these those that are not in buffer units.
    taken: u32,
    pub waiting: u32,
    /// Blocks in buffer units that were not programmed.
    flying: u32,
    pub blocks: BTreeMap<u64, Block>,
    /// A request that ends it was taken, or it gave way.
    pub is_ending: bool,
}

/// Whether a request was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionFate {
    /// It was.
    Taken,
    /// It was answered at once.
    Refused,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct OpenTransactions {
    pub(super) open: BTreeMap<BlockTransaction, Open>,
    /// Those that gave way and that their hosts did not end.
    pub(super) given_way: BTreeSet<BlockTransaction>,
    joined: BTreeMap<Tag, Role>,
    begun: u64,
    /// Sectors that hold their blocks, until these are true or given up.
    pub(super) uncommitted: u64,
}

impl OpenTransactions {
    /// What the request of this tag is of a transaction.
    #[inline]
    pub fn role_of(&self, tag: Tag) -> Option<Role> {
        if self.joined.is_empty() { None } else { self.joined.get(&tag).copied() }
    }

    /// A request with a role came, and was taken or not.
    pub fn is_sent(&mut self, request: &BlockRequest, role: Option<Role>, fate: TransactionFate) {
        let Some((transaction, part)) = role else { return };
        self.joined.remove(&request.tag);
        if fate == TransactionFate::Refused {
            self.part_answered(transaction, part);
        }
        let Some(open) = self.open.get_mut(&transaction).filter(|_| fate == TransactionFate::Taken) else {
            return;
        };
        match part {
            TransactionPart::Write => {
                open.taken += request.count;
                open.waiting += request.count;
            }
            TransactionPart::Commit | TransactionPart::Abort => open.is_ending = true,
        }
        assert!(open.taken <= TRANSACTION_BLOCKS_MAX, "{transaction:?} has more blocks than its bound");
    }

    /// A part of a transaction was answered without being carried out. The name of one that gave way is free with its end.
    pub(super) fn part_answered(&mut self, name: BlockTransaction, part: TransactionPart) {
        if part != TransactionPart::Write {
            self.given_way.remove(&name);
        }
    }

    /// All are forgotten: no changes are taken any more. What they wrote stays where it is.
    pub fn clear(&mut self) {
        self.open.clear();
        self.given_way.clear();
        self.joined.clear();
    }
}

impl OxBlock {
    /// The status a part of a transaction is refused with.
    pub(super) fn refuses_role(&self, request: &BlockRequest, role: Option<Role>) -> Option<Status> {
        let (transaction, part) = role?;
        let is_sound = match part {
            TransactionPart::Write => matches!(request.op, BlockOp::Write { .. }),
            TransactionPart::Commit | TransactionPart::Abort => request.op == BlockOp::Flush,
        };
        let transactions = &self.store.transactions;
        let is_open = transactions.open.get(&transaction).filter(|open| !open.is_ending);
        match (transactions.given_way.contains(&transaction), is_open) {
            (false, None) => Some(Status::COMMAND_SEQUENCE_ERROR),
            _ if !is_sound => Some(Status::INVALID_FIELD),
            (true, _) => Some(give_way::answer_to(part)),
            (false, Some(open)) => {
                let is_over = open.taken + request.count > self.transaction_blocks();
                (part == TransactionPart::Write && is_over).then_some(Status::CAPACITY_EXCEEDED)
            }
        }
    }

    /// Blocks of one: those of a request, and of a small instance a part of it, so that several have room.
    pub(super) fn transaction_blocks(&self) -> u32 {
        assert!(self.sizes.blocks > 0, "an instance without blocks was mounted");
        let part = self.sizes.blocks / PART_OF_INSTANCE;
        let blocks = part.clamp(1, u64::from(TRANSACTION_BLOCKS_MAX));
        u32::try_from(blocks).expect("no more than a request's")
    }

    /// Sectors beyond those that other requests may count on.
    pub(super) fn sectors_beyond(&self) -> u64 {
        self.gathered_max() - u64::from(self.sizes.gathered)
    }

    /// Goes on with the request in front, a part of a transaction. False if it must wait for buffer units.
    pub(super) fn admit_of_transaction(
        &mut self,
        key: SlabKey,
        transaction: BlockTransaction,
        part: TransactionPart,
        buffers: &mut Buffers,
    ) -> bool {
        if self.store.transactions.given_way.contains(&transaction) {
            self.answer_given_way(key, transaction, part);
            return true;
        }
        assert!(self.store.transactions.open.contains_key(&transaction), "{transaction:?} ended too early");
        if part == TransactionPart::Write && !self.take_blocks(key, transaction, buffers) {
            return false;
        }
        self.store.requests.admitted(key);
        match part {
            TransactionPart::Write => self.store.requests.end(key),
            TransactionPart::Commit => {
                self.store.requests.begin_parts(key, 1);
                self.end_transaction(transaction, End::Committed(key));
            }
            TransactionPart::Abort => {
                self.store.requests.end(key);
                self.end_transaction(transaction, End::Aborted);
            }
        }
        true
    }

    /// Takes the blocks of a write into buffer units. True if all are.
    fn take_blocks(&mut self, key: SlabKey, transaction: BlockTransaction, buffers: &mut Buffers) -> bool {
        let request = self.store.requests.get(key).request;
        let source = request.buffer.expect("a write without a buffer was refused");
        loop {
            let done = self.store.requests.get(key).done;
            assert!(done <= request.count, "more was written than asked for");
            if done == request.count {
                return true;
            }
            let Some((buffer_unit, _)) = self.buffer.filling(StreamIndex::USER) else { return false };
            let lba = request.block + u64::from(done);
            let nth = self.next_block(transaction, lba);
            self.ask_ahead(lba, 1, buffers);
            let slot = Slot { lba, owner: Owner::Transaction(transaction, nth) };
            let (buffer, at) = self.buffer.push(buffer_unit, slot, 1);
            buffers.copy_data(source, done, buffer, at, 1);
            self.tag(Kind::Data, lba, (buffer, at), buffers);
            self.buffer.close_if_full(StreamIndex::USER);
            self.store.requests.get_mut(key).done += 1;
            self.store.stats.user_written += 1;
        }
    }

    /// A block of a transaction goes to a buffer unit. What it held before is not needed.
    fn next_block(&mut self, transaction: BlockTransaction, lba: u64) -> u32 {
        let open = self.store.transactions.open.get_mut(&transaction).expect("it was looked at");
        assert!(open.waiting > 0, "more blocks came than {transaction:?} has");
        let nth = open.taken - open.waiting;
        open.waiting -= 1;
        open.flying += 1;
        let before = open.blocks.insert(lba, Block { nth, place: None });
        if let Some(Block { place: Some(place), .. }) = before {
            self.forget_uncommitted(place);
        }
        nth
    }

    /// What was just programmed at a place is not needed.
    fn give_up_place(&mut self, place: PhysicalAddress) {
        let chunk = self.space.shape.chunk_of(place).0;
        self.space.unpin(chunk, 1);
        self.look_at(chunk);
    }

    /// A block of a transaction was programmed.
    pub(super) fn transaction_programmed(
        &mut self,
        transaction: BlockTransaction,
        (lba, nth): (u64, u32),
        place: PhysicalAddress,
    ) {
        let torn = self.has_canary(Canary::TransactionByPart);
        let open = self.store.transactions.open.get_mut(&transaction);
        let open = open.expect("a transaction stays until all its blocks were programmed");
        assert!(open.flying > 0, "more of {transaction:?} was programmed than it has");
        open.flying -= 1;
        let is_newest = open.blocks.get(&lba).is_some_and(|block| block.nth == nth);
        if is_newest && open.end != End::Aborted && torn {
            open.blocks.remove(&lba);
            let entries = vec![LogEntry::Write { lba, place, count: 1 }];
            self.commits.push_back(Commit { entries, blocks: 0, done: Done::Piece });
        } else if is_newest && open.end != End::Aborted {
            open.blocks.insert(lba, Block { nth, place: Some(place) });
            self.uncommitted_at(place);
        } else {
            self.give_up_place(place);
        }
        self.finish_transaction(transaction);
    }

    pub(super) fn end_transaction(&mut self, transaction: BlockTransaction, end: End) {
        let open = self.store.transactions.open.get_mut(&transaction).expect("it was looked at");
        assert_eq!(open.end, End::Open, "{transaction:?} ends twice");
        assert!(open.waiting == 0 || end == End::Aborted, "{transaction:?} ends before its writes");
        open.end = end;
        if end == End::Aborted {
            let blocks = std::mem::take(&mut open.blocks);
            blocks.values().filter_map(|block| block.place).for_each(|place| self.forget_uncommitted(place));
        }
        self.finish_transaction(transaction);
    }

    /// A transaction that ended is logged, or forgotten, once all its blocks have been programmed.
    fn finish_transaction(&mut self, transaction: BlockTransaction) {
        let open = &self.store.transactions.open[&transaction];
        if open.end == End::Open || open.flying > 0 || open.waiting > 0 {
            return;
        }
        let Open { end, blocks, .. } =
            self.store.transactions.open.remove(&transaction).expect("it is there");
        self.work_due = true;
        let End::Committed(key) = end else {
            // What was programmed was given up when it did.
            self.gathered -= u64::from(self.transaction_blocks());
            return;
        };
        let mut entries = Vec::new();
        for (lba, block) in blocks {
            let place = block.place.expect("all its blocks were programmed");
            let is_start = self.space.shape.chunk_of(place).1 == 0;
            join(&mut entries, lba, place, None, is_start);
        }
        if entries.is_empty() {
            self.gathered -= u64::from(self.transaction_blocks());
            self.store.requests.part_done(key);
        } else {
            let blocks = self.transaction_blocks();
            self.commits.push_back(Commit { entries, blocks, done: Done::User(key) });
        }
    }

    /// Gives up all that are open: nothing comes any more.
    pub(super) fn abort_all(&mut self) {
        let transactions = &self.store.transactions.open;
        let is_open = |(&name, open): (&BlockTransaction, &Open)| (!open.is_ending).then_some(name);
        let left: Vec<BlockTransaction> = transactions.iter().filter_map(is_open).collect();
        for transaction in left {
            assert_eq!(self.store.transactions.open[&transaction].end, End::Open, "{transaction:?} ended");
            let open = self.store.transactions.open.get_mut(&transaction);
            open.expect("it was listed").is_ending = true;
            self.end_transaction(transaction, End::Aborted);
        }
    }

    /// True if a transaction that ended waits for blocks to be programmed.
    pub(super) fn has_ended_transaction(&self) -> bool {
        self.store.transactions.open.values().any(|open| open.end != End::Open)
    }

    /// Transactions that are open, or whose blocks were not all programmed.
    pub(super) fn open_transactions(&self) -> usize {
        self.store.transactions.open.len()
    }
}

impl Transactions for OxBlock {
    fn limits(&self) -> TransactionLimits {
        TransactionLimits { at_once: OPEN_MAX, blocks: self.transaction_blocks() }
    }

    fn begin(&mut self) -> Result<BlockTransaction, TransactionRefusal> {
        if let Some(status) = self.refuses_changes() {
            return Err(TransactionRefusal::NoChanges(status));
        }
        if self.ending != Ending::No {
            return Err(TransactionRefusal::NoChanges(Status::NAMESPACE_NOT_READY));
        }
        let open = u64::try_from(self.open_transactions()).expect("an index");
        let needed = (open + 1) * u64::from(self.transaction_blocks());
        let at_once = self.open_transactions() + self.store.transactions.given_way.len();
        if at_once >= usize_of(OPEN_MAX) || needed > self.sectors_beyond() {
            return Err(TransactionRefusal::TooMany);
        }
        self.gathered += u64::from(self.transaction_blocks());
        let transactions = &mut self.store.transactions;
        transactions.begun += 1;
        let name = BlockTransaction(transactions.begun);
        let fresh = Open {
            end: End::Open,
            taken: 0,
            waiting: 0,
            flying: 0,
            blocks: BTreeMap::new(),
            is_ending: false,
        };
        let before = transactions.open.insert(name, fresh);
        assert!(before.is_none(), "{name:?} is begun twice");
        Ok(name)
    }

    fn join(
        &mut self,
        transaction: BlockTransaction,
        tag: Tag,
        part: TransactionPart,
    ) -> Result<(), TransactionRefusal> {
        let transactions = &mut self.store.transactions;
        let is_ended = transactions.open.get(&transaction).is_none_or(|open| open.is_ending);
        if is_ended && !transactions.given_way.contains(&transaction) {
            return Err(TransactionRefusal::NotOpen);
        }
        if transactions.joined.contains_key(&tag) {
            return Err(TransactionRefusal::TagInUse);
        }
        transactions.joined.insert(tag, (transaction, part));
        Ok(())
    }
}
