//! fio's recorded I/O as text: `fio version 2 iolog` and `fio version 3 iolog`.
//!
//! A version 2 line is `file action` or `file action offset length`; version 3 puts a time in microseconds in front.
//! Sources: HOWTO, "Trace file format v2" and "v3"; and what fio 3.33 does where it differs: the number of a `wait` is
//! milliseconds since the job's start, and the first time of a version 3 log that is not 0 is no delay.
//!
//! Deliberately not here: files, the target's size, blktrace's binary format.

use ocssd_base::Nanos;

use super::error::{JobError, Place};
use super::job::Job;
use super::pattern::{Operations, Order, Pattern};
use super::resolve::Resolver;
use super::word::choose;
use std::sync::Arc;

/// What a recorded line does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IologOp {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims.
    Trim,
    /// Flushes (`sync` and `datasync`).
    Flush,
}

impl IologOp {
    /// fio's word in the log.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Flush => "sync",
        }
    }
}

/// One recorded I/O, and when it may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IologAction {
    /// What it does.
    pub op: IologOp,
    /// Where, in bytes.
    pub offset: u64,
    /// How much, in bytes; 0 for a flush.
    pub bytes: u64,
    /// Not earlier than this after the one before was started.
    pub delay: Nanos,
    /// Not earlier than this after the job's start.
    pub not_before: Nanos,
    /// Its line in the log, from 1.
    pub line: u32,
}

/// How a log is taken: fio's `replay_*` options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Without the log's pauses (`replay_no_stall`).
    pub no_stall: bool,
    /// How fast the log's time goes, in percent, at least 1 (`replay_time_scale`).
    pub time_scale: u32,
    /// Offsets are divided by this, at least 1 (`replay_scale`).
    pub scale: u32,
    /// Offsets are rounded down to a multiple of this many bytes; 0 is as they are (`replay_align`).
    pub align: u32,
    /// Kinds of I/O that are left out (`replay_skip`).
    pub skip: Vec<IologOp>,
    /// All files of the log are the one drive (`replay_redirect`).
    pub redirect: bool,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self { no_stall: false, time_scale: 100, scale: 1, align: 0, skip: Vec::new(), redirect: false }
    }
}

/// What is wrong with a log: the line from 1 (0: the whole of it), and a sentence.
pub type IologError = (u32, String);

/// Reads a log's text.
///
/// # Errors
/// The first line that is none of fio's, with what was expected there.
pub fn parse_iolog(text: &str, options: &ReplayOptions) -> Result<Vec<IologAction>, IologError> {
    let mut lines = (1..).zip(text.lines());
    let version = match lines.next().map(|(_, line)| line.trim()) {
        Some("fio version 2 iolog") => 2,
        Some("fio version 3 iolog") => 3,
        _ => {
            let message = "expected the first line `fio version 2 iolog` or `fio version 3 iolog`; blktrace's binary \
                           format is not read";
            return Err((1, message.to_owned()));
        }
    };
    let mut reader = Reader { version, options, ..Reader::new(options) };
    for (number, line) in lines {
        reader.line(number, line).map_err(|message| (number, message))?;
    }
    if reader.actions.is_empty() {
        return Err((0, "holds no I/O to replay".to_owned()));
    }
    Ok(reader.actions)
}

/// Reads the logs that jobs replay, by `read_file`. What a job does is then what its logs say.
pub(super) fn load_logs(resolver: &mut Resolver, read_file: &dyn Fn(&str) -> Result<String, String>) {
    let Resolver { jobs, errors, .. } = resolver;
    for job in jobs.iter_mut().filter(|job| !job.options.replay.names.is_empty()) {
        for name in job.options.replay.names.clone() {
            let text = read_file(&name).map_err(|reason| (0, format!("cannot read the log: {reason}")));
            match text.and_then(|text| parse_iolog(&text, &job.options.replay.options)) {
                Ok(actions) => job.options.replay.logs.push(Arc::from(actions)),
                Err((line, message)) => errors.push(JobError {
                    place: Place { file: name.clone(), line },
                    section: job.name.clone(),
                    option: "read_iolog".to_owned(),
                    value: name,
                    message,
                }),
            }
        }
        job.options.rw =
            Pattern { operations: operations_of(job), order: Order::Sequential { skip_bytes: 0 } };
    }
}

/// What the logs of a job do, taken together, as fio takes them.
fn operations_of(job: &Job) -> Operations {
    let has = |op| job.options.replay.logs.iter().flat_map(|log| log.iter()).any(|action| action.op == op);
    match (has(IologOp::Read), has(IologOp::Write), has(IologOp::Trim)) {
        (_, false, false) => Operations::Read,
        (false, true, false) => Operations::Write,
        (false, false, true) => Operations::Trim,
        _ => Operations::ReadWrite,
    }
}

/// A log while it is read.
struct Reader<'a> {
    version: u32,
    options: &'a ReplayOptions,
    actions: Vec<IologAction>,
    file: Option<&'a str>,
    /// The time of the line before, in microseconds; 0 until one is above 0, as fio has it.
    last_micros: u64,
    /// What delays of lines that are no I/O add up to.
    delay: Nanos,
    not_before: Nanos,
}

impl<'a> Reader<'a> {
    fn new(options: &'a ReplayOptions) -> Self {
        let (delay, not_before) = (Nanos::ZERO, Nanos::ZERO);
        Self { version: 2, options, actions: Vec::new(), file: None, last_micros: 0, delay, not_before }
    }

    fn line(&mut self, number: u32, line: &'a str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        if line.trim().is_empty() {
            return Ok(());
        }
        if self.version == 3 {
            let micros = whole(words.next().unwrap_or_default(), "a time in microseconds")?;
            self.pass_to(micros)?;
        }
        let (Some(file), Some(action)) = (words.next(), words.next()) else {
            return Err("expected a file name and an action, as `/dev/x read 0 4096`".to_owned());
        };
        let numbers = (words.next(), words.next());
        if words.next().is_some() {
            return Err("expected at most a file name, an action, an offset and a length".to_owned());
        }
        match numbers {
            (None, None) => choose(action, &[("add", ()), ("open", ()), ("close", ()), ("unlink", ())]),
            (Some(offset), Some(length)) => self.action(number, file, action, offset, length),
            _ => Err("expected both an offset and a length, or neither".to_owned()),
        }
    }

    /// Moves on to a line's time; the pause is that since the line before.
    fn pass_to(&mut self, micros: u64) -> Result<(), String> {
        let last = std::mem::replace(&mut self.last_micros, micros);
        if last == 0 || micros < last || self.options.no_stall {
            return Ok(());
        }
        let nanos = u128::from(micros - last) * 1_000 * 100 / u128::from(self.options.time_scale);
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(self.delay.0);
        self.delay = pause(nanos)?;
        Ok(())
    }

    fn action(
        &mut self,
        number: u32,
        file: &'a str,
        action: &str,
        offset: &str,
        length: &str,
    ) -> Result<(), String> {
        let words = [
            ("read", Some(IologOp::Read)),
            ("write", Some(IologOp::Write)),
            ("trim", Some(IologOp::Trim)),
            ("sync", Some(IologOp::Flush)),
            ("datasync", Some(IologOp::Flush)),
            ("wait", None),
        ];
        let (offset, bytes) = (whole(offset, "an offset")?, whole(length, "a length")?);
        let Some(op) = choose(action, &words)? else { return self.wait(offset) };
        let one = *self.file.get_or_insert(file);
        if one != file && !self.options.redirect {
            return Err(format!(
                "is about `{file}`, and lines before about `{one}`; the drive is one file: give replay_redirect=drive to \
                 have all on it"
            ));
        }
        if self.options.skip.contains(&op) {
            return Ok(());
        }
        let (offset, bytes) = match op {
            IologOp::Flush => (0, 0),
            _ if bytes == 0 => return Err("expected a length above 0".to_owned()),
            _ => (self.moved(offset), bytes),
        };
        let (delay, not_before) = (std::mem::take(&mut self.delay), self.not_before);
        self.actions.push(IologAction { op, offset, bytes, delay, not_before, line: number });
        Ok(())
    }

    fn wait(&mut self, millis: u64) -> Result<(), String> {
        if self.version == 3 {
            return Err("`wait` is of version 2; in version 3 every line has a time".to_owned());
        }
        if !self.options.no_stall {
            self.not_before = self.not_before.max(pause(millis.saturating_mul(1_000_000))?);
        }
        Ok(())
    }

    const fn moved(&self, offset: u64) -> u64 {
        let offset = offset / self.options.scale as u64;
        match self.options.align {
            0 => offset,
            align => offset - offset % align as u64,
        }
    }
}

/// The longest pause: 30 years (chosen; a run's clock counts 584).
const PAUSE_MAX: u64 = 30 * 365 * 86_400 * 1_000_000_000;

fn pause(nanos: u64) -> Result<Nanos, String> {
    if nanos <= PAUSE_MAX { Ok(Nanos(nanos)) } else { Err("expected a pause below 30 years".to_owned()) }
}

fn whole(text: &str, what: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected {what} as a whole number, but found `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<IologAction>, IologError> {
        parse_iolog(text, &ReplayOptions::default())
    }

    #[test]
    fn a_version_3_log_has_pauses_between_its_times() {
        let text = "fio version 3 iolog\n0 /f add\n0 /f open\n50 /f read 0 4096\n250 /f write 4096 8192\n260 /f sync 0 0\n\
                    300 /f trim 0 4096\n310 /f close\n";
        let actions = read(text).expect("a valid log");
        let seen: Vec<_> = actions.iter().map(|a| (a.op, a.offset, a.bytes, a.delay.0, a.line)).collect();
        let expected = [
            (IologOp::Read, 0, 4096, 0, 4),
            (IologOp::Write, 4096, 8192, 200_000, 5),
            (IologOp::Flush, 0, 0, 10_000, 6),
            (IologOp::Trim, 0, 4096, 40_000, 7),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_version_2_log_waits_until_a_time_of_the_job() {
        let actions =
            read("fio version 2 iolog\n/f read 0 4096\n/f wait 300 0\n/f read 4096 4096\n/f read 0 1\n");
        let times: Vec<u64> = actions.expect("a valid log").iter().map(|a| a.not_before.0).collect();
        assert_eq!(times, [0, 300_000_000, 300_000_000]);
    }

    #[test]
    fn options_change_what_is_taken_from_a_log() {
        let text = "fio version 3 iolog\n1 /f read 10000 4096\n1001 /g write 20000 4096\n";
        let with = |change: &dyn Fn(&mut ReplayOptions)| {
            let mut options = ReplayOptions { redirect: true, ..ReplayOptions::default() };
            change(&mut options);
            parse_iolog(text, &options).expect("a valid log")
        };
        assert_eq!(with(&|_| ())[1].delay, Nanos::from_millis(1));
        assert_eq!(with(&|options| options.no_stall = true)[1].delay, Nanos::ZERO);
        assert_eq!(with(&|options| options.time_scale = 50)[1].delay, Nanos::from_millis(2));
        assert_eq!(with(&|options| options.scale = 2)[1].offset, 10_000);
        assert_eq!(with(&|options| options.align = 4096)[1].offset, 16_384);
        assert_eq!(with(&|options| options.skip = vec![IologOp::Read]).len(), 1);
        assert!(read(text).expect_err("two files").1.contains("replay_redirect"));
    }

    #[test]
    fn what_is_no_log_says_where() {
        let cases = [
            ("", 1, "first line"),
            ("fio version 4 iolog\n", 1, "first line"),
            ("fio version 2 iolog\n", 0, "no I/O"),
            ("fio version 2 iolog\n/f\n", 2, "a file name and an action"),
            ("fio version 2 iolog\n/f read 0\n", 2, "both an offset"),
            ("fio version 2 iolog\n/f raed 0 1\n", 2, "did you mean `read`?"),
            ("fio version 2 iolog\n/f read x 1\n", 2, "an offset as a whole number"),
            ("fio version 2 iolog\n\n/f read 0 0\n", 3, "a length above 0"),
            ("fio version 2 iolog\n/f read 0 1 2\n", 2, "at most"),
            ("fio version 2 iolog\n/f opne\n", 2, "did you mean `open`?"),
            ("fio version 3 iolog\n/f read 0 1\n", 2, "a time in microseconds"),
            ("fio version 3 iolog\n1 /f wait 5 0\n", 2, "version 2"),
            ("fio version 3 iolog\n1 /f read 0 1\n18446744073709551615 /f read 0 1\n", 3, "below 30 years"),
            ("fio version 2 iolog\n/f wait 18446744073709551615 0\n", 2, "below 30 years"),
        ];
        for (text, line, expected) in cases {
            let (found, message) = read(text).expect_err(text);
            assert!(found == line && message.contains(expected), "{text}: {found}: {message}");
        }
    }
}
