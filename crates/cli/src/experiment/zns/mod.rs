//! Zones on an open-channel drive: what finishing them costs, what their width does, and what a log-structured writer gains.
//!
//! The drive of `finish` and `width` is like a ZN540, whose measurements are public (the artefact of `ConfZNS++`, SYSTOR 2024);
//! `rig` is that drive, its zones and streams of requests. `vs_pblk` has the writer of `segments` on zones and on block devices.

pub mod finish;
mod rig;
mod segments;
pub mod vs_pblk;
pub mod width;
