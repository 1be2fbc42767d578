//! A recorded log while it is replayed: what comes next, and not before when.
//!
//! A pause counts from the start of the I/O before, as in fio: a drive that cannot follow shifts what comes after.
//! Deliberately not here: reading a log (`job`), and checking that it fits its target (`plan`).

use crate::job::{IologAction, IologOp};
use ocssd_base::Nanos;
use std::sync::Arc;

/// The replay of one worker.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    actions: Arc<[IologAction]>,
    next: usize,
    started: Nanos,
    last_issue: Nanos,
}

/// The next I/O, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplayStep {
    pub(super) op: IologOp,
    pub(super) block: u64,
    pub(super) count: u32,
    /// It may start then.
    pub(super) at: Nanos,
}

impl Replay {
    /// # Panics
    /// If there is nothing to replay.
    pub(super) fn new(actions: Arc<[IologAction]>) -> Self {
        assert!(!actions.is_empty(), "a log without I/O was refused when it was read");
        Self { actions, next: 0, started: Nanos::ZERO, last_issue: Nanos::ZERO }
    }

    pub(super) const fn start(&mut self, now: Nanos) {
        (self.started, self.last_issue) = (now, now);
    }

    /// What comes next; `None` at the end.
    pub(super) fn peek(&self, block_bytes: u32) -> Option<ReplayStep> {
        let action = self.actions.get(self.next)?;
        let blocks = |bytes: u64| bytes / u64::from(block_bytes);
        Some(ReplayStep {
            op: action.op,
            block: blocks(action.offset),
            count: u32::try_from(blocks(action.bytes)).expect("checked by the plan"),
            // Pauses are bounded when a log is read, but there may be many.
            at: Nanos(self.last_issue.0.saturating_add(action.delay.0)).max(self.started + action.not_before),
        })
    }

    /// It was issued; true if it was the last.
    pub(super) fn on_issued(&mut self, now: Nanos) -> bool {
        self.last_issue = now;
        self.next += 1;
        self.next == self.actions.len()
    }

    /// How far it is, in thousandths.
    pub(super) fn thousandths(&self) -> u128 {
        self.next as u128 * 1_000 / self.actions.len() as u128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_count_from_the_io_before_and_waits_from_the_start() {
        let action = |delay, not_before| IologAction {
            op: IologOp::Read,
            offset: 8_192,
            bytes: 4_096,
            delay: Nanos(delay),
            not_before: Nanos(not_before),
            line: 2,
        };
        let actions = [action(0, 0), action(50, 0), action(50, 1_000), action(50, 1_000)];
        let mut replay = Replay::new(Arc::from(actions));
        replay.start(Nanos(100));
        let mut starts = Vec::new();
        for late in [0, 7, 0, 0] {
            let step = replay.peek(4_096).expect("four of them");
            assert_eq!((step.block, step.count), (2, 1));
            starts.push(step.at.0);
            replay.on_issued(step.at + Nanos(late));
        }
        assert_eq!(starts, [100, 150, 1_100, 1_150]);
        assert_eq!((replay.peek(4_096), replay.thousandths()), (None, 1_000));
    }
}
