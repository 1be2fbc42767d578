//! A program, mostly a machine in QEMU, that is followed by the lines it prints, and what a guest says in them.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The program and what it has said. It goes with the test.
pub struct Console {
    child: Child,
    lines: Receiver<String>,
    until: Instant,
    limit: Duration,
    said: Vec<String>,
}

impl Console {
    /// Starts it, with a time after which it is no longer waited for.
    ///
    /// Errors: it cannot be started.
    pub fn start(command: &mut Command, limit: Duration) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("{name} could not be started"))?;
        let out = child.stdout.take().context("its output is piped")?;
        let (send, lines) = channel();
        // It ends with the output, hence with the program.
        std::thread::spawn(move || {
            for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
                if send.send(String::from_utf8_lossy(&line).trim().to_owned()).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, lines, until: Instant::now() + limit, limit, said: Vec::new() })
    }

    /// The next line; none when the program has ended.
    ///
    /// Errors: the time is over.
    pub fn next_line(&mut self) -> Result<Option<&str>> {
        match self.next_line_by(None)? {
            Heard::Line(line) => Ok(Some(line)),
            Heard::End => Ok(None),
            Heard::Nothing => bail!("a line was waited for without end, and nothing came"),
        }
    }

    /// The next line, if it comes by then.
    ///
    /// Errors: the time of all is over.
    pub fn next_line_by(&mut self, by: Option<Instant>) -> Result<Heard<'_>> {
        let until = by.map_or(self.until, |by| by.min(self.until));
        match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => self.said.push(line),
            Err(RecvTimeoutError::Disconnected) => return Ok(Heard::End),
            Err(RecvTimeoutError::Timeout) if until < self.until => return Ok(Heard::Nothing),
            Err(RecvTimeoutError::Timeout) => {
                bail!("the guest took more than {} s; it said:\n{}", self.limit.as_secs(), self.told())
            }
        }
        Ok(Heard::Line(self.said.last().context("one was just said")?))
    }

    /// All lines so far, as a text.
    pub fn told(&self) -> String {
        self.said.join("\n")
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came of waiting for a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// It.
    Line(&'a str),
    /// The program has ended.
    End,
    /// Nothing was said in time.
    Nothing,
}

/// What a line means.
#[derive(Debug, PartialEq, Eq)]
pub enum Word<'a> {
    /// A check that passed.
    Passed,
    /// A check that did not.
    Failed(&'a str),
    /// The guest is ready for what it was told will happen to it.
    Cut,
    /// The server of its disk may be stopped and started again.
    Restart,
    /// The server of its disk may be killed, and another started.
    Kill,
    /// The drive of its zones may lose its power,
    KillZones,
    /// and have it again.
    ServeZones,
    /// It has come to its end.
    End,
    /// A value, by name.
    Value(&'a str, &'a str),
    /// For people only.
    Nothing,
}

/// Reads a line. What the kernel printed before a word does not matter.
pub fn word(line: &str) -> Word<'_> {
    let Some((_, rest)) = line.split_once('@') else { return Word::Nothing };
    let mut words = rest.splitn(3, ' ');
    match (words.next(), words.next(), words.next()) {
        (Some("ok"), Some(_), None) => Word::Passed,
        (Some("fail"), Some(name), None) => Word::Failed(name),
        (Some("cut"), None, None) => Word::Cut,
        (Some("restart"), None, None) => Word::Restart,
        (Some("kill"), None, None) => Word::Kill,
        (Some("kill-zones"), None, None) => Word::KillZones,
        (Some("serve-zones"), None, None) => Word::ServeZones,
        (Some("end"), None, None) => Word::End,
        (Some("value"), Some(name), Some(value)) => Word::Value(name, value),
        _ => Word::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_behind_what_the_kernel_prints() {
        assert_eq!(word("[    1.2] clocksource: tsc@ok mount"), Word::Passed);
        assert_eq!(word("@fail mount"), Word::Failed("mount"));
        assert_eq!(word("@cut"), Word::Cut);
        assert_eq!(word("@restart"), Word::Restart);
        assert_eq!(word("@kill"), Word::Kill);
        assert_eq!(word("@kill-zones"), Word::KillZones);
        assert_eq!(word("@serve-zones"), Word::ServeZones);
        assert_eq!(word("@end"), Word::End);
        assert_eq!(word("@value sum 01 02"), Word::Value("sum", "01 02"));
        for line in ["ok mount", "@", "@end of it", "someone@example"] {
            assert_eq!(word(line), Word::Nothing, "{line}");
        }
    }

    #[test]
    fn lines_are_followed_to_the_end_or_until_time_is_over() {
        let mut command = Command::new("sh");
        let mut console =
            Console::start(command.args(["-c", "echo a; echo b"]), Duration::from_secs(60)).unwrap();
        assert_eq!(console.next_line().unwrap(), Some("a"));
        assert_eq!(console.next_line().unwrap(), Some("b"));
        assert_eq!(console.next_line().unwrap(), None);
        assert_eq!(console.told(), "a\nb");
        let mut command = Command::new("sh");
        let mut console =
            Console::start(command.args(["-c", "echo a; exec tail -f /dev/null"]), Duration::ZERO).unwrap();
        assert!(console.next_line().is_err() || console.next_line().is_err());
    }

    #[test]
    fn a_line_may_be_waited_for_less_long() {
        let mut command = Command::new("sh");
        let mut console =
            Console::start(command.args(["-c", "echo a; exec tail -f /dev/null"]), Duration::from_secs(60))
                .unwrap();
        assert_eq!(console.next_line_by(None).unwrap(), Heard::Line("a"));
        assert_eq!(console.next_line_by(Some(Instant::now())).unwrap(), Heard::Nothing);
        let mut command = Command::new("true");
        let mut console = Console::start(&mut command, Duration::from_secs(60)).unwrap();
        assert_eq!(console.next_line_by(None).unwrap(), Heard::End);
    }
}
