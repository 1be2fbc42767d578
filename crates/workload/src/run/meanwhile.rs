//! Jobs that begin and end: what was written to a job's target meanwhile, and a caller that wants to look at the drive just then.
//!
//! What a job wrote alone does not tell what its target had to do: others write beside it. Deliberately not here: what the media
//! did meanwhile, which a source does not see.

use super::runner::{Runner, index};
use super::worker::Phase;
use ocssd_lightnvm::TargetId;

/// How far a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its turn has not come.
    Waiting,
    /// It asks, flushes or verifies.
    Running,
    /// It has ended, or will never begin.
    Done,
}

/// Looks of a caller, and what workers note for it.
#[derive(Debug, Default)]
pub(super) struct Meanwhile {
    /// The caller wants to look when a worker began or ended.
    is_watched: bool,
    /// One did since the caller looked.
    has_changed: bool,
    /// Bytes written to a worker's target: before it began, until it ended, and from then on meanwhile.
    written: Vec<u64>,
}

impl Runner {
    /// From now on the source says that it is finished whenever a worker began or ended, until [`Self::go_on`]; whether all is done
    /// says [`Self::is_done`]. Nothing else changes.
    pub fn pause_at_turns(&mut self) {
        self.meanwhile =
            Meanwhile { is_watched: true, has_changed: false, written: vec![0; self.workers.len()] };
    }

    /// The caller has looked.
    pub fn go_on(&mut self) {
        self.meanwhile.has_changed = false;
    }

    /// True if all workers are done and nothing is in flight.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done == self.workers.len() && self.in_flight == 0
    }

    pub(super) fn is_paused(&self) -> bool {
        self.meanwhile.is_watched && self.meanwhile.has_changed
    }

    /// How far a worker is, by its number among the results.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn stage(&self, worker: usize) -> Stage {
        match self.workers[worker].phase {
            Phase::Waiting => Stage::Waiting,
            Phase::Running | Phase::Flushing | Phase::Verifying => Stage::Running,
            Phase::Done => Stage::Done,
        }
    }

    /// Bytes that were written to the target of a worker between its beginning and its end, by whomever, as far as they are
    /// measured; 0 of one that has not ended, or if nobody pauses.
    ///
    /// # Panics
    /// If there is no such worker.
    #[must_use]
    pub fn written_meanwhile(&self, worker: usize) -> u64 {
        let has_ended = self.workers[worker].phase == Phase::Done;
        self.meanwhile.written.get(worker).copied().filter(|_| has_ended).unwrap_or(0)
    }

    /// A worker has begun, or ended.
    pub(super) fn note_turn(&mut self, id: u32) {
        if !self.meanwhile.is_watched {
            return;
        }
        self.meanwhile.has_changed = true;
        let worker = &self.workers[index(id)];
        let so_far = self.written_to(worker.plan.target);
        let written = &mut self.meanwhile.written[index(id)];
        // What a ramp leaves out is set back when a worker begins.
        *written = so_far.saturating_sub(*written);
    }

    fn written_to(&self, target: TargetId) -> u64 {
        let all = self.workers.iter().zip(&self.results).filter(|(worker, _)| worker.plan.target == target);
        all.map(|(_, result)| result.write.io_bytes).sum()
    }
}
