//! pblk on a virtual drive: what it promises, on tiny drives of many shapes, with faults, and after power cuts.

mod basic;
mod bounded;
mod checkpoints;
mod copies;
mod crash;
mod create;
mod defects;
mod faults;
mod full_ring;
mod knobs;
mod media;
mod mix;
mod oracle;
mod pair;
mod power;
mod remount;
mod shapes;
mod twins;
mod victims;
mod wear;
mod world;
