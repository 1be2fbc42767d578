//! What clients may not do for ever: shake hands, hold memory, or keep a stopping server.

use super::connection::{Connection, End};
use super::poller::Interest;
use super::server::{Limits, Server, number_of_listener};
use super::wait::WATCH;
use crate::served_target::ServedTarget;
use crate::shares::ClientId;
use crate::stats::DropReason;
use ocssd_base::Nanos;
use ocssd_engine::Clock;
use ocssd_lightnvm::Device;

/// How long no connection is accepted after the system had no room for one (chosen).
const ACCEPT_PAUSE: Nanos = Nanos::from_secs(1);

/// A handshake may take so long where others find no place (chosen: several times what programs take over any network).
const GREETING_CROWDED: Nanos = Nanos::from_secs(1);

/// Nobody is looked for who could make room before so much time has passed (chosen: a look takes some microseconds).
const LOOK_AGAIN: Nanos = Nanos::from_millis(10);

impl<D: Device, T: ServedTarget + ?Sized> Server<D, T> {
    /// Drops clients whose time is over; rarely, since a look costs as much as there are connections.
    pub(super) fn watch(&mut self) {
        let now = self.host.clock().now();
        let is_late = self.stopping.is_some_and(|until| until <= now);
        let was_late = self.stopping.is_some_and(|until| until <= self.watched);
        if now.saturating_since(self.watched) < WATCH && is_late == was_late {
            return;
        }
        self.watched = now;
        self.say_what_was_left_out(false);
        let transports_wait = self.transports.iter().any(|transport| transport.waits_for_room());
        let waiting = self.connections.iter().flatten().filter(|connection| connection.waits).count();
        let starved = self.dispatcher.pool.take_starved();
        self.dispatcher.now = now;
        for place in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[place] else { continue };
            // Who waits for what it holds itself is in nobody's way.
            let others_wait = transports_wait || waiting > usize::from(connection.waits);
            let client = ClientId(u32::try_from(place).expect("a bounded number of connections"));
            let pool = &self.dispatcher.pool;
            let in_the_way = others_wait && (pool.is_over(client) || starved && pool.is_holder(client));
            if let Some(end) = overdue(connection, now, &self.limits, others_wait)
                .or_else(|| slow(connection, now).filter(|_| in_the_way))
            {
                self.close(place, end);
            } else if is_late {
                let sentence = "the server stops, and the client did not take its answers".to_owned();
                self.close(place, End::Dropped(DropReason::Stalled, sentence));
            } else {
                self.judge(place);
            }
        }
        if is_late {
            self.dispatcher.give_up_waiting();
        }
        self.edges_watch();
        if self.accept_after.is_some_and(|at| at <= now) {
            self.accept_after = None;
            self.wait_for_listeners(true);
        }
    }

    /// Who has shaken hands for longest goes, if that has taken long enough, so that one more has room at an endpoint. True if
    /// one went.
    pub(super) fn make_room(&mut self, endpoint: usize) -> bool {
        let now = self.host.clock().now();
        if now < self.no_room_until {
            return false;
        }
        let in_the_way = |connection: &Connection| {
            connection.greets() && self.slots.makes_room(connection.endpoint, endpoint)
        };
        let places = self.connections.iter().enumerate();
        let greeting = places.filter_map(|(place, found)| {
            found.as_ref().filter(|connection| in_the_way(connection)).map(|found| (found.since, place))
        });
        let oldest = greeting.min();
        let may_go = oldest.map(|(since, _)| since + GREETING_CROWDED);
        if may_go.is_none_or(|at| now < at) {
            // Looked for again when it may be different, since a look costs as much as there are connections.
            self.no_room_until = may_go.unwrap_or(now + GREETING_CROWDED).min(now + LOOK_AGAIN);
            return false;
        }
        if let Some((_, place)) = oldest {
            let sentence =
                format!("its handshake took more than {GREETING_CROWDED} and others wanted its place");
            self.close(place, End::Dropped(DropReason::SlowGreeting, sentence));
        }
        true
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

/// Why a connection that is in others' way must go, if it must.
fn slow(connection: &mut Connection, now: Nanos) -> Option<End> {
    let rate = connection.pace.slowness(now)?;
    let sentence =
        format!("it moved {rate} bytes a second and held more memory than its part, which others waited for");
    Some(End::Dropped(DropReason::Slow, sentence))
}

/// Why a connection must go, if it must.
fn overdue(connection: &Connection, now: Nanos, limits: &Limits, crowded: bool) -> Option<End> {
    if connection.greets() && now.saturating_since(connection.since) > limits.greeting {
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
