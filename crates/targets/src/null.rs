//! `null`: answers at once and keeps nothing; what a generator can do when nothing holds it back.

use ocssd_base::{Nanos, Ring};
use ocssd_lightnvm::block::{BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::{Buffers, Command, Completion, Status, Target};

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

    fn submit(&mut self, _now: Nanos, request: BlockRequest) -> Result<(), BlockRequest> {
        let reply = BlockReply { tag: request.tag, status: Status::SUCCESS, violation: None };
        self.replies.push(reply).map_err(|_| request)
    }

    fn on_completion(&mut self, _now: Nanos, completion: Completion, _buffers: &mut Buffers) {
        unreachable!("a target without commands got completion {}", completion.tag.0);
    }

    fn on_deadline(&mut self, _now: Nanos) {}

    fn deadline(&self) -> Option<Nanos> {
        None
    }

    fn poll_command(&mut self, _now: Nanos, _buffers: &mut Buffers) -> Option<Command> {
        None
    }

    fn poll_reply(&mut self) -> Option<BlockReply> {
        self.replies.pop()
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
    use ocssd_lightnvm::Tag;
    use ocssd_lightnvm::block::BlockOp;

    #[test]
    fn everything_is_answered_in_order_and_at_once_until_nobody_fetches_answers() {
        let mut null = Null::default();
        let request =
            |tag| BlockRequest { tag: Tag(tag), op: BlockOp::Flush, block: 0, count: 0, buffer: None };
        let most = u32::try_from(REPLIES_MAX).unwrap();
        for tag in 0..most {
            assert!(null.submit(Nanos::ZERO, request(tag)).is_ok(), "request {tag}");
        }
        let refused = null.submit(Nanos::ZERO, request(most)).expect_err("nobody fetched an answer");
        assert_eq!((refused.tag, null.deadline()), (Tag(most), None));
        null.check();
        for tag in 0..most {
            let reply = BlockReply { tag: Tag(tag), status: Status::SUCCESS, violation: None };
            assert_eq!(null.poll_reply(), Some(reply));
        }
        assert_eq!(null.poll_reply(), None);
        assert_eq!((null.block_bytes(), null.block_count()), (4096, 1 << 40));
    }
}
