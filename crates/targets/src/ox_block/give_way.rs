//! Transactions over several requests give way: chunks went bad, and with them the room that was reserved.
//!
//! Each open one has room beyond what other requests count on. Once there is less of it than all have reserved, the youngest is
//! given up, so that others go on: nothing of it was seen, its blocks are let go of, and its later writes and its commit are
//! answered with Command Interrupted. The name stays until the host ends it. Deliberately not here: one that its host gives up
//! (`transaction`), and the end of all changes (`ox::stop`).

use super::store::OxBlock;
use super::transaction::{End, Open};
use crate::ox::canary::Canary;
use crate::ox::commit::{Commit, Done};
use ocssd_base::SlabKey;
use ocssd_ftl::log::LogEntry;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::transaction::{BlockTransaction, TransactionPart};

/// What a part of a transaction that gave way is answered with: given up it is already.
pub const fn answer_to(part: TransactionPart) -> Status {
    match part {
        TransactionPart::Write | TransactionPart::Commit => Status::COMMAND_INTERRUPTED,
        TransactionPart::Abort => Status::SUCCESS,
    }
}

impl OxBlock {
    /// Gives up the youngest open transactions until what the others reserve is there. True if any was.
    pub(super) fn give_way(&mut self) -> bool {
        let mut any = false;
        while let Some(name) = self.one_too_many() {
            self.give_up_transaction(name);
            any = true;
        }
        any
    }

    /// The youngest transaction that no commit was admitted of, if these have reserved more than there is.
    fn one_too_many(&self) -> Option<BlockTransaction> {
        let open = &self.store.transactions.open;
        let of_one = u64::from(self.transaction_blocks());
        assert!(of_one > 0, "a transaction of no block reserves nothing");
        let is_open = |one: &&Open| one.end == End::Open;
        let most = self.sectors_beyond() / of_one;
        // At most sixteen, and none at all as a rule.
        let count = u64::try_from(open.values().filter(is_open).count()).expect("few");
        let youngest = open.iter().rev().find(|(_, one)| is_open(one));
        youngest.filter(|_| count > most).map(|(&name, _)| name)
    }

    fn give_up_transaction(&mut self, name: BlockTransaction) {
        let transactions = &mut self.store.transactions;
        let open = transactions.open.get_mut(&name).expect("it was chosen");
        assert_eq!(open.end, End::Open, "{name:?} ended, and gives way");
        // What its host still sends is answered when its turn comes.
        (open.waiting, open.is_ending) = (0, true);
        let is_new = transactions.given_way.insert(name);
        assert!(is_new, "{name:?} gives way twice");
        self.store.stats.given_way += 1;
        if self.has_canary(Canary::GivesWayInPart) {
            self.commit_what_programmed(name);
        }
        self.end_transaction(name, End::Aborted);
    }

    /// Answers the request in front, a part of a transaction that gave way.
    pub(super) fn answer_given_way(&mut self, key: SlabKey, name: BlockTransaction, part: TransactionPart) {
        let requests = &mut self.store.requests;
        let status = answer_to(part);
        if !status.is_success() {
            requests.fail(key, status);
        }
        requests.admitted(key);
        requests.end(key);
        self.store.transactions.part_answered(name, part);
    }

    /// The bug that is planted: blocks that were programmed are made true, and the transaction is given up behind them.
    fn commit_what_programmed(&mut self, name: BlockTransaction) {
        let open = self.store.transactions.open.get_mut(&name).expect("it was chosen");
        let programmed: Vec<(u64, ocssd_ftl::PhysicalAddress)> =
            open.blocks.iter().filter_map(|(&lba, block)| Some((lba, block.place?))).collect();
        for (lba, place) in programmed {
            open.blocks.remove(&lba);
            let entries = vec![LogEntry::Write { lba, place, count: 1 }];
            self.commits.push_back(Commit { entries, blocks: 0, done: Done::Piece });
        }
    }
}
