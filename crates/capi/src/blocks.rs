//! Requests to a block target.

use crate::ask::ended;
use crate::boundary::Memory;
use crate::failure::Failure;
use crate::payload::Loan;
use crate::reply::{End, Reply};
use crate::status::errno_of;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::transaction::{BlockTransaction, TransactionPart};
use ocssd_lightnvm::{BufId, Buffers, Tag};

/// What is asked of a block target.
#[derive(Clone, Copy)]
pub struct BlockAsk {
    /// What to do.
    pub op: BlockOp,
    /// First block.
    pub block: u64,
    /// How many.
    pub count: u32,
    /// What is written, or where to put what is read.
    pub memory: Memory,
    /// What it is of a transaction.
    pub part: Option<(BlockTransaction, TransactionPart)>,
}

impl BlockAsk {
    /// The request.
    ///
    /// # Errors
    /// There is no memory for it now.
    pub fn request(&self, tag: Tag, loan: &mut Loan<'_>) -> Result<BlockRequest, Failure> {
        let buffer = match self.op {
            BlockOp::Read => Some(loan.room(self.memory.bytes())?),
            BlockOp::Write { .. } => Some(loan.copy_of(self.memory)?),
            _ => None,
        };
        Ok(BlockRequest { tag, op: self.op, block: self.block, count: self.count, buffer })
    }

    /// What the reply brings.
    pub fn end(&self, reply: &BlockReply, buffer: Option<BufId>, buffers: &Buffers) -> End {
        if let (BlockOp::Read, 0, Some(buffer)) = (self.op, errno_of(reply.status), buffer) {
            self.memory.fill_from(buffers, buffer, self.memory.bytes());
        }
        ended(Reply::of(reply.status), || self.words())
    }

    fn words(&self) -> String {
        match self.part {
            Some((transaction, TransactionPart::Commit)) => {
                return format!("the commit of transaction {}", transaction.0);
            }
            Some((transaction, TransactionPart::Abort)) => {
                return format!("the end of transaction {}", transaction.0);
            }
            Some((_, TransactionPart::Write)) | None => {}
        }
        let what = match self.op {
            BlockOp::Read => "a read",
            BlockOp::Write { .. } => "a write",
            BlockOp::Flush => "a flush",
            BlockOp::Discard => "a discard",
            BlockOp::WriteZeroes => "a write of zeroes",
            BlockOp::Shutdown => "the shutdown",
            BlockOp::ResetZone => "a reset of the zone",
        };
        format!("{what} of {} blocks at block {}", self.count, self.block)
    }
}
