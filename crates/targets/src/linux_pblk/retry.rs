//! Reads that failed are asked for again, sector by sector, in the place of the command that has just ended.
//!
//! Until then the read counts as the one command it was. Deliberately not here: when a sector is given up (`read_again`), what a
//! read was for.

use super::flight::Purpose;
use super::state::LinuxPblk;
use crate::read_again::{Failed, may_differ, single};
use ocssd_lightnvm::{Addresses, Buffers, Command, Completion, Op, PlaneMode};
use std::collections::BTreeMap;

/// A read with sectors that failed.
#[derive(Clone, Copy, Debug)]
struct Retry {
    command: Command,
    purpose: Purpose,
    failed: Failed,
}

/// All of them, by number.
#[derive(Clone, Debug, Default)]
pub struct Retries {
    all: BTreeMap<u64, Retry>,
    next: u64,
}

impl LinuxPblk {
    /// A read ended.
    pub(super) fn on_read_end(&mut self, purpose: Purpose, completion: &Completion, buffers: &Buffers) {
        let Completion { tag, status, failed, .. } = *completion;
        if failed == 0 || !may_differ(status) {
            return self.read_over(purpose, completion, buffers);
        }
        let (addresses, buffer, buffer_first) = match purpose {
            Purpose::Read(read) => self.parts_of(&read),
            Purpose::GcRead { buffer, first, .. } => {
                let addresses = Addresses::Run { first: self.shape.ppa(first), count: self.layout.unit };
                (addresses, buffer, 0)
            }
            _ => unreachable!("it is no read"),
        };
        let (buffer, plane_mode) = (Some(buffer), PlaneMode::Single);
        let command = Command { tag, op: Op::Read, addresses, buffer, buffer_first, oob: true, plane_mode };
        let number = self.retries.next;
        self.retries.next += 1;
        self.stats.read_again += u64::from(failed.count_ones());
        self.send_retry(number, Retry { command, purpose, failed: Failed::new(failed, status) }, buffers);
    }

    fn send_retry(&mut self, number: u64, retry: Retry, buffers: &Buffers) {
        let sector = retry.failed.next().expect("one failed");
        let one = single(&retry.command, sector, buffers);
        self.flight.send(Purpose::Retry { number }, Op::Read, one.addresses, one.buffer, one.buffer_first);
        let before = self.retries.all.insert(number, retry);
        assert!(before.is_none(), "two reads have the number {number}");
    }

    /// A sector was read again.
    pub(super) fn retry_done(&mut self, number: u64, completion: &Completion, buffers: &Buffers) {
        let mut retry = self.retries.all.remove(&number).expect("a retry ends once");
        let status = completion.status;
        retry.failed.on_try(if status.has_data() { Ok(()) } else { Err(status) });
        if retry.failed.next().is_some() {
            return self.send_retry(number, retry, buffers);
        }
        let (failed, status) = retry.failed.given_up();
        assert_eq!(failed == 0, status.is_success(), "sectors {failed:#x} were given up with {status}");
        let whole = Completion { tag: retry.command.tag, status, failed, violation: None };
        self.read_over(retry.purpose, &whole, buffers);
    }

    /// All sectors of a read were read, or given up.
    fn read_over(&mut self, purpose: Purpose, completion: &Completion, buffers: &Buffers) {
        match purpose {
            Purpose::Read(purpose) => self.read_done(purpose, completion, buffers),
            Purpose::GcRead { buffer, line, first } => {
                self.note_status(completion.status);
                self.gc_read_done(buffer, line, first, completion);
            }
            _ => unreachable!("it is no read"),
        }
    }
}
