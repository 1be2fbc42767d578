//! Pages come into memory: from a buffer unit that still has them, or from media.
//!
//! What the media lost is lost for the blocks of that page: each is an error until it is written again. Deliberately not here:
//! when a sector is asked for again (`ox::retry`), who needs which page.

use super::super::store::{BlockRead, OxBlock};
use super::pages::{PageNumber, Writing};
use super::{lost_place, page_codec};
use crate::ox::canary::Canary;
use crate::ox::flight::Purpose;
use crate::ox::retry::Whose;
use crate::ox::write_buffer::BufferUnitId;
use crate::read_again::{Failed, is_of_media};
use ocssd_base::{Slab, SlabKey};
use ocssd_ftl::{Append, Mapped, PhysicalAddress};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op, Status};
use std::collections::VecDeque;

/// Reads of pages in flight (chosen: two on each unit of a drive with 32).
const READS_MAX: u32 = 64;
/// Requests behind the first whose pages are asked for at once (chosen: as many as pages are read).
pub const AHEAD_MAX: usize = 64;

/// A read of a page.
#[derive(Clone, Copy, Debug)]
pub struct PageRead {
    page: PageNumber,
    place: PhysicalAddress,
    buffer: BufId,
}

/// Pages that are read, or wait to be.
#[derive(Clone, Debug)]
pub struct PageReads {
    waiting: VecDeque<(PageNumber, PhysicalAddress)>,
    in_flight: Slab<PageRead>,
    spare: Vec<BufId>,
}

impl PageReads {
    /// None; buffers are taken now.
    pub fn new(buffers: &mut Buffers) -> Self {
        Self {
            waiting: VecDeque::new(),
            in_flight: Slab::new(READS_MAX),
            spare: (0..READS_MAX).map(|_| buffers.take_whole(1)).collect(),
        }
    }
}

/// Whether a page may come into memory that is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Nobody waits for it yet: only if there is room.
    Within,
    /// The front of a queue needs it.
    Beyond,
}

/// Where the entries of a page are.
enum Found {
    Nothing,
    BufferUnit(BufferUnitId, u32),
    Media(PhysicalAddress),
}

impl OxBlock {
    /// True if a page is in memory; if not it is asked for.
    pub(super) fn has_page(&mut self, page: PageNumber, room: Room, buffers: &Buffers) -> bool {
        let cache = self.cache();
        if cache.pages.is_here(page) {
            return true;
        }
        let is_full = room == Room::Within && cache.pages.taken() >= cache.pages.most();
        if cache.pages.is_asked(page) || cache.failed.contains_key(&page) || is_full {
            return false;
        }
        let found = self.find_page(page);
        if room == Room::Within && !matches!(found, Found::Media(_)) {
            // It is there as soon as it is needed.
            return false;
        }
        match found {
            Found::Nothing => self.cache().pages.arrived(page, false),
            Found::BufferUnit(buffer_unit, offset) => {
                assert!(
                    page_codec::decode(page, (self.buffer.buffer(buffer_unit), offset), buffers).is_some(),
                    "{page:?} is not in its buffer unit"
                );
                let bytes = self.in_buffer_unit(page, (buffer_unit, offset), buffers);
                self.take_page_in(page, bytes, false);
            }
            Found::Media(place) => {
                self.space.hold(self.space.shape.chunk_of(place).0);
                let cache = self.cache();
                cache.pages.ask(page);
                cache.reads.waiting.push_back((page, place));
                self.work_due = true;
                return false;
            }
        }
        true
    }

    fn find_page(&self, page: PageNumber) -> Found {
        let pages = &self.store.cache.as_ref().expect("the map is in pages").pages;
        let place = match pages.writing(page) {
            Some(Writing { place: None, buffer_unit, offset }) => {
                return Found::BufferUnit(buffer_unit, offset);
            }
            Some(Writing { place, .. }) => place,
            None => pages.home(page),
        };
        let Some(place) = place else { return Found::Nothing };
        self.held(place)
            .map_or(Found::Media(place), |(buffer_unit, offset)| Found::BufferUnit(buffer_unit, offset))
    }

    fn take_page_in(&mut self, page: PageNumber, bytes: &[u8], is_fresh: bool) {
        let first = self.blocks_of(page).start;
        match self.store.l2p.decode(first, bytes) {
            Ok(()) => self.cache().pages.arrived(page, is_fresh),
            // Another program wrote it: as good as lost.
            Err(_) => self.lose_page(page),
        }
    }

    /// The blocks of a page are errors from now on.
    fn lose_page(&mut self, page: PageNumber) {
        self.cache().pages.arrived(page, false);
        self.store.stats.map_lost += 1;
        if self.has_canary(Canary::LostPageAsZeroes) {
            return;
        }
        let lost = Mapped::Media(lost_place(self.space.shape.places()));
        for block in self.blocks_of(page) {
            self.store.l2p.set(block, lost);
        }
        self.cache().pages.changed(page);
    }

    /// Sends reads of pages, as far as there are buffers. True if any was.
    pub(super) fn send_page_reads(&mut self) -> bool {
        let mut any = false;
        while self.flight.has_room(1) {
            let reads = &mut self.cache().reads;
            let Some(&buffer) = reads.spare.last() else { break };
            let Some((page, place)) = reads.waiting.pop_front() else { break };
            reads.spare.pop();
            let key = reads.in_flight.insert(PageRead { page, place, buffer });
            let key = key.unwrap_or_else(|_| unreachable!("there are as many places as buffers"));
            self.stats.map_read += 1;
            let (chunk, sector) = self.space.shape.chunk_of(place);
            let addresses = self.run_at(Append { chunk, sector }, 1);
            self.flight.send(Purpose::Own(BlockRead::Page(key)), Op::Read, addresses, Some(buffer), 0);
            any = true;
        }
        any
    }

    /// Where a page is read from, and where to.
    pub(in super::super) fn place_of_page_read(&self, key: SlabKey) -> (PhysicalAddress, BufId) {
        let reads = &self.store.cache.as_ref().expect("the map is in pages").reads;
        let PageRead { place, buffer, .. } = *reads.in_flight.get(key);
        (place, buffer)
    }

    /// Judges a page that was read.
    ///
    /// # Errors
    /// How it failed: the drive's status, or 281h if it holds something else.
    pub(in super::super) fn judge_page(
        &self,
        key: SlabKey,
        status: Status,
        buffers: &Buffers,
    ) -> Result<(), Status> {
        let reads = &self.store.cache.as_ref().expect("the map is in pages").reads;
        let PageRead { page, buffer, .. } = *reads.in_flight.get(key);
        match status {
            _ if !status.has_data() => Err(status),
            _ if page_codec::decode(page, (buffer, 0), buffers).is_none() => Err(Status::UNRECOVERED_READ),
            _ => Ok(()),
        }
    }

    /// A read of a page ended.
    pub(in super::super) fn page_read_done(
        &mut self,
        key: SlabKey,
        completion: &Completion,
        buffers: &Buffers,
    ) {
        match self.judge_page(key, completion.status, buffers) {
            Ok(()) => self.page_read_over(key, Status::SUCCESS, buffers),
            Err(status) => self.retry(Whose::Own(BlockRead::Page(key)), Failed::new(1, status), buffers),
        }
    }

    /// A page was read, or given up with `status`.
    pub(in super::super) fn page_read_over(&mut self, key: SlabKey, status: Status, buffers: &Buffers) {
        let cache = self.cache();
        let PageRead { page, place, buffer } = *cache.reads.in_flight.get(key);
        cache.reads.in_flight.free(key);
        cache.reads.spare.push(buffer);
        cache.pages.answered(page);
        self.space.let_go(self.space.shape.chunk_of(place).0);
        if status.is_success() {
            let bytes = &buffers.whole(buffer, 0, 1)[..self.page_bytes(page)];
            self.take_page_in(page, bytes, true);
        } else if is_of_media(status) {
            self.lose_page(page);
        } else {
            self.cache().failed.insert(page, status);
            if status.is_drive_failure() {
                self.stop(status);
            }
        }
        self.work_due = true;
    }

    /// True if the pages of the read in front are in memory; if not, they and those of the reads behind it are asked for.
    ///
    /// # Errors
    /// The status of a page that cannot be read, and is not lost.
    pub(in super::super) fn has_pages_of_read(
        &mut self,
        key: SlabKey,
        buffers: &Buffers,
    ) -> Result<bool, Status> {
        if self.store.cache.is_none() {
            return Ok(true);
        }
        let (first, last) = self.pages_of_read(key);
        self.cache().reading = Some((first, last));
        let mut is_here = true;
        for page in (first.0..=last.0).map(PageNumber) {
            if let Some(status) = self.cache().failed.remove(&page) {
                self.cache().reading = None;
                return Err(status);
            }
            is_here &= self.has_page(page, Room::Beyond, buffers);
        }
        if is_here {
            self.cache().reading = None;
            (first.0..=last.0).for_each(|page| self.look_page_up(PageNumber(page)));
        } else {
            self.ask_ahead_of_reads(buffers);
        }
        Ok(is_here)
    }

    fn pages_of_read(&self, key: SlabKey) -> (PageNumber, PageNumber) {
        let request = self.store.requests.get(key).request;
        let pages = &self.store.cache.as_ref().expect("the map is in pages").pages;
        let last = request.block + u64::from(request.count.max(1)) - 1;
        (pages.page_of(request.block), pages.page_of(last))
    }

    fn ask_ahead_of_reads(&mut self, buffers: &Buffers) {
        let ahead: Vec<SlabKey> = self.store.requests.waiting_reads().skip(1).take(AHEAD_MAX).collect();
        for key in ahead {
            let (first, last) = self.pages_of_read(key);
            for page in (first.0..=last.0).map(PageNumber) {
                self.has_page(page, Room::Within, buffers);
            }
        }
    }

    /// Pages of blocks that will be needed soon are asked for, as far as there is room.
    pub(in super::super) fn ask_ahead(&mut self, block: u64, count: u32, buffers: &Buffers) {
        let Some(cache) = &self.store.cache else { return };
        let (first, last) =
            (cache.pages.page_of(block), cache.pages.page_of(block + u64::from(count.max(1)) - 1));
        for page in (first.0..=last.0).map(PageNumber) {
            self.has_page(page, Room::Within, buffers);
        }
    }

    /// A request looks a page up that is in memory.
    pub(super) fn look_page_up(&mut self, page: PageNumber) {
        let was_read = self.cache().pages.look_up(page);
        let counted =
            if was_read { &mut self.store.stats.map_misses } else { &mut self.store.stats.map_hits };
        *counted += 1;
    }
}
