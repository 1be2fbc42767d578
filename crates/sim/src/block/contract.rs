//! The contract itself: draws block requests, fills and checks their content, and keeps the oracle.
//!
//! The oracle says what a block may hold; of each sector the media harm it is told whose it was. Deliberately not here: what a
//! history allows (`history`), and parts of transactions over several requests (`parts`).

mod parts;

use super::atomic::Atomicity;
use super::history::Settled;
use super::mix::Mix;
use super::oracle::{Moment, Oracle};
use super::several::Several;
use super::stamp::{self, Stamp};
use crate::contract::{Broken, Contract, Media, Room};
use crate::counted;
use crate::watched::{Harm, Harmed};
use crate::wear::Promise;
use crate::world::LIMIT;
use ocssd_base::Nanos;
use ocssd_flash::FailedOp;
use ocssd_lightnvm::block::{BlockOp, BlockReply, BlockRequest, BlockTarget};
use ocssd_lightnvm::transaction::TransactionPart;
use ocssd_lightnvm::{BufId, Buffers, Ppa, Status, Tag};
use ocssd_targets::registry::{Limits, Reach};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
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
    limits: Limits,
    oracle: Option<Oracle>,
    atomicity: Atomicity,
    several: Several,
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
    /// The drive said since the last mount that it keeps nothing any more.
    is_stopped: bool,
    /// Places of what the target keeps for itself that were harmed.
    records: Vec<Ppa>,
    /// Blocks of a page of a map that lies on media in pages, as the target counts them; 0 if there is none. With a page all its
    /// blocks are lost.
    map_page_blocks: u64,
    /// Pages of which blocks could not be read, no more than records were harmed.
    lost_pages: BTreeSet<u64>,
    /// Records of the target's own that were ever harmed.
    records_harmed: usize,
    /// Versions of blocks whose places changed without a word.
    changed: BTreeSet<(u64, u64)>,
    lost: u64,
    regressed: u64,
    unseen: u64,
    refused: u64,
}

impl BlockContract {
    /// A contract for requests of this mix, with a target of these limits.
    #[must_use]
    pub fn new(mix: Mix, limits: Limits) -> Self {
        assert!(mix.depth >= 1 && mix.longest >= 1, "a mix without requests");
        Self {
            mix,
            limits,
            oracle: None,
            atomicity: Atomicity::default(),
            several: Several::default(),
            outstanding: BTreeMap::new(),
            spare: Vec::new(),
            unit: 0,
            per_sector: 1,
            next_tag: 0,
            writes: 0,
            audit: None,
            again: Vec::new(),
            is_stopped: false,
            records: Vec::new(),
            map_page_blocks: 0,
            lost_pages: BTreeSet::new(),
            records_harmed: 0,
            changed: BTreeSet::new(),
            unseen: 0,
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
        self.note_transaction(request);
        for block in self.changed(request) {
            let offset = u32::try_from(block - request.block).expect("no more than the count");
            let content = if matches!(request.op, BlockOp::Write { .. }) {
                self.fill(request, offset, buffers)
            } else {
                0
            };
            self.oracle().sent(block, content, sent, forgettable);
        }
    }

    /// Gives a block of a write a content of its own.
    fn fill(&mut self, request: &BlockRequest, offset: u32, buffers: &mut Buffers) -> u64 {
        self.writes += 1;
        let buffer = request.buffer.expect("every request has one");
        let (block, write) = (request.block + u64::from(offset), self.writes);
        stamp::fill(buffers.bytes_mut(buffer, self.first_byte(offset), self.unit), Stamp { block, write });
        write
    }

    /// Notes a write that must be whole after a power cut.
    fn note_transaction(&mut self, request: &BlockRequest) {
        let is_write = matches!(request.op, BlockOp::Write { .. });
        if !is_write {
            self.atomicity.zeroing_sent(request.tag);
        } else if request.count <= self.mix.atomic_blocks && self.per_sector == 1 {
            let blocks = request.block..request.block + u64::from(request.count);
            self.atomicity.sent(request.tag, blocks, self.writes + 1);
        } else {
            self.atomicity.other_sent(request.tag, self.writes + 1);
        }
    }

    /// The oldest read outstanding: what it may show must be remembered.
    fn oldest_read(&self) -> Moment {
        let reads = self.outstanding.values().filter(|other| other.request.op == BlockOp::Read);
        reads.map(|other| other.sent).min().unwrap_or(Moment(u64::MAX))
    }

    fn judge(
        &mut self,
        done: &Outstanding,
        status: Status,
        buffers: &Buffers,
        room: &dyn Fn() -> Room,
    ) -> Result<(), Broken> {
        if let Some(role) = self.several.role_of(done.request.tag) {
            return self.judge_part(done, role, status, room);
        }
        match done.request.op {
            BlockOp::Read if status.has_data() => self.judge_content(done, buffers)?,
            _ if !status.is_success() => self.judge_failure(done, status, room)?,
            BlockOp::Flush | BlockOp::Shutdown => {
                let oldest = self.oldest_read();
                self.oracle().durable_before(done.sent, oldest);
                self.atomicity.durable_before(done.sent);
            }
            BlockOp::Write { .. } | BlockOp::Discard | BlockOp::WriteZeroes => {
                let forced = matches!(done.request.op, BlockOp::Write { fua: true });
                let durable = forced || self.mix.answers_are_durable;
                let oldest = self.oldest_read();
                let changed = self.changed(&done.request);
                self.oracle().made(changed, done.sent, durable, oldest);
                let now = self.oracle().now();
                self.atomicity.made(done.request.tag, now, durable);
            }
            BlockOp::Read | BlockOp::ResetZone => {}
        }
        Ok(())
    }

    fn judge_content(&mut self, done: &Outstanding, buffers: &Buffers) -> Result<(), Broken> {
        for offset in 0..done.request.count {
            let block = done.request.block + u64::from(offset);
            let buffer = done.request.buffer.expect("every request has one");
            let bytes = buffers.bytes(buffer, self.first_byte(offset), self.unit);
            let content = stamp::read(bytes, block);
            let judged = content.clone().and_then(|content| self.oracle().read(block, done.sent, content));
            if let (Ok(content), Ok(Settled::Survived)) = (content, &judged) {
                self.atomicity.found(block, content);
            }
            match judged {
                Ok(settled) => self.regressed += u64::from(settled == Settled::Older),
                Err(_) if self.is_changed_unseen(block, done.sent, bytes) => {
                    self.unseen += 1;
                    self.oracle().unknown(block);
                }
                Err(broken) => return Err(broken),
            }
        }
        Ok(())
    }

    /// A record of the target's own cannot be read: at the next mount what it tells of may be gone.
    fn record_lost(&mut self, at: Ppa, media: &mut dyn Media) {
        let chunks = match self.limits.lost_record {
            Reach::Chunk => vec![at.chunk],
            Reach::Line => media.line_of(at.chunk),
        };
        let oracle = self.oracle.as_mut().expect("a target was mounted");
        // A discard's record goes when another covers it (a checkpoint), and is lost with that.
        oracle.zeroes_untold();
        for sector in media.contents(&chunks) {
            let stamps = sector.chunks_exact(self.unit).filter_map(stamp::of);
            stamps.filter(|stamp| stamp.write > 0).for_each(|stamp| oracle.untold(stamp.block, stamp.write));
        }
    }

    /// True if these blocks may be errors because a page of the map was lost: each record that was harmed may have been one.
    fn is_lost_with_page(&mut self, blocks: &std::ops::Range<u64>) -> bool {
        if self.map_page_blocks == 0 {
            return false;
        }
        let part = u64::from(self.per_sector) * self.map_page_blocks;
        let (first, last) = (blocks.start / part, (blocks.end - 1) / part);
        if (first..=last).any(|page| self.lost_pages.contains(&page)) {
            return true;
        }
        let may_be_one_more = self.lost_pages.len() < self.records_harmed;
        if may_be_one_more && first == last {
            self.lost_pages.insert(first);
        }
        may_be_one_more
    }

    /// True if wrong content of a block is that of a target that does not find what changed on the media: of its own place, or
    /// of one whose address changed.
    fn is_changed_unseen(&mut self, block: u64, sent: Moment, bytes: &[u8]) -> bool {
        let is_stray =
            stamp::of(bytes).is_some_and(|found| self.changed.contains(&(found.block, found.write)));
        !self.limits.finds_changed_content && (is_stray || self.oracle().may_fail(block..block + 1, sent))
    }

    fn judge_failure(
        &mut self,
        done: &Outstanding,
        status: Status,
        room: &dyn Fn() -> Room,
    ) -> Result<(), Broken> {
        let Outstanding { request, sent, .. } = *done;
        let found = || format!("{:?} of blocks {} + {}: {status}", request.op, request.block, request.count);
        let blocks = request.block..request.block + u64::from(request.count);
        if request.op == BlockOp::Read {
            self.lost += 1;
            if self.audit.is_some() && request.count > 1 {
                // A failed read says nothing about its other blocks.
                self.again.extend(blocks.clone());
            }
            let is_of_drive = status.is_drive_failure() && room().drive_failed;
            let is_excused = is_of_drive
                || status == Status::UNRECOVERED_READ
                    && (self.oracle().may_fail(blocks.clone(), sent) || self.is_lost_with_page(&blocks));
            let broken = || Broken::new("reads succeed", "a read of sound media succeeds", found());
            return if is_excused { Ok(()) } else { Err(broken()) };
        }
        self.refused += 1;
        let changed = self.changed(&request);
        self.oracle().refused(changed, sent);
        self.atomicity.refused(request.tag);
        // A change of a part of a sector reads the rest of it.
        let part = u64::from(self.per_sector);
        let around = blocks.start / part * part..blocks.end.next_multiple_of(part);
        let is_part = status == Status::UNRECOVERED_READ && around != blocks;
        if is_part && self.oracle().may_fail(around, sent) {
            return Ok(());
        }
        let room = room();
        let is_of_drive = (room.drive_failed || self.is_stopped) && status.is_drive_failure();
        if is_of_drive || room.is_short() {
            return Ok(());
        }
        let Room { good_chunks, chunks_needed, .. } = room;
        let promised = format!(
            "a change of a device with good chunks enough succeeds, and {good_chunks} are good of {chunks_needed} that are needed"
        );
        Err(Broken::new("changes succeed", promised, found()))
    }
}

impl Contract for BlockContract {
    type Target = dyn BlockTarget;

    const KNOWS_DEAD_DRIVES: bool = true;

    fn mounted(
        &mut self,
        target: &Self::Target,
        buffers: &mut Buffers,
        chunks: Ordering,
    ) -> Result<(), Broken> {
        let format = buffers.format();
        let bytes = usize::try_from(target.block_bytes()).expect("32 bits fit an index");
        assert!(format.sector_bytes.is_multiple_of(bytes), "blocks of {bytes} bytes part no sector");
        self.per_sector = u32::try_from(format.sector_bytes / bytes).expect("few");
        assert!(self.per_sector == 1 || format.data_bytes == format.sector_bytes, "a stamp has no parts");
        self.unit = format.data_bytes / (format.sector_bytes / bytes);
        let longest = self.mix.longest.max(AUDIT_BLOCKS).div_ceil(self.per_sector);
        self.spare = (0..self.mix.depth).map(|_| buffers.take(longest)).collect();
        self.outstanding.clear();
        self.several.clear();
        self.is_stopped = false;
        self.map_page_blocks = counted::gauge(target, "map_page_blocks").unwrap_or(0);
        let has_fewer = !self.limits.keeps_size && chunks.is_lt();
        let has_others = !self.limits.keeps_size && chunks.is_ne();
        match &mut self.oracle {
            None => self.oracle = Some(Oracle::new(target.block_count())),
            Some(oracle) if has_fewer && target.block_count() < oracle.block_count() => {
                oracle.shrink(target.block_count());
            }
            Some(oracle) if has_others && target.block_count() > oracle.block_count() => {
                // Linux keeps metadata for every line that has a good chunk: with the last of one gone, users get that; and chunks
                // that the drive does not report as OFFLINE any more are users' again.
                return Err(Broken::new(LIMIT, "no more blocks than before", "more"));
            }
            Some(oracle) if oracle.block_count() != target.block_count() => {
                let blocks = |count: u64| format!("the device has {count} blocks");
                let (was, is) = (oracle.block_count(), target.block_count());
                return Err(Broken::new("size", blocks(was), blocks(is)));
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn draw(
        &mut self,
        draw: u64,
        now: Nanos,
        buffers: &mut Buffers,
        target: &mut Self::Target,
    ) -> Option<BlockRequest> {
        if self.spare.is_empty() {
            return None;
        }
        let blocks = self.oracle().block_count();
        let drawn = self.mix.at(self.writes, blocks).draw(draw, blocks);
        if let Some(role) = self.draw_part(draw, drawn, target) {
            let (op, block, count) = match role.1 {
                TransactionPart::Write => (drawn.op, drawn.block, drawn.count),
                TransactionPart::Commit | TransactionPart::Abort => (BlockOp::Flush, 0, 0),
            };
            let request = self.send(op, block, count, now)?;
            self.note_part(&request, role, buffers);
            return Some(request);
        }
        let request = self.send(drawn.op, drawn.block, drawn.count, now)?;
        if !matches!(drawn.op, BlockOp::Read | BlockOp::Flush) {
            self.note_change(&request, buffers);
        }
        Some(request)
    }

    fn shutdown(&mut self, now: Nanos, _: &Buffers) -> BlockRequest {
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

    fn replied(
        &mut self,
        reply: &BlockReply,
        buffers: &mut Buffers,
        room: &dyn Fn() -> Room,
    ) -> Result<&'static str, Broken> {
        let Some(done) = self.outstanding.remove(&reply.tag) else {
            let found = format!("{reply:?} answers none");
            return Err(Broken::new("answered once", "every request is answered once", found));
        };
        self.oracle().tick();
        self.judge(&done, reply.status, buffers, room)?;
        self.spare.push(done.request.buffer.expect("every request has one"));
        Ok(name(done.request.op))
    }

    fn end_audit(&mut self) -> Result<(), Broken> {
        let (asked, blocks) = (self.audit.take(), self.oracle().block_count());
        if asked == Some(blocks) && self.again.is_empty() {
            return self.atomicity.judge();
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

    fn power_cut(&mut self, media: &mut dyn Media) {
        self.outstanding.clear();
        self.several.clear();
        self.audit = None;
        self.again.clear();
        if let Some(oracle) = &mut self.oracle {
            oracle.power_cut();
        }
        self.atomicity.power_cut();
        self.records.retain(|&at| media.is_still_harmed(at));
        for at in self.records.clone() {
            self.record_lost(at, media);
        }
    }

    fn harmed(&mut self, harmed: &Harmed, media: &mut dyn Media) {
        let Some(oracle) = &mut self.oracle else { return };
        let mut may_be_record = harmed.content.is_empty();
        for part in harmed.content.chunks_exact(self.unit).map(stamp::of) {
            match part {
                Some(Stamp { write: 0, .. }) => {
                    oracle.zeroes_harmed();
                    // A line's start metadata fill a write unit, most of it with zeroes, and their checksum covers them.
                    may_be_record |= self.limits.lost_record == Reach::Line;
                }
                Some(Stamp { block, write }) => {
                    oracle.harmed(block, write);
                    self.several.harmed(block, write);
                    if harmed.harm == Harm::Changed {
                        self.changed.insert((block, write));
                    }
                }
                None => {
                    may_be_record = true;
                    break;
                }
            }
        }
        if may_be_record {
            self.records.push(harmed.at);
            self.records_harmed += 1;
            self.record_lost(harmed.at, media);
        }
    }

    fn command_failed(&mut self, op: FailedOp, status: Status) {
        // The target asks again, for a read less often than for a change: that a drive fails one in all tries is told apart.
        self.is_stopped |= op == FailedOp::Read && status.is_drive_failure();
    }

    fn content_in_words(&self, content: &[u8]) -> String {
        let words = |part: &[u8]| match if part.is_empty() { None } else { stamp::of(part) } {
            Some(Stamp { write: 0, .. }) => "zeroes".to_owned(),
            Some(Stamp { block, write }) => format!("write {write} of block {block}"),
            None => "a record of the target's own".to_owned(),
        };
        if content.is_empty() {
            return words(content);
        }
        content.chunks_exact(self.unit).map(words).collect::<Vec<_>>().join(", ")
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
            ("requests.blocks_changed_unseen", self.unseen),
            ("transactions.met_by_a_power_cut", self.atomicity.judged().0),
            ("transactions.there_after_it", self.atomicity.judged().1),
            ("transactions.over_requests_committed", self.several.ended().0),
            ("transactions.over_requests_given_up", self.several.ended().1),
            ("transactions.parts_that_gave_way", self.several.given_way()),
        ]
    }

    fn target_summary(&self, target: &Self::Target) -> String {
        target.summary()
    }

    fn chunks_needed(target: &Self::Target) -> Option<u32> {
        counted::gauge(target, "chunks_needed").and_then(|chunks| u32::try_from(chunks).ok())
    }

    fn wear_promise(&self, target: &Self::Target) -> Option<Promise> {
        counted::wear_spread(target).map(|spread| Promise::Lines { spread })
    }

    fn target_counts(&self, target: &Self::Target) -> Vec<(&'static str, u64)> {
        counted::counts(target)
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
