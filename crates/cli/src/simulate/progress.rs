//! Progress of many seeds: a line that is redrawn on a terminal, plain lines now and then without one.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ocssd_sim::campaign::Progress;
use std::io::IsTerminal;
use std::time::Duration;

/// Nothing is shown before this, so that short runs stay quiet.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Where progress is shown.
pub struct Bar {
    bar: Option<ProgressBar>,
    quiet: bool,
    time: Option<Duration>,
    seeds: u64,
    next_line: Duration,
}

impl Bar {
    /// Progress of at most `seeds` seeds in at most `time`.
    pub fn new(quiet: bool, time: Option<Duration>, seeds: u64) -> Self {
        let bar = (std::io::stderr().is_terminal() && !quiet).then(|| {
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::hidden());
            let style = ProgressStyle::with_template("{bar:30} {percent} %  {elapsed}  {msg}");
            bar.set_style(style.expect("the template is well formed"));
            bar
        });
        Self { bar, quiet, time, seeds, next_line: PATIENCE }
    }

    /// So far this much.
    pub fn show(&mut self, progress: &Progress) {
        if self.quiet || progress.elapsed < PATIENCE {
            return;
        }
        let message = in_words(progress);
        match &self.bar {
            Some(bar) => {
                if bar.is_hidden() {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                }
                bar.set_message(message);
                bar.set_position(self.thousandths(progress));
            }
            None if progress.elapsed >= self.next_line => {
                self.next_line = progress.elapsed + LINE_EVERY;
                eprintln!("{:.0} s: {message}", progress.elapsed.as_secs_f64());
            }
            None => {}
        }
    }

    /// How far, by time or by seeds, whichever is further.
    fn thousandths(&self, progress: &Progress) -> u64 {
        let part = |done: u128, all: u128| u64::try_from(done * 1000 / all.max(1)).unwrap_or(1000);
        let by_time = self.time.map_or(0, |time| part(progress.elapsed.as_millis(), time.as_millis()));
        by_time.max(part(progress.seeds.into(), self.seeds.into())).min(1000)
    }

    /// It is over.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn in_words(progress: &Progress) -> String {
    format!(
        "{} seeds, {:.0} seeds/s, {:.0} power cuts/s, {} failed",
        progress.seeds,
        progress.seeds_per_second(),
        progress.cuts_per_second(),
        progress.failures
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_by_time_or_by_seeds_whichever_is_further() {
        let at =
            |seconds, seeds| Progress { seeds, cuts: 8, failures: 0, elapsed: Duration::from_secs(seconds) };
        let minute = Some(Duration::from_secs(60));
        for (time, seeds, progress, expected) in [
            (minute, u64::MAX, at(30, 7), 500),
            (minute, 10, at(6, 9), 900),
            (None, 10, at(6, 5), 500),
            (minute, 10, at(90, 5), 1000),
        ] {
            assert_eq!(Bar::new(true, time, seeds).thousandths(&progress), expected, "{progress:?}");
        }
        assert_eq!(in_words(&at(2, 6)), "6 seeds, 3 seeds/s, 4 power cuts/s, 0 failed");
    }
}
