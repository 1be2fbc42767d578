//! A socket that is listened on, and the connections that come to it.

use super::endpoint::Endpoint;
use rustix::fs::Mode;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// A connection as it came.
#[derive(Debug)]
pub enum Socket {
    /// Through the file system.
    Unix(UnixStream),
    /// Through the network.
    Tcp(TcpStream),
}

impl Socket {
    /// The stream of one that came through the file system.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for one that came through the network.
    pub fn into_unix(self) -> io::Result<UnixStream> {
        match self {
            Self::Unix(stream) => Ok(stream),
            Self::Tcp(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Who is at the other end; `None` through the file system.
    #[must_use]
    pub fn peer(&self) -> Option<IpAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(stream) => stream.peer_addr().ok().map(|address| address.ip()),
        }
    }

    /// The address of this machine that it came to; `None` through the file system.
    #[must_use]
    pub fn local(&self) -> Option<SocketAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(stream) => stream.local_addr().ok(),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// A socket that is listened on.
#[derive(Debug)]
pub enum Listener {
    /// In the file system; its name goes with it.
    Unix {
        /// The socket.
        socket: UnixListener,
        /// Its name.
        endpoint: Endpoint,
    },
    /// On the network.
    Tcp {
        /// The socket.
        socket: TcpListener,
        /// Its address, with the port that was found if none was named.
        endpoint: Endpoint,
    },
}

/// A connection that says nothing for so long is asked whether it is still there (chosen: a dead client holds no memory
/// but its own, so minutes are soon enough).
const KEEP_ALIVE: Duration = Duration::from_secs(120);

impl Listener {
    /// Listens. A socket in the file system can be opened by its owner only (mode 0600); one that nobody listens on any
    /// more is replaced, and nothing else is.
    ///
    /// # Errors
    /// As the system says, or if the name is taken.
    pub fn bind(endpoint: &Endpoint) -> io::Result<Self> {
        match endpoint {
            Endpoint::Unix(path) => {
                remove_dead(path)?;
                // From its first moment: a mode that is set afterwards leaves a gap.
                let before = rustix::process::umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
                let socket = UnixListener::bind(path);
                rustix::process::umask(before);
                let socket = socket?;
                socket.set_nonblocking(true)?;
                Ok(Self::Unix { socket, endpoint: endpoint.clone() })
            }
            Endpoint::Tcp(address) => {
                let socket = TcpListener::bind(address)?;
                socket.set_nonblocking(true)?;
                let endpoint = Endpoint::Tcp(socket.local_addr()?);
                Ok(Self::Tcp { socket, endpoint })
            }
        }
    }

    /// Where it listens.
    #[must_use]
    pub const fn endpoint(&self) -> &Endpoint {
        match self {
            Self::Unix { endpoint, .. } | Self::Tcp { endpoint, .. } => endpoint,
        }
    }

    /// The next connection; never waits.
    ///
    /// # Errors
    /// As the system says; [`io::ErrorKind::WouldBlock`] if there is none.
    pub fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Unix { socket, .. } => {
                let (stream, _) = socket.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Socket::Unix(stream))
            }
            Self::Tcp { socket, .. } => {
                let (stream, _) = socket.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                rustix::net::sockopt::set_socket_keepalive(&stream, true)?;
                rustix::net::sockopt::set_tcp_keepidle(&stream, KEEP_ALIVE)?;
                Ok(Socket::Tcp(stream))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix { socket, .. } => socket.as_fd(),
            Self::Tcp { socket, .. } => socket.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix { endpoint: Endpoint::Unix(path), .. } = self {
            // Whoever removed it already wanted the same.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes a socket that nobody listens on: what a killed server left.
fn remove_dead(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !found.file_type().is_socket() {
        let sentence = format!("{} exists and is no socket; name another path", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, sentence));
    }
    match UnixStream::connect(path) {
        Ok(_) => {
            let sentence =
                format!("another server listens on {}; stop it, or name another path", path.display());
            Err(io::Error::new(io::ErrorKind::AddrInUse, sentence))
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        Err(error) => Err(error),
    }
}
