//! The table interface, naively: tables, logs and edits as ordered maps, and what of them survives a power cut.

mod canary;
mod drawn;
mod image;
mod model;
#[cfg(test)]
mod tests;

pub use canary::canaries;
pub use drawn::{DrawnTable, TableInterface};
pub use image::{Edit, ObservedTable, Shelf};
pub use model::TableModel;
