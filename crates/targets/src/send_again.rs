//! Changes that the drive did not carry out are sent again, each time after a longer wait.
//!
//! A status such as 006h, 007h or 004h says that something between host and media failed: of the command nothing was done, and
//! its chunk is as it was, so that nobody learns anything of the chunk. As Linux' NVMe driver does below every block device, a
//! target sends such a write, reset or flush again. It waits before each try, for what failed does so for a while. A command
//! that failed in every try says that the drive does not work: its status is then one by which targets stop changing anything.
//!
//! A write behind one that waits is refused as out of order, for the write pointer did not move. That is no failure of its own:
//! it is held until the one before it is over, and then sent again. Deliberately not here: reads (`read_again`), commands in
//! flight (`flight`), and what a target does when the drive does not work.

use ocssd_base::{Nanos, SlabKey, usize_of};
use ocssd_lightnvm::{
    Addresses, BlockingDevice, Buffers, ChunkId, Command, Completion, Op, PowerCut, Ppa, Status,
};

/// Times a change is sent before the drive counts as one that does not work: once, and again as often as Linux' NVMe driver
/// does (`nvme_core.max_retries`, 5).
pub const SENDS_MAX: u32 = 6;

/// The wait before the second try (chosen: longer than a program, so that what a unit is about is over).
const WAIT_FIRST: Nanos = Nanos::from_millis(1);
/// Each wait is so many times the one before (chosen: 1, 4, 16, 64 and 256 ms, a third of a second together, which is long for
/// a link that recovers and short for the host's timeout of 30 s).
const WAIT_FACTOR: u64 = 4;

/// True if nothing of a change was done that ended with this status, and the same command may end better.
#[must_use]
pub fn was_not_done(status: Status) -> bool {
    matches!(
        status,
        Status::DATA_TRANSFER_ERROR
            | Status::POWER_LOSS_ABORT
            | Status::INTERNAL_ERROR
            | Status::ABORT_REQUESTED
            | Status::TRANSIENT_TRANSPORT_ERROR
            | Status::CAPACITY_EXCEEDED
            | Status::NAMESPACE_NOT_READY
            | Status::WRITE_TO_READ_ONLY
            | Status::GUARD_CHECK_ERROR
            | Status::ACCESS_DENIED
    )
}

/// The wait after so many tries.
fn wait_after(tries: u32) -> Nanos {
    assert!((1..SENDS_MAX).contains(&tries), "a command is sent again after {tries} tries");
    Nanos(WAIT_FIRST.0 * WAIT_FACTOR.pow(tries - 1))
}

/// How a target hears of a change that failed in every try: as of a drive that does not work.
#[must_use]
fn of_drive(status: Status) -> Status {
    if status.is_drive_failure() { status } else { Status::INTERNAL_ERROR }
}

/// A change that was sent and is not over.
#[derive(Clone, Copy, Debug)]
struct Sent {
    command: Command,
    tries: u32,
}

/// The changes of a target on their way, by place, and those of them that wait to be sent again.
#[derive(Clone, Debug)]
pub struct SendAgain {
    /// What was sent last from each place; of places that hold no change it is what they held before.
    sent: Vec<Sent>,
    /// Those that wait, and until when.
    waiting: Vec<(Nanos, SlabKey)>,
    /// Those that were refused as out of order behind one that is not over.
    held: Vec<SlabKey>,
    /// Commands that were sent again so far.
    count: u64,
}

/// What is to be done with a change that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The target hears of it.
    Over,
    /// It is on its way again, or will be.
    GoesOn,
}

impl SendAgain {
    /// None; room for `most` at once.
    pub fn new(most: u32) -> Self {
        Self { sent: Vec::with_capacity(usize_of(most)), waiting: Vec::new(), held: Vec::new(), count: 0 }
    }

    /// A change is sent for the first time.
    #[inline]
    pub fn note(&mut self, command: &Command) {
        assert!(!matches!(command.op, Op::Read | Op::Copy), "{:?} is no change", command.op);
        let sent = Sent { command: *command, tries: 1 };
        let place = usize_of(command.tag.0);
        match self.sent.get_mut(place) {
            Some(at) => *at = sent,
            None => self.note_behind(place, sent),
        }
    }

    /// Places are used from the first on; those before may have held reads only.
    #[inline(never)]
    fn note_behind(&mut self, place: usize, sent: Sent) {
        assert!(place < self.sent.capacity(), "place {place} of {}", self.sent.capacity());
        self.sent.resize(place + 1, sent);
    }

    /// No change waits or is held.
    #[inline]
    pub const fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.held.is_empty()
    }

    /// Commands that were sent again so far.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// When the next one is due.
    pub fn deadline(&self) -> Option<Nanos> {
        self.waiting.iter().map(|&(at, _)| at).min()
    }

    /// A change ended. `others` are the places of all changes that are not over. A verdict that it is over may come with
    /// another status.
    pub fn on_end(
        &mut self,
        now: Nanos,
        completion: &mut Completion,
        others: &dyn Fn() -> Vec<SlabKey>,
        buffers: &Buffers,
    ) -> Verdict {
        let key = SlabKey(completion.tag.0);
        let status = completion.status;
        if status == Status::OUT_OF_ORDER && self.is_behind_one(key, &others(), buffers) {
            assert!(!self.held.contains(&key), "{key:?} is held, and ended again");
            self.held.push(key);
            return Verdict::GoesOn;
        }
        if !was_not_done(status) {
            return Verdict::Over;
        }
        let sent = &mut self.sent[usize_of(key.0)];
        assert_eq!(sent.command.tag, completion.tag, "the end of a change that was not noted");
        if sent.tries == SENDS_MAX {
            completion.status = of_drive(status);
            return Verdict::Over;
        }
        assert!(self.waiting.iter().all(|&(_, other)| other != key), "{key:?} waits, and ended again");
        self.waiting.push((now + wait_after(sent.tries), key));
        sent.tries += 1;
        Verdict::GoesOn
    }

    /// True if a write is behind one of `others` in a chunk.
    fn is_behind_one(&self, key: SlabKey, others: &[SlabKey], buffers: &Buffers) -> bool {
        let command = |key: SlabKey| &self.sent[usize_of(key.0)].command;
        let own = starts(command(key), buffers);
        others.iter().filter(|&&other| other != key).any(|&other| {
            let theirs = starts(command(other), buffers);
            own.iter().any(|at| theirs.iter().any(|&(chunk, sector)| chunk == at.0 && sector < at.1))
        })
    }

    /// The commands to be sent now: those that waited long enough.
    pub fn due(&mut self, now: Nanos) -> Vec<Command> {
        let due = self.waiting.extract_if(.., |&mut (at, _)| at <= now).map(|(_, key)| key);
        let due: Vec<SlabKey> = due.collect();
        self.go(due, "waits")
    }

    /// A change is over: those held behind it that are behind no other of `others`, to be sent now.
    pub fn released(&mut self, others: &[SlabKey], buffers: &Buffers) -> Vec<Command> {
        let held = std::mem::take(&mut self.held);
        let (stay, go) = held.into_iter().partition(|&key| self.is_behind_one(key, others, buffers));
        self.held = stay;
        self.go(go, "is held")
    }

    fn go(&mut self, keys: Vec<SlabKey>, what: &str) -> Vec<Command> {
        self.count += u64::try_from(keys.len()).expect("a length fits 64 bits");
        let sent = |key: SlabKey| {
            let command = self.sent[usize_of(key.0)].command;
            assert_eq!(command.tag.0, key.0, "what {what} is in another place");
            command
        };
        keys.into_iter().map(sent).collect()
    }

    /// Asserts that what waits is on its way: `others` are the places of all changes that are not over.
    pub fn check(&self, others: &[SlabKey]) {
        for key in self.waiting.iter().map(|(_, key)| key).chain(&self.held) {
            assert!(others.contains(key), "{key:?} is over and waits to be sent again");
            assert!(self.sent[usize_of(key.0)].tries <= SENDS_MAX, "{key:?} was sent too often");
        }
    }
}

/// Where a write begins, in each of its chunks.
fn starts(command: &Command, buffers: &Buffers) -> Vec<(ChunkId, u32)> {
    if !matches!(command.op, Op::Write { .. }) {
        return Vec::new();
    }
    let mut starts: Vec<(ChunkId, u32)> = Vec::new();
    let mut add = |at: Ppa| {
        if starts.iter().all(|&(chunk, _)| chunk != at.chunk) {
            starts.push((at.chunk, at.sector));
        }
    };
    match command.addresses {
        Addresses::Run { first, .. } => add(first),
        Addresses::List { offset, count } => {
            let buffer = command.buffer.expect("a list of addresses lies in a buffer");
            let from = usize_of(offset);
            buffers.addresses(buffer)[from..from + usize_of(count)].iter().copied().for_each(add);
        }
        Addresses::None => unreachable!("a write names sectors"),
    }
    starts
}

/// Runs a batch of changes; those that the drive did not carry out are sent again, in their order, after the same waits.
///
/// # Errors
/// If the power goes.
pub fn call(device: &mut dyn BlockingDevice, commands: &[Command]) -> Result<Vec<Completion>, PowerCut> {
    assert!(commands.iter().all(|command| command.op != Op::Read), "reads are asked for again elsewhere");
    let mut ends = device.call(commands)?;
    assert_eq!(ends.len(), commands.len(), "every command has an end");
    for tries in 1..SENDS_MAX {
        if !ends.iter().any(|end| was_not_done(end.status)) {
            return Ok(ends);
        }
        device.wait(wait_after(tries))?;
        // What came behind one that was not done is out of order until that is.
        let again = |end: &Completion| was_not_done(end.status) || end.status == Status::OUT_OF_ORDER;
        let places: Vec<usize> = (0..ends.len()).filter(|&place| again(&ends[place])).collect();
        let batch: Vec<Command> = places.iter().map(|&place| commands[place]).collect();
        for (place, end) in places.into_iter().zip(device.call(&batch)?) {
            ends[place] = end;
        }
    }
    for end in ends.iter_mut().filter(|end| was_not_done(end.status)) {
        end.status = of_drive(end.status);
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::{BufId, Geometry, Payload, PayloadFormat, PlaneMode, Tag};

    fn write(tag: u32, chunk: u32, sector: u32) -> Command {
        Command {
            tag: Tag(tag),
            op: Op::Write { fua: false },
            addresses: Addresses::Run { first: Ppa::new(ChunkId(chunk), sector), count: 4 },
            buffer: Some(BufId(0)),
            buffer_first: 0,
            oob: true,
            plane_mode: PlaneMode::Single,
        }
    }

    /// Changes of these chunks and sectors are on their way.
    fn sent(writes: &[(u32, u32)]) -> (SendAgain, Vec<SlabKey>, Buffers) {
        let mut again = SendAgain::new(8);
        for (tag, &(chunk, sector)) in (0..).zip(writes) {
            again.note(&write(tag, chunk, sector));
        }
        let places = (0..).map(SlabKey).take(writes.len()).collect();
        (again, places, Buffers::new(PayloadFormat::new(Payload::Stamp, &Geometry::example(1, 1, 4, 64, 4))))
    }

    fn end(tag: u32, status: Status) -> Completion {
        Completion { status, failed: 0b1111, ..Completion::success(Tag(tag)) }
    }

    fn tags(commands: &[Command]) -> Vec<u32> {
        commands.iter().map(|command| command.tag.0).collect()
    }

    #[test]
    fn a_change_that_was_not_done_goes_again_after_longer_and_longer_waits() {
        let (mut again, places, buffers) = sent(&[(3, 0)]);
        let mut now = Nanos(1_000);
        for wait in [1, 4, 16, 64, 256].map(Nanos::from_millis) {
            let mut failed = end(0, Status::ABORT_REQUESTED);
            let verdict = again.on_end(now, &mut failed, &|| places.clone(), &buffers);
            assert_eq!((verdict, again.deadline()), (Verdict::GoesOn, Some(now + wait)));
            now += wait;
            assert_eq!(tags(&again.due(Nanos(now.0 - 1))), [], "before its time");
            assert_eq!((tags(&again.due(now)), again.is_idle()), (vec![0], true));
        }
        let mut last = end(0, Status::ABORT_REQUESTED);
        assert_eq!(again.on_end(now, &mut last, &|| places.clone(), &buffers), Verdict::Over);
        assert_eq!((last.status, again.count()), (Status::INTERNAL_ERROR, 5), "the drive does not work");
    }

    #[test]
    fn a_full_drive_keeps_its_word_and_a_failure_of_the_media_is_none_of_these() {
        let (mut again, places, buffers) = sent(&[(3, 0)]);
        for _ in 1..SENDS_MAX {
            let mut full = end(0, Status::CAPACITY_EXCEEDED);
            again.on_end(Nanos(0), &mut full, &|| places.clone(), &buffers);
            again.due(Nanos::from_secs(1));
        }
        let mut full = end(0, Status::CAPACITY_EXCEEDED);
        assert_eq!(again.on_end(Nanos(0), &mut full, &|| places.clone(), &buffers), Verdict::Over);
        assert_eq!(full.status, Status::CAPACITY_EXCEEDED);
        for status in
            [Status::WRITE_FAULT, Status::EARLY_CLOSE, Status::WRITE_NEXT_UNIT, Status::OUT_OF_ORDER]
        {
            let (mut again, places, buffers) = sent(&[(3, 0)]);
            let mut failed = end(0, status);
            assert_eq!(again.on_end(Nanos(0), &mut failed, &|| places.clone(), &buffers), Verdict::Over);
            assert_eq!((failed.status, again.is_idle()), (status, true));
        }
    }

    #[test]
    fn what_is_out_of_order_behind_one_that_is_not_over_is_held_until_it_is() {
        let (mut again, mut places, buffers) = sent(&[(3, 0), (3, 4), (3, 8), (5, 4)]);
        let all = places.clone();
        let refused = |again: &mut SendAgain, tag| {
            again.on_end(Nanos(0), &mut end(tag, Status::OUT_OF_ORDER), &|| all.clone(), &buffers)
        };
        assert_eq!(refused(&mut again, 2), Verdict::GoesOn, "the end of the first may come later");
        assert_eq!(refused(&mut again, 1), Verdict::GoesOn);
        assert_eq!(refused(&mut again, 3), Verdict::Over, "alone in its chunk");
        again.check(&all);
        places.remove(0);
        assert_eq!(tags(&again.released(&places, &buffers)), [1], "the first is over");
        assert!(again.released(&places, &buffers).is_empty() && !again.is_idle());
        places.remove(0);
        assert_eq!((tags(&again.released(&places, &buffers)), again.is_idle()), (vec![2], true));
    }
}
