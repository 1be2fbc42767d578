//! `zns` on a drive: what is refused and changes nothing, and zones that no chunk is left for.

mod given_up;
mod refused;
mod rig;
