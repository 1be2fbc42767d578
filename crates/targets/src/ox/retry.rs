//! Reads that failed are asked for again, sector by sector, before a user hears of it or garbage collection notes a loss.
//!
//! Deliberately not here: when a sector is given up (`read_again`), how one of a store's own reads is judged (`store`).

use super::collect::Read;
use super::flight::Purpose;
use super::state::Ox;
use super::store::Store;
use crate::read_again::{Failed, as_loss};
use ocssd_base::{Slab, SlabKey};
use ocssd_lightnvm::{Addresses, BufId, Buffers, Completion, Op, Ppa, Status};

/// What was read.
#[derive(Clone, Copy, Debug)]
pub enum Whose<R> {
    /// Sectors of a read of the store's own.
    Own(R),
    /// Sectors to be copied.
    Victim { read: SlabKey },
}

/// Reads with sectors that failed.
#[derive(Clone, Debug)]
pub struct Retries<R>(Slab<(Whose<R>, Failed)>);

impl<R> Retries<R> {
    /// Room for as many as there are commands.
    pub fn new(commands: u32) -> Self {
        Self(Slab::new(commands))
    }
}

impl<S: Store> Ox<S> {
    /// Asks again for the sectors of a read that failed. There is room: its command has just ended.
    pub(crate) fn retry(&mut self, whose: Whose<S::Read>, failed: Failed, buffers: &Buffers) {
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
    fn place_of_retry(&self, whose: Whose<S::Read>, sector: u32, buffers: &Buffers) -> (Ppa, BufId, u32) {
        match whose {
            Whose::Own(read) => S::place_of_read(self, read, sector, buffers),
            Whose::Victim { read } => {
                let Read { first, buffer, .. } = *self.gc.reads.get(read);
                let place = ocssd_ftl::PhysicalAddress(first.0 + u64::from(sector));
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
            Whose::Own(read) => S::judge(self, read, completion.status, (buffer, at), buffers),
            Whose::Victim { .. } => match completion.status {
                status if !status.has_data() => Err(status),
                _ if !S::is_sound((buffer, at), buffers) => Err(Status::UNRECOVERED_READ),
                _ => Ok(()),
            },
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
            Whose::Own(read) => S::retried(self, read, lost, as_loss(status), buffers),
            Whose::Victim { read } => {
                if status.is_drive_failure() {
                    self.stop(status);
                }
                self.copied(read, lost, buffers);
            }
        }
    }
}
