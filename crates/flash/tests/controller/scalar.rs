//! Scalar commands beyond the rules: transfer size, reads that leave their chunk, Dataset Management, flush, FUA, the
//! queue, power.

use crate::host::{Buffers, Host, SECTOR, SOMEWHERE, bits, scalar, tiny};
use ocssd_base::{Nanos, Prng};
use ocssd_flash::config::CacheConfig;
use ocssd_flash::controller::{Busy, Controller, IoBuffers};
use ocssd_flash::{Config, Flash, presets};
use ocssd_lightnvm::{ChunkState, Payload};
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::sqe::{DatasetManagement, ReadWrite};
use ocssd_nvme::{Cqe, Sqe};

fn odd() -> Config {
    let mut config = presets::find("odd").expect("a preset").config();
    config.payload = Payload::Bytes;
    config
}

#[test]
fn a_transfer_up_to_mdts_is_taken_and_one_above_is_refused() {
    let mut host = Host::with_every_state();
    let mdts = host.controller.identify_controller().mdts;
    assert_eq!((mdts, host.controller.transfer_bytes_max()), (6, 256 << 10));
    let start = host.lba(2, 0);
    assert_eq!(bits(&host.read(start, 64).0), 0, "256 KiB");
    assert_eq!(bits(&host.read(start, 65).0), 0x4002);
    // liblightnvm's compliance test: a write of 512 KiB.
    let before = host.table();
    let free = host.lba(0, 0);
    assert_eq!(bits(&host.write(free, 128, 1)), 0x4002);
    assert_eq!(host.table(), before);
}

#[test]
fn a_read_beyond_its_chunk_goes_on_in_the_chunk_that_has_the_next_address() {
    let mut host = Host::with_every_state();
    host.fill_rest(1, 16);
    // 32 sectors a chunk: the address after chunk 1 is chunk 2's.
    let (cqe, buffers) = host.read(host.lba(1, 30), 4);
    assert_eq!(bits(&cqe), 0);
    let firsts: Vec<u8> = buffers.data.chunks_exact(SECTOR).map(|sector| sector[0]).collect();
    assert_eq!(firsts, [31, 32, 1, 2]);
}

#[test]
fn a_read_beyond_its_chunk_falls_into_the_hole_when_there_is_one() {
    let mut host = Host::new(odd());
    for chunk in [0, 1] {
        for sector in (0..72).step_by(24) {
            let at = host.lba(chunk, sector);
            assert_eq!(bits(&host.write(at, 24, 1 + u8::try_from(chunk).expect("small"))), 0);
        }
    }
    // 72 sectors of 128 addresses: the address after sector 71 is nobody's.
    let (cqe, buffers) = host.read(host.lba(0, 71), 2);
    assert_eq!(bits(&cqe), 0);
    assert_eq!((buffers.data[0], buffers.data[SECTOR]), (1, 0));
    assert_eq!(bits(&host.set_feature(FeatureId::ERROR_RECOVERY, 1 << 16)), 0);
    assert_eq!(bits(&host.read(host.lba(0, 71), 2).0), 0x4287);
    assert_eq!(bits(&host.read(host.lba(0, 71), 1).0), 0);
    // The last addresses there are: they do not wrap around.
    assert_eq!(bits(&host.read(u64::MAX - 1, 4).0), 0x4287);
}

#[test]
fn dataset_management_resets_whole_chunks_only() {
    type Ranges = fn(&Host) -> Vec<(u64, u32)>;
    let closed = |host: &Host| host.lba(2, 0);
    let table: [(Ranges, u16, &str); 6] = [
        (|host| vec![(host.lba(2, 4), 32)], 0x4002, "not at a chunk's start"),
        (|host| vec![(host.lba(2, 0), 31)], 0x4080, "shorter than the chunk"),
        (|host| vec![(host.lba(2, 0), 32 + (1 << 16))], 0x4080, "all 32 bits of the length count"),
        (
            |host| vec![(host.lba(2, 0), 32), (host.lba(4, 0), 16)],
            0x4080,
            "a sound range before a broken one",
        ),
        (|host| vec![(host.nowhere() + 1, 32)], 0x4002, "nowhere, and not at a start"),
        (|_| vec![(u64::MAX << 32, 32)], 0x42C1, "no such chunk"),
    ];
    for (ranges, status, why) in table {
        let mut host = Host::with_every_state();
        let before = host.table();
        let ranges = ranges(&host);
        assert_eq!(bits(&host.deallocate(&ranges)), status, "{why}");
        assert_eq!(host.table(), before, "{why}: nothing changes");
    }
    let mut host = Host::with_every_state();
    let start = closed(&host);
    // Sound ranges stand each for itself: FREE fails, CLOSED is reset.
    let free = host.lba(0, 0);
    assert_eq!(bits(&host.deallocate(&[(free, 32), (start, 32)])), 0x42C1);
    assert_eq!(host.table()[2].state, ChunkState::Free);
}

#[test]
fn dataset_management_takes_256_ranges_and_without_ad_it_is_advice() {
    let mut config = tiny();
    config.geometry.chunks_per_pu = 100;
    config.geometry.lba_format.chunk_bits = 7;
    let mut host = Host::new(config);
    for chunk in 0..256 {
        let at = host.lba(chunk, 0);
        assert_eq!(bits(&host.write(at, 32, 1)), 0);
    }
    let ranges: Vec<(u64, u32)> = (0..256).map(|chunk| (host.lba(chunk, 0), 32)).collect();
    let before = host.table();
    let advice =
        DatasetManagement { range_count: 256, deallocate: false, integral_read: true, integral_write: true };
    assert_eq!(bits(&host.io(Sqe::dataset_management(1, advice), &mut Buffers::default())), 0);
    assert_eq!(host.table(), before);
    assert_eq!(bits(&host.deallocate(&ranges)), 0);
    assert!(host.table()[..256].iter().all(|chunk| chunk.state == ChunkState::Free));
}

fn cached() -> Config {
    let mut config = tiny();
    config.cache = CacheConfig { sectors: 64, power_loss_protection: false };
    config
}

/// Time a write of 8 sectors takes.
fn write_time(host: &mut Host, force_unit_access: bool) -> Nanos {
    let at = host.controller.flash().chunk(ocssd_lightnvm::ChunkId(0)).write_pointer.expect("not offline");
    let write = ReadWrite { force_unit_access, ..scalar(host.lba(0, at), 8) };
    let start = host.now;
    assert_eq!(bits(&host.io(Sqe::write(1, write), &mut Buffers::sectors(8, 1))), 0);
    host.now.saturating_since(start)
}

#[test]
fn fua_and_a_cache_switched_off_wait_for_the_media_and_so_does_flush() {
    let mut host = Host::new(cached());
    let program = Nanos::from_micros(300);
    assert!(write_time(&mut host, false) < program);
    let start = host.now;
    assert_eq!(bits(&host.io(Sqe::flush(1), &mut Buffers::default())), 0);
    assert!(host.now.saturating_since(start) > Nanos::from_micros(250), "the flush waits for the program");
    assert!(write_time(&mut host, true) > program);
    assert_eq!(bits(&host.set_feature(FeatureId::VOLATILE_WRITE_CACHE, 0)), 0);
    assert!(write_time(&mut host, false) > program);
    assert_eq!(
        bits(&host.io(Sqe::flush(u32::MAX), &mut Buffers::default())),
        0,
        "flush takes all namespaces"
    );
}

#[test]
fn a_full_queue_is_busy_and_changes_nothing() {
    let mut config = tiny();
    config.queue_depth = 2;
    let mut host = Host::new(config);
    let (first, second) = (host.lba(0, 0), host.lba(1, 0));
    host.submit(Sqe::write(1, scalar(first, 4)), &mut Buffers::sectors(4, 1));
    // A refused command holds a place as well until it is polled.
    host.submit(Sqe::write(9, scalar(second, 4)), &mut Buffers::sectors(4, 1));
    let before = host.table();
    let mut data = vec![0; 4 * SECTOR];
    let io = IoBuffers { data: &mut data, ..IoBuffers::default() };
    let entry = Sqe::write(1, scalar(second, 4)).encode();
    assert_eq!(host.controller.submit(host.now, 3, &entry, io), Err(Busy));
    assert_eq!(host.table(), before);
    assert!(Busy.to_string().contains("queue_depth"));
    let statuses = [bits(&host.wait()), bits(&host.wait())];
    assert_eq!(statuses, [0x400B, 0], "the refusal needs no media");
    assert_eq!(host.controller.deadline(), None);
}

#[test]
fn a_controller_reset_forgets_commands_and_features_and_keeps_the_data() {
    let mut host = Host::with_every_state();
    assert_eq!(bits(&host.set_feature(FeatureId::ERROR_RECOVERY, 1 << 16)), 0);
    let at = host.lba(0, 0);
    host.submit(Sqe::write(1, scalar(at, 4)), &mut Buffers::sectors(4, 1));
    host.submit(Sqe::write(9, scalar(at, 4)), &mut Buffers::sectors(4, 1));
    host.controller.reset(host.now);
    while let Some(next) = host.controller.deadline() {
        host.now = next;
        assert_eq!(host.controller.poll(host.now), None, "nobody waits for it");
    }
    assert_eq!(host.table()[0].write_pointer, Some(4));
    assert_eq!(bits(&host.read(host.lba(5, 0), 1).0), 0, "DULBE is off again");
}

#[test]
fn a_power_cut_ends_what_is_in_progress_and_is_counted() {
    let mut host = Host::new(cached());
    let at = host.lba(0, 0);
    host.submit(Sqe::write(1, scalar(at, 8)), &mut Buffers::sectors(8, 1));
    let report = host.controller.power_cut(host.now, &mut Prng::new(1)).expect("memory does not fail");
    assert_eq!((report.commands, report.sectors_lost), (1, 8));
    assert_eq!(host.controller.deadline(), None);
    assert_eq!(host.table()[0].state, ChunkState::Free);
    assert_eq!(bits(&host.write(at, 8, 2)), 0);
}

#[test]
fn a_drive_of_stamps_has_no_controller() {
    let config = presets::find("tiny").expect("a preset").config();
    let Err(sentence) = Controller::new(Flash::format(config).expect("sound")) else {
        panic!("stamps were served")
    };
    assert!(sentence.contains("payload") && sentence.contains("bytes"), "{sentence}");
}

#[test]
fn metadata_is_optional_and_zero_when_not_given() {
    let mut host = Host::new(tiny());
    let at = host.lba(0, 0);
    let mut buffers = Buffers { metadata: Vec::new(), ..Buffers::sectors(32, 3) };
    assert_eq!(bits(&host.io(Sqe::write(1, scalar(at, 32)), &mut buffers)), 0);
    let mut read = Buffers::sectors(32, 0xA5);
    let cqe: Cqe = host.io(Sqe::read(1, scalar(at, 32)).with_mptr(SOMEWHERE), &mut read);
    assert_eq!(bits(&cqe), 0);
    assert!(read.data == buffers.data && read.metadata.iter().all(|&byte| byte == 0));
}
