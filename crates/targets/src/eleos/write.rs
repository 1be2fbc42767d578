//! Flushes go to buffer units, part by part, and to the log when all their parts have been programmed, in the order in which they
//! came.
//!
//! Deliberately not here: where buffer units go (`ox::program`), when a flush is true (`ox::commit`).

use super::change::{Change, FlushBuffer, Number, Progress, Source, What};
use super::entry::Entry;
use super::extent::{Extent, GRAIN_BYTES, index, share};
use super::sector;
use super::sizes::sectors_of;
use super::store::{Eleos, Owner, Slot};
use crate::ox::canary::Canary;
use crate::ox::commit::{Commit, Done};
use crate::ox::state::Ending;
use crate::ox::write_buffer::{BufferUnitId, StreamIndex};
use ocssd_ftl::{BLOCK_MAX, PhysicalAddress, SEQUENCE_MAX, Sequence};
use ocssd_lightnvm::Buffers;

impl Eleos {
    /// Bytes of a buffer unit.
    pub(super) const fn buffer_unit_bytes(&self) -> u32 {
        self.sizes.unit * self.sector_bytes
    }

    /// Where the next part goes in a buffer unit.
    pub(super) fn fill_of(&self, buffer_unit: BufferUnitId) -> u32 {
        let last = self.buffer.slots(buffer_unit).last();
        last.map_or(0, |slot| (slot.at + slot.bytes).next_multiple_of(GRAIN_BYTES))
    }

    /// Puts a part of a page into the buffer unit of a stream, behind what is there.
    pub(super) fn put(
        &mut self,
        stream: StreamIndex,
        slot: Slot,
        content: Source<'_>,
        buffers: &mut Buffers,
    ) {
        let (buffer_unit, _) = self.buffer.filling(stream).expect("room was asked for before");
        assert_eq!(slot.at, self.fill_of(buffer_unit), "a part begins elsewhere than the last one ended");
        let end = slot.at + slot.bytes;
        assert!(slot.bytes > 0 && end <= self.buffer_unit_bytes(), "{slot:?} leaves its buffer unit");
        let needed = end.div_ceil(self.sector_bytes) - self.buffer.filled(buffer_unit);
        let (buffer, _) = self.buffer.push(buffer_unit, slot, needed);
        match content {
            Source::Bytes(content) => {
                assert_eq!(index(slot.bytes), content.len(), "a part of another length than its content");
                let whole = buffers.whole_mut(buffer, 0, self.sizes.unit);
                whole[index(slot.at)..index(end)].copy_from_slice(content);
            }
            Source::Whole(from, first) => {
                buffers.copy_whole((from, first), (buffer, index(slot.at)), index(slot.bytes));
            }
        }
        if end.next_multiple_of(GRAIN_BYTES) == self.buffer_unit_bytes() {
            self.buffer.close(stream);
        }
    }

    /// Room for a part of at most `bytes` in a stream's buffer unit, or in a new one: where it begins, and how much of it goes
    /// there.
    pub(super) fn room_for(&mut self, stream: StreamIndex, bytes: u32) -> Option<(u32, u32)> {
        let buffer_unit_bytes = self.buffer_unit_bytes();
        loop {
            let (buffer_unit, _) = self.buffer.filling(stream)?;
            let at = self.fill_of(buffer_unit);
            let share = share(bytes, buffer_unit_bytes - at, buffer_unit_bytes);
            if share > 0 {
                return Some((at, share));
            }
            assert!(at > 0, "{bytes} bytes have no share of an empty buffer unit");
            self.buffer.close(stream);
        }
    }

    /// Takes flushes into buffer units, and logs those that were programmed. True if anything was done.
    pub(super) fn pack_changes(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(number) = self.store.changes.first_before(Progress::Packed) {
            if !self.begin_packing(number) {
                break;
            }
            let (is_packed, did) = self.pack(number, buffers);
            any |= did;
            if !is_packed {
                break;
            }
            self.store.changes.get_mut(number).progress = Progress::Packed;
            any = true;
        }
        any |= self.log_ready();
        any | self.close_partial()
    }

    /// Makes room for a change; false if it must wait.
    fn begin_packing(&mut self, number: Number) -> bool {
        let (unit, sector) = (self.sizes.unit, self.sector_bytes);
        let change = self.store.changes.get(number);
        if change.progress == Progress::Packing {
            return true;
        }
        let grains = |bytes: u32| u64::from(bytes.next_multiple_of(GRAIN_BYTES));
        let bytes: u64 = change.rows.iter().map(|row| grains(row.bytes)).sum();
        let sectors = if bytes == 0 { 0 } else { sectors_of(bytes, unit, sector) };
        if self.gathered > 0 && self.gathered + sectors > self.gathered_max() {
            return false;
        }
        self.gathered += sectors;
        assert!(bytes <= sectors * u64::from(sector), "{bytes} bytes go to {sectors} sectors");
        let change = self.store.changes.get_mut(number);
        change.progress = Progress::Packing;
        change.sectors = u32::try_from(sectors).expect("a flush is bounded");
        true
    }

    /// Takes parts of a change. Whether all are in buffer units, and whether any was taken.
    fn pack(&mut self, number: Number, buffers: &mut Buffers) -> (bool, bool) {
        let mut any = false;
        while let Some((row, done)) = self.store.changes.get_mut(number).next_piece() {
            let entry = self.store.changes.get(number).rows[index(row)];
            let Some((at, bytes)) = self.room_for(StreamIndex::USER, entry.bytes - done) else {
                return (false, any);
            };
            let change = self.store.changes.get_mut(number);
            let part = change.take(bytes);
            let slot = Slot { page: entry.page, at, bytes, owner: Owner::Change(number, part) };
            let content = std::mem::replace(&mut change.content, FlushBuffer::Own(Vec::new()));
            self.put(StreamIndex::USER, slot, content.part(entry.offset + done, bytes), buffers);
            self.store.changes.get_mut(number).content = content;
            any = true;
        }
        (true, any)
    }

    /// Logs changes all of whose parts have been programmed, in order. True if there was one.
    fn log_ready(&mut self) -> bool {
        let mut any = false;
        while let Some(number) = self.store.changes.first_before(Progress::Committed) {
            let change = self.store.changes.get_mut(number);
            if !change.is_ready() {
                break;
            }
            change.progress = Progress::Committed;
            let (entries, blocks) = (change.entries(), change.sectors);
            self.commits.push_back(Commit { entries, blocks, done: Done::User(number) });
            any = true;
        }
        any
    }

    /// A buffer unit that is filled in part goes out once somebody waits for it and nothing else of users is on its way.
    fn close_partial(&mut self) -> bool {
        let is_awaited = !self.store.awaiting.is_empty() || self.ending == Ending::Asked;
        let is_idle = self.data_points[0].in_flight() == 0 && self.buffer.ready(StreamIndex::USER) == 0;
        let is_due = is_awaited && is_idle && self.buffer.partial(StreamIndex::USER) > 0;
        if is_due {
            self.buffer.close(StreamIndex::USER);
        }
        is_due
    }

    /// A buffer unit goes out: what no part fills is zeroes, and every sector gets its tag.
    pub(super) fn encode_tags(&mut self, buffer_unit: BufferUnitId, buffers: &mut Buffers) {
        let (buffer, filled) = (self.buffer.buffer(buffer_unit), self.buffer.filled(buffer_unit));
        let whole = buffers.whole_mut(buffer, 0, self.sizes.unit);
        let mut end = 0;
        for slot in self.buffer.slots(buffer_unit) {
            whole[end..index(slot.at)].fill(0);
            end = index(slot.at + slot.bytes);
        }
        whole[end..].fill(0);
        assert!(
            end <= index(filled * self.sector_bytes),
            "{buffer_unit:?} has parts behind its {filled} sectors"
        );
        assert!(end > index((filled - 1) * self.sector_bytes), "{buffer_unit:?} has empty sectors");
        let name = self.buffer.slots(buffer_unit).first().map_or(0, |slot| slot.page.0 & BLOCK_MAX);
        for at in 0..filled {
            self.sequence += 1;
            assert!(self.sequence <= SEQUENCE_MAX, "more sectors were written than a tag can count");
            sector::encode((buffer, at), name, Sequence(self.sequence), buffers);
        }
    }

    /// A buffer unit of flushes was programmed.
    pub(super) fn parts_programmed(&mut self, buffer_unit: BufferUnitId, place: PhysicalAddress) {
        let slots: Vec<Slot> = self.buffer.slots(buffer_unit).to_vec();
        for slot in slots {
            let spot = self.grid().spot(place, slot.at);
            let Owner::Change(number, part) = slot.owner else {
                unreachable!("users' buffer unit holds {slot:?}")
            };
            let change = self.store.changes.get_mut(number);
            assert_eq!(change.parts[index(part)].bytes, slot.bytes, "{slot:?} is another part");
            change.programmed(part, spot);
            if self.has_canary(Canary::CommitByPart) {
                self.commit_piece(number, part);
            }
        }
    }

    /// The bug: a part that is a whole page is true before its flush is.
    fn commit_piece(&mut self, number: Number, part: u32) {
        let change: &mut Change = self.store.changes.get_mut(number);
        let of = change.parts[index(part)];
        let row = change.rows[index(of.row)];
        let is_last = change.progress == Progress::Packed && change.flying == 0;
        if is_last || of.bytes < row.bytes || !matches!(change.what, What::Flushed(_)) {
            return;
        }
        let extent = Extent { spot: of.spot.expect("it was programmed"), bytes: of.bytes };
        let entries = vec![Entry::First(row.page, extent)];
        // Nothing of it is left to be logged with the flush.
        change.parts[index(part)].row = u32::MAX;
        self.commits.push_back(Commit { entries, blocks: 0, done: Done::Piece });
    }
}
