//! Every rule of OCSSD 2.0 for reads, writes and resets, on the wire: state and command give the status of the table,
//! and a refused command changes nothing (tables in `docs/ppa.md`).

use crate::host::{Host, OOB, SECTOR, bits, tiny};
use ocssd_flash::Config;
use ocssd_lightnvm::ChunkState;
use ocssd_nvme::feature::{FeatureId, Select};

/// Chunk, first sector, sectors, status. Chunks as in `Host::with_every_state`; 99 is an address without a group.
const WRITES: &[(u32, u32, u32, u16, &str)] = &[
    (0, 0, 4, 0x0000, "FREE at 0"),
    (0, 4, 4, 0x42F2, "FREE beyond the write pointer"),
    (0, 0, 3, 0x4002, "less than WS_MIN"),
    (0, 0, 6, 0x4002, "no multiple of WS_MIN"),
    (0, 0, 32, 0x0000, "a whole chunk"),
    (0, 0, 36, 0x4280, "beyond the chunk's end"),
    (1, 16, 4, 0x0000, "OPEN at the write pointer"),
    (1, 16, 16, 0x0000, "OPEN to its end"),
    (1, 0, 4, 0x42F2, "OPEN below the write pointer"),
    (1, 20, 4, 0x42F2, "OPEN above the write pointer"),
    (1, 16, 20, 0x4280, "OPEN, beyond the chunk's end"),
    (2, 0, 4, 0x4280, "CLOSED"),
    (3, 0, 4, 0x4280, "OFFLINE"),
    (4, 8, 4, 0x4280, "closed early"),
    (99, 0, 4, 0x4280, "no such chunk"),
];

fn address(host: &Host, chunk: u32, sector: u32) -> u64 {
    if chunk == 99 { host.nowhere() + u64::from(sector) } else { host.lba(chunk, sector) }
}

#[test]
fn writes_obey_the_table_by_scalar_and_by_vector() {
    for &(chunk, sector, count, status, why) in WRITES {
        for by_vector in [false, true] {
            let mut host = Host::with_every_state();
            let before = host.table();
            let first = address(&host, chunk, sector);
            let list: Vec<u64> = (first..).take(usize::try_from(count).expect("small")).collect();
            // As vectors are lists, one that leaves its chunk names the next one, which is another chunk's start.
            let crosses = sector + count > 32;
            if by_vector && crosses {
                continue;
            }
            let cqe = if by_vector { host.vector_write(&list, 7) } else { host.write(first, count, 7) };
            assert_eq!(bits(&cqe), status, "{why}, vector {by_vector}");
            if status == 0 {
                let index = usize::try_from(chunk).expect("small");
                let after = host.table()[index];
                let expected = if sector + count == 32 { ChunkState::Closed } else { ChunkState::Open };
                assert_eq!((after.state, after.write_pointer), (expected, Some(sector + count)), "{why}");
            } else {
                assert_eq!(host.table(), before, "{why}: nothing changes");
                let all = if by_vector { u64::MAX >> (64 - count) } else { 0 };
                assert_eq!(cqe.failed_entries(), all, "{why}: no entry was done");
            }
            host.controller.flash().check();
        }
    }
}

#[test]
fn a_vector_write_with_one_broken_chunk_changes_no_chunk() {
    let mut host = Host::with_every_state();
    let before = host.table();
    for wrong in [host.lbas(2, 0..4), host.lbas(1, 0..4), host.lbas(3, 0..4)] {
        let list = [host.lbas(0, 0..4), wrong, host.lbas(5, 0..4)].concat();
        let cqe = host.vector_write(&list, 9);
        assert!(bits(&cqe) >= 0x4000, "refused with DNR: {:04X}h", bits(&cqe));
        assert_eq!(cqe.failed_entries(), 0xFFF);
        assert_eq!(host.table(), before);
    }
}

#[test]
fn reads_obey_the_table_with_dulbe_and_without() {
    // Chunk, sector, and whether there is data. mw_cunits is 8.
    let table = [
        (0, 0, false, "FREE"),
        (1, 0, true, "OPEN"),
        (1, 7, true, "OPEN, last before the window"),
        (1, 8, false, "OPEN, in the window of MW_CUNITS"),
        (1, 16, false, "OPEN, at the write pointer"),
        (2, 31, true, "CLOSED: the window is gone"),
        (3, 0, false, "OFFLINE"),
        (4, 7, true, "closed early, below the write pointer"),
        (4, 8, false, "closed early, above"),
        (99, 0, false, "no such chunk"),
    ];
    for dulbe in [false, true] {
        let mut host = Host::with_every_state();
        let value = u32::from(dulbe) << 16;
        assert_eq!(bits(&host.set_feature(FeatureId::ERROR_RECOVERY, value)), 0);
        for (chunk, sector, has_data, why) in table {
            let lba = address(&host, chunk, sector);
            for (cqe, buffers, failed) in [
                {
                    let (cqe, buffers) = host.read(lba, 1);
                    (cqe, buffers, 0)
                },
                {
                    let (cqe, buffers) = host.vector_read(&[lba]);
                    (cqe, buffers, 1)
                },
            ] {
                let fill = if has_data { u8::try_from(sector + 1).expect("small") } else { 0 };
                assert!(
                    buffers.data.iter().all(|&byte| byte == fill),
                    "{why}: predefined data is 00h (DLFEAT)"
                );
                if has_data {
                    assert!(buffers.metadata.iter().all(|&byte| byte == fill ^ 0x55), "{why}: metadata");
                }
                let refused = dulbe && !has_data;
                assert_eq!(bits(&cqe), if refused { 0x4287 } else { 0 }, "{why}, DULBE {dulbe}");
                assert_eq!(cqe.failed_entries(), if refused { failed } else { 0 }, "{why}");
            }
        }
    }
}

/// A drive may be set so: Linux's pblk never sets DULBE, and takes predefined data for its own.
#[test]
fn dulbe_may_be_there_from_power_on_and_after_a_reset() {
    let mut host = Host::with_every_state_of(Config { dulbe: true, ..tiny() });
    let in_window = address(&host, 1, 8);
    for _ in 0..2 {
        let (cqe, _) = host.vector_read(&[in_window]);
        assert_eq!((bits(&cqe), cqe.failed_entries()), (0x4287, 1));
        assert_eq!(host.get_feature(FeatureId::ERROR_RECOVERY, Select::Default).dw0, 1 << 16);
        assert_eq!(bits(&host.set_feature(FeatureId::ERROR_RECOVERY, 0)), 0);
        let (cqe, _) = host.vector_read(&[in_window]);
        assert_eq!(bits(&cqe), 0, "a host may change it");
        host.controller.reset(host.now);
    }
}

#[test]
fn resets_obey_the_table_by_vector_and_by_dataset_management() {
    let table = [
        (0, 0x42C1, "FREE"),
        (1, 0x42C1, "OPEN"),
        (2, 0x0000, "CLOSED"),
        (3, 0x42C0, "OFFLINE"),
        (4, 0x0000, "closed early"),
        (99, 0x42C1, "no such chunk"),
    ];
    for (chunk, status, why) in table {
        for by_vector in [true, false] {
            let mut host = Host::with_every_state();
            let before = host.table();
            let lba = address(&host, chunk, 0);
            let cqe = if by_vector { host.vector_reset(&[lba]) } else { host.deallocate(&[(lba, 32)]) };
            assert_eq!(bits(&cqe), status, "{why}, vector {by_vector}");
            assert_eq!(cqe.failed_entries(), u64::from(by_vector && status != 0), "{why}");
            if status == 0 {
                let after = host.table()[usize::try_from(chunk).expect("small")];
                assert_eq!((after.state, after.write_pointer), (ChunkState::Free, Some(0)), "{why}");
                let (_, buffers) = host.read(lba, 1);
                assert!(buffers.data.iter().all(|&byte| byte == 0), "{why}: the data is gone");
            } else {
                assert_eq!(host.table(), before, "{why}: nothing changes");
            }
        }
    }
}

#[test]
fn capabilities_allow_resets_of_free_and_of_open_chunks() {
    let mut config = tiny();
    config.geometry.capabilities.multiple_resets = true;
    config.geometry.capabilities.early_reset = true;
    let mut host = Host::with_every_state_of(config);
    for chunk in [0, 1] {
        let lba = host.lba(chunk, 0);
        assert_eq!(bits(&host.vector_reset(&[lba])), 0, "chunk {chunk}");
    }
    assert!(host.table()[..2].iter().all(|chunk| chunk.state == ChunkState::Free));
}

#[test]
fn a_reset_names_the_first_sector_of_a_chunk() {
    let mut host = Host::with_every_state();
    let before = host.table();
    let inside = host.lba(2, 4);
    assert_eq!(bits(&host.vector_reset(&[inside])), 0x42C1);
    assert_eq!(host.table(), before);
}

#[test]
fn limits_on_open_chunks_refuse_the_write_that_breaks_them() {
    for (per_pu, drive) in [(1, 0), (0, 1)] {
        let mut config = tiny();
        config.geometry.max_open_chunks_per_pu = per_pu;
        config.geometry.max_open_chunks = drive;
        let mut host = Host::new(config);
        host.fill(0, 4);
        let before = host.table();
        let next = host.lba(1, 0);
        assert_eq!(bits(&host.write(next, 4, 1)), 0x4280);
        assert_eq!(host.table(), before);
        // A chunk of another unit counts for the drive only.
        let other = host.lba(8, 0);
        assert_eq!(bits(&host.write(other, 4, 1)), if per_pu == 1 { 0 } else { 0x4280 });
    }
}

#[test]
fn a_copy_moves_data_and_metadata_under_the_rules_of_both_sides() {
    let mut host = Host::with_every_state();
    let (from, to) = (host.lbas(2, 4..8), host.lbas(0, 0..4));
    assert_eq!(bits(&host.copy(&from, &to)), 0);
    // Above the window of MW_CUNITS only when more follows.
    let (more, rest) = (host.lbas(2, 0..8), host.lbas(0, 4..12));
    assert_eq!(bits(&host.copy(&more, &rest)), 0);
    let (cqe, buffers) = host.vector_read(&host.lbas(0, 0..4));
    assert_eq!(bits(&cqe), 0);
    for (index, value) in (0..4).zip(5u8..) {
        assert!(buffers.data[index * SECTOR..][..SECTOR].iter().all(|&byte| byte == value));
        assert!(buffers.metadata[index * OOB..][..OOB].iter().all(|&byte| byte == value ^ 0x55));
    }
    let before = host.table();
    let table = [
        (host.lbas(0, 0..4), host.lbas(2, 0..4), 0x4280, "destination CLOSED"),
        (host.lbas(2, 0..4), host.lbas(1, 0..4), 0x42F2, "destination out of order"),
        (host.lbas(2, 0..2), host.lbas(1, 16..18), 0x4002, "destination below WS_MIN"),
        (host.lbas(5, 0..4), host.lbas(1, 16..20), 0x4287, "source FREE"),
        (host.lbas(3, 0..4), host.lbas(1, 16..20), 0x4287, "source OFFLINE"),
        (vec![host.nowhere()], host.lbas(1, 16..17), 0x4287, "source nowhere, one address in the command"),
    ];
    for (from, to, status, why) in table {
        assert_eq!(bits(&host.copy(&from, &to)), status, "{why}");
        assert_eq!(host.table(), before, "{why}: nothing changes");
    }
}

#[test]
fn copy_exists_only_if_the_drive_says_so() {
    let mut config = tiny();
    config.geometry.capabilities.vector_copy = false;
    let mut host = Host::with_every_state_of(config);
    let (from, to) = (host.lbas(2, 0..4), host.lbas(0, 0..4));
    assert_eq!(bits(&host.copy(&from, &to)), 0x4001);
}
