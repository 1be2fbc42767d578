//! Sectors that could not be read are asked for again, one by one: the media, or something before them, may fail once.
//!
//! A sector is given up when it failed in every try. Of one that was never written, or is not there any more (287h), no other
//! answer is to be had. Tries in which nobody could ask the media are counted apart from those in which they did not have the
//! sector: else one of the former, if it came last, would be told of a sector that is lost. All targets that keep data have this
//! in common. Deliberately not here: sending commands while a target works, and what becomes of a sector that was given up.

use ocssd_base::usize_of;
use ocssd_lightnvm::{
    Addresses, BlockingDevice, Buffers, Command, Completion, Op, PlaneMode, PowerCut, Ppa, Status, Tag,
};

/// Reads of a sector before it is given up (chosen: what fails one time in a hundred fails once in a million sectors).
pub const TRIES: u32 = 3;

/// True if another try may end better.
#[must_use]
pub fn may_differ(status: Status) -> bool {
    !status.has_data() && status != Status::UNWRITTEN
}

/// Failures so far: of the media, and before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failures {
    of_media: u32,
    before_them: u32,
}

impl Failures {
    const NONE: Self = Self { of_media: 0, before_them: 0 };

    /// The first failure, with this status.
    fn first(status: Status) -> Self {
        let mut first = Self::NONE;
        first.has_more(status);
        first
    }

    /// Another failure, with this status. False if there were as many of its kind as tries are made.
    fn has_more(&mut self, status: Status) -> bool {
        let kind = if is_of_media(status) { &mut self.of_media } else { &mut self.before_them };
        assert!(*kind < TRIES, "a read was tried too often");
        *kind += 1;
        *kind < TRIES
    }
}

/// True if a status of a read says that the media do not have the sector; others say that nobody could ask them.
#[must_use]
pub fn is_of_media(status: Status) -> bool {
    status.has_data() || matches!(status, Status::UNRECOVERED_READ | Status::UNWRITTEN)
}

/// What a user is told of a sector that was written and cannot be had: that the drive has no such sector any more, because its
/// chunk went offline, is a loss like any other, and no news of a block that nobody wrote.
#[must_use]
pub fn as_loss(status: Status) -> Status {
    if status == Status::UNWRITTEN { Status::UNRECOVERED_READ } else { status }
}

/// The sectors of a read that failed, while they are asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// All of them, by bits.
    all: u64,
    /// Those that are still to be asked for.
    left: u64,
    given_up: u64,
    /// How the last one failed.
    status: Status,
    /// How each failed in the first try.
    first: Failures,
    /// How the sector at hand failed so far.
    failures: Failures,
}

impl Failed {
    /// These sectors, by bits, failed with `status` in the first try.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn new(all: u64, status: Status) -> Self {
        assert!(all != 0, "nothing failed, and all of it is read again");
        let first = Failures::first(status);
        Self { all, left: all, given_up: 0, status, first, failures: first }
    }

    /// The sector to ask for now; `None` if all are over.
    #[must_use]
    pub fn next(&self) -> Option<u32> {
        (self.left != 0).then(|| self.left.trailing_zeros())
    }

    /// The sector at hand was read.
    ///
    /// # Panics
    /// If there is none.
    pub fn on_try(&mut self, read: Result<(), Status>) {
        let bit = 1 << self.next().expect("a sector was asked for");
        if let Err(status) = read {
            self.status = status;
            if self.failures.has_more(status) && may_differ(status) {
                return;
            }
            self.given_up |= bit;
        }
        self.left &= !bit;
        self.failures = self.first;
        assert!(self.left & !self.all == 0, "a sector is left that never failed");
        assert!(self.given_up & !self.all == 0, "a sector was given up that never failed");
    }

    /// All sectors that failed once, by bits.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.all
    }

    /// Those that failed in every try, and how; a success if there are none.
    #[must_use]
    pub const fn given_up(&self) -> (u64, Status) {
        (self.given_up, if self.given_up == 0 { Status::SUCCESS } else { self.status })
    }
}

/// The tries of a read of several sectors: all at once, then those that failed, one by one into their places. What the first could
/// read stays: were all asked for each time, of many sectors that fail now and then some would in every try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTries {
    /// How often all failed that were asked for.
    whole: Failures,
    failed: Option<Failed>,
}

impl ReadTries {
    /// All sectors are asked for, for the first time.
    pub const FIRST: Self = Self { whole: Failures::NONE, failed: None };

    /// The sector to ask for; `None`: all.
    #[must_use]
    pub fn sector(&self) -> Option<u32> {
        self.failed.as_ref().and_then(Failed::next)
    }

    /// A read ended; all of them are `count` sectors. `None` if there is another to be asked for, else how all ended.
    pub fn on_end(&mut self, completion: &Completion, count: u32) -> Option<Status> {
        assert!(count > 0, "a read of nothing ended");
        let status = completion.status;
        if let Some(failed) = &mut self.failed {
            failed.on_try(if status.has_data() { Ok(()) } else { Err(status) });
            if failed.next().is_some() {
                return None;
            }
            let (_, status) = failed.given_up();
            self.failed = None;
            return Some(status);
        }
        if !may_differ(status) {
            return Some(status);
        }
        let all = 1_u64.checked_shl(count).map_or(u64::MAX, |bit| bit - 1);
        let failed = completion.failed & all;
        if failed != 0 && failed != all {
            self.failed = Some(Failed::new(failed, status));
            return None;
        }
        // The drive did not carry it out, or nothing was read that could stay.
        if self.whole.has_more(status) { None } else { Some(status) }
    }

    /// What was read is not what it must be: all of it is asked for again. False if that was done often enough.
    pub fn again(&mut self) -> bool {
        assert!(self.failed.is_none(), "some sectors of what is asked for again are being read");
        self.whole.has_more(Status::UNRECOVERED_READ)
    }
}

/// The read of one sector of a command's, into its place.
///
/// # Panics
/// If the command is no read of that many sectors.
#[must_use]
pub fn single(command: &Command, sector: u32, buffers: &Buffers) -> Command {
    let buffer = command.buffer.expect("a read has a buffer");
    assert!(sector < command.addresses.count(), "sector {sector} of {:?}", command.addresses);
    let first = match command.addresses {
        Addresses::Run { first, .. } => Ppa::new(first.chunk, first.sector + sector),
        Addresses::List { offset, .. } => buffers.addresses(buffer)[usize_of(offset + sector)],
        Addresses::None => unreachable!("a read names sectors"),
    };
    Command {
        addresses: Addresses::Run { first, count: 1 },
        buffer_first: command.buffer_first + sector,
        plane_mode: PlaneMode::Single,
        ..*command
    }
}

/// Runs a batch of reads of at most 64 sectors each, and asks again for the sectors that failed, `most` at a time.
///
/// # Errors
/// If the power goes.
pub fn call(
    device: &mut dyn BlockingDevice,
    commands: &[Command],
    most: usize,
) -> Result<Vec<Completion>, PowerCut> {
    assert!(most > 0, "a batch has a command at least");
    assert!(commands.iter().all(|command| command.op == Op::Read), "only reads are asked for again");
    let mut ends = device.call(commands)?;
    assert_eq!(ends.len(), commands.len(), "every command has an end");
    for _ in 1..TRIES {
        let failed = failed_sectors(&ends);
        for batch in failed.chunks(most) {
            let buffers = device.buffers();
            let again: Vec<Command> = (0..)
                .zip(batch)
                .map(|(tag, &(of, sector))| Command {
                    tag: Tag(tag),
                    ..single(&commands[of], sector, buffers)
                })
                .collect();
            let tries = device.call(&again)?;
            assert_eq!(tries.len(), batch.len(), "every command has an end");
            for (&(of, sector), end) in batch.iter().zip(&tries) {
                if end.status.has_data() {
                    ends[of].failed &= !(1 << sector);
                }
            }
        }
        let is_whole = |end: &&mut Completion| end.failed == 0 && may_differ(end.status);
        ends.iter_mut().filter(is_whole).for_each(|end| end.status = Status::SUCCESS);
    }
    Ok(ends)
}

/// The sectors that may be had in another try: of which command, and which of it.
fn failed_sectors(ends: &[Completion]) -> Vec<(usize, u32)> {
    let failed = ends.iter().enumerate().filter(|(_, end)| may_differ(end.status));
    let bits = |(of, end): (usize, &Completion)| {
        let failed = end.failed;
        (0..u64::BITS).filter(move |bit| failed >> bit & 1 == 1).map(move |bit| (of, bit))
    };
    failed.flat_map(bits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: Result<(), Status> = Err(Status::UNRECOVERED_READ);

    #[test]
    fn a_sector_is_given_up_after_its_tries_and_others_are_not() {
        let mut failed = Failed::new(0b1010, Status::UNRECOVERED_READ);
        assert_eq!(failed.next(), Some(1));
        failed.on_try(LOST);
        assert_eq!(failed.next(), Some(1), "a third try");
        failed.on_try(Ok(()));
        assert_eq!(failed.next(), Some(3));
        (1..TRIES).for_each(|_| failed.on_try(LOST));
        assert_eq!(failed.next(), None);
        assert_eq!((failed.all(), failed.given_up()), (0b1010, (0b1000, Status::UNRECOVERED_READ)));
    }

    fn ended(status: Status, failed: u64) -> Completion {
        Completion { status, failed, ..Completion::success(Tag(0)) }
    }

    #[test]
    fn sectors_that_fail_by_turns_are_all_read() {
        let mut tries = ReadTries::FIRST;
        assert_eq!(tries.on_end(&ended(Status::UNRECOVERED_READ, 0b1010), 4), None);
        assert_eq!(tries.sector(), Some(1));
        assert_eq!(tries.on_end(&ended(Status::SUCCESS, 0), 4), None);
        assert_eq!(tries.sector(), Some(3));
        assert_eq!(tries.on_end(&ended(Status::UNRECOVERED_READ, 1), 4), None);
        assert_eq!(tries.on_end(&ended(Status::SUCCESS, 0), 4), Some(Status::SUCCESS));
        assert_eq!(tries.sector(), None);
    }

    #[test]
    fn what_fails_in_every_try_is_told_and_so_is_a_drive_that_does_not_work() {
        let lost = ended(Status::UNRECOVERED_READ, 1);
        let mut tries = ReadTries::FIRST;
        (1..TRIES).for_each(|_| assert_eq!(tries.on_end(&lost, 1), None));
        assert_eq!(tries.on_end(&lost, 1), Some(Status::UNRECOVERED_READ));
        let mut tries = ReadTries::FIRST;
        let refused = ended(Status::INTERNAL_ERROR, 0);
        (1..TRIES).for_each(|_| assert_eq!((tries.on_end(&refused, 4), tries.sector()), (None, None)));
        assert_eq!(tries.on_end(&refused, 4), Some(Status::INTERNAL_ERROR));
        let mut tries = ReadTries::FIRST;
        (1..TRIES).for_each(|_| assert!(tries.again()));
        assert!(!tries.again(), "it was asked for often enough");
    }

    #[test]
    fn a_try_that_did_not_reach_the_media_is_not_told_of_what_they_lost() {
        let missed = Err(Status::ABORT_REQUESTED);
        let mut failed = Failed::new(0b1, Status::UNRECOVERED_READ);
        [missed, LOST, missed].into_iter().for_each(|read| failed.on_try(read));
        assert_eq!(failed.next(), Some(0), "two of each kind are no three");
        failed.on_try(LOST);
        assert_eq!((failed.next(), failed.given_up()), (None, (1, Status::UNRECOVERED_READ)));
        let mut tries = ReadTries::FIRST;
        for status in [Status::UNRECOVERED_READ, Status::UNRECOVERED_READ, Status::ABORT_REQUESTED] {
            assert_eq!(tries.on_end(&ended(status, 1), 1), None, "{status}");
        }
        let last = tries.on_end(&ended(Status::UNRECOVERED_READ, 1), 1);
        assert_eq!(last, Some(Status::UNRECOVERED_READ));
    }

    #[test]
    fn what_was_never_written_is_asked_for_no_more() {
        let mut failed = Failed::new(0b1, Status::ABORT_REQUESTED);
        failed.on_try(Err(Status::UNWRITTEN));
        assert_eq!((failed.next(), failed.given_up()), (None, (1, Status::UNWRITTEN)));
        let mut cured = Failed::new(0b1, Status::ABORT_REQUESTED);
        cured.on_try(Ok(()));
        assert_eq!((cured.next(), cured.given_up()), (None, (0, Status::SUCCESS)));
    }
}
