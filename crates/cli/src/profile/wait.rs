//! While it is measured: what goes on, how long it still takes, and Ctrl-C.

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ocssd_measure::profile::{Step, Watch};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Who waits at the terminal.
pub struct Waiting {
    stopped: Arc<AtomicBool>,
    bar: Option<ProgressBar>,
    quiet: bool,
    said: Option<Instant>,
}

impl Waiting {
    /// Hears Ctrl-C from now on: the first stops measuring, a second ends the program at once.
    pub fn new(quiet: bool) -> anyhow::Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stopped))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stopped)))
                .context("signals cannot be heard")?;
        }
        let terminal = std::io::stderr().is_terminal();
        let bar = (terminal && !quiet).then(|| {
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:25} {percent:>3} %  {msg}");
            bar.set_style(style.expect("the template is well formed"));
            bar
        });
        Ok(Self { stopped, bar, quiet, said: None })
    }

    /// Measuring is over.
    pub fn finish(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Watch for Waiting {
    fn on_step(&mut self, step: &Step) {
        let (gone, left) = (step.gone.0 / 1_000_000_000, step.left.0 / 1_000_000_000);
        let message = format!("{}; {gone} s gone, about {left} s to go", step.what);
        if let Some(bar) = &self.bar {
            bar.set_position(gone * 1000 / (gone + left).max(1));
            bar.set_message(message);
        } else if !self.quiet && self.said.is_none_or(|at| at.elapsed() >= LINE_EVERY) {
            self.said = Some(Instant::now());
            eprintln!("{message}");
        }
    }

    fn go_on(&mut self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }
}
