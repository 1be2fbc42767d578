//! Keys and values on a small drive: what a drive seldom does, one thing at a time. Deliberately not here: power cuts in general
//! (`ocssd-sim`).

mod batches;
mod beside_long;
mod counters;
mod long_values;
mod lost_pages;
mod lost_values;
mod many;
mod mounts;
mod passing;
mod read_again;
mod reads_a_get;
mod refused;
mod rig;
mod room;
mod skewed;
mod torn_copies;
mod wear;
