//! Transactions: gathered while their data are programmed, logged in order, true once the log has them on media, in the same order.
//!
//! What a transaction changes, changes when it is durable, so that nobody reads what a power cut can take; or when it is
//! logged, if the store wants that. Moves of garbage collection go through the same queue. Deliberately not here: pages of the
//! log (`pages`), what a transaction changes (the store).

use super::canary::Canary;
use super::state::Ox;
use super::store::Store;
use crate::journal::Logged as InLog;
use ocssd_ftl::log::{Lsn, TransactionId};
use ocssd_lightnvm::Buffers;

/// Whose a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done<W> {
    /// A user's, who waits for it.
    User(W),
    /// A part of one that another part answers.
    Piece,
    /// Garbage collection's.
    Gc,
}

/// What becomes of a transaction when it is logged, and not durable yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtLog {
    /// It is true already.
    pub is_true: bool,
    /// Its waiter need not wait.
    pub is_answered: bool,
}

/// A transaction that is ready to be logged.
#[derive(Clone, Debug)]
pub struct Commit<S: Store> {
    pub entries: Vec<S::Entry>,
    /// Sectors that were on their way.
    pub blocks: u32,
    pub done: Done<S::Waiter>,
}

/// A transaction in the log.
#[derive(Clone, Debug)]
pub struct Logged<S: Store> {
    pub id: TransactionId,
    first: Lsn,
    durable_at: Lsn,
    entries: Vec<S::Entry>,
    blocks: u32,
    /// What is still to be answered.
    done: Option<Done<S::Waiter>>,
    is_applied: bool,
}

impl<S: Store> Logged<S> {
    /// True if what it changes is changed already.
    pub const fn is_applied(&self) -> bool {
        self.is_applied
    }

    /// What it changes, while it is not true.
    pub fn entries(&self) -> &[S::Entry] {
        &self.entries
    }

    /// True if a user waits for it.
    pub fn is_awaited(&self) -> bool {
        self.done.is_some_and(|done| done != Done::Gc)
    }
}

impl<S: Store> Ox<S> {
    /// Logs transactions that are ready, and makes true those that are durable. True if anything was done.
    pub(super) fn commit(&mut self, buffers: &Buffers) -> bool {
        let mut any = false;
        while let Some(commit) = self.next_commit(buffers) {
            self.log_transaction(commit);
            any = true;
        }
        while self.logged.front().is_some_and(|logged| self.journal.is_durable(logged.durable_at)) {
            let Logged { id, entries, blocks, done, is_applied, .. } =
                self.logged.pop_front().expect("it was looked at");
            assert!(self.durable < id, "transaction {} is durable after {}", id.0, self.durable.0);
            self.durable = id;
            if !is_applied {
                self.make_true(id, &entries, blocks);
            }
            self.answer(done);
            any = true;
        }
        any
    }

    /// The next transaction that there is room for in the log: those that wait for nothing else come first.
    fn next_commit(&mut self, buffers: &Buffers) -> Option<Commit<S>> {
        let front = self.front_commit()?;
        if !self.journal.has_room(front.entries.len()) {
            return None;
        }
        if !self.urgent.is_empty() {
            return self.urgent.pop_front();
        }
        if S::is_ready(self, buffers) { self.commits.pop_front() } else { None }
    }

    /// True if a transaction was not logged, whatever it waits for.
    pub(super) fn has_commits(&self) -> bool {
        self.front_commit().is_some()
    }

    /// The transaction that is logged next.
    pub(super) fn front_commit(&self) -> Option<&Commit<S>> {
        self.urgent.front().or_else(|| self.commits.front())
    }

    fn log_transaction(&mut self, Commit { entries, blocks, done }: Commit<S>) {
        assert!(
            u64::from(blocks) <= self.gathered,
            "a transaction has {blocks} sectors, but {} were gathered",
            self.gathered
        );
        let InLog { id, first, durable_at } = self.journal.append(&entries);
        self.stats.transactions += u64::from(done != Done::Gc);
        let mut logged =
            Logged { id, first, durable_at, entries, blocks, done: Some(done), is_applied: false };
        let waiter = if let Done::User(waiter) = done { Some(waiter) } else { None };
        let AtLog { is_true, is_answered } = S::logged(self, waiter);
        if is_true {
            let entries = std::mem::take(&mut logged.entries);
            self.make_true(id, &entries, blocks);
            logged.is_applied = true;
        }
        if is_answered || self.has_canary(Canary::AnsweredBeforeCommit) {
            let done = logged.done.take();
            self.answer(done);
        }
        if logged.is_awaited() {
            self.group_commit.logged(blocks);
        }
        self.logged.push_back(logged);
    }

    fn make_true(&mut self, id: TransactionId, entries: &[S::Entry], blocks: u32) {
        assert!(self.applied < id, "transaction {} is applied after {}", id.0, self.applied.0);
        assert!(id <= self.journal.last_transaction(), "transaction {} is applied before it is logged", id.0);
        assert!(self.gathered >= u64::from(blocks), "{blocks} sectors were not gathered");
        self.gathered -= u64::from(blocks);
        self.applied = id;
        S::apply(self, id, entries);
    }

    fn answer(&mut self, done: Option<Done<S::Waiter>>) {
        if let Some(Done::User(waiter)) = done {
            S::answer(self, waiter);
        }
    }

    /// The page that replay must begin with to find every transaction that is not applied.
    pub(super) fn replay_start(&self) -> Lsn {
        let open = self.logged.iter().find(|logged| !logged.is_applied);
        open.map_or(self.journal.log.next(), |logged| logged.first)
    }
}
