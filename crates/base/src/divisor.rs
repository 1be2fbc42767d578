//! Division by a number that is known early, as a multiplication.
//!
//! A 64-bit division takes 35 to 90 cycles on the processors of this decade's servers (Agner Fog's tables, Skylake-X),
//! and turning a block into a place takes several; they were a sixth of a simulated read. Deliberately not here:
//! dividing by zero.

/// A divisor and its reciprocal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor {
    value: u64,
    /// `floor(2^64 / value) + 1`.
    magic: u64,
    /// Below this the multiplication is exact; above it the machine divides.
    limit: u64,
}

impl Divisor {
    /// To divide by `value`.
    ///
    /// # Panics
    /// If `value` is zero.
    #[must_use]
    pub fn new(value: u64) -> Self {
        assert!(value > 0, "nothing can be divided by zero");
        // For 1 the reciprocal needs 65 bits; a limit of 0 leaves it to the plain path.
        let limit = if value == 1 { 0 } else { u64::MAX / value };
        Self { value, magic: (u64::MAX / value).wrapping_add(1), limit }
    }

    /// The divisor.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.value
    }

    /// Quotient and remainder of `number`.
    ///
    /// With `magic * value = 2^64 + e`, `e <= value`, the product exceeds `number / value * 2^64` by less than
    /// `number * e / value <= number`, which is too little to reach the next quotient while `number * value < 2^64`.
    #[must_use]
    #[inline(always)]
    pub fn div_rem(self, number: u64) -> (u64, u64) {
        if number < self.limit {
            let product = u128::from(number) * u128::from(self.magic);
            let quotient = u64::try_from(product >> 64).expect("the high half of a product");
            // The quotient is exact, so neither step can wrap.
            (quotient, number.wrapping_sub(quotient.wrapping_mul(self.value)))
        } else if self.value == 1 {
            (number, 0)
        } else {
            (number / self.value, number % self.value)
        }
    }

    /// Quotient and remainder of a 32-bit number. Both are no more than the number; the remainder's upper half is masked
    /// for the compiler to know it, and to leave out a remainder that nobody wants.
    #[must_use]
    #[inline(always)]
    pub fn div_rem_u32(self, number: u32) -> (u32, u32) {
        let (quotient, remainder) = self.div_rem(u64::from(number));
        let narrow = |part: u64| u32::try_from(part & u64::from(u32::MAX)).expect("half a word");
        (narrow(quotient), narrow(remainder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    #[test]
    fn it_divides_like_the_machine() {
        let mut prng = Prng::new(17);
        let edges = [1, 2, 3, 5, 16, 24, 1067, 4096, u64::from(u32::MAX), 1 << 33, u64::MAX - 1, u64::MAX];
        for round in 0..20_000u64 {
            let edge = edges[usize::try_from(round / 2).expect("a small number") % edges.len()];
            let drawn = (prng.next_u64() >> (round % 64)).max(1);
            let value = if round % 2 == 0 { edge } else { drawn };
            let divisor = Divisor::new(value);
            let near = (prng.next_u64() >> (round % 63)) / value * value;
            for number in [near, near.saturating_sub(1), near.saturating_add(1), prng.next_u64(), 0, u64::MAX]
            {
                assert_eq!(
                    divisor.div_rem(number),
                    (number / value, number % value),
                    "seed 17: {number} / {value}"
                );
            }
        }
    }
}
