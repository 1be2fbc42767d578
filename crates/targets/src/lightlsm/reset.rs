//! What is deleted lets go of its chunks; they are closed if the drive resets closed chunks only, then reset.
//!
//! Nothing is copied: no two tables share a chunk, so a table that dies leaves chunks with nothing in them. Deliberately not
//! here: the lists (`space`).

use super::change::Number;
use super::flight::Purpose;
use super::journal::run_at;
use super::state::LightLsm;
use ocssd_ftl::{Append, ChunkIndex};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op, Status};

/// Resets in flight, and chunks that are closed at a time (chosen: a unit each of a large drive).
const AT_ONCE_MAX: usize = 64;

impl LightLsm {
    /// Lets go of what is deleted, once nobody reads or writes it. True if anything was.
    pub(super) fn leave(&mut self, buffers: &mut Buffers) -> bool {
        let leaving = std::mem::take(&mut self.leaving);
        let before = leaving.len();
        for number in leaving {
            let object = self.shelf.get(number);
            if object.is_quiet() {
                self.let_go(number, buffers);
            } else {
                self.leaving.push(number);
            }
        }
        before > self.leaving.len()
    }

    fn let_go(&mut self, number: Number, buffers: &mut Buffers) {
        let object = self.shelf.remove(number, &self.sizes);
        assert!(object.is_gone && self.catalog.get(number).is_none(), "number {} is not deleted", number.0);
        assert_eq!(object.in_flight, 0, "number {} is written and let go of", number.0);
        assert!(self.unreserved.iter().all(|&(of, _)| of != number), "number {} waits for chunks", number.0);
        self.busy.remove(&number);
        self.syncing.remove(&number);
        self.space.unreserve(object.reserved);
        object.memory.into_values().for_each(|buffer| buffers.give_back(buffer));
        for chunk in object.chunks {
            let open = object.columns.iter().filter_map(|column| column.open.as_ref());
            let open = open.map(|open| (open.chunk(), open.pointer()));
            let pointer = open.chain(object.unfilled.iter().copied()).find(|&(other, _)| other == chunk);
            self.space.let_go(chunk, pointer.map_or(self.sizes.chunk, |(_, pointer)| pointer));
        }
    }

    /// Closes and resets chunks on their way to be free. True if any is.
    pub(super) fn reset(&mut self) -> bool {
        let mut any = false;
        // A mount resets what its checkpoint needs, and leaves the rest for later.
        let is_enough =
            |target: &Self| target.is_mounting && target.space.pool.free() > target.sizes.checkpoint_width;
        while self.closings < AT_ONCE_MAX && self.flight.has_room(1) && !is_enough(self) {
            let is_early = self.geometry.capabilities.early_reset;
            if !is_early && self.paddings.is_empty() {
                break;
            }
            let Some((chunk, from)) = self.space.next_closing() else { break };
            any = true;
            if is_early {
                self.space.closed(chunk);
            } else {
                self.pad_chunk(chunk, from);
            }
        }
        while self.resets < AT_ONCE_MAX && self.flight.has_room(1) && !is_enough(self) {
            let Some(chunk) = self.space.next_dead() else { break };
            let addresses = run_at(&self.space.shape, Append { chunk, sector: 0 }, 1);
            self.flight.send(Purpose::Reset { chunk }, Op::Reset, addresses, None, 0);
            self.resets += 1;
            any = true;
        }
        any
    }

    fn pad_chunk(&mut self, chunk: ChunkIndex, from: u32) {
        assert!(!self.geometry.capabilities.early_reset, "chunk {} need not be filled", chunk.0);
        let end = end_of_unit(from, self.sizes.unit);
        let count = end - from;
        assert!(end <= self.sizes.chunk, "chunk {} is filled beyond its end", chunk.0);
        self.stats.closed_by_padding += u64::from(count);
        let addresses = run_at(&self.space.shape, Append { chunk, sector: from }, count);
        let padding = self.paddings.pop().expect("it was looked at");
        let purpose = Purpose::Close { chunk, from, padding };
        self.flight.send(purpose, Op::Write { fua: false }, addresses, Some(padding), 0);
        self.closings += 1;
    }

    /// A write of padding ended.
    pub(super) fn close_done(
        &mut self,
        (chunk, from, padding): (ChunkIndex, u32, BufId),
        completion: &Completion,
    ) {
        self.paddings.push(padding);
        assert!(self.closings > 0, "padding of chunk {} ended that was not sent", chunk.0);
        self.closings -= 1;
        let status = completion.status;
        if status.is_drive_failure() {
            return self.stop(status);
        }
        let next = end_of_unit(from, self.sizes.unit);
        let goes_on = status.is_success() || status == Status::WRITE_NEXT_UNIT;
        if goes_on && next < self.sizes.chunk {
            self.space.close_on(chunk, next);
        } else {
            self.space.closed(chunk);
        }
    }

    /// A reset ended. A drive that failed says nothing of the chunk.
    pub(super) fn reset_done(&mut self, chunk: ChunkIndex, completion: &Completion) {
        assert!(self.resets > 0, "a reset ended that was not sent");
        self.resets -= 1;
        let status = completion.status;
        if status.is_drive_failure() {
            return self.stop(status);
        }
        self.stats.resets += 1;
        let is_good = status.is_success() || status == Status::INVALID_RESET;
        self.space.reset_done(chunk, is_good);
    }
}

/// The first sector behind the unit, of so many sectors, that a sector of a chunk is of.
const fn end_of_unit(sector: u32, unit: u32) -> u32 {
    (sector + 1).next_multiple_of(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_padded_ends_with_its_unit_wherever_it_begins() {
        let ends: Vec<u32> = (0..9).map(|sector| end_of_unit(sector, 4)).collect();
        assert_eq!(ends, [4, 4, 4, 4, 8, 8, 8, 8, 12]);
    }
}
