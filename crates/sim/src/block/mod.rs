//! The contract of block targets: what every block may hold, and requests of every kind that touch them.

mod atomic;
mod contract;
mod history;
mod mix;
mod oracle;
mod several;
mod stamp;

pub use contract::BlockContract;
pub use mix::Mix;
pub use oracle::{Moment, Oracle};
