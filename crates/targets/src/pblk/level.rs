//! Static wear levelling: closed lines that lag in wear are emptied like victims, though that gives no space.
//!
//! A line of data goes through garbage collection; one of a checkpoint is freed by the next checkpoint, which is asked for. One
//! line is moved at a time, and only while users have space, so that collection for space is never in want of it. Where wear
//! lags by twice the bound, users wait as long as a line is being moved. Deliberately not here: which line, how often
//! (`ftl::WearLeveller`), and how sectors move (`gc`).

use super::Pblk;
use super::canary::Canary;
use super::due::Due;
use ocssd_ftl::{LineId, Stream};

impl Pblk {
    /// The line to be moved now for its wear, if one is due. A line of a checkpoint is dealt with here.
    pub(super) fn wear_victim(&mut self) -> Option<LineId> {
        if !self.wear.may_pick() || self.is_read_only() || self.has_canary(Canary::WearIgnored) {
            return None;
        }
        // Where free lines are as many as collection for space keeps, and one, there may never be more: what is urgent goes then.
        let spare = u32::from(!self.wear.is_urgent());
        if self.gc.levelling().is_some() || self.free_lines_worth() <= self.lines_kept() + spare {
            return None;
        }
        let Self { wear, lines, valid, gc, checkpoints, .. } = self;
        let map_stream = super::state::MAP_STREAM;
        let picked = wear.pick(lines, |line, entry| {
            if entry.stream == map_stream {
                return checkpoints.may_ask() && !checkpoints.is_obsolete(entry.sequence);
            }
            valid.count(line) > 0 && !gc.is_busy_with(line)
        });
        let line = picked?;
        self.wear.moving();
        self.stats.wear_moves += 1;
        if self.is_map_stream(self.lines.get(line).stream) {
            assert!(self.checkpoints.is_idle(), "a checkpoint is asked for under another");
            self.checkpoints.ask_leaving(self.lines.get(line).sequence);
            self.call(Due::ALL);
            return None;
        }
        assert!(self.valid.count(line) > 0, "line {} is moved but holds nothing", line.0);
        self.stats.wear_moved += self.valid.count(line);
        Some(line)
    }

    /// The free line a stream opens next: for what was moved already, and so may stay, a worn one once wear differs.
    pub(super) fn take_line(&mut self, stream: Stream) -> Option<LineId> {
        let stays = if self.streams_count() == 1 {
            self.gc.levelling().is_some() && !self.is_map_stream(stream)
        } else {
            self.is_gc_stream(stream)
        };
        if stays && self.wear.prefers_worn(&self.lines) {
            return self.lines.take_free_worn();
        }
        self.lines.take_free()
    }

    /// True if users wait because wear lags too far, and a line is being moved.
    pub(super) fn waits_for_wear(&self) -> bool {
        let is_held = self.wear.is_paced() && self.gc.levelling().is_some();
        assert!(!is_held || self.wear.bound().is_some(), "users wait for wear that has no bound");
        is_held
    }
}
