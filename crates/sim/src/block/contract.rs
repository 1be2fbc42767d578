//! The contract itself: draws block requests, fills and checks their content, and keeps the oracle.
//!
//! Content is the block's number and the write's, repeated to the block's end, so that a block of another place, an old
//! one and a mixed one are told apart. Deliberately not here: what a history allows (`history`).

use super::mix::Mix;
use super::oracle::{Moment, Oracle};
use crate::contract::{Broken, Contract, Excuses};
use ocssd_base::Nanos;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget, CounterValue};
use ocssd_lightnvm::{BufId, Buffers, Status, Tag};
use std::collections::BTreeMap;
use std::ops::Range;

/// Most blocks of a request of an audit (chosen: a vector command's worth).
const AUDIT_BLOCKS: u32 = 64;

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    request: BlockRequest,
    sent: Moment,
    at: Nanos,
}

/// The contract of a block device.
#[derive(Clone, Debug)]
pub struct BlockContract {
    mix: Mix,
    oracle: Option<Oracle>,
    outstanding: BTreeMap<Tag, Outstanding>,
    spare: Vec<BufId>,
    /// Bytes of a block in a buffer: all, or a stamp's.
    unit: usize,
    /// Blocks in a sector.
    per_sector: u32,
    next_tag: u32,
    /// Writes so far; each has its number as content.
    writes: u64,
    audit: Option<u64>,
    /// Blocks an audit reads again one by one.
    again: Vec<u64>,
    excuses: Excuses,
    lost: u64,
    regressed: u64,
    refused: u64,
}

impl BlockContract {
    /// A contract for requests of this mix.
    #[must_use]
    pub fn new(mix: Mix) -> Self {
        assert!(mix.depth >= 1 && mix.longest >= 1, "a mix without requests");
        Self {
            mix,
            oracle: None,
            outstanding: BTreeMap::new(),
            spare: Vec::new(),
            unit: 0,
            per_sector: 1,
            next_tag: 0,
            writes: 0,
            audit: None,
            again: Vec::new(),
            excuses: Excuses::default(),
            lost: 0,
            regressed: 0,
            refused: 0,
        }
    }

    fn oracle(&mut self) -> &mut Oracle {
        self.oracle.as_mut().expect("a target was mounted")
    }

    fn send(&mut self, op: BlockOp, block: u64, count: u32, at: Nanos) -> Option<BlockRequest> {
        let buffer = self.spare.pop()?;
        let tag = Tag(self.next_tag);
        self.next_tag = self.next_tag.wrapping_add(1);
        let sent = self.oracle().tick();
        let request = BlockRequest { tag, op, block, count, buffer: Some(buffer) };
        let previous = self.outstanding.insert(tag, Outstanding { request, sent, at });
        assert!(previous.is_none(), "tag {} is outstanding twice", tag.0);
        Some(request)
    }

    /// Where a block of a request begins in its buffer.
    fn first_byte(&self, offset: u32) -> usize {
        usize::try_from(offset).expect("32 bits fit an index") * self.unit
    }

    /// Blocks a request changes: a discard reaches whole sectors, the blocks beside them keep their content.
    fn changed(&self, request: &BlockRequest) -> Range<u64> {
        let (from, to) = (request.block, request.block + u64::from(request.count));
        let part = u64::from(self.per_sector);
        match request.op {
            BlockOp::Discard => {
                from.next_multiple_of(part)..(to / part * part).max(from.next_multiple_of(part))
            }
            _ => from..to,
        }
    }

    /// Notes what a request changes and fills its buffer.
    fn note_change(&mut self, request: &BlockRequest, buffers: &mut Buffers) {
        let sent = self.outstanding[&request.tag].sent;
        let forgettable = request.op == BlockOp::Discard && !self.mix.discards_are_durable;
        for block in self.changed(request) {
            let offset = u32::try_from(block - request.block).expect("no more than the count");
            let content = if matches!(request.op, BlockOp::Write { .. }) {
                self.writes += 1;
                let buffer = request.buffer.expect("every request has one");
                fill(buffers.bytes_mut(buffer, self.first_byte(offset), self.unit), block, self.writes);
                self.writes
            } else {
                0
            };
            self.oracle().sent(block, content, sent, forgettable);
        }
    }

    /// The oldest read outstanding: what it may show must be remembered.
    fn oldest_read(&self) -> Moment {
        let reads = self.outstanding.values().filter(|other| other.request.op == BlockOp::Read);
        reads.map(|other| other.sent).min().unwrap_or(Moment(u64::MAX))
    }

    fn judge(&mut self, done: &Outstanding, status: Status, buffers: &Buffers) -> Result<(), Broken> {
        match done.request.op {
            BlockOp::Read if status.has_data() => self.judge_content(done, buffers)?,
            _ if !status.is_success() => self.judge_failure(done, status)?,
            BlockOp::Flush | BlockOp::Shutdown => {
                let oldest = self.oldest_read();
                self.oracle().durable_before(done.sent, oldest);
            }
            BlockOp::Write { .. } | BlockOp::Discard | BlockOp::WriteZeroes => {
                let durable = matches!(done.request.op, BlockOp::Write { fua: true });
                let oldest = self.oldest_read();
                let changed = self.changed(&done.request);
                self.oracle().made(changed, done.sent, durable, oldest);
            }
            BlockOp::Read | BlockOp::ResetZone => {}
        }
        Ok(())
    }

    fn judge_content(&mut self, done: &Outstanding, buffers: &Buffers) -> Result<(), Broken> {
        for offset in 0..done.request.count {
            let block = done.request.block + u64::from(offset);
            let buffer = done.request.buffer.expect("every request has one");
            let content = read_content(buffers.bytes(buffer, self.first_byte(offset), self.unit), block)?;
            let judged = self.oracle().read(block, done.sent, content);
            if let Err(broken) = judged {
                // An old version of the block, where nothing better can be had.
                if !self.excuses.regress || content > self.writes {
                    return Err(broken);
                }
                self.regressed += 1;
                self.oracle().replace(block, content);
            }
        }
        Ok(())
    }

    fn judge_failure(&mut self, done: &Outstanding, status: Status) -> Result<(), Broken> {
        let Outstanding { request, sent, .. } = *done;
        let (excused, rule, promised) = if request.op == BlockOp::Read {
            self.lost += 1;
            let blocks = request.block..request.block + u64::from(request.count);
            let may_fail = self.excuses.lose || self.oracle().may_fail(blocks, sent);
            let excused = may_fail && status == Status::UNRECOVERED_READ;
            (excused, "reads succeed", "a read of sound media succeeds")
        } else {
            self.refused += 1;
            // A change of a part of a sector reads the rest of it.
            let excused = self.excuses.refuse || self.excuses.lose && self.per_sector > 1;
            (excused, "changes succeed", "a change of a device with good chunks enough succeeds")
        };
        if request.op != BlockOp::Read {
            let changed = self.changed(&request);
            self.oracle().refused(changed, sent);
        } else if self.audit.is_some() && request.count > 1 {
            // A failed read says nothing about its other blocks.
            self.again.extend(request.block..request.block + u64::from(request.count));
        }
        let found = || format!("{:?} of blocks {} + {}: {status}", request.op, request.block, request.count);
        if excused { Ok(()) } else { Err(Broken::new(rule, promised, found())) }
    }
}

fn fill(place: &mut [u8], block: u64, write: u64) {
    for pair in place.chunks_exact_mut(16) {
        pair[..8].copy_from_slice(&block.to_le_bytes());
        pair[8..].copy_from_slice(&write.to_le_bytes());
    }
}

/// The write a block's content is of, 0 for zeroes.
fn read_content(bytes: &[u8], block: u64) -> Result<u64, Broken> {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let (found, write) = (word(&bytes[..8]), word(&bytes[8..16]));
    let is_whole = bytes.chunks_exact(16).all(|pair| pair == &bytes[..16]);
    if is_whole && (write == 0 && found == 0 || write > 0 && found == block) {
        return Ok(write);
    }
    let found =
        format!("content of block {found}, write {write}, {}", if is_whole { "whole" } else { "mixed" });
    let promised = format!("block {block} holds a write of its own, whole, or zeroes");
    Err(Broken::new("own content, whole", promised, found))
}

impl Contract for BlockContract {
    type Target = dyn BlockTarget;

    fn mounted(&mut self, target: &Self::Target, buffers: &mut Buffers) -> Result<(), Broken> {
        let format = buffers.format();
        let bytes = usize::try_from(target.block_bytes()).expect("32 bits fit an index");
        assert!(format.sector_bytes.is_multiple_of(bytes), "blocks of {bytes} bytes part no sector");
        self.per_sector = u32::try_from(format.sector_bytes / bytes).expect("few");
        assert!(self.per_sector == 1 || format.data_bytes == format.sector_bytes, "a stamp has no parts");
        self.unit = format.data_bytes / (format.sector_bytes / bytes);
        let longest = self.mix.longest.max(AUDIT_BLOCKS).div_ceil(self.per_sector);
        self.spare = (0..self.mix.depth).map(|_| buffers.take(longest)).collect();
        self.outstanding.clear();
        match &self.oracle {
            None => self.oracle = Some(Oracle::new(target.block_count())),
            Some(oracle) if oracle.block_count() != target.block_count() => {
                let blocks = |count: u64| format!("the device has {count} blocks");
                let (was, is) = (oracle.block_count(), target.block_count());
                return Err(Broken::new("size", blocks(was), blocks(is)));
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn draw(&mut self, draw: u64, now: Nanos, buffers: &mut Buffers) -> Option<BlockRequest> {
        let blocks = self.oracle().block_count();
        let drawn = self.mix.at(self.writes, blocks).draw(draw, blocks);
        let request = self.send(drawn.op, drawn.block, drawn.count, now)?;
        if !matches!(drawn.op, BlockOp::Read | BlockOp::Flush) {
            self.note_change(&request, buffers);
        }
        Some(request)
    }

    fn shutdown(&mut self, now: Nanos) -> BlockRequest {
        self.send(BlockOp::Shutdown, 0, 0, now).expect("nothing is outstanding at a shutdown")
    }

    fn begin_audit(&mut self) {
        assert!(self.outstanding.is_empty(), "an audit begins when everything was answered");
        self.audit = Some(0);
    }

    fn audit(&mut self, now: Nanos) -> Option<BlockRequest> {
        let at = self.audit?;
        if self.spare.is_empty() {
            return None;
        }
        if let Some(block) = self.again.pop() {
            return self.send(BlockOp::Read, block, 1, now);
        }
        let left = self.oracle().block_count() - at;
        if left == 0 {
            return None;
        }
        let count = AUDIT_BLOCKS.min(u32::try_from(left).unwrap_or(AUDIT_BLOCKS));
        self.audit = Some(at + u64::from(count));
        self.send(BlockOp::Read, at, count, now)
    }

    fn replied(&mut self, reply: &BlockReply, buffers: &Buffers) -> Result<&'static str, Broken> {
        let Some(done) = self.outstanding.remove(&reply.tag) else {
            let found = format!("{reply:?} answers none");
            return Err(Broken::new("answered once", "every request is answered once", found));
        };
        self.oracle().tick();
        self.judge(&done, reply.status, buffers)?;
        self.spare.push(done.request.buffer.expect("every request has one"));
        Ok(name(done.request.op))
    }

    fn end_audit(&mut self) -> Result<(), Broken> {
        let (asked, blocks) = (self.audit.take(), self.oracle().block_count());
        if asked == Some(blocks) && self.again.is_empty() {
            return Ok(());
        }
        let found = format!("reading ended at {asked:?}");
        Err(Broken::new("audit reads all", format!("all {blocks} blocks are read"), found))
    }

    fn outstanding(&self) -> u32 {
        u32::try_from(self.outstanding.len()).expect("no more than the depth")
    }

    fn oldest(&self) -> Option<Nanos> {
        // Tags count up, and time does not fall: the first was sent first.
        self.outstanding.first_key_value().map(|(_, other)| other.at)
    }

    fn power_cut(&mut self) {
        self.outstanding.clear();
        self.audit = None;
        self.again.clear();
        if let Some(oracle) = &mut self.oracle {
            oracle.power_cut();
        }
    }

    fn excuse(&mut self, excuses: Excuses) {
        self.excuses = excuses;
    }

    fn request_in_words(request: &BlockRequest) -> (u32, String) {
        let BlockRequest { tag, op, block, count, .. } = request;
        let what = match op {
            BlockOp::Flush | BlockOp::Shutdown => format!("{op:?}"),
            _ => format!("{op:?} of {count} blocks from {block}"),
        };
        (tag.0, what)
    }

    fn reply_in_words(reply: &BlockReply) -> (u32, String) {
        (reply.tag.0, reply.status.to_string())
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("requests.blocks_written", self.writes),
            ("requests.reads_lost_to_the_media", self.lost),
            ("requests.changes_refused", self.refused),
            ("requests.blocks_older_than_lost_media", self.regressed),
        ]
    }

    fn target_summary(&self, target: &Self::Target) -> String {
        target.summary()
    }

    fn wear_spread(&self, target: &Self::Target) -> Option<u32> {
        let counters = target.counters();
        let gauge = |name| {
            let found = counters.iter().find(|counter| counter.name == name)?;
            if let CounterValue::Gauge(value) = found.value { Some(value) } else { None }
        };
        let spread = gauge("wear_spread_bound").filter(|_| gauge("read_only") == Some(0));
        spread.and_then(|spread| u32::try_from(spread).ok()).filter(|&spread| spread > 0)
    }

    fn target_counts(&self, target: &Self::Target) -> Vec<(&'static str, u64)> {
        let count = |value| if let CounterValue::Count(count) = value { Some(count) } else { None };
        target
            .counters()
            .into_iter()
            .filter_map(|counter| Some((counter.name, count(counter.value)?)))
            .collect()
    }
}

const fn name(op: BlockOp) -> &'static str {
    match op {
        BlockOp::Read => "requests.reads",
        BlockOp::Write { fua: false } => "requests.writes",
        BlockOp::Write { fua: true } => "requests.writes_fua",
        BlockOp::Flush => "requests.flushes",
        BlockOp::Discard => "requests.discards",
        BlockOp::WriteZeroes => "requests.writes_of_zeroes",
        BlockOp::Shutdown => "requests.shutdowns",
        BlockOp::ResetZone => "requests.zone_resets",
    }
}
