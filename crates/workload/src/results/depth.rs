//! How many I/Os were in flight, and how many were submitted or reaped at a time: fio's seven classes.

/// fio's classes of depth: 1, 2, 4, 8, 16, 32, 64 and more.
const CLASSES: usize = 7;

/// fio's `iodepth_level`: per I/O, the depth of its job when it was submitted.
///
/// Class k holds depths 2^k to 2^(k+1)-1; the last everything from 64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DepthCounts([u64; CLASSES]);

impl DepthCounts {
    /// fio's names of the classes.
    pub const NAMES: [&'static str; CLASSES] = ["1", "2", "4", "8", "16", "32", ">=64"];

    /// Counts one I/O submitted while `depth` I/Os, itself included, are in flight.
    #[inline]
    pub fn record(&mut self, depth: u32) {
        let class = depth.max(1).ilog2().min(6);
        self.0[usize::try_from(class).expect("at most 6")] += 1;
    }

    /// Adds the counts of another job of the group.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// The share of each class in percent of `total` I/Os.
    #[must_use]
    pub fn percentages(&self, total: u64) -> [(&'static str, f64); CLASSES] {
        percentages(Self::NAMES, self.0, total)
    }
}

/// fio's `iodepth_submit` and `iodepth_complete`: per call, how many I/Os it handed over.
///
/// Classes: 0, 1 to 4, 5 to 8, 9 to 16, 17 to 32, 33 to 64, 65 and more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchCounts([u64; CLASSES]);

impl BatchCounts {
    /// fio's names of the classes. Its last class is called `>=64` and starts at 65.
    pub const NAMES: [&'static str; CLASSES] = ["0", "4", "8", "16", "32", "64", ">=64"];

    /// Counts one call that handed over `ios` I/Os.
    #[inline]
    pub fn record(&mut self, ios: u32) {
        let class = match ios {
            0 => 0,
            1..=4 => 1,
            5..=8 => 2,
            9..=16 => 3,
            17..=32 => 4,
            33..=64 => 5,
            65.. => 6,
        };
        self.0[class] += 1;
    }

    /// Adds the counts of another job of the group.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// The share of each class in percent of all calls.
    #[must_use]
    pub fn percentages(&self) -> [(&'static str, f64); CLASSES] {
        percentages(Self::NAMES, self.0, self.0.iter().sum())
    }
}

/// Shares in percent; a class that is not empty shows at least 0.1, as in fio.
#[expect(clippy::cast_precision_loss, reason = "a share shown with six decimals")]
fn percentages(
    names: [&'static str; CLASSES],
    counts: [u64; CLASSES],
    total: u64,
) -> [(&'static str, f64); CLASSES] {
    std::array::from_fn(|class| {
        let share = match (counts[class], total) {
            (0, _) | (_, 0) => 0.0,
            (count, total) => (count as f64 / total as f64 * 100.0).max(0.1),
        };
        (names[class], share)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_fall_into_fios_classes() {
        for (depth, class) in
            [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (31, 4), (32, 5), (63, 5), (64, 6), (4_096, 6)]
        {
            let mut counts = DepthCounts::default();
            counts.record(depth);
            assert_eq!(counts.0[class], 1, "depth {depth}");
        }
    }

    #[test]
    fn batches_fall_into_fios_classes() {
        for (ios, class) in
            [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2), (16, 3), (17, 4), (33, 5), (64, 5), (65, 6)]
        {
            let mut counts = BatchCounts::default();
            counts.record(ios);
            assert_eq!(counts.0[class], 1, "{ios} I/Os");
        }
    }

    #[test]
    fn a_rare_class_shows_a_tenth_of_a_percent() {
        let counts = DepthCounts([1, 0, 9_999, 0, 0, 0, 0]);
        let shares = counts.percentages(10_000).map(|(_, share)| share);
        assert_eq!(shares, [0.1, 0.0, 99.99, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(DepthCounts::default().percentages(0).map(|(_, share)| share), [0.0; 7]);
    }
}
