//! How YCSB chooses records: Zipfian, scrambled Zipfian, latest and uniform.
//!
//! The Zipfian draw is that of Gray, Sundaresan, Englert, Baclawski and Weinberger, "Quickly generating billion-record
//! synthetic databases" (SIGMOD 1994), section 3: the two first ranks have exactly their probability, the others nearly. The
//! constant 0.99, the scrambling over 10^10 items, and what *latest* means are those of Cooper et al., "Benchmarking cloud
//! serving systems with YCSB" (SoCC 2010), and of its core package. Floats choose records only; nothing is summed up.

use ocssd_base::Prng;

/// YCSB's Zipfian constant.
pub const YCSB_THETA: f64 = 0.99;
/// Items of the scrambled distribution, whatever the number of records (YCSB's core package).
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;
/// Terms of zeta that are summed before the rest is integrated (chosen: the rest is then exact to 12 digits).
const ZETA_TERMS: u64 = 1_000;
/// FNV-1a of 64 bits: offset basis and prime (Fowler, Noll, Vo).
const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;

#[expect(clippy::cast_precision_loss, reason = "numbers of records are far below 2^53")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the records")]
fn rank_of(value: f64, items: u64) -> u64 {
    (value.max(0.0) as u64).min(items - 1)
}

/// The sum of `1 / i^theta` for `i` from 1 to `items`. Cost: at most a thousand terms; the rest is the Euler-Maclaurin formula.
#[must_use]
pub fn zeta(items: u64, theta: f64) -> f64 {
    let first = items.min(ZETA_TERMS);
    let sum: f64 = (1..=first).map(|item| float(item).powf(-theta)).sum();
    if first == items {
        return sum;
    }
    let (low, high) = (float(first), float(items));
    let integral = (high.powf(1.0 - theta) - low.powf(1.0 - theta)) / (1.0 - theta);
    let edges = (high.powf(-theta) - low.powf(-theta)) / 2.0;
    let bend = theta * (low.powf(-theta - 1.0) - high.powf(-theta - 1.0)) / 12.0;
    sum + integral + edges + bend
}

/// FNV-1a of the eight bytes of a number, lowest first: YCSB's hash of record numbers.
#[must_use]
pub fn fnv(number: u64) -> u64 {
    number
        .to_le_bytes()
        .into_iter()
        .fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

/// Ranks `0..items`, low ones often: rank `k` comes with probability `1 / ((k + 1)^theta * zeta(items))`.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    theta: f64,
    zeta: f64,
    eta: f64,
    alpha: f64,
}

impl Zipfian {
    /// The distribution.
    ///
    /// # Panics
    /// If there are no items, or `theta` is not between 0 and 1, both excluded.
    #[must_use]
    pub fn new(items: u64, theta: f64) -> Self {
        assert!(items > 0, "a choice among no items");
        assert!(theta > 0.0 && theta < 1.0, "theta is {theta}");
        let sum = zeta(items, theta);
        let eta = (1.0 - (2.0 / float(items)).powf(1.0 - theta)) / (1.0 - zeta(2, theta) / sum);
        Self { items, theta, zeta: sum, eta, alpha: 1.0 / (1.0 - theta) }
    }

    /// Draws a rank.
    pub fn draw(&self, prng: &mut Prng) -> u64 {
        let uniform = prng.unit_f64();
        let scaled = uniform * self.zeta;
        if scaled < 1.0 || self.items == 1 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(self.theta) {
            return 1;
        }
        let base = self.eta.mul_add(uniform, 1.0 - self.eta);
        rank_of(float(self.items) * base.powf(self.alpha), self.items)
    }

    /// The probability of a rank in closed form.
    #[must_use]
    pub fn probability(&self, rank: u64) -> f64 {
        float(rank + 1).powf(-self.theta) / self.zeta
    }
}

/// Which records are asked for (YCSB `requestdistribution`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestDistribution {
    /// Each as often as any other.
    Uniform,
    /// A few often, scattered over all records.
    Zipfian,
    /// The newest often.
    Latest,
    /// One after the other.
    Sequential,
}

/// Chooses among records, the number of which may grow.
#[derive(Clone, Debug)]
pub struct Chooser {
    distribution: RequestDistribution,
    zipfian: Option<Zipfian>,
    theta: f64,
    next: u64,
}

impl Chooser {
    /// A chooser; `theta` is the Zipfian constant.
    #[must_use]
    pub const fn new(distribution: RequestDistribution, theta: f64) -> Self {
        Self { distribution, zipfian: None, theta, next: 0 }
    }

    /// Chooses a record of `records`; the newest has the highest number.
    ///
    /// # Panics
    /// If there are none.
    pub fn choose(&mut self, records: u64, prng: &mut Prng) -> u64 {
        assert!(records > 0, "a choice among no records");
        match self.distribution {
            RequestDistribution::Uniform => prng.below(records),
            RequestDistribution::Sequential => {
                self.next += 1;
                (self.next - 1) % records
            }
            RequestDistribution::Zipfian => fnv(self.over(SCRAMBLED_ITEMS).draw(prng)) % records,
            RequestDistribution::Latest => records - 1 - self.over(records).draw(prng),
        }
    }

    /// The distribution over so many items; made again only when their number changed.
    fn over(&mut self, items: u64) -> &Zipfian {
        if self.zipfian.as_ref().is_none_or(|zipfian| zipfian.items != items) {
            self.zipfian = Some(Zipfian::new(items, self.theta));
        }
        self.zipfian.as_ref().expect("it was just made")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeta_is_the_sum_it_stands_for() {
        for (items, theta) in [(1, 0.99), (2, 0.5), (1_000, 0.99), (50_000, 0.99), (50_000, 0.3)] {
            let sum: f64 = (1..=items).map(|item| float(item).powf(-theta)).sum();
            assert!((zeta(items, theta) - sum).abs() < 1e-9, "{items} items, theta {theta}");
        }
        // YCSB's package states this one with all its digits.
        assert!((zeta(SCRAMBLED_ITEMS, YCSB_THETA) - 26.469_028_201_783_02).abs() < 1e-6);
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        // The published vector of the byte string "a" needs one byte; of eight zero bytes only the multiplications remain.
        let zeroes = (0..8).fold(FNV_OFFSET, |hash: u64, _| hash.wrapping_mul(FNV_PRIME));
        assert_eq!(fnv(0), zeroes);
        assert_ne!(fnv(1), fnv(1 << 56));
    }

    #[test]
    fn frequencies_are_those_of_the_closed_form() {
        const DRAWS: u64 = 400_000;
        for (seed, items, theta) in
            [(1, 100, YCSB_THETA), (2, 1_000, YCSB_THETA), (3, 1_000, 0.5), (4, 3, 0.9)]
        {
            let (zipfian, mut prng) = (Zipfian::new(items, theta), Prng::new(seed));
            let mut counts = vec![0_u64; usize::try_from(items).expect("few")];
            for _ in 0..DRAWS {
                counts[usize::try_from(zipfian.draw(&mut prng)).expect("a rank")] += 1;
            }
            let share = |from: usize, to: usize| float(counts[from..to].iter().sum()) / float(DRAWS);
            let exact = |from: u64, to: u64| (from..to).map(|rank| zipfian.probability(rank)).sum::<f64>();
            // The two first ranks are exact: 5 standard deviations of a share below 0.4 are 0.004.
            assert!((share(0, 1) - exact(0, 1)).abs() < 0.004, "seed {seed}: {} draws of rank 0", counts[0]);
            assert!((share(1, 2) - exact(1, 2)).abs() < 0.004, "seed {seed}: {} draws of rank 1", counts[1]);
            // The others follow a continuous curve: shares of a tenth, and of a half, of all ranks.
            for part in [items.div_ceil(10), items.div_ceil(2), items] {
                let to = usize::try_from(part).expect("few");
                assert!((share(0, to) - exact(0, part)).abs() < 0.03, "seed {seed}: the first {part} ranks");
            }
        }
    }

    fn shares(distribution: RequestDistribution, records: u64) -> Vec<f64> {
        let (mut chooser, mut prng) = (Chooser::new(distribution, YCSB_THETA), Prng::new(9));
        let mut counts = vec![0_u64; usize::try_from(records).expect("few")];
        (0..100_000).for_each(|_| {
            counts[usize::try_from(chooser.choose(records, &mut prng)).expect("a record")] += 1;
        });
        counts.into_iter().map(|count| float(count) / 100_000.0).collect()
    }

    #[test]
    fn latest_prefers_the_newest_and_scrambled_anything() {
        let latest = shares(RequestDistribution::Latest, 100);
        let zipfian = Zipfian::new(100, YCSB_THETA);
        assert!((latest[99] - zipfian.probability(0)).abs() < 0.01 && latest[99] > 2.0 * latest[97]);
        let scrambled = shares(RequestDistribution::Zipfian, 100);
        // The most frequent of 10^10 items comes with probability 1 / 26.469, to its record's share of all others.
        let top = usize::try_from(fnv(0) % 100).expect("a record");
        let most = scrambled.iter().copied().fold(0.0, f64::max);
        assert!(scrambled[top] > 0.0377 && most < 0.1, "{} of {most}", scrambled[top]);
        assert!(scrambled.iter().all(|&share| share > 0.002), "every record is hit by some of 10^10 items");
        let uniform = shares(RequestDistribution::Uniform, 100);
        assert!(uniform.iter().all(|share| (0.008..0.012).contains(share)));
        let sequential = shares(RequestDistribution::Sequential, 100);
        assert!(sequential.iter().all(|share| (share - 0.01).abs() < 1e-12));
    }

    #[test]
    fn a_growing_number_of_records_is_followed() {
        let (mut chooser, mut prng) = (Chooser::new(RequestDistribution::Latest, YCSB_THETA), Prng::new(3));
        for records in 1..200 {
            assert!((0..20).all(|_| chooser.choose(records, &mut prng) < records));
        }
    }
}
