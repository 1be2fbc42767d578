//! The directory in which exports are files.

use crate::args::ServeArgs;
use anyhow::{Context, anyhow};
use ocssd_export::Exports;
use ocssd_export::fuse::FuseMount;
use ocssd_export::reactor::Signals;

/// Mounts the directory that was asked for. If nothing else is served, the server ends when others unmount it.
///
/// # Errors
/// A directory that cannot be mounted on.
pub fn mount(args: &ServeArgs, exports: &Exports, signals: &Signals) -> anyhow::Result<Option<FuseMount>> {
    let Some(directory) = &args.fuse else { return Ok(None) };
    let is_alone = args.nbd.is_empty() && args.nvme_tcp.is_empty();
    let stopper = if is_alone { signals.stopper().context("a socket cannot be had twice")? } else { None };
    let mount =
        FuseMount::new(directory, exports, stopper).map_err(|sentence| anyhow!("--fuse: {sentence}"))?;
    Ok(Some(mount))
}
