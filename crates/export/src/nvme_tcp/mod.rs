//! NVMe over TCP: a target's side of one connection, without sockets.
//!
//! A connection is a queue: [`Session`] is its state machine. What the queues of a host have in common is an
//! [`Association`], kept by the [`Subsystem`] on the dispatcher. Source: NVMe/TCP transport 1.0, NVMe over Fabrics 1.1, NVMe
//! base 2.0. A namespace has blocks, zones (`zoned`), keys and values (`key_value`) or pages
//! (`pages`), each by its own command set.
//! Deliberately not here: TLS (NVMe/TCP uses keys agreed on before, which rustls does not have), authentication
//! (DH-HMAC-CHAP), reservations, asymmetric access.
//!
//! ```text
//!   bytes ─► receive (packet) ─► queue: commands ─► execute ─► dispatcher (jobs) / admin / fabrics
//!   send_queue ◄─ wire ◄──────────── answer ◄───────────┘
//! ```

mod admin;
mod association;
mod command;
mod copies;
mod execute;
mod fabrics;
mod features;
pub mod host;
mod identify;
mod key_value;
mod log_page;
mod packet;
mod pages;
mod plan;
mod queue;
mod raw;
mod receive;
mod respond;
mod session;
mod staged;
mod subsystem;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod wire;
mod zoned;

pub use association::{Association, Purpose};
pub use copies::Copies;
pub use session::Session;
pub use subsystem::{Subsystem, SubsystemConfig};
