//! One vector reset, and what became of each of its chunks.
//!
//! A completion has one status for all entries that failed, and theirs may differ: a chunk that went OFFLINE (2C0h) must not
//! be used again, one that is FREE already (2C1h) is as good as reset. If several entries failed each is asked for again
//! alone: a reset that failed changed nothing, or leaves an OFFLINE chunk that fails in the same way again. A drive's
//! descriptors would say it too, but a target in operation has commands only. Deliberately not here: whose chunks they are.

use ocssd_lightnvm::{Addresses, BufId, Completion, Status, VECTOR_MAX};

/// A vector reset on its way: its list of chunks is in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorReset {
    buffer: BufId,
    count: u32,
    /// Entries that are still to be asked for alone, the lowest of them next.
    alone: u64,
    /// Entries whose chunks are lost.
    bad: u64,
}

impl VectorReset {
    /// A reset of the first `count` chunks of a buffer's list.
    pub fn new(buffer: BufId, count: u32) -> Self {
        assert!((1..=VECTOR_MAX).contains(&count), "{count} chunks in one reset");
        Self { buffer, count, alone: 0, bad: 0 }
    }

    /// Where the list is.
    pub const fn buffer(&self) -> BufId {
        self.buffer
    }

    /// What is to be reset now: the list, or one of its entries.
    pub const fn addresses(&self) -> Addresses {
        if self.alone == 0 {
            return Addresses::List { offset: 0, count: self.count };
        }
        assert!(self.alone.trailing_zeros() < self.count, "an entry beyond the list is asked for alone");
        Addresses::List { offset: self.alone.trailing_zeros(), count: 1 }
    }

    /// A command ended. The entries whose chunks must not be used again, by bits, or `None` if another command is needed.
    /// A drive that itself failed says nothing of its chunks, and is asked no more.
    pub fn on_end(&mut self, completion: &Completion) -> Option<u64> {
        if completion.status.is_drive_failure() {
            self.alone = 0;
            return Some(self.bad);
        }
        let asked = if self.alone == 0 {
            u64::MAX >> (u64::BITS - self.count)
        } else {
            1 << self.alone.trailing_zeros()
        };
        let is_alone = asked.is_power_of_two();
        // Of a command that failed without a bit nothing was done.
        let failed = match completion {
            _ if completion.status.is_success() => 0,
            _ if is_alone || completion.failed == 0 => asked,
            _ => completion.failed & asked,
        };
        self.alone &= !asked;
        if failed.count_ones() > 1 {
            assert_eq!(self.alone, 0, "entries are asked for alone once");
            self.alone = failed;
        } else if completion.status != Status::INVALID_RESET {
            self.bad |= failed;
        }
        assert_eq!(self.alone & self.bad, 0, "an entry is judged before it was asked for alone");
        assert!(self.bad.count_ones() <= self.count, "more chunks are bad than were reset");
        (self.alone == 0).then_some(self.bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::Tag;

    fn end(status: Status, failed: u64) -> Completion {
        Completion { status, failed, ..Completion::success(Tag(0)) }
    }

    /// Plays a reset of chunks that end like this, on a drive that lets the status of entry `leads` lead.
    fn check(chunks: &[Status], leads: usize, bad: u64, commands: u32) {
        let count = u32::try_from(chunks.len()).expect("at most 64");
        let mut reset = VectorReset::new(BufId(1), count);
        for number in 1.. {
            let Addresses::List { offset, count } = reset.addresses() else { panic!("a list") };
            let range =
                usize::try_from(offset).expect("small")..usize::try_from(offset + count).expect("small");
            let asked = &chunks[range];
            let fails = |status: &Status| !status.is_success();
            let failed =
                asked.iter().enumerate().fold(0, |bits, (at, one)| bits | u64::from(fails(one)) << at);
            let first = asked.iter().copied().find(fails).unwrap_or_default();
            let status = if asked.len() > 1 && failed != 0 { chunks[leads] } else { first };
            if let Some(found) = reset.on_end(&end(status, failed)) {
                assert_eq!((found, number), (bad, commands), "{chunks:?}, {leads} leads");
                return;
            }
        }
    }

    #[test]
    fn each_chunk_is_judged_by_its_own_status_whichever_leads() {
        let (fine, offline, free) = (Status::SUCCESS, Status::OFFLINE_CHUNK, Status::INVALID_RESET);
        check(&[fine, fine], 0, 0, 1);
        check(&[fine, offline, fine], 1, 0b010, 1);
        check(&[fine, free, fine], 1, 0, 1);
        for leads in [1, 2, 3] {
            check(&[fine, offline, free, offline], leads, 0b1010, 4);
        }
        check(&[free; 64], 0, 0, 65);
        check(&[offline; 64], 63, u64::MAX, 65);
        check(&[offline], 0, 1, 1);
    }

    #[test]
    fn a_command_that_failed_without_a_bit_did_nothing() {
        let mut reset = VectorReset::new(BufId(1), 2);
        assert_eq!(reset.on_end(&end(Status::WRITE_FAULT, 0)), None);
        assert_eq!(reset.on_end(&Completion::success(Tag(0))), None);
        assert_eq!(reset.on_end(&end(Status::WRITE_FAULT, 0)), Some(0b10));
    }

    #[test]
    fn a_drive_that_failed_is_asked_no_more_and_blames_no_chunk() {
        let mut reset = VectorReset::new(BufId(1), 8);
        assert_eq!(reset.on_end(&end(Status::CAPACITY_EXCEEDED, 0xF0)), Some(0));
        let mut reset = VectorReset::new(BufId(1), 2);
        assert_eq!(reset.on_end(&end(Status::WRITE_FAULT, 0b11)), None);
        assert_eq!(reset.on_end(&end(Status::INTERNAL_ERROR, 1)), Some(0));
    }
}
