//! The key-value interface, naively: keys and values as an ordered map, and what of it survives a power cut.

mod believed;
mod canary;
mod drawn;
mod for_wear;
mod losses;
mod model;
#[cfg(test)]
mod tests;

pub use canary::canaries;
pub use drawn::{DrawnKv, KvInterface};
pub use losses::LossContract;
pub use model::{KvModel, Pairs};
