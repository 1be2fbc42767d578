//! CIDR 2020: "Open-Channel SSD (What is it Good For)", what it says of OX-Block.
//!
//! `f3` is its figure 3 (recovery), `gc` the numbers of section 4.3 about garbage collection in one group, `atomicity` the
//! fallacy of section 4.4 shown. `rig` mounts targets and cuts the power, `fit` lays a line through points.

pub mod atomicity;
pub mod f3;
mod fit;
pub mod gc;
mod rig;
mod watched;

use ocssd_report::{PaperRow, PaperTable};

/// Nothing is known of why a number is off.
fn unexplained(_: &PaperTable, _: &PaperRow, _: f64) -> Option<String> {
    None
}
