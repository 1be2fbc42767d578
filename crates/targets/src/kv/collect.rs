//! Garbage collection: the chunk with the fewest live bytes is read, what is live in it is appended to the cold stream, and
//! it dies.
//!
//! A record is moved at the moment its read is over, if the index still names it there: the move is a store of the same value
//! with a sequence of its own, so there is no race, and replay needs no rule for it. What the media lost is noted under its
//! key, or piece, so that a retrieve says so. Deliberately not here: which chunk is chosen (`ocssd_ftl::VictimPolicy`), and
//! when it may be reset (`space`).

use super::buffer_units::Stream;
use super::canary::Canary;
use super::flight::Purpose;
use super::index::{Found, Location, Need, next_entry};
use super::key_bytes::KeyBytes;
use super::long_values::ValuePiece;
use super::record::{RECORD_HEADER_BYTES, Record, RecordHeader, RecordKind, UNIT_HEADER_BYTES, records};
use super::sizes::Sizes;
use super::space::Role;
use super::state::{Kv, record_bytes};
use crate::read_again::ReadTries;
use ocssd_base::{Prng, Slab, SlabKey, usize_of};
use ocssd_ftl::{
    Append, Candidate, ChunkIndex, ChunkUse, LineId, PhysicalAddress, RelocationRead, Relocator, Victim,
};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op};

/// Reads of victims in flight (chosen: several keep units busy while copies of the first are written).
const READS_MAX: u32 = 8;
/// Victims that are being read at a time (chosen: the next is read while the end of the first is copied).
const VICTIMS_READ_MAX: usize = 2;

/// A unit of a victim that was read, or is.
type VictimRead = RelocationRead<VictimUnit, ChunkIndex>;

/// What there is to know of it.
#[derive(Clone, Copy, Debug)]
struct VictimUnit {
    sector: u32,
    tries: ReadTries,
    /// The next byte to look at.
    at: usize,
    /// The pages of its keys were asked for.
    is_asked: bool,
}

/// What garbage collection is doing.
#[derive(Clone, Debug)]
pub(super) struct GarbageCollection {
    /// Chunks that are being emptied, each read to a sector.
    relocator: Relocator<VictimUnit, ChunkIndex, u32>,
    /// The one of them that lags in wear (`level`); the others give space.
    levelling: Option<ChunkIndex>,
    reads: Slab<VictimRead>,
    /// Bytes that victims gave back beyond what was padded.
    credit: u64,
    prng: Prng,
}

impl GarbageCollection {
    /// Nothing to do; buffers are taken now.
    pub fn new(sizes: &Sizes, seed: u64, buffers: &mut Buffers) -> Self {
        let spare = (0..READS_MAX).map(|_| buffers.take_whole(sizes.unit)).collect();
        Self {
            relocator: Relocator::new(spare, VICTIMS_READ_MAX),
            levelling: None,
            reads: Slab::new(READS_MAX),
            credit: 0,
            prng: Prng::new(seed).split("victims"),
        }
    }

    /// Chunks that are being emptied.
    pub fn victims(&self) -> usize {
        self.relocator.victims().len()
    }

    /// True if this chunk is being emptied.
    pub fn is_emptying(&self, chunk: ChunkIndex) -> bool {
        self.relocator.is_reading(chunk)
    }

    /// True if a chunk is being emptied for its wear.
    pub const fn is_levelling(&self) -> bool {
        self.levelling.is_some()
    }
}

impl Kv {
    /// True if garbage must be collected, for users' streams are about to wait for chunks.
    pub(super) const fn is_short(&self) -> bool {
        self.space.spare() < self.sizes.gc_start
    }

    /// Goes on with garbage collection, if free chunks are short. True if anything was done.
    pub(super) fn collect(&mut self, buffers: &mut Buffers) -> bool {
        if self.is_mounting {
            return false;
        }
        let mut any = self.copy(buffers);
        any |= self.end_victims(buffers);
        let is_wanted = self.is_short() && self.shutdown.is_none();
        if is_wanted {
            any |= self.choose_victims();
        }
        if self.shutdown.is_none() {
            any |= self.choose_for_wear();
        }
        any |= self.read_victims();
        if is_wanted {
            any |= self.close_copies();
        }
        any
    }

    /// True if as many chunks are dead or being emptied as garbage collection brings: what is dead will be free, and more at a time
    /// would keep for itself what users wait for.
    pub(super) fn brings_enough(&self) -> bool {
        self.gc.victims() + self.space.dead_count() >= usize_of(self.sizes.gc_start)
    }

    fn choose_victims(&mut self) -> bool {
        let mut any = false;
        loop {
            let reading = self.gc.victims();
            if self.brings_enough() || reading >= VICTIMS_READ_MAX || !self.choose_victim() {
                return any;
            }
            any = true;
        }
    }

    /// Chooses a chunk to be emptied.
    pub(super) fn choose_victim(&mut self) -> bool {
        let bytes = self.sizes.chunk_room();
        let (space, gc, pages) = (&self.space, &self.gc, &self.pages);
        let may = |chunk: ChunkIndex| {
            // One that is as full as chunks are, however records come, would be moved for nothing.
            let dying = pages.dying_in(chunk);
            space.live(chunk) < bytes + dying
                // One in which nothing else lives dies with the next checkpoint.
                && (dying == 0 || dying < space.live(chunk))
                && space.role(chunk) == Role::Records
                && !gc.is_emptying(chunk)
        };
        let closed = space.pool.iter().filter(|&(chunk, of)| of == ChunkUse::Closed && may(chunk));
        let candidates: Vec<Candidate> = closed
            .map(|(chunk, _)| Candidate {
                line: LineId(chunk.0),
                valid: space.live(chunk) - pages.dying_in(chunk),
                sectors: bytes,
                age: self.sequence.saturating_sub(space.changed(chunk)),
            })
            .collect();
        let Some(line) = self.options.victim.pick(&mut self.gc.prng, &candidates) else {
            return false;
        };
        let chunk = ChunkIndex(line.0);
        let live = self.space.live(chunk) - self.pages.dying_in(chunk);
        assert!(live < bytes, "chunk {} gives nothing: {live} bytes of {bytes} live", chunk.0);
        self.gc.credit += bytes - live;
        self.gc.relocator.begin(chunk, live);
        self.stats.victims += 1;
        true
    }

    /// Begins to empty a chunk that lags in wear, if one is due.
    fn choose_for_wear(&mut self) -> bool {
        if self.gc.is_levelling() {
            return false;
        }
        if self.gc.victims() >= VICTIMS_READ_MAX {
            // Both are emptied for space.
            if self.wear.is_due() {
                self.wear.put_off();
            }
            return false;
        }
        let Some(chunk) = self.lagging() else { return false };
        self.levels(chunk);
        self.gc.relocator.begin(chunk, self.space.live(chunk));
        self.gc.levelling = Some(chunk);
        assert!(self.gc.victims() <= VICTIMS_READ_MAX, "chunk {} is one too many", chunk.0);
        true
    }

    fn read_victims(&mut self) -> bool {
        let mut any = false;
        for index in 0..self.gc.victims() {
            while self.flight.has_room(1) && self.read_victim(index) {
                any = true;
            }
        }
        any
    }

    fn read_victim(&mut self, index: usize) -> bool {
        let Victim { line: chunk, next, .. } = self.gc.relocator.victims()[index];
        if self.is_victim_read(index) || self.refuses_changes().is_some() {
            return false;
        }
        let Some(buffer) = self.gc.relocator.take_buffer() else { return false };
        let is_levelled = self.gc.levelling == Some(chunk) && next == 0;
        let skips = is_levelled
            && self.has_canary(Canary::LevelsFromSecondUnit)
            && self.sizes.unit < self.sizes.chunk;
        let next = if skips { self.sizes.unit } else { next };
        assert!(next < self.sizes.chunk, "chunk {} is read at {next}, beyond its end", chunk.0);
        let unit =
            VictimUnit { sector: next, tries: ReadTries::FIRST, at: UNIT_HEADER_BYTES, is_asked: false };
        let (line, count) = (Some(chunk), self.sizes.unit);
        let read = VictimRead { buffer, line, count, next: 0, failed: 0, with: unit };
        let read = self.gc.reads.insert(read);
        let read = read.unwrap_or_else(|_| unreachable!("there are as many places as buffers"));
        self.gc.relocator.read_sent(chunk, next + self.sizes.unit);
        self.space.hold(chunk);
        self.send_collect(read);
        true
    }

    /// True if all of a victim was read, or nothing lives in it.
    fn is_victim_read(&mut self, index: usize) -> bool {
        let victim = self.gc.relocator.victims()[index];
        let is_read = victim.next == self.sizes.chunk || self.space.live(victim.line) == 0;
        assert!(is_read || !victim.is_read(), "chunk {} holds more than it did", victim.line.0);
        if is_read {
            self.gc.relocator.all_sent(victim.line);
        }
        is_read
    }

    fn send_collect(&mut self, read: SlabKey) {
        let VictimRead { buffer, line, with, .. } = *self.gc.reads.get(read);
        let chunk = line.expect("units are read of victims");
        // A part of it that failed, or all.
        let (first, count) = with.tries.sector().map_or((0, self.sizes.unit), |sector| (sector, 1));
        let addresses = self.run_at(Append { chunk, sector: with.sector + first }, count);
        self.stats.gc_read_bytes += u64::from(count) * u64::from(self.sizes.sector_bytes);
        self.flight.send(Purpose::Collect { read }, Op::Read, addresses, Some(buffer), first);
    }

    /// A unit of a victim was read, or could not be.
    pub(super) fn collected(&mut self, read: SlabKey, completion: &Completion) {
        let tries = &mut self.gc.reads.get_mut(read).with.tries;
        let Some(status) = tries.on_end(completion, self.sizes.unit) else {
            self.stats.read_again += 1;
            return self.send_collect(read);
        };
        let read = self.gc.reads.remove(read);
        // What could be read of it is there, if anything: records say themselves whether they are sound.
        if status.is_drive_failure() {
            self.stop(status);
        }
        self.gc.relocator.read_done(read);
    }

    /// Moves live records of units that were read, as far as there are buffer units. True if any unit is done.
    fn copy(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(mut read) = self.gc.relocator.next_read() {
            if self.refuses_changes().is_none() && !self.copy_unit(&mut read, buffers) {
                self.gc.relocator.put_back(read);
                return any;
            }
            read.next = read.count;
            self.index.needs_no_more(Need::Copy);
            self.gc.relocator.all_moved(&read);
            self.space.let_go(read.line.expect("units are read of victims"));
            any = true;
        }
        any
    }

    /// Moves the live records of a unit. False if there is no buffer unit for the next: it goes on later, where it is now.
    fn copy_unit(&mut self, read: &mut VictimRead, buffers: &mut Buffers) -> bool {
        let chunk = read.line.expect("units are read of victims");
        let (buffer, unit) = (read.buffer, &mut read.with);
        let first = self.space.shape.first_place(chunk).0 + u64::from(unit.sector);
        assert!(unit.at >= UNIT_HEADER_BYTES, "a record within the header of a unit");
        assert_eq!(unit.sector % self.sizes.unit, 0, "a unit begins within another");
        let base = first * u64::from(self.sizes.sector_bytes);
        if !self.index.is_whole() && !unit.is_asked {
            // Pages of all its keys are read side by side.
            let keys = Self::keys_in(buffers.whole(buffer, 0, self.sizes.unit));
            self.has_keys(&keys, Need::Copy, buffers);
            unit.is_asked = true;
        }
        if self.index.is_whole() && unit.at == UNIT_HEADER_BYTES {
            let whole = records(buffers.whole(buffer, 0, self.sizes.unit))
                .filter(|(_, record)| record.header.kind == RecordKind::Whole);
            self.index.touch(whole.map(|(_, record)| record.key));
        }
        loop {
            let all = buffers.whole(buffer, 0, self.sizes.unit);
            let Some(record) = all.get(unit.at..).and_then(Record::decode) else { return true };
            let header = record.header;
            let from = base + u64::try_from(unit.at).expect("an index");
            let needs_page = header.kind == RecordKind::Whole && !self.index.is_whole();
            if needs_page && !self.has_keys(&[record.key.to_vec()], Need::Copy, buffers) {
                return false;
            }
            if self.is_live(&record, from) && record.is_sound(&all[unit.at..]) {
                let bytes = record_bytes(record.key.len(), header.payload_bytes);
                let sum = record.payload_checksum(&all[unit.at..]);
                let key = KeyBytes::from(record.key);
                if self.is_of_torn_batch(&header) {
                    // What the rest of it lies in goes out as it is, full or not.
                    self.buffer_units.close(Stream::Small);
                    return false;
                }
                let stream = if header.kind == RecordKind::Index { Stream::Index } else { Stream::Cold };
                if !self.make_room(stream, std::iter::once(bytes)) {
                    return false;
                }
                self.move_to_cold(header, &key, (buffer, unit.at, sum), from, buffers);
            }
            unit.at += header.bytes();
        }
    }

    /// True of a record whose batch is not whole on media: a copy of it, which is of no batch, would survive a power cut that the
    /// batch does not.
    fn is_of_torn_batch(&self, header: &RecordHeader) -> bool {
        if header.parts == 1 || self.has_canary(Canary::TornCopies) {
            return false;
        }
        let last = header.sequence + u64::from(header.parts - 1 - header.part);
        self.buffer_units.durable_before(&Stream::USERS, self.sequence + 1) <= last
    }

    fn is_live(&self, record: &Record<'_>, from: u64) -> bool {
        let Record { header, key, payload } = *record;
        match header.kind {
            RecordKind::Whole => {
                let found = self.index.get(key);
                let is_stale = self.has_canary(Canary::StaleCopies) && found.is_some();
                found.is_some_and(|found| found.location == Location::Record(from)) || is_stale
            }
            RecordKind::Piece => {
                self.long.get(header.value, header.offset).is_some_and(|piece| piece.at == Some(from))
            }
            RecordKind::Index => {
                next_entry(payload).is_some_and(|(first, _)| self.index.is_page_at(first, from))
            }
            RecordKind::Long | RecordKind::Delete | RecordKind::Lost | RecordKind::PieceLost => false,
        }
    }

    fn move_to_cold(
        &mut self,
        old: RecordHeader,
        key: &[u8],
        (buffer, begin, sum): (BufId, usize, u32),
        from: u64,
        buffers: &mut Buffers,
    ) {
        if old.kind == RecordKind::Index {
            let unit = buffers.whole(buffer, 0, self.sizes.unit);
            let page = unit[begin..][..old.bytes()][RECORD_HEADER_BYTES..].to_vec();
            let (first, _) = next_entry(&page).expect("a page that lives has an entry");
            return self.move_page(first, &page, buffers);
        }
        let single = self.single_of(old.kind, old.key_bytes, old.payload_bytes);
        assert!(old.kind.is_kept() && old.sequence < single.sequence, "{old:?} is moved");
        let header = RecordHeader { value: old.value, offset: old.offset, ..single };
        let at = self.append_copy(Stream::Cold, &header, (buffer, begin, sum), buffers);
        if old.kind == RecordKind::Whole {
            let found = Found { location: Location::Record(at), bytes: old.payload_bytes };
            self.put(key, Some(found));
        } else {
            let piece = ValuePiece { offset: old.offset, bytes: old.payload_bytes, at: Some(at) };
            self.long.set(old.value, piece);
            self.forget_record(from, record_bytes(0, old.payload_bytes));
        }
    }

    /// Forgets victims that are empty. What still lives in one of which all was read, the media lost.
    fn end_victims(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        for index in (0..self.gc.victims()).rev() {
            let is_read = self.is_victim_read(index);
            let victim = self.gc.relocator.victims()[index];
            let chunk = victim.line;
            if !is_read || !victim.is_moved() || self.refuses_changes().is_some() {
                continue;
            }
            self.commit_pages();
            let dying = self.pages.dying_in(chunk);
            if self.space.live(chunk) > dying && !self.note_lost(chunk, buffers) {
                continue;
            }
            if self.pages.dying_in(chunk) > 0 {
                // What is left in it dies with the next checkpoint.
                if !self.checkpoint.is_writing() {
                    self.checkpoint.is_asked_for();
                }
                continue;
            }
            self.gc.relocator.end(chunk);
            if self.gc.levelling == Some(chunk) {
                self.gc.levelling = None;
                // It is reset once its content is durable, for which nobody else may wait.
                self.buffer_units.close(Stream::Cold);
            }
            any = true;
        }
        any
    }

    /// Notes that everything which lives in a chunk is lost. False if there is no buffer unit for the next note.
    fn note_lost(&mut self, chunk: ChunkIndex, buffers: &mut Buffers) -> bool {
        // Pages that lie there are read once more by this, and are written elsewhere.
        if !self.has_all_pages(buffers) {
            return false;
        }
        let is_noted = self.note_lost_records(chunk, buffers);
        if is_noted {
            self.index.release_pages(|place| {
                self.space.shape.chunk_of(PhysicalAddress(place.at / u64::from(self.sizes.sector_bytes))).0
                    == chunk
            });
            self.commit_pages();
            self.needs_all_no_more();
        }
        is_noted
    }

    fn note_lost_records(&mut self, chunk: ChunkIndex, buffers: &mut Buffers) -> bool {
        let is_there = |at: u64| self.chunk_of(at) == chunk;
        let keys = self.index.from(&[]).filter_map(|(key, found)| match found.location {
            Location::Record(at) if is_there(at) => Some((key.to_vec(), found.bytes)),
            _ => None,
        });
        let keys: Vec<(Vec<u8>, u32)> = keys.collect();
        for (key, bytes) in keys {
            if !self.make_room(Stream::Cold, std::iter::once(record_bytes(key.len(), 0))) {
                return false;
            }
            let header = RecordHeader { offset: bytes, ..self.single(RecordKind::Lost, &key, &[]) };
            self.append(Stream::Cold, &header, (&key, &[]), buffers);
            let before = self.index.set(&key, Found { location: Location::Lost, bytes });
            let Some(Found { location: Location::Record(at), .. }) = before else {
                unreachable!("{key:02X?} was found in chunk {}, but holds {before:?}", chunk.0)
            };
            self.forget_record(at, record_bytes(key.len(), bytes));
            self.stats.lost += 1;
        }
        let pieces =
            self.long.iter().filter(|(_, piece)| piece.at.is_some_and(|at| self.chunk_of(at) == chunk));
        let pieces: Vec<(u64, ValuePiece)> = pieces.collect();
        for (value, piece) in pieces {
            if !self.make_room(Stream::Cold, std::iter::once(record_bytes(0, 4))) {
                return false;
            }
            // The payload says how long it was.
            let length = piece.bytes.to_le_bytes();
            let single = self.single(RecordKind::PieceLost, &[], &length);
            let header = RecordHeader { value, offset: piece.offset, ..single };
            self.append(Stream::Cold, &header, (&[], &length), buffers);
            self.long.set(value, ValuePiece { at: None, ..piece });
            self.forget_record(piece.at.expect("it was found in a chunk"), record_bytes(0, piece.bytes));
            self.stats.lost += 1;
        }
        true
    }

    /// A buffer unit of copies that nothing is about to fill goes out as it is, where that pays: what was gained since the last one
    /// must be more than is padded, or chunks would be moved for nothing.
    fn close_copies(&mut self) -> bool {
        let filled = self.buffer_units.filled_of_filling(Stream::Cold);
        if filled == 0 || self.gc.victims() > 0 {
            return false;
        }
        let pad = u64::from(self.sizes.unit_room() - filled);
        if self.gc.credit > pad {
            self.gc.credit = 0;
            return self.buffer_units.close(Stream::Cold);
        }
        self.choose_victim()
    }
}
