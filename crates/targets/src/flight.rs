//! Commands on their way: places for what each is for, and the queue to the device.
//!
//! A target says what a purpose is. It hears of a change that the drive did not carry out once that is over, see `send_again`.
//! Deliberately not here: what the ends of commands mean.

use crate::plane_reads::PlaneRule;
use crate::send_again::{SendAgain, Verdict};
use ocssd_base::{Nanos, Ring, Slab, SlabKey, usize_of};
use ocssd_lightnvm::block::{Counter, CounterValue};
use ocssd_lightnvm::{
    Addresses, BlockingDevice, BufId, Buffers, Command, Completion, Op, PowerCut, Tag, VECTOR_MAX,
};

/// Commands at once: what the deepest NVMe queue pairs of a host take (chosen).
pub const COMMANDS_MAX: u32 = 8192;

/// What a command in flight is for.
#[derive(Clone, Copy, Debug)]
struct InFlight<P> {
    purpose: P,
    /// It is no read: if the drive does not carry it out, it is sent again.
    is_change: bool,
}

/// Commands in flight and not yet given out.
#[derive(Clone, Debug)]
pub struct Flight<P> {
    purposes: Slab<InFlight<P>>,
    again: SendAgain,
    /// Nothing is sent again: only where a bug is planted.
    gives_up_at_once: bool,
    to_device: Ring<Command>,
    /// Commands at once.
    most: usize,
    planes: PlaneRule,
    /// Sectors of the writes that were sent.
    written: u64,
}

impl<P: Copy + std::fmt::Debug> Flight<P> {
    /// None; at most `most` at once, whose reads ask for plane mode by this rule.
    pub fn new(most: u32, planes: PlaneRule) -> Self {
        assert!((1..=COMMANDS_MAX).contains(&most), "{most} commands at once");
        let places = usize_of(most);
        Self {
            purposes: Slab::new(most),
            again: SendAgain::new(most),
            gives_up_at_once: false,
            to_device: Ring::new(places),
            most: places,
            planes,
            written: 0,
        }
    }

    /// As it is, but the target hears of every failure at once: a planted bug.
    #[must_use]
    pub fn giving_up_at_once(self, gives_up_at_once: bool) -> Self {
        Self { gives_up_at_once, ..self }
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
        if !matches!(op, Op::Read) {
            self.again.note(&command);
        }
        if matches!(op, Op::Write { .. }) {
            self.written += u64::from(command.addresses.count());
        }
        self.to_device.push(command).expect("there are as many places as commands");
        assert!(self.to_device.len() <= self.purposes.len(), "a command without a purpose waits");
    }

    /// A command for the device that is given out at once; a change is [sent](Self::send).
    #[inline(always)]
    pub fn make(
        &mut self,
        purpose: P,
        op: Op,
        addresses: Addresses,
        buffer: Option<BufId>,
        buffer_first: u32,
    ) -> Command {
        let is_change = !matches!(op, Op::Read);
        let key = self.purposes.insert(InFlight { purpose, is_change });
        let key = key.expect("room was asked for before");
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

    /// A command ended: what it was for. `None` of a change that is sent again; one that failed in every try ends with the
    /// status of a drive that does not work.
    #[inline(always)]
    pub fn end(&mut self, now: Nanos, completion: &mut Completion, buffers: &Buffers) -> Option<P> {
        let key = SlabKey(completion.tag.0);
        assert!(!self.purposes.is_empty(), "command {} ended, but none was in flight", key.0);
        let InFlight { purpose, is_change } = *self.purposes.get(key);
        let is_plain = !is_change || completion.status.is_success() && self.again.is_idle();
        if !is_plain && self.goes_on(now, completion, buffers) {
            return None;
        }
        self.purposes.free(key);
        if !is_plain {
            self.release(buffers);
        }
        Some(purpose)
    }

    /// True if a change that ended is not over.
    #[inline(never)]
    fn goes_on(&mut self, now: Nanos, completion: &mut Completion, buffers: &Buffers) -> bool {
        let Self { purposes, again, .. } = self;
        !self.gives_up_at_once
            && again.on_end(now, completion, &|| changes(purposes), buffers) == Verdict::GoesOn
    }

    /// A change is over: what was held behind it goes out.
    #[inline(never)]
    fn release(&mut self, buffers: &Buffers) {
        for command in self.again.released(&changes(&self.purposes), buffers) {
            self.to_device.push(command).expect("it has the place it had");
        }
    }

    /// When a change is sent again next.
    pub fn deadline(&self) -> Option<Nanos> {
        if self.again.is_idle() { None } else { self.again.deadline() }
    }

    /// Queues the changes that waited long enough.
    pub fn on_deadline(&mut self, now: Nanos) {
        for command in self.again.due(now) {
            self.to_device.push(command).expect("it has the place it had");
        }
    }

    /// In a mount: waits for the next change that is to be sent again, if one is. False if none is.
    ///
    /// # Errors
    /// If the power goes.
    pub fn wait(&mut self, device: &mut dyn BlockingDevice) -> Result<bool, PowerCut> {
        let Some(at) = self.deadline() else { return Ok(false) };
        device.wait(at.saturating_since(device.now()))?;
        self.on_deadline(device.now());
        assert!(self.has_next(), "a change was due at {at} and is not sent");
        Ok(true)
    }

    /// Sectors of the writes that were sent, each counted once: a write that goes out again because the drive did not carry it
    /// out programs nothing twice.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// What it counts.
    pub fn counter(&self) -> Counter {
        let about = "writes, resets and flushes the drive did not carry out, sent again";
        Counter { name: "sent_again", about, value: CounterValue::Count(self.again.count()) }
    }

    /// Asserts that what is to be sent again is in flight.
    pub fn check(&self) {
        self.again.check(&changes(&self.purposes));
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

/// The places of all changes.
fn changes<P>(purposes: &Slab<InFlight<P>>) -> Vec<SlabKey> {
    purposes.iter().filter(|(_, command)| command.is_change).map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane_reads::PlaneReads;
    use ocssd_lightnvm::{ChunkId, Geometry, Payload, PayloadFormat, Ppa, Status};

    const BUFFER: Option<BufId> = Some(BufId(7));

    fn nothing() -> Buffers {
        Buffers::new(PayloadFormat::new(Payload::Stamp, &Geometry::example(1, 1, 4, 64, 4)))
    }

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
        assert_eq!(flight.written(), 4, "a read, a reset and a flush write nothing");
        let buffers = nothing();
        let end = |&at: &usize| {
            flight.end(Nanos(0), &mut Completion::success(taken[at].tag), &buffers).expect("it is over")
        };
        let ended: String = [2, 0, 3, 1].iter().map(end).collect();
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

    /// Ends the command with this tag; what it was for, if it is over, and the status the target hears.
    fn end(flight: &mut Flight<char>, now: u64, tag: Tag, status: Status) -> (Option<char>, Status) {
        let mut completion = Completion { status, ..Completion::success(tag) };
        (flight.end(Nanos(now), &mut completion, &nothing()), completion.status)
    }

    #[test]
    fn a_change_that_was_not_done_goes_out_again_in_its_place_and_what_follows_it_behind_it() {
        let mut flight = Flight::new(9, PlaneRule::new(PlaneReads::Never, 16));
        let at = |sector| Addresses::Run { first: Ppa::new(ChunkId(3), sector), count: 4 };
        flight.send('a', Op::Write { fua: false }, at(8), BUFFER, 0);
        flight.send('b', Op::Write { fua: false }, at(12), BUFFER, 4);
        let taken: Vec<Tag> = std::iter::from_fn(|| flight.take()).map(|command| command.tag).collect();
        let (failed, refused) = (Status::DATA_TRANSFER_ERROR, Status::OUT_OF_ORDER);
        assert_eq!(end(&mut flight, 5, taken[1], refused), (None, refused), "behind one that is out");
        assert_eq!(end(&mut flight, 5, taken[0], failed), (None, failed));
        assert_eq!((flight.len(), flight.has_next()), (2, false), "both are in flight still");
        let due = flight.deadline().expect("the first waits");
        flight.on_deadline(due);
        let again = flight.take().expect("it waited long enough");
        assert_eq!((again.tag, again.addresses), (taken[0], at(8)));
        assert_eq!((flight.take().is_none(), flight.deadline()), (true, None));
        flight.check();
        assert_eq!(end(&mut flight, due.0, taken[0], Status::SUCCESS).0, Some('a'));
        let behind = flight.take().expect("the one before it is over");
        assert_eq!((behind.tag, behind.buffer_first), (taken[1], 4));
        assert_eq!(end(&mut flight, due.0, taken[1], Status::SUCCESS).0, Some('b'));
        assert_eq!((flight.len(), flight.counter().value), (0, CounterValue::Count(2)));
    }

    #[test]
    fn a_read_ends_as_it_did() {
        let mut flight = Flight::new(9, PlaneRule::new(PlaneReads::Never, 16));
        flight.send('r', Op::Read, run(4), BUFFER, 0);
        let tag = flight.take().expect("it was sent").tag;
        let status = Status::ABORT_REQUESTED;
        assert_eq!(end(&mut flight, 0, tag, status), (Some('r'), status));
    }
}
