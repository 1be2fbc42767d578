//! pblk on a virtual drive: what it promises, on tiny drives of many shapes, with faults, and after power cuts.

mod basic;
mod crash;
mod oracle;
mod power;
mod shapes;
mod world;
