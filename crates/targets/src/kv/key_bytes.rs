//! Bytes of a key, or of a bound between keys: short ones lie in place, so that who copies or compares them touches no other
//! memory.
//!
//! Deliberately not here: keys in requests (`ocssd_lightnvm`).

use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::interface::key_value::Key;
use std::ops::Deref;

/// Bytes that lie in place (chosen: as many as fit what bytes elsewhere take, with their length; keys of NVMe have sixteen at
/// most).
const SHORT_BYTES: usize = 22;
const _: () = assert!(size_of::<KeyBytes>() == 24, "a key takes three words");

/// The first eight bytes of a key, and zeroes behind one of fewer, as a number: a key with a smaller one is less.
#[inline]
pub fn first_word(key: &[u8]) -> u64 {
    if let Some(word) = key.first_chunk() {
        return u64::from_be_bytes(*word);
    }
    let mut word = [0; 8];
    word[..key.len()].copy_from_slice(key);
    u64::from_be_bytes(word)
}

#[derive(Clone, Debug)]
enum Bytes {
    Short(u8, [u8; SHORT_BYTES]),
    Long(Box<[u8]>),
}

/// Up to 255 bytes, in their order.
#[derive(Clone, Debug)]
pub struct KeyBytes(Bytes);

impl KeyBytes {
    /// Bytes of memory beside its own.
    pub fn elsewhere_bytes(&self) -> usize {
        match &self.0 {
            Bytes::Short(..) => 0,
            Bytes::Long(bytes) => bytes.len(),
        }
    }
}

impl KeyBytes {
    /// The bytes of a request's key, which lies where it says.
    pub fn gathered(key: &Key, buffers: &Buffers) -> Self {
        match key {
            Key::Inline { length, bytes } => Self::from(&bytes[..usize::from(*length)]),
            Key::Placed(_) => Self::from(&key.gathered(buffers)[..]),
        }
    }
}

impl Default for KeyBytes {
    fn default() -> Self {
        Self(Bytes::Short(0, [0; SHORT_BYTES]))
    }
}

impl From<&[u8]> for KeyBytes {
    fn from(bytes: &[u8]) -> Self {
        assert!(bytes.len() <= usize::from(u8::MAX), "{} bytes are no key", bytes.len());
        let mut short = [0; SHORT_BYTES];
        let Some(room) = short.get_mut(..bytes.len()) else { return Self(Bytes::Long(bytes.into())) };
        room.copy_from_slice(bytes);
        Self(Bytes::Short(u8::try_from(bytes.len()).expect("it was looked at"), short))
    }
}

impl Deref for KeyBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Short(length, bytes) => &bytes[..usize::from(*length)],
            Bytes::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for KeyBytes {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for KeyBytes {}

impl PartialOrd for KeyBytes {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyBytes {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self[..].cmp(&other[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_their_bytes_wherever_these_lie() {
        let all: Vec<Vec<u8>> =
            vec![vec![], vec![0], vec![0, 0], vec![1; 22], vec![1; 23], vec![1; 255], vec![2]];
        for pair in all.windows(2) {
            let [low, high] = [&pair[0], &pair[1]].map(|bytes| KeyBytes::from(&bytes[..]));
            assert!(low < high && low != high && low == low.clone(), "{pair:02X?}");
            assert_eq!((&low[..], &high[..]), (&pair[0][..], &pair[1][..]));
        }
        let elsewhere = all.iter().map(|bytes| KeyBytes::from(&bytes[..]).elsewhere_bytes());
        assert_eq!(elsewhere.collect::<Vec<_>>(), [0, 0, 0, 0, 23, 255, 0]);
    }
}
