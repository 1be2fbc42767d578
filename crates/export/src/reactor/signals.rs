//! Signals, as bytes on sockets.

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// What a server is told by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Stop (SIGINT, SIGTERM).
    Stop,
    /// Say what was counted (SIGUSR1).
    Report,
}

/// The signals a server listens to. From when it is made they do not end the process any more.
#[derive(Debug)]
pub struct Signals {
    stop: UnixStream,
    report: UnixStream,
    /// The other end of `stop`, where this program has it.
    stopper: Option<UnixStream>,
}

impl Signals {
    /// Listens to SIGINT, SIGTERM and SIGUSR1.
    ///
    /// # Errors
    /// As the system says.
    pub fn new() -> io::Result<Self> {
        let (stop, stop_end) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGINT, stop_end.try_clone()?)?;
        signal_hook::low_level::pipe::register(SIGTERM, stop_end.try_clone()?)?;
        let (report, report_end) = UnixStream::pair()?;
        signal_hook::low_level::pipe::register(SIGUSR1, report_end)?;
        Ok(Self { stopper: Some(stop_end), ..Self::of(stop, report)? })
    }

    /// A socket that a byte can be written to with the meaning of [`Signal::Stop`]: for parts of a server that end it. `None` if
    /// others have that end.
    ///
    /// # Errors
    /// As the system says.
    pub fn stopper(&self) -> io::Result<Option<UnixStream>> {
        self.stopper.as_ref().map(UnixStream::try_clone).transpose()
    }

    /// Listens to these sockets: a byte is a signal. For servers in a thread of a larger program.
    ///
    /// # Errors
    /// As the system says.
    pub fn of(stop: UnixStream, report: UnixStream) -> io::Result<Self> {
        stop.set_nonblocking(true)?;
        report.set_nonblocking(true)?;
        Ok(Self { stop, report, stopper: None })
    }

    /// The socket of a signal.
    pub(crate) fn socket(&self, signal: Signal) -> BorrowedFd<'_> {
        match signal {
            Signal::Stop => self.stop.as_fd(),
            Signal::Report => self.report.as_fd(),
        }
    }

    /// Whether the signal came since this was asked last.
    pub(crate) fn take(&mut self, signal: Signal) -> bool {
        let socket = match signal {
            Signal::Stop => &mut self.stop,
            Signal::Report => &mut self.report,
        };
        let mut bytes = [0; 64];
        matches!(socket.read(&mut bytes), Ok(1..))
    }
}
