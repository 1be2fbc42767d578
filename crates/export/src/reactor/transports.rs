//! The turns of clients that are no streams of bytes.

use super::poller::Ready;
use super::server::Server;
use super::transport::{SOCKETS_MAX, Sockets, Transport};
use crate::job::Done;
use crate::served_target::ServedTarget;
use crate::shares::ClientId;
use ocssd_engine::Clock;
use ocssd_lightnvm::Device;
use std::io;

/// Numbers of their sockets, behind those of all connections.
pub(super) const FIRST_TRANSPORT: u64 = 1 << 40;

/// Makes a transport whose jobs have this number as their owner's connection.
pub type MakeTransport = Box<dyn FnOnce(u32) -> Box<dyn Transport>>;

impl<D: Device, T: ServedTarget + ?Sized> Server<D, T> {
    /// Serves clients that are no streams of bytes.
    ///
    /// # Errors
    /// As the system says.
    pub fn host_transport(&mut self, make: MakeTransport) -> io::Result<()> {
        let place = self.transports.len();
        let mut transport = make(ClientId::FIRST_TRANSPORT + u32::try_from(place).expect("few"));
        transport.begin(&Sockets { poller: &self.poller, first: first_of(place) })?;
        self.transports.push(transport);
        Ok(())
    }

    /// A socket of a transport is ready.
    pub(super) fn on_edge(&mut self, ready: Ready) {
        let number = ready.number - FIRST_TRANSPORT;
        let place = usize::try_from(number / SOCKETS_MAX).expect("it was an index");
        let number = u32::try_from(number % SOCKETS_MAX).expect("it is small");
        let sockets = Sockets { poller: &self.poller, first: first_of(place) };
        self.transports[place].on_ready(number, ready, &mut self.dispatcher, &sockets);
    }

    /// Edges take what their clients ask. True if there was something.
    pub(super) fn edges_take(&mut self) -> bool {
        let mut any = false;
        for (place, transport) in self.transports.iter_mut().enumerate() {
            let sockets = Sockets { poller: &self.poller, first: first_of(place) };
            any |= transport.take(&mut self.dispatcher, &sockets);
        }
        any
    }

    /// Edges tell their clients what has ended, and the log what there is to say.
    pub(super) fn edges_tell(&mut self) {
        for place in 0..self.transports.len() {
            self.transports[place].tell(&mut self.dispatcher);
            while let Some(sentence) = self.transports[place].poll_sentence() {
                self.say(&sentence);
            }
        }
    }

    /// The end of a job of a transport, given back if it is none of a transport.
    pub(super) fn edge_done(&mut self, done: Done) -> Option<Done> {
        let Some(place) = done.job.owner.connection.checked_sub(ClientId::FIRST_TRANSPORT) else {
            return Some(done);
        };
        let place = usize::try_from(place).expect("it was an index");
        self.transports[place].on_done(done, &mut self.dispatcher);
        None
    }

    /// Some transport wants to be asked again at once, or has something to do after all.
    pub(super) fn edges_are_eager(&mut self) -> bool {
        let now = self.host.clock().now();
        let mut any = self.transports.iter().any(|transport| transport.is_eager(now));
        if !any {
            for transport in &mut self.transports {
                any |= transport.before_sleep(&mut self.dispatcher);
            }
        }
        any
    }

    /// Edges look for what their clients may not do for ever, and stop if it is time. True if all have.
    pub(super) fn edges_watch(&mut self) {
        for (place, transport) in self.transports.iter_mut().enumerate() {
            let sockets = Sockets { poller: &self.poller, first: first_of(place) };
            transport.watch(&self.limits, &mut self.dispatcher, &sockets);
        }
    }

    /// Edges stop. True once all have.
    pub(super) fn edges_stop(&mut self) -> bool {
        let Some(until) = self.stopping else { return false };
        let is_late = until <= self.host.clock().now();
        let mut all = true;
        for (place, transport) in self.transports.iter_mut().enumerate() {
            let sockets = Sockets { poller: &self.poller, first: first_of(place) };
            all &= transport.stop(is_late, &mut self.dispatcher, &sockets);
        }
        all
    }
}

fn first_of(place: usize) -> u64 {
    FIRST_TRANSPORT + SOCKETS_MAX * u64::try_from(place).expect("few")
}
