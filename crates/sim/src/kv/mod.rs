//! The key-value interface, naively: keys and values as an ordered map, and what of it survives a power cut.

mod canary;
mod drawn;
mod for_wear;
mod model;
#[cfg(test)]
mod tests;

pub use canary::canaries;
pub use drawn::{DrawnKv, KvInterface};
pub use model::{KvModel, Pairs};
