//! What pages take: of media, of a checkpoint and of the log; and what follows for the host.
//!
//! `blocks` sectors of data hold fifteen sixteenths as many bytes of pages: each page may leave all but one byte of a grain empty,
//! and there are at most as many pages as there are KiB. On media they take an eighth more, which buffer units may leave empty
//! where parts do not fit. Deliberately not here: everything that other stores need too (`ox::sizes`).

use super::extent::GRAIN_BYTES;
use crate::ox::sizes::Demand;
use ocssd_lightnvm::Geometry;
use ocssd_lightnvm::interface::StageLimits;
use ocssd_lightnvm::interface::log_structured::LogLimits;

/// Bytes of data there must be for each page (chosen: then a checkpoint of the map is some hundredths of them).
const BYTES_PER_PAGE: u64 = 1_024;
/// Bytes of a flush at most: twice the paper's buffers (CIDR 2020: 8 MB).
const FLUSH_BYTES_MAX: u64 = 16 << 20;
/// The share of an instance that one flush may have (chosen: what it replaces stays until it is true).
const FLUSH_SHARE: u64 = 8;
/// Bytes of a flush for each row of its page table (chosen: pages of half a KiB on average).
const BYTES_PER_ROW: u64 = 512;
/// Rows of a page table at least (chosen: tiny instances take some pages at once, too).
const ROWS_MIN: u64 = 16;
/// Sessions (chosen: as OX's fabric has connections).
const SESSIONS_MAX: u32 = 64;
/// Stages (chosen: some sessions at once send in pieces).
const STAGES_MAX: u32 = 16;
/// Bytes of an entry of the map in a checkpoint: a page's name, and a part.
pub const MAP_ENTRY_BYTES: u64 = 16;
/// Bytes of a session in a checkpoint.
pub const SESSION_BYTES: u64 = 16;

fn narrow(number: u64) -> u32 {
    u32::try_from(number).expect("bounded above")
}

/// What an instance of `blocks` sectors of data takes from its host.
pub fn limits(geometry: &Geometry, blocks: u64) -> LogLimits {
    let sector = u64::from(geometry.sector_bytes);
    let bytes = blocks * sector;
    let flush = (bytes / FLUSH_SHARE).min(FLUSH_BYTES_MAX).max(sector);
    let pages_max = (bytes / BYTES_PER_PAGE).max(ROWS_MIN);
    LogLimits {
        flush_bytes_max: narrow(flush),
        flush_pages_max: narrow((flush / BYTES_PER_ROW).max(ROWS_MIN)),
        page_bytes_max: narrow(flush),
        page_align_bytes: 1,
        sessions_max: SESSIONS_MAX,
        capacity_bytes: bytes - bytes / 16,
        pages_max,
        stages: StageLimits { stages_max: STAGES_MAX, bytes_max: narrow(flush) },
    }
}

/// Sectors of buffer units that so many bytes of parts may take, an eighth of each left empty.
pub fn sectors_of(bytes: u64, geometry_unit: u32, sector_bytes: u32) -> u64 {
    let buffer_unit = u64::from(geometry_unit) * u64::from(sector_bytes);
    let buffer_units = (bytes * 8 / 7).div_ceil(buffer_unit) + 1;
    buffer_units * u64::from(geometry_unit)
}

/// What an instance of `blocks` sectors of data takes.
pub fn demand(geometry: &Geometry, blocks: u64) -> Demand {
    let limits = limits(geometry, blocks);
    let (unit, sector) = (geometry.ws_opt, geometry.sector_bytes);
    let buffer_unit = u64::from(unit) * u64::from(sector);
    let rows = u64::from(limits.flush_pages_max);
    // Each row may take a grain more than it has bytes.
    let packed = u64::from(limits.flush_bytes_max) + rows * u64::from(GRAIN_BYTES);
    // A page has a part for each sixteenth of a buffer unit at most, and two more.
    let bytes = blocks * u64::from(sector);
    let parts = 2 * limits.pages_max + 16 * bytes / buffer_unit;
    Demand {
        gathered: sectors_of(packed, unit, sector),
        log_entries: 2 * rows + 2 * packed / buffer_unit + 8,
        map_bytes: parts * MAP_ENTRY_BYTES + u64::from(SESSIONS_MAX) * SESSION_BYTES,
        data: blocks * 8 / 7 + u64::from(2 * unit),
        map_pages: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_instance_takes_buffers_of_eight_mebibytes_and_more() {
        let geometry = Geometry::example(8, 4, 64, 6_144, 24);
        let limits = limits(&geometry, 8 << 20);
        assert_eq!((limits.flush_bytes_max, limits.flush_pages_max), (16 << 20, 32_768));
        assert_eq!(limits.capacity_bytes, (32 << 30) * 15 / 16);
        let demand = demand(&geometry, 8 << 20);
        assert!(demand.map_bytes * 3 < 32 << 30 >> 2, "three checkpoints are a small part: {demand:?}");
    }

    #[test]
    fn a_tiny_instance_takes_small_ones() {
        let geometry = Geometry::example(1, 2, 40, 24, 4);
        // 100 rows and 57 600 bytes in units of 16 KiB; 400 pages, of which 400 parts and two each fill 409 600 bytes.
        let expected = Demand {
            gathered: 24,
            log_entries: 2 * 100 + 7 + 8,
            map_bytes: (2 * 400 + 400) * 16 + 64 * 16,
            data: 114 + 8,
            map_pages: 0,
        };
        assert_eq!(demand(&geometry, 100), expected);
        let limits = limits(&geometry, 100);
        assert_eq!((limits.flush_bytes_max, limits.flush_pages_max), (51_200, 100));
        assert!(limits.capacity_bytes + limits.pages_max * 63 <= 100 * 4_096);
    }
}
