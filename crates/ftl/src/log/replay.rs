//! Reading a log back: pages in order from where a checkpoint says, to the first gap, as whole transactions.
//!
//! Pages come in any order, from any place, some twice, some torn, some of generations that ended before. Of two pages of
//! one number the younger generation wins, and a generation once left is not gone back to: what an older mount wrote behind
//! the end of the log that a younger one read stays forgotten. Deliberately not here: reading media.

use super::entry::{Count, LogEntry, Record, TransactionId};
use super::page::{Generation, LogPage, Lsn};
use ocssd_base::usize_of;
use std::collections::BTreeMap;
use std::fmt;

/// A transaction that was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction<E = LogEntry> {
    /// Which.
    pub id: TransactionId,
    /// What it changed, in order.
    pub entries: Vec<E>,
}

/// Why pages with sound checksums are no log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// A commit names more entries than came before it, and the checkpoint does not have it.
    Entries {
        /// The page of the commit.
        lsn: Lsn,
        /// Entries it names.
        named: Count,
        /// Entries there are.
        found: usize,
    },
    /// Transactions go back.
    Order {
        /// The page of the commit.
        lsn: Lsn,
        /// The transaction.
        found: TransactionId,
        /// The one before it.
        after: TransactionId,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entries { lsn, named, found } => write!(
                f,
                "the commit in log page {} should have {named} entries before it, but has {found}: the log was written by a \
                 program with a defect",
                lsn.0
            ),
            Self::Order { lsn, found, after } => write!(
                f,
                "transactions in the log should count up, but {} follows {} in page {}: the log was written by a program with \
                 a defect",
                found.0, after.0, lsn.0
            ),
        }
    }
}

impl std::error::Error for ReplayError {}

/// The pages of a log as they were found.
#[derive(Clone, Debug)]
pub struct Replay<E = LogEntry> {
    pages: BTreeMap<Lsn, BTreeMap<Generation, Vec<E>>>,
    /// Every page before this one was durable, as a page of this generation says.
    durable: BTreeMap<Generation, Lsn>,
}

/// What came of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed<E = LogEntry> {
    /// Committed transactions, in order.
    pub transactions: Vec<Transaction<E>>,
    /// The page after the last that counts.
    pub end: Lsn,
    /// Pages that count.
    pub pages: u64,
    /// Entries behind the last commit: of a transaction that was aborted by the end of the log.
    pub aborted_entries: usize,
    /// The media lost pages that were durable: the log ends before this page, and went further. What it ends with is whole
    /// transactions, but not all that were answered.
    pub lost_before: Option<Lsn>,
}

impl<E> Default for Replay<E> {
    fn default() -> Self {
        Self { pages: BTreeMap::new(), durable: BTreeMap::new() }
    }
}

impl<E: Record> Replay<E> {
    /// Takes a page that was found.
    pub fn add(&mut self, page: LogPage<E>) {
        let durable = self.durable.entry(page.generation).or_default();
        *durable = page.durable.unwrap_or_default().max(*durable);
        self.pages.entry(page.lsn).or_default().insert(page.generation, page.entries);
    }

    /// The highest generation of any page.
    #[must_use]
    pub fn newest_generation(&self) -> Option<Generation> {
        self.pages.values().filter_map(|versions| versions.last_key_value().map(|(&of, _)| of)).max()
    }

    /// The transactions from page `start` on that a checkpoint of `generation` does not have: those after `applied`.
    ///
    /// # Errors
    /// [`ReplayError`] if sound pages contradict each other.
    pub fn run(
        &self,
        start: Lsn,
        generation: Generation,
        applied: TransactionId,
    ) -> Result<Replayed<E>, ReplayError> {
        let (mut at, mut current, mut newest) = (start, generation, applied);
        let mut transactions = Vec::new();
        let mut open: Vec<E> = Vec::new();
        while let Some((&of, entries)) = self.pages.get(&at).and_then(BTreeMap::last_key_value) {
            if of < current {
                break;
            }
            if of > current {
                // The mount that began it threw away what was not committed.
                open.clear();
                current = of;
            }
            for &entry in entries {
                let Some((id, named)) = entry.as_commit() else {
                    open.push(entry);
                    continue;
                };
                let found = std::mem::take(&mut open);
                if id <= applied {
                    continue;
                }
                if id <= newest {
                    return Err(ReplayError::Order { lsn: at, found: id, after: newest });
                }
                if found.len() != usize_of(named) {
                    return Err(ReplayError::Entries { lsn: at, named, found: found.len() });
                }
                newest = id;
                transactions.push(Transaction { id, entries: found });
            }
            at = at.next();
        }
        assert!(at >= start, "a replay ends before it starts");
        // Every mount reads what was durable before its own pages. A checkpoint of a mount needs no page of mounts before.
        let durable = self.durable.range(generation..).map(|(_, &durable)| durable).max();
        let lost_before = durable.filter(|&durable| at < durable);
        let (pages, aborted_entries) = (at.0 - start.0, open.len());
        Ok(Replayed { transactions, end: at, pages, aborted_entries, lost_before })
    }
}
