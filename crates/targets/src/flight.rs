//! Commands on their way: places for what each is for, and the queue to the device.
//!
//! A target says what a purpose is. Deliberately not here: what the ends of commands mean.

use ocssd_base::{Ring, Slab, SlabKey, usize_of};
use ocssd_lightnvm::{Addresses, BufId, Command, Op, Tag, VECTOR_MAX};

/// Commands at once: what the deepest NVMe queue pairs of a host take (chosen).
pub const COMMANDS_MAX: u32 = 8192;

/// Commands in flight and not yet given out.
#[derive(Clone, Debug)]
pub struct Flight<P> {
    purposes: Slab<P>,
    outbox: Ring<Command>,
    /// Commands at once.
    most: usize,
}

impl<P: Copy + std::fmt::Debug> Flight<P> {
    /// None; at most `most` at once.
    pub fn new(most: u32) -> Self {
        assert!((1..=COMMANDS_MAX).contains(&most), "{most} commands at once");
        let places = usize_of(most);
        Self { purposes: Slab::new(most), outbox: Ring::new(places), most: places }
    }

    /// Room for `count` more commands.
    pub fn has_room(&self, count: usize) -> bool {
        self.purposes.len() + count <= self.most
    }

    /// Queues a command.
    pub fn send(
        &mut self,
        purpose: P,
        op: Op,
        addresses: Addresses,
        buffer: Option<BufId>,
        buffer_first: u32,
    ) {
        let command = self.make(purpose, op, addresses, buffer, buffer_first);
        self.outbox.push(command).expect("there are as many places as commands");
        assert!(self.outbox.len() <= self.purposes.len(), "a command without a purpose waits");
    }

    /// A command for the device that is given out at once.
    #[inline(always)]
    pub fn make(
        &mut self,
        purpose: P,
        op: Op,
        addresses: Addresses,
        buffer: Option<BufId>,
        buffer_first: u32,
    ) -> Command {
        let key = self.purposes.insert(purpose).expect("room was asked for before");
        assert!(addresses.count() <= VECTOR_MAX, "{} sectors in one command", addresses.count());
        assert!(buffer.is_some() || matches!(op, Op::Flush), "a command that moves data has a buffer");
        assert!(matches!(op, Op::Flush) || addresses.count() > 0, "a command names nothing");
        let oob = matches!(op, Op::Read | Op::Write { .. });
        Command { tag: Tag(key.0), op, addresses, buffer, buffer_first, oob }
    }

    /// The next command for the device.
    pub fn take(&mut self) -> Option<Command> {
        self.outbox.pop()
    }

    /// True if a command waits for the device.
    pub fn has_next(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// A command ended: what it was for.
    pub fn end(&mut self, tag: Tag) -> P {
        assert!(!self.purposes.is_empty(), "command {} ended, but none was in flight", tag.0);
        let purpose = *self.purposes.get(SlabKey(tag.0));
        self.purposes.free(SlabKey(tag.0));
        purpose
    }

    /// Commands in flight or queued.
    pub fn len(&self) -> usize {
        self.purposes.len()
    }

    /// True if the `reads` of users are all that goes on: no other command is in flight, and none waits for room.
    pub fn has_only(&self, reads: usize) -> bool {
        assert!(reads <= self.len(), "more reads are in flight than commands");
        reads == self.len() && self.has_room(1)
    }
}
