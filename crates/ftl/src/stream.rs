//! Streams: what is written apart, so that what dies together lies together.

/// A stream of writes, from 0. Each has its own open line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream(pub u8);

impl Stream {
    /// As an index.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
