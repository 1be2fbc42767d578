//! `ocssd` with two more kinds of target: `own-ftl`, and the same with a mistake. docs/own-ftl.md goes through it.

mod ftl;
mod mount;

use ocssd_targets::registry::{Kind, Limits};
use std::process::ExitCode;

fn main() -> ExitCode {
    // The mount believes what it can read: a record the media lost takes a newer version with it, and is not missed.
    let limits = Limits { finds_changed_content: false, ..Limits::NONE };
    let about = "a page-mapped FTL with garbage collection, for learning";
    let right = Kind::new("own-ftl", about, |device, spec| mount::make(device, spec, false));
    let about = "own-ftl whose barrier leaves a unit in memory, for the simulator to find";
    let broken = Kind::new("own-ftl-broken", about, |device, spec| mount::make(device, spec, true));
    ocssd_cli::main_with(vec![right.with_limits(limits), broken.with_limits(limits)])
}
