//! Files on a drive that a server holds: a store in this process, `ocssd serve --raw` in another.

use crate::program::Program;
use crate::serve::Served;
use ocssd_base::{Nanos, Prng, usize_of};
use ocssd_drive::{OpenDrive, OpenOptions, Source};
use ocssd_engine::{Caller, Clock, DriveClock, VirtualClock, WallClock};
use ocssd_lightnvm::interface::Durability;
use ocssd_lightnvm::interface::table::{TableHint, TableId, TableKind};
use ocssd_lightnvm::{
    Addresses, BlockingDevice, Buffers, ChunkDescriptor, ChunkId, Command, Device, Op, PlaneMode, Ppa,
    Status, Tag,
};
use ocssd_nvme_host::{Association, Endpoint, ServedDrive, ServedTables, TableAssociation};
use ocssd_table_store::{Created, ErrorKind, SharedDrive, Store, StoreDrive, StoreError, StoreOptions};
use std::sync::Arc;

/// The export that a server has beside the open-channel drive.
const BESIDE: &str = "--nvme-tcp 127.0.0.1:0 --drive drive.toml --target pblk:over_provisioning_percent=40";
/// Media that take next to no time.
const QUICK: &str = "--raw-set media.read=1us --raw-set media.program=1us --raw-set media.erase=1us --raw-set link.command=0s";

/// Serves `raw` beside a small export.
fn served<'a>(program: &'a Program, raw: &str) -> (Served<'a>, String) {
    let served = Served::start_at(program, &format!("{BESIDE} --raw {raw} {QUICK}"));
    let address = served.serving["nvme"]["addresses"][0].as_str().expect("it says where").to_owned();
    (served, address)
}

fn program() -> Program {
    let program = Program::new();
    program.write("drive.toml", crate::tables::DRIVE.as_bytes());
    program.good("format a.img --drive drive.toml");
    program
}

fn open(program: &Program, address: &str) -> Result<Arc<Store>, StoreError> {
    let tails = program.path("tails");
    Store::open(&StoreOptions::parse(&format!("drive=nvme-tcp://{address},tails={}", tails.display()))?)
}

fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut prng = Prng::new(seed);
    (0..bytes).map(|_| u8::try_from(prng.below(256)).expect("a byte")).collect()
}

fn write(store: &Arc<Store>, path: &str, content: &[u8]) -> Result<(), StoreError> {
    let mut writer = store.create(path, Created::Anew)?;
    writer.append(content)?;
    writer.close()
}

fn read(store: &Arc<Store>, path: &str) -> Vec<u8> {
    let reader = store.open_file(path).expect("it is there");
    let mut found = vec![0; usize::try_from(reader.bytes()).expect("short")];
    let count = reader.read(0, &mut found).expect("it can be read");
    assert_eq!(count, found.len(), "{path}");
    found
}

/// A process that writes a table and a log is killed, and so is its server; the next one of each finds both, twice.
fn files_outlive_their_process_and_the_servers(
    serve: impl Fn(&Program) -> (Served<'_>, String),
    open: impl Fn(&Program, &str) -> Result<Arc<Store>, StoreError>,
) {
    let program = program();
    let (mut first, address) = serve(&program);
    let (table, log) = (content(1, 700_001), content(2, 9_999));
    let store = open(&program, &address).expect("it is served");
    write(&store, "/1.sst", &table).expect("there is room");
    let writer = store.create("/2.log", Created::Anew).expect("there is room");
    writer.append(&log[..5_000]).expect("there is room");
    writer.sync().expect("the drive works");
    writer.append(&log[5_000..]).expect("there is room");
    writer.flush().expect("the tail can be kept");
    // As a process that is killed: nothing is closed.
    std::mem::forget((writer, store));
    first.child.kill().expect("it runs");
    first.child.wait().expect("it can be waited for");
    let (_second, address) = serve(&program);
    let store = open(&program, &address).expect("it is served");
    assert!(read(&store, "/1.sst") == table && read(&store, "/2.log") == log);
    let error = open(&program, &address).expect_err("it is claimed");
    assert!(error.kind == ErrorKind::Busy && error.sentence.contains("another host has what"), "{error}");
    store.close().expect("the drive works");
    drop(store);
    let store = open(&program, &address).expect("whoever has gone has given it up");
    assert!(read(&store, "/1.sst") == table && read(&store, "/2.log") == log);
}

#[test]
fn files_on_a_served_image_outlive_their_process_and_the_servers() {
    files_outlive_their_process_and_the_servers(|program| served(program, "a.img"), open);
}

#[test]
fn threads_share_a_served_drive_and_another_host_is_told_who_has_it() {
    let program = program();
    let (_served, address) = served(&program, "a.img");
    let store = open(&program, &address).expect("it is served");
    std::thread::scope(|scope| {
        for thread in 0..4_u8 {
            let store = Arc::clone(&store);
            scope.spawn(move || {
                for round in 0..6_usize {
                    let (path, content) = (format!("/{thread}.{round}.sst"), vec![thread; 90_000 + round]);
                    write(&store, &path, &content).expect("there is room");
                    assert!(read(&store, &path) == content, "{path}");
                    store.delete(&path).expect("it is there");
                }
            });
        }
    });
    let error = open(&program, &address).expect_err("the drive is claimed");
    assert!(error.kind == ErrorKind::Busy && error.sentence.contains("another host has what"), "{error}");
    drop(store);
    open(&program, &address).expect("nobody has it any more");
}

#[test]
fn a_server_that_goes_is_told_in_words_and_nothing_hangs() {
    let program = program();
    let (mut first, address) = served(&program, "a.img");
    let store = open(&program, &address).expect("it is served");
    write(&store, "/1.sst", &[7; 300_000]).expect("there is room");
    first.child.kill().expect("it runs");
    first.child.wait().expect("it can be waited for");
    let error = write(&store, "/2.sst", &[8; 300_000]).expect_err("nobody is there");
    assert!(error.kind == ErrorKind::Io && error.sentence.contains("was lost"), "{error}");
    assert!(error.sentence.contains(&address), "{error}");
    let reader = store.open_file("/1.sst").expect("its name is known");
    assert_eq!(reader.read(0, &mut [0; 10]).expect_err("nobody is there").kind, ErrorKind::Io);
    drop(reader);
    assert!(store.close().is_err());
    let (_second, address) = served(&program, "a.img");
    let store = open(&program, &address).expect("it is served");
    assert!(read(&store, "/1.sst") == [7; 300_000] && store.open_file("/2.sst").is_err());
}

/// Serves a target of tables on an image.
fn served_tables(program: &Program) -> (Served<'_>, String) {
    let quick = QUICK.replace("--raw-set", "--set");
    let arguments = format!("--nvme-tcp 127.0.0.1:0 --drive a.img --export t=lightlsm {quick}");
    let served = Served::start_at(program, &arguments);
    let address = served.serving["nvme"]["addresses"][0].as_str().expect("it says where").to_owned();
    (served, address)
}

fn open_tables(program: &Program, address: &str) -> Result<Arc<Store>, StoreError> {
    let tails = program.path("tails").display().to_string();
    let options = format!("drive=nvme-tcp://{address},target=served,tails={tails}");
    Store::open(&StoreOptions::parse(&options)?)
}

#[test]
fn files_in_tables_of_a_server_outlive_their_process_and_the_servers() {
    files_outlive_their_process_and_the_servers(served_tables, open_tables);
}

/// A host that went leaves tables that nobody sees: the next gets their names and their room.
#[test]
fn tables_that_a_host_did_not_publish_go_when_the_next_one_comes() {
    let program = program();
    let (_served, address) = served_tables(&program);
    let endpoint = Endpoint::parse(&format!("nvme-tcp://{address}")).expect("an address");
    for round in 0..4 {
        let association = TableAssociation::open(&endpoint, Some(1)).expect("the one before has gone");
        let target = ServedTables::new(association).expect("descriptors");
        let clock = WallClock::default().woken_by(target.line().alarm);
        let drive = StoreDrive::from(target.line());
        let (clock, buffers) = (DriveClock::Wall(Box::new(clock)), Buffers::new(drive.payload_format()));
        let drive = SharedDrive::new(drive, clock, buffers, Box::new(target), None);
        let hint = TableHint { level: 1, stream: 2 };
        let begun = drive.create(TableId(7), TableKind::Table, hint, 2_000_000);
        begun.unwrap_or_else(|error| panic!("round {round}: {error}"));
        let (added, told) = drive.append(TableId(7), &content(round, 2_000_000), Durability::AtFlush);
        told.unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!((added, drive.list().expect("it is served").len()), (2_000_000, 0), "nobody sees it");
    }
    let store = open_tables(&program, &address).expect("the one before has gone");
    write(&store, "/5.sst", &content(5, 2_000_000)).expect("all room is there");
    assert!(read(&store, "/5.sst") == content(5, 2_000_000));
}

#[test]
fn a_server_of_tables_that_goes_is_told_in_words_and_nothing_hangs() {
    let program = program();
    let (mut first, address) = served_tables(&program);
    let store = open_tables(&program, &address).expect("it is served");
    write(&store, "/1.sst", &[7; 300_000]).expect("there is room");
    std::thread::scope(|scope| {
        for thread in 0..3_u8 {
            let store = Arc::clone(&store);
            scope.spawn(move || {
                for round in 0..8_usize {
                    let (path, content) = (format!("/{thread}.{round}.sst"), vec![thread; 90_000 + round]);
                    write(&store, &path, &content).expect("there is room");
                    assert!(read(&store, &path) == content, "{path}");
                    store.delete(&path).expect("it is there");
                }
            });
        }
    });
    first.child.kill().expect("it runs");
    first.child.wait().expect("it can be waited for");
    let error = write(&store, "/2.sst", &[8; 300_000]).expect_err("nobody is there");
    assert!(error.kind == ErrorKind::Io && error.sentence.contains("was lost"), "{error}");
    assert!(store.close().is_err());
    let (_second, address) = served_tables(&program);
    let store = open_tables(&program, &address).expect("it is served");
    assert!(read(&store, "/1.sst") == [7; 300_000] && store.open_file("/2.sst").is_err());
}

#[test]
fn a_server_that_falls_silent_is_given_up_after_thirty_seconds() {
    let program = program();
    let (first, address) = served(&program, "a.img");
    let endpoint = Endpoint::parse(&format!("nvme-tcp://{address}")).expect("an address");
    let mut drive =
        ServedDrive::new(Association::open(&endpoint).expect("it is served")).expect("descriptors");
    first.signal("-STOP");
    let mut buffers = Buffers::new(drive.payload_format());
    let buffer = buffers.take(1);
    let read = command(Op::Read, Addresses::Run { first: Ppa::new(ChunkId(0), 0), count: 1 }, Some(buffer));
    drive.submit(Nanos::ZERO, read, &mut buffers).expect("there is room");
    let until = drive.deadline().expect("an answer is owed");
    assert_eq!(
        (until, drive.poll_completion(Nanos(until.0 - 1), &mut buffers)),
        (Nanos::from_millis(30_000), None)
    );
    let ended = drive.poll_completion(until, &mut buffers).expect("the server is given up");
    assert_eq!(ended.status, Status::INTERNAL_ERROR);
    assert!(drive.failure().is_some_and(|why| why.contains("has not answered for 30 s")));
    drive.submit(until, read, &mut buffers).expect("there is room");
    assert!(drive.poll_completion(until, &mut buffers).is_some_and(|ended| ended.status.is_drive_failure()));
    first.signal("-CONT");
}

#[test]
fn what_cannot_be_of_a_served_drive_is_said_in_words() {
    let program = program();
    let (served, address) = served(&program, "a.img");
    for (options, part) in [
        (format!("drive=nvme-tcp://{address},tails=t,clock=virtual"), "the machine's time"),
        (format!("drive=nvme-tcp://{address},tails=t,create=tiny"), "made and set where it is served"),
        (format!("drive=nvme-tcp://{address},tails=t,set.media.read=1us"), "made and set where it is served"),
        (format!("drive=nvme-tcp://{address},tails=t,power_cut=3"), "is the server's"),
        (format!("drive=nvme-tcp://{address}"), "tails=PATH, or do without by flush=never"),
        (format!("drive=nvme-tcp://{address},tails=t,flush=never"), "leave tails or flush out"),
        (format!("drive=nvme-tcp://{address}/nqn.other,tails=t"), "there is no subsystem nqn.other"),
        (format!("drive=nvme-tcp://{address},tails=t,on=pu:99"), "unit 99"),
        (format!("drive=nvme-tcp://{address},tails=t,target=served"), "serves no target of tables"),
        (format!("drive=nvme-tcp://{address},tails=t,target=served:x"), "served:NUMBER"),
        (
            format!("drive=nvme-tcp://{address},tails=t,target=served,placement=level"),
            "placement is an option of a target",
        ),
        (
            format!("drive=nvme-tcp://{address},tails=t,target=served,on=pu:0"),
            "has its units where it is served",
        ),
        ("drive=nvme-tcp://127.0.0.1:1,tails=t".to_owned(), "nobody serves a drive at 127.0.0.1:1"),
        ("drive=nvme-tcp://127.0.0.1,tails=t".to_owned(), "no address and port"),
        ("drive=tiny,tails=t".to_owned(), "for a drive that a server holds"),
    ] {
        let found = StoreOptions::parse(&options).and_then(|options| Store::open(&options));
        let error = found.err().unwrap_or_else(|| panic!("{options} is a store"));
        assert!(error.sentence.contains(part), "{options}: {error}");
    }
    served.stop();
    let without = Served::start_at(&program, BESIDE);
    let address = without.serving["nvme"]["addresses"][0].as_str().expect("it says where").to_owned();
    let error = open(&program, &address).expect_err("there is no open-channel drive");
    assert!(error.sentence.contains("start it with --raw DRIVE"), "{error}");
}

fn command(op: Op, addresses: Addresses, buffer: Option<ocssd_lightnvm::BufId>) -> Command {
    Command { tag: Tag(1), op, addresses, buffer, buffer_first: 0, oob: true, plane_mode: PlaneMode::Single }
}

/// One side of a comparison: a drive, its clock and a buffer of 128 sectors.
struct Side<D, C> {
    device: D,
    clock: C,
    buffers: Buffers,
    buffer: ocssd_lightnvm::BufId,
}

impl<D: Device, C: Clock> Side<D, C> {
    fn new(device: D, clock: C, mut buffers: Buffers) -> Self {
        let buffer = buffers.take(128);
        Self { device, clock, buffers, buffer }
    }

    /// What came of a command: status, failed entries, data and metadata where it read.
    fn carry_out(&mut self, op: Op, addresses: Addresses, list: &[Ppa], fill: u8) -> (Status, u64, Vec<u8>) {
        let buffer = self.buffer;
        for (place, at) in self.buffers.addresses_mut(buffer).iter_mut().zip(list) {
            *place = *at;
        }
        let (data, oob) = self.buffers.sectors_mut(buffer, 0, 128);
        data.fill(fill);
        oob.fill(!fill);
        let moves = matches!(op, Op::Read | Op::Write { .. });
        let is_list = matches!(addresses, Addresses::List { .. });
        let command = command(op, addresses, (moves || is_list).then_some(buffer));
        let Self { device, clock, buffers, .. } = self;
        let ended =
            Caller { device, clock, buffers, cut_at: None }.call(&[command]).expect("no power cut")[0];
        let count = if op == Op::Read { addresses.count() } else { 0 };
        let good: Vec<u32> = (0..count).filter(|&at| at >= 64 || ended.failed >> at & 1 == 0).collect();
        let sectors = good
            .iter()
            .flat_map(|&at| [self.buffers.data(buffer, at, 1), self.buffers.oob(buffer, at, 1)].concat());
        (ended.status, ended.failed, sectors.collect())
    }
}

/// Drawn commands: a served drive answers each as the drive itself does, and knows the same of its chunks.
#[test]
fn a_served_drive_does_what_the_drive_itself_does() {
    let program = program();
    let options = OpenOptions { settings: vec!["payload=bytes".to_owned()], ..OpenOptions::default() };
    for seed in 0..6 {
        let (_served, address) = served(&program, "drive.toml");
        let source = Source::Settings(program.path("drive.toml"));
        let OpenDrive { flash, .. } = ocssd_drive::open_with(&source, &options).expect("a drive file");
        let buffers = Buffers::new(flash.payload_format());
        let mut own = Side::new(flash, VirtualClock::default(), buffers);
        let endpoint = Endpoint::parse(&format!("nvme-tcp://{address}")).expect("an address");
        let drive =
            ServedDrive::new(Association::open(&endpoint).expect("it is served")).expect("descriptors");
        let (clock, buffers) =
            (WallClock::default().woken_by(drive.alarm()), Buffers::new(drive.payload_format()));
        let mut there = Side::new(drive, clock, buffers);
        let (mut prng, geometry) = (Prng::new(seed), own.device.geometry().clone());
        assert_eq!(there.device.geometry().sector_count(), geometry.sector_count());
        for step in 0..150_u8 {
            let small = |prng: &mut Prng, below: u64| u32::try_from(prng.below(below)).expect("small");
            let chunk = ChunkId(small(&mut prng, 3));
            let known: ChunkDescriptor = own.device.chunk(chunk);
            let wp = known.write_pointer.unwrap_or(0);
            let (op, addresses, list) = match prng.below(7) {
                0..=2 => {
                    let from = if prng.below(8) == 0 { 8 } else { wp % geometry.sectors_per_chunk };
                    let count = ((1 + small(&mut prng, 3)) * 8).min(geometry.sectors_per_chunk - from);
                    let run = Addresses::Run { first: Ppa::new(chunk, from), count };
                    (Op::Write { fua: prng.below(2) == 0 }, run, Vec::new())
                }
                3 => {
                    let from = small(&mut prng, 60);
                    let count = 1 + small(&mut prng, u64::from(64 - from));
                    (Op::Read, Addresses::Run { first: Ppa::new(chunk, from), count }, Vec::new())
                }
                4 => {
                    let list: Vec<Ppa> = (0..1 + prng.below(20))
                        .map(|_| Ppa::new(ChunkId(small(&mut prng, 3)), small(&mut prng, 64)))
                        .collect();
                    let count = u32::try_from(list.len()).expect("few");
                    (Op::Read, Addresses::List { offset: 0, count }, list)
                }
                5 => (Op::Reset, Addresses::Run { first: Ppa::new(chunk, 0), count: 1 }, Vec::new()),
                _ => (Op::Flush, Addresses::None, Vec::new()),
            };
            let expected = own.carry_out(op, addresses, &list, step);
            let found = there.carry_out(op, addresses, &list, step);
            let at = format!("seed {seed}, step {step}: {op:?} {addresses:?} {list:?}");
            assert_eq!((found.0, found.1), (expected.0, expected.1), "{at}");
            assert!(found.2 == expected.2, "{at}: content differs");
            let states = |device: &dyn Device| {
                let of =
                    |chunk| (device.chunk(ChunkId(chunk)).state, device.chunk(ChunkId(chunk)).write_pointer);
                (0..3).map(of).collect::<Vec<_>>()
            };
            assert_eq!(states(&there.device), states(&own.device), "{at}");
        }
        assert!(usize_of(there.buffers.sectors(there.buffer)) == 128);
    }
}
