//! Which stream a sector is written to, so that what dies together lies together.
//!
//! | classification | streams | user writes | sectors moved |
//! |---|---|---|---|
//! | none | 1 | 0 | 0, as pblk mixes them |
//! | user-gc | 2 | 0 | 1 |
//! | sepbit | 6 | 0 short-lived, 1 other | 2 from stream 0; 3, 4, 5 by age |
//!
//! SepBIT (Wang et al., FAST 2022) infers when a block dies: one that replaced a short-lived version is taken to be
//! short-lived too, and one that has lived long is taken to live on. "Short" is below `L`, the mean time from opening
//! to collection of the last 16 lines of stream 0 that were collected; infinite until there were so many. Sectors
//! moved out of another stream than 0 go by the time since their user wrote them: below `4 L`, below `16 L`, longer.
//!
//! Time is a sequence number: user sectors written so far, as the caller counts them. A target owns the classifier and
//! tells it what it collected. Deliberately not here: when a sector was last written ([`crate::LastWrites`], or the
//! metadata beside the sector), and which line a stream writes to (`open_line`).

use std::fmt;
use std::str::FromStr;

use crate::Stream;

/// Collected lines of stream 0 that `L` is the mean of (as SepBIT).
const COLLECTED_PER_MEAN: u32 = 16;

/// Bounds of the ages of classes 3 and 4, in units of `L` (as SepBIT).
const AGE_BOUNDS: [u64; 2] = [4, 16];

/// How sectors are spread over streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classification {
    /// Everything together.
    None,
    /// User writes apart from sectors moved.
    UserGc,
    /// Six classes by inferred time of death.
    SepBit,
}

/// A text that names no classification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassificationError {
    /// The text.
    pub found: String,
}

impl fmt::Display for ClassificationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the classification is \"{}\", but only none, user-gc and sepbit exist", self.found)
    }
}

impl std::error::Error for ClassificationError {}

impl FromStr for Classification {
    type Err = ClassificationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::None),
            "user-gc" => Ok(Self::UserGc),
            "sepbit" => Ok(Self::SepBit),
            _ => Err(ClassificationError { found: text.to_owned() }),
        }
    }
}

impl fmt::Display for Classification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::UserGc => "user-gc",
            Self::SepBit => "sepbit",
        })
    }
}

impl Classification {
    /// Streams it writes to, numbered from 0: 1, 2 or 6.
    #[must_use]
    pub const fn streams(self) -> u32 {
        match self {
            Self::None => 1,
            Self::UserGc => 2,
            Self::SepBit => 6,
        }
    }

    /// Whether the streams depend on when sectors were last written, so that the target must know it.
    #[must_use]
    pub const fn needs_last_writes(self) -> bool {
        matches!(self, Self::SepBit)
    }
}

/// Spreads sectors over streams.
#[derive(Clone, Debug)]
pub struct Classifier {
    classification: Classification,
    /// `L`; `None` is infinite.
    short_lived: Option<u64>,
    /// Lines of stream 0 collected since `L` was last computed, and the sum of their lifetimes.
    collected: u32,
    lifetimes: u64,
}

impl Classifier {
    /// A classifier that has seen nothing.
    #[must_use]
    pub const fn new(classification: Classification) -> Self {
        Self { classification, short_lived: None, collected: 0, lifetimes: 0 }
    }

    /// How it classifies.
    #[must_use]
    pub const fn classification(&self) -> Classification {
        self.classification
    }

    /// Streams it writes to, numbered from 0.
    #[must_use]
    pub const fn streams(&self) -> u32 {
        self.classification.streams()
    }

    /// `L` of SepBIT in user sectors; `None` while it is infinite.
    #[must_use]
    pub const fn short_lived(&self) -> Option<u64> {
        self.short_lived
    }

    /// The stream of a sector the user writes at `now_seq`.
    ///
    /// `previous_write` is when the version it replaces was written by the user; `None` if there is none, or nobody
    /// knows. Only SepBIT looks at it. Cost: a comparison.
    ///
    /// # Panics
    /// If the previous write is after this one.
    #[must_use]
    #[inline]
    pub fn user_stream(&self, now_seq: u64, previous_write: Option<u64>) -> Stream {
        assert!(previous_write.is_none_or(|at| at <= now_seq), "{previous_write:?} is after {now_seq}");
        match self.classification {
            Classification::None | Classification::UserGc => Stream(0),
            Classification::SepBit => {
                let lived = previous_write.map(|at| now_seq - at);
                Stream(u8::from(!lived.is_some_and(|lived| self.is_below(lived, 1))))
            }
        }
    }

    /// The stream of a sector moved at `now_seq` out of a line of stream `from`.
    ///
    /// `last_user_write` is when its user wrote it; `None` if nobody knows, which counts as longest ago. Only SepBIT
    /// looks at it. Cost: three comparisons.
    ///
    /// # Panics
    /// If there is no such stream, or the write is after the move.
    #[must_use]
    #[inline]
    pub fn gc_stream(&self, from: Stream, now_seq: u64, last_user_write: Option<u64>) -> Stream {
        assert!(u32::from(from.0) < self.streams(), "{from:?} is not one of {}", self.classification);
        assert!(last_user_write.is_none_or(|at| at <= now_seq), "{last_user_write:?} is after {now_seq}");
        match self.classification {
            Classification::None => Stream(0),
            Classification::UserGc => Stream(1),
            Classification::SepBit if from == Stream(0) => Stream(2),
            Classification::SepBit => {
                let age = last_user_write.map(|at| now_seq - at);
                let older = |bound: &&u64| !age.is_some_and(|age| self.is_below(age, **bound));
                let passed = AGE_BOUNDS.iter().filter(older).count();
                Stream(3 + u8::try_from(passed).expect("one of two bounds"))
            }
        }
    }

    /// Whether a time is below `bound` times `L`.
    fn is_below(&self, time: u64, bound: u64) -> bool {
        self.short_lived.is_none_or(|short_lived| time < short_lived.saturating_mul(bound))
    }

    /// A line of stream `from`, opened at `opened_at_seq`, was collected at `now_seq`.
    ///
    /// # Panics
    /// If there is no such stream, or the line was collected before it was opened.
    pub fn on_collected(&mut self, from: Stream, opened_at_seq: u64, now_seq: u64) {
        assert!(u32::from(from.0) < self.streams(), "{from:?} is not one of {}", self.classification);
        assert!(opened_at_seq <= now_seq, "collected at {now_seq}, opened at {opened_at_seq}");
        if self.classification != Classification::SepBit || from != Stream(0) {
            return;
        }
        self.collected += 1;
        self.lifetimes = self.lifetimes.saturating_add(now_seq - opened_at_seq);
        if self.collected == COLLECTED_PER_MEAN {
            self.short_lived = Some(self.lifetimes / u64::from(COLLECTED_PER_MEAN));
            self.collected = 0;
            self.lifetimes = 0;
        }
        assert!(self.collected < COLLECTED_PER_MEAN, "a mean was not taken");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;

    /// A SepBIT classifier with an `L` of `short_lived`.
    fn sepbit(short_lived: u64) -> Classifier {
        let mut classifier = Classifier::new(Classification::SepBit);
        for _ in 0..16 {
            assert_eq!(classifier.short_lived(), None);
            classifier.on_collected(Stream(0), 1_000, 1_000 + short_lived);
        }
        assert_eq!(classifier.short_lived(), Some(short_lived));
        classifier
    }

    #[test]
    fn one_stream_takes_everything_and_two_part_users_from_gc() {
        for (classification, streams, user, gc) in
            [(Classification::None, 1, 0, 0), (Classification::UserGc, 2, 0, 1)]
        {
            let mut classifier = Classifier::new(classification);
            assert_eq!(classifier.streams(), streams);
            assert!(!classification.needs_last_writes(), "{classification}");
            for _ in 0..40 {
                classifier.on_collected(Stream(0), 0, 7);
            }
            assert_eq!(classifier.short_lived(), None);
            for before in [None, Some(0), Some(1_000)] {
                assert_eq!(classifier.user_stream(1_000, before), Stream(user), "{classification}");
                assert_eq!(classifier.gc_stream(Stream(0), 1_000, before), Stream(gc), "{classification}");
            }
        }
    }

    #[test]
    fn sepbit_sorts_user_writes_by_the_life_of_what_they_replace() {
        let (fresh, known) = (Classifier::new(Classification::SepBit), sepbit(100));
        assert!(Classification::SepBit.needs_last_writes());
        assert_eq!((fresh.classification(), fresh.streams()), (Classification::SepBit, 6));
        let cases = [
            (&fresh, None, 1),
            (&fresh, Some(0), 0),
            (&fresh, Some(5_000), 0),
            (&known, None, 1),
            (&known, Some(4_901), 0),
            (&known, Some(4_900), 1),
            (&known, Some(0), 1),
        ];
        for (classifier, before, stream) in cases {
            assert_eq!(classifier.user_stream(5_000, before), Stream(stream), "{classifier:?}, {before:?}");
        }
    }

    #[test]
    fn sepbit_sorts_moved_sectors_by_where_they_come_from_and_their_age() {
        let (fresh, known) = (Classifier::new(Classification::SepBit), sepbit(100));
        for (age, stream) in
            [(Some(0), 3), (Some(399), 3), (Some(400), 4), (Some(1_599), 4), (Some(1_600), 5), (None, 5)]
        {
            let written = age.map(|age| 5_000 - age);
            assert_eq!(known.gc_stream(Stream(0), 5_000, written), Stream(2), "age {age:?}");
            for from in (1..6).map(Stream) {
                assert_eq!(
                    known.gc_stream(from, 5_000, written),
                    Stream(stream),
                    "age {age:?} from {from:?}"
                );
                let expected = if age.is_none() { 5 } else { 3 };
                assert_eq!(fresh.gc_stream(from, 5_000, written), Stream(expected), "age {age:?}");
            }
        }
    }

    #[test]
    fn the_short_life_is_the_mean_of_sixteen_lines_of_stream_0() {
        let (mut prng, mut classifier) = (Prng::new(6), Classifier::new(Classification::SepBit));
        let mut naive = Vec::new();
        for round in 0..1_000 {
            let (from, life) = (prng.below(6), prng.below(1_000));
            classifier.on_collected(Stream(u8::try_from(from).unwrap()), 77, 77 + life);
            if from == 0 {
                naive.push(life);
            }
            let mut means = naive.chunks_exact(16).map(|lives| lives.iter().sum::<u64>() / 16);
            assert_eq!(classifier.short_lived(), means.next_back(), "seed 6, round {round}");
        }
        assert!(naive.len() > 100, "seed 6");
    }

    #[test]
    fn classifications_are_read_from_their_own_names_and_nothing_else() {
        for text in ["none", "user-gc", "sepbit"] {
            assert_eq!(text.parse::<Classification>().map(|c| c.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "None", "sep-bit", "user"] {
            let error = text.parse::<Classification>().unwrap_err();
            assert_eq!(error, ClassificationError { found: text.to_owned() });
            assert!(error.to_string().contains("none, user-gc and sepbit exist"), "{error}");
        }
    }
}
