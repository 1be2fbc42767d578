//! NBD, the network block device protocol: a server's side of one connection, without sockets.
//!
//! [`Session`] is the whole of it: a [`Handshake`], and then a [`Transmission`]. Fixed newstyle only, as every client of
//! the last ten years speaks. Source: doc/proto.md of the NBD project. Deliberately not here: extended headers (64-bit
//! lengths), resizing, oldstyle negotiation.

mod answer;
mod handshake;
mod intake;
mod open_request;
mod plan;
mod session;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod transmission;
pub mod wire;

pub use handshake::{Agreed, Handshake, TlsPolicy};
pub use session::Session;
pub use transmission::Transmission;
