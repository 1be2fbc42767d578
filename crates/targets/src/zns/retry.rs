//! Reads that failed are asked for again, sector by sector, before the host hears of it.
//!
//! Deliberately not here: when a sector is given up (`read_again`), how one is judged (`read`).

use super::flight::Purpose;
use super::state::Zns;
use crate::read_again::{Failed, as_loss};
use ocssd_base::{Slab, SlabKey, usize_of};
use ocssd_lightnvm::{Addresses, Buffers, Completion, Op};

/// Sectors of a read's command: the request, the first of its blocks, and how many.
type Part = (SlabKey, u32, u32);

/// Reads with sectors that failed.
#[derive(Clone, Debug)]
pub(super) struct Retries(Slab<(Part, Failed)>);

impl Retries {
    /// Room for as many as there are commands.
    pub fn new(commands: u32) -> Self {
        Self(Slab::new(commands))
    }
}

impl Zns {
    /// Asks again for the sectors of a read that failed. There is room: its command has just ended.
    pub(super) fn retry(&mut self, part: Part, failed: Failed, buffers: &Buffers) {
        self.stats.read_again += u64::from(failed.all().count_ones());
        let number = self.retries.0.insert((part, failed));
        let number = number.unwrap_or_else(|_| unreachable!("there are as many places as commands"));
        self.send_retry(number, buffers);
    }

    fn send_retry(&mut self, number: SlabKey, buffers: &Buffers) {
        let ((request, index, count), failed) = *self.retries.0.get(number);
        let sector = failed.next().expect("a sector failed");
        assert!(sector < count, "sector {sector} of {count} is read again");
        let buffer = self.requests.get(request).request.buffer.expect("a read has a buffer");
        let first = buffers.addresses(buffer)[usize_of(index + sector)];
        let addresses = Addresses::Run { first, count: 1 };
        self.flight.send(Purpose::Retry { number }, Op::Read, addresses, Some(buffer), index + sector);
    }

    /// A sector was read again.
    pub(super) fn retry_done(&mut self, number: SlabKey, completion: &Completion, buffers: &Buffers) {
        let ((request, index, count), mut failed) = *self.retries.0.get(number);
        let sector = failed.next().expect("a sector was asked for");
        let asked = self.requests.get(request).request;
        let buffer = asked.buffer.expect("a read has a buffer");
        let block = asked.block + u64::from(index + sector);
        failed.on_try(Self::judge_sector(completion.status, block, (buffer, index + sector), buffers));
        self.retries.0.get_mut(number).1 = failed;
        if failed.next().is_some() {
            return self.send_retry(number, buffers);
        }
        self.retries.0.free(number);
        let (lost, status) = failed.given_up();
        assert_eq!(lost == 0, status.is_success(), "sectors {lost:#x} were given up with {status}");
        if lost != 0 {
            self.stats.read_failed += u64::from(lost.count_ones());
            self.requests.fail(request, as_loss(status));
        }
        self.read_over(request, count);
    }
}
