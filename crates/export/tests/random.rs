//! The fuzzer's entry on seeded random clients, so that every build runs some.
//!
//! `OCSSD_SEEDS=0..1000000 cargo test -p ocssd-export --test random` runs those of other seeds, each test for itself. With
//! `OCSSD_CORPUS=fuzz/corpus` as an absolute path every client is kept there, a file each: fuzzers begin with them, past
//! handshakes that bytes changed at random hardly ever get through.

#[path = "../src/model_targets.rs"]
mod model_targets;

use model_targets::{keys, pages, tables, zones};
use ocssd_base::Prng;
use ocssd_export::fuzz::{
    fuse_kernel, nbd_client, nvme_tcp_host, pci_nvme_guest, resp_client, vhost_user_blk_guest,
};
use ocssd_export::nbd::wire::{IHAVEOPT, RequestHeader, command, option};
use ocssd_export::nvme_tcp::host::{Host, in_capsule, transported};
use ocssd_lightnvm::interface::zoned::ZoneAction;
use ocssd_nvme::kv::{KeyValueCommand, KvOpcode};
use ocssd_nvme::pages::{FlushPages, PageOpcode, ReadPage, StagePages};
use ocssd_nvme::sqe::ReadWrite;
use ocssd_nvme::tables::{AppendTable, CreateTable, EditTables, ListTables, ReadTable, TableCommand};
use ocssd_nvme::zns::{ZoneManagementSend, ZoneSendAction};
use ocssd_nvme::{Lba, Sqe};

/// Seeds of a test: the usual ones, or those that the environment asks for. What must come of the usual ones must come of more.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let Ok(asked) = std::env::var("OCSSD_SEEDS") else { return 0..usual };
    let range = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("OCSSD_SEEDS is a range of numbers as 150..300, and not {asked}"))
}

/// Keeps an input for the fuzz target of this name, if the environment asks for it.
fn keep(target: &str, seed: u64, bytes: &[u8]) {
    let Some(corpus) = std::env::var_os("OCSSD_CORPUS") else { return };
    let folder = std::path::PathBuf::from(corpus).join(target);
    std::fs::create_dir_all(&folder).expect("OCSSD_CORPUS names a directory that can be made");
    std::fs::write(folder.join(format!("seed-{seed}")), bytes).expect("a directory just made can be written");
}

fn below(prng: &mut Prng, bound: u64) -> u64 {
    prng.below(bound)
}

fn byte(prng: &mut Prng) -> u8 {
    u8::try_from(below(prng, 256)).expect("small")
}

/// A client that is mostly sound: a handshake, then requests, with a broken byte here and there.
fn client(prng: &mut Prng) -> Vec<u8> {
    let mut bytes = vec![byte(prng) & 0xfe, byte(prng), 0, 0, 0, 3];
    if below(prng, 2) == 0 {
        push_option(&mut bytes, option::STRUCTURED_REPLY, &[]);
        let context = b"\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x0fbase:allocation";
        push_option(&mut bytes, option::SET_META_CONTEXT, context);
    }
    push_option(&mut bytes, option::GO, &[0; 6]);
    for cookie in 0..below(prng, 40) {
        let length =
            u32::try_from(512 * below(prng, 700) / (1 + below(prng, 40)) / 512 * 512).expect("small");
        let header = RequestHeader {
            flags: if below(prng, 3) == 0 { 1 << below(prng, 6) } else { 0 },
            command: u16::try_from(below(prng, 9)).expect("small"),
            cookie,
            offset: 512 * below(prng, 4200),
            length,
        };
        bytes.extend(header.encode());
        if header.command == command::WRITE {
            bytes.extend(std::iter::repeat_n(byte(prng), usize::try_from(length).expect("small")));
        }
    }
    if below(prng, 3) == 0 {
        let at = usize::try_from(below(prng, u64::try_from(bytes.len()).expect("small"))).expect("small");
        bytes[at] ^= 1 << below(prng, 8);
    }
    let keep = below(prng, 4);
    if keep == 0 {
        let left = below(prng, u64::try_from(bytes.len()).expect("small"));
        bytes.truncate(usize::try_from(left).expect("small"));
    }
    bytes
}

fn push_option(bytes: &mut Vec<u8>, option: u32, data: &[u8]) {
    bytes.extend(IHAVEOPT.to_be_bytes());
    bytes.extend(option.to_be_bytes());
    bytes.extend(u32::try_from(data.len()).expect("small").to_be_bytes());
    bytes.extend(data);
}

#[test]
fn clients_of_every_kind_are_answered_or_dropped_and_leave_nothing_behind() {
    let mut served = 0;
    for seed in seeds(150) {
        let mut prng = Prng::new(seed);
        let bytes = client(&mut prng);
        keep("nbd_client", seed, &bytes);
        let answered = std::panic::catch_unwind(|| nbd_client(&bytes));
        let answered = answered.unwrap_or_else(|_| panic!("seed {seed}: the server panicked"));
        served += usize::from(answered > 1000);
    }
    assert!(served > 50, "only {served} clients got past the handshake");
}

#[test]
fn random_bytes_are_no_client() {
    for seed in seeds(300) {
        let mut prng = Prng::new(seed);
        let bytes: Vec<u8> = (0..below(&mut prng, 200)).map(|_| byte(&mut prng)).collect();
        let answered = std::panic::catch_unwind(|| nbd_client(&bytes));
        assert!(answered.is_ok(), "seed {seed}: the server panicked");
    }
}

/// A command on zones, most often sound: namespace 4 has them.
fn zoned(prng: &mut Prng, host: &Host, cid: u16) -> Vec<u8> {
    let slba = Lba(below(prng, 10) * 64 + if below(prng, 4) == 0 { below(prng, 64) } else { 0 });
    let (nsid, blocks) = (4, u32::try_from(1 + below(prng, 3)).expect("small"));
    let bytes = usize::try_from(blocks).expect("small") * 4096;
    let io = ReadWrite { slba, block_count: blocks, limited_retry: false, force_unit_access: false };
    match below(prng, 5) {
        0 => {
            let action = ZoneSendAction::Manage(ZoneAction::Open);
            let all = below(prng, 8) == 0;
            let send =
                Sqe::zone_management_send(nsid, ZoneManagementSend { slba, action, all, option: false });
            let send = Sqe { cdw13: send.cdw13 & !0xFF | u32::from(byte(prng) % 8), ..send };
            host.command(&transported(send.with_cid(cid), 0), &[])
        }
        1 => {
            let read = Sqe { opcode: 0x7A, cdw12: u32::from(byte(prng)), ..Sqe::read(nsid, io) };
            let read =
                Sqe { cdw13: u32::from(byte(prng) % 9) << 8 | u32::from(byte(prng) & 1) << 16, ..read };
            host.command(&transported(read.with_cid(cid), 1024), &[])
        }
        2 => {
            let append = Sqe { opcode: 0x7D, ..Sqe::write(nsid, io) };
            host.command(&in_capsule(append.with_cid(cid), bytes), &vec![byte(prng); bytes])
        }
        3 => host.command(&in_capsule(Sqe::write(nsid, io).with_cid(cid), bytes), &vec![byte(prng); bytes]),
        _ => host.command(&transported(Sqe::read(nsid, io).with_cid(cid), bytes), &[]),
    }
}

/// A command on keys, most often sound: namespace 5 has them.
fn key_value(prng: &mut Prng, host: &Host, cid: u16) -> Vec<u8> {
    let key = [byte(prng) % 4, byte(prng) % 4];
    let room = usize::try_from(below(prng, 9000)).expect("small");
    let of = |opcode, bytes: usize| {
        let bytes = u32::try_from(bytes).expect("small");
        Sqe::key_value(opcode, 5, KeyValueCommand::new(&key, bytes)).with_cid(cid)
    };
    let sqe = match below(prng, 12) {
        0 => of(KvOpcode::DELETE, 0),
        6 | 7 => of(KvOpcode::STAGE_OPEN, 2 * room),
        8 => of(KvOpcode::STAGE_ABORT, 0),
        9 => of(KvOpcode::STORE_STAGED, 2 * room),
        10 => of(KvOpcode::RETRIEVE_PART, room),
        11 => of(KvOpcode::STAGE_APPEND, room),
        1 => of(KvOpcode::EXIST, 0),
        2 => of(KvOpcode::LIST, room),
        3 => of(KvOpcode::RETRIEVE, room),
        _ => of(KvOpcode::STORE, room),
    };
    let options = u32::from(if below(prng, 4) == 0 { byte(prng) } else { 0 });
    let stage = u32::from(byte(prng) % 3);
    let sqe = Sqe { cdw11: sqe.cdw11 | options << 8, cdw13: stage, ..sqe };
    match sqe.opcode & 3 {
        1 => host.command(&in_capsule(sqe, room), &vec![byte(prng); room]),
        2 => host.command(&transported(sqe, room), &[]),
        _ => host.command(&transported(sqe, 0), &[]),
    }
}

/// A command on pages, most often sound: namespace 6 has them.
fn paged(prng: &mut Prng, host: &Host, cid: u16) -> Vec<u8> {
    let number = |prng: &mut Prng, bound| u32::try_from(below(prng, bound)).expect("small");
    let (rows, bytes, offset) = (number(prng, 4), number(prng, 9000), number(prng, 2) * number(prng, 9000));
    let stage = StagePages { stage: number(prng, 3), bytes, offset };
    let flush = FlushPages {
        session: below(prng, 2),
        wsn: below(prng, 9),
        bytes,
        rows,
        force_unit_access: below(prng, 2) == 0,
        stage: (below(prng, 3) == 0).then_some(stage.stage),
    };
    let table: Vec<u8> = (0..rows)
        .flat_map(|row| [row % 3, 0, row * bytes / 4, bytes / 4])
        .flat_map(u32::to_le_bytes)
        .collect();
    let filled = vec![byte(prng); usize::try_from(bytes).expect("small")];
    let of_stage = |opcode| Sqe::page_stage(opcode, 6, stage).with_cid(cid);
    let plain = |sqe: Sqe| host.command(&transported(sqe.with_cid(cid), 0), &[]);
    match below(prng, 10) {
        0 | 1 => plain(Sqe::page_session(PageOpcode::OPEN_SESSION, 6, below(prng, 2))),
        2 => plain(Sqe::page_session(PageOpcode::CLOSE_SESSION, 6, below(prng, 2))),
        3 => plain(of_stage(PageOpcode::STAGE_OPEN)),
        4 => plain(of_stage(PageOpcode::STAGE_ABORT)),
        5 => host.command(&in_capsule(of_stage(PageOpcode::STAGE_APPEND), filled.len()), &filled),
        6 | 7 => {
            let sent = if flush.stage.is_some() { table } else { [table, filled].concat() };
            host.command(&in_capsule(Sqe::flush_pages(6, flush).with_cid(cid), sent.len()), &sent)
        }
        _ => {
            let read = ReadPage { page: below(prng, 4), offset, bytes };
            let opcode = if below(prng, 4) == 0 { PageOpcode::STAT } else { PageOpcode::READ_PAGE };
            let sqe = Sqe { opcode: opcode.0, ..Sqe::read_page(6, read).with_cid(cid) };
            host.command(&transported(sqe, filled.len()), &[])
        }
    }
}

/// A command on tables, most often sound: namespace 7 has them.
fn tabled(prng: &mut Prng, host: &Host, cid: u16) -> Vec<u8> {
    let number = |prng: &mut Prng, bound| u32::try_from(below(prng, bound)).expect("small");
    let (table, bytes, rows) = (below(prng, 3), number(prng, 9000), number(prng, 4));
    let read = ReadTable { table, bytes, offset: below(prng, 9000) };
    let is_log = below(prng, 2) == 0;
    let create = CreateTable { table, is_log, level: byte(prng), stream: byte(prng), bytes_expected: 0 };
    let append = AppendTable { table, bytes, force_unit_access: is_log };
    let edit = EditTables { rows, attributes_bytes: rows };
    let command = match below(prng, 12) {
        0 => TableCommand::List(ListTables { from: table, rows }),
        1 => TableCommand::Attributes(read),
        2 => TableCommand::Sync(table),
        3 => TableCommand::Flush,
        4 | 5 => TableCommand::Read(read),
        6 | 7 => TableCommand::Create(create),
        8 | 9 => TableCommand::Append(append),
        _ => TableCommand::Edit(edit),
    };
    let sqe = command.entry(7).with_cid(cid);
    let claim = Sqe { opcode: 0xE0, cdw10: number(prng, 3), ..sqe };
    let filled = vec![byte(prng); usize::try_from(bytes).expect("small")];
    let row = |row: u32| [1 + (row + bytes) % 3, 0, row % 3, 0, row, 1];
    let list: Vec<u8> = (0..rows).flat_map(row).flat_map(u32::to_le_bytes).collect();
    match command {
        TableCommand::Append(_) => host.command(&in_capsule(sqe, filled.len()), &filled),
        TableCommand::Edit(_) => {
            let sent = [list, vec![7; usize::try_from(rows).expect("few")]].concat();
            host.command(&in_capsule(sqe, sent.len()), &sent)
        }
        TableCommand::Read(_) | TableCommand::Attributes(_) => {
            host.command(&transported(sqe, filled.len()), &[])
        }
        TableCommand::List(_) => host.command(&transported(sqe, list.len()), &[]),
        TableCommand::Flush => host.command(&transported(claim, 0), &[]),
        _ => host.command(&transported(sqe, 0), &[]),
    }
}

/// A host that began soundly, then commands that are mostly sound, with a broken byte here and there.
fn host(prng: &mut Prng) -> Vec<u8> {
    let shape = byte(prng) & 0x7F | if below(prng, 3) == 0 { 0x20 } else { 0x30 };
    let mut bytes = vec![shape, byte(prng)];
    let host = Host::new(shape & 4 != 0, shape & 8 != 0);
    for cid in 0..u16::try_from(below(prng, 60)).expect("small") {
        let block_count = u32::try_from(1 + below(prng, 33)).expect("small");
        let slba = Lba(below(prng, 4200));
        let io =
            ReadWrite { slba, block_count, limited_retry: false, force_unit_access: below(prng, 4) == 0 };
        let length = usize::try_from(block_count).expect("small") * 512;
        let nsid = u32::try_from(below(prng, 8)).expect("small");
        let pdu = match below(prng, 36) {
            32..36 => tabled(prng, &host, cid),
            20..24 => paged(prng, &host, cid),
            24..28 => zoned(prng, &host, cid),
            28..32 => key_value(prng, &host, cid),
            0 => host.command(&transported(Sqe::flush(nsid).with_cid(cid), 0), &[]),
            6..12 => {
                let sqe = in_capsule(Sqe::write(nsid, io).with_cid(cid), length);
                host.command(&sqe, &vec![byte(prng); length])
            }
            2 => host.command(&transported(Sqe::write(nsid, io).with_cid(cid), length), &[]),
            3 => host.data(cid.saturating_sub(1), cid % 32, 0, &vec![byte(prng); length], true),
            4 => {
                let opcode = byte(prng);
                host.command(&transported(Sqe { opcode, ..Sqe::read(nsid, io) }, length), &[])
            }
            _ => host.command(&transported(Sqe::read(nsid, io).with_cid(cid), length), &[]),
        };
        bytes.extend(pdu);
    }
    if below(prng, 3) == 0 {
        let at = usize::try_from(below(prng, u64::try_from(bytes.len()).expect("small"))).expect("small");
        bytes[at] ^= 1 << below(prng, 8);
    }
    bytes
}

#[test]
fn hosts_of_every_kind_are_answered_or_dropped_and_leave_nothing_behind() {
    let mut served = 0;
    for seed in seeds(200) {
        let mut prng = Prng::new(seed);
        let bytes = host(&mut prng);
        keep("nvme_tcp_host", seed, &bytes);
        let answered = std::panic::catch_unwind(|| {
            nvme_tcp_host(&bytes, vec![("z", zones()), ("k", keys()), ("p", pages()), ("t", tables())])
        });
        let answered = answered.unwrap_or_else(|_| panic!("seed {seed}: the target panicked"));
        served += usize::from(answered > 1000);
    }
    assert!(served > 60, "only {served} hosts were served");
}

#[test]
fn random_bytes_are_no_host() {
    for seed in seeds(2000) {
        let mut prng = Prng::new(seed);
        let bytes: Vec<u8> = (0..below(&mut prng, 400)).map(|_| byte(&mut prng)).collect();
        let answered = std::panic::catch_unwind(|| nvme_tcp_host(&bytes, Vec::new()));
        assert!(answered.is_ok(), "seed {seed}: the target panicked");
    }
}

/// Requests of Redis' protocol that are mostly sound, with few keys, and a broken byte here and there.
fn resp_requests(prng: &mut Prng) -> Vec<u8> {
    const COMMANDS: [&str; 18] = [
        "get", "set", "incr", "append", "mget", "mset", "del", "expire", "ttl", "multi", "exec", "watch",
        "scan", "keys", "flushall", "setrange", "rename", "hello",
    ];
    const WORDS: [&str; 12] = ["a", "b", "c", "1", "2", "0", "-1", "ex", "nx", "get", "*", ""];
    let pick = |prng: &mut Prng, words: &[&'static str]| {
        let place = below(prng, u64::try_from(words.len()).expect("few"));
        words[usize::try_from(place).expect("few")].to_owned()
    };
    let mut bytes = vec![byte(prng), byte(prng)];
    for _ in 0..below(prng, 60) {
        let mut words = vec![pick(prng, &COMMANDS)];
        for _ in 0..below(prng, 5) {
            words.push(pick(prng, &WORDS));
        }
        if below(prng, 12) == 0 {
            words.push("x".repeat(usize::try_from(below(prng, 200_000)).expect("small")));
        }
        if below(prng, 3) == 0 {
            bytes.extend(format!("{}\r\n", words.join(" ")).bytes());
            continue;
        }
        bytes.extend(format!("*{}\r\n", words.len()).bytes());
        words.iter().for_each(|word| bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
    }
    if below(prng, 4) == 0 {
        let place = usize::try_from(below(prng, u64::try_from(bytes.len()).expect("small"))).expect("small");
        bytes[place] = byte(prng);
    }
    bytes
}

#[test]
fn clients_of_redis_protocol_are_answered_and_leave_nothing_behind() {
    let mut answered = 0;
    for seed in seeds(200) {
        let mut prng = Prng::new(seed);
        let bytes = match seed % 4 {
            0 => (0..below(&mut prng, 600)).map(|_| byte(&mut prng)).collect(),
            _ => resp_requests(&mut prng),
        };
        keep("resp_client", seed, &bytes);
        let sent = std::panic::catch_unwind(|| resp_client(&bytes));
        answered += usize::from(sent.unwrap_or_else(|_| panic!("seed {seed}: the session panicked")) > 100);
    }
    assert!(answered > 90, "only {answered} clients were answered");
}

#[test]
fn kernels_of_every_kind_are_answered_and_leave_nothing_behind() {
    let mut served = 0;
    for seed in seeds(300) {
        let mut prng = Prng::new(seed);
        let bytes: Vec<u8> = (0..below(&mut prng, 600)).map(|_| byte(&mut prng)).collect();
        keep("fuse_kernel", seed, &bytes);
        let answered = std::panic::catch_unwind(|| fuse_kernel(&bytes));
        let answered = answered.unwrap_or_else(|_| panic!("seed {seed}: the session panicked"));
        served += usize::from(answered > 1000);
    }
    assert!(served > 60, "only {served} kernels were served");
}

#[test]
fn guests_of_every_kind_are_answered_or_dropped_and_leave_nothing_behind() {
    let mut served = 0;
    for seed in seeds(800) {
        let mut prng = Prng::new(seed);
        let bytes: Vec<u8> = (0..below(&mut prng, 1200)).map(|_| byte(&mut prng)).collect();
        keep("vhost_user_blk_guest", seed, &bytes);
        let answered = std::panic::catch_unwind(|| vhost_user_blk_guest(&bytes));
        let answered = answered.unwrap_or_else(|_| panic!("seed {seed}: the device panicked"));
        served += usize::from(answered > 3);
    }
    assert!(served > 150, "only {served} guests were served");
}

#[test]
fn guests_of_every_kind_get_completions_or_a_status_and_leave_nothing_behind() {
    let mut served = 0;
    for seed in seeds(1500) {
        let mut prng = Prng::new(seed);
        let bytes: Vec<u8> = (0..below(&mut prng, 3000)).map(|_| byte(&mut prng)).collect();
        keep("pci_nvme_guest", seed, &bytes);
        let completions = std::panic::catch_unwind(|| pci_nvme_guest(&bytes));
        let completions = completions.unwrap_or_else(|_| panic!("seed {seed}: the controller panicked"));
        served += usize::from(completions > 5);
    }
    assert!(served > 100, "only {served} guests were served");
}
