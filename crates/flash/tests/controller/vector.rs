//! Vector commands beyond the rules: bitmaps, descriptors through MPTR, failures of the media, and what is reported.

use crate::host::{Buffers, Host, OOB, SECTOR, SOMEWHERE, addresses, bits, vector};
use ocssd_flash::FaultKind;
use ocssd_nvme::Sqe;
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::ocssd20::{ChunkDescriptor, ChunkState};

#[test]
fn the_bitmap_has_a_bit_for_each_of_64_entries() {
    let mut host = Host::with_every_state();
    assert_eq!(bits(&host.set_feature(FeatureId::ERROR_RECOVERY, 1 << 16)), 0);
    // Written and unwritten sectors in turn, over both dwords.
    let list: Vec<u64> =
        (0..64).map(|entry| if entry % 3 == 0 { host.lba(5, 0) } else { host.lba(2, entry % 32) }).collect();
    let (cqe, buffers) = host.vector_read(&list);
    assert_eq!(bits(&cqe), 0x4287);
    let expected = (0..64).filter(|entry| entry % 3 == 0).fold(0u64, |map, entry| map | 1 << entry);
    assert_eq!(cqe.failed_entries(), expected);
    for (entry, sector) in (0..64u32).zip(buffers.data.chunks_exact(SECTOR)) {
        let fill = if entry % 3 == 0 { 0 } else { u8::try_from(entry % 32 + 1).expect("small") };
        assert!(sector.iter().all(|&byte| byte == fill), "entry {entry}");
    }
}

#[test]
fn a_write_of_64_sectors_over_many_chunks_arrives_where_it_was_sent() {
    let mut host = Host::new(crate::host::tiny());
    let list: Vec<u64> = (0..8).flat_map(|chunk| host.lbas(chunk, 0..8)).collect();
    let mut buffers = Buffers { list: list.clone(), ..Buffers::sectors(64, 0) };
    for (index, value) in (0..64).zip(1u8..) {
        buffers.data[index * SECTOR..][..SECTOR].fill(value);
        buffers.metadata[index * OOB..][..OOB].fill(value ^ 0xFF);
    }
    let sqe = Sqe::vector_write(1, vector(&list)).with_mptr(SOMEWHERE);
    assert_eq!(bits(&host.io(sqe, &mut buffers)), 0);
    for chunk in 0..8 {
        host.fill_rest(chunk, 8);
    }
    let (cqe, read) = host.vector_read(&list);
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0, 0));
    assert!(
        read.data == buffers.data && read.metadata == buffers.metadata,
        "data and metadata of each sector"
    );
}

#[test]
fn a_reset_returns_each_chunk_as_it_is_then() {
    let mut host = Host::with_every_state();
    let list: Vec<u64> = [2, 0, 3, 4].map(|chunk| host.lba(chunk, 0)).to_vec();
    let list = [list, vec![host.nowhere()]].concat();
    let mut buffers = Buffers { list: list.clone(), metadata: vec![0xA5; 5 * 32 + 7], ..Buffers::default() };
    let cqe = host.io(Sqe::vector_reset(1, addresses(&list), Some(SOMEWHERE)), &mut buffers);
    // FREE (2C1h), OFFLINE (2C0h) and nowhere (2C1h) failed; the code is the gravest.
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x42C0, 0b1_0110));
    let states = buffers.metadata[..4 * 32].chunks_exact(32).map(|bytes| {
        let descriptor = ChunkDescriptor::decode(bytes).expect("a descriptor");
        (descriptor.cs, descriptor.slba.0, descriptor.wp)
    });
    let expected = [
        (ChunkState::Free, list[0], 0),
        (ChunkState::Free, list[1], 0),
        (ChunkState::Offline, list[2], u64::MAX),
        (ChunkState::Free, list[3], 0),
    ];
    assert_eq!(states.collect::<Vec<_>>(), expected);
    assert!(buffers.metadata[128..160].iter().all(|&byte| byte == 0), "zeros where there is no chunk");
    assert!(buffers.metadata[160..].iter().all(|&byte| byte == 0xA5), "nothing beyond the descriptors");
}

#[test]
fn a_reset_without_room_for_descriptors_resets_nothing() {
    let mut host = Host::with_every_state();
    let before = host.table();
    let chunk = [host.lba(2, 0)];
    let mut buffers = Buffers { metadata: vec![0; 31], ..Buffers::default() };
    let cqe = host.io(Sqe::vector_reset(1, addresses(&chunk), Some(SOMEWHERE)), &mut buffers);
    assert_eq!(bits(&cqe), 0x4004);
    assert_eq!(host.table(), before);
}

#[test]
fn media_failures_of_a_write_mark_their_entries_and_may_be_retried() {
    let mut host = Host::new(crate::host::tiny());
    host.fault(FaultKind::WriteNextUnit, 1, None);
    let list = [host.lbas(0, 0..8), host.lbas(1, 0..8)].concat();
    let cqe = host.vector_write(&list, 5);
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x42F0, 0xFF00));
    let pointers: Vec<_> = host.table()[..2].iter().map(|chunk| chunk.write_pointer).collect();
    assert_eq!(pointers, [Some(8), Some(8)], "the write pointer moved past the failed unit");
    host.fault(FaultKind::EarlyClose, 0, None);
    let list = [host.lbas(0, 8..16), host.lbas(1, 8..16)].concat();
    let cqe = host.vector_write(&list, 6);
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x42F1, 0x00FF));
    assert_eq!(host.table()[0].write_pointer, Some(8));
    assert_eq!(host.table()[1].write_pointer, Some(16), "the other chunk proceeds");
}

#[test]
fn high_ecc_is_reported_to_who_asked_and_the_data_is_there() {
    // Scalar and vector reads have a bit each.
    for (feedback, scalar, vector) in [(0, 0, 0), (1, 0x2D0, 0), (2, 0, 0x2D0), (3, 0x2D0, 0x2D0)] {
        let mut host = Host::with_every_state();
        assert_eq!(bits(&host.set_feature(FeatureId::MEDIA_FEEDBACK, feedback)), 0);
        let lba = host.lba(2, 3);
        host.fault(FaultKind::HighEcc, 2, Some(3));
        let (cqe, buffers) = host.read(lba, 1);
        assert_eq!((bits(&cqe), cqe.failed_entries()), (scalar, 0), "feedback {feedback}");
        assert!(buffers.data.iter().all(|&byte| byte == 4));
        host.fault(FaultKind::HighEcc, 2, Some(3));
        let (cqe, buffers) = host.vector_read(&[host.lba(2, 2), lba]);
        let failed = if vector == 0 { 0 } else { 0b10 };
        assert_eq!((bits(&cqe), cqe.failed_entries()), (vector, failed), "feedback {feedback}");
        assert!(buffers.data[SECTOR..].iter().all(|&byte| byte == 4));
    }
}

#[test]
fn lost_data_is_an_error_with_and_without_feedback() {
    let mut host = Host::with_every_state();
    host.fault(FaultKind::UnrecoveredRead, 2, Some(9));
    let (cqe, buffers) = host.vector_read(&host.lbas(2, 8..11));
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x0281, 0b010));
    assert!(buffers.data[..SECTOR].iter().all(|&byte| byte == 9), "the others are delivered");
    assert!(buffers.data[SECTOR..2 * SECTOR].iter().all(|&byte| byte != 10), "lost data is not handed out");
}

#[test]
fn entries_that_fail_differently_are_all_marked_and_the_others_are_delivered() {
    let mut host = Host::with_every_state();
    assert_eq!(bits(&host.set_feature(FeatureId::ERROR_RECOVERY, 1 << 16)), 0);
    assert_eq!(bits(&host.set_feature(FeatureId::MEDIA_FEEDBACK, 2)), 0);
    for (kind, sector) in [(FaultKind::UnrecoveredRead, 9), (FaultKind::HighEcc, 10)] {
        host.fault(kind, 2, Some(sector));
    }
    let list = [host.lba(5, 0), host.lba(2, 10), host.lba(2, 9), host.lba(2, 8)];
    let (cqe, buffers) = host.vector_read(&list);
    // Unwritten, weak, lost and sound: the gravest status, and no bit for the weak one, whose data is valid.
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x0281, 0b0101));
    assert!(buffers.data[SECTOR..2 * SECTOR].iter().all(|&byte| byte == 11));
    assert!(buffers.data[3 * SECTOR..].iter().all(|&byte| byte == 9));
    let mut host = Host::new(crate::host::tiny());
    host.fault(FaultKind::WriteNextUnit, 0, None);
    host.fault(FaultKind::EarlyClose, 2, None);
    let list = [host.lbas(0, 0..8), host.lbas(1, 0..8), host.lbas(2, 0..8)].concat();
    let cqe = host.vector_write(&list, 5);
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x42F1, 0xFF_00FF));
    assert_eq!([0, 1, 2].map(|chunk| host.table()[chunk].write_pointer), [Some(8), Some(8), Some(0)]);
}

#[test]
fn a_failed_reset_takes_the_chunk_offline_and_the_others_proceed() {
    let mut host = Host::with_every_state();
    host.fault(FaultKind::ResetFailure, 2, None);
    let list = [host.lba(2, 0), host.lba(4, 0)];
    let cqe = host.vector_reset(&list);
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x42C0, 0b01));
    let table = host.table();
    assert_eq!(table[2].state, ocssd_lightnvm::ChunkState::Offline);
    assert_eq!(table[4].state, ocssd_lightnvm::ChunkState::Free);
}

#[test]
fn a_read_mixes_chunks_in_any_order_and_repeats() {
    let mut host = Host::with_every_state();
    let list = [host.lba(2, 31), host.lba(1, 0), host.lba(2, 31), host.lba(4, 7)];
    let (cqe, buffers) = host.vector_read(&list);
    assert_eq!(bits(&cqe), 0);
    let firsts: Vec<u8> = buffers.data.chunks_exact(SECTOR).map(|sector| sector[0]).collect();
    assert_eq!(firsts, [32, 1, 32, 8]);
}
