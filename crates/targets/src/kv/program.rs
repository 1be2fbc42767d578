//! Buffer units go to media: a number for each, force unit access, and what becomes of it.
//!
//! A unit that the media failed is written elsewhere, before which the index is told where. Deliberately not here: what is in
//! a buffer unit (`append`).

use super::buffer_units::{BufferUnitId, Stream};
use super::flight::Purpose;
use super::index::{Found, Location, Need, PagePlace, next_entry};
use super::long_values::ValuePiece;
use super::record::{RecordKind, UnitHeader, UnitNumber, records};
use super::space::Claim;
use super::state::{Kv, record_bytes};
use crate::journal::outcome;
use ocssd_base::usize_of;
use ocssd_ftl::{Append, AppendEvent, PhysicalAddress};
use ocssd_lightnvm::{Addresses, Buffers, Completion, Op, Ppa};

/// What a record of a buffer unit that moves is.
enum Moved {
    Key(Vec<u8>, u32),
    Piece(u64, ValuePiece),
    Page(Vec<u8>, u32),
}

impl Kv {
    /// Gives out buffer units that are ready. True if any was.
    pub(super) fn program(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(buffer_unit) = self.buffer_units.next_again()
            && self.find_another_place(buffer_unit, buffers)
        {
            any = true;
        }
        any |= self.close_for_waiters();
        while self.flight.has_room(1)
            && let Some(buffer_unit) = self.buffer_units.next_ready(self.now)
        {
            self.program_unit(buffer_unit, buffers);
            any = true;
        }
        any
    }

    /// Somebody waits for what is in a buffer unit that is being filled: it goes out as it is, once no other is on its way, so that
    /// those that wait meanwhile go together.
    fn close_for_waiters(&mut self) -> bool {
        let until = self.waiters.back().map(|waiter| waiter.until).max(self.sequence_for_room());
        let Some(until) = until else { return false };
        let mut any = false;
        if self.buffer_units.on_their_way(Stream::Small) == 0 {
            for stream in [Stream::Small, Stream::Long] {
                let first = self.buffer_units.first_of_filling(stream);
                any |= first > 0 && first <= until && self.buffer_units.close(stream);
            }
        }
        any
    }

    fn program_unit(&mut self, buffer_unit: BufferUnitId, buffers: &mut Buffers) {
        self.number = UnitNumber(self.number.0 + 1);
        let (at, _) = self.buffer_units.at(buffer_unit);
        let (filled, stream) = (self.buffer_units.filled(buffer_unit), self.buffer_units.stream(buffer_unit));
        assert!(filled <= self.sizes.unit_bytes, "{filled} bytes in a unit");
        assert_eq!(at.sector % self.sizes.unit, 0, "a unit goes to sector {}", at.sector);
        let buffer = self.buffer_units.buffer(buffer_unit);
        let unit = buffers.whole_mut(buffer, 0, self.sizes.unit);
        unit[usize_of(filled)..].fill(0);
        let header =
            UnitHeader { instance: self.instance, number: self.number, stream: stream.to_byte(), filled };
        header.encode(unit);
        self.space.has_number(at.chunk, self.number.0);
        self.stats.units += 1;
        self.stats.padded_bytes += u64::from(self.sizes.unit_bytes - filled);
        let addresses = self.run_at(at, self.sizes.unit);
        self.flight.send(
            Purpose::Unit { buffer_unit, at },
            Op::Write { fua: true },
            addresses,
            Some(buffer),
            0,
        );
    }

    /// A run of sectors of a chunk, as the drive calls it.
    pub(super) fn run_at(&self, at: Append, count: u32) -> Addresses {
        assert!(at.sector + count <= self.sizes.chunk, "{count} sectors from {} leave a chunk", at.sector);
        Addresses::Run { first: Ppa::new(self.space.shape.chunk_id(at.chunk), at.sector), count }
    }

    /// A write of a unit ended.
    pub(super) fn unit_done(&mut self, buffer_unit: BufferUnitId, at: Append, completion: &Completion) {
        let (status, stream) = (completion.status, self.buffer_units.stream(buffer_unit));
        assert_eq!(
            self.buffer_units.at(buffer_unit).0,
            at,
            "{buffer_unit:?} ended elsewhere than it was written"
        );
        if status.is_drive_failure() {
            self.stop(status);
        }
        if status.is_success() {
            self.buffer_units.written(self.now, buffer_unit);
        } else {
            self.buffer_units.failed(self.now, buffer_unit);
            self.stats.units_again += 1;
        }
        let mut events = Vec::new();
        self.points.streams[stream.index()].programmed(at, outcome(status, buffer_unit), &mut events);
        for event in events {
            match event {
                AppendEvent::Readable(buffer_unit) => self.buffer_units.release(buffer_unit),
                AppendEvent::Closed(chunk) => self.space.close(chunk, self.sequence),
            }
        }
    }

    /// A buffer unit that the media failed gets another place, if there is one: that of a buffer unit that was opened after it, or
    /// the next. What was being filled goes before it, for it lies before it.
    fn find_another_place(&mut self, buffer_unit: BufferUnitId, buffers: &Buffers) -> bool {
        if self.refuses_changes().is_some() {
            return false;
        }
        let stream = self.buffer_units.stream(buffer_unit);
        let filled = usize_of(self.buffer_units.filled(buffer_unit));
        let keys = Self::keys_in(
            &buffers.whole(self.buffer_units.buffer(buffer_unit), 0, self.sizes.unit)[..filled],
        );
        if !self.has_keys(&keys, Need::BufferUnit, buffers) {
            return false;
        }
        self.buffer_units.close(stream);
        let place = match self.buffer_units.give_place(stream) {
            Some(given) => Some(given),
            None => {
                let Self { points, space, sizes, .. } = self;
                // Users' data that were taken already may use the reserve.
                let next =
                    points.streams[stream.index()].next(sizes.unit, |units| space.open(units, Claim::Gc));
                next.map(|at| {
                    (at, PhysicalAddress(space.shape.first_place(at.chunk).0 + u64::from(at.sector)))
                })
            }
        };
        let Some((at, place)) = place else { return false };
        self.checkpoint_is_stale(self.buffer_units.first_sequence(buffer_unit));
        let old = self.buffer_units.moved((at, place), self.space.shape.split_chunk(at.chunk).1);
        self.move_records(buffer_unit, old, place, buffers);
        self.index.needs_no_more(Need::BufferUnit);
        true
    }

    /// What lies in a buffer unit lies at another place from now on, where it is needed at all.
    fn move_records(
        &mut self,
        buffer_unit: BufferUnitId,
        old: PhysicalAddress,
        new: PhysicalAddress,
        buffers: &Buffers,
    ) {
        let sector = u64::from(self.sizes.sector_bytes);
        let unit = buffers.whole(self.buffer_units.buffer(buffer_unit), 0, self.sizes.unit);
        let filled = usize_of(self.buffer_units.filled(buffer_unit));
        let mut moved = Vec::new();
        for (begin, record) in records(&unit[..filled]) {
            let begin = u64::try_from(begin).expect("an index");
            let from = old.0 * sector + begin;
            let header = record.header;
            match header.kind {
                RecordKind::Whole => {
                    let is_it = self
                        .index
                        .get(record.key)
                        .is_some_and(|found| found.location == Location::Record(from));
                    if is_it {
                        moved.push((begin, Moved::Key(record.key.to_vec(), header.payload_bytes)));
                    }
                }
                RecordKind::Piece => {
                    let piece = self.long.get(header.value, header.offset);
                    if let Some(piece) = piece.filter(|piece| piece.at == Some(from)) {
                        moved.push((begin, Moved::Piece(header.value, piece)));
                    }
                }
                RecordKind::Index => {
                    let (first, _) = next_entry(record.payload).expect("a page has an entry");
                    if self.index.is_page_at(first, from) {
                        moved.push((begin, Moved::Page(first.to_vec(), header.payload_bytes)));
                    }
                }
                RecordKind::Long | RecordKind::Delete | RecordKind::Lost | RecordKind::PieceLost => {}
            }
        }
        for (begin, what) in moved {
            let (from, to) = (old.0 * sector + begin, new.0 * sector + begin);
            self.move_record(from, to, what);
        }
    }

    fn move_record(&mut self, from: u64, to: u64, what: Moved) {
        assert!(
            self.chunk_of(from) != self.chunk_of(to) || from < to,
            "a record moves from {from} back to {to}"
        );
        let bytes = match what {
            Moved::Key(key, bytes) => {
                self.index.set(&key, Found { location: Location::Record(to), bytes });
                record_bytes(key.len(), bytes)
            }
            Moved::Piece(value, piece) => {
                self.long.set(value, ValuePiece { at: Some(to), ..piece });
                record_bytes(0, piece.bytes)
            }
            Moved::Page(first, bytes) => {
                let image = self.pages.image();
                self.index.page_moved(&first, PagePlace { at: to, bytes, image });
                record_bytes(0, bytes)
            }
        };
        let chunk = self.chunk_of(to);
        self.space.add(chunk, u64::from(bytes));
        self.forget_record(from, bytes);
    }
}
