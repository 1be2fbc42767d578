//! Pages of the log go to media, in places of their own, and say when they are there.
//!
//! A page that is not full waits until somebody waits for it. Deliberately not here: what is in them (`journal`).

use super::flight::Purpose;
use super::program::landing;
use super::space::Role;
use super::state::Zns;
use crate::ox::log_pages::tag_page;
use ocssd_base::SlabKey;
use ocssd_ftl::{AppendEvent, Kind};
use ocssd_lightnvm::{Buffers, Completion, Op};

impl Zns {
    /// Gives out pages of the log, and ends what waited for it. True if anything was done.
    pub(super) fn write_log(&mut self, buffers: &mut Buffers) -> bool {
        let mut any = self.end_waits();
        while self.flight.has_room(1) && self.write_log_page(buffers) {
            any = true;
        }
        any
    }

    /// Requests that waited for the log, and for nothing else.
    fn end_waits(&mut self) -> bool {
        let mut any = false;
        while let Some(&(until, request)) = self.waits.front() {
            if until > self.log.durable() {
                break;
            }
            self.waits.pop_front();
            assert!(self.waits.front().is_none_or(|&(next, _)| next >= until), "requests wait out of order");
            self.requests.part_done(request);
            any = true;
        }
        any
    }

    fn is_page_due(&self) -> bool {
        let is_wanted = self.log.has_full_page() || self.log_awaited > self.log.durable();
        is_wanted && self.log.has_page() && self.log_io.spare().is_some()
    }

    fn write_log_page(&mut self, buffers: &mut Buffers) -> bool {
        let is_again = self.log_io.has_again();
        if !is_again && !self.is_page_due() {
            return false;
        }
        let sectors = self.log_io.sectors();
        let Self { log_point, space, .. } = self;
        let Some(at) = log_point.next(sectors, |units| space.open(units, Role::Log)) else { return false };
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
    pub(super) fn log_page_done(&mut self, page: SlabKey, completion: &Completion) {
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
        self.log_point.landed(at, landing(status, ()), &mut events);
        self.close_page_chunks(&events);
    }

    /// Chunks of pages were written to their end.
    pub(super) fn close_page_chunks(&mut self, events: &[AppendEvent<()>]) {
        for event in events {
            if let AppendEvent::Closed(chunk) = *event {
                self.space.close(chunk);
                self.look_at_pages(chunk);
            }
        }
    }
}
