//! Lists of steps as one writes them: `3,17-20`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Steps of a plan, as ranges in the order they were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps(Vec<RangeInclusive<usize>>);

impl Steps {
    /// Those of an ascending list.
    pub fn of(indices: &[usize]) -> Self {
        assert!(indices.is_sorted(), "steps come in order");
        let mut ranges: Vec<RangeInclusive<usize>> = Vec::new();
        for &index in indices {
            match ranges.last_mut() {
                Some(last) if *last.end() + 1 == index => *last = *last.start()..=index,
                _ => ranges.push(index..=index),
            }
        }
        Self(ranges)
    }

    /// True if the step is among them.
    pub fn contains(&self, index: usize) -> bool {
        self.0.iter().any(|range| range.contains(&index))
    }

    /// The last of them; `None` of an empty list.
    pub fn last(&self) -> Option<usize> {
        self.0.iter().map(|range| *range.end()).max()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for Steps {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "steps are numbers and ranges of them with commas between, as 3,17-20; \"{text}\" was given"
            )
        };
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some(first..=last)
        };
        text.split(',').map(range).collect::<Option<_>>().map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match (range.start(), range.end()) {
                (first, last) if first == last => write!(f, "{comma}{first}")?,
                (first, last) => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_is_written() {
        for (text, indices) in
            [("3", vec![3]), ("3,17-20", vec![3, 17, 18, 19, 20]), ("0-1,3", vec![0, 1, 3])]
        {
            let steps: Steps = text.parse().expect(text);
            assert_eq!(steps, Steps::of(&indices), "{text}");
            assert_eq!(steps.to_string(), text);
            assert_eq!(steps.last(), indices.last().copied(), "{text}");
            let contained: Vec<usize> = (0..30).filter(|&index| steps.contains(index)).collect();
            assert_eq!(contained, indices, "{text}");
        }
        for wrong in ["", ",", "3,", "20-17", "a", "1-2-3", "-4", "3;4", "1 -2"] {
            assert!(wrong.parse::<Steps>().is_err(), "{wrong:?} was taken");
        }
        assert!(Steps::of(&[]).is_empty() && Steps::of(&[]).last().is_none());
    }
}
