//! Dead chunks are reset, one command each, and are free then; or bad, if the media say so.
//!
//! A few of a unit at a time: a checkpoint sets many free at once, and a read is not to wait for all of them. Deliberately not
//! here: when a chunk is dead, and when it may be reset (`space`).

use super::buffer_units::Stream;
use super::canary::Canary;
use super::flight::Purpose;
use super::state::Kv;
use ocssd_ftl::{Append, ChunkIndex};
use ocssd_lightnvm::{Completion, Op, Status};

/// Resets in flight (chosen: a unit each of a large drive).
const RESETS_MAX: u32 = 64;
/// Dead chunks looked at in a turn (chosen: those that wait are few).
const LOOKED_AT_MAX: usize = 64;

impl Kv {
    /// Resets chunks that died. True if any is.
    pub(super) fn reset(&mut self) -> bool {
        let mut any = false;
        if self.space.dead_count() == 0 {
            return false;
        }
        let durable = self.buffer_units.durable_before(&Stream::ALL, self.sequence + 1) - 1;
        let most = self.options.resets_per_unit.unwrap_or(RESETS_MAX);
        let is_careless = self.has_canary(Canary::ResetBeforeDurable);
        while self.resets.values().sum::<u32>() < RESETS_MAX
            && self.flight.has_room(1)
            && self.refuses_changes().is_none()
        {
            // A mount resets what its checkpoint needs, and leaves the rest for later.
            if self.is_mounting && self.space.pool.free() > self.sizes.checkpoint_width {
                return any;
            }
            let Self { space, resets, .. } = self;
            let may = |unit| resets.get(&unit).is_none_or(|&count| count < most);
            let Some((chunk, unit)) = space.next_dead(durable, LOOKED_AT_MAX, may, is_careless) else {
                return any;
            };
            let of_unit = resets.entry(unit).or_default();
            *of_unit += 1;
            assert!(*of_unit <= most, "{of_unit} chunks of {unit:?} are reset at once");
            let addresses = self.run_at(Append { chunk, sector: 0 }, 1);
            self.flight.send(Purpose::Reset { chunk }, Op::Reset, addresses, None, 0);
            any = true;
        }
        any
    }

    /// A reset ended. A drive that failed says nothing of the chunk.
    pub(super) fn reset_done(&mut self, chunk: ChunkIndex, completion: &Completion) {
        let unit = self.space.shape.split_chunk(chunk).1;
        let of_unit = self.resets.get_mut(&unit).expect("a reset ends that was sent");
        *of_unit -= 1;
        if *of_unit == 0 {
            self.resets.remove(&unit);
        }
        let status = completion.status;
        if status.is_drive_failure() {
            return self.stop(status);
        }
        self.stats.resets += 1;
        if status.is_success() {
            self.wear.on_reset(chunk);
        }
        self.space.reset_done(chunk, status.is_success() || status == Status::INVALID_RESET);
    }
}
