//! Reads, writes, and the commands without data: in capsules, asked for, with digests and without.

use crate::nvme_tcp::Copies;
use crate::nvme_tcp::host::{Answer, transported};
use crate::nvme_tcp::testing::{World, completion};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::block::BlockOp;
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::identify::{Cns, IdentifyController};
use ocssd_nvme::ocssd20::DsmRange;
use ocssd_nvme::sqe::{DatasetManagement, ReadWrite, SetFeatures};
use ocssd_nvme::{IoOpcode, Lba, Sqe};

const ALL_DIGESTS: [(bool, bool); 4] = [(false, false), (true, false), (false, true), (true, true)];

fn io(slba: u64, block_count: u32, force_unit_access: bool) -> ReadWrite {
    ReadWrite { slba: Lba(slba), block_count, limited_retry: false, force_unit_access }
}

fn pattern(bytes: usize, salt: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from((at * 7 + at / 512 + salt) % 251).unwrap()).collect()
}

fn zeroes(slba: u64, count: u32, fua: bool) -> Sqe {
    Sqe { opcode: IoOpcode::WRITE_ZEROES.0, ..Sqe::write(1, io(slba, count, fua)) }
}

fn compare(slba: u64, count: u32) -> Sqe {
    Sqe { opcode: IoOpcode::COMPARE.0, ..Sqe::write(1, io(slba, count, false)) }
}

/// Answers an R2T in steps of `step` bytes.
fn write_asked(world: &mut World, line: usize, sqe: Sqe, data: &[u8], step: usize) -> Vec<Answer> {
    let pdu = world.lines[line].host.command(&transported(sqe, data.len()), &[]);
    let asked = world.say(line, &pdu);
    let [Answer::Ask { cid, tag, offset: 0, bytes }] = asked[..] else { panic!("{asked:?}") };
    assert_eq!(bytes, data.len());
    let mut answers = Vec::new();
    for (place, part) in data.chunks(step).enumerate() {
        let offset = place * step;
        let pdu = world.lines[line].host.data(cid, tag, offset, part, offset + part.len() == data.len());
        answers.extend(world.say(line, &pdu));
    }
    answers
}

/// In the tests' world no message comes as a whole.
#[test]
fn data_come_by_way_of_memory_as_of_ox_and_each_copy_is_counted() {
    for digests in ALL_DIGESTS {
        let mut world = World { copies: Copies::Ox, ..World::new() };
        let (_, line, _) = world.ready(digests);
        let before = (world.dispatcher.stats.received_bytes, world.dispatcher.stats.received_copied_bytes);
        let mut written = 0;
        for (round, blocks) in [1_u32, 33, 300, 512].into_iter().enumerate() {
            let data = pattern(usize::try_from(blocks).unwrap() * 512, round);
            let sqe = Sqe::write(1, io(3, blocks, false)).with_cid(9);
            for step in [15 * 4096, 4096, 1024] {
                let cqe = completion(&write_asked(&mut world, line, sqe, &data, step));
                assert_eq!(cqe.status.status, Status::SUCCESS, "{digests:?} {blocks} {step}");
                written += u64::from(blocks) * 512;
            }
            assert_eq!(world.read(line, Sqe::read(1, io(3, blocks, false)), data.len()), Ok(data));
        }
        let stats = &world.dispatcher.stats;
        let found = (stats.received_bytes - before.0, stats.received_copied_bytes - before.1);
        assert_eq!(found, (written, 2 * written), "{digests:?}: put together, and to the buffer");
    }
}

#[test]
fn what_is_written_is_read_however_it_travels() {
    for digests in ALL_DIGESTS {
        let mut world = World::new();
        let (_, line, _) = world.ready(digests);
        for (round, blocks) in [1_u32, 8, 32, 33, 512].into_iter().enumerate() {
            let data = pattern(usize::try_from(blocks).unwrap() * 512, round);
            let sqe = Sqe::write(1, io(3, blocks, false)).with_cid(9);
            let bytes = data.len();
            if bytes <= 16 << 10 {
                assert!(world.write(line, sqe, &data).status.status.is_success());
            }
            for step in [bytes, 4096, 100 * 1000] {
                let cqe = completion(&write_asked(&mut world, line, sqe, &data, step));
                assert_eq!((cqe.status.status, cqe.cid), (Status::SUCCESS, 9), "{digests:?} {blocks} {step}");
            }
            assert!(world.read(line, Sqe::read(1, io(3, blocks, false)), bytes).unwrap() == data);
        }
        assert_eq!(world.dispatcher.stats.digest_errors, 0);
        world.end();
    }
}

#[test]
fn reads_of_a_host_without_flow_control_need_no_completion_and_others_do() {
    let mut world = World::new();
    let (admin, line, _) = world.ready((false, false));
    let ask = |world: &mut World, line: usize, sqe: Sqe, bytes| {
        let pdu = world.lines[line].host.command(&transported(sqe, bytes), &[]);
        world.say(line, &pdu)
    };
    let answers = ask(&mut world, line, Sqe::read(1, io(0, 1, false)), 512);
    assert!(matches!(answers[..], [Answer::Data { is_success: true, .. }]), "{answers:?}");
    let identify = ocssd_nvme::sqe::Identify { cns: ocssd_nvme::identify::Cns::CONTROLLER, cntid: 0, csi: 0 };
    let answers = ask(&mut world, admin, Sqe::identify(0, identify), 4096);
    let [Answer::Data { is_success: false, .. }, Answer::Completion(cqe)] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert!(cqe.sqhd > 0 && cqe.sqid == 0, "{cqe:?}");
    world.end();
}

#[test]
fn zeroes_discards_flushes_and_fua_reach_the_target() {
    let mut world = World::new();
    let (admin, line, _) = world.ready((false, false));
    let data = pattern(4096, 1);
    assert!(world.write(line, Sqe::write(1, io(0, 8, true)), &data).status.status.is_success());
    assert!(world.ask(line, zeroes(0, 1, true)).status.status.is_success());
    let range = |slba, nlb| DsmRange { cattr: 0, nlb, slba: Lba(slba) }.encode();
    let mut ranges = [range(2, 1), range(5, 0), range(7, 1)].concat();
    ranges.resize(4096, 0);
    let dsm =
        DatasetManagement { range_count: 3, deallocate: true, integral_read: false, integral_write: false };
    assert!(world.write(line, Sqe::dataset_management(1, dsm), &ranges).status.status.is_success());
    let advice = DatasetManagement { deallocate: false, ..dsm };
    assert!(world.write(line, Sqe::dataset_management(1, advice), &ranges).status.status.is_success());
    assert!(world.ask(line, Sqe::flush(u32::MAX)).status.status.is_success());
    let found = world.read(line, Sqe::read(1, io(0, 8, false)), 4096).unwrap();
    for (block, bytes) in found.chunks(512).enumerate() {
        let expected = if [0, 2, 7].contains(&block) { &[0; 512][..] } else { &data[block * 512..][..512] };
        assert!(bytes == expected, "block {block}");
    }
    let ops: Vec<BlockOp> = world.disks.log.iter().map(|(_, op)| *op).collect();
    let expected = [
        BlockOp::Write { fua: true },
        BlockOp::WriteZeroes,
        BlockOp::Flush,
        BlockOp::Discard,
        BlockOp::Discard,
        BlockOp::Flush,
        BlockOp::Flush,
        BlockOp::Read,
    ];
    assert_eq!(ops, expected);
    // Without its cache every write is durable.
    let off = SetFeatures { fid: FeatureId::VOLATILE_WRITE_CACHE, save: false, value: 0 };
    assert!(world.ask(admin, Sqe::set_features(0, off)).status.status.is_success());
    assert!(world.write(line, Sqe::write(1, io(0, 1, false)), &data[..512]).status.status.is_success());
    assert_eq!(world.disks.log.last().map(|(_, op)| *op), Some(BlockOp::Write { fua: true }));
    world.end();
}

#[test]
fn what_cannot_be_done_is_refused_and_the_next_command_is_understood() {
    for digests in ALL_DIGESTS {
        let mut world = World::new();
        let (_, line, _) = world.ready(digests);
        world.disks.bad = 100..101;
        let data = pattern(1024, 5);
        let write = |nsid, slba, blocks| Sqe::write(nsid, io(slba, blocks, false));
        let cases = [
            (write(1, 1 << 11, 2), Status::LBA_OUT_OF_RANGE),
            (write(1, 0, 1), Status::INVALID_SGL_LENGTH),
            (write(2, 0, 2), Status::WRITE_TO_READ_ONLY),
            (write(3, 0, 2), Status::INVALID_NAMESPACE),
            (write(0, 0, 2), Status::INVALID_NAMESPACE),
            (write(1, 100, 2), Status::UNRECOVERED_READ),
            (Sqe { opcode: 0x0D, ..write(1, 0, 2) }, Status::INVALID_OPCODE),
        ];
        for (sqe, expected) in cases {
            assert_eq!(world.write(line, sqe, &data).status.status, expected, "{sqe:?}");
        }
        assert_eq!(world.read(line, Sqe::read(1, io(100, 1, false)), 512), Err(Status::UNRECOVERED_READ));
        assert_eq!(world.read(line, Sqe::read(2, io(63, 2, false)), 1024), Err(Status::LBA_OUT_OF_RANGE));
        assert!(world.write(line, write(1, 0, 2), &data).status.status.is_success());
        assert_eq!(world.dispatcher.stats.errors, 9);
        world.end();
    }
}

#[test]
fn a_compare_says_whether_what_is_there_is_what_is_sent() {
    for digests in ALL_DIGESTS {
        let mut world = World::new();
        let (_, line, _) = world.ready(digests);
        for blocks in [1_u32, 32, 512] {
            let data = pattern(usize::try_from(blocks).unwrap() * 512, 5);
            let mut other = data.clone();
            *other.last_mut().unwrap() ^= 1;
            write_asked(&mut world, line, Sqe::write(1, io(600, blocks, false)), &data, 4096);
            for (sent, expected) in [(&data, Status::SUCCESS), (&other, Status::COMPARE_FAILURE)] {
                let cqe = completion(&write_asked(&mut world, line, compare(600, blocks), sent, 4096));
                assert_eq!(cqe.status.status, expected, "{digests:?} {blocks}");
                if sent.len() <= 16 << 10 {
                    let cqe = world.write(line, compare(600, blocks), sent);
                    assert_eq!(cqe.status.status, expected, "{digests:?} {blocks}");
                }
            }
            let sqe = Sqe::read(1, io(600, blocks, false));
            assert!(world.read(line, sqe, data.len()).unwrap() == data, "nothing was changed");
        }
        world.disks.bad = 3..4;
        let lost = world.write(line, compare(0, 8), &[0; 4096]).status.status;
        assert_eq!(lost, Status::UNRECOVERED_READ, "what cannot be read is not called different");
        world.end();
    }
}

#[test]
fn compares_that_find_no_memory_wait_and_all_are_answered() {
    let mut world = World::with([0, 0, 3], &[]);
    let (_, line, _) = world.ready((false, false));
    let mut bytes = Vec::new();
    for cid in 0..60_u16 {
        let sqe = compare(u64::from(cid) * 8, 8).with_cid(cid);
        bytes.extend(
            world.lines[line].host.command(&crate::nvme_tcp::host::in_capsule(sqe, 4096), &[0; 4096]),
        );
        let read = Sqe::read(1, io(0, 8, false)).with_cid(1000 + cid);
        bytes.extend(world.lines[line].host.command(&transported(read, 4096), &[]));
    }
    assert_eq!(world.say(line, &bytes).len(), 120);
    assert_eq!(world.dispatcher.stats.errors, 0);
    world.end();
}

#[test]
fn a_wrong_digest_of_data_fails_its_command_only() {
    let mut world = World::new();
    let (_, line, _) = world.ready((false, true));
    let data = pattern(512, 3);
    let sqe = Sqe::write(1, io(0, 1, false));
    let mut pdu = world.lines[line].host.command(&crate::nvme_tcp::host::in_capsule(sqe, 512), &data);
    *pdu.last_mut().unwrap() ^= 1;
    let cqe = completion(&world.say(line, &pdu));
    assert_eq!((cqe.status.status, cqe.status.dnr), (Status::TRANSIENT_TRANSPORT_ERROR, false));
    let pdu = world.lines[line].host.command(&transported(sqe, 512), &[]);
    let [Answer::Ask { cid, tag, .. }] = world.say(line, &pdu)[..] else { panic!("it asks") };
    let mut pdu = world.lines[line].host.data(cid, tag, 0, &data[..256], false);
    *pdu.last_mut().unwrap() ^= 1;
    assert_eq!(world.say(line, &pdu), []);
    let pdu = world.lines[line].host.data(cid, tag, 256, &data[256..], true);
    assert_eq!(completion(&world.say(line, &pdu)).status.status, Status::TRANSIENT_TRANSPORT_ERROR);
    assert_eq!((world.dispatcher.stats.digest_errors, world.disks.log.len()), (2, 0));
    assert!(world.write(line, sqe, &data).status.status.is_success());
    world.end();
}

#[test]
fn commands_that_find_no_memory_wait_and_all_are_answered() {
    let mut world = World::with([0, 0, 2], &[]);
    let (_, line, _) = world.ready((true, true));
    let data = pattern(4096, 9);
    let mut bytes = Vec::new();
    for cid in 0..100_u16 {
        let sqe = Sqe::read(1, io(u64::from(cid) * 8, 8, false)).with_cid(cid);
        bytes.extend(world.lines[line].host.command(&transported(sqe, 4096), &[]));
        if cid % 3 == 0 {
            let write = Sqe::write(1, io(u64::from(cid) * 8, 8, false)).with_cid(1000 + cid);
            bytes.extend(
                world.lines[line].host.command(&crate::nvme_tcp::host::in_capsule(write, 4096), &data),
            );
        }
    }
    let answers = world.say(line, &bytes);
    assert_eq!(answers.len(), 134);
    assert_eq!(world.dispatcher.stats.errors, 0);
    world.end();
}

/// OX's fabric cut a write of 1 MiB into commands of 60 KiB (`ox-ctrl` 2.7); here it is one command, whose data comes in as many
/// capsules as the host likes, and one request of the target.
#[test]
fn a_transaction_of_1_mib_is_one_request_however_many_capsules_its_data_takes() {
    for digests in ALL_DIGESTS {
        let mut world = World::of_disks(&[("a-whole", 1 << 13)], Vec::new(), [8, 4, 4], &[]);
        let (admin, line, _) = world.ready(digests);
        let identify = |cns| ocssd_nvme::sqe::Identify { cns, cntid: 0, csi: 0 };
        let told = world.read(admin, Sqe::identify(0, identify(Cns::CONTROLLER)), 4096).unwrap();
        let told = IdentifyController::decode(&told).unwrap();
        assert_eq!(
            (told.mdts, told.awun, told.awupf),
            (8, 2047, 2047),
            "256 pages, 2048 blocks of 512 bytes"
        );
        let data = pattern(1 << 20, 3);
        let sqe = Sqe::write(1, io(5, 2048, false)).with_cid(9);
        let before = world.disks.log.len();
        let cqe = completion(&write_asked(&mut world, line, sqe, &data, 100 * 1000));
        assert_eq!(cqe.status.status, Status::SUCCESS);
        assert_eq!(world.disks.log.len(), before + 1, "one request");
        assert!(world.read(line, Sqe::read(1, io(5, 2048, false)), 1 << 20).unwrap() == data);
        assert!(
            completion(&write_asked(&mut world, line, compare(5, 2048).with_cid(8), &data, 1 << 18))
                .status
                .status
                .is_success()
        );
        let long = world.read(line, Sqe::read(1, io(0, 2049, false)), (1 << 20) + 512);
        assert_eq!(long, Err(Status::INVALID_FIELD), "longer than MDTS");
        world.end();
    }
}

#[test]
fn a_connection_that_ends_in_the_middle_of_a_transaction_leaves_nothing_of_it() {
    let mut world = World::of_disks(&[("a-whole", 1 << 13)], Vec::new(), [8, 4, 4], &[]);
    let (_, line, _) = world.ready((false, false));
    let (_, other, _) = world.ready((false, false));
    let data = pattern(1 << 20, 4);
    let pdu = world.lines[line].host.command(&transported(Sqe::write(1, io(0, 2048, true)), data.len()), &[]);
    let asked = world.say(line, &pdu);
    let [Answer::Ask { cid, tag, .. }] = asked[..] else { panic!("{asked:?}") };
    for offset in [0, 256 << 10, 512 << 10] {
        let part = &data[offset..offset + (256 << 10)];
        let pdu = world.lines[line].host.data(cid, tag, offset, part, false);
        assert!(world.say(line, &pdu).is_empty(), "it is not whole");
    }
    world.hang_up(line);
    assert!(world.read(other, Sqe::read(1, io(0, 2048, false)), 1 << 20).unwrap() == vec![0; 1 << 20]);
    world.end();
}

/// Disks that store no more than a sector as one have commands of the usual length.
#[test]
fn without_transactions_a_command_is_no_longer_than_a_usual_piece() {
    let mut world = World::new();
    let (admin, line, _) = world.ready((false, false));
    let identify = ocssd_nvme::sqe::Identify { cns: Cns::CONTROLLER, cntid: 0, csi: 0 };
    let told = world.read(admin, Sqe::identify(0, identify), 4096).unwrap();
    let told = IdentifyController::decode(&told).unwrap();
    assert_eq!((told.mdts, told.awun, told.awupf), (6, 0, 0), "nothing longer is written as one");
    let read = world.read(line, Sqe::read(1, io(0, 513, false)), (256 << 10) + 512);
    assert_eq!(read, Err(Status::INVALID_FIELD));
    world.end();
}

/// Linux gives up to 128 writes of 256 KiB at once to a queue; a connection alone has memory for 68 of them.
#[test]
fn writes_whose_data_has_come_do_not_wait_behind_those_that_find_no_memory() {
    let mut world = World::with([0, 0, 2], &[]);
    let (_, line, _) = world.ready((false, false));
    let data = pattern(16 << 10, 5);
    let mut asked = Vec::new();
    for cid in 0..5_u16 {
        let sqe = Sqe::write(1, io(u64::from(cid) * 32, 32, false)).with_cid(cid);
        let pdu = world.lines[line].host.command(&transported(sqe, data.len()), &[]);
        asked.extend(world.say(line, &pdu));
    }
    let mut written = 0;
    while let Some(answer) = asked.pop() {
        match answer {
            Answer::Ask { cid, tag, offset: 0, bytes } if bytes == data.len() => {
                let pdu = world.lines[line].host.data(cid, tag, 0, &data, true);
                asked.extend(world.say(line, &pdu));
            }
            Answer::Completion(cqe) => {
                assert!(cqe.status.status.is_success(), "{cqe:?}");
                written += 1;
            }
            other => panic!("writes are asked for data and answered, but {other:?} came"),
        }
    }
    assert_eq!(written, 5, "two writes had memory at a time");
    world.end();
}
