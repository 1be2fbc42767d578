//! Reads that failed are asked for again, sector by sector, before a user hears of it or garbage collection notes a loss.
//!
//! Deliberately not here: when a sector is given up (`read_again`), how one is judged (`read`).

use super::collect::Read;
use super::flight::Purpose;
use super::state::OxBlock;
use crate::read_again::Failed;
use ocssd_base::{Slab, SlabKey, usize_of};
use ocssd_ftl::SectorTag;
use ocssd_lightnvm::{Addresses, BufId, Buffers, Completion, Op, Ppa, Status};

/// What was read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose {
    /// Sectors of a user's read, from the `index`th on.
    User { request: SlabKey, index: u32, count: u32 },
    /// Sectors to be copied.
    Victim { read: SlabKey },
}

/// Reads with sectors that failed.
#[derive(Clone, Debug)]
pub(super) struct Retries(Slab<(Whose, Failed)>);

impl Retries {
    /// Room for as many as there are commands.
    pub fn new(commands: u32) -> Self {
        Self(Slab::new(commands))
    }
}

impl OxBlock {
    /// Asks again for the sectors of a read that failed. There is room: its command has just ended.
    pub(super) fn retry(&mut self, whose: Whose, failed: Failed, buffers: &Buffers) {
        self.stats.read_again += u64::from(failed.all().count_ones());
        let number = self.retries.0.insert((whose, failed));
        let number = number.unwrap_or_else(|_| unreachable!("there are as many places as commands"));
        self.send_retry(number, buffers);
    }

    fn send_retry(&mut self, number: SlabKey, buffers: &Buffers) {
        let (whose, failed) = *self.retries.0.get(number);
        let sector = failed.next().expect("a sector failed");
        let (first, buffer, at) = self.place_of_retry(whose, sector, buffers);
        let addresses = Addresses::Run { first, count: 1 };
        self.flight.send(Purpose::Retry { number }, Op::Read, addresses, Some(buffer), at);
    }

    /// Where a sector of a read is, and where it goes to.
    fn place_of_retry(&self, whose: Whose, sector: u32, buffers: &Buffers) -> (Ppa, BufId, u32) {
        match whose {
            Whose::User { request, index, count } => {
                assert!(sector < count, "sector {sector} of {count} is read again");
                let buffer = self.requests.get(request).request.buffer.expect("a read has a buffer");
                (buffers.addresses(buffer)[usize_of(index + sector)], buffer, index + sector)
            }
            Whose::Victim { read } => {
                let Read { first, buffer, .. } = *self.collector.reads.get(read);
                let place = ocssd_ftl::Place(first.0 + u64::from(sector));
                (self.space.shape.ppa(place), buffer, sector)
            }
        }
    }

    /// A sector was read again.
    pub(super) fn retry_done(&mut self, number: SlabKey, completion: &Completion, buffers: &mut Buffers) {
        let (whose, mut failed) = *self.retries.0.get(number);
        let sector = failed.next().expect("a sector was asked for");
        let (_, buffer, at) = self.place_of_retry(whose, sector, buffers);
        let judged = match whose {
            Whose::User { request, .. } => {
                let block = self.requests.get(request).request.block + u64::from(at);
                self.judge(completion.status, block, (buffer, at), buffers)
            }
            Whose::Victim { .. } => {
                let tag = SectorTag::decode(buffers.oob(buffer, at, 1), buffers.data(buffer, at, 1));
                let is_sound = tag.is_ok_and(|tag| Self::is_block(tag.kind));
                match completion.status {
                    status if !status.has_data() => Err(status),
                    _ if !is_sound => Err(Status::UNRECOVERED_READ),
                    _ => Ok(()),
                }
            }
        };
        failed.on_try(judged);
        *self.retries.0.get_mut(number) = (whose, failed);
        if failed.next().is_some() {
            return self.send_retry(number, buffers);
        }
        self.retries.0.free(number);
        let (lost, status) = failed.given_up();
        assert_eq!(lost == 0, status.is_success(), "sectors {lost:#x} were given up with {status}");
        match whose {
            Whose::User { request, index, count } => {
                if lost != 0 {
                    self.stats.read_failed += u64::from(lost.count_ones());
                    self.requests.fail(request, status);
                }
                self.read_over(request, (index, count), buffers);
            }
            Whose::Victim { read } => {
                if status.is_drive_failure() {
                    self.stop(status);
                }
                self.copy(read, lost, buffers);
            }
        }
    }
}
