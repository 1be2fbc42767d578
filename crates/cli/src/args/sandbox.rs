//! What a server gives up, and what is said of it.

use clap::Args;

/// What a server gives up after start.
#[derive(Args, Debug)]
pub struct SandboxArgs {
    /// Keep all rights after start; without this the server opens no files and sockets any more, where the kernel sees to that
    /// (Landlock, seccomp)
    #[arg(long)]
    pub no_sandbox: bool,
    /// Say at start what was given up, and at the end everything that was counted
    #[arg(long)]
    pub verbose: bool,
}
