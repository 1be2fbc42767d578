//! The `ocssd` program: its heap, and the library's `main` with the kinds of targets of this project.

#[cfg(target_os = "linux")]
mod heap;

use std::process::ExitCode;

fn main() -> ExitCode {
    ocssd_cli::main_with(Vec::new())
}
