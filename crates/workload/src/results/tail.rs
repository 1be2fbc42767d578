//! What the slowest I/Os of a run waited for.
//!
//! Deliberately not here: how that is found out (the program that has the drive), and latencies (`latency`).

use super::model::Direction;
use ocssd_base::Nanos;
use serde_json::{Value, json};

/// What took most of an I/O's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blame {
    /// The unit was erasing a chunk.
    Reset,
    /// The unit was programming.
    Program,
    /// The unit was sensing for another read.
    Read,
    /// Others had the channel.
    Channel,
    /// The link to the host, or room in the drive's cache.
    Link,
    /// Nothing: the media took that long.
    Media,
    /// It was not in the drive: a write buffer without room, the FTL, the host's processor.
    Outside,
}

impl Blame {
    /// The word for machines.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Program => "program",
            Self::Read => "read",
            Self::Channel => "channel",
            Self::Link => "link",
            Self::Media => "media",
            Self::Outside => "outside",
        }
    }

    const fn place_word(self) -> &'static str {
        if matches!(self, Self::Channel) { "channels" } else { "units" }
    }

    const fn phrase(self) -> &'static str {
        match self {
            Self::Reset => "waited for a reset",
            Self::Program => "waited for a program",
            Self::Read => "waited for another read",
            Self::Channel => "waited for others' data",
            Self::Link => "waited for the link or the drive's cache",
            Self::Media => "waited for little, the media took that long",
            Self::Outside => "waited outside the drive (write buffer, FTL or host)",
        }
    }
}

/// One cause of slow I/Os.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailCause {
    /// What.
    pub blame: Blame,
    /// I/Os whose time it took most of.
    pub ios: u64,
    /// Where, as addresses are written, and how many of them there; the most first. Empty if it has no place.
    pub places: Vec<(String, u64)>,
    /// The longest of these times.
    pub longest: Nanos,
}

/// The I/Os of a direction beyond a percentile, by what they waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Tail {
    /// Reads or writes.
    pub direction: Direction,
    /// The percentile they are beyond.
    pub percentile: f64,
    /// How many they are.
    pub ios: u64,
    /// The quickest of them took this.
    pub latency: Nanos,
    /// Why; the cause of most first.
    pub causes: Vec<TailCause>,
}

impl Tail {
    /// The highest percentile of so many I/Os that ten or more are beyond (rule L11), and how many are: 10 to 99. `None` below
    /// 1 000 I/Os.
    #[must_use]
    pub fn percentile_of(ios: u64) -> Option<(f64, u64)> {
        let mut found = None;
        let (mut beyond, mut part) = (ios / 100, 0.01);
        while beyond >= 10 {
            // Rounded, so that it is the number people write.
            let percentile = ((1.0 - part) * 1e9_f64).round() / 1e7;
            found = Some((percentile, beyond));
            (beyond, part) = (beyond / 10, part / 10.0);
        }
        found
    }

    /// "reads beyond p99.9: 41 of 50 waited for a reset on g3/p1, 2.90 ms at most".
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { direction, percentile, ios, .. } = self;
        let mut text = format!("{}s beyond p{percentile}: ", direction.name());
        for (number, cause) in self.causes.iter().enumerate().take(2) {
            // The second is told if a fifth of them are its (chosen).
            if number > 0 && cause.ios * 5 < *ios {
                break;
            }
            let told = cause.sentence();
            text += &if number == 0 {
                format!("{} of {ios} {told}", cause.ios)
            } else {
                format!("; {} {told}", cause.ios)
            };
        }
        text
    }

    /// As a JSON object, all causes included.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let causes: Vec<Value> = self.causes.iter().map(TailCause::to_json).collect();
        json!({
            "direction": self.direction.name(),
            "percentile": self.percentile,
            "ios": self.ios,
            "latency_ns": self.latency.0,
            "causes": causes,
        })
    }
}

impl TailCause {
    fn sentence(&self) -> String {
        let place = match &self.places[..] {
            [] => String::new(),
            [(only, _)] => format!(" on {only}"),
            [(most, there), rest @ ..] if there * 2 >= self.ios => {
                format!(" on {most} and {} more", rest.len())
            }
            all => format!(" on {} {}", all.len(), self.blame.place_word()),
        };
        format!("{}{place}, {} at most", self.blame.phrase(), self.longest)
    }

    fn to_json(&self) -> Value {
        let places: Vec<Value> =
            self.places.iter().map(|(at, ios)| json!({ "at": at, "ios": ios })).collect();
        json!({
            "waited_for": self.blame.word(),
            "ios": self.ios,
            "longest_ns": self.longest.0,
            "places": places,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_has_ten_beyond_it() {
        let cases = [
            (999, None),
            (1_000, Some((99.0, 10))),
            (9_999, Some((99.0, 99))),
            (10_000, Some((99.9, 10))),
            (50_000, Some((99.9, 50))),
            (1_000_000, Some((99.999, 10))),
            (123_456_789, Some((99.999_99, 12))),
        ];
        for (ios, expected) in cases {
            assert_eq!(Tail::percentile_of(ios), expected, "{ios}");
        }
    }

    #[test]
    fn the_sentence_says_how_many_what_where_and_how_long() {
        let cause = |blame, ios, places: &[(&str, u64)]| TailCause {
            blame,
            ios,
            places: places.iter().map(|&(at, ios)| (at.to_owned(), ios)).collect(),
            longest: Nanos::from_micros(2_900),
        };
        let tail = |causes| Tail {
            direction: Direction::Read,
            percentile: 99.9,
            ios: 50,
            latency: Nanos::from_micros(500),
            causes,
        };
        let one = tail(vec![cause(Blame::Reset, 41, &[("g3/p1", 41)]), cause(Blame::Media, 9, &[])]);
        assert_eq!(
            one.sentence(),
            "reads beyond p99.9: 41 of 50 waited for a reset on g3/p1, 2.90 ms at most"
        );
        let two = tail(vec![
            cause(Blame::Program, 30, &[("g0/p0", 20), ("g0/p1", 10)]),
            cause(Blame::Channel, 20, &[("g0", 8), ("g1", 7), ("g2", 5)]),
        ]);
        assert_eq!(
            two.sentence(),
            "reads beyond p99.9: 30 of 50 waited for a program on g0/p0 and 1 more, 2.90 ms at most; \
             20 waited for others' data on 3 channels, 2.90 ms at most"
        );
        assert_eq!(one.to_json()["causes"][0]["places"][0]["at"], "g3/p1");
    }
}
