//! Bloom filters, by what they answer: a key that is there is found, and of others a known part is not excluded.
//!
//! Deliberately not here: bits. The same key and table always give the same answer.

/// How often a filter with the best number of probes is wrong: 0.6185 to the power of bits for each key (Broder and
/// Mitzenmacher, "Network applications of Bloom filters", 2004).
const PER_BIT: f64 = 0.618_5;

/// The filters of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filters {
    /// Of 2^64 answers about absent keys, those that are wrong; all without filters.
    wrong: u64,
}

/// Three rounds of multiply and shift, which spread every bit (MurmurHash3's finaliser).
const fn spread(mut number: u64) -> u64 {
    number = (number ^ (number >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    number = (number ^ (number >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ (number >> 33)
}

impl Filters {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of 2^64, saturating")]
    pub(super) fn new(bits: u32) -> Self {
        let part = PER_BIT.powi(i32::try_from(bits).expect("at most a hundred bits"));
        Self { wrong: if bits == 0 { u64::MAX } else { (part * 2.0_f64.powi(64)) as u64 } }
    }

    /// True if the filter of `table` does not exclude `key`, which the table does not have.
    pub(super) const fn is_wrong(self, table: u64, key: u64) -> bool {
        spread(spread(table) ^ key) <= self.wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_answers_are_wrong_as_the_bits_say() {
        for (bits, from, to) in [(0, 100_000, 100_000), (10, 700, 950), (14, 80, 160), (100, 0, 0)] {
            let filters = Filters::new(bits);
            let wrong = (0..100_000).filter(|&key| filters.is_wrong(7, key)).count();
            assert!((from..=to).contains(&wrong), "{bits} bits: {wrong} of 100,000");
        }
    }
}
