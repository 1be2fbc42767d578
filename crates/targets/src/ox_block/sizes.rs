//! What blocks take: an entry of the map each, and transactions of 1 MiB.
//!
//! Deliberately not here: everything that other stores need too (`ox::sizes`).

use super::map_cache;
use crate::ox::options::Options;
use crate::ox::sizes::Demand;
use ocssd_ftl::InstanceGeometry;
use ocssd_lightnvm::Geometry;

/// Blocks of a transaction: 1 MiB of 4 KiB sectors (CIDR 2020 section 3.2).
pub const TRANSACTION_BLOCKS_MAX: u32 = 256;

/// What an instance of `blocks` blocks takes.
pub fn demand(geometry: &Geometry, shape: &InstanceGeometry, blocks: u64, options: &Options) -> Demand {
    let size = map_cache::page_size(geometry, shape, options).expect("it was looked at before");
    let whole = || (0, blocks * u64::from(map_cache::entry_bytes(shape)));
    let (map_pages, map_bytes) = size.map_or_else(whole, |(size, _)| map_cache::demand(shape, blocks, size));
    let largest = u64::from(TRANSACTION_BLOCKS_MAX);
    Demand { gathered: blocks.min(largest), log_entries: 2 * largest, map_bytes, data: blocks, map_pages }
}

#[cfg(test)]
mod tests {
    use super::super::store::Blocks;
    use crate::ox::options::Options;
    use crate::ox::sizes::Sizes;
    use ocssd_ftl::InstanceGeometry;
    use ocssd_lightnvm::{Geometry, PuId};

    fn sizes(percent: u32, good: u32) -> Result<Sizes, String> {
        let geometry = Geometry::example(1, 2, 40, 24, 4);
        let shape = InstanceGeometry::new(&geometry, &[PuId(0), PuId(1)]);
        let options = Options { over_provisioning_percent: percent, ..Options::default() };
        Sizes::new::<Blocks>(&geometry, &shape, &options, (good, 1), None)
    }

    #[test]
    fn users_get_what_was_asked_for_or_what_fits() {
        let large = sizes(75, 80).expect("it fits");
        assert_eq!(large.blocks, 80 * 24 / 4);
        let tight = sizes(1, 80).expect("less than asked for");
        assert!(
            tight.blocks < 80 * 24 * 99 / 100 && tight.blocks > 0 && tight.chunks_needed <= 80,
            "{tight:?}"
        );
        let error = sizes(50, 12).expect_err("too few");
        assert!(error.contains("12 good chunks"), "{error}");
    }

    #[test]
    fn a_drive_on_which_too_few_chunks_may_be_open_is_refused() {
        for (units, log_copies, map_cache_bytes, open) in [
            (2, 2, None, 5),
            (1, 1, None, 5),
            (1, 2, None, 6),
            (2, 2, Some(1 << 20), 6),
            (1, 2, Some(1 << 20), 7),
        ] {
            let label =
                format!("{units} units, {log_copies} copies of the log, map_cache_bytes {map_cache_bytes:?}");
            let options = Options { log_copies, map_cache_bytes, ..Options::default() };
            let made = |max_open_chunks_per_pu| {
                let geometry = Geometry { max_open_chunks_per_pu, ..Geometry::example(1, units, 80, 24, 4) };
                let shape = InstanceGeometry::new(&geometry, &(0..units).map(PuId).collect::<Vec<_>>());
                Sizes::new::<Blocks>(&geometry, &shape, &options, (80 * units, 1), None)
            };
            assert!(made(open).is_ok(), "{label}: {:?}", made(open));
            let error = made(open - 1).expect_err("one too few");
            assert!(error.contains(&format!("up to {open} chunks open on each unit")), "{label}: {error}");
        }
    }

    #[test]
    fn an_instance_that_exists_keeps_its_blocks() {
        let geometry = Geometry::example(1, 1, 60, 24, 4);
        let shape = InstanceGeometry::new(&geometry, &[PuId(0)]);
        let sizes = Sizes::new::<Blocks>(&geometry, &shape, &Options::default(), (3, 1), Some(500))
            .expect("it exists");
        assert!(sizes.blocks == 500 && sizes.chunks_needed > 3);
    }
}
