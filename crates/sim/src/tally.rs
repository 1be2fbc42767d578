//! What a run exercised: counts by name, which add up over seeds.
//!
//! A green run has to show that it did something. Deliberately not here: how they are shown.

use std::collections::BTreeMap;

/// Counts by name.
///
/// Names come in the same order again and again, a target's counters after every mount. So the name behind the last one is
/// looked at first, and others are looked for by where their text lies before it is compared.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// In the order names first came.
    counts: Vec<(&'static str, u64)>,
    /// The place behind the last one counted.
    next: usize,
}

impl Tally {
    /// Counts `count` more of `name`. A count of nothing leaves a mark that shows what never happened.
    pub fn add(&mut self, name: &'static str, count: u64) {
        let guess = self.counts.get(self.next).is_some_and(|&(known, _)| std::ptr::eq(known, name));
        let place = if guess { self.next } else { self.place(name) };
        self.counts[place].1 += count;
        self.next = place + 1;
    }

    /// The place of a name, made if it is new.
    fn place(&mut self, name: &'static str) -> usize {
        let same = self.counts.iter().position(|&(known, _)| std::ptr::eq(known, name));
        // The same name may be written down twice in a program.
        same.or_else(|| self.counts.iter().position(|&(known, _)| known == name)).unwrap_or_else(|| {
            self.counts.push((name, 0));
            self.counts.len() - 1
        })
    }

    /// How many were counted.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        self.counts.iter().find(|&&(known, _)| known == name).map_or(0, |&(_, count)| count)
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: &Self) {
        other.counts.iter().for_each(|&(name, count)| self.add(name, count));
    }

    /// All counts in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().copied().collect::<BTreeMap<_, _>>().into_iter()
    }
}

impl PartialEq for Tally {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Tally {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_by_name_in_whatever_order_names_come() {
        let (mut one, mut two) = (Tally::default(), Tally::default());
        for (name, count) in [("b", 1), ("a", 0), ("c", 3), ("b", 2)] {
            one.add(name, count);
        }
        // Another text of the same name.
        for name in ["a", String::from("b").leak(), "c"] {
            two.add(name, if name == "a" { 0 } else { 3 });
        }
        assert_eq!(one, two);
        assert_eq!(one.iter().collect::<Vec<_>>(), [("a", 0), ("b", 3), ("c", 3)]);
        one.merge(&two);
        assert_eq!((one.of("a"), one.of("b"), one.of("never")), (0, 6, 0));
    }
}
