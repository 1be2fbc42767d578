//! Redis' protocol (RESP2 and RESP3) for key-value targets: strings, counters, expiry, scans and transactions, each command durable
//! when it is answered.
//!
//! ```text
//!   bytes ─► request ─► session ─► database ─► store requests ─► lane ─► jobs
//!   bytes ◄─ reply  ◄── session ◄─ database ◄─ outcomes      ◄── lane ◄─ ends of jobs
//! ```
//!
//! A `session` is one connection; it parses (`request`, `inline`), answers what is about the connection alone, and gives the
//! rest to the `database`, which all connections share. A command (`table`, `command`) is a function on a `view` of its keys:
//! the database reads them, runs it, and stores what changed as one batch, under `locks`. Values carry their end with them
//! (`stored`). Memory for requests and answers is bounded (`budget`). The protocol is described at
//! redis.io/docs/reference/protocol-spec; docs/resp.md lists the commands. Deliberately not here: types other than strings,
//! scripts, publishing, replication, users.

mod budget;
mod command;
mod counters;
mod database;
mod expiry;
mod glob;
mod inline;
mod keys;
mod lane;
mod locks;
mod number;
mod packing;
mod patch;
mod reply;
mod request;
mod session;
mod store;
mod stored;
mod strings;
mod table;
pub mod testing;
#[cfg(test)]
mod tests;
mod view;

pub use database::{Counts, Database, Settings};
pub use lane::{Lane, Setup};
pub use session::{Session, SharedDatabase};
pub use store::{Outcome, StoreLimits, StoreOp, StoreRequest, Token};
