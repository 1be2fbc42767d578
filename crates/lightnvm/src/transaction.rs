//! Transactions of a block target that go over several requests: begun, written to, then true as a whole or not at all.
//!
//! A request takes part by its tag, which is named here before the request is sent. A *write* within a transaction is answered
//! when the target has taken its blocks; nobody sees them, the transaction's own host included, before the commit is answered. A
//! block that is written twice has its later content. A *flush* that is named as the end of a transaction commits it, durable as a
//! write of that target is, or gives it up. What is begun and not committed when the power goes or the target is shut down is as
//! if it had never been begun. Transactions do not exclude each other: of two that write a block, the later commit decides.
//!
//! A target may give up one that is open where chunks have gone bad and others need its room: its later writes and its commit are
//! answered with Command Interrupted, its abort with success, and it is as if it had never been begun.
//!
//! Deliberately not here: discards within a transaction; requests on a wire.

use crate::command::Tag;
use crate::status::Status;
use std::fmt;

/// A transaction's name, as the target chose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockTransaction(pub u64);

/// What a request is of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionPart {
    /// A write within it.
    Write,
    /// The flush that makes it true.
    Commit,
    /// The flush that gives it up.
    Abort,
}

/// How much a target takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionLimits {
    /// Transactions that are open at a time, at most; fewer while chunks are short.
    pub at_once: u32,
    /// Blocks of one; a block that is written twice counts twice.
    pub blocks: u32,
}

/// Why something was refused; nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionRefusal {
    /// As many are open as the target takes, or as there is room for.
    TooMany,
    /// It was never begun, or is over.
    NotOpen,
    /// A request that was not sent yet has this tag.
    TagInUse,
    /// The target takes no changes, with this status.
    NoChanges(Status),
}

impl fmt::Display for TransactionRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => f.write_str("no more transactions can be open: commit one, or give one up"),
            Self::NotOpen => {
                f.write_str("the transaction is not open: begin one; a power cut and a commit end it")
            }
            Self::TagInUse => {
                f.write_str("a request with this tag was named before and not sent: send it first")
            }
            Self::NoChanges(status) => write!(f, "the target takes no changes: {status}"),
        }
    }
}

impl std::error::Error for TransactionRefusal {}

/// A block target's transactions over several requests.
pub trait Transactions {
    /// How much it takes; never changes.
    fn limits(&self) -> TransactionLimits;

    /// Begins one.
    ///
    /// # Errors
    /// Why not.
    fn begin(&mut self) -> Result<BlockTransaction, TransactionRefusal>;

    /// The request of this tag, which is sent next with it, is a part of a transaction. A write that would be more than
    /// [`TransactionLimits::blocks`] is answered with Capacity Exceeded, and the transaction goes on without it.
    ///
    /// # Errors
    /// Why it cannot be.
    fn join(
        &mut self,
        transaction: BlockTransaction,
        tag: Tag,
        part: TransactionPart,
    ) -> Result<(), TransactionRefusal>;
}
