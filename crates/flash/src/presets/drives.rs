//! Drives that existed.

use crate::config::{
    CacheConfig, CellType, ChannelConfig, Config, FaultConfig, LinkConfig, MediaConfig, PlaneReads, Revision,
    Scheduler, SlowRead, WearConfig,
};
use ocssd_base::Nanos;
use ocssd_lightnvm::{Capabilities, Geometry, MediaTimes, Payload};

/// Endurance by cell type: the round figures the field uses for planar and early 3D NAND (chosen; vendors of these
/// drives published none).
const ENDURANCE_SLC: u32 = 50_000;
const ENDURANCE_MLC: u32 = 3_000;
const ENDURANCE_TLC: u32 = 1_500;
const ENDURANCE_QLC: u32 = 800;

/// A drive with everything optional off: no faults, no cache, in order.
pub(super) fn plain(
    mut geometry: Geometry,
    media: MediaConfig,
    channel: ChannelConfig,
    link: LinkConfig,
) -> Config {
    let endurance = match media.cell {
        CellType::Slc => ENDURANCE_SLC,
        CellType::Mlc => ENDURANCE_MLC,
        CellType::Tlc => ENDURANCE_TLC,
        CellType::Qlc => ENDURANCE_QLC,
    };
    let longest = |times: &[Nanos]| times.iter().copied().max().unwrap_or_default();
    let slowest = media.slow_read.last().map_or(Nanos::ZERO, |slow| slow.time);
    let average = |times: &[Nanos]| {
        let count = u64::try_from(times.len()).expect("a length fits 64 bits").max(1);
        Nanos(times.iter().map(|time| time.0).sum::<u64>() / count)
    };
    let times = MediaTimes {
        read_typical: average(&media.read),
        read_max: longest(&media.read).max(slowest),
        write_typical: average(&media.program),
        write_max: longest(&media.program),
        reset_typical: media.erase,
        reset_max: media.erase,
    };
    geometry.times = times;
    Config {
        model: String::new(),
        geometry,
        revision: Revision::V20,
        media,
        channel,
        link,
        cache: CacheConfig { sectors: 0, power_loss_protection: false },
        scheduler: Scheduler::Fifo,
        wear: WearConfig { endurance, initial_cycles: 0 },
        faults: FaultConfig::default(),
        queue_depth: 1024, // chosen: one NVMe queue of the size Linux asks for
        dulbe: false,      // NVMe's default
        payload: Payload::Stamp,
        seed: 1,
    }
}

/// Pages that take so long to sense: the slowest of so many parts per billion.
const fn slow(share: u32, micros: u64) -> SlowRead {
    SlowRead { share, time: Nanos::from_micros(micros) }
}

/// CNEX Westlake as in FAST'17 table 1: 16 channels of 8 units, 1067 blocks of 256 pages on 4 planes, 16 KB pages,
/// 280 MB/s a channel; one unit writes 47 MB/s, reads 105 (4 KB) / 280 (64 KB) in sequence and 56 / 273 at random; the
/// drive writes at most 4.0 and reads 4.5 GB/s.
///
/// From these: a 64 KB program every 1.394 ms (64 KiB / 47 MB/s). A random 4 KB read takes 73.1 us (56 MB/s). Sequential
/// 4 KB reads take 39 us on average (105 MB/s), and one of four senses the 16 KB page while three find it in the register;
/// so (73.1 + 3 x hit) / 4 = 39 gives a hit of 27.6 us, and sensing is the difference, 45.5 us. The hit is 14.6 us on the
/// channel, 3 us of channel commands, 0.9 us on the link and 9.1 us of controller. 3 us a command keeps random 64 KB reads
/// in plane mode between the paper's 273 and 280 MB/s. Reads are by page unless the command asks for plane mode, as 1.2
/// drives have it.
///
/// A write of 64 KB at depth 1, as pblk has one to a unit, takes 1 394 us (47 MB/s): 16.4 us on the link, 237 us on the
/// channel, 9.1 us of controller, and so 1 132 us to program on average. Lower and upper pages differ as FEMU measured
/// them on the NAND of a CNEX drive (Micron L95B: sense 48 and 64 us, program 850 and 2 300 us, erase 3 ms; its averages
/// are not table 1's, so only ratios and the erase are taken). Slow pages: FAST'17 figure 8, reads alone, whose 95th to
/// 99.99th percentiles are 115 to 137 us; less the 27.6 us of a hit and 2.3 us of host 85, 95 and 107 us to sense, within the
/// 115 us such NAND has at most by its data sheet (MT29F128G08CBECB). The figure begins at p95, so the 6 % are chosen.
/// All senses together average 45.5 us. MW_CUNITS 128: eight 64 KB pages, the paired-page window pblk's
/// buffer was sized for.
pub(super) fn westlake() -> Config {
    let geometry = Geometry {
        mw_cunits: 128,
        capabilities: Capabilities { vector_copy: true, ..Capabilities::default() },
        ..Geometry::example(16, 8, 1067, 4096, 16)
    };
    let media = MediaConfig {
        cell: CellType::Mlc,
        planes: 4,
        sectors_per_page: 4,
        plane_reads: PlaneReads::Asked,
        read: vec![Nanos(36_800), Nanos(49_100)],
        slow_read: vec![slow(60_000_000, 85), slow(2_000_000, 95), slow(200_000, 107)],
        program: vec![Nanos(611_000), Nanos(1_653_000)],
        erase: Nanos::from_millis(3),
        registers: 2,
    };
    let channel = ChannelConfig {
        bytes_per_second: 281_100_000,
        command: Nanos::from_micros(3),
        grant_sectors: 4, // a page, as planes are loaded one after the other
    };
    let link = LinkConfig {
        read_bytes_per_second: 4_520_000_000,
        write_bytes_per_second: 4_016_000_000,
        command: Nanos(9_100),
    };
    plain(geometry, media, channel, link)
}

/// PCIe 3.0 x8 less protocol overhead: the 4.5 GB/s Westlake showed on the same link (FAST'17).
const PCIE3_X8: LinkConfig = LinkConfig {
    read_bytes_per_second: 4_500_000_000,
    write_bytes_per_second: 4_500_000_000,
    command: Nanos::from_micros(9),
};

/// liblightnvm's OCSSD 2.0 example drive: 8 x 4 x 1474 x 6144, ws 24 / 24 / 192, read 40 us typical and 80 us at most,
/// write 1.9 ms, reset 7 ms. Channel 400 MB/s: chosen, ONFI 3 at its usual speed.
pub(super) fn cnex_tlc() -> Config {
    let geometry = Geometry {
        mw_cunits: 192,
        capabilities: Capabilities { vector_copy: true, ..Capabilities::default() },
        ..Geometry::example(8, 4, 1474, 6144, 24)
    };
    let mut config = plain(geometry, dual_plane_tlc(), onfi(400), PCIE3_X8);
    config.geometry.times.write_max = Nanos::from_micros(3_700);
    config.geometry.times.reset_max = Nanos::from_millis(20);
    config
}

/// Two planes of 16 KiB pages, three pages a word line programmed at once: 24 sectors, 96 KiB.
fn dual_plane_tlc() -> MediaConfig {
    MediaConfig {
        cell: CellType::Tlc,
        planes: 2,
        sectors_per_page: 4,
        plane_reads: PlaneReads::Always,
        read: vec![Nanos::from_micros(40), Nanos::from_micros(60), Nanos::from_micros(80)],
        slow_read: Vec::new(),
        program: vec![Nanos::from_micros(1_900)],
        erase: Nanos::from_millis(7),
        registers: 2,
    }
}

const fn onfi(megabytes_per_second: u64) -> ChannelConfig {
    // Chosen: command, address and status cycles of one transfer at this class of bus. A page of 16 KiB is granted: ONFI loads
    // one plane after the other, each with a command of its own, and NVMeVirt moves 16 KiB at a time too.
    ChannelConfig {
        bytes_per_second: megabytes_per_second * 1_000_000,
        command: Nanos::from_micros(1),
        grant_sectors: 4,
    }
}

/// The drive of CIDR'20 section 4.1: 8 groups of 4 units, dual-plane TLC, chunks of 24 MB, a write unit of 96 KB, and a
/// write-back cache. Media times as liblightnvm's TLC drive; cache 32 MiB: chosen, a third of a megabyte per write unit
/// in flight on every unit.
pub(super) fn cidr20() -> Config {
    let mut config = cnex_tlc();
    config.cache = CacheConfig { sectors: 8192, power_loss_protection: false };
    config
}

/// qemu-nvme's default OCSSD image: 2 x 8 x 60 x 4096, ws 4 / 8 / 24, 70 us, 1.9 ms, 3 ms.
pub(super) fn qemu() -> Config {
    let geometry = Geometry { ws_min: 4, mw_cunits: 24, ..Geometry::example(2, 8, 60, 4096, 8) };
    let media = MediaConfig {
        cell: CellType::Mlc,
        planes: 2,
        sectors_per_page: 4,
        plane_reads: PlaneReads::Always,
        read: vec![Nanos::from_micros(70)],
        slow_read: Vec::new(),
        program: vec![Nanos::from_micros(1_900)],
        erase: Nanos::from_millis(3),
        registers: 2,
    };
    plain(geometry, media, onfi(400), PCIE3_X8)
}

/// NVMeVirt's ZN540: 8 channels of 4 units, one-shot 96 KiB, channel 450 MB/s, sense 50 and 58 us, program 561 us, link
/// 3.05 GB/s, 20 us of firmware a read. Erase 5 ms (theirs is 0; chosen within what 3D TLC takes).
pub(super) fn zn540() -> Config {
    let geometry = Geometry { mw_cunits: 48, ..Geometry::example(8, 4, 1024, 6144, 24) };
    let media = MediaConfig {
        read: vec![Nanos::from_micros(50), Nanos::from_micros(58)],
        slow_read: Vec::new(),
        program: vec![Nanos::from_micros(561)],
        erase: Nanos::from_millis(5),
        ..dual_plane_tlc()
    };
    let link = LinkConfig {
        read_bytes_per_second: 3_050_000_000,
        write_bytes_per_second: 3_050_000_000,
        command: Nanos::from_micros(10),
    };
    let mut config = plain(geometry, media, onfi(450), link);
    config.cache = CacheConfig { sectors: 4096, power_loss_protection: true };
    config
}

/// NVMeVirt's 970 PRO: 8 channels of 2 units, 32 KiB one-shot pages, channel 800 MB/s, sense 29.8 and 41.8 us, program
/// 185 us, link 3.36 GB/s, 21.5 us of firmware a read. Erase 3 ms: chosen.
pub(super) fn pro970() -> Config {
    let geometry = Geometry::example(8, 2, 2048, 8192, 8);
    let media = MediaConfig {
        cell: CellType::Mlc,
        planes: 2,
        sectors_per_page: 4,
        plane_reads: PlaneReads::Always,
        read: vec![Nanos(29_800), Nanos(41_800)],
        slow_read: Vec::new(),
        program: vec![Nanos::from_micros(185)],
        erase: Nanos::from_millis(3),
        registers: 2,
    };
    let link = LinkConfig {
        read_bytes_per_second: 3_360_000_000,
        write_bytes_per_second: 3_360_000_000,
        command: Nanos(21_500),
    };
    let mut config = plain(geometry, media, onfi(800), link);
    config.cache = CacheConfig { sectors: 8192, power_loss_protection: false };
    config
}

/// Z-NAND as Samsung presented it: 3 us to sense, 100 us to program, small pages. Erase 1 ms, channel 800 MB/s: chosen.
pub(super) fn z_nand() -> Config {
    let geometry = Geometry::example(8, 4, 1024, 4096, 4);
    let media = MediaConfig {
        cell: CellType::Slc,
        planes: 2,
        sectors_per_page: 1,
        plane_reads: PlaneReads::Always,
        read: vec![Nanos::from_micros(3)],
        slow_read: Vec::new(),
        program: vec![Nanos::from_micros(100)],
        erase: Nanos::from_millis(1),
        registers: 2,
    };
    let link = LinkConfig {
        read_bytes_per_second: 3_200_000_000,
        write_bytes_per_second: 3_200_000_000,
        command: Nanos::from_micros(5),
    };
    let channel = ChannelConfig { grant_sectors: 1, ..onfi(800) };
    plain(geometry, media, channel, link)
}

/// QLC: four planes of 16 KiB pages; sense times of its four page types, program and erase are chosen in the range
/// published for 96 to 144-layer QLC (60 to 140 us, 2 to 3 ms, 10 ms).
pub(super) fn qlc() -> Config {
    let geometry = Geometry { mw_cunits: 64, ..Geometry::example(8, 4, 512, 16384, 64) };
    let media = MediaConfig {
        cell: CellType::Qlc,
        planes: 4,
        sectors_per_page: 4,
        plane_reads: PlaneReads::Always,
        read: [65, 85, 110, 140].map(Nanos::from_micros).to_vec(),
        slow_read: Vec::new(),
        program: vec![Nanos::from_micros(8_000)],
        erase: Nanos::from_millis(10),
        registers: 2,
    };
    let mut config = plain(geometry, media, onfi(1_200), PCIE3_X8);
    config.cache = CacheConfig { sectors: 16_384, power_loss_protection: true };
    config
}
