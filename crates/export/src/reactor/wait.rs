//! How long the server may wait: until the drive has something to do, or a client has been slow for too long.

use super::server::Server;
use crate::served_target::ServedTarget;
use ocssd_base::Nanos;
use ocssd_engine::Clock;
use ocssd_lightnvm::Device;
use std::time::Duration;

/// The last stretch before the drive's deadline is spent looking at sockets again and again: a sleeping thread wakes later
/// than it asked (chosen: what a quiet machine takes to wake a thread whose timer has no slack).
const SPIN: Nanos = Nanos::from_micros(20);

/// How often clients are looked at for what they may not do for ever (chosen: limits are whole seconds).
pub(super) const WATCH: Nanos = Nanos::from_millis(500);

impl<D: Device, T: ServedTarget + ?Sized> Server<D, T> {
    /// How long nothing can happen but at sockets; `None` for ever.
    pub(super) fn timeout(&self) -> Option<Duration> {
        let dispatcher = &self.dispatcher;
        let has_work = dispatcher.has_requests()
            || dispatcher.has_questions()
            || dispatcher.has_done()
            || dispatcher.has_calls();
        if has_work || self.has_room_to_give() || !self.listed.is_empty() {
            return Some(Duration::ZERO);
        }
        let now = self.host.clock().now();
        let raw = self.dispatcher.raw.as_ref().and_then(crate::raw_lane::RawLane::deadline);
        let drive =
            self.host.next_deadline().into_iter().chain(raw).min().map(|at| at.saturating_since(now + SPIN));
        let has_client = self.open > 0 || self.transports.iter().any(|transport| transport.has_client());
        let is_watching =
            has_client || self.owes_the_log() || self.accept_after.is_some() || self.stopping.is_some();
        let watch = is_watching.then(|| (self.watched + WATCH).saturating_since(now));
        let look = self.until_look(now);
        let closing = self.stopping.filter(|until| *until > self.watched);
        let watch = watch.into_iter().chain(closing.map(|until| until.saturating_since(now)));
        drive.into_iter().chain(watch).chain(look).min().map(|wait| Duration::from_nanos(wait.0))
    }
}
