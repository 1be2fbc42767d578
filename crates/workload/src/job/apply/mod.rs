//! The code behind each implemented option: reads the value and sets the field. One function per row of the table.

pub(super) mod data;
pub(super) mod pace;
pub(super) mod place;
pub(super) mod priority;
pub(super) mod replay;
pub(super) mod report;
pub(super) mod steady;
pub(super) mod zone;
