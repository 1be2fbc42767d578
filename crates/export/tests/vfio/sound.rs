//! Guests that do what drivers do.

use crate::guest::{ENABLE, Guest};
use crate::world::World;
use ocssd_flash::config::Revision;
use ocssd_lightnvm::Status;
use ocssd_nvme::feature::FeatureId;
use ocssd_nvme::identify::{Cns, IdentifyController, IdentifyNamespace};
use ocssd_nvme::log_page::LogPageId;
use ocssd_nvme::ocssd12::{BadBlockTable, BlockFlags, IoFlags, PlaneMode, Ppa};
use ocssd_nvme::ocssd20::{ChunkDescriptor, Geometry};
use ocssd_nvme::sgl::{SglDescriptor, SglKind};
use ocssd_nvme::sqe::{GetBbt, GetLogPage, Identify, PpaIo, ReadWrite, SetBbt, SetFeatures, Vector};
use ocssd_nvme::{AddressList, HostAddress, Lba, Sqe};

const SECTOR: u64 = 4096;
const OOB: u64 = 16;
/// Sectors of a command: what the drive programs at once.
const UNIT: u64 = 8;
/// Sectors of a chunk.
const CHUNK: u64 = 32;

fn identify(cns: Cns) -> Sqe {
    Sqe::identify(if cns == Cns::CONTROLLER { 0 } else { 1 }, Identify { cns, cntid: 0, csi: 0 })
}

fn chunk_log(guest: &mut Guest, chunks: usize) -> Vec<ChunkDescriptor> {
    let dwords = u64::try_from(chunks * ChunkDescriptor::BYTES / 4).expect("small");
    let get = GetLogPage {
        lid: LogPageId::CHUNK_INFORMATION,
        lsp: 0,
        retain_event: false,
        dword_count: dwords,
        offset_bytes: 0,
        csi: 0,
    };
    let bytes = guest.ask(Sqe::get_log_page(1, get), chunks * ChunkDescriptor::BYTES);
    bytes
        .chunks(ChunkDescriptor::BYTES)
        .map(|one| ChunkDescriptor::decode(one).expect("a descriptor"))
        .collect()
}

/// Addresses of a command, in memory.
fn list(guest: &mut Guest, first: u64, count: u64) -> (HostAddress, u8) {
    let at = guest.room(4096);
    let addresses: Vec<u64> = (first..first + count).collect();
    guest.put_list(at, &addresses);
    (HostAddress(at), u8::try_from(count).expect("at most 64"))
}

fn pattern(first: u64, count: u64, salt: u8) -> Vec<u8> {
    let bytes = |sector: u64| (0..count).map(move |byte| (sector, byte));
    bytes(first)
        .map(|(sector, byte)| sector.wrapping_mul(31).wrapping_add(byte * 7).to_le_bytes()[0] ^ salt)
        .collect()
}

fn vector(guest: &mut Guest, first: u64, count: u64) -> Vector {
    let (at, count) = list(guest, first, count);
    Vector { lbas: AddressList::Many { at, count }, limited_retry: false }
}

/// Writes a whole chunk by vector commands of a unit, with metadata.
fn fill_chunk(guest: &mut Guest, qid: u16, first: u64) {
    let (data, oob) = (guest.room(UNIT * SECTOR), guest.room(UNIT * OOB));
    for unit in 0..CHUNK / UNIT {
        let lba = first + unit * UNIT;
        guest.put(data, &pattern(lba, UNIT * SECTOR, 0));
        guest.put(oob, &pattern(lba, UNIT * OOB, 0xFF));
        let vector = vector(guest, lba, UNIT);
        let sqe = guest.with_pages(Sqe::vector_write(1, vector), data, UNIT * SECTOR);
        let completion = guest.carry_out(qid, sqe.with_mptr(HostAddress(oob)));
        assert!(completion.status.status.is_success(), "unit {unit}: {}", completion.status);
    }
}

/// Reads a unit of it again, by a scatter gather list whose pieces are no pages.
fn check_unit(guest: &mut Guest, qid: u16, lba: u64) {
    let (data, oob) = (guest.room(UNIT * SECTOR + 4096), guest.room(UNIT * OOB));
    let (data, segment) = (data + 12, guest.room(4096));
    let half = u32::try_from(UNIT * SECTOR / 2).expect("small");
    let pieces = [(data, half + 100), (data + u64::from(half) + 100, half - 100)];
    for (index, (address, length_bytes)) in (0u64..).zip(pieces) {
        let piece = SglDescriptor { address, length_bytes, kind: SglKind::DataBlock, subtype: 0 };
        guest.put(segment + 16 * index, &piece.encode());
    }
    let last = SglDescriptor { address: segment, length_bytes: 32, kind: SglKind::LastSegment, subtype: 0 };
    let vector = vector(guest, lba, UNIT);
    let sqe = Sqe::vector_read(1, vector).with_sgl(&last).with_mptr(HostAddress(oob));
    let completion = guest.carry_out(qid, sqe);
    assert!(completion.status.status.is_success(), "{}", completion.status);
    let bytes = |count: u64| usize::try_from(count).expect("small");
    assert_eq!(guest.get(data, bytes(UNIT * SECTOR)), pattern(lba, UNIT * SECTOR, 0), "data of {lba}");
    assert_eq!(guest.get(oob, bytes(UNIT * OOB)), pattern(lba, UNIT * OOB, 0xFF), "metadata of {lba}");
}

#[test]
fn a_driver_finds_an_open_channel_drive_and_its_chunks() {
    let world = World::new();
    let mut guest = Guest::ready(&world);
    assert_eq!((guest.config(0), guest.config(8) >> 8), (0x1F1F_1D1D, 0x01_08_02));
    let controller = IdentifyController::decode(&guest.ask(identify(Cns::CONTROLLER), 4096)).unwrap();
    assert_eq!((controller.vid, controller.oacs & 1 << 8, controller.sgls & 3), (0x1D1D, 1 << 8, 1));
    let bytes = guest.ask(identify(Cns::NAMESPACE), 4096);
    assert_eq!(bytes[384], 1, "what Linux takes an open-channel namespace by");
    let namespace = IdentifyNamespace::decode(&bytes).unwrap();
    assert_eq!((namespace.lbaf[0].lbads, u64::from(namespace.lbaf[0].ms_bytes)), (12, OOB));
    assert!(guest.ask(identify(Cns::NAMESPACE_IDS), 4096).iter().any(|&byte| byte != 0));
    assert_eq!(guest.ask(identify(Cns::ACTIVE_NAMESPACES).with_cid(0), 4096)[..4], [0; 4], "none above 1");
    let geometry = Geometry::decode(&guest.ask(Sqe::geometry(1), 4096)).unwrap();
    assert_eq!((geometry.mjr, geometry.chunk_count(), u64::from(geometry.clba)), (2, 32, CHUNK));
    let chunks = chunk_log(&mut guest, 32);
    assert!(chunks.iter().all(|chunk| chunk.cnlb == CHUNK && chunk.wp == 0));
    let queues = SetFeatures { fid: FeatureId::NUMBER_OF_QUEUES, save: false, value: 0x00FF_0002 };
    assert_eq!(guest.admin(Sqe::set_features(0, queues)).dw0, 0x003F_0002, "64 of a direction at most");
    let (counters, _) = world.stop();
    assert_eq!((counters.errors, counters.fatals), (0, 0));
}

#[test]
fn what_is_written_by_vectors_is_read_again_with_its_metadata() {
    let world = World::new();
    let mut guest = Guest::ready(&world);
    guest.make_queue(1);
    let chunks = chunk_log(&mut guest, 2);
    let [first, second] = [chunks[0].slba.0, chunks[1].slba.0];
    fill_chunk(&mut guest, 1, first);
    assert_eq!(chunk_log(&mut guest, 1)[0].wp, CHUNK);
    for unit in 0..CHUNK / UNIT {
        check_unit(&mut guest, 1, first + unit * UNIT);
    }
    assert!(guest.interrupts(1) > 0 && guest.interrupts(0) > 0 && guest.interrupts(2) == 0);
    // A copy in the drive, by two lists.
    let ((from, count), (to, _)) = (list(&mut guest, first, UNIT), list(&mut guest, second, UNIT));
    let copy = ocssd_nvme::sqe::VectorCopy {
        sources: AddressList::Many { at: from, count },
        destinations: AddressList::Many { at: to, count },
        limited_retry: false,
    };
    assert!(guest.carry_out(1, Sqe::vector_copy(1, copy)).status.status.is_success());
    // A reset returns the chunk's new descriptor.
    let descriptor = guest.room(4096);
    let reset = Sqe::vector_reset(1, AddressList::One(Lba(first)), Some(HostAddress(descriptor)));
    assert!(guest.carry_out(1, reset).status.status.is_success());
    let chunk = ChunkDescriptor::decode(&guest.get(descriptor, ChunkDescriptor::BYTES)).unwrap();
    assert_eq!((chunk.slba.0, chunk.wp), (first, 0));
    world.stop();
}

#[test]
fn a_reset_forgets_queues_and_keeps_content() {
    let world = World::new();
    let mut guest = Guest::ready(&world);
    guest.make_queue(1);
    let first = chunk_log(&mut guest, 1)[0].slba.0;
    fill_chunk(&mut guest, 1, first);
    // In the middle of commands: nothing more comes of them.
    for _ in 0..8 {
        let (data, read) = (
            guest.room(SECTOR),
            ReadWrite { slba: Lba(first), block_count: 1, limited_retry: false, force_unit_access: false },
        );
        let sqe = guest.with_pages(Sqe::read(1, read), data, SECTOR);
        guest.submit(1, sqe);
    }
    guest.set_register(0x14, ENABLE & !1);
    assert_eq!(guest.csts(), 0);
    guest.enable();
    guest.make_queue(1);
    check_unit(&mut guest, 1, first);
    // CC.SHN: what is in the cache is made durable first.
    guest.set_register(0x14, ENABLE | 1 << 14);
    guest.wait_register(0x1C, 1 | 2 << 2);
    guest.set_register(0x14, ENABLE & !1);
    guest.client.reset().unwrap();
    guest.enable();
    guest.make_queue(2);
    check_unit(&mut guest, 2, first + UNIT);
    let (counters, _) = world.stop();
    assert_eq!(counters.fatals, 0);
}

#[test]
fn a_guest_that_vanishes_leaves_the_drive_to_the_next() {
    let world = World::new();
    let mut guest = Guest::ready(&world);
    guest.make_queue(1);
    let first = chunk_log(&mut guest, 1)[0].slba.0;
    fill_chunk(&mut guest, 1, first);
    for round in 0..3 {
        for _ in 0..8 {
            let vector = vector(&mut guest, first, UNIT);
            let data = guest.room(UNIT * SECTOR);
            let sqe = guest.with_pages(Sqe::vector_read(1, vector), data, UNIT * SECTOR);
            guest.submit(1, sqe);
        }
        guest.vanish();
        guest = Guest::new(&world);
        assert_eq!((guest.csts(), guest.register(0x14)), (0, 0), "round {round}: as after power-on");
        guest.enable();
        guest.make_queue(1);
        check_unit(&mut guest, 1, first + round * UNIT);
    }
    drop(guest);
    let (counters, guests) = world.stop();
    assert!(guests >= 3 && counters.fatals == 0, "{guests} guests, {counters:?}");
}

#[test]
fn with_doorbells_in_memory_few_are_rung() {
    let world = World::new();
    let mut guest = Guest::ready(&world);
    guest.use_shadows();
    guest.make_queue(1);
    let first = chunk_log(&mut guest, 1)[0].slba.0;
    fill_chunk(&mut guest, 1, first);
    let rounds = 40;
    for round in 0..rounds {
        // Several at once, so that one doorbell is enough for them even of a server that sleeps between.
        for _ in 0..4 {
            guest.submit(1, Sqe::flush(1));
        }
        for _ in 0..4 {
            assert!(guest.wait(1).status.status.is_success(), "round {round}");
        }
    }
    check_unit(&mut guest, 1, first);
    let rung = guest.rung;
    let (counters, _) = world.stop();
    assert!(counters.shadow_doorbells > 0, "{counters:?}");
    // At most a server that sleeps before each command is woken for each; heads ring once in a round of the ring.
    assert!(rung < rounds * 5, "{rung} of {} doorbells were rung", rounds * 8);
}

#[test]
fn a_drive_of_1_2_is_served_as_such() {
    let world = World::of(Revision::V12);
    let mut guest = Guest::ready(&world);
    guest.make_queue(1);
    assert_eq!(guest.ask(Sqe::geometry(1), 4096)[0], 1, "it speaks 1.2");
    let mark = SetBbt { spba: 0, block_count: 1, value: BlockFlags::HOST_RESERVED };
    assert!(guest.admin(Sqe::set_bbt(1, mark)).status.status.is_success());
    let table = guest.ask(Sqe::get_bbt(1, GetBbt { lun: Ppa(0) }), 64 + 16);
    let table = BadBlockTable::decode(&table).unwrap();
    assert_eq!((table.blocks.len(), table.blocks[0]), (16, BlockFlags::HOST_RESERVED));
    // Several are in a list behind CDW10-11: blocks 1 and 2, of which the first plane is marked.
    let places = guest.room(16);
    guest.put_list(places, &[CHUNK, 2 * CHUNK]);
    let marks = SetBbt { spba: places, block_count: 2, value: BlockFlags::GROWN_BAD };
    assert!(guest.admin(Sqe::set_bbt(1, marks)).status.status.is_success());
    let table = guest.ask(Sqe::get_bbt(1, GetBbt { lun: Ppa(0) }), 64 + 16);
    let table = BadBlockTable::decode(&table).unwrap();
    let bad = (0..16).filter(|&at| table.blocks[at] == BlockFlags::GROWN_BAD).collect::<Vec<_>>();
    assert_eq!(bad, [2, 4]);
    // Block 1, page by page: sector, plane and page are the low bits.
    let block = CHUNK;
    let flags = IoFlags { plane_mode: PlaneMode::Dual, ..IoFlags::default() };
    let ppas = |guest: &mut Guest, first| {
        let (at, count) = list(guest, first, UNIT);
        PpaIo { ppas: AddressList::Many { at, count }, flags }
    };
    let erase = PpaIo { ppas: AddressList::One(Ppa(block)), flags };
    assert!(guest.carry_out(1, Sqe::ppa_erase(1, erase)).status.status.is_success());
    let (data, oob) = (guest.room(UNIT * SECTOR), guest.room(UNIT * OOB));
    for unit in 0..CHUNK / UNIT {
        let first = block + unit * UNIT;
        guest.put(data, &pattern(first, UNIT * SECTOR, 0));
        guest.put(oob, &pattern(first, UNIT * OOB, 0xFF));
        let write = ppas(&mut guest, first);
        let sqe = guest.with_pages(Sqe::ppa_write(1, write), data, UNIT * SECTOR);
        let completion = guest.carry_out(1, sqe.with_mptr(HostAddress(oob)));
        assert!(completion.status.status.is_success(), "{}", completion.status);
    }
    let read = ppas(&mut guest, block);
    let sqe = guest.with_pages(Sqe::ppa_read(1, read), data, UNIT * SECTOR);
    let completion = guest.carry_out(1, sqe.with_mptr(HostAddress(oob)));
    assert!(completion.status.status.is_success(), "{}", completion.status);
    let bytes = |count: u64| usize::try_from(count).expect("small");
    assert_eq!(guest.get(data, bytes(UNIT * SECTOR)), pattern(block, UNIT * SECTOR, 0));
    assert_eq!(guest.get(oob, bytes(UNIT * OOB)), pattern(block, UNIT * OOB, 0xFF));
    let scalar = ReadWrite { slba: Lba(0), block_count: 1, limited_retry: false, force_unit_access: false };
    assert_eq!(guest.carry_out(1, Sqe::read(1, scalar)).status.status, Status::INVALID_OPCODE);
    world.stop();
}
