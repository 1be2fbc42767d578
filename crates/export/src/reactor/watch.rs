//! What clients may not do for ever: shake hands, hold memory, or keep a stopping server.

use super::connection::{Connection, End};
use super::poller::Interest;
use super::server::{Limits, Server, number_of_listener};
use super::wait::WATCH;
use crate::protocol::Phase;
use crate::stats::DropReason;
use ocssd_base::Nanos;
use ocssd_engine::Clock;
use ocssd_lightnvm::Device;

/// How long no connection is accepted after the system had no room for one (chosen).
const ACCEPT_PAUSE: Nanos = Nanos::from_secs(1);

impl<D: Device> Server<D> {
    /// Drops clients whose time is over; rarely, since a look costs as much as there are connections.
    pub(super) fn watch(&mut self) {
        let now = self.host.clock().now();
        if now.saturating_since(self.watched) < WATCH {
            return;
        }
        self.watched = now;
        let crowded = !self.waiting.is_empty();
        self.desk.now = now;
        for place in 0..self.connections.len() {
            let Some(connection) = &self.connections[place] else { continue };
            if let Some(end) = overdue(connection, now, &self.limits, crowded) {
                self.close(place, end);
            } else if self.stopping.is_some_and(|until| until <= now) {
                let sentence = "the server stops, and the client did not take its answers".to_owned();
                self.close(place, End::Dropped(DropReason::Stalled, sentence));
            } else {
                self.judge(place);
            }
        }
        self.edges_watch();
        if self.accept_after.is_some_and(|at| at <= now) {
            self.accept_after = None;
            self.wait_for_listeners(true);
        }
    }

    /// The system has no room for connections: the listeners are left alone for a while.
    pub(super) fn pause_accepting(&mut self) {
        self.accept_after = Some(self.host.clock().now() + ACCEPT_PAUSE);
        self.wait_for_listeners(false);
    }

    fn wait_for_listeners(&self, receive: bool) {
        for (place, (listener, _)) in self.listeners.iter().enumerate() {
            // It was added before, so this changes it; what fails here fails again at the next accept and is said there.
            let _ =
                self.poller.change(listener, number_of_listener(place), Interest { receive, send: false });
        }
    }
}

/// Why a connection must go, if it must.
fn overdue(connection: &Connection, now: Nanos, limits: &Limits, crowded: bool) -> Option<End> {
    let greeting = matches!(connection.session.phase(), Phase::Greeting | Phase::StartTls);
    if greeting && now.saturating_since(connection.since) > limits.greeting {
        let sentence = format!("its handshake took more than {}", limits.greeting);
        return Some(End::Dropped(DropReason::SlowGreeting, sentence));
    }
    let limit = if crowded { limits.stall_crowded } else { limits.stall };
    if connection.is_owed() && now.saturating_since(connection.moved) > limit {
        let sentence = format!("it owed the next step for more than {limit}");
        return Some(End::Dropped(DropReason::Stalled, sentence));
    }
    None
}
