//! Plain parts that every layer uses: time as integer nanoseconds, seeded randomness, an ordered event queue,
//! bounded queues and slabs, and the trace hash that proves two runs equal.
//!
//! Deliberately not here: any clock, thread, file or socket; anything that knows what a chunk is.

mod divisor;
mod event_queue;
mod prng;
mod problem;
mod ring;
mod slab;
mod time;
mod trace_hash;
mod usize_of;

pub use divisor::Divisor;
pub use event_queue::EventQueue;
pub use prng::Prng;
pub use problem::{Problem, Problems};
pub use ring::Ring;
pub use slab::{Slab, SlabKey};
pub use time::{Nanos, TransferTimes};
pub use trace_hash::TraceHash;
pub use usize_of::usize_of;
