//! The rules: one file each.

mod case;
mod completeness;
mod direct;
mod environment;
mod errors;
mod footprint;
mod generator;
mod link;
mod little;
mod mapped;
mod media_floor;
mod mixture;
mod monotone;
mod replicate;
mod samples;
mod schedule;
mod steady;
mod table;
mod units;

pub(super) use case::Case;
pub use table::{RULES, Rule, find_rule};
