//! A profile in pictures: which there are, and the page they stand on.
//!
//! `page` puts everything together; `curves` has what every profile has, `load` both loops, `over_time` random writes, `grid`
//! size against depth, `inside` what a virtual drive shows of itself, `writers` throughput against writers and write buffer.
//! Deliberately not here: drawing (`report`).

mod curves;
mod grid;
mod inside;
mod load;
mod over_time;
mod page;
mod writers;

pub use page::{report, summed};
