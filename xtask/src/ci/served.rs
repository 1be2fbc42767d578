//! `ocssd serve` as a process of the guest tests: it says where it listens, and what it counted when it is stopped.

use crate::process;
use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A server that runs. It goes with the test.
pub struct Served {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Served {
    /// Starts `ocssd serve --json` with these arguments; returns what it says once it listens.
    ///
    /// Errors: it cannot be started, or ends at once.
    pub fn start(program: &Path, arguments: &[&str]) -> Result<(Self, String)> {
        let mut command = Command::new(program);
        command.args(["serve", "--json"]).args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().context("`ocssd` could not be started")?;
        let mut out = BufReader::new(child.stdout.take().context("its output is piped")?);
        let said = document(&mut out)?;
        Ok((Self { child, out }, said))
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

impl Drop for Served {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_ends_with_its_last_brace() {
        let text = "{\n  \"nvme\": {\n  }\n}\n";
        assert_eq!(document(&mut text.as_bytes()).unwrap(), text);
        assert!(document(&mut "half\n".as_bytes()).is_err());
    }
}
