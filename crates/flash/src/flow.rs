//! Commands on their way: over the host link, into the write-back cache, through the media, and back.
//!
//! ```text
//!   write   [cache room] ─► link in ─► (cached: told) ─► media ─► (not cached, FUA: told)
//!   read    media ─► link out ─► told
//!   reset   media ─► told          flush   everything before it on media ─► told
//! ```
//! Owned by the drive. Deliberately not here: content and rules; what a command does was settled in `exec`.

mod command;
mod due;
mod queues;

pub(crate) use command::{InFlight, Kind};
pub(crate) use queues::Flow;
