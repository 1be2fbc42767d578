//! What I/Os of each priority took, for jobs that give them different ones.
//!
//! Deliberately not here: what a priority is and who has it (`job`, `run`).

use std::collections::BTreeMap;

use ocssd_base::Nanos;

use super::interval::{IntervalSeries, SeriesOptions};
use super::latency::LatencyStats;
use super::model::Direction;
use crate::job::IoPriority;

/// I/Os of one direction and priority.
#[derive(Clone, Debug)]
pub struct PriorityPart {
    /// Their total latencies, which are their completion latencies: submission takes no time.
    pub lat: LatencyStats,
    /// Bandwidth, I/O rate and mean latencies over run time.
    pub series: IntervalSeries,
}

/// I/Os by direction and priority; each part is made, about 90 KiB, when its first I/O is recorded.
#[derive(Clone, Debug)]
pub struct PriorityStats {
    options: SeriesOptions,
    /// By fio's number of the direction.
    parts: BTreeMap<(u8, IoPriority), PriorityPart>,
}

impl PriorityStats {
    /// Nothing done yet, measured from `options.start` on.
    #[must_use]
    pub const fn new(options: SeriesOptions) -> Self {
        Self { options, parts: BTreeMap::new() }
    }

    /// Counts one I/O that completed without error at run time `now`.
    pub fn record(&mut self, direction: Direction, priority: IoPriority, now: Nanos, bytes: u64, lat: Nanos) {
        let options = self.options;
        let part = self.parts.entry((direction.number(), priority)).or_insert_with(|| PriorityPart {
            lat: LatencyStats::default(),
            series: IntervalSeries::new(options),
        });
        part.lat.record(lat);
        let interval = part.series.at(now);
        interval.ios += 1;
        interval.bytes += bytes;
        interval.clat_ns_sum += lat.0;
        interval.lat_ns_sum += lat.0;
    }

    /// Ends measuring at run time `now`: all series have the same intervals then.
    pub fn finish(&mut self, now: Nanos) {
        self.parts.values_mut().for_each(|part| part.series.advance(now));
    }

    /// The parts of a direction, the lowest number of Linux' first.
    pub fn of(&self, direction: Direction) -> impl Iterator<Item = (IoPriority, &PriorityPart)> {
        let number = direction.number();
        self.parts.iter().filter(move |((of, _), _)| *of == number).map(|((_, which), part)| (*which, part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_apart_and_their_series_end_together() {
        let mut stats = PriorityStats::new(SeriesOptions::default());
        let (idle, real_time) = (IoPriority::new(3, 0), IoPriority::new(1, 0));
        stats.record(Direction::Read, idle, Nanos(5), 4096, Nanos(10));
        stats.record(Direction::Read, real_time, Nanos::from_millis(1500), 4096, Nanos(30));
        stats.record(Direction::Write, idle, Nanos::from_millis(1600), 4096, Nanos(50));
        stats.finish(Nanos::from_secs(2));
        let read: Vec<_> = stats.of(Direction::Read).map(|(which, part)| (which, part.lat.max())).collect();
        assert_eq!(read, [(real_time, Some(Nanos(30))), (idle, Some(Nanos(10)))]);
        assert_eq!(stats.of(Direction::Trim).count(), 0);
        for direction in [Direction::Read, Direction::Write] {
            assert!(stats.of(direction).all(|(_, part)| part.series.complete().len() == 2));
        }
    }
}
