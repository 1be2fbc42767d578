//! The seam to clients that are no streams of bytes: rings in shared memory bring their own transport.
//!
//! The server gives such a transport its turns and the ends of its jobs, and waits for its sockets beside its own. Deliberately not
//! here: what it is.

use super::poller::{Interest, Poller, Ready};
use super::server::Limits;
use crate::dispatcher::Dispatcher;
use crate::job::Done;
use ocssd_base::Nanos;
use std::io;
use std::os::fd::AsFd;

/// Sockets a transport may have.
pub(super) const SOCKETS_MAX: u64 = 1 << 16;

/// The waiting for a transport's sockets, which it numbers as it likes, below 65536.
pub struct Sockets<'a> {
    pub(super) poller: &'a Poller,
    /// The number its first has for the poller.
    pub(super) first: u64,
}

impl Sockets<'_> {
    /// Is told whenever something comes, and not again until more does: what came need not be taken out.
    ///
    /// # Errors
    /// As the system says.
    pub fn add_eager(&self, socket: impl AsFd, number: u32, interest: Interest) -> io::Result<()> {
        self.poller.add_eager(socket, self.number(number), interest)
    }

    /// Is told as long as something is there.
    ///
    /// # Errors
    /// As the system says.
    pub fn add(&self, socket: impl AsFd, number: u32, interest: Interest) -> io::Result<()> {
        self.poller.add(socket, self.number(number), interest)
    }

    /// Is told no longer.
    ///
    /// # Errors
    /// As the system says.
    pub fn remove(&self, socket: impl AsFd) -> io::Result<()> {
        self.poller.remove(socket)
    }

    fn number(&self, number: u32) -> u64 {
        assert!(u64::from(number) < SOCKETS_MAX, "a transport has a socket {number}");
        self.first + u64::from(number)
    }
}

/// Clients that are no streams of bytes.
pub trait Transport {
    /// Begins to wait for its sockets.
    ///
    /// # Errors
    /// As the system says.
    fn begin(&mut self, sockets: &Sockets<'_>) -> io::Result<()>;

    /// One of its sockets is ready.
    fn on_ready(&mut self, number: u32, ready: Ready, dispatcher: &mut Dispatcher, sockets: &Sockets<'_>);

    /// Takes what its clients ask. True if there was something.
    fn take(&mut self, dispatcher: &mut Dispatcher, sockets: &Sockets<'_>) -> bool;

    /// A job of one of its clients has ended, perhaps of one that is gone.
    fn on_done(&mut self, done: Done, dispatcher: &mut Dispatcher);

    /// Tells its clients what has ended.
    fn tell(&mut self, dispatcher: &mut Dispatcher);

    /// The server is about to sleep unless this is true: clients must be able to wake it from now on.
    fn before_sleep(&mut self, dispatcher: &mut Dispatcher) -> bool;

    /// It wants to be asked again at once.
    fn is_eager(&self, now: Nanos) -> bool;

    /// Some client is there, or may be soon: it is to be watched.
    fn has_client(&self) -> bool;

    /// Some client waits for memory or a place for a job, which others may hold.
    fn waits_for_room(&self) -> bool;

    /// Looks for what clients may not do for ever; now and then.
    fn watch(&mut self, limits: &Limits, dispatcher: &mut Dispatcher, sockets: &Sockets<'_>);

    /// The server stops: nothing is begun any more. True once nothing is open and every client has gone.
    fn stop(&mut self, is_late: bool, dispatcher: &mut Dispatcher, sockets: &Sockets<'_>) -> bool;

    /// What is to be said, in whole sentences and in the order it happened: which client was dropped and why, what ended.
    fn poll_sentence(&mut self) -> Option<String>;
}
