//! Seeded randomness: xoshiro256** seeded by SplitMix64 (Blackman and Vigna, 2018).
//!
//! Each consumer takes its own generator by [`Prng::split`], so that one more draw in one place changes nothing
//! elsewhere. Deliberately not here: any source of entropy, and anything cryptographic.

/// A deterministic random number generator; the same seed gives the same numbers on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prng {
    state: [u64; 4],
}

/// One step of SplitMix64: turns any 64 bits, also small or similar ones, into well mixed ones.
#[inline(always)]
const fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Prng {
    /// A generator whose whole future follows from `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        let a = mix(seed);
        let b = mix(a);
        let c = mix(b);
        Self { state: [a, b, c, mix(c)] }
    }

    /// 64 bits for a place under a seed: the same whenever they are asked for, and in whatever order. For what belongs to a
    /// place, and not to a moment.
    #[must_use]
    #[inline(always)]
    pub const fn of_place(seed: u64, place: u64) -> u64 {
        mix(seed ^ place)
    }

    /// An independent generator for the consumer called `label`; this generator is not advanced.
    #[must_use]
    pub fn split(&self, label: &str) -> Self {
        let folded = label.bytes().fold(self.state[0] ^ self.state[2], |h, b| mix(h ^ u64::from(b)));
        Self::new(folded)
    }

    /// 64 uniform bits.
    #[inline(always)]
    pub fn next_u64(&mut self) -> u64 {
        let result = self.state[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = self.state[1] << 17;
        self.state[2] ^= self.state[0];
        self.state[3] ^= self.state[1];
        self.state[1] ^= self.state[2];
        self.state[0] ^= self.state[3];
        self.state[2] ^= t;
        self.state[3] = self.state[3].rotate_left(45);
        result
    }

    /// Uniform in `0..bound`. The bias is below `bound / 2^64`, which no run here can show.
    ///
    /// # Panics
    /// If `bound` is zero.
    #[inline(always)]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a number below zero was asked for");
        let product = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).expect("the high half of a 128-bit product")
    }

    /// True with probability `chance / 2^32`; `1 << 32` and above is always.
    pub fn chance(&mut self, chance: u64) -> bool {
        (self.next_u64() >> 32) < chance
    }

    /// Uniform in `0.0..1.0`, 53 bits.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit the mantissa")]
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_repeats_and_another_differs() {
        let draw = |seed| {
            let mut prng = Prng::new(seed);
            [prng.next_u64(), prng.next_u64(), prng.next_u64()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn a_split_depends_on_its_label_and_leaves_the_parent_alone() {
        let parent = Prng::new(1);
        assert_eq!(parent.split("wear"), parent.split("wear"));
        assert_ne!(parent.split("wear"), parent.split("faults"));
        assert_eq!(parent, Prng::new(1));
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut prng = Prng::new(3);
        let mut seen = [0u32; 6];
        for _ in 0..6_000 {
            seen[usize::try_from(prng.below(6)).expect("below six")] += 1;
        }
        assert!(seen.iter().all(|&count| (850..1_150).contains(&count)), "seed 3: {seen:?}");
    }

    #[test]
    fn a_chance_is_kept_at_both_ends_and_between() {
        let mut prng = Prng::new(4);
        assert!((0..1_000).all(|_| prng.chance(1 << 32)));
        assert!((0..1_000).all(|_| !prng.chance(0)));
        let hits = (0..10_000).filter(|_| prng.chance(1 << 31)).count();
        assert!((4_800..5_200).contains(&hits), "seed 4: {hits}");
    }
}
