//! The 1.2 controller, used as Linux and liblightnvm use one: identify, bad block tables, erase in plane modes, pages
//! written in order and read in any.

use crate::host::{Buffers, Host, SECTOR, SOMEWHERE, bits, tiny};
use ocssd_flash::config::Revision;
use ocssd_flash::controller::Controller;
use ocssd_flash::{Config, FaultKind, Flash};
use ocssd_lightnvm::ChunkState;
use ocssd_nvme::ocssd12::{
    BadBlockTable, BlockFlags, Identify, IoFlags, PageAddress, PlaneMode, PlaneOperations, Ppa,
};
use ocssd_nvme::sqe::{GetBbt, PpaIo, SetBbt};
use ocssd_nvme::{AddressList, Cqe, IoOpcode, Sqe};

/// The tiny drive as 1.2: 2 channels, 2 luns, 2 planes, 8 blocks, 4 pages of 4 sectors.
fn config() -> Config {
    let mut config = tiny();
    config.revision = Revision::V12;
    config.geometry.capabilities.multiple_resets = true;
    config.geometry.capabilities.early_reset = true;
    config.geometry.mw_cunits = 0;
    config
}

struct Host12 {
    host: Host,
    identify: Identify,
}

impl Host12 {
    fn new(config: Config) -> Self {
        let mut host = Host::new(config);
        let mut data = vec![0; 4096];
        assert_eq!(bits(&host.admin(Sqe::geometry(1), &mut data)), 0);
        Self { host, identify: Identify::decode(&data).expect("a 1.2 identify") }
    }

    fn ppa(&self, ch: u64, lun: u64, blk: u64, pl: u64, pg: u64, sec: u64) -> Ppa {
        self.identify.ppaf.ppa(PageAddress { ch, lun, pl, blk, pg, sec }).expect("it fits")
    }

    /// All sectors of a page on both planes, in the order Linux uses: sectors first, then planes.
    fn row(&self, blk: u64, pg: u64) -> Vec<Ppa> {
        (0..8).map(|index| self.ppa(1, 0, blk, index / 4, pg, index % 4)).collect()
    }

    fn io(&mut self, opcode: u8, ppas: &[Ppa], flags: IoFlags, fill: u8) -> (Cqe, Buffers) {
        let list = match ppas {
            [one] => AddressList::One(*one),
            many => AddressList::Many { at: SOMEWHERE, count: u8::try_from(many.len()).expect("at most 64") },
        };
        let io = PpaIo { ppas: list, flags };
        let sqe = match opcode {
            0x90 => Sqe::ppa_erase(1, io),
            0x91 => Sqe::ppa_write(1, io).with_mptr(SOMEWHERE),
            _ => Sqe::ppa_read(1, io).with_mptr(SOMEWHERE),
        };
        let mut buffers = Buffers::sectors(ppas.len(), fill);
        buffers.list = ppas.iter().map(|ppa| ppa.0).collect();
        (self.host.io(sqe, &mut buffers), buffers)
    }

    fn write(&mut self, ppas: &[Ppa], fill: u8) -> Cqe {
        self.io(0x91, ppas, DUAL, fill).0
    }

    fn read(&mut self, ppas: &[Ppa]) -> (Cqe, Buffers) {
        self.io(0x92, ppas, DUAL, 0xA5)
    }

    fn erase(&mut self, ppas: &[Ppa], plane_mode: PlaneMode) -> Cqe {
        self.io(0x90, ppas, IoFlags { plane_mode, ..IoFlags::default() }, 0).0
    }

    /// The state of block `blk` of channel 1, lun 0.
    fn state(&self, blk: usize) -> (ChunkState, Option<u32>) {
        let chunk = self.host.table()[16 + blk];
        (chunk.state, chunk.write_pointer)
    }

    fn table(&mut self, ch: u64, lun: u64) -> BadBlockTable {
        let get = GetBbt { lun: self.ppa(ch, lun, 0, 0, 0, 0) };
        let mut data = vec![0; 64 + 16];
        assert_eq!(bits(&self.host.admin(Sqe::get_bbt(1, get), &mut data)), 0);
        BadBlockTable::decode(&data).expect("a table whose counters match its blocks")
    }
}

const DUAL: IoFlags = IoFlags {
    limited_retry: false,
    force_unit_access: false,
    scramble_disable: false,
    slc_mode: false,
    suspend: false,
    plane_mode: PlaneMode::Dual,
};

#[test]
fn identify_shows_the_chunks_as_blocks_of_pages() {
    let host = Host12::new(config());
    let [group] = &host.identify.groups[..] else { panic!("Linux wants one group") };
    assert_eq!((group.num_ch, group.num_lun, group.num_pln), (2, 2, 2));
    assert_eq!((group.num_blk, group.num_pg, group.fpg_sz_bytes), (8, 4, 16_384));
    assert_eq!((group.csecs_bytes, group.sos_bytes, group.tbet_ns), (4096, 16, 3_000_000));
    let all = PlaneOperations { single: true, dual: true, quad: false };
    assert_eq!((group.mpos.read, group.mpos.program, group.mpos.erase), (all, all, all));
    assert!(host.identify.cap.bbt && !host.identify.dom.hybrid);
    assert_eq!(host.host.controller.identify_namespace().nsze, 1 << 10);
}

#[test]
fn pages_are_written_in_order_and_read_in_any() {
    let mut host = Host12::new(config());
    let (first, second) = (host.row(3, 0), host.row(3, 1));
    assert_eq!(bits(&host.write(&second, 2)), 0x40FF, "page 1 before page 0");
    assert_eq!(host.state(3), (ChunkState::Free, Some(0)));
    assert_eq!(bits(&host.write(&first, 1)), 0);
    assert_eq!(bits(&host.write(&second, 2)), 0);
    assert_eq!(host.state(3), (ChunkState::Open, Some(16)));
    let list = [second[7], first[0], second[0], first[5]];
    let (cqe, buffers) = host.read(&list);
    assert_eq!(bits(&cqe), 0);
    let firsts: Vec<u8> = buffers.data.chunks_exact(SECTOR).map(|sector| sector[0]).collect();
    assert_eq!(firsts, [2, 1, 2, 1]);
    assert!(buffers.metadata[..16].iter().all(|&byte| byte == 2 ^ 0x55));
}

#[test]
fn an_empty_page_reads_as_42ff_with_a_bit_per_entry() {
    let mut host = Host12::new(config());
    let (written, empty) = (host.row(3, 0), host.row(3, 1));
    assert_eq!(bits(&host.write(&written, 1)), 0);
    let list = [empty[0], written[0], host.ppa(0, 1, 7, 1, 3, 3), written[7]];
    let (cqe, buffers) = host.read(&list);
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x42FF, 0b0101));
    assert!(buffers.data[SECTOR..2 * SECTOR].iter().all(|&byte| byte == 1));
}

#[test]
fn media_statuses_are_those_linux_knows() {
    let mut host = Host12::new(config());
    let row = host.row(3, 0);
    assert_eq!(bits(&host.write(&row, 1)), 0);
    host.host.fault(FaultKind::HighEcc, 16 + 3, Some(1));
    let (cqe, buffers) = host.read(&row[..2]);
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x4700, 0b10));
    assert!(buffers.data.iter().all(|&byte| byte == 1), "High ECC comes with the data");
    host.host.fault(FaultKind::UnrecoveredRead, 16 + 3, Some(0));
    assert_eq!(bits(&host.read(&row[..1]).0), 0x4281);
    host.host.fault(FaultKind::EarlyClose, 16 + 3, None);
    let next = host.row(3, 1);
    let cqe = host.write(&next, 2);
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x40FF, 0xFF));
    host.host.fault(FaultKind::ResetFailure, 16 + 3, None);
    let block = [host.ppa(1, 0, 3, 0, 0, 0)];
    assert_eq!(bits(&host.erase(&block, PlaneMode::Dual)), 0x40FF);
    assert_eq!(host.state(3).0, ChunkState::Offline);
}

#[test]
fn with_a_plane_mode_one_address_erases_all_planes() {
    let mut host = Host12::new(config());
    for blk in [3, 4] {
        let row = host.row(blk, 0);
        assert_eq!(bits(&host.write(&row, 1)), 0);
    }
    // Page and sector do not count; naming the other plane too changes nothing.
    let blocks = [host.ppa(1, 0, 3, 0, 2, 1), host.ppa(1, 0, 4, 1, 0, 0), host.ppa(1, 0, 4, 0, 0, 0)];
    assert_eq!(bits(&host.erase(&blocks, PlaneMode::Dual)), 0);
    assert_eq!((host.state(3).0, host.state(4).0), (ChunkState::Free, ChunkState::Free));
}

#[test]
fn without_a_plane_mode_an_erase_names_every_plane_once() {
    let mut host = Host12::new(config());
    let row = host.row(3, 0);
    assert_eq!(bits(&host.write(&row, 1)), 0);
    let (left, right) = (host.ppa(1, 0, 3, 0, 0, 0), host.ppa(1, 0, 3, 1, 0, 0));
    for (list, mode) in [
        (vec![left], PlaneMode::Single),
        (vec![right], PlaneMode::Single),
        (vec![left, left], PlaneMode::Single),
        (vec![left, right, left], PlaneMode::Single),
        (vec![left, left], PlaneMode::Dual),
        (vec![left], PlaneMode::Quad),
    ] {
        assert_eq!(bits(&host.erase(&list, mode)), 0x4002, "{} addresses, {mode:?}", list.len());
        assert_eq!(host.state(3), (ChunkState::Open, Some(8)), "nothing is erased");
    }
    assert_eq!(bits(&host.erase(&[left, right], PlaneMode::Single)), 0);
    assert_eq!(host.state(3), (ChunkState::Free, Some(0)));
}

#[test]
fn a_failed_erase_marks_every_plane_of_its_block() {
    let mut host = Host12::new(config());
    host.host.fault(FaultKind::ResetFailure, 16 + 4, None);
    let list: Vec<Ppa> =
        [(3, 0), (4, 0), (3, 1), (4, 1)].map(|(blk, pl)| host.ppa(1, 0, blk, pl, 0, 0)).to_vec();
    let cqe = host.erase(&list, PlaneMode::Single);
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x40FF, 0b1010));
    assert_eq!(host.state(3).0, ChunkState::Free);
}

#[test]
fn entries_that_fail_differently_are_all_marked() {
    let mut host = Host12::new(config());
    let [three, four, five] = [3, 4, 5].map(|blk| host.row(blk, 0));
    host.host.fault(FaultKind::WriteNextUnit, 16 + 3, None);
    host.host.fault(FaultKind::EarlyClose, 16 + 5, None);
    let cqe = host.write(&[three.clone(), four.clone(), five].concat(), 1);
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x40FF, 0xFF_00FF));
    assert_eq!([3, 4, 5].map(|blk| host.state(blk).1), [Some(8), Some(8), Some(0)]);
    let empty = host.row(6, 0)[0];
    let (cqe, buffers) = host.read(&[empty, three[1], four[2]]);
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x4281, 0b011), "an empty page beside a lost one");
    assert!(buffers.data[2 * SECTOR..].iter().all(|&byte| byte == 1));
    host.host.fault(FaultKind::ResetFailure, 16 + 4, None);
    let blocks = [3, 4, 5, 6].map(|blk| host.ppa(1, 0, blk, 0, 0, 0));
    let cqe = host.erase(&blocks[..3], PlaneMode::Dual);
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x40FF, 0b010));
    host.host.fault(FaultKind::ResetFailure, 16 + 6, None);
    let cqe = host.erase(&blocks, PlaneMode::Dual);
    assert_eq!((bits(&cqe), cqe.failed_entries()), (0x40FF, 0b1010), "one offline before, one now");
}

#[test]
fn the_bit_of_slc_mode_means_nothing_in_an_erase() {
    let mut host = Host12::new(config());
    let row = host.row(3, 0);
    assert_eq!(bits(&host.write(&row, 1)), 0);
    let slc = IoFlags { slc_mode: true, ..DUAL };
    for opcode in [0x91, 0x92] {
        let next = host.row(3, 1);
        assert_eq!(bits(&host.io(opcode, &next, slc, 1).0), 0x4002, "{opcode:02X}h");
    }
    assert_eq!(bits(&host.io(0x90, &row[..1], slc, 0).0), 0);
    assert_eq!(host.state(3), (ChunkState::Free, Some(0)));
}

#[test]
fn a_page_of_one_plane_can_be_written_alone_if_ws_min_allows() {
    let mut host = Host12::new(config());
    let row = host.row(3, 0);
    let single = IoFlags::default();
    assert_eq!(bits(&host.io(0x91, &row[4..], single, 1).0), 0x40FF, "plane 1 before plane 0");
    assert_eq!(bits(&host.io(0x91, &row[..4], DUAL, 1).0), 0x4002, "half a row of planes together");
    assert_eq!(bits(&host.io(0x91, &row[..4], single, 1).0), 0);
    assert_eq!(bits(&host.io(0x91, &row[4..], single, 1).0), 0);
    let mut wide = config();
    wide.geometry.ws_min = 8;
    let mut host = Host12::new(wide);
    assert!(!host.identify.groups[0].mpos.program.single);
    assert_eq!(bits(&host.io(0x91, &row[..4], single, 1).0), 0x4002);
}

#[test]
fn addresses_that_do_not_exist_and_flags_nobody_has_are_refused() {
    let mut odd = config();
    odd.geometry.chunks_per_pu = 7;
    let mut host = Host12::new(odd);
    let before = host.host.table();
    let row = host.row(3, 0);
    let stray = [row[0], Ppa(1 << 40)];
    let hole = [row[0], host.ppa(1, 0, 7, 0, 0, 0)];
    for opcode in [0x90, 0x91, 0x92] {
        for list in [&stray, &hole] {
            assert_eq!(bits(&host.io(opcode, list, IoFlags::default(), 1).0), 0x4002, "{opcode:02X}h");
        }
    }
    let slc = IoFlags { slc_mode: true, ..DUAL };
    assert_eq!(bits(&host.io(0x91, &row, slc, 1).0), 0x4002, "SLC mode");
    let hints = IoFlags { suspend: true, scramble_disable: true, limited_retry: true, ..DUAL };
    assert_eq!(bits(&host.io(0x92, &row, hints, 1).0), 0x42FF, "hints are taken");
    assert_eq!(host.host.table(), before);
}

#[test]
fn commands_of_2_0_do_not_exist() {
    let mut host = Host12::new(config());
    for opcode in [IoOpcode::READ, IoOpcode::WRITE, IoOpcode::DATASET_MANAGEMENT, IoOpcode::VECTOR_COPY] {
        let sqe = Sqe { opcode: opcode.0, nsid: 1, ..Sqe::default() };
        assert_eq!(bits(&host.host.io(sqe, &mut Buffers::sectors(1, 0))), 0x4001, "{opcode}");
    }
    assert_eq!(bits(&host.host.io(Sqe::flush(1), &mut Buffers::default())), 0);
    let feedback = host.host.set_feature(ocssd_nvme::feature::FeatureId::MEDIA_FEEDBACK, 1);
    assert_eq!(bits(&feedback), 0x4002);
}

#[test]
fn the_bad_block_table_counts_factory_and_grown_bad_blocks() {
    let mut bad = config();
    bad.faults.factory_bad = 200_000_000;
    let mut host = Host12::new(bad);
    let offline: Vec<bool> =
        host.host.table().iter().map(|chunk| chunk.state == ChunkState::Offline).collect();
    assert!(offline.contains(&true) && offline.contains(&false), "one in five is bad");
    for (lun, chunks) in (0..4u64).zip(offline.chunks_exact(8)) {
        let table = host.table(lun / 2, lun % 2);
        for (index, flags) in table.blocks.iter().enumerate() {
            let expected = if chunks[index / 2] { BlockFlags::FACTORY_BAD } else { BlockFlags::GOOD };
            assert_eq!(*flags, expected, "lun {lun}, block and plane {index}");
        }
    }
    let good = offline[16..24].iter().position(|bad| !bad).expect("a good block in the lun");
    let number = u64::try_from(good).expect("small");
    host.host.fault(FaultKind::ResetFailure, 16 + u32::try_from(good).expect("small"), None);
    let block = [host.ppa(1, 0, number, 0, 0, 0)];
    assert_eq!(bits(&host.erase(&block, PlaneMode::Dual)), 0x40FF);
    assert_eq!(host.table(1, 0).blocks[2 * good..2 * good + 2], [BlockFlags::GROWN_BAD; 2]);
}

#[test]
fn marks_of_hosts_are_kept_and_cleared_and_change_no_chunk() {
    let mut host = Host12::new(config());
    let before = host.host.table();
    let one = SetBbt { spba: host.ppa(1, 1, 5, 1, 0, 0).0, block_count: 1, value: BlockFlags::HOST_RESERVED };
    assert_eq!(bits(&host.host.admin(Sqe::set_bbt(1, one), &mut [])), 0);
    let list = [host.ppa(1, 1, 2, 0, 0, 0), host.ppa(1, 1, 2, 1, 0, 0)];
    let mut data: Vec<u8> = list.iter().flat_map(|ppa| ppa.0.to_le_bytes()).collect();
    let many = SetBbt { spba: 0x1000, block_count: 2, value: BlockFlags::GROWN_BAD };
    assert_eq!(bits(&host.host.admin(Sqe::set_bbt(1, many), &mut data)), 0);
    let table = host.table(1, 1);
    let marked: Vec<_> = (0..16).filter(|&index| table.blocks[index] != BlockFlags::GOOD).collect();
    assert_eq!((marked, table.revision), (vec![4, 5, 11], 2));
    assert_eq!(table.blocks[11], BlockFlags::HOST_RESERVED);
    assert!(host.table(1, 0).blocks.iter().all(|&flags| flags == BlockFlags::GOOD));
    let clear = SetBbt { value: BlockFlags::GOOD, ..many };
    assert_eq!(bits(&host.host.admin(Sqe::set_bbt(1, clear), &mut data)), 0);
    assert_eq!(host.table(1, 1).blocks[4..6], [BlockFlags::GOOD; 2]);
    assert_eq!(host.host.table(), before);
}

#[test]
fn bad_block_commands_refuse_what_is_wrong() {
    let mut odd = config();
    odd.geometry.chunks_per_pu = 7;
    let mut host = Host12::new(odd);
    let set = SetBbt { spba: host.ppa(1, 1, 7, 1, 0, 0).0, block_count: 1, value: BlockFlags::GROWN_BAD };
    let get = Sqe::get_bbt(1, GetBbt { lun: Ppa(0) });
    let table = [
        (Sqe::set_bbt(1, set), 0, 0x4002, "a block that does not exist"),
        (Sqe::set_bbt(2, set), 0, 0x400B, "another namespace"),
        (Sqe { cdw12: 0x20 << 16, ..Sqe::set_bbt(1, set) }, 0, 0x4002, "reserved flags"),
        (Sqe::set_bbt(1, SetBbt { block_count: 2, ..set }), 15, 0x4004, "half a list"),
        (get, 64 + 13, 0x4004, "no room for the table"),
        (Sqe { nsid: 0, ..get }, 78, 0x400B, "no namespace"),
        (Sqe { cdw11: 1 << 20, ..get }, 78, 0x4002, "stray bits"),
    ];
    for (sqe, bytes, status, why) in table {
        let mut data = vec![0; bytes];
        assert_eq!(bits(&host.host.admin(sqe, &mut data)), status, "{why}");
    }
    assert_eq!(bits(&host.host.admin(get, &mut [0; 78])), 0);
    assert_eq!(host.table_of(1, 1, 14).revision, 0, "nothing was marked");
}

impl Host12 {
    fn table_of(&mut self, ch: u64, lun: u64, blocks: usize) -> BadBlockTable {
        let get = GetBbt { lun: self.ppa(ch, lun, 0, 0, 0, 0) };
        let mut data = vec![0; 64 + blocks];
        assert_eq!(bits(&self.host.admin(Sqe::get_bbt(1, get), &mut data)), 0);
        BadBlockTable::decode(&data).expect("a table")
    }
}

#[test]
fn a_shape_1_2_cannot_describe_is_refused_with_a_sentence() {
    type Change = fn(&mut Config);
    let table: [(Change, &str); 4] = [
        (|config| config.geometry.capabilities.early_reset = false, "early_reset"),
        (|config| config.media.cell = ocssd_flash::config::CellType::Qlc, "QLC"),
        (|config| config.geometry.sector_bytes = 65_536, "CSECS"),
        (|config| config.geometry.sector_bytes = 16_384, "FPG_SZ"),
    ];
    for (change, says) in table {
        let mut config = config();
        change(&mut config);
        let Err(sentence) = Controller::new(Flash::format(config).expect("sound")) else {
            panic!("{says} was taken")
        };
        assert!(sentence.contains(says) && sentence.contains("revision 2.0"), "{sentence}");
    }
}
