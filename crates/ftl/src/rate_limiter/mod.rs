//! How much users may write while space has to be reclaimed: two machines behind one small interface.
//!
//! - [`PblkLimiter`]: pblk's of Linux 4.12 to 4.16. It fixes the composition of the write buffer by the number of free
//!   chunks, so that users advance only as GC pushes their old entries out.
//! - [`ContinuousLimiter`]: gives users credit for what GC has done, at the rate that keeps free lines at a target.
//!
//! A target owns a [`RateLimiter`], tells it what was inserted, evicted and reclaimed, and asks before it inserts.
//! Deliberately not here: queues of those who wait, choosing victims (`victim`), clocks (`now` is an argument).

mod continuous;
mod limiter;
mod pblk;

pub use continuous::{ContinuousGauges, ContinuousLimiter, ContinuousLimits};
pub use limiter::{Admission, RateLimiter, Situation};
pub use pblk::{PblkGauges, PblkLimiter, PblkLimits, PblkState};

#[cfg(test)]
mod closed_loop;
