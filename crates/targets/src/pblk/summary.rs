//! The state of an instance in a few lines, for messages about what went wrong.
//!
//! Deliberately not here: what is counted (`stats`), and numbers for tools (`describe`).

use super::Pblk;
use ocssd_ftl::LineState;
use std::fmt::{self, Write};

impl Pblk {
    /// What is free, what waits and for what. Cost: a pass over lines and buffer units.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text = String::new();
        self.write_summary(&mut text).expect("a string takes everything");
        text
    }

    fn write_summary(&self, out: &mut String) -> fmt::Result {
        let (waiting, commands) = (self.requests.counts(), self.flight.len());
        writeln!(
            out,
            "reads, writes, requests: {waiting:?}, commands: {commands}, changes: {:?}",
            self.changes
        )?;
        writeln!(out, "free lines {} worth {}", self.lines.free_count(), self.free_lines_worth())?;
        writeln!(out, "buffer {:?}, kept {}", self.write_buffer.occupancy(), self.buffer_units_kept())?;
        writeln!(out, "{:?}", self.reclaimer)?;
        writeln!(out, "{:?}, {:?}", self.gc, self.wear)?;
        writeln!(out, "{:?}, checkpoints idle: {}", self.shutdown, self.checkpoints.is_idle())?;
        writeln!(out, "{:?}", self.limiter)?;
        for (number, stream) in self.streams.iter().enumerate() {
            writeln!(out, "stream {number}: {stream:?}")?;
        }
        for (line, entry) in self.lines.iter().filter(|(_, entry)| entry.state != LineState::Bad) {
            let room = self.open[line.index()].as_ref().map(|open| (open.room(), open.in_flight()));
            let valid = self.valid.count(line);
            writeln!(out, "line {}: valid {valid}, room and writes {room:?}, {entry:?}", line.0)?;
        }
        writeln!(out, "{:?}", self.stats)
    }
}
