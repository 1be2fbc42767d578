//! Dead chunks are reset, one command each, and are free then; or bad, if the media say so.
//!
//! A chunk the drive holds open is reset as it is where the drive allows that; else it is filled to its end first. Deliberately
//! not here: when a chunk is dead (`space`).

use super::flight::Purpose;
use super::state::Zns;
use ocssd_ftl::{Append, ChunkIndex};
use ocssd_lightnvm::{Completion, Op, Status};

/// Resets in flight (chosen: a unit each of a large drive).
const RESETS_MAX: usize = 64;
/// Dead chunks looked at in a turn (chosen: those that wait for the log are few).
const LOOKED_AT_MAX: usize = 64;

impl Zns {
    /// Resets chunks that died. True if any is.
    pub(super) fn reset(&mut self) -> bool {
        let mut any = false;
        while self.resets < RESETS_MAX && self.flight.has_room(1) {
            let Some(chunk) = self.space.next_dead(self.journal.log.durable(), LOOKED_AT_MAX) else { break };
            any = true;
            if self.space.take_unwritten(chunk) {
                self.space.reset_done(chunk, true);
                continue;
            }
            self.resets += 1;
            let is_filling = self.filling.contains(&chunk) || self.padded.contains(&chunk);
            let must_pad = self.space.tip(chunk).is_some() && !self.early_reset;
            if must_pad && !is_filling {
                self.filling.push_back(chunk);
            }
            if must_pad || is_filling {
                self.reset_after_padding.insert(chunk);
            } else {
                self.send_reset(chunk);
            }
        }
        if self.space.waits_for_log(self.journal.log.durable())
            && self.space.free() <= self.space.owed() + self.sizes.zone_chunks
        {
            self.await_log(self.journal.log.end());
        }
        any | self.fill()
    }

    fn send_reset(&mut self, chunk: ChunkIndex) {
        let addresses = self.run_at(Append { chunk, sector: 0 }, 1);
        self.flight.send(Purpose::Reset { chunk }, Op::Reset, addresses, None, 0);
    }

    /// Fills chunks to their end that nobody writes, one write at a time each. True if a write was sent.
    fn fill(&mut self) -> bool {
        let mut any = false;
        while self.flight.has_room(1) {
            if self.filling.is_empty() || self.padding.is_empty() {
                break;
            }
            let chunk = self.filling.pop_front().expect("it was looked at");
            let padding = self.padding.pop().expect("it was looked at");
            let tip = self.space.tip(chunk).expect("a chunk is filled from where it is open");
            let sectors = self.sizes.unit - tip % self.sizes.unit;
            assert!(tip + sectors <= self.sizes.chunk, "chunk {} is filled beyond its end", chunk.0);
            let addresses = self.run_at(Append { chunk, sector: tip }, sectors);
            self.stats.programmed += u64::from(sectors);
            self.stats.filled += u64::from(sectors);
            self.padded.insert(chunk);
            let purpose = Purpose::Padding { chunk, sectors, padding };
            self.flight.send(purpose, Op::Write { fua: false }, addresses, Some(padding), 0);
            any = true;
        }
        any
    }

    /// A write of padding to a chunk's end is over.
    pub(super) fn padding_done(&mut self, chunk: ChunkIndex, sectors: u32, completion: &Completion) {
        let status = completion.status;
        if status.is_drive_failure() {
            return self.stop(status);
        }
        assert!(self.padded.remove(&chunk), "chunk {} was not being filled", chunk.0);
        let goes_on = status.is_success() || status == Status::WRITE_NEXT_UNIT;
        let tip = self.space.tip(chunk).expect("a chunk is filled from where it is open") + sectors;
        // A drive that fails a write closes the chunk, or leaves it where it can be written next.
        self.space.filled(chunk, if goes_on { tip } else { self.sizes.chunk });
        let is_open = self.space.tip(chunk).is_some();
        if self.reset_after_padding.contains(&chunk) && (!is_open || self.early_reset) {
            self.reset_after_padding.remove(&chunk);
            self.send_reset(chunk);
        } else if is_open {
            self.filling.push_back(chunk);
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
        let is_good = status.is_success() || status == Status::INVALID_RESET;
        assert!(!self.tails.holds(chunk), "chunk {} was reset with tails in it", chunk.0);
        self.stats.resets += 1;
        self.space.reset_done(chunk, is_good);
        // Those of the log and of checkpoints wear on their own: no zone has them, nor what is moved.
        if !self.space.is_metadata(chunk) {
            self.wear.on_reset(chunk);
        }
    }
}
