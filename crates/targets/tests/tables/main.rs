//! Tables and logs on a small drive: what an instance comes to in the long run, one thing at a time. Deliberately not here: power
//! cuts in general (`ocssd-sim`).

mod memory;
mod mount;
mod programs;
mod reads;
mod rig;
mod wear;
