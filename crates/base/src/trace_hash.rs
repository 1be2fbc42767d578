//! One number for everything that happened, in order: two runs with the same hash did the same.
//!
//! Deliberately not here: any claim against an adversary. It detects accidents.

use crate::Nanos;

/// A running 64-bit hash of a sequence of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceHash(u64);

impl Default for TraceHash {
    fn default() -> Self {
        // The offset basis of FNV-1a (Fowler, Noll, Vo), so that an empty trace is not zero.
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl TraceHash {
    /// Adds one word. Cost: one multiplication.
    pub const fn word(&mut self, word: u64) {
        // An odd 64-bit constant with no structure: the fractional part of the golden ratio, as SplitMix64 uses it.
        self.0 = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }

    /// Adds a time.
    pub const fn time(&mut self, at: Nanos) {
        self.word(at.0);
    }

    /// The hash of all words so far.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_content_both_count() {
        let of = |words: &[u64]| {
            let mut hash = TraceHash::default();
            words.iter().for_each(|&word| hash.word(word));
            hash.value()
        };
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[]), of(&[0]));
    }
}
