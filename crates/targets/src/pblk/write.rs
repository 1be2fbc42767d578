//! Writes and discards into the buffer, first come, first served.
//!
//! pblk made a writer that found the ring full yield and try again, whoever came first (Linux `pblk-cache.c`). Here requests wait
//! in one queue, and the oldest takes each slot as it becomes free. Deliberately not here: when buffer units are written.

use super::Pblk;
use super::canary::Canary;
use super::discards::DiscardRange;
use super::due::Due;
use super::request::Taken;
use super::waits::WaitCause;
use crate::request_table::Pending;
use ocssd_base::{SlabKey, usize_of};
use ocssd_ftl::{
    Admission, BufferUnitId, BufferUnitState, Entry, Kind, Mapped, PhysicalAddress, SEQUENCE_MAX, SectorTag,
    Sequence, Slot, Stream, Versions,
};
use ocssd_lightnvm::block::BlockOp;
use ocssd_lightnvm::{BufId, Buffers};

/// Writes whose entries of the map are looked up together: as many misses as a processor waits for at a time (10 to 16).
const FETCH_AHEAD: usize = 16;

impl Pblk {
    /// Admits what waits, as far as there is room. True if anything was admitted.
    pub(super) fn admit(&mut self, buffers: &mut Buffers) -> bool {
        let (mut any, mut fetched) = (false, 0);
        while let Some(key) = self.requests.next_change() {
            if fetched == 0 {
                fetched = self.fetch_waiting(buffers);
            }
            fetched -= 1;
            // A discard that was begun is ended, whatever comes: its record says that all of it is gone.
            let is_begun = self.is_discard_begun();
            if self.waits_for_wear() && !is_begun {
                self.stats.waits_for_wear += 1;
                self.waits_for(WaitCause::Wear);
                break;
            }
            if let Some(status) = self.refuses_changes().filter(|_| !is_begun) {
                self.requests.admitted(key);
                self.requests.fail(key, status);
                self.requests.end(key);
                any = true;
                continue;
            }
            let request = self.requests.get(key).request;
            let before = self.requests.get(key).done;
            let whole = match request.op {
                BlockOp::Write { .. } => self.admit_write(key, buffers),
                // Zeroes are data: where discards are not kept, they are written, as Linux does above pblk.
                BlockOp::WriteZeroes if !self.keeps_discards() => self.admit_write(key, buffers),
                _ => self.admit_discard(key, buffers),
            };
            any |= whole || self.requests.get(key).done > before;
            if !whole {
                break;
            }
            self.requests.admitted(key);
            let Taken { since } = self.requests.get(key).own;
            let waited = self.now.saturating_since(since);
            self.stats.long_waits.on_admitted(waited);
            let durable = matches!(request.op, BlockOp::Write { fua: true });
            if durable && !self.has_canary(Canary::FuaIgnored) {
                self.await_durable(key);
            } else {
                self.requests.end(key);
            }
        }
        any
    }

    /// Brings what the writes at the front of the queue need into the cache, if the first may go on: the map's entries, and
    /// the content, which a long queue has driven out. Returns of how many.
    fn fetch_waiting(&self, buffers: &Buffers) -> usize {
        if self.limiter.may_insert_user(1) != Admission::Granted {
            return 1;
        }
        let waiting = || self.requests.waiting_changes().take(FETCH_AHEAD);
        let next = || waiting().map(|key| self.requests.get(key).request);
        self.l2p.fetch(next().map(|request| request.block));
        let content = next().filter_map(|request| request.buffer.map(|buffer| buffers.data(buffer, 0, 1)[0]));
        // Without a use the loads would be left out.
        std::hint::black_box(content.fold(0, |seen, byte| seen ^ byte));
        FETCH_AHEAD
    }

    /// Copies as much of a write as there is room for; true once all of it is in.
    fn admit_write(&mut self, key: SlabKey, buffers: &mut Buffers) -> bool {
        let request = self.requests.get(key).request;
        while self.requests.get(key).done < request.count {
            let done = self.requests.get(key).done;
            let block = request.block + u64::from(done);
            let stream = self.classify_user(block);
            let limit = self.limit_user(request.count - done);
            if limit == 0 {
                return false;
            }
            let Some(buffer_unit) = self.filling_buffer_unit(stream, false) else { return false };
            let room = self.write_buffer.room(buffer_unit).min(limit);
            let run = if self.last_writes.is_some() { 1 } else { room.min(request.count - done) };
            let slot = self.write_buffer.first_slot(buffer_unit).0 + self.write_buffer.filled(buffer_unit);
            if request.op == BlockOp::WriteZeroes {
                assert!(!self.keeps_discards(), "zeroes are written where a record would do");
                buffers.data_mut(self.ring, slot, run).fill(0);
            } else {
                let from = request.buffer.expect("a write without a buffer was refused");
                buffers.copy_data(from, done, self.ring, slot, run);
            }
            for offset in 0..run {
                self.put(buffer_unit, block + u64::from(offset));
            }
            self.limiter_user(run);
            self.requests.get_mut(key).done += run;
            self.close_if_full(buffer_unit);
        }
        true
    }

    /// Blocks of one request become nowhere; a record of it goes the way of a write.
    fn admit_discard(&mut self, key: SlabKey, buffers: &mut Buffers) -> bool {
        let pending = *self.requests.get(key);
        let request = pending.request;
        let is_kept = self.keeps_discards() && !self.has_canary(Canary::DiscardUnrecorded);
        if pending.done == 0 && is_kept && !self.record_discard(request.block, request.count, buffers) {
            return false;
        }
        let slice = (request.count - pending.done).min(self.options.knobs.discard_slice_blocks);
        for block in (request.block + u64::from(pending.done)..).take(usize::try_from(slice).expect("small"))
        {
            self.forget(block);
        }
        self.stats.user_discarded += u64::from(slice);
        self.requests.get_mut(key).done += slice;
        assert!(pending.done + slice <= request.count, "more is discarded than was asked for");
        let whole = pending.done + slice == request.count;
        if !whole {
            self.call(Due::ADMISSION);
        }
        whole
    }

    /// True if some blocks of a discard are nowhere and the others not yet, though its record covers all of them.
    pub(super) fn is_discard_begun(&self) -> bool {
        let Some(key) = self.requests.next_change() else { return false };
        let &Pending { request, done, .. } = self.requests.get(key);
        let is_discard = match request.op {
            BlockOp::Discard => true,
            BlockOp::WriteZeroes => self.keeps_discards(),
            _ => false,
        };
        is_discard && done > 0
    }

    /// Writes down a discard; false if there is no room yet.
    fn record_discard(&mut self, block: u64, count: u32, buffers: &mut Buffers) -> bool {
        assert!(self.keeps_discards(), "discards are written down only where they are kept");
        if self.discards.is_full() && self.has_canary(Canary::DiscardsOverflow) {
            return true;
        }
        if self.discards.is_full() {
            self.checkpoints.ask();
            // A checkpoint covers what is on media, and no more.
            if let Some(newest) = self.discards.newest_pending() {
                self.close_older(newest);
            }
        }
        if self.discards.is_full() || self.checkpoints.is_held() || self.checkpoints.awaits_discards() {
            return false;
        }
        let stream = Stream(0);
        if self.limit_user(1) == 0 {
            return false;
        }
        let Some(buffer_unit) = self.filling_buffer_unit(stream, false) else { return false };
        let slot = self.write_buffer.first_slot(buffer_unit).0 + self.write_buffer.filled(buffer_unit);
        DiscardRange { block, count }.encode(buffers.data_mut(self.ring, slot, 1));
        let sequence = self.next_sequence();
        let tag = SectorTag { kind: Kind::Discard, block: 0, sequence };
        self.discards.add(sequence, block, count);
        self.write_buffer.push(buffer_unit, Entry { tag, ..Entry::PAD }, true);
        self.limiter_user(1);
        self.close_if_full(buffer_unit);
        true
    }

    pub(super) fn next_sequence(&mut self) -> Sequence {
        assert!(self.sequence.0 < SEQUENCE_MAX, "every sequence number was used");
        self.sequence.0 += 1;
        self.sequence
    }

    /// The buffer unit of a stream that takes sectors, a fresh one if need be.
    pub(super) fn filling_buffer_unit(&mut self, stream: Stream, for_gc: bool) -> Option<BufferUnitId> {
        if let Some(buffer_unit) = self.streams[stream.index()].filling {
            return Some(buffer_unit);
        }
        let kept = if for_gc { 0 } else { self.buffer_units_kept() };
        if self.write_buffer.available() <= kept || for_gc && self.leaves_buffer_to_users() {
            self.stats.waits_for_buffer += 1;
            if !for_gc {
                self.waits_for_buffer_unit();
            }
            return None;
        }
        let Some(buffer_unit) = self.take_buffer_unit(stream) else {
            if !for_gc {
                self.waits_for_buffer_unit();
            }
            return None;
        };
        self.turn.taken(for_gc);
        self.streams[stream.index()].filling = Some(buffer_unit);
        Some(buffer_unit)
    }

    /// Takes a buffer unit, and lets the map point to media for what was in it.
    pub(super) fn take_buffer_unit(&mut self, stream: Stream) -> Option<BufferUnitId> {
        let mut evicted = Evicted::default();
        let buffer_unit = self.versions().take_unit(stream, |entry| evicted.count(entry));
        self.limiter.on_evicted(evicted.of_users, evicted.of_gc);
        self.due.add(Due::GC | Due::ADMISSION);
        buffer_unit
    }

    /// Puts a block's newest version into the next slot of a buffer unit; its content lies there already.
    fn put(&mut self, buffer_unit: BufferUnitId, block: u64) {
        assert_eq!(
            self.write_buffer.state(buffer_unit),
            BufferUnitState::Filling,
            "a block goes to a buffer unit that takes none"
        );
        assert!(block < self.l2p.sectors(), "block {block} is beyond the instance");
        assert!(!self.is_read_only(), "a block was written although that is refused");
        let sequence = self.next_sequence();
        let tag = SectorTag { kind: Kind::Data, block, sequence };
        let slot = Slot(self.write_buffer.first_slot(buffer_unit).0 + self.write_buffer.filled(buffer_unit));
        let before = Sequence(sequence.0 - 1);
        let mut versions = self.versions();
        let old = versions.remap(block, Mapped::Buffer(slot));
        let (previous, previous_sequence) = versions.take_durable(old, before);
        assert!(previous_sequence < sequence, "a version is older than the one before it");
        let entry = Entry { tag, previous, previous_sequence, is_newest: true, ..Entry::PAD };
        let pushed = self.write_buffer.push(buffer_unit, entry, true);
        assert_eq!(pushed, slot, "a block is mapped to another slot than it is in");
        self.let_go_early(Canary::OverwrittenTooEarly, slot);
        if let Some(last) = &mut self.last_writes {
            last.set(block, sequence.0);
        }
        self.stats.user_written += 1;
    }

    /// The map and the buffer: every change of the map after mount goes this way, or by the exchange of copies in them.
    #[inline]
    pub(super) const fn versions(&mut self) -> Versions<'_> {
        Versions { map: &mut self.l2p, buffer: &mut self.write_buffer }
    }

    /// A block becomes nowhere.
    fn forget(&mut self, block: u64) {
        let before = self.sequence;
        let mut versions = self.versions();
        let old = versions.remap(block, Mapped::Nowhere);
        if let (Some(place), _) = versions.take_durable(old, before) {
            self.invalidate(place);
        }
        if let Some(last) = &mut self.last_writes {
            last.forget(block);
        }
    }

    /// A place no longer holds the newest durable version of anything.
    pub(super) fn invalidate(&mut self, place: PhysicalAddress) {
        self.invalidate_run(place, 1);
    }

    /// As [`Self::invalidate`], of neighbours in one line.
    pub(super) fn invalidate_run(&mut self, first: PhysicalAddress, count: u64) {
        assert!(first.0 + count <= self.shape.places(), "place {} is beyond the instance", first.0);
        let is_short = count > 1 && self.has_canary(Canary::PlaceLeftValid);
        let line = self.valid.clear_run(first, count - u64::from(is_short), self.sequence.0);
        // There may be something to collect now, and users may have been told that there is not.
        self.told.is_stale |= !self.told.gc_has_work;
        if self.valid.count(line) == 0 {
            self.reclaimer.suspect(line);
        }
    }

    pub(super) fn close_if_full(&mut self, buffer_unit: BufferUnitId) {
        if self.write_buffer.room(buffer_unit) == 0 {
            self.close_buffer_unit(buffer_unit);
        }
    }

    /// No more goes into a buffer unit: it waits to be written.
    pub(super) fn close_buffer_unit(&mut self, buffer_unit: BufferUnitId) {
        assert!(self.write_buffer.filled(buffer_unit) > 0, "an empty buffer unit is closed");
        let stream = self.write_buffer.stream(buffer_unit);
        let filled = self.write_buffer.filled(buffer_unit);
        let sectors = self.sectors_to_write(filled);
        self.write_buffer.close(buffer_unit, sectors);
        let state = &mut self.streams[stream.index()];
        if state.filling == Some(buffer_unit) {
            state.filling = None;
        }
        state.ready.push_back(buffer_unit);
        self.due.add(Due::WRITER);
        self.stats.padding(sectors - filled);
    }

    /// Sectors that writing a buffer unit takes of which so many are filled: whole units, so that a flush fills up one unit and no
    /// buffer unit. But what was written short waits for as many sectors behind it as any other buffer unit, in a place for more.
    /// So there must be as many places left as the media need of full ones.
    fn sectors_to_write(&self, filled: u32) -> u32 {
        assert!(filled <= self.write_buffer.unit(), "{filled} sectors overfill a buffer unit");
        let is_short = self.write_buffer.available() > usize_of(self.capacity.buffer_units_needed);
        if is_short { filled.next_multiple_of(self.capacity.layout.unit) } else { self.write_buffer.unit() }
    }

    /// Closes every buffer unit that is being filled. True if there was one.
    pub(super) fn close_filling(&mut self) -> bool {
        let filling: Vec<BufferUnitId> = self.streams.iter().filter_map(|stream| stream.filling).collect();
        filling.iter().for_each(|&buffer_unit| self.close_buffer_unit(buffer_unit));
        !filling.is_empty()
    }

    fn classify_user(&self, block: u64) -> Stream {
        match &self.last_writes {
            None => Stream(0),
            Some(last) => self.classifier.user_stream(self.sequence.0, last.get(block, self.sequence.0)),
        }
    }

    /// The buffer of a whole instance.
    pub(super) const fn ring(&self) -> BufId {
        self.ring
    }
}

/// Sectors whose slots were given to others, by who put them there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evicted {
    pub of_users: u32,
    pub of_gc: u32,
}

impl Evicted {
    pub const fn count(&mut self, entry: &Entry) {
        if entry.from_gc {
            self.of_gc += 1;
        } else {
            self.of_users += 1;
        }
    }
}
