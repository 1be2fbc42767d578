//! While it is measured: what goes on, how long it still takes, and Ctrl-C.

use crate::interrupt::Interrupt;
use crate::live::{Every, Inside, Live, Sample};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ocssd_base::Nanos;
use ocssd_measure::profile::{Look, Step, Watch};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Who waits at the terminal.
pub struct Waiting {
    interrupt: Interrupt,
    /// It was told that a signal was heard.
    is_told: bool,
    bar: Option<ProgressBar>,
    quiet: bool,
    said: Option<Instant>,
    live: Option<Live>,
    pace: Pace,
}

/// How fast the clock of what is measured goes: a virtual drive's seconds are not those of whoever waits.
struct Pace {
    is_virtual: bool,
    began: Instant,
    last: Nanos,
}

impl Pace {
    /// Seconds gone and left for people; the second is not known before a second has gone.
    fn seconds(&mut self, step: &Step, now: Instant) -> (u64, Option<u64>) {
        const SECOND: u64 = 1_000_000_000;
        if !self.is_virtual {
            return (step.gone.0 / SECOND, Some(step.left.0 / SECOND));
        }
        if step.gone < self.last {
            self.began = now;
        }
        self.last = step.gone;
        let gone = now.saturating_duration_since(self.began);
        let left = u128::from(step.left.0) * gone.as_millis() / u128::from(step.gone.0.max(1)) / 1000;
        let is_known = gone >= Duration::from_secs(1) && step.gone > Nanos::ZERO;
        (gone.as_secs(), u64::try_from(left).ok().filter(|_| is_known))
    }
}

/// `40 s gone, about 20 s to go`.
fn time_words(gone: u64, left: Option<u64>, is_most: bool) -> String {
    let word = if is_most { "at most" } else { "about" };
    left.map_or_else(|| format!("{gone} s gone"), |left| format!("{gone} s gone, {word} {left} s to go"))
}

impl Waiting {
    /// Hears Ctrl-C from now on: the first stops measuring, a second ends the program at once.
    pub fn new(quiet: bool, live: Option<Every>) -> anyhow::Result<Self> {
        let interrupt = Interrupt::listen()?;
        let terminal = std::io::stderr().is_terminal();
        let live = live.filter(|_| !quiet).map(Live::new);
        let bar = (terminal && !quiet && live.is_none()).then(|| {
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:25} {percent:>3} %  {msg}");
            bar.set_style(style.expect("the template is well formed"));
            bar
        });
        let pace = Pace { is_virtual: false, began: Instant::now(), last: Nanos::ZERO };
        Ok(Self { interrupt, is_told: false, bar, quiet, said: None, live, pace })
    }

    /// Something else is measured from now on.
    pub fn begin(&mut self, is_virtual: bool) {
        self.pace = Pace { is_virtual, began: Instant::now(), last: Nanos::ZERO };
    }

    /// True once a signal asked to end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.heard().is_some()
    }

    /// Measuring is over.
    pub fn finish(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if let Some(live) = &mut self.live {
            live.finish();
        }
    }
}

impl Watch for Waiting {
    fn on_step(&mut self, step: &Step) {
        let (gone, left) = self.pace.seconds(step, Instant::now());
        let time = time_words(gone, left, step.is_most);
        if let Some(live) = &mut self.live {
            live.head(&step.what, &time);
            return;
        }
        let message = format!("{}; {time}", step.what);
        if let Some(bar) = &self.bar {
            bar.set_position(step.gone.0 / 1000 * 1000 / ((step.gone.0 + step.left.0) / 1000).max(1));
            bar.set_message(message);
        } else if !self.quiet && self.said.is_none_or(|at| at.elapsed() >= LINE_EVERY) {
            self.said = Some(Instant::now());
            eprintln!("{message}");
        }
    }

    fn go_on(&mut self, look: &dyn Look) -> bool {
        if let Some(live) = self.live.as_mut().filter(|live| live.is_due()) {
            live.show(sample(look));
        }
        if self.is_interrupted() && !std::mem::replace(&mut self.is_told, true) {
            self.interrupt.say(self.quiet);
        }
        !self.is_interrupted()
    }
}

/// The job under way as the live view takes it.
fn sample(look: &dyn Look) -> Sample {
    let inside = look.drive().map(|state| Inside {
        groups: state.groups,
        unit_busy: state.unit_busy,
        targets: vec![("translation layer".to_owned(), state.counters)],
    });
    Sample { now: look.now(), tally: look.tally(), inside }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_told_in_the_time_of_whoever_waits() {
        let step = |gone, left| Step {
            what: String::new(),
            gone: Nanos::from_secs(gone),
            left: Nanos::from_secs(left),
            is_most: false,
        };
        let began = Instant::now();
        let later = began + Duration::from_secs(100);
        let mut real = Pace { is_virtual: false, began, last: Nanos::ZERO };
        assert_eq!(real.seconds(&step(10, 50), later), (10, Some(50)));
        // Ten seconds of the drive took 100 of ours, so 50 take 500.
        let mut drive = Pace { is_virtual: true, began, last: Nanos::ZERO };
        assert_eq!(drive.seconds(&step(10, 50), later), (100, Some(500)));
        // Another drive begins: nothing is known of it yet.
        assert_eq!(drive.seconds(&step(0, 50), later), (0, None));
        assert_eq!(time_words(1, Some(5), true), "1 s gone, at most 5 s to go");
        assert_eq!(time_words(0, None, true), "0 s gone");
    }
}
