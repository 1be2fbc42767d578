//! Guests of targets: what they find over vfio-user is what other hosts find over NVMe/TCP.

use crate::guest::{ENABLE, Guest};
use ocssd_base::Nanos;
use ocssd_engine::{Caller, Clock, Host, VirtualClock, WallClock};
use ocssd_export::nvme_subsystem::{Subsystem, SubsystemConfig};
use ocssd_export::reactor::{Endpoint, Limits, Server, Signals, Transport};
use ocssd_export::vfio_user::{ListenerThread, VfioUser};
use ocssd_export::{Export, Exports, Stats};
use ocssd_flash::{Flash, presets};
use ocssd_lightnvm::interface::AnyTarget;
use ocssd_lightnvm::interface::Entry;
use ocssd_lightnvm::interface::log_structured::{PageEntry, PageId};
use ocssd_lightnvm::interface::zoned::{ZoneAction, ZoneDescriptor};
use ocssd_lightnvm::{Buffers, Geometry, Payload, PuId, Status, Target, TargetId};
use ocssd_nvme::identify::{Cns, IdentifyController, IdentifyNamespace, NamespaceIds, Uuid};
use ocssd_nvme::kv::{KeyValueCommand, KvOpcode};
use ocssd_nvme::pages::{FlushPages, PageOpcode, ReadPage};
use ocssd_nvme::sqe::{Identify, ReadWrite};
use ocssd_nvme::zns::{
    ZoneAppend, ZoneManagementReceive, ZoneManagementSend, ZoneReceiveAction, ZoneSendAction,
};
use ocssd_nvme::{HostAddress, Lba, Sqe};
use ocssd_targets::linear::Layout;
use ocssd_targets::registry::{self, TargetSpec};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A target, the options it is made with, and its first unit; each has two.
type Asked = (&'static str, &'static [(&'static str, &'static str)], u32);

/// A server of targets in a thread, at as many sockets as slots.
struct World {
    paths: Vec<PathBuf>,
    stop: UnixStream,
    thread: JoinHandle<Stats>,
}

/// A quick drive with these targets.
fn made(asked: &[Asked]) -> (Flash, Nanos, Buffers, Vec<AnyTarget>) {
    let mut config = presets::find("tiny").expect("a preset").config();
    config.geometry = Geometry { ws_min: 4, mw_cunits: 8, ..Geometry::example(2, 2, 64, 64, 8) };
    config.payload = Payload::Bytes;
    config.media.read = vec![Nanos::from_micros(1)];
    config.media.program = vec![Nanos::from_micros(2)];
    config.media.erase = Nanos::from_micros(5);
    let mut device = Flash::format(config).expect("a sound drive");
    let (mut buffers, mut clock) = (Buffers::new(device.payload_format()), VirtualClock::default());
    let mut make = |&(kind, options, first): &Asked| {
        let units: Vec<PuId> = (first..first + 2).map(PuId).collect();
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let options: Vec<(String, String)> = options.iter().map(owned).collect();
        let spec = TargetSpec { units: &units, layout: Layout::Striped, options: &options };
        let mut caller =
            Caller { device: &mut device, clock: &mut clock, buffers: &mut buffers, cut_at: None };
        registry::find(kind).expect("a kind").make_any(&mut caller, &spec).expect("it fits").target
    };
    let targets = asked.iter().map(&mut make).collect();
    (device, clock.now(), buffers, targets)
}

impl World {
    fn new(asked: &'static [Asked]) -> Self {
        Self::with_slots(asked, 1)
    }

    fn with_slots(asked: &'static [Asked], slots: u32) -> Self {
        let path = |_| {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}-targets", std::process::id());
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
        };
        let paths: Vec<PathBuf> = (0..slots).map(path).collect();
        let open = |path: &PathBuf| {
            ListenerThread::open(&Endpoint::Unix(path.clone())).expect("the build directory takes sockets")
        };
        let listener_threads: Vec<ListenerThread> = paths.iter().map(open).collect();
        let (stop, stop_end) = UnixStream::pair().expect("a test has sockets and threads");
        let thread = std::thread::spawn(move || {
            let (_, report_end) = UnixStream::pair().expect("a test has sockets and threads");
            let signals = Signals::of(stop_end, report_end).expect("a test has sockets and threads");
            serve(asked, listener_threads, signals)
        });
        Self { paths, stop, thread }
    }

    /// A guest whose driver has begun, with all command sets, and made a queue.
    fn guest(&self, slot: usize) -> Guest {
        let mut guest = Guest::at(&self.paths[slot]);
        guest.enable_with(ENABLE | 6 << 4);
        guest.make_queue(1);
        guest
    }

    /// Stops it; what it counted.
    fn stop(mut self) -> Stats {
        self.stop.write_all(b"x").expect("it is there");
        self.thread.join().expect("the server did not panic")
    }
}

fn serve(asked: &[Asked], listener_threads: Vec<ListenerThread>, signals: Signals) -> Stats {
    let (device, now, buffers, targets) = made(asked);
    let mut host = Host::new(device, WallClock::starting_at(now), buffers);
    let mut exports = Vec::new();
    for (number, (target, (kind, _, first))) in (1..).zip(targets.into_iter().zip(asked)) {
        let name = format!("{kind}-{first}");
        let export = Export::of(&name, kind, &target, 4096, false).expect("a small target");
        exports.push(Export { uuid: Uuid::of_seed(7).of_part(number), ..export });
        host.add(Box::new(target));
    }
    let exports = Exports::new(exports).expect("names of their own");
    let count = u32::try_from(exports.len()).expect("few");
    let mut server =
        Server::new(host, exports, signals, Limits::default(), Box::new(|_| {})).expect("it serves");
    let nqn = "nqn.2014-08.org.nvmexpress:slots".to_owned();
    let config = SubsystemConfig { nqn, uuid: Uuid::of_seed(7), ..SubsystemConfig::default() };
    server.use_nvme(Subsystem::new(config).expect("a sound name"), None);
    for listener_thread in listener_threads {
        let make = Box::new(|owner| Box::new(VfioUser::new(listener_thread, owner)) as Box<dyn Transport>);
        server.host_transport(make).expect("a test has sockets and threads");
    }
    let stopped = server.run(&mut |_| {}).expect("it serves");
    let mut host = stopped.host;
    // Whatever guests did, nothing is open and every invariant holds.
    host.settle();
    (0..count).for_each(|target| host.target(TargetId(target)).check());
    stopped.stats
}

const PBLK: Asked = ("pblk", &[("over_provisioning_percent", "40"), ("block_bytes", "512")], 0);
const OX_BLOCK: Asked = ("ox-block", &[], 2);

fn identify(guest: &mut Guest, cns: Cns, nsid: u32, csi: u8) -> Vec<u8> {
    guest.ask(Sqe::identify(nsid, Identify { cns, cntid: 0, csi }), 4096)
}

fn io(slba: u64, block_count: u32) -> ReadWrite {
    ReadWrite { slba: Lba(slba), block_count, limited_retry: false, force_unit_access: false }
}

/// Bytes that tell where they belong.
fn pattern(count: usize, salt: u8) -> Vec<u8> {
    let words = (0u32..).take(count / 4);
    words.flat_map(|word| (word ^ u32::from(salt) << 24).to_le_bytes()).collect()
}

#[test]
fn a_driver_finds_a_controller_of_blocks_with_what_is_written_as_one() {
    let world = World::new(&[PBLK, OX_BLOCK]);
    let mut guest = world.guest(0);
    assert_eq!((guest.config(0), guest.config(8) >> 8), (0x0C55_1D1D, 0x01_08_02));
    assert_eq!((guest.register(8), guest.register(4) >> 5 & 0xFF), (0x0002_0000, 0b100_0001));
    let controller = identify(&mut guest, Cns::CONTROLLER, 0, 0);
    let controller = IdentifyController::decode(&controller).expect("a controller");
    assert_eq!((controller.nn, controller.ver, controller.kas), (2, 0x0002_0000, 0));
    // A transaction of ox-block is a megabyte: MDTS is 2^8 pages.
    assert_eq!((controller.mdts, controller.oacs & 1 << 8, controller.sgls & 3), (8, 1 << 8, 1));
    let namespaces = [1, 2].map(|nsid| {
        let bytes = identify(&mut guest, Cns::NAMESPACE, nsid, 0);
        IdentifyNamespace::decode(&bytes).expect("a namespace")
    });
    assert_eq!(namespaces.each_ref().map(|namespace| namespace.lbaf[0].lbads), [9, 12]);
    assert_eq!(namespaces.each_ref().map(|namespace| namespace.atomic.nawupf), [7, 255]);
    assert!(namespaces[0].nguid != [0; 16] && namespaces[0].nguid != namespaces[1].nguid);
    assert_eq!(
        identify(&mut guest, Cns::ACTIVE_NAMESPACES, 0, 0)[..12],
        [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
    );
    drop(guest);
    let stats = world.stop();
    assert_eq!((stats.errors, stats.associations), (0, 1), "{stats:?}");
}

#[test]
fn what_is_written_to_blocks_is_read_again_by_pages_and_lists() {
    let world = World::new(&[PBLK, OX_BLOCK]);
    let mut guest = world.guest(0);
    for (nsid, block, blocks) in [(1, 512, 1), (1, 512, 8), (1, 512, 512), (2, 4096, 1), (2, 4096, 256)] {
        let data = pattern(block * usize::try_from(blocks).expect("small"), 3);
        assert_eq!(guest.write(1, Sqe::write(nsid, io(16, blocks)), &data).status.status, Status::SUCCESS);
        let (found, completion) = guest.read(1, Sqe::read(nsid, io(16, blocks)), data.len());
        assert_eq!(completion.status.status, Status::SUCCESS);
        assert!(found == data, "{blocks} blocks of namespace {nsid}");
    }
    assert_eq!(guest.carry_out(1, Sqe::flush(u32::MAX)).status.status, Status::SUCCESS);
    let wrong = guest.write(1, Sqe { opcode: 0x05, ..Sqe::write(1, io(16, 8)) }, &pattern(4096, 4));
    assert_eq!(wrong.status.status, Status::COMPARE_FAILURE);
    let beyond = guest.write(1, Sqe::write(1, io(u64::MAX, 8)), &[0; 4096]);
    assert_eq!(beyond.status.status, Status::LBA_OUT_OF_RANGE);
    let too_long = Sqe::read(2, io(0, 257)).with_prps(HostAddress(0x4000_0000), HostAddress(0x4000_0000));
    assert_eq!(guest.carry_out(1, too_long).status.status, Status::INVALID_FIELD);
    assert_eq!(guest.carry_out(1, Sqe::read(3, io(0, 1))).status.status, Status::INVALID_NAMESPACE);
    // CC.SHN: all is durable that was answered.
    guest.set_register(0x14, ENABLE | 6 << 4 | 1 << 14);
    guest.wait_register(0x1C, 1 | 2 << 2);
    drop(guest);
    let stats = world.stop();
    assert_eq!((stats.writes, stats.reads, stats.errors), (5, 6, 4), "{stats:?}");
}

#[test]
fn zones_keys_and_pages_are_namespaces_of_their_own_command_sets() {
    const EXPORTS: [Asked; 2] = [("zns", &[], 0), ("kv", &[], 2)];
    let world = World::new(&EXPORTS);
    let mut guest = world.guest(0);
    let csi = [1, 2].map(|nsid| {
        let ids = identify(&mut guest, Cns::NAMESPACE_IDS, nsid, 0);
        NamespaceIds::decode(&ids).expect("names").csi
    });
    assert_eq!(csi, [Some(2), Some(1)]);
    let report = |guest: &mut Guest| {
        let (slba, action) = (Lba(0), ZoneReceiveAction::Report);
        let receive = ZoneManagementReceive { slba, dword_count: 1024, action, filter: 0, partial: true };
        let (data, completion) = guest.read(1, Sqe::zone_management_receive(1, receive), 4096);
        assert_eq!(completion.status.status, Status::SUCCESS);
        let zones: Vec<ZoneDescriptor> =
            data[64..].chunks_exact(64).map_while(ZoneDescriptor::decode).collect();
        zones[1]
    };
    let start = report(&mut guest).start;
    for at in 0..3 {
        let append = ZoneAppend {
            zslba: Lba(start),
            block_count: 1,
            limited_retry: false,
            force_unit_access: true,
            remaps_tag: false,
        };
        let completion = guest.write(1, Sqe::zone_append(1, append), &pattern(4096, 9));
        assert_eq!((completion.status.status, u64::from(completion.dw0)), (Status::SUCCESS, start + at));
    }
    assert_eq!(report(&mut guest).write_pointer, Some(start + 3));
    assert!(guest.read(1, Sqe::read(1, io(start + 2, 1)), 4096).0 == pattern(4096, 9));
    let action = ZoneSendAction::Manage(ZoneAction::Reset);
    let reset = ZoneManagementSend { slba: Lba(start), action, all: false, option: false };
    assert_eq!(guest.carry_out(1, Sqe::zone_management_send(1, reset)).status.status, Status::SUCCESS);
    assert_eq!(report(&mut guest).write_pointer, Some(start));
    let about = |opcode, bytes| Sqe::key_value(opcode, 2, KeyValueCommand::new(b"key", bytes));
    let value = pattern(40_000, 5);
    assert_eq!(guest.write(1, about(KvOpcode::STORE, 40_000), &value).status.status, Status::SUCCESS);
    let (found, completion) = guest.read(1, about(KvOpcode::RETRIEVE, 65_536), 65_536);
    assert!(completion.dw0 == 40_000 && found[..40_000] == value);
    drop(guest);
    assert_eq!(world.stop().errors, 0);
}

#[test]
fn a_flush_of_pages_is_there_after_its_guest_has_gone() {
    const EXPORTS: [Asked; 1] = [("eleos", &[], 0)];
    let world = World::new(&EXPORTS);
    let mut guest = world.guest(0);
    let session =
        |guest: &mut Guest| guest.carry_out(1, Sqe::page_session(PageOpcode::OPEN_SESSION, 1, 7)).dw0;
    assert_eq!(session(&mut guest), 0);
    let mut sent = vec![0; PageEntry::BYTES];
    PageEntry { page: PageId(3), offset: 0, bytes: 1904 }.encode(&mut sent);
    sent.extend(pattern(1904, 4));
    let flush = FlushPages { session: 7, wsn: 1, bytes: 1904, rows: 1, force_unit_access: true, stage: None };
    assert_eq!(guest.write(1, Sqe::flush_pages(1, flush), &sent).status.status, Status::SUCCESS);
    guest.vanish();
    let mut guest = world.guest(0);
    assert_eq!(session(&mut guest), 1, "it was applied");
    let (found, completion) =
        guest.read(1, Sqe::read_page(1, ReadPage { page: 3, offset: 0, bytes: 4096 }), 4096);
    assert!(completion.dw0 == 1904 && found[..1904] == pattern(1904, 4));
    drop(guest);
    assert_eq!(world.stop().associations, 2, "each had a controller of its own");
}

#[test]
fn guests_of_two_slots_share_what_they_write_and_not_their_controllers() {
    const EXPORTS: [Asked; 1] = [PBLK];
    let world = World::with_slots(&EXPORTS, 2);
    let (mut first, mut second) = (world.guest(0), world.guest(1));
    let numbers = [&mut first, &mut second].map(|guest| {
        let controller = identify(guest, Cns::CONTROLLER, 0, 0);
        IdentifyController::decode(&controller).expect("a controller").cntlid
    });
    assert_ne!(numbers[0], numbers[1]);
    first.use_shadows();
    first.make_queue(2);
    for round in 0..8 {
        assert_eq!(
            first.write(2, Sqe::write(1, io(8 * round, 8)), &pattern(4096, 1)).status.status,
            Status::SUCCESS
        );
        assert!(second.read(1, Sqe::read(1, io(8 * round, 8)), 4096).0 == pattern(4096, 1), "{round}");
    }
    // In the middle of commands: the other goes on.
    for _ in 0..8 {
        let at = first.room(4096);
        first.submit(2, Sqe::read(1, io(0, 8)).with_prps(HostAddress(at), HostAddress(0)));
    }
    first.vanish();
    assert!(second.read(1, Sqe::read(1, io(0, 8)), 4096).0 == pattern(4096, 1));
    let mut first = world.guest(0);
    assert!(first.read(1, Sqe::read(1, io(0, 8)), 4096).0 == pattern(4096, 1));
    drop((first, second));
    let stats = world.stop();
    assert_eq!((stats.associations, stats.errors), (3, 0), "{stats:?}");
}
