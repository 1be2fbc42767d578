//! Host interfaces beyond blocks: what a host asks of a zoned, log-structured, table or key-value target.
//!
//! Each module has the requests, replies and refusals of one interface, and says what they promise: durability,
//! atomicity, order, errors. What all of them need is decided once, in `content` and `list`:
//!
//! - **Small requests.** A request is `Copy` and at most [`REQUEST_BYTES_MAX`] bytes; everything long lies in `Buffers`.
//! - **Payload** is a [`Content`]: nothing, one [`Piece`] of a buffer, a gather [`List`] of pieces, or a stage.
//! - **A stage** collects content that is too long for one request: a flush that arrives in capsules, a value of 256 MiB.
//!   Staged content is volatile and invisible until one request names it, which then applies to all of it at once.
//! - **Order.** Requests take effect in the order in which the target took them; replies may come in any order. A read
//!   that was taken after a change shows that change, answered or not.
//! - **Durability.** [`Durability::AtReply`] survives a power cut once answered; [`Durability::AtFlush`] survives once a
//!   flush is answered that was taken after the answer. What an unanswered request changed is there as a whole or not at
//!   all, but for a zoned write, which may end after any block. What a target shows after a power cut survives the next.
//! - **Errors.** A refused request changes nothing. Its reply has a status of the NVMe specifications, and where one
//!   status stands for several reasons, a refusal that names the reason.
//!
//! Deliberately not here: blocks ([`crate::block`]), the wire (`nvme`), and models of the interfaces (`sim`).

mod any;
mod content;
pub mod key_value;
mod list;
pub mod log_structured;
pub mod table;
pub mod zoned;

pub use any::{AnyReply, AnyRequest, AnyTarget, Interface, Member, OfInterface};
pub use content::{Content, Durability, PIECES_MAX, Piece, StageId, StageLimits, StageOp, StageRefusal};
pub use list::{Entry, List};

/// Most bytes a request takes: a cache line, so that a queue of requests is copied cheaply (chosen).
pub const REQUEST_BYTES_MAX: usize = 64;

/// A request of any interface is one of them with a word that says which.
const _: () = assert!(size_of::<AnyRequest>() <= REQUEST_BYTES_MAX + 8);
const _: () = assert!(size_of::<zoned::ZonedRequest>() <= REQUEST_BYTES_MAX);
const _: () = assert!(size_of::<log_structured::LogRequest>() <= REQUEST_BYTES_MAX);
const _: () = assert!(size_of::<table::TableRequest>() <= REQUEST_BYTES_MAX);
const _: () = assert!(size_of::<key_value::KvRequest>() <= REQUEST_BYTES_MAX);
