//! NVMe over TCP: a target's side of one connection, without sockets.
//!
//! A connection is a queue: [`Session`] is its state machine. What the queues of a host have in common is an association, kept
//! by the [subsystem](crate::nvme_subsystem) on the dispatcher, which also knows what commands mean. Source: NVMe/TCP
//! transport 1.0, NVMe over Fabrics 1.1. Deliberately not here: TLS (NVMe/TCP uses keys agreed on before, which rustls does not
//! have), authentication (DH-HMAC-CHAP), reservations, asymmetric access.
//!
//! ```text
//!   bytes ─► receive (packet) ─► judge ─► commands of the subsystem ─► dispatcher (jobs)
//!   send_queue ◄─ wire ◄──────── respond ◄────────┴─► admin / fabrics
//! ```

mod admin;
mod copies;
mod fabrics;
pub mod host;
mod judge;
mod packet;
mod queue;
mod receive;
mod respond;
mod session;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod wire;

pub use copies::Copies;
pub use session::Session;
