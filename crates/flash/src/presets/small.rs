//! Small drives for tests; every number is chosen to be small, or awkward.

use super::drives::plain;
use crate::config::{CellType, ChannelConfig, Config, LinkConfig, MediaConfig, PlaneReads};
use ocssd_base::Nanos;
use ocssd_lightnvm::{Capabilities, Geometry};

const CHANNEL: ChannelConfig =
    ChannelConfig { bytes_per_second: 400_000_000, command: Nanos::from_micros(1), grant_sectors: 0 };
const LINK: LinkConfig = LinkConfig {
    read_bytes_per_second: 4_000_000_000,
    write_bytes_per_second: 4_000_000_000,
    command: Nanos::from_micros(5),
};

/// 2 x 2 units, 16 chunks of 32 sectors each: 2 MiB a unit.
pub(super) fn tiny() -> Config {
    let capabilities = Capabilities { vector_copy: true, ..Capabilities::default() };
    let geometry = Geometry { ws_min: 4, mw_cunits: 8, capabilities, ..Geometry::example(2, 2, 16, 32, 8) };
    let media = MediaConfig {
        cell: CellType::Mlc,
        planes: 2,
        sectors_per_page: 4,
        plane_reads: PlaneReads::Always,
        read: vec![Nanos::from_micros(40), Nanos::from_micros(60)],
        slow_read: Vec::new(),
        program: vec![Nanos::from_micros(300), Nanos::from_micros(900)],
        erase: Nanos::from_millis(3),
        registers: 2,
    };
    let mut config = plain(geometry, media, CHANNEL, LINK);
    config.queue_depth = 64;
    config
}

/// 3 x 5 units of 7 chunks, 72 sectors each, ws_opt 24.
pub(super) fn odd() -> Config {
    let geometry = Geometry { mw_cunits: 24, ..Geometry::example(3, 5, 7, 72, 24) };
    let media = MediaConfig {
        cell: CellType::Tlc,
        planes: 2,
        sectors_per_page: 4,
        plane_reads: PlaneReads::Always,
        read: [40, 60, 80].map(Nanos::from_micros).to_vec(),
        slow_read: Vec::new(),
        program: vec![Nanos::from_micros(1_900)],
        erase: Nanos::from_millis(7),
        registers: 2,
    };
    let mut config = plain(geometry, media, CHANNEL, LINK);
    config.queue_depth = 64;
    config
}
