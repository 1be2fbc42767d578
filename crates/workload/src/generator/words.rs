//! Options as people write them: `name=value` with commas or spaces between.
//!
//! Each generator asks for the options it has; what was given and not asked for is refused, with the nearest name. All
//! that is wrong is told at once. Deliberately not here: which options there are.

use crate::job::{KbBase, did_you_mean, parse_integer};
use ocssd_base::Problems;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Options that were given, and what is wrong with them.
#[derive(Clone, Debug)]
pub struct Words {
    given: BTreeMap<String, String>,
    asked: Vec<&'static str>,
    problems: Problems,
}

impl Words {
    /// Takes options apart that have commas or spaces between.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self::split(text.split([',', ' ', '\n']))
    }

    /// Takes flags apart that have spaces between and may have commas in them, with or without two dashes before.
    #[must_use]
    pub fn flags(text: &str) -> Self {
        Self::split(text.split_whitespace().map(|word| word.trim_start_matches("--")))
    }

    fn split<'a>(parts: impl Iterator<Item = &'a str>) -> Self {
        let mut words = Self { given: BTreeMap::new(), asked: Vec::new(), problems: Problems::default() };
        for word in parts.filter(|word| !word.is_empty()) {
            let Some((name, value)) = word.split_once('=') else {
                words.problems.require(false, word, "without a value", "options are written name=value");
                continue;
            };
            let twice = words.given.insert(name.to_owned(), value.to_owned()).is_some();
            words.problems.require(!twice, name, "given twice", "an option is given once");
        }
        words
    }

    fn value(&mut self, name: &'static str) -> Option<String> {
        self.asked.push(name);
        self.given.get(name).cloned()
    }

    /// Any text.
    pub fn text(&mut self, name: &'static str) -> Option<String> {
        self.value(name)
    }

    /// A whole number within bounds, with fio's suffixes: `4k` is 4,096.
    pub fn number(&mut self, name: &'static str, default: u64, bounds: RangeInclusive<u64>) -> u64 {
        let Some(text) = self.value(name) else { return default };
        let number = parse_integer(&text, KbBase::Binary).ok().filter(|number| bounds.contains(number));
        let expected = format!("it must be a whole number from {} to {}", bounds.start(), bounds.end());
        self.problems.require(number.is_some(), name, &text, &expected);
        number.unwrap_or(default)
    }

    /// As [`Self::number`], of 32 bits.
    pub fn number32(&mut self, name: &'static str, default: u32, bounds: RangeInclusive<u32>) -> u32 {
        let bounds = u64::from(*bounds.start())..=u64::from(*bounds.end());
        u32::try_from(self.number(name, u64::from(default), bounds)).expect("bounds of 32 bits")
    }

    /// A fraction or a constant within bounds.
    pub fn decimal(&mut self, name: &'static str, default: f64, bounds: RangeInclusive<f64>) -> f64 {
        let Some(text) = self.value(name) else { return default };
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        let expected = format!("it must be a number from {} to {}", bounds.start(), bounds.end());
        self.problems.require(number.is_some(), name, &text, &expected);
        number.unwrap_or(default)
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&mut self, name: &'static str, default: T, choices: &[(&str, T)]) -> T {
        let Some(text) = self.value(name) else { return default };
        self.chosen(name, &text, choices).unwrap_or(default)
    }

    /// Some of a few words, with commas between.
    pub fn choices<T: Copy>(&mut self, name: &'static str, default: &[T], choices: &[(&str, T)]) -> Vec<T> {
        let Some(text) = self.value(name) else { return default.to_vec() };
        text.split(',').filter_map(|word| self.chosen(name, word, choices)).collect()
    }

    fn chosen<T: Copy>(&mut self, name: &'static str, text: &str, choices: &[(&str, T)]) -> Option<T> {
        let chosen = choices.iter().find(|(word, _)| *word == text).map(|&(_, choice)| choice);
        let known: Vec<&str> = choices.iter().map(|&(word, _)| word).collect();
        let hint = did_you_mean(text, known.iter().copied());
        let expected = format!("it must be one of {}{hint}", known.join(", "));
        self.problems.require(chosen.is_some(), name, text, &expected);
        chosen
    }

    /// Notes what is wrong between options.
    pub fn require(
        &mut self,
        holds: bool,
        name: &'static str,
        found: impl std::fmt::Display,
        expected: &str,
    ) {
        self.problems.require(holds, name, found, expected);
    }

    /// Nothing, if every option could be used.
    ///
    /// # Errors
    /// All that is wrong, options that were not asked for included.
    pub fn finish(mut self) -> Result<(), Problems> {
        for name in self.given.keys().filter(|name| !self.asked.contains(&name.as_str())) {
            let hint = did_you_mean(name, self.asked.iter().copied());
            let expected = format!("there are only {}{hint}", self.asked.join(", "));
            self.problems.require(false, name, "no option", &expected);
        }
        self.problems.into_result()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Words, (u64, f64, u8)) {
        let mut words = Words::new(text);
        let values = (
            words.number("recordcount", 10, 1..=1 << 20),
            words.decimal("readproportion", 0.5, 0.0..=1.0),
            words.choice("distribution", 0, &[("zipfian", 1), ("latest", 2)]),
        );
        (words, values)
    }

    #[test]
    fn options_are_read_and_have_defaults() {
        let (words, values) = read("recordcount=4k, distribution=latest");
        assert_eq!(values, (4_096, 0.5, 2));
        assert_eq!(words.finish(), Ok(()));
    }

    #[test]
    fn what_is_wrong_is_told_in_sentences_all_at_once() {
        for (text, says) in [
            ("recordcount=0", "recordcount is 0, but it must be a whole number from 1 to 1048576"),
            ("recordcount=many", "recordcount is many"),
            ("readproportion=1.5", "from 0 to 1"),
            ("readproportion=NaN", "readproportion is NaN"),
            ("distribution=zipfan", "did you mean `zipfian`?"),
            ("recordcont=5", "did you mean `recordcount`?"),
            ("recordcount", "options are written name=value"),
            ("recordcount=1,recordcount=2", "given twice"),
        ] {
            let problem = read(text).0.finish().expect_err(text).to_string();
            assert!(problem.contains(says), "{text}: {problem}");
        }
        let problems = read("recordcount=0,distribution=x,y=1").0.finish().expect_err("three are wrong");
        assert_eq!(problems.0.len(), 3);
    }
}
