//! The I/O a job issued, as fio's `write_iolog` records it: a log of version 3, which `read_iolog` replays.
//!
//! Times are microseconds since the start of the run. Resets of zones have no word in fio's format and are left out.

use std::fmt::Write;

use ocssd_base::Nanos;

use crate::job::IologOp;

/// The first line.
const HEADER: &str = "fio version 3 iolog\n";

/// One I/O as it was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedIo {
    /// When, since the start of the run.
    pub at: Nanos,
    /// What.
    pub op: IologOp,
    /// Where, in bytes.
    pub offset: u64,
    /// How much, in bytes; 0 for a flush.
    pub bytes: u64,
}

/// The recorded I/O of one job. Grows with every I/O: 32 bytes each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The file that the drive stands for.
    pub file: String,
    /// When the job started and ended, since the start of the run.
    pub span: (Nanos, Nanos),
    /// What was issued, oldest first.
    pub ios: Vec<RecordedIo>,
}

impl Recording {
    /// Nothing recorded yet.
    #[must_use]
    pub fn new(file: String) -> Self {
        Self { file, span: (Nanos::ZERO, Nanos::ZERO), ios: Vec::new() }
    }
}

/// A log of several jobs, in order of time; fio writes the lines of jobs that share a file as they come.
#[must_use]
pub fn iolog_text(recordings: &[&Recording]) -> String {
    let mut lines: Vec<(Nanos, u8, String)> = Vec::new();
    for Recording { file, span, ios } in recordings {
        lines.push((span.0, 0, format!("{file} add")));
        lines.push((span.0, 1, format!("{file} open")));
        for io in ios {
            lines.push((io.at, 2, format!("{file} {} {} {}", io.op.word(), io.offset, io.bytes)));
        }
        lines.push((span.1, 3, format!("{file} close")));
    }
    lines.sort_by_key(|&(at, rank, _)| (at, rank));
    let mut text = HEADER.to_owned();
    for (at, _, line) in lines {
        writeln!(text, "{} {line}", at.0 / 1_000).expect("a string takes all text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{ReplayOptions, parse_iolog};

    #[test]
    fn what_is_recorded_can_be_replayed() {
        let io = |micros, op, offset, bytes| RecordedIo { at: Nanos::from_micros(micros), op, offset, bytes };
        let recording = Recording {
            span: (Nanos::from_micros(5), Nanos::from_micros(900)),
            ios: vec![
                io(5, IologOp::Write, 0, 8_192),
                io(105, IologOp::Flush, 0, 0),
                io(405, IologOp::Trim, 8_192, 4_096),
            ],
            ..Recording::new("w.0.0".to_owned())
        };
        let text = iolog_text(&[&recording]);
        assert_eq!(
            text,
            "fio version 3 iolog\n5 w.0.0 add\n5 w.0.0 open\n5 w.0.0 write 0 8192\n105 w.0.0 sync 0 0\n\
             405 w.0.0 trim 8192 4096\n900 w.0.0 close\n"
        );
        let actions = parse_iolog(&text, &ReplayOptions::default()).expect("our own log");
        let again: Vec<_> = actions.iter().map(|a| (a.op, a.offset, a.bytes, a.delay.0 / 1_000)).collect();
        let expected =
            [(IologOp::Write, 0, 8_192, 0), (IologOp::Flush, 0, 0, 100), (IologOp::Trim, 8_192, 4_096, 300)];
        assert_eq!(again, expected);
    }

    #[test]
    fn jobs_that_share_a_log_stand_in_it_by_time() {
        let recording = |name: &str, at| Recording {
            span: (Nanos::ZERO, Nanos::from_micros(9)),
            ios: vec![RecordedIo { at: Nanos::from_micros(at), op: IologOp::Read, offset: 0, bytes: 1 }],
            ..Recording::new(name.to_owned())
        };
        let text = iolog_text(&[&recording("a", 7), &recording("b", 3)]);
        let reads: Vec<&str> = text.lines().filter(|line| line.contains("read")).collect();
        assert_eq!(reads, ["3 b read 0 1", "7 a read 0 1"]);
    }
}
