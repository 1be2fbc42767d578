//! Requests of a target of zones: each with what it is answered with if nothing fails.
//!
//! Deliberately not here: the table (`request_table`), what is refused, and how each kind is carried out.

use crate::request_table::{RequestKind, RequestTable};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::zoned::{ZonedAnswer, ZonedReply, ZonedRequest};

/// Requests at once: as pblk takes.
pub const REQUESTS_MAX: u32 = 4096;

impl RequestKind for ZonedAnswer {
    type Request = ZonedRequest;
    type Reply = ZonedReply;

    fn count(request: &ZonedRequest) -> u32 {
        request.count
    }

    fn reply(&self, request: &ZonedRequest, status: Status) -> ZonedReply {
        let answer = if status.is_success() { *self } else { Self::Done };
        ZonedReply { tag: request.tag, status, answer }
    }
}

/// All of them.
pub type Requests = RequestTable<ZonedAnswer>;

impl Requests {
    /// Replies at once to a request that is not taken; there is room.
    pub fn answer(&mut self, request: &ZonedRequest, status: Status, answer: ZonedAnswer) {
        self.reply(ZonedReply { tag: request.tag, status, answer });
    }
}
