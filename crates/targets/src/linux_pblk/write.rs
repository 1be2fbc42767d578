//! Writes and discards into the buffer, first come, first served.
//!
//! Linux's format has no place for a discard: after its next mount, what was discarded would be back. So a block that is
//! somewhere and is discarded becomes a block of zeroes, which is written like any other; one that is nowhere stays so.
//! Deliberately not here: when buffer units are written (`writer`).

use super::state::LinuxPblk;
use ocssd_base::SlabKey;
use ocssd_ftl::{
    BufferUnitId, Entry, Kind, Mapped, PhysicalAddress, SectorTag, Sequence, Slot, Stream, Versions,
};
use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::block::BlockOp;

/// The one stream: Linux's pblk writes what users and what garbage collection bring to one line.
pub const STREAM: Stream = Stream(0);

/// Blocks discarded before other work gets its turn (chosen: some hundred microseconds).
const DISCARD_SLICE: u32 = 1 << 16;

impl LinuxPblk {
    /// Takes what waits into the buffer, as far as there is room. True if anything was taken.
    pub(super) fn admit(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while let Some(key) = self.requests.next_change() {
            if let Some(status) = self.refuses_changes() {
                self.requests.admitted(key);
                self.requests.fail(key, status);
                self.requests.end(key);
                any = true;
                continue;
            }
            // From now on lines are collected and reset, which may be what this waits for.
            self.work_due |= !self.has_written;
            self.has_written = true;
            let before = self.requests.get(key).done;
            let is_whole = self.admit_one(key, buffers);
            any |= is_whole || self.requests.get(key).done > before;
            if !is_whole {
                break;
            }
            self.requests.admitted(key);
            if matches!(self.requests.get(key).request.op, BlockOp::Write { fua: true }) {
                self.await_durable(key);
            } else {
                self.requests.end(key);
            }
        }
        any
    }

    /// Copies as much of a change as there is room for; true once all of it is in.
    fn admit_one(&mut self, key: SlabKey, buffers: &mut Buffers) -> bool {
        let request = self.requests.get(key).request;
        let mut skipped = 0;
        while self.requests.get(key).done < request.count {
            let done = self.requests.get(key).done;
            let block = request.block + u64::from(done);
            let is_write = matches!(request.op, BlockOp::Write { .. });
            if !is_write && self.l2p.get(block) == Mapped::Nowhere {
                self.requests.get_mut(key).done += 1;
                skipped += 1;
                if skipped == DISCARD_SLICE {
                    self.work_due = true;
                    return self.requests.get(key).done == request.count;
                }
                continue;
            }
            if !self.has_line_for_users() {
                self.stats.waits_for_line += 1;
                return false;
            }
            let Some(buffer_unit) = self.filling_buffer_unit(self.buffer_units_kept) else {
                self.stats.waits_for_buffer += 1;
                return false;
            };
            let slot = self.next_slot(buffer_unit);
            if is_write {
                let from = request.buffer.expect("a write without a buffer was refused");
                buffers.copy_data(from, done, self.ring, slot.0, 1);
            } else {
                buffers.data_mut(self.ring, slot.0, 1).fill(0);
                self.stats.zeroed += 1;
            }
            self.put(buffer_unit, block);
            self.requests.get_mut(key).done += 1;
        }
        true
    }

    /// Free lines are kept for garbage collection, and for the Linux that mounts this next.
    fn has_line_for_users(&self) -> bool {
        self.lines.free_count() > self.lines_kept
    }

    /// The slot a buffer unit fills next.
    fn next_slot(&self, buffer_unit: BufferUnitId) -> Slot {
        Slot(self.write_buffer.first_slot(buffer_unit).0 + self.write_buffer.filled(buffer_unit))
    }

    /// The buffer unit that takes sectors, a fresh one if need be and more than `kept` are there.
    fn filling_buffer_unit(&mut self, kept: usize) -> Option<BufferUnitId> {
        if self.filling.is_none() && self.write_buffer.available() > kept {
            self.filling = self.versions().take_unit(STREAM, |_| ());
            assert!(self.filling.is_some(), "an available buffer unit could not be taken");
        }
        self.filling
    }

    /// Puts a block's newest version into the next slot of a buffer unit; its content lies there already.
    fn put(&mut self, buffer_unit: BufferUnitId, block: u64) {
        assert!(block < self.l2p.sectors(), "block {block} is beyond the instance");
        self.sequence.0 += 1;
        let sequence = self.sequence;
        let (previous, previous_sequence) = self.supersede(block, self.next_slot(buffer_unit));
        let tag = SectorTag { kind: Kind::Data, block, sequence };
        let entry = Entry { tag, previous, previous_sequence, is_newest: true, ..Entry::PAD };
        self.write_buffer.push(buffer_unit, entry, true);
        self.stats.user_written += 1;
        self.close_if_full(buffer_unit);
    }

    /// Takes a sector of a victim into the buffer, copied by `copy`; false if there is no room.
    pub(super) fn put_moved(&mut self, block: u64, place: PhysicalAddress, copy: impl FnOnce(Slot)) -> bool {
        assert!(self.valid.is_valid(place), "place {} is moved, but nobody needs it", place.0);
        let Some(buffer_unit) = self.filling_buffer_unit(0) else { return false };
        let slot = self.next_slot(buffer_unit);
        // Before the map is changed: taking the buffer unit may have emptied the one that held the block.
        copy(slot);
        let (previous, _) = self.supersede(block, slot);
        assert_eq!(previous, Some(place), "block {block} is moved from where it is not");
        let tag = SectorTag { kind: Kind::Data, block, sequence: self.sequence };
        // Whatever older version is still on its way is older than this.
        let entry = Entry {
            tag,
            previous,
            previous_sequence: self.sequence,
            from_gc: true,
            is_tag_encoded: false,
            is_newest: true,
        };
        self.write_buffer.push(buffer_unit, entry, false);
        self.close_if_full(buffer_unit);
        true
    }

    /// Maps a block to a slot; the newest durable version of it, out of the hands of whoever held it.
    fn supersede(&mut self, block: u64, slot: Slot) -> (Option<PhysicalAddress>, Sequence) {
        let before = Sequence(self.sequence.0.saturating_sub(1));
        let mut versions = self.versions();
        let old = versions.remap(block, Mapped::Buffer(slot));
        versions.take_durable(old, before)
    }

    /// The map and the buffer, which change together.
    pub(super) const fn versions(&mut self) -> Versions<'_> {
        Versions { map: &mut self.l2p, buffer: &mut self.write_buffer }
    }

    fn close_if_full(&mut self, buffer_unit: BufferUnitId) {
        if self.write_buffer.filled(buffer_unit) == self.data_of_unit() {
            self.close_filling();
        }
    }

    /// No more goes into the buffer unit that is being filled: it waits to be written. True if there was one.
    pub(super) fn close_filling(&mut self) -> bool {
        let Some(buffer_unit) = self.filling.take() else { return false };
        assert!(
            self.write_buffer.filled(buffer_unit) <= self.data_of_unit(),
            "buffer unit {} is overfull",
            buffer_unit.0
        );
        self.write_buffer.close(buffer_unit, self.write_buffer.unit());
        self.ready.push_back(buffer_unit);
        true
    }

    /// Sectors of a unit that hold blocks.
    pub(super) fn data_of_unit(&self) -> u32 {
        self.layout.unit - u32::from(self.packed)
    }
}
