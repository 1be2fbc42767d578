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
