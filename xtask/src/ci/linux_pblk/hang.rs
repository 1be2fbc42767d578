//! Hangs of Linux's own: states that its pblk comes into after a power cut and never leaves. It says so on the console.
//!
//! They are Linux's, whatever the drive does ([`Hang`] says which are known), so a life that meets one is begun again.
//! Words alone are not enough, because Linux gets over some of them, and checks that only read are passed all the same: it
//! hangs if after the words, in this boot, no check is passed for [`Watch::PATIENCE`]. Everything else that goes wrong is a
//! failure of the test.

use crate::ci::console::Word;
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, Instant};

/// A state that Linux's pblk does not leave; docs/linux-pblk.md tells how it comes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hang {
    /// A line is full and its emeta was never written: it tries for ever to collect it, and removal waits for that.
    LineWithoutEmeta,
    /// Every line is written: it finds none to go on with.
    NoFreeLine,
    /// It gives up a line that was open at the cut.
    LineGivenUp,
}

/// What Linux says on the console in each.
const WORDS: [(&str, Hang); 3] = [
    ("failed to GC line", Hang::LineWithoutEmeta),
    ("no free lines", Hang::NoFreeLine),
    ("could not recover L2P", Hang::LineGivenUp),
];

impl Display for Hang {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let state = match self {
            Self::LineWithoutEmeta => {
                "it tries for ever to collect a full line whose emeta was not written before the cut"
            }
            Self::NoFreeLine => "all lines were written before the cut, and it has none to go on with",
            Self::LineGivenUp => "it gave up a line that was open at the cut, and does not end",
        };
        write!(formatter, "a hang that is Linux's own: {state}")
    }
}

impl Error for Hang {}

/// Looks out for hangs in what a guest says.
#[derive(Debug)]
pub struct Watch {
    /// Before a power cut none is known.
    is_after_cut: bool,
    patience: Duration,
    suspected: Option<(Hang, Instant)>,
}

impl Watch {
    /// How long a guest that said such words may take to its next check. Chosen: ten times the longest of an idle machine.
    pub const PATIENCE: Duration = Duration::from_secs(300);

    /// For one boot.
    pub const fn new(is_after_cut: bool, patience: Duration) -> Self {
        Self { is_after_cut, patience, suspected: None }
    }

    /// A line was said, and what it means. What is suspected first is kept; every check that is passed gives it time anew.
    pub fn hear(&mut self, line: &str, word: &Word<'_>, now: Instant) {
        if !matches!(word, Word::Nothing) {
            self.suspected = self.suspected.map(|(hang, _)| (hang, now + self.patience));
        } else if self.is_after_cut && self.suspected.is_none() {
            let hang = WORDS.iter().find_map(|(words, hang)| line.contains(words).then_some(*hang));
            self.suspected = hang.map(|hang| (hang, now + self.patience));
        }
    }

    /// When it is a hang, unless a check is passed before that; none if nothing is suspected.
    pub fn deadline(&self) -> Option<Instant> {
        self.suspected.map(|(_, at)| at)
    }

    /// The hang that is suspected, once its time is over.
    pub fn hang(&self, now: Instant) -> Option<Hang> {
        self.suspected.filter(|(_, at)| *at <= now).map(|(hang, _)| hang)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ci::console::word;

    /// What is made of lines, each a second after the one before, when the last is long ago; if a power was cut before.
    fn made_of(lines: &[&str], is_after_cut: bool) -> Option<Hang> {
        let (mut watch, mut now) = (Watch::new(is_after_cut, Watch::PATIENCE), Instant::now());
        for line in lines {
            now += Duration::from_secs(1);
            watch.hear(line, &word(line), now);
            assert_eq!(watch.hang(now), None, "{line}: at once");
        }
        watch.hang(now + Watch::PATIENCE)
    }

    #[test]
    fn words_of_a_hang_and_no_check_for_long_are_one() {
        for (line, hang) in [
            ("[   12.3] pblk pb0: failed to GC line 19", Hang::LineWithoutEmeta),
            ("[    2.1] pblk pb0: no free lines", Hang::NoFreeLine),
            ("[    2.1] pblk pb0: could not recover L2P form OOB", Hang::LineGivenUp),
        ] {
            assert_eq!(made_of(&["@ok registered", line], true), Some(hang), "{line}");
            assert_eq!(made_of(&[line, "@ok recover"], true), Some(hang), "{line}: what only reads passed");
            assert_eq!(made_of(&[line], false), None, "{line}: without a cut");
        }
        assert_eq!(made_of(&["@ok registered", "[    2.1] pblk pb0: luns:8"], true), None);
    }

    #[test]
    fn a_check_gives_time_anew() {
        let (mut watch, start) = (Watch::new(true, Watch::PATIENCE), Instant::now());
        let mut hear = |line: &str, seconds| {
            watch.hear(line, &word(line), start + Duration::from_secs(seconds));
            watch.deadline().map(|at| (at - start).as_secs())
        };
        let patience = Watch::PATIENCE.as_secs();
        assert_eq!(hear("@ok registered", 1), None);
        assert_eq!(hear("no free lines", 2), Some(patience + 2));
        assert_eq!(hear("@ok recover", 100), Some(patience + 100));
        assert_eq!(hear("# something", 200), Some(patience + 100));
    }

    #[test]
    fn repeating_the_words_gains_no_time() {
        let (mut watch, start) = (Watch::new(true, Watch::PATIENCE), Instant::now());
        let line = "failed to GC line 19";
        for seconds in 0..Watch::PATIENCE.as_secs() {
            watch.hear(line, &word(line), start + Duration::from_secs(seconds));
        }
        assert_eq!(watch.deadline(), Some(start + Watch::PATIENCE));
        assert_eq!(watch.hang(start + Watch::PATIENCE), Some(Hang::LineWithoutEmeta));
    }
}
