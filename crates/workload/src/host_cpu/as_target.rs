//! The target as one of its interface: what the inner target says of itself, with what waits for its core where that counts.
//!
//! Deliberately not here: requests (`target`).

use super::HostCpu;
use ocssd_lightnvm::ChunkId;
use ocssd_lightnvm::block::{BlockTarget, Zones};
use ocssd_lightnvm::interface::key_value::{KvLimits, KvTarget};
use ocssd_lightnvm::interface::log_structured::{LogLimits, LogTarget};
use ocssd_lightnvm::interface::table::{TableLimits, TableTarget};
use ocssd_lightnvm::interface::zoned::{ZoneDescriptor, ZoneExtension, ZoneGeometry, ZonedTarget};

impl BlockTarget for HostCpu {
    fn block_bytes(&self) -> u32 {
        self.inner.block_bytes()
    }

    fn block_count(&self) -> u64 {
        self.inner.block_count()
    }

    fn zones(&self) -> Option<Zones> {
        self.inner.zones()
    }

    fn write_unit(&self) -> u32 {
        self.inner.write_unit()
    }

    fn unreadable_tail(&self) -> u64 {
        self.inner.unreadable_tail()
    }

    fn is_mapped(&self, block: u64) -> Option<bool> {
        self.inner.is_mapped(block)
    }

    fn zone_written(&self, zone: u64) -> u64 {
        let written = self.inner.zone_written(zone);
        let (Some(zones), Some(order)) = (self.inner.zones(), &self.order) else { return written };
        order.written(&self.threads, zone * zones.blocks, zones.blocks, written)
    }
}

impl ZonedTarget for HostCpu<dyn ZonedTarget> {
    fn zone_geometry(&self) -> ZoneGeometry {
        self.inner.zone_geometry()
    }

    fn zone(&self, zone: u32) -> ZoneDescriptor {
        self.inner.zone(zone)
    }

    fn extension(&self, zone: u32) -> Option<ZoneExtension> {
        self.inner.extension(zone)
    }

    fn zone_chunks(&self, zone: u32) -> Vec<ChunkId> {
        self.inner.zone_chunks(zone)
    }

    fn poll_changed_zone(&mut self) -> Option<u32> {
        self.inner.poll_changed_zone()
    }
}

impl LogTarget for HostCpu<dyn LogTarget> {
    fn limits(&self) -> LogLimits {
        self.inner.limits()
    }
}

impl TableTarget for HostCpu<dyn TableTarget> {
    fn limits(&self) -> TableLimits {
        self.inner.limits()
    }
}

impl KvTarget for HostCpu<dyn KvTarget> {
    fn limits(&self) -> KvLimits {
        self.inner.limits()
    }

    fn used_bytes(&self) -> u64 {
        self.inner.used_bytes()
    }
}
