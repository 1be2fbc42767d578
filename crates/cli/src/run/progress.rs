//! Progress with an estimate, on anything that takes over two seconds; plain lines without a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Nothing is shown before this, so that short runs stay quiet.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The progress of one step.
pub struct Bar {
    bar: Option<ProgressBar>,
    what: &'static str,
    quiet: bool,
    started: Instant,
    next_line: Cell<Duration>,
}

impl Bar {
    /// Progress of `what`.
    pub fn new(quiet: bool, what: &'static str) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = (terminal && !quiet).then(|| {
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::hidden());
            let style =
                ProgressStyle::with_template("{msg} {bar:30} {percent} %  {elapsed} gone, {eta} to go");
            bar.set_style(style.expect("the template is well formed"));
            bar
        });
        Self { bar, what, quiet, started: Instant::now(), next_line: Cell::new(PATIENCE) }
    }

    /// So far this much of a thousand, and this many I/Os.
    pub fn show(&self, thousandths: u64, ios: u64) {
        let elapsed = self.started.elapsed();
        if self.quiet || elapsed < PATIENCE {
            return;
        }
        let message = if ios == 0 { self.what.to_owned() } else { format!("{}, {ios} I/Os", self.what) };
        match &self.bar {
            Some(bar) => {
                if bar.is_hidden() {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                }
                bar.set_message(message);
                bar.set_position(thousandths);
            }
            None if elapsed >= self.next_line.get() => {
                self.next_line.set(elapsed + LINE_EVERY);
                let left =
                    elapsed.as_secs_f64() * (1000 - thousandths.min(1000)) as f64 / thousandths.max(1) as f64;
                eprintln!("{message}: {} %, about {left:.0} s to go", thousandths / 10);
            }
            None => {}
        }
    }

    /// The step is done.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
