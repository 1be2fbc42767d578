//! A journal as a timeline: the JSON that Perfetto and chrome://tracing open.
//!
//! Every parallel unit is a process, in which its commands lie as spans that may overlap; requests are a process, and the
//! simulator is one, with a mark for each step, power cut and mount. Times are virtual, in microseconds. A command of
//! several units is shown at that of its first sector. Format: "Trace Event Format" of the Chromium project, async and
//! instant events. Deliberately not here: what is remembered (`journal`).

use crate::journal::{Event, Journal};
use ocssd_base::Nanos;
use ocssd_lightnvm::{Geometry, Op, Ppa, Tag};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Steps, power cuts and mounts.
const SIMULATOR: u32 = 1;
/// Requests.
const REQUESTS: u32 = 2;
/// Commands without an address, as a flush.
const DRIVE: u32 = 3;
/// The first parallel unit; others follow.
const UNITS: u32 = 4;

/// Writes everything `journal` remembers of a drive of this shape. What was in flight at a power cut ends there, with an
/// argument that says so; what was in flight at the end of the journal ends with it. An end whose beginning was forgotten
/// ([`crate::journal::Keep::Newest`]) is left out.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(journal: &Journal, geometry: &Geometry, out: &mut dyn Write) -> io::Result<()> {
    let mut timeline = Timeline {
        geometry,
        out,
        is_first: true,
        spans: 0,
        commands: BTreeMap::new(),
        requests: BTreeMap::new(),
    };
    write!(timeline.out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    timeline.name_processes()?;
    let mut last = Nanos::ZERO;
    for (at, event) in journal.iter() {
        timeline.event(*at, event)?;
        last = *at;
    }
    timeline.end_all(last, "it was in flight when the run ended")?;
    writeln!(timeline.out, "\n]}}")?;
    timeline.out.flush()
}

/// A span that has begun.
struct Span {
    id: u64,
    process: u32,
    category: &'static str,
    name: String,
}

struct Timeline<'a> {
    geometry: &'a Geometry,
    out: &'a mut dyn Write,
    is_first: bool,
    /// Spans so far: the number of the next. Tags are used again, numbers are not.
    spans: u64,
    commands: BTreeMap<Tag, Span>,
    requests: BTreeMap<u32, Span>,
}

impl Timeline<'_> {
    fn put(&mut self, event: &Value) -> io::Result<()> {
        let separator = if self.is_first { "\n" } else { ",\n" };
        self.is_first = false;
        write!(self.out, "{separator}{event}")
    }

    fn name_processes(&mut self) -> io::Result<()> {
        let mut names = vec![
            (SIMULATOR, "simulator".to_owned()),
            (REQUESTS, "requests".to_owned()),
            (DRIVE, "drive".to_owned()),
        ];
        for pu in 0..self.geometry.pu_count() {
            let (group, unit) = (pu / self.geometry.pus_per_group, pu % self.geometry.pus_per_group);
            names.push((UNITS + pu, format!("unit g{group}/p{unit}")));
        }
        for (process, name) in names {
            self.put(&json!({ "ph": "M", "name": "process_name", "pid": process, "tid": 0, "args": { "name": name } }))?;
            self.put(&json!({ "ph": "M", "name": "process_sort_index", "pid": process, "tid": 0,
                "args": { "sort_index": process } }))?;
        }
        Ok(())
    }

    fn event(&mut self, at: Nanos, event: &Event) -> io::Result<()> {
        match event {
            Event::Step { index, what } => self.mark(at, "step", &format!("step {index}: {what}"), "p"),
            Event::Mounted => self.mark(at, "mount", "mounted", "p"),
            Event::Harmed { .. } => self.mark(at, "harm", &event.to_string(), "p"),
            Event::PowerCut => {
                self.end_all(at, "the power went")?;
                self.mark(at, "power_cut", "power cut", "g")
            }
            Event::Request { number, what } => {
                let span =
                    self.begin(at, (REQUESTS, "request"), what.clone(), &json!({ "number": number }))?;
                let before = self.requests.insert(*number, span);
                self.end_lost(at, before)
            }
            Event::Reply { number, what } => match self.requests.remove(number) {
                Some(span) => self.end(at, &span, &json!({ "reply": what })),
                None => Ok(()),
            },
            Event::Command { tag, op, first, count, mount } => {
                let span = self.command(at, *op, *first, *count, *mount)?;
                let before = self.commands.insert(*tag, span);
                self.end_lost(at, before)
            }
            Event::Completion { tag, status } => match self.commands.remove(tag) {
                Some(span) => self.end(at, &span, &json!({ "status": status.to_string() })),
                None => Ok(()),
            },
        }
    }

    fn command(
        &mut self,
        at: Nanos,
        op: Op,
        first: Option<Ppa>,
        count: u32,
        mount: bool,
    ) -> io::Result<Span> {
        let process = first.map_or(DRIVE, |ppa| UNITS + self.geometry.pu_of(ppa.chunk).0);
        let category = if mount { "mount" } else { "command" };
        let arguments = match first {
            Some(ppa) => json!({ "chunk": ppa.chunk.0, "sector": ppa.sector, "count": count }),
            None => json!({ "count": count }),
        };
        self.begin(at, (process, category), format!("{op:?} of {count}"), &arguments)
    }

    /// Begins a span of a process and a category.
    fn begin(
        &mut self,
        at: Nanos,
        (process, category): (u32, &'static str),
        name: String,
        arguments: &Value,
    ) -> io::Result<Span> {
        let span = Span { id: self.spans, process, category, name };
        self.spans += 1;
        self.put(&json!({ "ph": "b", "cat": span.category, "id": span.id, "name": span.name, "pid": process, "tid": 0,
            "ts": micros(at), "args": arguments }))?;
        Ok(span)
    }

    fn end(&mut self, at: Nanos, span: &Span, arguments: &Value) -> io::Result<()> {
        self.put(
            &json!({ "ph": "e", "cat": span.category, "id": span.id, "name": span.name, "pid": span.process,
            "tid": 0, "ts": micros(at), "args": arguments }),
        )
    }

    /// Ends a span whose number is used again though its end was never noted.
    fn end_lost(&mut self, at: Nanos, span: Option<Span>) -> io::Result<()> {
        span.map_or(Ok(()), |span| self.end(at, &span, &json!({ "ended": "its end was not noted" })))
    }

    /// Ends everything in flight.
    fn end_all(&mut self, at: Nanos, why: &str) -> io::Result<()> {
        let commands = std::mem::take(&mut self.commands).into_values();
        let requests = std::mem::take(&mut self.requests).into_values();
        for span in commands.chain(requests) {
            self.end(at, &span, &json!({ "ended": why }))?;
        }
        Ok(())
    }

    /// A mark; `scope` is `p` for one across the simulator's process, `g` for one across everything.
    fn mark(&mut self, at: Nanos, category: &str, name: &str, scope: &str) -> io::Result<()> {
        self.put(
            &json!({ "ph": "i", "cat": category, "name": name, "pid": SIMULATOR, "tid": 0, "ts": micros(at),
            "s": scope }),
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact to the nanosecond for 100 days")]
fn micros(at: Nanos) -> f64 {
    at.0 as f64 / 1000.0
}
