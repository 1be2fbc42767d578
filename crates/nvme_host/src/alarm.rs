//! Waiting for a served drive: until a time, or until the server says something.
//!
//! Whoever waits needs no access to the drive, which others may ask meanwhile.

use crate::error::HostError;
use crate::link::Link;
use ocssd_engine::EarlyWake;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The sockets of a served drive, to wait for.
#[derive(Debug)]
pub struct Alarm {
    io: TcpStream,
    admin: TcpStream,
    /// Something waits until the I/O socket takes it.
    wants_room: AtomicBool,
    /// An answer of the admin queue is waited for.
    listens: AtomicBool,
}

impl Alarm {
    /// Of these connections.
    ///
    /// # Errors
    /// If there are no descriptors left.
    pub(crate) fn of(io: &Link, admin: &Link) -> Result<Self, HostError> {
        Ok(Self {
            io: io.stream()?,
            admin: admin.stream()?,
            wants_room: AtomicBool::new(false),
            listens: AtomicBool::new(false),
        })
    }

    pub(crate) fn set_wants_room(&self, wants: bool) {
        self.wants_room.store(wants, Ordering::Relaxed);
    }

    /// Something waits until the I/O socket takes it.
    pub fn wants_room(&self) -> bool {
        self.wants_room.load(Ordering::Relaxed)
    }

    pub(crate) fn set_listens(&self, listens: bool) {
        self.listens.store(listens, Ordering::Relaxed);
    }
}

impl EarlyWake for Alarm {
    fn wait(&self, at_most: Duration) {
        let room = if self.wants_room.load(Ordering::Relaxed) { PollFlags::OUT } else { PollFlags::empty() };
        let limit = Timespec::try_from(at_most).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 });
        let mut sockets =
            [PollFd::new(&self.io, PollFlags::IN | room), PollFd::new(&self.admin, PollFlags::IN)];
        // The server may say things there that nobody waits for.
        let count = if self.listens.load(Ordering::Relaxed) { 2 } else { 1 };
        // A signal ends it too: whoever waits looks again.
        let _ = poll(&mut sockets[..count], Some(&limit));
    }
}
