//! The zoned interface, naively: zones as ordered maps, and what of them survives a power cut.

mod areas;
mod canary;
mod drawn;
mod for_wear;
mod image;
mod model;
mod observed;
mod survivors;
#[cfg(test)]
mod tests;

pub use canary::{canaries, canaries_of_areas, canaries_of_extensions};
pub use drawn::{DrawnZoned, ZonedInterface};
pub use image::{Zone, ZoneChange};
pub use model::ZonedModel;
pub use observed::{ObservedBlock, ObservedZone};
pub use survivors::{Found, Survivor};
