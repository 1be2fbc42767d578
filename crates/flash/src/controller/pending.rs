//! Commands in progress: what the completion of each needs besides the drive's answer.
//!
//! Bounded by the drive's queue depth. A command refused before it reached the drive waits here too, until the
//! controller has had the time to answer.

use ocssd_base::{Nanos, Slab, SlabKey};
use ocssd_lightnvm::{Lba, Tag};
use ocssd_nvme::Cqe;
use std::collections::VecDeque;

/// What kind of command, as far as its completion and the health log go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// No bitmap.
    Scalar,
    /// DW0 and DW1 are the bitmap of failed entries.
    Vector,
    /// As [`Shape::Vector`], but one entry of the drive's bitmap stands for several of the command (1.2 erase: all
    /// planes of a block).
    Merged(Vec<u64>),
}

/// Which of the health log's counters a command counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// Host read commands.
    Read,
    /// Host write commands.
    Write,
    /// Neither.
    Neither,
}

/// One command in progress.
#[derive(Clone, Debug)]
pub(super) struct PendingCommand {
    pub(super) queue: u16,
    pub(super) cid: u16,
    pub(super) shape: Shape,
    pub(super) counted: Counted,
    /// The command's first address, for the error log.
    pub(super) lba: Lba,
    /// The controller was reset since: nobody waits for the completion.
    pub(super) forgotten: bool,
}

impl Shape {
    /// The command's bitmap for the drive's.
    pub(super) fn bitmap(&self, failed: u64) -> u64 {
        match self {
            Self::Scalar => 0,
            Self::Vector => failed,
            Self::Merged(masks) => {
                assert!(masks.len() <= 64, "a vector command has at most 64 entries, not {}", masks.len());
                let hit = |index: usize| failed >> index & 1 == 1;
                masks.iter().enumerate().filter(|(index, _)| hit(*index)).fold(0, |all, (_, mask)| all | mask)
            }
        }
    }
}

/// A command that the controller answers by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) at: Nanos,
    pub(super) completion: Cqe,
    /// The namespace it was for, for the error log.
    pub(super) nsid: u32,
}

/// Tags of entries have this bit; those of commands that targets give to the same drive do not.
const ENTRY: u32 = 1 << 31;

/// All commands in progress.
#[derive(Clone, Debug)]
pub(super) struct PendingCommands {
    commands: Slab<PendingCommand>,
    /// Answers of the controller itself, in the order of their times: each is due a constant time after its command.
    answers: VecDeque<Answer>,
    depth: usize,
}

impl PendingCommands {
    pub(super) fn new(queue_depth: u32) -> Self {
        assert!(queue_depth > 0, "a checked drive takes at least one command");
        let depth = usize::try_from(queue_depth).expect("32 bits fit an index");
        Self { commands: Slab::new(queue_depth), answers: VecDeque::with_capacity(depth), depth }
    }

    /// Commands the drive has.
    pub(super) fn in_drive(&self) -> u32 {
        u32::try_from(self.commands.len()).expect("at most the queue depth")
    }

    pub(super) fn count(&self) -> usize {
        self.commands.len() + self.answers.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.count() >= self.depth
    }

    /// A place for a command the drive is about to take.
    pub(super) fn insert(&mut self, command: PendingCommand) -> Tag {
        assert!(!self.is_full(), "room was checked before the command was looked at");
        assert!(!command.forgotten, "a new command has somebody who waits for it");
        let key = self.commands.insert(command).expect("there is a place for each command in progress");
        Tag(key.0 | ENTRY)
    }

    /// True if a command of this tag came as an entry; false if a target gave it.
    pub(super) const fn is_entry(tag: Tag) -> bool {
        tag.0 & ENTRY != 0
    }

    /// The command that the drive has finished.
    pub(super) fn remove(&mut self, tag: Tag) -> PendingCommand {
        assert!(Self::is_entry(tag), "tag {:#x} is of a target's command", tag.0);
        self.commands.remove(SlabKey(tag.0 & !ENTRY))
    }

    /// Keeps an answer until it is due.
    pub(super) fn answer(&mut self, answer: Answer) {
        assert!(!self.is_full(), "room was checked before the command was looked at");
        assert!(
            self.next_answer_at().is_none_or(|first| first <= answer.at),
            "time went back to {}",
            answer.at
        );
        self.answers.push_back(answer);
    }

    pub(super) fn next_answer_at(&self) -> Option<Nanos> {
        self.answers.front().map(|answer| answer.at)
    }

    pub(super) fn take_answer(&mut self, now: Nanos) -> Option<Answer> {
        self.answers.pop_front_if(|answer| answer.at <= now)
    }

    /// Nobody waits for what is in progress any more.
    pub(super) fn forget(&mut self) {
        assert!(self.count() <= self.depth, "{} commands of {}", self.count(), self.depth);
        self.answers.clear();
        let keys: Vec<SlabKey> = self.commands.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.commands.get_mut(key).forgotten = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merged_entry_marks_every_entry_it_stands_for() {
        let shape = Shape::Merged(vec![0b0011, 0b1100]);
        assert_eq!((shape.bitmap(0b01), shape.bitmap(0b10), shape.bitmap(0b11)), (0b0011, 0b1100, 0b1111));
        assert_eq!((Shape::Vector.bitmap(5), Shape::Scalar.bitmap(5)), (5, 0));
    }
}
