//! The log-structured interface, naively: pages and sessions as ordered maps, and what of them survives a power cut.

mod canary;
mod drawn;
mod image;
mod model;
#[cfg(test)]
mod tests;

pub use canary::canaries;
pub use drawn::{DrawnLog, LogInterface};
pub use image::{LogChange, LogImage};
pub use model::LogModel;
