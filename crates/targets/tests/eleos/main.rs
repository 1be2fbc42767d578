//! Pages on a small drive: how much is taken at a time, and what is told of pages that are lost. Deliberately not here: power cuts
//! (`ocssd-sim`).

mod counters;
mod lost;
mod rig;
mod taken;
