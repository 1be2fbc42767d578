//! Reads: all parts of a page are looked up together when a request comes, so that it shows one state; then they come from a
//! flush's buffer, from buffer units, or from media.
//!
//! A chunk that is read is held until the read is over. Every sector from media is judged by its checksum. Deliberately not here:
//! sectors that are asked for again (`ox::retry`).

use super::change::Source;
use super::extent::{Extent, index};
use super::store::Eleos;
use crate::ox::flight::Purpose;
use crate::ox::retry::Whose;
use crate::read_again::Failed;
use ocssd_base::{Slab, SlabKey};
use ocssd_ftl::{Append, PhysicalAddress};
use ocssd_lightnvm::interface::Content;
use ocssd_lightnvm::interface::log_structured::{LogAnswer, LogRefusal, LogReply, PageId};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op, Status, Tag};
use std::collections::VecDeque;

/// Reads of media in flight (chosen: two for each unit of a drive with 32).
const FLIGHT_MAX: u32 = 64;
/// Requests that read at once (chosen: as many as queues of a host are deep).
pub const REQUESTS_MAX: u32 = 1024;

/// Bytes of contents that are kept for the next reads at most (chosen: those of a deep queue of short pages, or of one long page).
const CONTENT_KEPT_BYTES: usize = 4 << 20;

/// A request that is read.
#[derive(Clone, Debug)]
struct Pending {
    tag: Tag,
    into: Content,
    /// Bytes of the whole page.
    page_bytes: u32,
    content: Vec<u8>,
    /// Parts that are not there.
    left: u32,
    status: Status,
}

/// A part of a page that is read from media.
#[derive(Clone, Copy, Debug)]
pub struct PartRead {
    request: SlabKey,
    /// Its first sector, and how many.
    pub first: PhysicalAddress,
    pub count: u32,
    /// Bytes before it in the first sector; its bytes; where they go in the request's content.
    skip: u32,
    bytes: u32,
    to: u32,
    /// Where it is read to; none before it is sent.
    pub buffer: Option<BufId>,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Reads {
    requests: Slab<Pending>,
    waiting: VecDeque<PartRead>,
    sent: Slab<PartRead>,
    spare: Vec<BufId>,
    /// Memory of contents that nobody has, and bytes of it.
    contents: Vec<Vec<u8>>,
    kept_bytes: usize,
    /// Parts of the page that is looked up: empty in between.
    parts: Vec<Extent>,
}

impl Reads {
    /// None; buffers of `unit` sectors are taken now.
    pub fn new(unit: u32, buffers: &mut Buffers) -> Self {
        Self {
            requests: Slab::new(REQUESTS_MAX),
            waiting: VecDeque::new(),
            sent: Slab::new(FLIGHT_MAX),
            spare: (0..FLIGHT_MAX).map(|_| buffers.take_whole(unit)).collect(),
            contents: Vec::new(),
            kept_bytes: 0,
            parts: Vec::new(),
        }
    }

    /// So many bytes, in memory that an earlier read had, if there is any.
    fn take_content(&mut self, bytes: usize) -> Vec<u8> {
        let mut content = self.contents.pop().unwrap_or_default();
        assert!(self.kept_bytes >= content.capacity(), "{} bytes are kept in all", self.kept_bytes);
        self.kept_bytes -= content.capacity();
        content.clear();
        content.resize(bytes, 0);
        content
    }

    /// A content is not needed any more.
    fn give_back(&mut self, content: Vec<u8>) {
        if self.kept_bytes + content.capacity() <= CONTENT_KEPT_BYTES {
            self.kept_bytes += content.capacity();
            self.contents.push(content);
        }
    }

    /// A part that was sent.
    pub fn get(&self, key: SlabKey) -> &PartRead {
        self.sent.get(key)
    }

    /// True if nothing is read.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Requests that are read.
    pub fn len(&self) -> usize {
        self.requests.len()
    }
}

impl Eleos {
    /// Begins to read a page, or refuses to. There is room.
    pub(super) fn take_read(
        &mut self,
        tag: Tag,
        (page, offset): (PageId, u32),
        into: Content,
        buffers: &mut Buffers,
    ) {
        if matches!(into, Content::Staged { .. }) || !into.lies_within(buffers) {
            return self.store.refuse(tag, LogRefusal::BadContent);
        }
        let Some(page_bytes) = self.store.page_bytes(page) else {
            return self.store.refuse(tag, LogRefusal::NoSuchPage);
        };
        let wanted = into.bytes().min(page_bytes.saturating_sub(offset));
        self.store.stats.reads += 1;
        self.store.stats.read_bytes += u64::from(wanted);
        if let Some(newest) = self.store.newest.get(&page) {
            let change = self.store.changes.get(newest.number);
            match change.content.part(newest.at + offset.min(page_bytes), wanted) {
                Source::Bytes(content) => into.scatter(buffers, content),
                Source::Whole(buffer, first) => {
                    let mut content = self.store.reads.take_content(index(wanted));
                    let whole = buffers.whole(buffer, 0, buffers.sectors(buffer));
                    content.copy_from_slice(&whole[first..first + index(wanted)]);
                    into.scatter(buffers, &content);
                    self.store.reads.give_back(content);
                }
            }
            self.store.stats.read_cached += 1;
            return self
                .store
                .replies
                .push_back(LogReply::success(tag, LogAnswer::Page { bytes: page_bytes }));
        }
        let content = self.store.reads.take_content(index(wanted));
        let pending = Pending { tag, into, page_bytes, content, left: 1, status: Status::SUCCESS };
        let request = self.store.reads.requests.insert(pending);
        let request = request.unwrap_or_else(|_| unreachable!("room was asked for before"));
        let mut parts = std::mem::take(&mut self.store.reads.parts);
        parts.extend(self.store.map.parts(page));
        assert!(wanted == 0 || offset < page_bytes, "bytes behind the end of page {} are read", page.0);
        let (mut start, end) = (0, offset.saturating_add(wanted));
        for part in parts.drain(..) {
            let (from, to) = (offset.max(start), end.min(start + part.bytes));
            if from < to {
                self.read_part(request, part, (from - start, to - from), from - offset, buffers);
            }
            start += part.bytes;
        }
        self.store.reads.parts = parts;
        assert_eq!(start, page_bytes, "page {} has other parts than bytes", page.0);
        self.request_part_over(request, Status::SUCCESS, buffers);
    }

    /// Bytes of a part: from its buffer unit, or from media later.
    fn read_part(
        &mut self,
        request: SlabKey,
        part: Extent,
        (before, bytes): (u32, u32),
        to: u32,
        buffers: &Buffers,
    ) {
        let (place, byte) = self.grid().place(part.spot);
        let (skipped, skip) = ((byte + before) / self.sector_bytes, (byte + before) % self.sector_bytes);
        let first = PhysicalAddress(place.0 + u64::from(skipped));
        if let Some((buffer_unit, sector)) = self.held(first) {
            let whole = buffers.whole(self.buffer.buffer(buffer_unit), 0, self.sizes.unit);
            let at = index(sector * self.sector_bytes + skip);
            let pending = self.store.reads.requests.get_mut(request);
            pending.content[index(to)..index(to + bytes)].copy_from_slice(&whole[at..at + index(bytes)]);
            self.store.stats.read_cached += 1;
            return;
        }
        self.space.hold(self.space.shape.chunk_of(first).0);
        self.store.reads.requests.get_mut(request).left += 1;
        let count = self.grid().sectors(skip, bytes);
        assert!(count <= self.sizes.unit, "a part of {count} sectors leaves its buffer unit");
        self.store.stats.read_sectors += u64::from(count);
        let read = PartRead { request, first, count, skip, bytes, to, buffer: None };
        self.store.reads.waiting.push_back(read);
        self.work_due = true;
    }

    /// Sends reads of parts, as far as there are buffers. True if any was.
    pub(super) fn serve_reads(&mut self) -> bool {
        let mut any = false;
        while let Some(&part) = self.store.reads.waiting.front() {
            if !self.flight.has_room(1) || self.store.reads.spare.is_empty() {
                break;
            }
            self.store.reads.waiting.pop_front();
            let buffer = self.store.reads.spare.pop();
            let key = self.store.reads.sent.insert(PartRead { buffer, ..part });
            let key = key.unwrap_or_else(|_| unreachable!("there are as many places as buffers"));
            let (chunk, sector) = self.space.shape.chunk_of(part.first);
            let addresses = self.run_at(Append { chunk, sector }, part.count);
            self.flight.send(Purpose::Own(key), Op::Read, addresses, buffer, 0);
            any = true;
        }
        any
    }

    /// A read of a part ended.
    pub(super) fn part_read_done(&mut self, key: SlabKey, completion: &Completion, buffers: &mut Buffers) {
        let PartRead { count, buffer, .. } = *self.store.reads.sent.get(key);
        let buffer = buffer.expect("it was sent");
        assert!((1..=64).contains(&count), "a read of {count} sectors");
        let (mut bad, mut how) = (0_u64, Status::SUCCESS);
        for sector in 0..count {
            let status = completion.status_of(sector);
            let is_sound = status.has_data() && super::sector::is_sound((buffer, sector), buffers);
            if !is_sound {
                bad |= 1 << sector;
                how = if status.has_data() { Status::UNRECOVERED_READ } else { status };
            }
        }
        if bad != 0 {
            return self.retry(Whose::Own(key), Failed::new(bad, how), buffers);
        }
        self.part_read_over(key, Status::SUCCESS, buffers);
    }

    /// Every sector of a part was read, or given up.
    pub(super) fn part_read_over(&mut self, key: SlabKey, status: Status, buffers: &mut Buffers) {
        let PartRead { request, first, count, skip, bytes, to, buffer } = self.store.reads.sent.remove(key);
        let buffer = buffer.expect("it was sent");
        assert!(
            skip + bytes <= count * self.sector_bytes,
            "a part leaves the {count} sectors that were read"
        );
        let whole = buffers.whole(buffer, 0, count);
        let pending = self.store.reads.requests.get_mut(request);
        pending.content[index(to)..index(to + bytes)]
            .copy_from_slice(&whole[index(skip)..index(skip + bytes)]);
        self.store.reads.spare.push(buffer);
        self.space.let_go(self.space.shape.chunk_of(first).0);
        self.work_due = true;
        self.request_part_over(request, status, buffers);
    }

    fn request_part_over(&mut self, request: SlabKey, status: Status, buffers: &mut Buffers) {
        let pending = self.store.reads.requests.get_mut(request);
        assert!(pending.left > 0, "a part of a read ended twice");
        pending.left -= 1;
        if pending.status.is_success() {
            pending.status = status;
        }
        if pending.left > 0 {
            return;
        }
        let Pending { tag, into, page_bytes, content, status, .. } =
            self.store.reads.requests.remove(request);
        assert!(
            u32::try_from(content.len()).is_ok_and(|bytes| bytes <= page_bytes),
            "more than a page was read"
        );
        let answer = if status.is_success() {
            into.scatter(buffers, &content);
            LogAnswer::Page { bytes: page_bytes }
        } else {
            LogAnswer::Done
        };
        self.store.reads.give_back(content);
        self.store.replies.push_back(LogReply { tag, status, refusal: None, answer });
    }
}
