//! Somebody who looks on while a server serves: told of every job that ends, and shown the host now and then.
//!
//! Without one, nothing here costs anything. Deliberately not here: what is made of it.

use super::server::Server;
use crate::job::Done;
use ocssd_base::Nanos;
use ocssd_engine::{Clock, Host, WallClock};
use ocssd_lightnvm::Device;

/// Who looks on.
pub trait Onlooker<D: Device> {
    /// A job has ended. A large request of a client may be several.
    fn on_done(&mut self, done: &Done);

    /// Time between two looks, above zero.
    fn every(&self) -> Nanos;

    /// How things stand, with so many streams of clients open.
    fn look(&mut self, host: &Host<D, WallClock>, streams: usize);
}

/// An onlooker and when it looked.
pub(super) struct Looking<D: Device> {
    onlooker: Box<dyn Onlooker<D>>,
    looked: Nanos,
}

impl<D: Device> Server<D> {
    /// Shows this one what goes on; one at most.
    pub fn show_to(&mut self, onlooker: Box<dyn Onlooker<D>>) {
        self.looking = Some(Looking { onlooker, looked: self.host.clock().now() });
    }

    /// A job has ended.
    pub(super) fn tell_onlooker(&mut self, done: &Done) {
        if let Some(looking) = &mut self.looking {
            looking.onlooker.on_done(done);
        }
    }

    /// How long until the next look; `None` if nobody looks.
    pub(super) fn until_look(&self, now: Nanos) -> Option<Nanos> {
        let looking = self.looking.as_ref()?;
        Some((looking.looked + looking.onlooker.every()).saturating_since(now))
    }

    /// Shows how things stand, if it is time.
    pub(super) fn look(&mut self) {
        let now = self.host.clock().now();
        if self.until_look(now) != Some(Nanos::ZERO) {
            return;
        }
        if let Some(looking) = &mut self.looking {
            looking.looked = now;
            looking.onlooker.look(&self.host, self.open);
        }
    }
}
