//! CIDR 2020: "Open-Channel SSD (What is it Good For)", what it says of OX-Block and LightLSM.
//!
//! `f5` and `f6` are its figures of RocksDB on LightLSM, `units` what its section 5 says of LightLSM's interface; `vs` sets
//! LightLSM beside tables on block targets. They run on `database`, and that on a `ground`. `f3` is its figure 3 (recovery),
//! `placement` its figure 7 (copies), `gc` the numbers of section 4.3 about garbage collection in one group, `atomicity` the
//! fallacy of section 4.4 shown. `rig` mounts targets and cuts the power, `fit` lays a line through points.

pub mod atomicity;
mod database;
pub mod f3;
pub mod f5;
pub mod f6;
mod fit;
pub mod gc;
mod ground;
pub mod placement;
mod rig;
pub mod units;
pub mod vs;
mod vs_report;
mod watched;

use ocssd_report::{PaperRow, PaperTable};

/// Nothing is known of why a number is off.
fn unexplained(_: &PaperTable, _: &PaperRow, _: f64) -> Option<String> {
    None
}
