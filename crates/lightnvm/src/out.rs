//! Where a target puts what it has to give: commands for the device, replies for the host.
//!
//! Deliberately not here: who takes them (`engine`).

use crate::buffers::{Buffers, Payload, PayloadFormat, STAMP_BYTES};
use crate::command::Command;
use crate::target::assert_tag;

/// The sinks of a target, and the buffers its commands name. Whoever calls the target empties both sinks before the next
/// call of another target.
#[derive(Debug)]
pub struct Out<Reply> {
    /// The buffers.
    pub buffers: Buffers,
    commands: Vec<Command>,
    replies: Vec<Reply>,
    /// Commands that may be in the sink at once.
    room: usize,
}

impl<Reply> Out<Reply> {
    /// Empty sinks with room for `room` commands.
    #[must_use]
    pub const fn new(buffers: Buffers, room: usize) -> Self {
        Self { buffers, commands: Vec::new(), replies: Vec::new(), room }
    }

    /// The sinks for a target below another, which lends it buffers and room at each call ([`Self::lend`]).
    #[must_use]
    pub const fn below() -> Self {
        let format = PayloadFormat {
            payload: Payload::Stamp,
            data_bytes: STAMP_BYTES,
            sector_bytes: STAMP_BYTES,
            oob_bytes: 0,
        };
        Self::new(Buffers::new(format), 0)
    }

    /// True if [`Self::command`] may be called.
    #[inline(always)]
    #[must_use]
    pub const fn has_room(&self) -> bool {
        self.commands.len() < self.room
    }

    /// Gives a command to the device.
    ///
    /// # Panics
    /// If there is no room, or the command's tag has more than [`TARGET_TAG_BITS`](crate::TARGET_TAG_BITS) bits.
    #[inline(always)]
    pub fn command(&mut self, command: Command) {
        assert!(self.has_room(), "a target gave more commands than it was allowed");
        assert_tag(&command);
        self.commands.push(command);
    }

    /// Gives a reply to the host. There is always room: a target replies at most once to each request it took.
    #[inline(always)]
    pub fn reply(&mut self, reply: Reply) {
        self.replies.push(reply);
    }

    /// The commands given and not taken yet, oldest first.
    #[inline(always)]
    #[must_use]
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// Replies given and not taken yet.
    #[inline(always)]
    #[must_use]
    pub const fn reply_count(&self) -> usize {
        self.replies.len()
    }

    /// How many commands may be in the sink at once from now on; returns how many it was before.
    pub const fn set_room(&mut self, room: usize) -> usize {
        std::mem::replace(&mut self.room, room)
    }

    /// So many commands went to the device: there is less room.
    #[inline(always)]
    pub const fn use_room(&mut self, commands: usize) {
        self.room = self.room.saturating_sub(commands);
    }

    /// The sink of commands with the buffers they name, to be emptied.
    #[inline(always)]
    pub const fn commands_mut(&mut self) -> (&mut Vec<Command>, &mut Buffers) {
        (&mut self.commands, &mut self.buffers)
    }

    /// The sink of replies with the buffers, to be emptied.
    #[inline(always)]
    pub const fn replies_mut(&mut self) -> (&mut Vec<Reply>, &mut Buffers) {
        (&mut self.replies, &mut self.buffers)
    }

    /// Calls a target that stands in for this one: it finds buffers, room and commands of this sink in `inner`, so that what it
    /// gives to the device is given here. Only its replies stay in `inner`. Cost: a few words are swapped, twice.
    #[inline(always)]
    pub fn pass<InnerReply, T>(
        &mut self,
        inner: &mut Out<InnerReply>,
        call: impl FnOnce(&mut Out<InnerReply>) -> T,
    ) -> T {
        assert!(inner.commands.is_empty(), "commands of the target below were left behind");
        self.swap_but_replies(inner);
        let result = call(inner);
        self.swap_but_replies(inner);
        result
    }

    #[inline(always)]
    const fn swap_but_replies<InnerReply>(&mut self, inner: &mut Out<InnerReply>) {
        std::mem::swap(&mut self.buffers, &mut inner.buffers);
        std::mem::swap(&mut self.commands, &mut inner.commands);
        std::mem::swap(&mut self.room, &mut inner.room);
    }

    /// Calls a target below this one with `inner`, in which it finds the buffers and room for `room` commands; what it gives
    /// stays in `inner`, for the target above to judge and pass on.
    pub fn lend<InnerReply, T>(
        &mut self,
        inner: &mut Out<InnerReply>,
        room: usize,
        call: impl FnOnce(&mut Out<InnerReply>) -> T,
    ) -> T {
        assert!(inner.commands.is_empty(), "commands of the target below were left behind");
        std::mem::swap(&mut self.buffers, &mut inner.buffers);
        inner.room = room;
        let result = call(inner);
        std::mem::swap(&mut self.buffers, &mut inner.buffers);
        result
    }
}
