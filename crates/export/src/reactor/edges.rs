//! The turns of clients that are no streams of bytes.

use super::edge::{Edge, SOCKETS_MAX, Sockets};
use super::poller::Ready;
use super::server::Server;
use crate::job::Done;
use crate::shares::ClientId;
use ocssd_engine::Clock;
use ocssd_lightnvm::Device;
use std::io;

/// Numbers of their sockets, behind those of all connections.
pub(super) const FIRST_EDGE: u64 = 1 << 40;

/// Makes an edge whose jobs have this number as their owner's connection.
pub type MakeEdge = Box<dyn FnOnce(u32) -> Box<dyn Edge>>;

impl<D: Device> Server<D> {
    /// Serves clients that are no streams of bytes.
    ///
    /// # Errors
    /// As the system says.
    pub fn host_edge(&mut self, make: MakeEdge) -> io::Result<()> {
        let place = self.edges.len();
        let mut edge = make(ClientId::FIRST_EDGE + u32::try_from(place).expect("few"));
        edge.begin(&Sockets { poller: &self.poller, first: first_of(place) })?;
        self.edges.push(edge);
        Ok(())
    }

    /// A socket of an edge is ready.
    pub(super) fn on_edge(&mut self, ready: Ready) {
        let number = ready.number - FIRST_EDGE;
        let place = usize::try_from(number / SOCKETS_MAX).expect("it was an index");
        let number = u32::try_from(number % SOCKETS_MAX).expect("it is small");
        let sockets = Sockets { poller: &self.poller, first: first_of(place) };
        self.edges[place].on_ready(number, ready, &mut self.desk, &sockets);
    }

    /// Edges take what their clients ask. True if there was something.
    pub(super) fn edges_take(&mut self) -> bool {
        let mut any = false;
        for (place, edge) in self.edges.iter_mut().enumerate() {
            let sockets = Sockets { poller: &self.poller, first: first_of(place) };
            any |= edge.take(&mut self.desk, &sockets);
        }
        any
    }

    /// Edges tell their clients what has ended, and the log what there is to say.
    pub(super) fn edges_tell(&mut self) {
        for place in 0..self.edges.len() {
            self.edges[place].tell(&mut self.desk);
            while let Some(sentence) = self.edges[place].poll_sentence() {
                self.say(&sentence);
            }
        }
    }

    /// The end of a job of an edge, given back if it is none of an edge.
    pub(super) fn edge_done(&mut self, done: Done) -> Option<Done> {
        let Some(place) = done.job.owner.connection.checked_sub(ClientId::FIRST_EDGE) else {
            return Some(done);
        };
        let place = usize::try_from(place).expect("it was an index");
        self.edges[place].on_done(done, &mut self.desk);
        None
    }

    /// Some edge wants to be asked again at once, or has something to do after all.
    pub(super) fn edges_are_eager(&mut self) -> bool {
        let now = self.host.clock().now();
        let mut any = self.edges.iter().any(|edge| edge.is_eager(now));
        if !any {
            for edge in &mut self.edges {
                any |= edge.before_sleep(&mut self.desk);
            }
        }
        any
    }

    /// Edges look for what their clients may not do for ever, and stop if it is time. True if all have.
    pub(super) fn edges_watch(&mut self) {
        for (place, edge) in self.edges.iter_mut().enumerate() {
            let sockets = Sockets { poller: &self.poller, first: first_of(place) };
            edge.watch(&self.limits, &mut self.desk, &sockets);
        }
    }

    /// Edges stop. True once all have.
    pub(super) fn edges_stop(&mut self) -> bool {
        let Some(until) = self.stopping else { return false };
        let is_late = until <= self.host.clock().now();
        let mut all = true;
        for (place, edge) in self.edges.iter_mut().enumerate() {
            let sockets = Sockets { poller: &self.poller, first: first_of(place) };
            all &= edge.stop(is_late, &mut self.desk, &sockets);
        }
        all
    }
}

fn first_of(place: usize) -> u64 {
    FIRST_EDGE + SOCKETS_MAX * u64::try_from(place).expect("few")
}
