//! The host's turns between two waits: jobs go to targets, their ends to connections, until there is nothing to do at once.

use super::connection::End;
use super::server::Server;
use crate::job::Done;
use crate::served_target::ServedTarget;
use crate::shares::ClientId;
use ocssd_engine::Clock;
use ocssd_lightnvm::Device;

/// Turns between two looks at sockets (chosen: a fast drive ends what one round received in a few).
const TURNS_MAX: usize = 32;

/// Clients that try again in one turn (chosen), so that a crowd that waits does not hold up those that do not.
const TRIES_MAX: usize = 64;

impl<D: Device, T: ServedTarget + ?Sized> Server<D, T> {
    /// Gives the host turns, and everybody what came of them.
    pub(super) fn turns(&mut self) {
        self.dispatcher.now = self.host.clock().now();
        self.dispatcher.begin_round();
        // Once between two looks at sockets, so that questions do not hold up who comes with something else.
        let host = &self.host;
        self.dispatcher.look_up(|target, block| host.target(target).holds(block));
        for _ in 0..TURNS_MAX {
            self.dispatcher.now = self.host.clock().now();
            let mut any = self.edges_take();
            let busy = self.host_turn();
            any |= self.dispatcher.raw_turn();
            while let Some(done) = self.dispatcher.poll_done() {
                self.deliver(done);
                any = true;
            }
            self.edges_tell();
            any |= self.resume() | self.summon();
            while let Some(place) = self.listed.pop() {
                self.look_at(place);
            }
            if self.dispatcher.is_round_over()
                || !busy
                    && !any
                    && !self.has_room_to_give()
                    && !self.dispatcher.has_requests()
                    && !self.dispatcher.has_done()
            {
                return;
            }
        }
    }

    /// One turn of the host; true if it wants another at once.
    fn host_turn(&mut self) -> bool {
        let empty = self.host.take_buffers();
        self.host.return_buffers(std::mem::replace(&mut self.dispatcher.buffers, empty));
        let busy = self.host.step(&mut self.dispatcher);
        self.dispatcher.buffers = self.host.take_buffers();
        self.tell_changed_zones();
        self.tell_used_bytes();
        busy
    }

    /// Hosts hear of zones that changed by themselves.
    fn tell_changed_zones(&mut self) {
        for (id, zones) in &self.zoned {
            let target = self.host.target_mut(id.target());
            while let Some(zone) = target.next_changed_zone() {
                self.dispatcher.note_changed_zone(*id, zones.start_of(zone));
            }
        }
    }

    /// Hosts may ask how much of a namespace of keys is in use.
    fn tell_used_bytes(&mut self) {
        for id in &self.keyed {
            if let Some(bytes) = self.host.target(id.target()).used_bytes() {
                self.dispatcher.note_used_bytes(*id, bytes);
            }
        }
    }

    /// The end of a job, to whoever gave it; if that is gone, what it held comes back.
    fn deliver(&mut self, done: Done) {
        self.tell_observer(&done);
        let Some(done) = self.edge_done(done) else { return };
        let owner = done.job.owner;
        let place = usize::try_from(owner.connection).expect("it was an index");
        match &mut self.connections[place] {
            Some(connection) if connection.generation == owner.generation => {
                connection.session.on_done(done, &mut self.dispatcher);
                self.list(place);
            }
            _ => {
                done.into_pieces().for_each(|piece| self.dispatcher.pool.give_back(piece));
            }
        }
    }

    /// Those who were called look beyond themselves. True if there were any.
    fn summon(&mut self) -> bool {
        let mut any = false;
        while let Some((connection, generation)) = self.dispatcher.poll_call() {
            // A transport looks beyond itself in every turn.
            any = true;
            if connection >= ClientId::FIRST_TRANSPORT {
                continue;
            }
            let place = usize::try_from(connection).expect("it was an index");
            if self.connections[place].as_ref().is_some_and(|found| found.generation == generation) {
                self.judge(place);
            }
        }
        any
    }

    /// A connection looks beyond itself.
    pub(super) fn judge(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        match connection.session.judge(&mut self.dispatcher) {
            Ok(()) => self.list(place),
            Err(protocol_error) => {
                self.close(place, End::Dropped(protocol_error.reason, protocol_error.sentence))
            }
        }
    }

    /// Those who wait for room try again if there is more than there was, the first come first. True if somebody may have got
    /// some.
    fn resume(&mut self) -> bool {
        if self.dispatcher.take_room_made() {
            self.untried = self.waiting.len();
        } else if self.untried == 0 {
            return false;
        }
        let tries = self.untried.min(TRIES_MAX);
        self.untried -= tries;
        for _ in 0..tries {
            let Some(place) = self.waiting.pop_front() else { break };
            let Some(connection) = &mut self.connections[place] else { continue };
            connection.waits = connection.session.go_on(&mut self.dispatcher);
            if connection.waits {
                self.waiting.push_back(place);
            }
            self.list(place);
        }
        tries > 0 || self.transports.iter().any(|transport| transport.waits_for_room())
    }

    /// Somebody waits for room who has not tried since there is more.
    pub(super) fn has_room_to_give(&self) -> bool {
        let waits =
            || !self.waiting.is_empty() || self.transports.iter().any(|transport| transport.waits_for_room());
        self.untried > 0 || self.dispatcher.is_room_made() && waits()
    }
}
