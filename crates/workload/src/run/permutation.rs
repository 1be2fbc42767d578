//! Every number below a bound once, in an order that looks random: fio's random map without its memory.
//!
//! A four-round Feistel network over the next even number of bits, walked until the result is below the bound (at most
//! four steps on average). Deliberately not here: any claim to secrecy.

/// An order of the numbers `0..bound`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    bound: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// The order that follows from `seed`.
    pub(super) fn new(bound: u64, seed: u64) -> Self {
        assert!(bound > 0, "an order of nothing");
        let bits = (u64::BITS - (bound - 1).leading_zeros()).max(2);
        let mut prng = ocssd_base::Prng::new(seed);
        Self { bound, half_bits: bits.div_ceil(2), keys: std::array::from_fn(|_| prng.next_u64()) }
    }

    /// The number at `index`.
    pub(super) fn at(&self, index: u64) -> u64 {
        assert!(index < self.bound, "beyond the last number");
        let mut value = self.step(index);
        while value >= self.bound {
            value = self.step(value);
        }
        value
    }

    const fn step(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        let mut round = 0;
        while round < self.keys.len() {
            let mixed = (right ^ self.keys[round]).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (left, right) = (right, (left ^ (mixed >> 32)) & mask);
            round += 1;
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for bound in [1, 2, 3, 7, 64, 1000, 4097] {
            let order = Permutation::new(bound, 5);
            let mut seen: Vec<u64> = (0..bound).map(|index| order.at(index)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..bound), "bound {bound}");
        }
    }

    #[test]
    fn another_seed_is_another_order() {
        let first = |seed| (0..8).map(|index| Permutation::new(1 << 20, seed).at(index)).collect::<Vec<_>>();
        assert_ne!(first(1), first(2));
        assert_eq!(first(1), first(1));
    }
}
