//! `ocssd serve --vfio-user` with an image behind it: a drive that outlives machines, and whose own end can be sudden.

use crate::process;
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A server that runs.
pub struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    /// Where it listens.
    pub socket: PathBuf,
}

impl Server {
    /// Serves an image; returns when it listens.
    ///
    /// Errors: it cannot be started, or ends at once.
    pub fn start(program: &Path, image: &Path, socket: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--json", "--vfio-user", &format!("unix:{}", socket.display())]);
        command.arg("--drive").arg(image).stdout(Stdio::piped());
        let mut child = command.spawn().context("`ocssd` could not be started")?;
        let mut out = BufReader::new(child.stdout.take().context("its output is piped")?);
        document(&mut out)?;
        Ok(Self { child, out, socket: socket.to_owned() })
    }

    /// Ends it as a drive ends that loses its power: nothing is written out, nothing is closed.
    ///
    /// Errors: it cannot be ended.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill().context("the server could not be killed")?;
        self.child.wait()?;
        Ok(())
    }

    /// Stops it as people do: it must end well. Returns what it counted.
    ///
    /// Errors: it does not.
    pub fn stop(mut self) -> Result<String> {
        process::run(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        let counted = document(&mut self.out)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(counted)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has ended already, unless something failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The next JSON document of the server.
fn document(out: &mut impl BufRead) -> Result<String> {
    let mut text = String::new();
    loop {
        let before = text.len();
        if out.read_line(&mut text)? == 0 {
            bail!("the server ended after saying: {text}");
        }
        if &text[before..] == "}\n" {
            return Ok(text);
        }
    }
}
