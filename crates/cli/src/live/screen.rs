//! Where it is shown: a part of the terminal that is drawn again and again, or lines.

use super::sample::{Change, Sample};
use super::view::{self, Heading};
use console::Term;
use ocssd_base::Nanos;
use std::time::{Duration, Instant};

/// Time between two pictures on a terminal, and between two lines without one.
const PICTURE_EVERY: Duration = Duration::from_millis(250);
const LINE_EVERY: Duration = Duration::from_secs(2);
/// Throughputs that are kept for the curve.
const HISTORY_MAX: usize = 256;

/// Time between two looks; nothing given takes what suits a terminal, or a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every(pub Option<Duration>);

/// Reads it from the command line.
///
/// # Errors
/// A sentence, if it is no time.
pub fn parse_every(text: &str) -> Result<Every, String> {
    if text.is_empty() {
        return Ok(Every(None));
    }
    humantime::parse_duration(text).map(|time| Every(Some(time))).map_err(|error| error.to_string())
}

/// The live view.
pub struct Live {
    /// `None`: lines.
    term: Option<Term>,
    every: Duration,
    heading: Heading,
    last: Option<Sample>,
    shown: Option<Instant>,
    history: Vec<f64>,
    /// Lines of the terminal that are ours.
    drawn: usize,
}

impl Live {
    /// A view on standard error, a picture or line each `every`.
    pub fn new(every: Every) -> Self {
        let term = Term::stderr();
        let term = term.is_term().then_some(term);
        let every = every.0.unwrap_or(if term.is_some() { PICTURE_EVERY } else { LINE_EVERY });
        let heading = Heading::default();
        Self { term, every, heading, last: None, shown: None, history: Vec::new(), drawn: 0 }
    }

    /// What is done from now on, and how long it takes, in words.
    pub fn head(&mut self, what: &str, time: &str) {
        what.clone_into(&mut self.heading.what);
        time.clone_into(&mut self.heading.time);
    }

    /// Time between two looks.
    pub fn every(&self) -> Nanos {
        Nanos(u64::try_from(self.every.as_nanos()).unwrap_or(u64::MAX)).max(Nanos(1))
    }

    /// True if it is time to show something; making a sample costs more than asking.
    pub fn is_due(&self) -> bool {
        self.shown.is_none_or(|at| at.elapsed() >= self.every)
    }

    /// Shows what happened since the last sample.
    pub fn show(&mut self, sample: Sample) {
        self.shown = Some(Instant::now());
        let Some(before) = self.last.replace(sample) else { return };
        let now = self.last.as_ref().expect("just put there");
        if now.now <= before.now {
            return;
        }
        let change = Change::between(&before, now);
        if self.history.len() == HISTORY_MAX {
            self.history.remove(0);
        }
        self.history.push(change.iops);
        let Some(term) = &self.term else {
            eprintln!("{}", view::line(&self.heading, &change));
            return;
        };
        let (height, width) = term.size();
        let size = (usize::from(width), usize::from(height));
        let lines =
            view::screen(&self.heading, &change, &self.history, size, console::colors_enabled_stderr());
        // A terminal that is gone shows nothing; what is measured goes on.
        let _ = term.clear_last_lines(self.drawn);
        self.drawn = lines.len();
        let _ = term.write_line(&lines.join("\n"));
    }

    /// Takes the picture away until the next one, for something else to be written.
    pub fn clear(&mut self) {
        if let Some(term) = &self.term {
            let _ = term.clear_last_lines(self.drawn);
        }
        self.drawn = 0;
    }

    /// Takes the picture away; what comes next is of something else.
    pub fn finish(&mut self) {
        self.clear();
        self.last = None;
    }
}
