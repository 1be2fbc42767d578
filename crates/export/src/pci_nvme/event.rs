//! Asynchronous events: requests that wait, the drive's own news, and doorbells that were written wrongly.
//!
//! The drive is given one request at a time; which of the guest's it answers is decided here, because the controller has
//! news of its own. Source: NVMe base 1.4 section 5.2.

use super::drive::OpenChannelDrive;
use super::function::Function;
use super::memory::GuestMemory;
use ocssd_base::Nanos;
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
    /// The drive has a request.
    drive_asked: bool,
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

impl<D: OpenChannelDrive, M: GuestMemory> Function<D, M> {
    /// An event request is held, if it is not one too many.
    pub(super) fn hold_event(&mut self, sqe: &Sqe) {
        // AERL is 0-based.
        if self.events.held.len() > usize::from(self.identify.aerl) {
            return self.end_admin(sqe.cid, StatusField::rule(Status::AER_LIMIT_EXCEEDED), 0);
        }
        self.events.held.push_back(sqe.cid);
    }

    /// Tells news, if there is some and somebody asked. True if so.
    pub(super) fn tell_events(&mut self, now: Nanos) -> bool {
        let Some(&cid) = self.events.held.front() else { return false };
        let Some(dw0) = self.news(now) else { return false };
        self.events.held.pop_front();
        self.end_admin(cid, StatusField::SUCCESS, dw0);
        true
    }

    fn news(&mut self, now: Nanos) -> Option<u32> {
        if !self.events.error_masked
            && let Some(bad) = self.events.bad_doorbell.take()
        {
            self.events.error_masked = true;
            let info = if bad == BadDoorbell::Register { 0 } else { 1 };
            let log_page = LogPageId::ERROR_INFORMATION;
            return Some(AsyncEvent { kind: AsyncEventKind::Error, info, log_page }.to_dword());
        }
        if !self.events.drive_asked {
            let refused = self.drive.admin(now, &Sqe::async_event_request(), &mut []);
            assert!(refused.is_none(), "a drive that holds no event request refused one");
            self.events.drive_asked = true;
        }
        let dw0 = self.drive.poll_event()?;
        self.events.drive_asked = false;
        Some(dw0)
    }
}
