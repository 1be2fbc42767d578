//! QEMU with the guest, and what it says on its console.

use super::kernel::Kernel;
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

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
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut guest = Guest(command.spawn().context("qemu-system-x86_64 could not be started")?);
    let out = guest.0.stdout.take().context("its output is piped")?;
    let (send, lines) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
            if send.send(String::from_utf8_lossy(&line).trim().to_owned()).is_err() {
                return;
            }
        }
    });
    let until = Instant::now() + limit;
    let (mut passed, mut failed, mut ended, mut said) = (0, Vec::new(), false, Vec::new());
    loop {
        let line = match lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                bail!("the guest took more than {} s; it said:\n{}", limit.as_secs(), said.join("\n"))
            }
        };
        match line.split_once('@').map_or("", |(_, rest)| rest).split_once(' ') {
            Some(("ok", _)) => passed += 1,
            Some(("fail", name)) => failed.push(name.to_owned()),
            _ if line.ends_with("@cut") => cut(),
            _ => ended |= line.ends_with("@end"),
        }
        said.push(line);
    }
    reader.join().ok().context("the thread that reads the console panicked")?;
    ensure!(failed.is_empty(), "failed in the guest: {}; it said:\n{}", failed.join(", "), said.join("\n"));
    ensure!(ended, "the guest stopped before its end; it said:\n{}", said.join("\n"));
    Ok(passed)
}

/// The machine; it goes with the test.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        // It has ended already, unless something failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
