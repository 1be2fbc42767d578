//! Dead chunks are reset, one command each, and are free then; or bad, if the media say so.
//!
//! One of a unit at a time: a checkpoint sets many free at once, and a read is not to wait for all of them. Deliberately not
//! here: when a chunk is dead, and when it may be reset (`space`).

use super::canary::Canary;
use super::flight::Purpose;
use super::frames::Stream;
use super::state::Kv;
use ocssd_ftl::{Append, ChunkIndex};
use ocssd_lightnvm::{Completion, Op, Status};

/// Resets in flight (chosen: a unit each of a large drive).
const RESETS_MAX: usize = 64;
/// Dead chunks looked at in a turn (chosen: those that wait are few).
const LOOKED_AT_MAX: usize = 64;

impl Kv {
    /// Resets chunks that died. True if any is.
    pub(super) fn reset(&mut self) -> bool {
        let mut any = false;
        if self.space.dead_count() == 0 {
            return false;
        }
        let durable = self.frames.durable_before(&Stream::ALL, self.sequence + 1) - 1;
        let is_careless = self.has_canary(Canary::ResetBeforeDurable);
        while self.resets.len() < RESETS_MAX && self.flight.has_room(1) && self.refuses_changes().is_none() {
            // A mount resets what its checkpoint needs, and leaves the rest for later.
            if self.is_mounting && self.space.pool.free() > self.sizes.checkpoint_width {
                return any;
            }
            let Self { space, resets, .. } = self;
            let may = |unit| !resets.contains(&unit);
            let Some((chunk, unit)) = space.next_dead(durable, LOOKED_AT_MAX, may, is_careless) else {
                return any;
            };
            let is_first = resets.insert(unit);
            assert!(is_first, "two chunks of {unit:?} are reset at once");
            let addresses = self.run_at(Append { chunk, sector: 0 }, 1);
            self.flight.send(Purpose::Reset { chunk }, Op::Reset, addresses, None, 0);
            any = true;
        }
        any
    }

    /// A reset ended. A drive that failed says nothing of the chunk.
    pub(super) fn reset_done(&mut self, chunk: ChunkIndex, completion: &Completion) {
        let was_sent = self.resets.remove(&self.space.shape.split_chunk(chunk).1);
        assert!(was_sent, "a reset of chunk {} ended that was not sent", chunk.0);
        let status = completion.status;
        if status.is_drive_failure() {
            return self.stop(status);
        }
        self.stats.resets += 1;
        self.space.reset_done(chunk, status.is_success() || status == Status::INVALID_RESET);
    }
}
