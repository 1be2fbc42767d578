//! Somebody who looks on while a server serves: told of every job that ends, and shown the host now and then.
//!
//! Without one, nothing here costs anything. Deliberately not here: what is made of it.

use super::server::{ServedHost, Server};
use crate::job::Done;
use crate::served_target::ServedTarget;
use crate::stats::Stats;
use ocssd_base::Nanos;
use ocssd_engine::Clock;
use ocssd_lightnvm::Device;
use ocssd_lightnvm::interface::AnyTarget;

/// Who looks on.
pub trait Observer<D: Device, T: ServedTarget + ?Sized = AnyTarget> {
    /// A job has ended. A large request of a client may be several.
    fn on_done(&mut self, done: &Done);

    /// Time between two looks, above zero.
    fn every(&self) -> Nanos;

    /// How things stand, what the server counted, and how many streams of clients are open.
    fn look(&mut self, host: &ServedHost<D, T>, stats: &Stats, streams: usize);
}

/// An observer and when it looked.
pub(super) struct Looking<D: Device, T: ServedTarget + ?Sized> {
    observer: Box<dyn Observer<D, T>>,
    looked: Nanos,
}

impl<D: Device, T: ServedTarget + ?Sized> Server<D, T> {
    /// Shows this one what goes on; one at most.
    pub fn show_to(&mut self, observer: Box<dyn Observer<D, T>>) {
        self.looking = Some(Looking { observer, looked: self.host.clock().now() });
    }

    /// A job has ended.
    pub(super) fn tell_observer(&mut self, done: &Done) {
        if let Some(looking) = &mut self.looking {
            looking.observer.on_done(done);
        }
    }

    /// How long until the next look; `None` if nobody looks.
    pub(super) fn until_look(&self, now: Nanos) -> Option<Nanos> {
        let looking = self.looking.as_ref()?;
        Some((looking.looked + looking.observer.every()).saturating_since(now))
    }

    /// Shows how things stand, if it is time.
    pub(super) fn look(&mut self) {
        let now = self.host.clock().now();
        if self.until_look(now) == Some(Nanos::ZERO) {
            self.look_now();
        }
    }

    /// Shows how things stand, for a report that somebody waits for.
    pub(super) fn look_now(&mut self) {
        if let Some(looking) = &mut self.looking {
            looking.looked = self.host.clock().now();
            looking.observer.look(&self.host, &self.dispatcher.stats, self.open);
        }
    }
}
