//! Lower bounds of pages: short ones lie in the tree itself, so that a descent touches no other memory.
//!
//! Deliberately not here: which bound a page has.

use std::borrow::Borrow;
use std::ops::Deref;

/// Bytes of a bound that lie in the tree (chosen: as many as fit what a bound elsewhere takes, with its length; keys of NVMe have
/// sixteen at most).
const SHORT_BYTES: usize = 22;
const _: () = assert!(size_of::<Lower>() == 24, "a bound takes three words");

#[derive(Clone, Debug)]
enum Bytes {
    Short(u8, [u8; SHORT_BYTES]),
    Long(Box<[u8]>),
}

/// A lower bound: bytes, in their order.
#[derive(Clone, Debug)]
pub struct Lower(Bytes);

impl Lower {
    /// Bytes of memory beside the tree's.
    pub fn elsewhere_bytes(&self) -> usize {
        match &self.0 {
            Bytes::Short(..) => 0,
            Bytes::Long(bytes) => bytes.len(),
        }
    }
}

impl Default for Lower {
    fn default() -> Self {
        Self(Bytes::Short(0, [0; SHORT_BYTES]))
    }
}

impl From<&[u8]> for Lower {
    fn from(bytes: &[u8]) -> Self {
        assert!(bytes.len() <= usize::from(u8::MAX), "a bound of {} bytes is no key's", bytes.len());
        let mut short = [0; SHORT_BYTES];
        let Some(room) = short.get_mut(..bytes.len()) else { return Self(Bytes::Long(bytes.into())) };
        room.copy_from_slice(bytes);
        Self(Bytes::Short(u8::try_from(bytes.len()).expect("it was looked at"), short))
    }
}

impl Deref for Lower {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Short(length, bytes) => &bytes[..usize::from(*length)],
            Bytes::Long(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for Lower {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Lower {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for Lower {}

impl PartialOrd for Lower {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Lower {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self[..].cmp(&other[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_ordered_as_their_bytes_wherever_these_lie() {
        let all: Vec<Vec<u8>> =
            vec![vec![], vec![0], vec![0, 0], vec![1; 22], vec![1; 23], vec![1; 255], vec![2]];
        for pair in all.windows(2) {
            let [low, high] = [&pair[0], &pair[1]].map(|bytes| Lower::from(&bytes[..]));
            assert!(low < high && low != high && low == low.clone(), "{pair:02X?}");
            assert_eq!((&low[..], &high[..]), (&pair[0][..], &pair[1][..]));
        }
        let elsewhere = all.iter().map(|bytes| Lower::from(&bytes[..]).elsewhere_bytes());
        assert_eq!(elsewhere.collect::<Vec<_>>(), [0, 0, 0, 0, 23, 255, 0]);
    }
}
