//! What small blocks cost: counted here, shown beside the inner target's counters.

use ocssd_lightnvm::block::{Counter, CounterValue};

/// Counters since the target was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmallBlocksStats {
    /// Writes that had to read first.
    pub rmw_requests: u64,
    /// Sectors read for them.
    pub rmw_read_sectors: u64,
    /// Sectors merged and written back.
    pub rmw_written_sectors: u64,
    /// Of these requests, failed because a sector could not be read.
    pub rmw_read_failed: u64,
    /// Sectors copied because they do not lie on a sector of the host's buffer.
    pub copied_sectors: u64,
    /// Sectors that went straight between the host's buffer and the inner target.
    pub straight_sectors: u64,
    /// Changes that waited for an earlier change of the same sector.
    pub order_waits: u64,
    /// Blocks at the ends of discards that kept their content.
    pub discard_ignored_blocks: u64,
}

impl SmallBlocksStats {
    /// As counters, in a fixed order.
    pub(super) fn counters(&self) -> Vec<Counter> {
        let count = |name, about, value| Counter { name, about, value: CounterValue::Count(value) };
        vec![
            count("rmw_requests", "writes of parts of sectors: they read first", self.rmw_requests),
            count("rmw_read_sectors", "sectors read for them", self.rmw_read_sectors),
            count("rmw_written_sectors", "sectors merged and written back", self.rmw_written_sectors),
            count("rmw_read_failed", "of these writes, failed by a failed read", self.rmw_read_failed),
            count(
                "copied_sectors",
                "sectors that did not lie on one of the host's buffer",
                self.copied_sectors,
            ),
            count("straight_sectors", "sectors that did, and were not copied", self.straight_sectors),
            count("order_waits", "changes that waited for one of the same sector", self.order_waits),
            count(
                "discard_ignored_blocks",
                "blocks beside whole discarded sectors",
                self.discard_ignored_blocks,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_shown_under_its_own_name() {
        let stats = SmallBlocksStats {
            rmw_requests: 1,
            rmw_read_sectors: 2,
            rmw_written_sectors: 3,
            rmw_read_failed: 4,
            copied_sectors: 5,
            straight_sectors: 6,
            order_waits: 7,
            discard_ignored_blocks: 8,
        };
        let shown: Vec<_> =
            stats.counters().into_iter().map(|counter| (counter.name, counter.value)).collect();
        let names = [
            "rmw_requests",
            "rmw_read_sectors",
            "rmw_written_sectors",
            "rmw_read_failed",
            "copied_sectors",
            "straight_sectors",
            "order_waits",
            "discard_ignored_blocks",
        ];
        let expected: Vec<_> = names.into_iter().zip((1..).map(CounterValue::Count)).collect();
        assert_eq!(shown, expected);
    }
}
