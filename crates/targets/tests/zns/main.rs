//! `zns` on a drive: bandwidth, random write areas and extensions of zones, what is refused and changes nothing, zones without a
//! chunk left.

mod area;
mod bandwidth;
mod counters;
mod extension;
mod given_up;
mod refused;
mod rig;
mod wear;
