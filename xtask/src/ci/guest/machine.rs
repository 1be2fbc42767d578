//! QEMU with the guest, and what it says on its console.

use super::kernel::Kernel;
use crate::ci::console::{Console, Word, word};
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Boots, and follows the console until the guest says that it has ended. `cut` is called when it asks for that. Returns
/// how many checks passed.
///
/// Errors: a check failed, or the guest did not come to its end.
pub fn run(
    kernel: &Kernel,
    initrd: &Path,
    words: &str,
    limit: Duration,
    cut: &mut dyn FnMut(),
) -> Result<usize> {
    let mut command = Command::new("qemu-system-x86_64");
    command.args([
        "-M", "q35", "-accel", "tcg", "-smp", "1", "-m", "512", "-display", "none", "-serial", "stdio",
    ]);
    command.args(["-no-reboot", "-netdev", "user,id=n0", "-device", "virtio-net-pci,netdev=n0,romfile="]);
    command.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(initrd);
    command.args(["-append", &format!("console=ttyS0 panic=-1 quiet {words}")]);
    let mut console = Console::start(&mut command, limit)?;
    let (mut passed, mut failed, mut ended) = (0, Vec::new(), false);
    while let Some(line) = console.next_line()? {
        match word(line) {
            Word::Passed => passed += 1,
            Word::Failed(name) => failed.push(name.to_owned()),
            Word::Cut => cut(),
            Word::End => ended = true,
            Word::Value(..) | Word::Nothing => {}
        }
    }
    ensure!(failed.is_empty(), "failed in the guest: {}; it said:\n{}", failed.join(", "), console.told());
    ensure!(ended, "the guest stopped before its end; it said:\n{}", console.told());
    Ok(passed)
}
