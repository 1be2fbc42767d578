//! Pages of the index between memory and media, if memory is bounded.
//!
//! Whoever needs a key that is not in memory asks for its page and goes on when it is there: the first request, garbage collection
//! at a unit, a buffer unit that gets another place. Beyond the bound, pages that were not used for long leave memory; one that
//! changed is written before, as a record of a stream of its own. The newest checkpoint may name a page that changed since, so its
//! bytes count as live until the next one is whole ([`IndexPages::dying_in`]). Deliberately not here: what is on a page (`index`),
//! and how checkpoints name it.

use super::buffer_units::Stream;
use super::canary::Canary;
use super::flight::Purpose;
use super::index::{Leaving, Need, PagePlace};
use super::record::{RECORD_HEADER_BYTES, Record, RecordKind, records};
use super::sizes::Sizes;
use super::state::{Changes, Kv, record_bytes};
use crate::read_again::{ReadTries, as_loss, is_of_media};
use ocssd_base::{Slab, SlabKey, usize_of};
use ocssd_ftl::{Append, ChunkIndex, PhysicalAddress};
use ocssd_lightnvm::interface::key_value::{Key, KvOp, KvRequest};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op, Status};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Reads of pages in flight (chosen: two on each unit of a drive with 32).
const READS_MAX: u32 = 64;
/// Pages that a listing asks for at a time (chosen: it keeps units busy, and holds few).
const LISTED_MAX: usize = 32;
/// Pages asked for at a time when all are needed (chosen: as many as are read at a time).
const ALL_MAX: usize = 64;
/// Requests behind the first whose pages are asked for at once (chosen: as many as pages are read).
pub(super) const AHEAD_MAX: usize = 64;

/// A page that is read.
#[derive(Clone, Copy, Debug)]
struct PageRead {
    place: PagePlace,
    tries: ReadTries,
}

/// Pages on their way, and those on media that are to be forgotten.
#[derive(Clone, Debug)]
pub(super) struct IndexPages {
    waiting: VecDeque<PageRead>,
    in_flight: Slab<(PageRead, BufId)>,
    /// Where pages lie that wait to be read or are.
    asked: BTreeSet<u64>,
    /// Pages that could not be read, and how: what the media lost for good, others until somebody was told.
    failed: BTreeMap<u64, Status>,
    spare: Vec<BufId>,
    /// Checkpoints begun.
    image: u32,
    /// Pages that are none any more, which a checkpoint before the next may name.
    dying: Vec<PagePlace>,
    /// Those which the checkpoint under way, or the one given up last, does not name.
    covered: Vec<PagePlace>,
    /// Bytes of records of both in a chunk.
    dying_in: BTreeMap<ChunkIndex, u64>,
    /// Bytes of records of pages on media, both counted.
    live_bytes: u64,
    /// All pages are needed: none leaves.
    keeps_all: bool,
}

impl IndexPages {
    /// None on their way; `live_bytes` of them on media. Buffers are taken now.
    pub fn new(sizes: &Sizes, live_bytes: u64, buffers: &mut Buffers) -> Self {
        let sectors = (sizes.record_bytes_max.div_ceil(sizes.sector_bytes) + 1).min(sizes.unit);
        assert!(record_bytes(0, sizes.page_bytes) <= sizes.record_bytes_max, "pages are longer than records");
        assert!(
            sizes.page_bytes >= 266,
            "pages of {} bytes have no room for the longest entry",
            sizes.page_bytes
        );
        Self {
            waiting: VecDeque::new(),
            in_flight: Slab::new(READS_MAX),
            asked: BTreeSet::new(),
            failed: BTreeMap::new(),
            spare: (0..READS_MAX).map(|_| buffers.take_whole(sectors)).collect(),
            // Those found at mount were written before the first checkpoint of this one.
            image: 1,
            dying: Vec::new(),
            covered: Vec::new(),
            dying_in: BTreeMap::new(),
            live_bytes,
            keeps_all: false,
        }
    }

    /// True if pages wait for a checkpoint to be forgotten.
    pub fn waits(&self) -> bool {
        !self.dying_in.is_empty()
    }

    /// Bytes of a chunk that the next checkpoint sets free.
    pub fn dying_in(&self, chunk: ChunkIndex) -> u64 {
        self.dying_in.get(&chunk).copied().unwrap_or(0)
    }

    /// Chunks in which pages wait for a checkpoint, with their bytes.
    pub fn dying(&self) -> impl Iterator<Item = (ChunkIndex, u64)> {
        self.dying_in.iter().map(|(&chunk, &bytes)| (chunk, bytes))
    }

    /// Bytes of records of pages on media.
    pub const fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Checkpoints begun.
    pub const fn image(&self) -> u32 {
        self.image
    }
}

/// Bytes of a page's record.
pub(super) fn page_record_bytes(place: PagePlace) -> u32 {
    record_bytes(0, place.bytes)
}

/// The entries of a page that was read from its place, if they are there as they were written.
fn page_at(bytes: &[u8], page: PagePlace) -> Option<&[u8]> {
    let found = Record::decode(bytes)?;
    let is_it = found.header.kind == RecordKind::Index && found.header.payload_bytes == page.bytes;
    (is_it && found.is_sound(bytes)).then_some(found.payload)
}

/// The pages a request needs.
enum Pages {
    /// All are in memory.
    Here,
    /// Some are on their way.
    Asked,
    /// One cannot be read.
    Failed(Status),
}

impl Kv {
    /// True if the pages that a request needs are in memory; if not they are asked for. An error is the status of a page that
    /// cannot be read.
    pub(super) fn has_pages(&mut self, request: &KvRequest, buffers: &Buffers) -> Result<bool, Status> {
        if self.index.is_whole() {
            return Ok(true);
        }
        let reads = self.stats.index_reads;
        let missing = self.pages_of(&request.op, buffers);
        let pages = self.ask(missing, buffers);
        if matches!(request.op, KvOp::Retrieve { .. }) {
            self.stats.retrieve_index_reads += self.stats.index_reads - reads;
        }
        match pages {
            Pages::Here => Ok(true),
            Pages::Asked => Ok(false),
            Pages::Failed(status) => Err(status),
        }
    }

    /// Missing pages that an operation needs.
    fn pages_of(&mut self, op: &KvOp, buffers: &Buffers) -> Vec<PagePlace> {
        match *op {
            KvOp::Store { key, .. }
            | KvOp::Delete { key, .. }
            | KvOp::Retrieve { key, .. }
            | KvOp::Exist { key } => self.page_of_key(key, buffers).into_iter().collect(),
            KvOp::Batch { entries, .. } => {
                if entries.count > self.sizes.limits().batch_entries_max || !entries.lies_within(buffers) {
                    return Vec::new();
                }
                let keys: Vec<Key> = entries.entries(buffers).flatten().map(|entry| entry.key).collect();
                keys.into_iter().filter_map(|key| self.page_of_key(key, buffers)).collect()
            }
            KvOp::List { from, prefix_bytes, into } => {
                let is_sound = from.bytes() <= self.sizes.limits().key_bytes_max && from.lies_within(buffers);
                let from = if is_sound { from.gathered(buffers) } else { return Vec::new() };
                let Some(prefix) = from.get(..usize::from(prefix_bytes)) else { return Vec::new() };
                self.index.want_listed(&from, prefix, usize_of(into.bytes()), LISTED_MAX)
            }
            KvOp::Stage(_) | KvOp::Flush | KvOp::Shutdown => Vec::new(),
        }
    }

    fn page_of_key(&mut self, key: Key, buffers: &Buffers) -> Option<PagePlace> {
        let key = self.key(key, buffers).ok()?;
        self.index.want(&key, Need::Request)
    }

    /// True if the pages of these keys are in memory; if not they are asked for.
    pub(super) fn has_keys(&mut self, keys: &[Vec<u8>], need: Need, buffers: &Buffers) -> bool {
        if self.index.is_whole() {
            return true;
        }
        let missing = keys.iter().filter_map(|key| self.index.want(key, need)).collect();
        match self.ask(missing, buffers) {
            Pages::Here => true,
            Pages::Asked => false,
            Pages::Failed(status) => {
                // What the media lost ended changes; anything else is tried again.
                assert!(!is_of_media(status) || self.refuses_changes().is_some(), "a lost page is needed");
                self.work_due |= !is_of_media(status);
                false
            }
        }
    }

    /// True if all pages are in memory; if not, some are asked for, and none leaves.
    pub(super) fn has_all_pages(&mut self, buffers: &Buffers) -> bool {
        self.pages.keeps_all = true;
        let missing = self.index.want_listed(&[], &[], usize::MAX, ALL_MAX);
        assert!(missing.len() <= ALL_MAX, "{} pages are asked for at once", missing.len());
        let is_here = matches!(self.ask(missing, buffers), Pages::Here);
        is_here && self.index.is_whole()
    }

    /// All pages were needed, and are not any more.
    pub(super) const fn needs_all_no_more(&mut self) {
        self.pages.keeps_all = false;
    }

    /// Asks for pages: those that are in the write buffer are there at once.
    fn ask(&mut self, missing: Vec<PagePlace>, buffers: &Buffers) -> Pages {
        let mut is_asked = false;
        for place in missing {
            if let Some(&status) = self.pages.failed.get(&place.at) {
                if !is_of_media(status) {
                    self.pages.failed.remove(&place.at);
                }
                return Pages::Failed(status);
            }
            is_asked |= !self.take_buffered(place, buffers);
        }
        if is_asked { Pages::Asked } else { Pages::Here }
    }

    /// True if a page was in the write buffer; else it is read.
    fn take_buffered(&mut self, page: PagePlace, buffers: &Buffers) -> bool {
        let (place, byte) = self.place_of(page.at);
        let (chunk, sector) = self.space.shape.chunk_of(place);
        let unit = PhysicalAddress(place.0 - u64::from(sector % self.sizes.unit));
        if let Some(buffer_unit) = self.buffer_units.find(unit) {
            let begin = (place.0 - unit.0) * u64::from(self.sizes.sector_bytes) + u64::from(byte);
            let begin = usize::try_from(begin).expect("within a unit") + RECORD_HEADER_BYTES;
            let all = buffers.whole(self.buffer_units.buffer(buffer_unit), 0, self.sizes.unit);
            let is_page = self.index.arrived(page, &all[begin..begin + usize_of(page.bytes)], false);
            assert!(is_page, "{page:?} lies in the write buffer and is no page");
            return true;
        }
        if self.pages.asked.insert(page.at) {
            self.space.hold(chunk);
            self.stats.index_reads += 1;
            self.pages.waiting.push_back(PageRead { place: page, tries: ReadTries::FIRST });
            self.work_due = true;
        }
        false
    }

    /// Sends reads of pages, as far as there are buffers. True if any was.
    pub(super) fn send_page_reads(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while self.flight.has_room(1)
            && !self.pages.spare.is_empty()
            && let Some(read) = self.pages.waiting.pop_front()
        {
            let buffer = self.pages.spare.pop().expect("it was looked at");
            let read = self.pages.in_flight.insert((read, buffer));
            let read = read.unwrap_or_else(|_| unreachable!("there are as many places as buffers"));
            self.send_page_read(read, buffers);
            any = true;
        }
        any
    }

    fn send_page_read(&mut self, read: SlabKey, buffers: &mut Buffers) {
        let (PageRead { place: page, tries }, buffer) = *self.pages.in_flight.get(read);
        assert!(self.pages.asked.contains(&page.at), "{page:?} is read and nobody asked");
        let (place, byte) = self.place_of(page.at);
        let (chunk, sector) = self.space.shape.chunk_of(place);
        let count = (byte + page_record_bytes(page)).div_ceil(self.sizes.sector_bytes);
        let unit = self.sizes.unit;
        assert!(sector % unit + count <= unit, "{page:?} leaves its unit");
        buffers.want(buffer, usize_of(byte)..usize_of(byte + page_record_bytes(page)));
        let (first, count) = tries.sector().map_or((0, count), |failed| (failed, 1));
        let addresses = self.run_at(Append { chunk, sector: sector + first }, count);
        self.flight.send(Purpose::IndexPage { read }, Op::Read, addresses, Some(buffer), first);
    }

    /// A read of a page ended.
    pub(super) fn index_page_done(&mut self, read: SlabKey, completion: &Completion, buffers: &mut Buffers) {
        let (PageRead { place: page, .. }, buffer) = *self.pages.in_flight.get(read);
        let (place, byte) = self.place_of(page.at);
        let count = (byte + page_record_bytes(page)).div_ceil(self.sizes.sector_bytes);
        let Some(status) = self.pages.in_flight.get_mut(read).0.tries.on_end(completion, count) else {
            self.stats.read_again += 1;
            return self.send_page_read(read, buffers);
        };
        let bytes = &buffers.whole(buffer, 0, count)[usize_of(byte)..];
        let found = if status.has_data() { page_at(bytes, page) } else { None };
        let is_read = found.is_some_and(|payload| self.index.arrived(page, payload, true));
        if !is_read && status.has_data() && self.pages.in_flight.get_mut(read).0.tries.again() {
            self.stats.read_again += 1;
            return self.send_page_read(read, buffers);
        }
        if !is_read {
            self.page_failed(
                page,
                if status.has_data() { Status::UNRECOVERED_READ } else { as_loss(status) },
            );
        }
        self.pages.in_flight.free(read);
        self.pages.spare.push(buffer);
        let was_asked = self.pages.asked.remove(&page.at);
        assert!(was_asked, "{page:?} was read and not asked for");
        self.space.let_go(self.space.shape.chunk_of(place).0);
        self.work_due = true;
    }

    /// A page cannot be read. If the media lost it, nobody knows which of its keys there are: changes end.
    fn page_failed(&mut self, page: PagePlace, status: Status) {
        self.stats.read_failed += 1;
        self.pages.failed.insert(page.at, status);
        if is_of_media(status) && self.refuses_changes().is_none() {
            self.end_changes(Changes::IndexLost);
        }
    }

    /// Replay needed these pages, and the media lost them: what their keys hold is told to nobody, whatever a later read finds
    /// there, for records that change them were passed over.
    pub(super) fn lost_at_mount(&mut self, pages: &[PagePlace]) {
        for page in pages {
            let before = self.pages.failed.insert(page.at, Status::UNRECOVERED_READ);
            assert!(before.is_none(), "{page:?} is lost twice");
            self.stats.read_failed += 1;
            self.changes = Changes::IndexLost;
        }
    }

    /// Pages leave memory, as far as it holds more than it may. True if any was written.
    pub(super) fn evict(&mut self, buffers: &mut Buffers) -> bool {
        let Some(bound) = self.options.index_cache_bytes.filter(|_| !self.is_mounting) else { return false };
        let mut any = false;
        while self.index.resident_bytes() > bound && !self.pages.keeps_all {
            let most = u64::from(record_bytes(0, self.sizes.page_bytes));
            let has_room = self.pages.live_bytes + most <= self.sizes.index_room_bytes;
            // A checkpoint that sets free a part of it that is worth one.
            let dying: u64 = self.pages.dying().map(|(_, bytes)| bytes).sum();
            if !has_room && dying > self.sizes.index_room_bytes / 8 && !self.checkpoint.is_writing() {
                self.checkpoint.is_asked_for();
            }
            // What users push out leaves chunks to garbage collection, which itself may need pages.
            let may_write = has_room && self.refuses_changes().is_none() && self.space.spare() > 0;
            match self.index.next_leaving(may_write) {
                None => break,
                Some(Leaving::Gone) => {}
                Some(Leaving::ToWrite(lower)) => {
                    let payload = self.index.encode_page(&lower);
                    let bytes = u32::try_from(payload.len()).expect("a page is short");
                    if !self.make_room(Stream::Index, std::iter::once(record_bytes(0, bytes))) {
                        break;
                    }
                    let place = self.write_page(&payload, buffers);
                    self.index.left(&lower, place);
                    any = true;
                }
            }
        }
        any
    }

    /// Appends a page to its stream, which has room for it.
    fn write_page(&mut self, payload: &[u8], buffers: &mut Buffers) -> PagePlace {
        assert!(!self.is_mounting, "a mount writes a page");
        let header = self.single(RecordKind::Index, &[], payload);
        assert!(header.payload_bytes > 0, "a page without keys is written");
        let at = self.append(Stream::Index, &header, (&[], payload), buffers);
        let place = PagePlace { at, bytes: header.payload_bytes, image: self.pages.image };
        self.pages.live_bytes += u64::from(page_record_bytes(place));
        place
    }

    /// Garbage collection moves a page that lies at `from`. There is room for it.
    pub(super) fn move_page(&mut self, first: &[u8], payload: &[u8], buffers: &mut Buffers) {
        let to = self.write_page(payload, buffers);
        let from = self.index.page_moved(first, to);
        self.page_released(from);
    }

    /// What becomes of pages on media that changed in memory.
    pub(super) fn commit_pages(&mut self) {
        for place in self.index.take_released() {
            self.page_released(place);
        }
    }

    fn page_released(&mut self, place: PagePlace) {
        self.pages.failed.remove(&place.at);
        assert!(
            place.image <= self.pages.image,
            "{place:?} was written after {} checkpoints",
            self.pages.image
        );
        let is_named = place.image < self.pages.image && !self.has_canary(Canary::PageFreedEarly);
        if !is_named {
            return self.forget_page(place);
        }
        let chunk = self.chunk_of(place.at);
        *self.pages.dying_in.entry(chunk).or_default() += u64::from(page_record_bytes(place));
        self.pages.dying.push(place);
    }

    fn forget_page(&mut self, place: PagePlace) {
        let bytes = u64::from(page_record_bytes(place));
        assert!(self.pages.live_bytes >= bytes, "{place:?} was not counted");
        self.pages.live_bytes -= bytes;
        self.forget_record(place.at, page_record_bytes(place));
    }

    /// A checkpoint begins: what died before is not in it.
    pub(super) fn pages_imaged(&mut self) {
        self.commit_pages();
        self.pages.image += 1;
        let dying = std::mem::take(&mut self.pages.dying);
        self.pages.covered.extend(dying);
    }

    /// The checkpoint begun last is whole: what it does not name is forgotten.
    pub(super) fn pages_covered(&mut self) {
        for place in std::mem::take(&mut self.pages.covered) {
            let chunk = self.chunk_of(place.at);
            let left = self.pages.dying_in.get_mut(&chunk).expect("it was counted");
            assert!(*left >= u64::from(page_record_bytes(place)), "{place:?} dies twice");
            *left -= u64::from(page_record_bytes(place));
            if *left == 0 {
                self.pages.dying_in.remove(&chunk);
            }
            self.forget_page(place);
        }
    }

    /// The keys of a buffer unit or a unit that the index may name there.
    pub(super) fn keys_in(unit: &[u8]) -> Vec<Vec<u8>> {
        let whole = records(unit).filter(|(_, record)| record.header.kind == RecordKind::Whole);
        whole.map(|(_, record)| record.key.to_vec()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::record::RecordHeader;

    #[test]
    fn no_other_record_is_taken_for_a_page() {
        let page = |bytes| PagePlace { at: 4_096, bytes, image: 0 };
        let header = |kind| RecordHeader {
            kind,
            key_bytes: 0,
            payload_bytes: 7,
            sequence: 9,
            value: 0,
            offset: 0,
            part: 0,
            parts: 1,
        };
        let record = |kind| {
            let header: RecordHeader = header(kind);
            let mut bytes = vec![0; header.bytes() + 3];
            header.encode(&[], b"entries", &mut bytes[..header.bytes()]);
            bytes
        };
        let mut of_index = record(RecordKind::Index);
        assert_eq!(page_at(&of_index, page(7)), Some(&b"entries"[..]));
        assert_eq!(page_at(&of_index, page(6)), None, "a page of another length");
        assert_eq!(page_at(&record(RecordKind::Piece), page(7)), None, "a record of another kind");
        of_index[RECORD_HEADER_BYTES] ^= 1;
        assert_eq!(page_at(&of_index, page(7)), None, "not as it was written");
    }
}
