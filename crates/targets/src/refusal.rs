//! What is wrong with a request before any of it is tried: the same for every target that maps blocks.

use ocssd_lightnvm::Status;
use ocssd_lightnvm::block::{BlockOp, BlockRequest};

/// What a target takes at the moment.
#[derive(Clone, Copy, Debug)]
pub struct Takes {
    /// Its blocks.
    pub blocks: u64,
    /// It was shut down.
    pub is_shut_down: bool,
    /// The status of what would change it; none if it takes that.
    pub refuses_changes: Option<Status>,
}

/// The status a request is refused with; none of one that can be tried.
#[inline]
pub fn refusal(request: &BlockRequest, takes: Takes) -> Option<Status> {
    if takes.is_shut_down {
        return Some(Status::NAMESPACE_NOT_READY);
    }
    let end = request.block.checked_add(u64::from(request.count));
    let is_inside = end.is_some_and(|end| end <= takes.blocks);
    let needs_buffer = matches!(request.op, BlockOp::Read | BlockOp::Write { .. });
    let changes = matches!(request.op, BlockOp::Write { .. } | BlockOp::Discard | BlockOp::WriteZeroes);
    match request.op {
        BlockOp::Flush | BlockOp::Shutdown => None,
        BlockOp::ResetZone => Some(Status::INVALID_OPCODE),
        _ if request.count == 0 || needs_buffer && request.buffer.is_none() => Some(Status::INVALID_FIELD),
        _ if !is_inside => Some(Status::LBA_OUT_OF_RANGE),
        _ => takes.refuses_changes.filter(|_| changes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{BufId, Tag};

    #[test]
    fn what_cannot_be_tried_is_refused_with_the_status_that_names_it() {
        let open = Takes { blocks: 8, is_shut_down: false, refuses_changes: None };
        let read_only = Takes { refuses_changes: Some(Status::WRITE_TO_READ_ONLY), ..open };
        let full = Takes { refuses_changes: Some(Status::CAPACITY_EXCEEDED), ..open };
        let shut_down = Takes { is_shut_down: true, ..open };
        let write = BlockOp::Write { fua: false };
        for (op, block, count, takes, expected) in [
            (BlockOp::Read, 7, 1, open, None),
            (BlockOp::Read, 7, 2, open, Some(Status::LBA_OUT_OF_RANGE)),
            (BlockOp::Read, u64::MAX, 2, open, Some(Status::LBA_OUT_OF_RANGE)),
            (write, 0, 0, open, Some(Status::INVALID_FIELD)),
            (write, 0, 8, open, None),
            (write, 0, 8, read_only, Some(Status::WRITE_TO_READ_ONLY)),
            (BlockOp::Discard, 0, 1, read_only, Some(Status::WRITE_TO_READ_ONLY)),
            (write, 0, 8, full, Some(Status::CAPACITY_EXCEEDED)),
            (BlockOp::Read, 0, 1, full, None),
            (BlockOp::WriteZeroes, 0, 1, read_only, Some(Status::WRITE_TO_READ_ONLY)),
            (BlockOp::Read, 0, 1, read_only, None),
            (BlockOp::Shutdown, 0, 0, read_only, None),
            (BlockOp::Flush, 0, 0, read_only, None),
            (BlockOp::ResetZone, 0, 1, open, Some(Status::INVALID_OPCODE)),
            (BlockOp::Flush, 0, 0, shut_down, Some(Status::NAMESPACE_NOT_READY)),
        ] {
            let request = BlockRequest { tag: Tag(1), op, block, count, buffer: Some(BufId(0)) };
            assert_eq!(refusal(&request, takes), expected, "{op:?} of {count} at {block}: {takes:?}");
        }
        // Only what moves data needs a buffer.
        let invalid = Some(Status::INVALID_FIELD);
        for (op, count, expected) in [
            (BlockOp::Read, 1, invalid),
            (write, 1, invalid),
            (BlockOp::Discard, 0, invalid),
            (BlockOp::Discard, 1, None),
            (BlockOp::WriteZeroes, 1, None),
            (BlockOp::Shutdown, 0, None),
        ] {
            let request = BlockRequest { tag: Tag(1), op, block: 0, count, buffer: None };
            assert_eq!(refusal(&request, open), expected, "{op:?} of {count} without a buffer");
        }
    }
}
