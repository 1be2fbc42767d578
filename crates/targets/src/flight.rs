//! Commands on their way: places for what each is for, and the queue to the device.
//!
//! A target says what a purpose is. Deliberately not here: what the ends of commands mean.

use crate::plane_reads::PlaneRule;
use ocssd_base::{Ring, Slab, SlabKey, usize_of};
use ocssd_lightnvm::{Addresses, BufId, Command, Op, Tag, VECTOR_MAX};

/// Commands at once: what the deepest NVMe queue pairs of a host take (chosen).
pub const COMMANDS_MAX: u32 = 8192;

/// Commands in flight and not yet given out.
#[derive(Clone, Debug)]
pub struct Flight<P> {
    purposes: Slab<P>,
    to_device: Ring<Command>,
    /// Commands at once.
    most: usize,
    planes: PlaneRule,
}

impl<P: Copy + std::fmt::Debug> Flight<P> {
    /// None; at most `most` at once, whose reads ask for plane mode by this rule.
    pub fn new(most: u32, planes: PlaneRule) -> Self {
        assert!((1..=COMMANDS_MAX).contains(&most), "{most} commands at once");
        let places = usize_of(most);
        Self { purposes: Slab::new(most), to_device: Ring::new(places), most: places, planes }
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
        self.to_device.push(command).expect("there are as many places as commands");
        assert!(self.to_device.len() <= self.purposes.len(), "a command without a purpose waits");
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
        assert!(
            buffer.is_some() || matches!(op, Op::Flush | Op::Reset),
            "a command that moves data has a buffer"
        );
        assert!(matches!(op, Op::Flush) || addresses.count() > 0, "a command names nothing");
        let oob = matches!(op, Op::Read | Op::Write { .. });
        let plane_mode = self.planes.of(addresses.count());
        Command { tag: Tag(key.0), op, addresses, buffer, buffer_first, oob, plane_mode }
    }

    /// The next command for the device.
    pub fn take(&mut self) -> Option<Command> {
        self.to_device.pop()
    }

    /// True if a command waits for the device.
    pub fn has_next(&self) -> bool {
        !self.to_device.is_empty()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane_reads::PlaneReads;
    use ocssd_lightnvm::{ChunkId, Ppa};

    const BUFFER: Option<BufId> = Some(BufId(7));

    fn run(count: u32) -> Addresses {
        Addresses::Run { first: Ppa::new(ChunkId(3), 8), count }
    }

    #[test]
    fn commands_leave_in_order_and_come_back_in_any_with_what_they_are_for() {
        let mut flight = Flight::new(9, PlaneRule::new(PlaneReads::Aligned, 16));
        assert!(!flight.has_next() && flight.take().is_none());
        for (purpose, op) in [('r', Op::Read), ('w', Op::Write { fua: true }), ('e', Op::Reset)] {
            flight.send(purpose, op, run(4), BUFFER, 2);
        }
        flight.send('f', Op::Flush, Addresses::None, None, 0);
        assert_eq!((flight.len(), flight.has_next()), (4, true));
        let taken: Vec<Command> = std::iter::from_fn(|| flight.take()).collect();
        let parts = taken.iter().map(|c| (c.op, c.addresses.count(), c.buffer, c.buffer_first, c.oob));
        let expected = [
            (Op::Read, 4, BUFFER, 2, true),
            (Op::Write { fua: true }, 4, BUFFER, 2, true),
            (Op::Reset, 4, BUFFER, 2, false),
            (Op::Flush, 0, None, 0, false),
        ];
        assert_eq!(parts.collect::<Vec<_>>(), expected);
        assert_eq!((flight.len(), flight.has_next()), (4, false), "they are in flight");
        let ended: String = [2, 0, 3, 1].iter().map(|&at: &usize| flight.end(taken[at].tag)).collect();
        assert_eq!((ended.as_str(), flight.len()), ("erfw", 0));
    }

    #[test]
    fn there_is_room_for_as_many_as_were_asked_for() {
        let mut flight = Flight::new(50, PlaneRule::new(PlaneReads::Never, 16));
        let most = 50;
        assert_eq!([most, most + 1].map(|count| flight.has_room(count)), [true, false]);
        for _ in 0..most - 1 {
            flight.make((), Op::Read, run(1), BUFFER, 0);
        }
        assert_eq!([1, 2].map(|count| flight.has_room(count)), [true, false]);
        assert!(flight.has_only(most - 1) && !flight.has_only(most - 2));
        flight.make((), Op::Read, run(1), BUFFER, 0);
        assert!(!flight.has_only(most), "another would wait for room");
    }
}
