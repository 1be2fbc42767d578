//! Values that are changed in part: APPEND, SETRANGE, SETBIT. The new value is made from the old one and what it is given, and of
//! megabytes that takes a while: so much in each turn, until all is there.
//!
//! Deliberately not here: who asks for what.

use super::command::{Call, Refused};

/// What is changed of a value.
#[derive(Clone, Copy, Debug)]
pub struct Patch<'a> {
    /// The first byte that is replaced; zeroes lead to it from the end of a value that is shorter.
    pub at: usize,
    /// What is there from then on. The sum of both is a length.
    pub with: &'a [u8],
}

impl Patch<'_> {
    /// Bytes of the new value, if the old one has so many.
    #[must_use]
    pub fn len(self, before: usize) -> usize {
        before.max(self.at + self.with.len())
    }

    /// Adds to `made`, the beginning of the new value, what comes next, at most `most` bytes; returns how many.
    fn go_on(self, before: &[u8], made: &mut Vec<u8>, most: usize) -> usize {
        let (begun, end) = (made.len(), self.len(before.len()).min(made.len() + most));
        while made.len() < end {
            let from = made.len();
            let until = |end_of_part: usize| end_of_part.min(end);
            if (self.at..self.at + self.with.len()).contains(&from) {
                let part = from - self.at..until(self.at + self.with.len()) - self.at;
                made.extend_from_slice(&self.with[part]);
            } else if from < before.len() {
                let next = if from < self.at { self.at } else { before.len() };
                made.extend_from_slice(&before[from..until(next.min(before.len()))]);
            } else {
                made.resize(until(self.at), 0);
            }
        }
        made.len() - begun
    }
}

impl Call<'_> {
    /// Goes on with the new value of a key, as far as the turn reaches. True if the key has it now; else it goes on in a later
    /// turn, with the same patch.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn patch(&mut self, key: &[u8], patch: Patch<'_>) -> Result<bool, Refused> {
        let value = self.view.value(key);
        let before = value.map_or(&[][..], |value| value);
        let len = patch.len(before.len());
        let mut made = match self.progress.made.take() {
            Some(made) => made,
            None => {
                // Room for a value of that length is there since it was read, unless an answer or another key keeps the old one.
                let kept = value.filter(|value| value.is_shared()).map_or(0, |value| value.len());
                self.memory.hold(len - before.len() + kept)?;
                // All of it at once, or what is made would be moved again and again.
                Vec::with_capacity(len)
            }
        };
        self.share.copy_bytes -= patch.go_on(before, &mut made, self.share.copy_bytes);
        if made.len() < len {
            self.progress.made = Some(made);
            return Ok(false);
        }
        self.view.replace(key, made);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;

    /// What is made in parts of any sizes is what is made at once by a copy that is changed in its place.
    #[test]
    fn a_value_that_is_made_in_parts_is_the_old_one_with_the_patch_in_it() {
        for seed in 0..2000 {
            let mut random = Prng::new(seed);
            let mut below = |bound: u64| usize::try_from(random.below(bound)).unwrap();
            let before: Vec<u8> = (0..below(40)).map(|at| 1 + at.to_le_bytes()[0]).collect();
            let patch = Patch { at: below(50), with: &[0xAA; 30][..below(31)] };
            let mut expected = before.clone();
            expected.resize(patch.len(before.len()), 0);
            expected[patch.at..][..patch.with.len()].copy_from_slice(patch.with);
            let mut made = Vec::with_capacity(expected.len());
            while made.len() < expected.len() {
                let (most, from) = (1 + below(12), made.len());
                let count = patch.go_on(&before, &mut made, most);
                assert_eq!(made.len(), from + count, "seed {seed}");
                assert!(0 < count && count <= most, "seed {seed}: {count} of at most {most}");
            }
            assert_eq!(made, expected, "seed {seed}: {patch:?} of {} bytes", before.len());
            assert_eq!(patch.go_on(&before, &mut made, 9), 0, "seed {seed}: it went on beyond the end");
        }
    }
}
