//! Means with intervals, and the knee of a curve.

/// A mean over repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Half of its 95 % confidence interval; `None` of a single number.
    pub half_width: Option<f64>,
    /// How many numbers.
    pub count: usize,
}

/// Student's t for a two-sided 95 % interval, by degrees of freedom from 1 (any table of the distribution).
const T95: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
/// The same for very many.
const T95_MANY: f64 = 1.96;

impl Mean {
    /// The mean of independent numbers.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let count = u32::try_from(values.len()).expect("few repetitions");
        if count == 0 {
            return Self::default();
        }
        let number = f64::from(count);
        let value = values.iter().sum::<f64>() / number;
        let half_width = (count > 1).then(|| {
            let squares: f64 = values.iter().map(|one| (one - value).powi(2)).sum();
            let t = T95.get(values.len() - 2).copied().unwrap_or(T95_MANY);
            t * (squares / (number - 1.0)).sqrt() / number.sqrt()
        });
        Self { value, half_width, count: values.len() }
    }

    /// Half of the interval in percent of the mean.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        self.half_width.filter(|_| self.value > 0.0).map(|half| 100.0 * half / self.value)
    }

    /// True if the intervals of both do not meet: they differ.
    #[must_use]
    pub fn differs(&self, other: &Self) -> Option<bool> {
        let (own, others) = (self.half_width?, other.half_width?);
        Some((self.value - other.value).abs() > own + others)
    }
}

/// A point of a curve over depth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthPoint {
    /// The depth.
    pub depth: u32,
    /// I/Os per second.
    pub iops: f64,
    /// Mean latency in nanoseconds.
    pub latency_ns: f64,
}

/// Where a curve bends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// Least depth with nine tenths of the greatest throughput.
    pub depth: u32,
    /// Its throughput.
    pub iops: f64,
    /// Its latency.
    pub latency_ns: f64,
    /// Greatest throughput of the curve, and its depth.
    pub most: (u32, f64),
    /// Depth at which the lines of no waiting and of full throughput meet: greatest throughput times latency of the
    /// shallowest queue (operational analysis; Lazowska and others, Quantitative System Performance, 1984, chapter 5).
    pub crossing: f64,
}

/// Throughput that is nearly all (chosen: one tenth is what two curves of a noisy machine differ by).
const NEARLY_ALL: f64 = 0.9;

/// The knee of a curve sorted by depth; `None` of fewer than three points.
#[must_use]
pub fn knee(points: &[DepthPoint]) -> Option<Knee> {
    let first = points.first().filter(|_| points.len() >= 3)?;
    let most = points.iter().copied().reduce(|a, b| if b.iops > a.iops { b } else { a })?;
    let found = points.iter().find(|point| point.iops >= NEARLY_ALL * most.iops)?;
    Some(Knee {
        depth: found.depth,
        iops: found.iops,
        latency_ns: found.latency_ns,
        most: (most.depth, most.iops),
        crossing: most.iops * first.latency_ns / 1e9,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_students() {
        let mean = Mean::of(&[10.0, 12.0, 14.0]);
        // Standard deviation 2, over the root of 3, times 4.303.
        assert!((mean.value - 12.0).abs() < 1e-9 && (mean.half_width.expect("three") - 4.9687).abs() < 1e-3);
        assert_eq!((Mean::of(&[5.0]).half_width, Mean::of(&[]).count), (None, 0));
        assert_eq!(Mean::of(&[1.0, 1.0]).differs(&Mean::of(&[2.0, 2.0])), Some(true));
        assert_eq!(Mean::of(&[1.0, 3.0]).differs(&Mean::of(&[2.0, 2.0])), Some(false));
        assert_eq!(Mean::of(&[1.0]).differs(&Mean::of(&[2.0, 2.0])), None);
    }

    #[test]
    fn a_knee_is_where_more_depth_only_adds_waiting() {
        // Eight servers of 100 us: throughput grows to 80 000 at depth 8 and stays.
        let points: Vec<DepthPoint> = [1_u32, 2, 4, 8, 16, 32]
            .map(|depth| {
                let busy = f64::from(depth.min(8));
                let iops = busy * 10_000.0;
                DepthPoint { depth, iops, latency_ns: f64::from(depth) / iops * 1e9 }
            })
            .to_vec();
        let knee = knee(&points).expect("six points");
        assert_eq!((knee.depth, knee.most.0), (8, 8));
        assert!((knee.crossing - 8.0).abs() < 1e-9 && (knee.latency_ns - 100_000.0).abs() < 1e-6);
        assert_eq!(super::knee(&points[..2]), None);
    }
}
