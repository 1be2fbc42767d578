//! The transport: sockets, TLS, signals and time, in one thread that owns the host.
//!
//! [`Server`] accepts connections on its [`Endpoint`]s, moves bytes between sockets and [`Protocol`](crate::Protocol)s, and
//! gives the host its turns. It waits in one place, for sockets and for the drive's next deadline together. It names no
//! protocol: what a listener speaks is given to it.

mod connection;
mod endpoint;
mod failure;
mod listener;
mod log_limit;
mod observer;
mod pace;
mod poller;
mod server;
mod signals;
mod slots;
mod stream;
mod transport;
mod transports;
mod turn;
mod wait;
mod watch;

pub use endpoint::{AddressRange, Endpoint};
pub use failure::{FailureOf, Told};
pub use listener::{Listener, Socket};
pub(crate) use log_limit::LogLimit;
pub use observer::Observer;
pub(crate) use poller::Poller;
pub use poller::{Interest, Ready};
pub use rustls::ServerConfig as TlsConfig;
pub(crate) use server::wait_precisely;
pub use server::{Arrival, Limits, MakeProtocol, ServedHost, Server, Stopped};
pub use signals::{Signal, Signals};
pub use stream::load_tls;
pub use transport::{Sockets, Transport};
pub use transports::MakeTransport;
