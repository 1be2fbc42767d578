//! What becomes of each kind of request.
//!
//! Deliberately not here: what the inner target answers (`parts`).

use super::canary::Canary;
use super::parts::{SubBlockPart, SubBlockPiece};
use super::span::Span;
use super::stages::COPY_SECTORS;
use super::target::{Shutdown, SmallBlocks};
use ocssd_base::SlabKey;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest};
use ocssd_lightnvm::{BufId, Buffers, Status, Tag, Violation};
use std::ops::Range;

/// A request that was taken and not replied to.
#[derive(Clone, Debug)]
pub(super) struct SubBlockRequest {
    /// As the host gave it.
    pub request: BlockRequest,
    /// Where it lies; `None` of a flush or shutdown.
    pub span: Option<Span>,
    /// It is among the changes that keep an order.
    pub in_order: bool,
    /// Requests to the inner target for it, offered or not.
    pub parts: u32,
    /// Its edges' buffers, from the read to the write.
    pub edges: [Option<BufId>; 2],
    /// Sectors still to be copied.
    pub to_copy: Range<u64>,
    /// It waits among those with sectors to copy.
    pub is_copying: bool,
    /// Success, or the first failure.
    pub status: Status,
    /// Which rule was broken, if one was.
    pub violation: Option<Violation>,
}

impl SubBlockRequest {
    fn new(request: BlockRequest, span: Option<Span>) -> Self {
        Self {
            request,
            span,
            in_order: false,
            parts: 0,
            edges: [None; 2],
            to_copy: 0..0,
            is_copying: false,
            status: Status::SUCCESS,
            violation: None,
        }
    }

    /// Where a request with an address lies.
    pub fn span(&self) -> &Span {
        self.span.as_ref().expect("a request with an address")
    }
}

impl SmallBlocks {
    /// Takes a sound request.
    pub(super) fn take_request(&mut self, request: BlockRequest) {
        let is_placed = !matches!(request.op, BlockOp::Flush | BlockOp::Shutdown);
        let span = is_placed.then(|| Span::new(request.block, request.count, self.per_sector));
        let key = self.requests.insert(SubBlockRequest::new(request, span));
        let key = key.unwrap_or_else(|_| unreachable!("room was checked"));
        match (request.op, span) {
            (BlockOp::Read, Some(span)) => self.begin_read(key, &span),
            (BlockOp::Discard, Some(span)) => self.take_discard(key, &span),
            (BlockOp::Flush, None) => self.pass_on(key, BlockOp::Flush),
            (BlockOp::Shutdown, None) => self.shutdown = Shutdown::Waits(key),
            (_, Some(span)) => self.queue_change(key, span.sectors(), span.is_whole()),
            (op, None) => unreachable!("{op:?} lies nowhere"),
        }
    }

    /// Reads into the host's buffer if its sectors lie on ours, else through copies.
    fn begin_read(&mut self, key: SlabKey, span: &Span) {
        if span.is_aligned() {
            self.straight(key, span.sectors());
        } else {
            self.copy_through(key, span.sectors());
        }
    }

    /// Only whole sectors are discarded.
    fn take_discard(&mut self, key: SlabKey, span: &Span) {
        let ignored = span.edges().into_iter().flatten().map(|edge| u64::from(edge.count));
        self.stats.discard_ignored_blocks += ignored.sum::<u64>();
        let whole = span.whole_sectors();
        if whole.is_empty() {
            self.finish(key);
        } else {
            self.queue_change(key, whole, true);
        }
    }

    /// A change waits for earlier ones of its sectors.
    fn queue_change(&mut self, key: SlabKey, sectors: Range<u64>, is_whole: bool) {
        if self.has_canary(Canary::OrderIgnored) {
            self.turns.push(key).expect("as many places as requests");
            return;
        }
        self.requests.get_mut(key).in_order = true;
        if self.order.arrive(key, sectors, is_whole) {
            self.turns.push(key).expect("as many places as requests");
        } else {
            self.stats.order_waits += 1;
        }
    }

    /// It is a change's turn.
    pub(super) fn begin_change(&mut self, key: SlabKey) {
        let pending = self.requests.get(key);
        let is_merge = pending.request.op != BlockOp::Discard && !pending.span().is_whole();
        if is_merge {
            self.stats.rmw_requests += 1;
            self.merges.push(key).expect("as many places as requests");
        } else {
            self.change_whole_sectors(key);
        }
    }

    /// Gives merges their buffers and reads their edges, in order, as long as there are buffers; true if any was read.
    pub(super) fn read_edges(&mut self) -> bool {
        let mut any = false;
        while let Some(&key) = self.merges.front() {
            let edges = self.requests.get(key).span().edges();
            let Some(lent) = self.stages.lend_edges(edges.map(|edge| edge.is_some())) else { break };
            self.merges.pop();
            self.requests.get_mut(key).edges = lent;
            for (edge, buffer) in edges.into_iter().zip(lent) {
                if let Some(edge) = edge {
                    self.stats.rmw_read_sectors += 1;
                    let request = inner(BlockOp::Read, edge.sector..edge.sector + 1, buffer);
                    self.ask(SubBlockPart { request: key, piece: SubBlockPiece::EdgeRead }, request);
                }
            }
            any = true;
        }
        any
    }

    /// Both edges were read: merges and writes them, then the sectors between.
    pub(super) fn write_edges(&mut self, key: SlabKey, buffers: &mut Buffers) {
        let pending = self.requests.get(key);
        let (request, span, lent) = (pending.request, *pending.span(), pending.edges);
        let unit = usize::try_from(self.block_bytes).expect("32 bits fit an index");
        let bytes = |blocks: u32| usize::try_from(blocks).expect("32 bits fit an index") * unit;
        for (edge, buffer) in span.edges().into_iter().zip(lent) {
            let (Some(edge), Some(buffer)) = (edge, buffer) else {
                assert!(edge.is_none() && buffer.is_none(), "an edge without a buffer");
                continue;
            };
            assert!(edge.first + edge.count <= self.per_sector, "an edge passes its sector");
            if self.has_canary(Canary::MergeLosesNeighbour) {
                buffers.data_mut(buffer, 0, 1).fill(0);
            }
            let op = if let BlockOp::Write { fua } = request.op {
                let from = request.buffer.expect("a write has a buffer");
                buffers.copy_bytes(
                    (from, bytes(edge.offset)),
                    (buffer, bytes(edge.first)),
                    bytes(edge.count),
                );
                BlockOp::Write { fua }
            } else {
                buffers.bytes_mut(buffer, bytes(edge.first), bytes(edge.count)).fill(0);
                BlockOp::Write { fua: false }
            };
            self.stats.rmw_written_sectors += 1;
            let inner = inner(op, edge.sector..edge.sector + 1, Some(buffer));
            self.ask(SubBlockPart { request: key, piece: SubBlockPiece::EdgeWrite }, inner);
        }
        self.change_whole_sectors(key);
    }

    /// Changes what is not an edge: straight from the host's buffer if its sectors lie on ours, else through copies.
    fn change_whole_sectors(&mut self, key: SlabKey) {
        let pending = self.requests.get(key);
        let span = *pending.span();
        let whole = span.whole_sectors();
        if whole.is_empty() {
            return;
        }
        let has_data = matches!(pending.request.op, BlockOp::Write { .. });
        if span.is_aligned() || !has_data {
            self.straight(key, whole);
        } else {
            self.copy_through(key, whole);
        }
    }

    /// Passes sectors on as they are; a request with data must begin with them.
    fn straight(&mut self, key: SlabKey, sectors: Range<u64>) {
        let BlockRequest { op, buffer, .. } = self.requests.get(key).request;
        let has_data = matches!(op, BlockOp::Read | BlockOp::Write { .. });
        if has_data {
            assert!(self.requests.get(key).span().is_aligned(), "sectors and the buffer's do not fit");
            self.stats.straight_sectors += sectors.end - sectors.start;
        }
        let request = inner(op, sectors, buffer.filter(|_| has_data));
        self.ask(SubBlockPart { request: key, piece: SubBlockPiece::Straight }, request);
    }

    /// Passes on a request without an address.
    pub(super) fn pass_on(&mut self, key: SlabKey, op: BlockOp) {
        self.ask(SubBlockPart { request: key, piece: SubBlockPiece::Straight }, inner(op, 0..0, None));
    }

    /// Queues sectors that go through copies.
    fn copy_through(&mut self, key: SlabKey, sectors: Range<u64>) {
        let pending = self.requests.get_mut(key);
        assert!(pending.to_copy.is_empty() && !pending.is_copying, "a request copies twice");
        (pending.to_copy, pending.is_copying) = (sectors, true);
        self.copies.push(key).expect("as many places as requests");
    }

    /// Gives requests with sectors to copy their buffers, in order, as long as there are any; true if any was given.
    pub(super) fn copy_on(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(&key) = self.copies.front() {
            let pending = self.requests.get_mut(key);
            let sector = pending.to_copy.start;
            let left = pending.to_copy.end - sector;
            if left == 0 {
                pending.is_copying = false;
                self.copies.pop();
                self.finish_if_over(key);
                any = true;
                continue;
            }
            let Some(buffer) = self.stages.lend_copy() else { break };
            let count = u32::try_from(left.min(u64::from(COPY_SECTORS))).expect("few");
            pending.to_copy.start += u64::from(count);
            let (op, from) = (pending.request.op, pending.request.buffer.expect("it has data"));
            if op != BlockOp::Read {
                self.move_copy(key, (buffer, sector, count), from, buffers);
            }
            self.stats.copied_sectors += u64::from(count);
            let request = inner(op, sector..sector + u64::from(count), Some(buffer));
            self.ask(
                SubBlockPart { request: key, piece: SubBlockPiece::Copy { buffer, sector, count } },
                request,
            );
            any = true;
        }
        any
    }

    /// Moves what a copy holds: into it for a write, out of it for a read.
    pub(super) fn move_copy(
        &self,
        key: SlabKey,
        (buffer, sector, count): (BufId, u64, u32),
        host: BufId,
        buffers: &mut Buffers,
    ) {
        let pending = self.requests.get(key);
        let (skip, blocks, offset) = pending.span().covered(sector, count);
        let bytes = |blocks: u32| {
            usize::try_from(u64::from(blocks) * u64::from(self.block_bytes)).expect("a buffer fits memory")
        };
        let (ours, theirs) = ((buffer, bytes(skip)), (host, bytes(offset)));
        let (from, to) = if pending.request.op == BlockOp::Read { (ours, theirs) } else { (theirs, ours) };
        buffers.copy_bytes(from, to, bytes(blocks));
    }

    /// Queues a request to the inner target.
    fn ask(&mut self, part: SubBlockPart, request: BlockRequest) {
        self.requests.get_mut(part.request).parts += 1;
        let key =
            self.parts.insert(part).unwrap_or_else(|_| unreachable!("as many places as there can be parts"));
        let request = BlockRequest { tag: Tag(key.0), ..request };
        self.to_device.push(request).expect("as many places as parts");
    }

    /// Ends a request once nothing of it is left to do.
    pub(super) fn finish_if_over(&mut self, key: SlabKey) {
        let pending = self.requests.get(key);
        if pending.parts == 0 && !pending.is_copying {
            self.finish(key);
        }
    }

    fn finish(&mut self, key: SlabKey) {
        let pending = self.requests.remove(key);
        assert_eq!(pending.parts, 0, "a request ended before its parts");
        assert!(
            pending.to_copy.is_empty() || !pending.status.is_success(),
            "a request ended before its copies"
        );
        for buffer in pending.edges.into_iter().flatten() {
            self.stages.return_edge(buffer);
        }
        if pending.in_order {
            let turns = &mut self.turns;
            self.order.leave(key, |next| turns.push(next).expect("as many places as requests"));
        }
        self.reply(pending.request.tag, pending.status, pending.violation);
    }

    pub(super) fn reply(&mut self, tag: Tag, status: Status, violation: Option<Violation>) {
        let reply = BlockReply { tag, status, violation };
        self.replies.push(reply).expect("as many places for replies as for requests");
    }
}

/// A request to the inner target; its tag comes with its part.
fn inner(op: BlockOp, sectors: Range<u64>, buffer: Option<BufId>) -> BlockRequest {
    let count = u32::try_from(sectors.end - sectors.start).expect("fewer sectors than blocks");
    BlockRequest { tag: Tag(0), op, block: sectors.start, count, buffer }
}
