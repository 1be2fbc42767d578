//! Dead chunks are reset, one command each, and are free then; or bad, if the media say so.
//!
//! Deliberately not here: when a chunk is dead, and when it may be reset (`space`).

use super::flight::Purpose;
use super::state::Ox;
use super::store::Store;
use ocssd_ftl::{Append, ChunkIndex};
use ocssd_lightnvm::{Completion, Op, Status};

/// Resets in flight (chosen: a unit each of a large drive).
const RESETS_MAX: usize = 64;
/// Dead chunks looked at in a turn (chosen: those that are read or wait for the log are few).
const LOOKED_AT_MAX: usize = 64;

impl<S: Store> Ox<S> {
    /// Resets chunks that died. True if any is.
    pub(crate) fn reset(&mut self) -> bool {
        let mut any = false;
        while self.resets < RESETS_MAX && self.flight.has_room(1) && self.refuses_changes().is_none() {
            // A mount resets what its checkpoint needs, and leaves the rest for later.
            if self.is_mounting && self.space.pool.free() > self.sizes.checkpoint_width {
                return any;
            }
            let Some(chunk) = self.space.next_dead(self.journal.log.durable(), LOOKED_AT_MAX) else {
                return any;
            };
            let addresses = self.run_at(Append { chunk, sector: 0 }, 1);
            self.flight.send(Purpose::Reset { chunk }, Op::Reset, addresses, None, 0);
            self.resets += 1;
            any = true;
        }
        any
    }

    /// A reset ended. A drive that failed says nothing of the chunk.
    pub(crate) fn reset_done(&mut self, chunk: ChunkIndex, completion: &Completion) {
        assert!(self.resets > 0, "a reset ended that was not sent");
        self.resets -= 1;
        let status = completion.status;
        if status.is_drive_failure() {
            return self.stop(status);
        }
        let is_good = status.is_success() || status == Status::INVALID_RESET;
        assert_eq!(self.space.pins(chunk), 0, "chunk {} was reset with data to be committed", chunk.0);
        self.stats.resets += 1;
        self.space.reset_done(chunk, is_good);
        S::was_reset(self, chunk);
    }
}
