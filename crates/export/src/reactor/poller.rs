//! epoll: which sockets are ready, and the wait for them.

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// What is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Bytes to receive, or a connection to accept.
    pub receive: bool,
    /// Room to send.
    pub send: bool,
}

/// A socket that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Its number, as it was added.
    pub number: u64,
    /// Something can be received, if only the end.
    pub receive: bool,
    /// Something can be sent.
    pub send: bool,
    /// The other end is gone, both ways.
    pub gone: bool,
}

/// The sockets waited for.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    ready: Vec<Ready>,
}

/// Most sockets told about at once (chosen); the others come next time.
const READY_MAX: usize = 256;

impl Poller {
    /// None yet.
    ///
    /// # Errors
    /// As the system says.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(READY_MAX), ready: Vec::with_capacity(READY_MAX) })
    }

    /// Waits for a socket from now on.
    ///
    /// # Errors
    /// As the system says.
    pub fn add(&self, socket: impl AsFd, number: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(number), flags(interest))?)
    }

    /// Waits for a socket from now on, and is told when more comes, not as long as something is there.
    ///
    /// # Errors
    /// As the system says.
    pub fn add_eager(&self, socket: impl AsFd, number: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(number), flags(interest) | EventFlags::ET)?)
    }

    /// Waits for something else of a socket.
    ///
    /// # Errors
    /// As the system says.
    pub fn change(&self, socket: impl AsFd, number: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, socket, EventData::new_u64(number), flags(interest))?)
    }

    /// Waits for a socket no longer.
    ///
    /// # Errors
    /// As the system says.
    pub fn remove(&self, socket: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, socket)?)
    }

    /// Waits until a socket is ready or the time is over, to the nanosecond; for ever without one. A signal ends the wait too.
    ///
    /// # Errors
    /// As the system says.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.events.clear();
        self.ready.clear();
        let timeout = timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        });
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        self.ready.extend(self.events.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            let gone = flags.intersects(EventFlags::ERR | EventFlags::HUP);
            Ready {
                number: data.u64(),
                receive: flags.contains(EventFlags::IN),
                send: flags.contains(EventFlags::OUT),
                gone,
            }
        }));
        Ok(())
    }

    /// Who is ready, by place; `None` behind the last.
    #[must_use]
    pub fn ready(&self, place: usize) -> Option<Ready> {
        self.ready.get(place).copied()
    }
}

fn flags(interest: Interest) -> EventFlags {
    let mut flags = EventFlags::empty();
    flags.set(EventFlags::IN, interest.receive);
    flags.set(EventFlags::OUT, interest.send);
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    #[test]
    fn a_wait_shorter_than_a_millisecond_is_not_made_one() {
        let mut poller = Poller::new().unwrap();
        // The shortest of many: a busy machine makes some longer.
        let shortest = (0..200).map(|_| {
            let begun = Instant::now();
            poller.wait(Some(Duration::from_micros(50))).unwrap();
            begun.elapsed()
        });
        let shortest = shortest.min().unwrap();
        assert!(
            shortest >= Duration::from_micros(50) && shortest < Duration::from_micros(900),
            "{shortest:?}"
        );
    }

    #[test]
    fn a_socket_is_told_about_when_what_is_waited_for_is_there() {
        let (one, mut other) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add(&one, 7, Interest { receive: true, send: false }).unwrap();
        poller.wait(Some(Duration::ZERO)).unwrap();
        assert_eq!(poller.ready(0), None);
        other.write_all(b"x").unwrap();
        poller.wait(None).unwrap();
        assert_eq!(poller.ready(0), Some(Ready { number: 7, receive: true, send: false, gone: false }));
        poller.change(&one, 7, Interest { receive: false, send: true }).unwrap();
        poller.wait(None).unwrap();
        assert_eq!(poller.ready(0), Some(Ready { number: 7, receive: false, send: true, gone: false }));
        poller.remove(&one).unwrap();
        poller.wait(Some(Duration::ZERO)).unwrap();
        assert_eq!(poller.ready(0), None);
    }

    #[test]
    fn an_eager_socket_is_told_about_once_for_what_comes_and_need_not_be_read() {
        let (one, mut other) = UnixStream::pair().unwrap();
        let mut poller = Poller::new().unwrap();
        poller.add_eager(&one, 3, Interest { receive: true, send: false }).unwrap();
        for _ in 0..3 {
            other.write_all(b"x").unwrap();
            poller.wait(None).unwrap();
            assert!(poller.ready(0).is_some_and(|ready| ready.number == 3 && ready.receive));
            poller.wait(Some(Duration::ZERO)).unwrap();
            assert_eq!(poller.ready(0), None);
        }
    }
}
