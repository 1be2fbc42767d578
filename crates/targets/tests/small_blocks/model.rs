//! Requests to a target of small blocks, and what each block may hold while they are in flight.

use super::disk::{Handle, SECTOR, disk};
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::{BufId, Buffers, Geometry, Out, Payload, PayloadFormat, Status, Tag, Target};
use ocssd_targets::SmallBlocks;
use std::collections::BTreeMap;

pub const BLOCK: usize = 512;
/// Blocks of the largest request.
pub const LARGEST: u32 = 600;

/// A change of a block: what it leaves, and whether the host knows that it happened.
#[derive(Clone, Copy, Debug)]
struct Change {
    version: u64,
    tag: u32,
    is_answered: bool,
}

struct Sent {
    request: BlockRequest,
    /// Of a read, per block: the changes before this one cannot be seen any more.
    oldest: Vec<usize>,
}

/// A target on a disk, and the history of each block.
pub struct Model {
    pub target: SmallBlocks,
    pub disk: Handle,
    pub out: Out<BlockReply>,
    pub label: String,
    history: Vec<Vec<Change>>,
    sent: BTreeMap<u32, Sent>,
    spare: Vec<BufId>,
    next: u32,
    turns: u64,
    pub failed: Vec<(BlockRequest, Status)>,
}

/// What a block holds after the write of this version.
pub fn content(block: u64, version: u64) -> [u8; BLOCK] {
    let mut bytes = [u8::try_from(version % 251).expect("small"); BLOCK];
    if version == 0 {
        return [0; BLOCK];
    }
    bytes[..8].copy_from_slice(&block.to_le_bytes());
    bytes[8..16].copy_from_slice(&version.to_le_bytes());
    bytes
}

fn index(block: u64) -> usize {
    usize::try_from(block).expect("few")
}

impl Model {
    pub fn new(sectors: usize, inner_depth: usize, requests: usize, label: &str, seed: u64) -> Self {
        let format = PayloadFormat::new(Payload::Bytes, &Geometry::example(1, 1, 1, 8, 8));
        let mut buffers = Buffers::new(format);
        let (inner, disk) = disk(sectors, inner_depth, seed);
        let target = SmallBlocks::new(inner, 512, &mut buffers).expect("sound settings");
        let whole = format.sectors_of_blocks(LARGEST, 512);
        let zeroes = Change { version: 0, tag: u32::MAX, is_answered: true };
        Self {
            spare: (0..requests).map(|_| buffers.take(whole)).collect(),
            history: vec![vec![zeroes]; sectors * SECTOR / BLOCK],
            target,
            disk,
            out: Out::new(buffers, 1),
            label: label.to_owned(),
            sent: BTreeMap::new(),
            next: 1,
            turns: 0,
            failed: Vec::new(),
        }
    }

    pub fn blocks(&self) -> u64 {
        self.target.block_count()
    }

    pub fn in_flight(&self) -> usize {
        self.sent.len()
    }

    /// The blocks a change changes: of a discard, those of whole sectors.
    fn changed(&self, request: &BlockRequest) -> std::ops::Range<u64> {
        let end = request.block + u64::from(request.count);
        match request.op {
            BlockOp::Write { .. } | BlockOp::WriteZeroes => request.block..end,
            BlockOp::Discard => {
                let per = u64::try_from(SECTOR / BLOCK).expect("few");
                let (first, last) = (request.block.div_ceil(per) * per, end / per * per);
                first..last.max(first)
            }
            _ => 0..0,
        }
    }

    /// Sends a request; false if the target has no room.
    pub fn send(&mut self, op: BlockOp, block: u64, count: u32) -> bool {
        let buffer = self.spare.pop().expect("as many buffers as requests");
        let (tag, version) = (self.next, u64::from(self.next));
        self.next += 1;
        let request = BlockRequest { tag: Tag(tag), op, block, count, buffer: Some(buffer) };
        let whole = self.out.buffers.sectors(buffer);
        self.out.buffers.data_mut(buffer, 0, whole).fill(0xEE);
        if let BlockOp::Write { .. } = op {
            for (place, block) in (0..).zip(block..block + u64::from(count)) {
                let bytes = self.out.buffers.bytes_mut(buffer, place * BLOCK, BLOCK);
                bytes.copy_from_slice(&content(block, version));
            }
        }
        if !self.target.submit(Nanos::ZERO, &request, &mut self.out).is_taken() {
            self.spare.push(buffer);
            return false;
        }
        let version = if matches!(op, BlockOp::Write { .. }) { version } else { 0 };
        for block in self.changed(&request) {
            self.history[index(block)].push(Change { version, tag, is_answered: false });
        }
        let newest = |block| {
            let history: &Vec<Change> = &self.history[index(block)];
            history.iter().rposition(|change| change.is_answered).expect("the first one is")
        };
        let is_read = op == BlockOp::Read;
        let oldest =
            if is_read { (block..block + u64::from(count)).map(newest).collect() } else { Vec::new() };
        self.sent.insert(tag, Sent { request, oldest });
        true
    }

    /// One turn; true if a request was answered.
    pub fn turn(&mut self) -> bool {
        self.target.advance(Nanos::ZERO, &mut self.out);
        assert!(self.out.commands().is_empty(), "{}: a disk in memory sends no commands", self.label);
        self.turns += 1;
        // Dear while many requests are in flight.
        if self.in_flight() < 30 || self.turns.is_multiple_of(64) {
            self.target.check();
        }
        let replies = std::mem::take(self.out.replies_mut().0);
        let any = !replies.is_empty();
        replies.into_iter().for_each(|reply| self.judge(reply));
        any
    }

    /// Runs until so many requests are in flight.
    pub fn drain_to(&mut self, most: usize) {
        for _ in 0..1_000_000 {
            if self.in_flight() <= most {
                return;
            }
            self.turn();
        }
        panic!("{}: {} requests have no end", self.label, self.in_flight());
    }

    fn judge(&mut self, reply: BlockReply) {
        let Sent { request, oldest } = self.sent.remove(&reply.tag.0).expect("it was sent");
        self.spare.push(request.buffer.expect("all have one"));
        // A weak sector is one that was read.
        let is_weak = reply.status == Status::HIGH_ECC && request.op == BlockOp::Read;
        if !reply.status.is_success() && !is_weak {
            self.failed.push((request, reply.status));
            for block in self.changed(&request) {
                // Nothing of it happened.
                self.history[index(block)].retain(|change| change.tag != request.tag.0);
            }
            return;
        }
        for block in self.changed(&request) {
            let mut changes = self.history[index(block)].iter_mut();
            changes.find(|change| change.tag == request.tag.0).expect("it is there").is_answered = true;
        }
        if request.op == BlockOp::Read {
            self.judge_read(&request, &oldest);
        }
    }

    fn judge_read(&self, request: &BlockRequest, oldest: &[usize]) {
        let buffer = request.buffer.expect("a read has a buffer");
        for (place, &oldest) in oldest.iter().enumerate() {
            let block = request.block + u64::try_from(place).expect("few");
            let found = self.out.buffers.bytes(buffer, place * BLOCK, BLOCK);
            let allowed = &self.history[index(block)][oldest..];
            let fits = allowed.iter().any(|change| found == content(block, change.version));
            assert!(fits, "{}: block {block} of {request:?} is not one of {allowed:?}", self.label);
        }
        // The sector the last block ends in may have been filled, nothing behind it.
        let end = index(u64::from(request.count)) * BLOCK;
        let whole = index(u64::from(self.out.buffers.sectors(buffer))) * SECTOR;
        let behind = end.next_multiple_of(SECTOR);
        let rest = self.out.buffers.bytes(buffer, behind, whole - behind);
        assert!(rest.iter().all(|&byte| byte == 0xEE), "{}: {request:?} wrote behind itself", self.label);
    }

    /// With nothing in flight every block holds its last change.
    pub fn check_content(&self) {
        assert_eq!(self.in_flight(), 0, "{}: requests are in flight", self.label);
        let disk = self.disk.borrow();
        for (place, (found, history)) in disk.content.chunks_exact(BLOCK).zip(&self.history).enumerate() {
            let (block, last) = (u64::try_from(place).expect("few"), history.last().expect("never empty"));
            assert!(found == content(block, last.version), "{}: block {block} lost {last:?}", self.label);
        }
    }
}
