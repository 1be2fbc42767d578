//! Blocks of 512 bytes above sectors of 4 KiB: on a disk that does everything in any order, and on pblk when the power goes.

mod disk;
mod faults;
mod model;
#[path = "../pblk/oracle.rs"]
mod oracle;
mod power;
mod random;
