//! Writes of a target whose requests are transactions: after a power cut each is there as a whole, or not at all.
//!
//! Every block of a write has a content of its own. If one shows after a cut, no other block of that write may show what was
//! over before the write was sent. What a concurrent write left may be there: of two transactions either came first.
//! Deliberately not here: whether a single block may hold what it does (`history`).

use super::history::Content;
use super::oracle::Moment;
use crate::contract::Broken;
use ocssd_lightnvm::Tag;
use ocssd_lightnvm::transaction::BlockTransaction;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A write that is not known to be durable.
#[derive(Clone, Debug)]
struct Transaction {
    /// Its blocks, and the content of each run's first; others of the run count up.
    runs: Vec<(Range<u64>, Content)>,
    /// Its lowest content.
    first: Content,
    /// Contents below this were written by what was answered before it was sent.
    floor: Content,
    /// Zeroes were there before it was sent: nothing made zeroes at the same time or later.
    zeroes_are_older: bool,
    /// When it was answered.
    ended: Option<Moment>,
}

impl Transaction {
    fn has(&self, block: u64, content: Content) -> bool {
        self.content(block) == Some(content)
    }

    /// What it gives a block.
    fn content(&self, block: u64) -> Option<Content> {
        let run = self.runs.iter().find(|(blocks, _)| blocks.contains(&block));
        run.map(|(blocks, first)| first + (block - blocks.start))
    }

    fn is_older(&self, block: u64, content: Content) -> bool {
        if self.has(block, content) {
            return false;
        }
        if content == 0 { self.zeroes_are_older } else { content < self.floor }
    }
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Atomicity {
    open: BTreeMap<Tag, Transaction>,
    /// Transactions over several requests that are not over, with their lowest contents.
    begun: BTreeMap<BlockTransaction, Content>,
    /// Writes under way of which nothing is promised, with the content of their first blocks.
    others: BTreeMap<Tag, Content>,
    answered: Vec<Transaction>,
    zeroing: BTreeSet<Tag>,
    /// Those that were cut, until everything was read.
    cut: Vec<Transaction>,
    /// What was found since.
    found: BTreeMap<u64, Content>,
    /// Transactions judged, and of these whole ones.
    judged: (u64, u64),
}

impl Atomicity {
    /// A write of these blocks was sent, whose first has this content.
    pub fn sent(&mut self, tag: Tag, blocks: Range<u64>, first: Content) {
        self.insert(tag, vec![(blocks, first)], first);
    }

    /// Content is written within a transaction over several requests, which may become true at any time later.
    pub fn begun(&mut self, name: BlockTransaction, content: Content) {
        self.begun.entry(name).or_insert(content);
    }

    /// The end of a transaction over several requests was sent, which gives blocks these contents; the next write will have the
    /// content `next`.
    pub fn commit_sent(
        &mut self,
        tag: Tag,
        name: BlockTransaction,
        contents: &[(u64, Content)],
        next: Content,
    ) {
        // What is under way to become true counts from now on as what it is.
        self.begun.remove(&name);
        let run = |&(block, content): &(u64, Content)| (block..block + 1, content);
        self.insert(tag, contents.iter().map(run).collect(), next);
    }

    /// A transaction over several requests was given up.
    pub fn given_up(&mut self, name: BlockTransaction) {
        self.begun.remove(&name);
    }

    /// A write that is under way. All contents below `next` that nothing under way has are older.
    fn insert(&mut self, tag: Tag, runs: Vec<(Range<u64>, Content)>, next: Content) {
        let open = self.open.values().map(|other| other.first).chain(self.others.values().copied());
        let floor = open.chain(self.begun.values().copied()).fold(next, Content::min);
        let zeroes_are_older = self.zeroing.is_empty();
        let first = runs.iter().map(|(_, first)| *first).min().unwrap_or(next);
        self.open.insert(tag, Transaction { runs, first, floor, zeroes_are_older, ended: None });
    }

    /// A write was sent that may be there in part.
    pub fn other_sent(&mut self, tag: Tag, first: Content) {
        self.others.insert(tag, first);
    }

    /// A change to zeroes was sent.
    pub fn zeroing_sent(&mut self, tag: Tag) {
        self.zeroing.insert(tag);
        for transaction in self.open.values_mut().chain(&mut self.answered) {
            transaction.zeroes_are_older = false;
        }
    }

    /// A change was answered, and survives a power cut or may not yet.
    pub fn made(&mut self, tag: Tag, now: Moment, is_durable: bool) {
        self.zeroing.remove(&tag);
        self.others.remove(&tag);
        if let Some(transaction) = self.open.remove(&tag).filter(|_| !is_durable) {
            self.answered.push(Transaction { ended: Some(now), ..transaction });
        }
    }

    /// A change was refused: a part of it may be there, as nothing was promised of it.
    pub fn refused(&mut self, tag: Tag) {
        self.zeroing.remove(&tag);
        self.others.remove(&tag);
        self.open.remove(&tag);
    }

    /// What was answered before `moment` survives a power cut.
    pub fn durable_before(&mut self, moment: Moment) {
        self.answered.retain(|transaction| transaction.ended.is_none_or(|ended| ended >= moment));
    }

    /// The power went.
    pub fn power_cut(&mut self) {
        self.cut.extend(std::mem::take(&mut self.open).into_values());
        self.cut.append(&mut self.answered);
        self.zeroing.clear();
        self.others.clear();
        self.begun.clear();
        self.found.clear();
    }

    /// A block holds this, as nothing excuses.
    pub fn found(&mut self, block: u64, content: Content) {
        if !self.cut.is_empty() {
            self.found.entry(block).or_insert(content);
        }
    }

    /// Everything was read.
    ///
    /// # Errors
    /// If a write is there in part.
    pub fn judge(&mut self) -> Result<(), Broken> {
        let found = std::mem::take(&mut self.found);
        for transaction in std::mem::take(&mut self.cut) {
            let of = || transaction.runs.iter().flat_map(|(blocks, _)| found.range(blocks.clone()));
            self.judged.0 += 1;
            let Some((shown, _)) = of().find(|&(&block, &content)| transaction.has(block, content)) else {
                continue;
            };
            self.judged.1 += 1;
            if let Some((missing, content)) =
                of().find(|&(&block, &content)| transaction.is_older(block, content))
            {
                let blocks: Vec<&Range<u64>> = transaction.runs.iter().map(|(blocks, _)| blocks).collect();
                let own = transaction.content(*missing).expect("it is one of its blocks");
                return Err(Broken::new(
                    "transactions are whole",
                    format!(
                        "the write of blocks {blocks:?} is there as a whole or not at all, and block {shown} shows it"
                    ),
                    format!("block {missing} holds write {content}, which was over before write {own}"),
                ));
            }
        }
        Ok(())
    }

    /// Transactions that a power cut met, and how many of these were there.
    #[must_use]
    pub const fn judged(&self) -> (u64, u64) {
        self.judged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(found: &[(u64, Content)], zeroing: bool) -> Result<(), Broken> {
        let mut atomicity = Atomicity::default();
        atomicity.sent(Tag(1), 0..2, 1);
        atomicity.made(Tag(1), Moment(2), true);
        atomicity.sent(Tag(2), 1..3, 3);
        if zeroing {
            atomicity.zeroing_sent(Tag(4));
        }
        atomicity.sent(Tag(3), 0..4, 5);
        atomicity.power_cut();
        found.iter().for_each(|&(block, content)| atomicity.found(block, content));
        atomicity.judge()
    }

    fn cut_within(found: &[(u64, Content)]) -> Result<(), Broken> {
        let mut atomicity = Atomicity::default();
        let name = BlockTransaction(1);
        // Block 0 is written within, then block 7; between them blocks 0 to 3 by a request of its own.
        atomicity.begun(name, 1);
        atomicity.sent(Tag(1), 0..4, 2);
        atomicity.made(Tag(1), Moment(2), true);
        atomicity.begun(name, 6);
        atomicity.commit_sent(Tag(2), name, &[(0, 1), (7, 6)], 7);
        atomicity.power_cut();
        found.iter().for_each(|&(block, content)| atomicity.found(block, content));
        atomicity.judge()
    }

    #[test]
    fn a_transaction_over_several_requests_is_whole_though_its_contents_are_older() {
        for whole in [[(0, 2), (1, 3), (7, 0)], [(0, 1), (1, 3), (7, 6)]] {
            assert_eq!(cut_within(&whole), Ok(()), "{whole:?}");
        }
        for torn in [[(0, 1), (1, 3), (7, 0)], [(0, 2), (1, 3), (7, 6)]] {
            assert_eq!(cut_within(&torn).expect_err("it is torn").rule, "transactions are whole");
        }
    }

    #[test]
    fn a_write_is_there_as_a_whole_or_not_at_all() {
        assert_eq!(cut(&[(0, 1), (1, 2), (2, 0), (3, 0)], false), Ok(()), "neither");
        assert_eq!(cut(&[(0, 5), (1, 6), (2, 7), (3, 8)], false), Ok(()), "the second");
        assert_eq!(cut(&[(0, 5), (1, 3), (2, 4), (3, 8)], false), Ok(()), "the first after the second");
        for torn in [[(0, 5), (1, 2), (2, 7), (3, 8)], [(0, 1), (1, 3), (2, 0), (3, 0)]] {
            let broken = cut(&torn, false).expect_err("it is torn");
            assert_eq!(broken.rule, "transactions are whole");
        }
        assert_eq!(cut(&[(0, 1), (1, 3), (2, 0), (3, 0)], true), Ok(()), "zeroes may have come later");
    }
}
