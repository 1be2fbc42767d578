//! Requests of a block device: each with the rule that was broken, if one was.
//!
//! Deliberately not here: the table (`request_table`), what is refused, and how each kind is carried out.

use crate::request_table::{RequestKind, RequestTable};
use ocssd_base::SlabKey;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{Status, Violation};

/// Requests at once: as pblk takes.
pub const REQUESTS_MAX: u32 = 4096;

/// Which rule a request's first failure broke, if one was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Broken(Option<Violation>);

impl RequestKind for Broken {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn count(request: &BlockRequest) -> u32 {
        request.count
    }

    fn reply(&self, request: &BlockRequest, status: Status) -> BlockReply {
        BlockReply { tag: request.tag, status, violation: self.0 }
    }
}

/// All of them.
pub type Requests = RequestTable<Broken>;

impl Requests {
    /// Takes a request, for which there is room. Reads and changes wait for their turn; of others the caller keeps the key.
    pub fn take(&mut self, request: BlockRequest) -> SlabKey {
        let key = self.insert(request, Broken::default());
        match request.op {
            BlockOp::Read => self.queue_read(key),
            BlockOp::Write { .. } | BlockOp::Discard | BlockOp::WriteZeroes => self.queue_change(key),
            BlockOp::Flush | BlockOp::Shutdown | BlockOp::ResetZone => {}
        }
        key
    }

    /// Replies at once to a request for which there is room.
    pub fn answer(&mut self, request: &BlockRequest, status: Status) {
        self.reply(BlockReply { tag: request.tag, status, violation: None });
    }

    /// As [`Self::fail`], with the rule that was broken.
    pub fn fail_by(&mut self, key: SlabKey, status: Status, violation: Option<Violation>) {
        if self.fail(key, status) {
            self.get_mut(key).own = Broken(violation);
        }
    }
}
