//! `zns` on a drive: extensions of zones, what is refused and changes nothing, and zones that no chunk is left for.

mod extension;
mod given_up;
mod refused;
mod rig;
