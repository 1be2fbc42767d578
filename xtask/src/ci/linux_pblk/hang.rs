//! Hangs of Linux's own: states that its pblk comes into, most after a power cut, and never leaves. It says so on the console.
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
    /// It forgot a write that its own check refused, because it named sectors behind the end of a chunk.
    WriteBeyondChunk,
}

/// What Linux says on the console in each. 3 is the error (`NVM_IO_ERR`) of pblk's own check, before the drive is asked: what
/// the drive refuses has another number.
const WORDS: [(&str, Hang); 4] = [
    ("failed to GC line", Hang::LineWithoutEmeta),
    ("no free lines", Hang::NoFreeLine),
    ("could not recover L2P", Hang::LineGivenUp),
    ("data I/O submission failed: 3", Hang::WriteBeyondChunk),
];

/// What a boot may lead Linux into.
#[derive(Debug, Clone, Copy, Default)]
pub struct Risks {
    /// The power was cut before.
    pub is_after_cut: bool,
    /// The drive has media faults.
    pub has_faults: bool,
}

impl Hang {
    /// False of a boot without what leads there: that its guest stops is a failure, whatever it said.
    const fn is_possible(self, risks: Risks) -> bool {
        match self {
            Self::LineWithoutEmeta | Self::NoFreeLine | Self::LineGivenUp => risks.is_after_cut,
            Self::WriteBeyondChunk => risks.has_faults,
        }
    }
}

impl Display for Hang {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let state = match self {
            Self::LineWithoutEmeta => {
                "it tries for ever to collect a full line whose emeta was not written before the cut"
            }
            Self::NoFreeLine => "all lines were written before the cut, and it has none to go on with",
            Self::LineGivenUp => "it gave up a line that was open at the cut, and does not end",
            Self::WriteBeyondChunk => {
                "it made a write beyond the end of a chunk of bad media, and what that held is waited for in vain"
            }
        };
        write!(formatter, "a hang that is Linux's own: {state}")
    }
}

impl Error for Hang {}

/// Looks out for hangs in what a guest says.
#[derive(Debug)]
pub struct Watch {
    risks: Risks,
    patience: Duration,
    suspected: Option<(Hang, Instant)>,
}

impl Watch {
    /// How long a guest that said such words may take to its next check. Chosen: ten times the longest of an idle machine.
    pub const PATIENCE: Duration = Duration::from_secs(300);

    /// For one boot.
    pub const fn new(risks: Risks, patience: Duration) -> Self {
        Self { risks, patience, suspected: None }
    }

    /// A line was said, and what it means. What is suspected first is kept; every check that is passed gives it time anew.
    pub fn hear(&mut self, line: &str, word: &Word<'_>, now: Instant) {
        if !matches!(word, Word::Nothing) {
            self.suspected = self.suspected.map(|(hang, _)| (hang, now + self.patience));
        } else if self.suspected.is_none() {
            let mut possible = WORDS.iter().filter(|(_, hang)| hang.is_possible(self.risks));
            let hang = possible.find_map(|(words, hang)| line.contains(words).then_some(*hang));
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

    const CUT: Risks = Risks { is_after_cut: true, has_faults: false };
    const FAULTS: Risks = Risks { is_after_cut: false, has_faults: true };
    const BOTH: Risks = Risks { is_after_cut: true, has_faults: true };

    /// A guest's words from the removal of its target on, on bad media, until it did not answer any more.
    const BEYOND_A_CHUNK: &[&str] = &[
        "@ok remove",
        "[   19.351318] pblk pb0: no free lines",
        "[   19.359955] pblk pb0: ppa: (rqd: 4280):ch:0,lun:0,chk:7,sec:16",
        "[   19.362720] pblk pb0: error:17024, ppa_status:ff",
        "@ok create-again",
        "[   19.410169] pblk \u{fffd}\u{fffd}: ppa: (boundary: 0):ch:0,lun:0,chk:7,sec:64",
        "[   19.411363] pblk pb0: data I/O submission failed: 3",
        "[   19.414194] pblk pb0: ppa: (rqd: 42f2):ch:1,lun:1,chk:7,sec:24",
        "[   19.416241] pblk pb0: error:17138, ppa_status:ff",
        "@ok device-is-smaller",
        "@value map 89bc0e92 6319f9a4",
        "@ok verify-again",
    ];

    /// What is made of lines, each a second after the one before, when the last is long ago.
    fn made_of(lines: &[&str], risks: Risks) -> Option<Hang> {
        let (mut watch, mut now) = (Watch::new(risks, Watch::PATIENCE), Instant::now());
        for line in lines {
            now += Duration::from_secs(1);
            watch.hear(line, &word(line), now);
            assert_eq!(watch.hang(now), None, "{line}: at once");
        }
        watch.hang(now + Watch::PATIENCE)
    }

    #[test]
    fn words_of_a_hang_and_no_check_for_long_are_one() {
        for (line, hang, leads_there, does_not) in [
            ("[   12.3] pblk pb0: failed to GC line 19", Hang::LineWithoutEmeta, CUT, FAULTS),
            ("[    2.1] pblk pb0: no free lines", Hang::NoFreeLine, CUT, FAULTS),
            ("[    2.1] pblk pb0: could not recover L2P form OOB", Hang::LineGivenUp, CUT, FAULTS),
            ("[   19.4] pblk pb0: data I/O submission failed: 3", Hang::WriteBeyondChunk, FAULTS, CUT),
        ] {
            for risks in [leads_there, BOTH] {
                assert_eq!(made_of(&["@ok registered", line], risks), Some(hang), "{line}");
                assert_eq!(made_of(&[line, "@ok recover"], risks), Some(hang), "{line}: reads passed");
            }
            for risks in [does_not, Risks::default()] {
                assert_eq!(made_of(&[line], risks), None, "{line}: {risks:?} does not lead there");
            }
        }
        for line in ["[    2.1] pblk pb0: luns:8", "pblk pb0: data I/O submission failed: -12"] {
            assert_eq!(made_of(&["@ok registered", line], BOTH), None, "{line}");
        }
    }

    #[test]
    fn a_guest_that_wrote_beyond_a_chunk_hangs_once_it_does_not_go_on() {
        assert_eq!(made_of(BEYOND_A_CHUNK, FAULTS), Some(Hang::WriteBeyondChunk));
        let sound: Vec<&str> =
            BEYOND_A_CHUNK.iter().copied().filter(|line| !line.contains("submission")).collect();
        assert_eq!(made_of(&sound, FAULTS), None, "failed writes alone, which it gets over");
    }

    #[test]
    fn a_guest_that_wrote_beyond_a_chunk_and_goes_on_does_not_hang() {
        let (mut watch, mut now) = (Watch::new(FAULTS, Watch::PATIENCE), Instant::now());
        let goes_on = ["@ok mkfs", "@ok mount", "@ok write", "@value sum 01", "@cut"];
        for line in BEYOND_A_CHUNK.iter().chain(&goes_on) {
            // As slowly as it may.
            let is_check = word(line) != Word::Nothing;
            now += if is_check { Watch::PATIENCE - Duration::from_secs(1) } else { Duration::ZERO };
            assert_eq!(watch.hang(now), None, "before {line}");
            watch.hear(line, &word(line), now);
        }
    }

    #[test]
    fn a_check_gives_time_anew() {
        let (mut watch, start) = (Watch::new(CUT, Watch::PATIENCE), Instant::now());
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
        let (mut watch, start) = (Watch::new(CUT, Watch::PATIENCE), Instant::now());
        let line = "failed to GC line 19";
        for seconds in 0..Watch::PATIENCE.as_secs() {
            watch.hear(line, &word(line), start + Duration::from_secs(seconds));
        }
        assert_eq!(watch.deadline(), Some(start + Watch::PATIENCE));
        assert_eq!(watch.hang(start + Watch::PATIENCE), Some(Hang::LineWithoutEmeta));
    }
}
