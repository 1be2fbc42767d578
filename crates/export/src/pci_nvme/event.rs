//! Asynchronous events: requests that wait, and doorbells that were written wrongly.
//!
//! Which request is answered is decided here, because the port has news of its own. Source: NVMe base 1.4 section 5.2. Deliberately
//! not here: the news of who carries commands out.

use super::memory::GuestMemory;
use super::port::Port;
use ocssd_lightnvm::Status;
use ocssd_nvme::log_page::{AsyncEvent, AsyncEventKind, LogPageId};
use ocssd_nvme::sqe::GetLogPage;
use ocssd_nvme::{Sqe, StatusField};
use std::collections::VecDeque;

/// A doorbell that was written wrongly (NVMe base 1.4 figure 147).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadDoorbell {
    /// There is no such queue.
    Register,
    /// No such place in the queue.
    Value,
}

/// Requests and news.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The guest's requests, oldest first.
    held: VecDeque<u16>,
    bad_doorbell: Option<BadDoorbell>,
    /// An error was told, and the error log not read since.
    error_masked: bool,
}

impl Events {
    /// A log page was read: its events are told again.
    pub(super) fn log_was_read(&mut self, get: &GetLogPage) {
        if get.lid == LogPageId::ERROR_INFORMATION && !get.retain_event {
            self.error_masked = false;
        }
    }

    /// The first is told; others until then are the same news.
    pub(super) fn note(&mut self, bad: BadDoorbell) {
        self.bad_doorbell.get_or_insert(bad);
    }
}

impl<M: GuestMemory> Port<M> {
    /// An event request is held, if it is not one too many: at most `count` are.
    pub(super) fn hold_event(&mut self, sqe: &Sqe, count: usize) {
        if self.events.held.len() >= count {
            return self.end_admin(sqe.cid, StatusField::rule(Status::AER_LIMIT_EXCEEDED), 0);
        }
        self.events.held.push_back(sqe.cid);
    }

    /// An event request that is held ends without news; false if there is none of this identifier.
    pub(super) fn abort_event(&mut self, cid: u16) -> bool {
        let Some(place) = self.events.held.iter().position(|held| *held == cid) else { return false };
        self.events.held.remove(place);
        self.end_admin(cid, StatusField::retry(Status::ABORT_REQUESTED), 0);
        true
    }

    /// Somebody would be told news.
    pub(super) fn awaits_news(&self) -> bool {
        !self.events.held.is_empty()
    }

    /// Tells news to the oldest request.
    pub(super) fn tell(&mut self, dw0: u32) {
        let cid = self.events.held.pop_front().expect("the caller has looked: somebody awaits news");
        self.end_admin(cid, StatusField::SUCCESS, dw0);
    }

    /// The port's own news: a doorbell that was written wrongly.
    pub(super) fn poll_news(&mut self) -> Option<u32> {
        if self.events.error_masked {
            return None;
        }
        let bad = self.events.bad_doorbell.take()?;
        self.events.error_masked = true;
        let info = if bad == BadDoorbell::Register { 0 } else { 1 };
        let log_page = LogPageId::ERROR_INFORMATION;
        Some(AsyncEvent { kind: AsyncEventKind::Error, info, log_page }.to_dword())
    }
}
