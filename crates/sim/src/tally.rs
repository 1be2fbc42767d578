//! What a run exercised: counts by name, which add up over seeds.
//!
//! A green run has to show that it did something. Deliberately not here: how they are shown.

use std::collections::BTreeMap;

/// Counts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<&'static str, u64>);

impl Tally {
    /// Counts `count` more of `name`. A count of nothing leaves a mark that shows what never happened.
    pub fn add(&mut self, name: &'static str, count: u64) {
        *self.0.entry(name).or_insert(0) += count;
    }

    /// How many were counted.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(name, &count)| self.add(name, count));
    }

    /// All counts by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(&name, &count)| (name, count))
    }
}
