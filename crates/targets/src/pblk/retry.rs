//! Reads that failed are asked for again, sector by sector, before a user hears of it or garbage collection notes a loss.
//!
//! One command is in flight for all sectors of a read, in the place of the command that has just ended, so that there is
//! always room for it. Deliberately not here: when a sector is given up (`read_again`), how one is judged (`read`), what is done
//! with what was collected (`gc_read`).

use super::Pblk;
use super::canary::Canary;
use super::flight::Purpose;
use super::gc_read::GcRead;
use crate::read_again::{Failed, as_loss};
use ocssd_base::{SlabKey, usize_of};
use ocssd_lightnvm::{Addresses, BufId, Buffers, Completion, Op, Ppa, Status};
use std::collections::BTreeMap;

/// What was read.
#[derive(Clone, Debug)]
pub(super) enum Whose {
    /// Sectors of a user's read: the request, the first sector within it, how many, and where that one is.
    User { request: SlabKey, index: u32, count: u32, first: Ppa },
    /// Sectors to be moved.
    Gc(GcRead),
}

/// Reads under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    /// Commands in flight for reads of users.
    pub(super) by_users: usize,
    /// Reads with sectors that failed, by number.
    again: BTreeMap<u64, (Whose, Failed)>,
    /// The number of the next of these.
    next: u64,
}

impl Reading {
    /// True if no sector is read again.
    pub(super) fn is_first(&self) -> bool {
        self.again.is_empty()
    }
}

impl Pblk {
    /// Asks again for the sectors of a read that failed.
    pub(super) fn retry(&mut self, whose: Whose, failed: Failed, buffers: &Buffers) {
        let number = self.reading.next;
        self.reading.next += 1;
        self.stats.read_again += u64::from(failed.all().count_ones());
        let sector = failed.next().expect("one failed");
        self.send_retry(number, (whose, failed), sector, buffers);
    }

    fn send_retry(&mut self, number: u64, retry: (Whose, Failed), sector: u32, buffers: &Buffers) {
        let (first, buffer, at) = self.place_of_retry(&retry.0, sector, buffers);
        if matches!(retry.0, Whose::User { .. }) {
            self.reading.by_users += 1;
        }
        let addresses = Addresses::Run { first, count: 1 };
        self.flight.send(Purpose::Retry { number }, Op::Read, addresses, Some(buffer), at);
        let before = self.reading.again.insert(number, retry);
        assert!(before.is_none(), "two reads have the number {number}");
    }

    /// Where a sector of a read is, and where it goes to.
    fn place_of_retry(&self, whose: &Whose, sector: u32, buffers: &Buffers) -> (Ppa, BufId, u32) {
        match whose {
            &Whose::User { request, index, count, first } => {
                let buffer = self.requests.get(request).request.buffer.expect("a read has a buffer");
                let at = index + sector;
                // The address of a single sector is known without its list.
                let ppa = if count == 1 { first } else { buffers.addresses(buffer)[usize_of(at)] };
                (ppa, buffer, at)
            }
            Whose::Gc(read) => (buffers.addresses(read.buffer)[usize_of(sector)], read.buffer, sector),
        }
    }

    /// A sector was read again.
    pub(super) fn retry_done(&mut self, number: u64, completion: &Completion, buffers: &Buffers) {
        let (whose, mut failed) = self.reading.again.remove(&number).expect("a retry ends once");
        let sector = failed.next().expect("a sector was asked for");
        let (ppa, buffer, at) = self.place_of_retry(&whose, sector, buffers);
        let judged = match whose {
            Whose::User { request, .. } => {
                assert!(self.reading.by_users > 0, "a sector was read again that nobody waits for");
                self.reading.by_users -= 1;
                let block = self.requests.get(request).request.block + u64::from(at);
                self.judge_read(completion.status, block, (buffer, at), ppa, buffers)
            }
            Whose::Gc(ref read) if completion.status.has_data() => {
                let (content, tag) = (buffers.data(buffer, at, 1), buffers.oob(buffer, at, 1));
                let is_astray = self.gc.is_again(read.line) && self.is_astray(ppa, content, tag);
                if is_astray { Err(Status::UNRECOVERED_READ) } else { Ok(()) }
            }
            Whose::Gc(_) => Err(completion.status),
        };
        failed.on_try(judged);
        if let Some(sector) = failed.next() {
            return self.send_retry(number, (whose, failed), sector, buffers);
        }
        let (given_up, status) = failed.given_up();
        assert_eq!(given_up == 0, status.is_success(), "sectors {given_up:#x} were given up with {status}");
        match whose {
            Whose::User { request, index, count, first } => {
                for sector in (0..count).filter(|sector| failed.all() >> sector & 1 == 1) {
                    let own = Whose::User { request, index, count, first };
                    let (ppa, ..) = self.place_of_retry(&own, sector, buffers);
                    self.lines.end_read(self.line_of_chunk(ppa));
                }
                self.user_read_over(request, given_up, status);
            }
            Whose::Gc(read) => {
                if status.is_drive_failure() {
                    // What it could not read is not lost.
                    self.stop(status);
                }
                self.gc.relocator.read_done(GcRead { failed: given_up, with: status, ..read });
            }
        }
    }

    /// All sectors of a user's read were read, or given up.
    fn user_read_over(&mut self, key: SlabKey, given_up: u64, status: Status) {
        if given_up != 0 {
            self.stats.read_failed += u64::from(given_up.count_ones());
            let told = if self.has_canary(Canary::GoneIsUnwritten) { status } else { as_loss(status) };
            self.requests.fail(key, told);
        }
        self.requests.part_done(key);
    }
}
