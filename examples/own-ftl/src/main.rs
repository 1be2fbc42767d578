//! `ocssd` with one more kind of target: `own-ftl`. docs/own-ftl.md goes through it.

mod ftl;
mod mount;

use ocssd_targets::registry::{Kind, Limits};
use std::process::ExitCode;

fn main() -> ExitCode {
    // The mount believes what it can read: a record the media lost takes a newer version with it, and is not missed.
    let limits = Limits { finds_changed_content: false, ..Limits::NONE };
    let kind = Kind::new("own-ftl", "a page-mapped FTL with garbage collection, for learning", mount::make);
    ocssd_cli::main_with(vec![kind.with_limits(limits)])
}
