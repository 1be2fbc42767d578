//! Targets on a drive that also has a controller: their typed commands and a host's entries share the drive.
//!
//! Both go into the same drive in the order they come; ends are sorted by who gave the command. Whoever is asked first for
//! ends also finds those of the other side, and keeps them until that side asks. The host of the entries has no buffers of
//! targets at hand, neither when it finds the end of a target's read nor when its write changes content; so a target's reads are
//! copied when they are taken. Deliberately not here: who may touch which parallel units. That is the caller's, who has the
//! leases.

use super::front_end::{Controller, Ended};
use super::pending::PendingCommands;
use ocssd_base::Nanos;
use ocssd_lightnvm::{Buffers, ChunkDescriptor, ChunkId, Command, Completion, Device, Geometry, Rejected};
use std::collections::VecDeque;

/// Commands of targets, and what ended while the other side was asked. Each list is as long as the drive's queue at most.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// Ends of entries that were found while targets asked.
    pub(super) entries_ended: VecDeque<(u16, [u8; 16])>,
    /// Ends of typed commands that were found while the host of the entries asked.
    pub(super) typed_ended: VecDeque<Completion>,
    /// Typed commands taken whose end was not handed over.
    typed: u32,
}

impl Beside {
    /// Something waits to be taken.
    pub(super) fn has_ended(&self) -> bool {
        !self.entries_ended.is_empty() || !self.typed_ended.is_empty()
    }

    /// Typed commands the drive has.
    pub(super) fn in_drive(&self) -> u32 {
        let ended = u32::try_from(self.typed_ended.len()).expect("at most the queue depth");
        assert!(ended <= self.typed, "more typed commands ended than were taken");
        self.typed - ended
    }

    fn typed_ends(&mut self, completion: Completion) -> Option<Completion> {
        assert!(self.typed > 0, "a typed command ended that was never taken");
        self.typed -= 1;
        Some(completion)
    }
}

/// The way of typed commands. Tags must be below 2^31.
impl Device for Controller {
    fn geometry(&self) -> &Geometry {
        Self::geometry(self)
    }

    fn chunk(&self, chunk: ChunkId) -> ChunkDescriptor {
        self.flash.chunk(chunk)
    }

    fn submit(&mut self, now: Nanos, command: Command, buffers: &mut Buffers) -> Result<(), Rejected> {
        assert!(!PendingCommands::is_entry(command.tag), "tag {:#x} has the bit of entries", command.tag.0);
        Device::submit(&mut self.flash, now, command, buffers)?;
        self.flash.copy_deferred(buffers);
        self.beside.typed += 1;
        Ok(())
    }

    fn room(&self) -> u32 {
        Device::room(&self.flash)
    }

    fn deadline(&self) -> Option<Nanos> {
        Self::deadline(self)
    }

    fn poll_completion(&mut self, now: Nanos, _buffers: &mut Buffers) -> Option<Completion> {
        if let Some(completion) = self.beside.typed_ended.pop_front() {
            return self.beside.typed_ends(completion);
        }
        loop {
            match self.poll_end(now)? {
                Ended::Typed(completion) => return self.beside.typed_ends(completion),
                Ended::Entry(queue, completion) => self.beside.entries_ended.push_back((queue, completion)),
                Ended::Unheard => {}
            }
        }
    }

    fn work_ahead(&mut self, limit: Nanos) -> Option<Nanos> {
        if self.beside.has_ended() {
            return Some(Nanos::ZERO);
        }
        let answer = self.pending.next_answer_at().filter(|&at| at < limit);
        self.flash.work_ahead(answer.unwrap_or(limit)).or(answer)
    }
}
