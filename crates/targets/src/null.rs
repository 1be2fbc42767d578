//! `null`: answers at once and keeps nothing; what a generator can do when nothing holds it back.

use ocssd_base::{Nanos, Ring};
use ocssd_lightnvm::block::{BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::{Admission, Completion, Out, Status, Target};

/// Blocks of the null device: 4 PiB of 4 KiB blocks (chosen: more than any job uses).
const BLOCKS: u64 = 1 << 40;
/// Bytes of a block.
const BLOCK_BYTES: u32 = 4096;
/// Replies not fetched yet before more requests are refused.
const REPLIES_MAX: usize = 4096;

/// The target.
#[derive(Clone, Debug)]
pub struct Null {
    replies: Ring<BlockReply>,
}

impl Default for Null {
    fn default() -> Self {
        Self { replies: Ring::new(REPLIES_MAX) }
    }
}

impl Target for Null {
    type Request = BlockRequest;
    type Reply = BlockReply;

    fn submit(&mut self, _now: Nanos, request: &BlockRequest, _out: &mut Out<BlockReply>) -> Admission {
        let reply = BlockReply { tag: request.tag, status: Status::SUCCESS, violation: None };
        if self.replies.push(reply).is_ok() { Admission::Taken } else { Admission::Full }
    }

    fn on_completion(&mut self, _now: Nanos, completion: Completion, _out: &mut Out<BlockReply>) {
        unreachable!("a target without commands got completion {}", completion.tag.0);
    }

    fn has_deadlines(&self) -> bool {
        false
    }

    fn advance(&mut self, _now: Nanos, out: &mut Out<BlockReply>) {
        while let Some(reply) = self.replies.pop() {
            out.reply(reply);
        }
    }

    fn check(&self) {
        assert!(self.replies.len() <= REPLIES_MAX, "more replies than places");
    }
}

impl BlockTarget for Null {
    fn block_bytes(&self) -> u32 {
        BLOCK_BYTES
    }

    fn block_count(&self) -> u64 {
        BLOCKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::block::BlockOp;
    use ocssd_lightnvm::{Buffers, Payload, PayloadFormat, Tag};

    #[test]
    fn everything_is_answered_in_order_and_at_once_until_nobody_fetches_answers() {
        let format =
            PayloadFormat { payload: Payload::Stamp, data_bytes: 16, sector_bytes: 4096, oob_bytes: 16 };
        let (mut null, mut out) = (Null::default(), Out::new(Buffers::new(format), 1));
        let request =
            |tag| BlockRequest { tag: Tag(tag), op: BlockOp::Flush, block: 0, count: 0, buffer: None };
        let most = u32::try_from(REPLIES_MAX).unwrap();
        for tag in 0..most {
            assert!(null.submit(Nanos::ZERO, &request(tag), &mut out).is_taken(), "request {tag}");
        }
        let admission = null.submit(Nanos::ZERO, &request(most), &mut out);
        assert_eq!((admission, null.deadline()), (Admission::Full, None), "nobody fetched an answer");
        null.check();
        null.advance(Nanos::ZERO, &mut out);
        assert_eq!(out.reply_count(), REPLIES_MAX);
        let (replies, _) = out.replies_mut();
        for (tag, reply) in (0..most).zip(replies.drain(..)) {
            assert_eq!(reply, BlockReply { tag: Tag(tag), status: Status::SUCCESS, violation: None });
        }
        null.advance(Nanos::ZERO, &mut out);
        assert!(out.commands().is_empty() && out.reply_count() == 0, "each is answered once");
        assert_eq!((null.block_bytes(), null.block_count()), (4096, 1 << 40));
    }
}
