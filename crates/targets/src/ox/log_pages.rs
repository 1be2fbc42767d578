//! Pages of the log go to media, in places of their own, and say when they are there.
//!
//! Deliberately not here: what is in them (`ocssd_ftl::log`), what becomes true by them (`commit`).

use super::flight::Purpose;
use super::space::Claim;
use super::state::{Ending, Ox};
use super::store::Store;
use ocssd_base::SlabKey;
use ocssd_ftl::{AppendEvent, Kind, SectorTag, Sequence, TAG_BYTES};
use ocssd_lightnvm::{BufId, Buffers, Completion, Op};

/// The numbers in tags have 40 and 48 bits: lower bits are enough to tell pages apart.
const TAG_BLOCK_BITS: u64 = (1 << 40) - 1;

/// Writes the tags of a page of the target's own beside its sectors.
pub(crate) fn tag_page(
    kind: Kind,
    (block, sequence): (u64, u64),
    buffer: BufId,
    sectors: u32,
    buffers: &mut Buffers,
) {
    let whole_is_data = buffers.whole(buffer, 0, 1).len() == buffers.data(buffer, 0, 1).len();
    for sector in 0..sectors {
        let (data, oob) = buffers.sectors_mut(buffer, sector, 1);
        if !whole_is_data {
            data.fill(0);
        }
        let tag = SectorTag { kind, block: block & TAG_BLOCK_BITS, sequence: Sequence(sequence) };
        oob.fill(0);
        oob[..TAG_BYTES].copy_from_slice(&tag.encode(data));
    }
}

impl<S: Store> Ox<S> {
    /// Gives out pages of the log. True if any was.
    pub(crate) fn write_log(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = false;
        while self.flight.has_room(1) && self.write_log_page(buffers) {
            any = true;
        }
        any
    }

    /// A page that is not full waits while nobody waits for it.
    fn is_page_due(&self) -> bool {
        let is_wanted = self.log.has_full_page()
            || S::is_log_awaited(self)
            || self.collection_waits_for_log()
            || self.ending != Ending::No
            || self.space.waits_for_log(self.log.durable());
        is_wanted && self.log.has_page() && self.log_io.spare().is_some()
    }

    fn write_log_page(&mut self, buffers: &mut Buffers) -> bool {
        let is_again = self.log_io.has_again();
        if !is_again && !self.is_page_due() {
            return false;
        }
        let sectors = self.log_io.sectors();
        let Self { points, space, .. } = self;
        let Some(at) = points.log.next(sectors, |units| space.open(units, Claim::Log)) else { return false };
        let fresh = (!is_again).then(|| {
            let buffer = self.log_io.spare().expect("it was looked at");
            let lsn = self.log.take_page(buffers.whole_mut(buffer, 0, sectors)).expect("a page is due");
            tag_page(Kind::Log, (lsn.0, self.generation), buffer, sectors, buffers);
            lsn
        });
        let written = if is_again { &mut self.stats.rewritten } else { &mut self.stats.log_written };
        *written += u64::from(sectors);
        self.stats.programmed += u64::from(sectors);
        let (page, buffer) = self.log_io.issue(fresh, at);
        let addresses = self.run_at(at, sectors);
        self.flight.send(Purpose::LogPage { page }, Op::Write { fua: true }, addresses, Some(buffer), 0);
        true
    }

    /// A write of a page ended.
    pub(crate) fn log_page_done(&mut self, page: SlabKey, completion: &Completion) {
        let status = completion.status;
        let (lsn, at) = self.log_io.ended(page, status.is_success());
        if status.is_success() {
            self.space.has_page(at.chunk, lsn.0);
            if self.refuses_changes().is_none() {
                self.log.on_written(lsn);
            }
        } else if status.is_drive_failure() {
            self.stop(status);
        }
        let mut events = Vec::new();
        self.points.log.landed(at, Self::landing(status, ()), &mut events);
        self.close_chunks(&events);
    }

    /// Chunks of pages were written to their end.
    pub(crate) fn close_chunks(&mut self, events: &[AppendEvent<()>]) {
        for event in events {
            if let AppendEvent::Closed(chunk) = *event {
                self.space.close(chunk);
                self.look_at(chunk);
            }
        }
    }
}
