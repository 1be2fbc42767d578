//! fio's latency histogram: 1 856 buckets from 1 ns to 17.1 s, each at most 1/64 of its value wide.
//!
//! Values below 128 have a bucket each. Above, each power of two is cut into 64 equal buckets:
//!
//! ```text
//!   value  0 .. 63   64 .. 127   128 .. 255   256 .. 511   ...   2^33 .. 2^34-1 and all above
//!   index  0 .. 63   64 .. 127   128 .. 191   192 .. 255   ...   1792 .. 1855
//!   width  1         1           2            4            ...   2^27
//! ```
//!
//! A bucket is reported by the middle of its range, rounded down. Source: the layout of fio 3.33, compared with its
//! printed bins and percentiles in `tests/fio_json.rs`.

use ocssd_base::Nanos;

use super::percentile::{PercentileList, rank};

/// How many bits of a value below its highest one select the bucket (fio: `FIO_IO_U_PLAT_BITS`).
const INDEX_BITS: u32 = 6;
/// Buckets per power of two.
const GROUP_LEN: u64 = 1 << INDEX_BITS;
/// Powers of two told apart (fio: `FIO_IO_U_PLAT_GROUP_NR`).
const GROUP_COUNT: usize = 29;
/// All buckets of a histogram: 29 groups of 64.
pub const BUCKET_COUNT: usize = GROUP_COUNT << INDEX_BITS;

const _: () = assert!(BUCKET_COUNT == 1856, "fio's histogram has 1856 buckets");

/// The bucket `value_ns` falls into, below [`BUCKET_COUNT`]; the last one takes everything above its range.
///
/// Cost: a handful of instructions, no branch that depends on the value's size alone beyond the first 64.
#[must_use]
pub fn bucket_index(value_ns: u64) -> usize {
    if value_ns < GROUP_LEN {
        return usize::try_from(value_ns).expect("below 64");
    }
    let shift = value_ns.ilog2() - INDEX_BITS;
    let index = u64::from(shift + 1) * GROUP_LEN + ((value_ns >> shift) & (GROUP_LEN - 1));
    usize::try_from(index).expect("58 groups of 64").min(BUCKET_COUNT - 1)
}

/// The value in nanoseconds that stands for a bucket: the middle of its range, rounded down.
///
/// # Panics
/// If `index` is not below [`BUCKET_COUNT`].
#[must_use]
pub fn bucket_value(index: usize) -> u64 {
    assert!(index < BUCKET_COUNT, "bucket {index} of {BUCKET_COUNT}");
    let index = u64::try_from(index).expect("below 1856");
    if index < 2 * GROUP_LEN {
        return index;
    }
    let shift = index / GROUP_LEN - 1;
    let half_width = (1 << shift) / 2;
    ((GROUP_LEN + index % GROUP_LEN) << shift) + half_width
}

/// Counts per bucket. About 15 KiB, allocated once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: Box<[u64; BUCKET_COUNT]>,
    count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let zeros = vec![0; BUCKET_COUNT].into_boxed_slice();
        Self { buckets: zeros.try_into().expect("made with this length"), count: 0 }
    }
}

impl Histogram {
    /// Counts one observation. Cost: O(1), no allocation.
    #[inline]
    pub fn record(&mut self, value: Nanos) {
        self.buckets[bucket_index(value.0)] += 1;
        self.count += 1;
    }

    /// Counts `count` equal observations, as when reading printed bins back.
    pub fn record_many(&mut self, value: Nanos, count: u64) {
        self.buckets[bucket_index(value.0)] += count;
        self.count += count;
    }

    /// Adds all observations of `other`. The result equals recording both into one.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
    }

    /// What was recorded after `earlier`, a copy of this histogram, as (bucket, count), buckets rising.
    ///
    /// # Panics
    /// If `earlier` holds more than this in a bucket.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Vec<(usize, u64)> {
        let both = self.buckets.iter().zip(earlier.buckets.iter()).enumerate();
        let more = both.map(|(bucket, (&now, &then))| {
            assert!(then <= now, "bucket {bucket} lost observations");
            (bucket, now - then)
        });
        more.filter(|&(_, count)| count > 0).collect()
    }

    /// How many observations were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The buckets that are not empty, as (value of the bucket, count), values rising: fio's `bins`.
    pub fn bins(&self) -> impl Iterator<Item = (Nanos, u64)> {
        let all = self.buckets.iter().enumerate();
        all.filter(|(_, count)| **count > 0).map(|(index, &count)| (Nanos(bucket_value(index)), count))
    }

    /// The latencies at the percentiles of `list`, in its (rising) order; nothing if the histogram is empty.
    ///
    /// Exactly fio's rule: the value of the first bucket at which the running count reaches p/100 of all samples,
    /// in fio's arithmetic. Cost: one pass over the buckets.
    #[must_use]
    pub fn percentiles(&self, list: &PercentileList) -> Vec<(f64, Nanos)> {
        if self.count == 0 {
            return Vec::new();
        }
        let mut found = Vec::with_capacity(list.as_slice().len());
        let mut wanted = list.as_slice().iter().map(|&p| (p, rank(p, self.count))).peekable();
        let mut sum = 0;
        for (value, count) in self.bins() {
            sum += count;
            while let Some((p, _)) = wanted.next_if(|(_, rank)| sum >= *rank) {
                found.push((p, value));
            }
        }
        assert!(wanted.peek().is_none(), "a percentile of at most 100 is reached at the last sample");
        found
    }

    /// The latency at one percentile, `0 < percent <= 100`; `None` if the histogram is empty.
    ///
    /// # Panics
    /// If `percent` is outside its bounds.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<Nanos> {
        let list = PercentileList::new(vec![percent]).expect("the caller keeps 0 < percent <= 100");
        self.percentiles(&list).first().map(|&(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;

    #[test]
    fn every_bucket_value_falls_into_its_own_bucket() {
        for index in 0..BUCKET_COUNT {
            assert_eq!(bucket_index(bucket_value(index)), index, "bucket {index}");
        }
    }

    #[test]
    fn buckets_tile_the_range_without_gap() {
        for edge in 0..34 {
            let first = 1_u64 << edge;
            assert_eq!(bucket_index(first), bucket_index(first - 1) + 1, "at 2^{edge}");
        }
        for value in 0..1 << 16 {
            let step = bucket_index(value + 1) - bucket_index(value);
            assert!(step <= 1, "from {value} to the next skips {step} buckets");
        }
    }

    #[test]
    fn the_last_bucket_takes_everything_above() {
        for value in [(1 << 34) - 1, 1 << 34, 1 << 40, u64::MAX] {
            assert_eq!(bucket_index(value), BUCKET_COUNT - 1, "value {value}");
        }
    }

    #[test]
    fn percentiles_stay_within_one_bucket_of_a_sorted_list() {
        for seed in 0..50 {
            let mut prng = Prng::new(seed);
            let mut histogram = Histogram::default();
            let count = 1 + prng.below(5_000);
            let mut sorted: Vec<u64> = (0..count).map(|_| prng.next_u64() >> (31 + prng.below(30))).collect();
            sorted.iter().for_each(|&value| histogram.record(Nanos(value)));
            sorted.sort_unstable();
            for (p, value) in histogram.percentiles(&PercentileList::default()) {
                let place = usize::try_from(rank(p, count)).unwrap() - 1;
                let (naive, ours) = (bucket_index(sorted[place]), bucket_index(value.0));
                assert_eq!(naive, ours, "seed {seed}, p{p}: sorted list has {}", sorted[place]);
            }
        }
    }

    #[test]
    fn merging_equals_recording_all_in_one() {
        for seed in 0..20 {
            let mut prng = Prng::new(seed);
            let (mut left, mut right, mut all) = Default::default();
            for _ in 0..1_000 {
                let value = Nanos(prng.next_u64() >> prng.below(64));
                let part: &mut Histogram = if prng.below(2) == 0 { &mut left } else { &mut right };
                part.record(value);
                Histogram::record(&mut all, value);
            }
            left.merge(&right);
            assert_eq!(left, all, "seed {seed}");
        }
    }

    #[test]
    fn an_empty_histogram_has_no_percentiles_and_no_bins() {
        let empty = Histogram::default();
        assert!(empty.percentiles(&PercentileList::default()).is_empty());
        assert_eq!((empty.bins().count(), empty.percentile(50.0)), (0, None));
    }
}
