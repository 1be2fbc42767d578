//! Bytes that several have without a copy: a value that a client sent or that was read, in a request, a change and an answer.

use std::fmt;
use std::ops::{Deref, Range};
use std::rc::Rc;

/// A part of bytes that others may have too; nobody changes them.
#[derive(Clone)]
pub struct SharedBytes {
    all: Rc<Vec<u8>>,
    range: Range<usize>,
}

impl SharedBytes {
    /// These of all bytes.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn part(all: &Rc<Vec<u8>>, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= all.len(), "{range:?} of {} bytes", all.len());
        Self { all: Rc::clone(all), range }
    }

    /// Somebody else has bytes of the same memory.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Rc::strong_count(&self.all) > 1
    }

    /// Some of these bytes.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.end <= self.len(), "{range:?} of {} bytes", self.len());
        Self::part(&self.all, self.range.start + range.start..self.range.start + range.end)
    }

    /// These bytes without the first `count`, at most all.
    #[must_use]
    pub fn behind(mut self, count: usize) -> Self {
        self.range.start = self.range.end.min(self.range.start + count);
        self
    }
}

impl Deref for SharedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.all[self.range.clone()]
    }
}

impl From<Vec<u8>> for SharedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Self { all: Rc::new(bytes), range }
    }
}

impl From<&[u8]> for SharedBytes {
    /// A copy of them.
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl PartialEq for SharedBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SharedBytes {}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_part_is_not_copied() {
        let all = SharedBytes::from((0..100).collect::<Vec<u8>>());
        let behind = all.clone().behind(10);
        for (first, end) in [(0, 90), (0, 0), (7, 30), (90, 90)] {
            let part = behind.slice(first..end);
            assert_eq!(*part, all[10 + first..10 + end]);
            assert_eq!(part.as_ptr(), all[10 + first..].as_ptr());
        }
    }
}
