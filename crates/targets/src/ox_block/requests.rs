//! Requests of a block device whose requests may be parts of a transaction.
//!
//! Deliberately not here: the table (`request_table`), what is refused, and how each kind is carried out.

use crate::request_table::{RequestKind, RequestTable};
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::transaction::{BlockTransaction, TransactionPart};

/// Requests at once: as pblk takes.
pub const REQUESTS_MAX: u32 = 4096;

/// A part of a transaction over several requests.
pub type Role = (BlockTransaction, TransactionPart);

/// What is kept of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfRequest {
    /// A read: its blocks were looked up.
    pub is_resolved: bool,
    /// What it is of a transaction over several requests.
    pub role: Option<Role>,
}

impl RequestKind for OfRequest {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn count(request: &BlockRequest) -> u32 {
        request.count
    }

    fn reply(&self, request: &BlockRequest, status: Status) -> BlockReply {
        BlockReply { tag: request.tag, status, violation: None }
    }
}

/// All of them.
pub type Requests = RequestTable<OfRequest>;

impl Requests {
    /// Takes a request. Reads and changes wait for their turn; of others the caller keeps the key.
    ///
    /// # Errors
    /// The request, if there is no room.
    pub fn take(&mut self, request: BlockRequest, role: Option<Role>) -> Result<SlabKey, BlockRequest> {
        if !self.has_room() {
            return Err(request);
        }
        let key = self.insert(request, OfRequest { is_resolved: false, role });
        match request.op {
            // Whatever ends a transaction comes behind its writes.
            BlockOp::Flush if role.is_some() => self.queue_change(key),
            BlockOp::Read => self.queue_read(key),
            BlockOp::Write { .. } | BlockOp::Discard | BlockOp::WriteZeroes => self.queue_change(key),
            BlockOp::Flush | BlockOp::Shutdown | BlockOp::ResetZone => {}
        }
        Ok(key)
    }

    /// Replies at once.
    ///
    /// # Errors
    /// The request, if there is no room.
    pub fn answer(&mut self, request: BlockRequest, status: Status) -> Result<(), BlockRequest> {
        if !self.has_room() {
            return Err(request);
        }
        self.reply(BlockReply { tag: request.tag, status, violation: None });
        Ok(())
    }

    /// Ends every change that is not over with `status`, whatever became of its parts. The caller forgets these.
    pub fn fail_changes(&mut self, status: Status) -> bool {
        self.drop_changes();
        let is_change = |op| matches!(op, BlockOp::Write { .. } | BlockOp::Discard | BlockOp::WriteZeroes);
        let keys = self.keys(|pending| is_change(pending.request.op) || pending.own.role.is_some());
        keys.iter().for_each(|&key| self.abandon(key, status));
        !keys.is_empty()
    }
}
