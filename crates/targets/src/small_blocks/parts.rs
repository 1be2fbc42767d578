//! Requests to the inner target, and what their ends mean.
//!
//! Deliberately not here: why they were made (`request`).

use super::target::SmallBlocks;
use ocssd_base::SlabKey;
use ocssd_lightnvm::block::{BlockOp, BlockReply};
use ocssd_lightnvm::{BufId, Buffers};

/// What a request to the inner target is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubBlockPiece {
    /// It needs nothing of ours.
    Straight,
    /// Sectors through a buffer of ours.
    Copy {
        /// The buffer.
        buffer: BufId,
        /// First sector.
        sector: u64,
        /// How many.
        count: u32,
    },
    /// An edge is read, to be merged.
    EdgeRead,
    /// An edge is written.
    EdgeWrite,
}

/// A request to the inner target, under the key that is its tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubBlockPart {
    /// Whose it is.
    pub request: SlabKey,
    /// What for.
    pub piece: SubBlockPiece,
}

impl SmallBlocks {
    /// The inner target answered.
    pub(super) fn part_done(&mut self, reply: BlockReply, buffers: &mut Buffers) {
        let SubBlockPart { request: key, piece } = self.parts.remove(SlabKey(reply.tag.0));
        let pending = self.requests.get_mut(key);
        assert!(pending.parts > 0, "an answer to a request without parts");
        pending.parts -= 1;
        let well = reply.status.has_data();
        // That an edge was weak is nothing to who writes beside it.
        if pending.status.gives_way_to(reply.status) && !(well && piece == SubBlockPiece::EdgeRead) {
            (pending.status, pending.violation) = (reply.status, reply.violation);
        }
        let (op, host) = (pending.request.op, pending.request.buffer);
        match piece {
            SubBlockPiece::Straight | SubBlockPiece::EdgeWrite => {}
            SubBlockPiece::EdgeRead => {
                assert!(pending.edges.iter().any(Option::is_some), "an edge was read into nothing");
                if self.edges_read(key, buffers) {
                    return;
                }
            }
            SubBlockPiece::Copy { buffer, sector, count } => {
                if !well {
                    // The rest would only be done to fail.
                    pending.to_copy.start = pending.to_copy.end;
                } else if op == BlockOp::Read {
                    self.move_copy(key, (buffer, sector, count), host.expect("a read has a buffer"), buffers);
                }
                self.stages.return_copy(buffer);
            }
        }
        self.finish_if_over(key);
    }

    /// An edge was read. Once both are: writes them, unless one failed; true if there is more to do for the request.
    fn edges_read(&mut self, key: SlabKey, buffers: &mut Buffers) -> bool {
        let pending = self.requests.get(key);
        if pending.parts > 0 {
            return true;
        }
        if !pending.status.has_data() {
            self.stats.rmw_read_failed += 1;
            return false;
        }
        self.write_edges(key, buffers);
        true
    }

    /// Asserts that every part has a request, and every buffer lent a part or a merge.
    pub(super) fn check_parts(&self) {
        let (mut edges, mut copies) = (0, 0);
        for (key, pending) in self.requests.iter() {
            let parts = self.parts.iter().filter(|(_, part)| part.request == key).count();
            assert_eq!(u32::try_from(parts), Ok(pending.parts), "parts of request {}", key.0);
            edges += pending.edges.iter().flatten().count();
        }
        for (_, part) in self.parts.iter() {
            copies += usize::from(matches!(part.piece, SubBlockPiece::Copy { .. }));
        }
        assert_eq!(self.stages.lent(), (edges, copies), "buffers lent for edges and copies");
        let changes = self.requests.iter().filter(|(_, pending)| pending.in_order).count();
        assert_eq!(self.order.len(), changes, "changes that keep an order");
    }
}
