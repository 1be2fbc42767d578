//! Asynchronous events: requests the controller holds until it has news, and which news is masked until its log is
//! read.
//!
//! Two kinds: chunk notifications (OCSSD 2.0, log page D0h) and health warnings the host asked for (feature 0Bh, log
//! page 02h). Deliberately not here: the notifications themselves (`chunk_notifications`) and the warnings (`health`).

use super::completion::{Refused, cqe};
use super::front_end::Controller;
use crate::config::Revision;
use ocssd_lightnvm::Status;
use ocssd_nvme::StatusField;
use ocssd_nvme::log_page::{AsyncEvent, AsyncEventKind, LogPageId};
use std::collections::VecDeque;

/// Chosen: event requests held at once; AERL is this less one. The NVMe specification recommends at least four.
pub(super) const REQUESTS_MAX: usize = 4;

/// The state of event reporting.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    /// Command identifiers of the requests held, oldest first.
    held: VecDeque<u16>,
    /// Reported and not read yet: no second event of the kind until then.
    chunk_masked: bool,
    health_masked: bool,
    /// Health warnings that were reported; each is reported once.
    warnings_told: u8,
}

impl Events {
    pub(super) fn hold(&mut self, cid: u16) -> Result<(), Refused> {
        if self.held.len() >= REQUESTS_MAX {
            return Err(Refused(Status::AER_LIMIT_EXCEEDED));
        }
        self.held.push_back(cid);
        assert!(self.held.len() <= REQUESTS_MAX, "more event requests are held than the limit");
        Ok(())
    }

    /// A log page was read without Retain Asynchronous Event.
    pub(super) fn log_was_read(&mut self, lid: LogPageId) {
        match lid {
            LogPageId::CHUNK_NOTIFICATION => self.chunk_masked = false,
            LogPageId::SMART => self.health_masked = false,
            _ => {}
        }
    }

    fn next(&mut self, has_notifications: bool, warnings: u8) -> Option<AsyncEvent> {
        let fresh = warnings & !self.warnings_told;
        if has_notifications && !self.chunk_masked {
            self.chunk_masked = true;
            return Some(AsyncEvent::CHUNK_NOTIFICATION);
        }
        if fresh != 0 && !self.health_masked {
            self.health_masked = true;
            self.warnings_told |= warnings;
            assert_eq!(warnings & !self.warnings_told, 0, "what is told is noted");
            // Information: 2 is "spare below threshold", 0 "subsystem reliability" (NVMe base 1.4 figure 148).
            let info = if fresh & 1 == 1 { 2 } else { 0 };
            return Some(AsyncEvent { kind: AsyncEventKind::Smart, info, log_page: LogPageId::SMART });
        }
        None
    }
}

impl Controller {
    /// Completes a held Asynchronous Event Request if there is news: on the admin queue.
    pub fn poll_event(&mut self) -> Option<[u8; 16]> {
        let &cid = self.events.held.front()?;
        let has_notifications =
            self.config().revision == Revision::V20 && self.flash.chunk_notifications().next().is_some();
        let asked = self.features.async_events.to_le_bytes()[0];
        let warnings = self.critical_warning() & asked;
        let event = self.events.next(has_notifications, warnings)?;
        self.events.held.pop_front();
        assert!(self.events.held.len() < REQUESTS_MAX, "more event requests were held than the limit");
        let completion = ocssd_nvme::Cqe { dw0: event.to_dword(), ..cqe(0, cid, StatusField::SUCCESS) };
        Some(completion.encode())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_event_comes_once_until_its_log_is_read() {
        let mut events = Events::default();
        assert_eq!(events.next(true, 0), Some(AsyncEvent::CHUNK_NOTIFICATION));
        assert_eq!(events.next(true, 0), None);
        events.log_was_read(LogPageId::SMART);
        assert_eq!(events.next(true, 0), None);
        events.log_was_read(LogPageId::CHUNK_NOTIFICATION);
        assert_eq!(events.next(true, 0), Some(AsyncEvent::CHUNK_NOTIFICATION));
    }

    #[test]
    fn a_health_warning_is_told_once() {
        let mut events = Events::default();
        assert_eq!(events.next(false, 0b100).map(|event| event.info), Some(0));
        events.log_was_read(LogPageId::SMART);
        assert_eq!(events.next(false, 0b100), None);
        assert_eq!(events.next(false, 0b101).map(|event| event.info), Some(2));
    }
}
