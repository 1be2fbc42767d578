//! Zones, and keys and values, served to an NVMe host over TCP: what was answered is there when the server comes again.

use crate::program::Program;
use crate::serve::Served;
use ocssd_export::nvme_tcp::host::{Answer, Host, in_capsule, transported};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::Entry;
use ocssd_lightnvm::interface::zoned::{WidthHint, ZoneAction, ZoneDescriptor, ZoneExtension, ZoneState};
use ocssd_nvme::fabrics::{Connect, ConnectData, DYNAMIC_CNTLID, PropertySet, offset};
use ocssd_nvme::identify::{Cns, NamespaceIds};
use ocssd_nvme::kv::{KeyValueCommand, KvOpcode};
use ocssd_nvme::sqe::{Identify, ReadWrite};
use ocssd_nvme::zns::{
    ReportHeader, ZoneAppend, ZoneManagementReceive, ZoneManagementSend, ZoneReceiveAction, ZoneSendAction,
};
use ocssd_nvme::{Cqe, Lba, Sqe};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Zones, blocks, and keys and values on one image: namespaces 1, 2 and 3.
const EXPORTS: &str = "--nvme-tcp 127.0.0.1:0 --drive x.img --nqn nqn.2014-08.org.nvmexpress:test --export z=zns@pu:0-3 \
                       --export m=pblk:over_provisioning_percent=40@pu:4-5 --export k=kv@pu:6-7";

/// A queue of a host.
pub struct Queue {
    stream: TcpStream,
    pub host: Host,
}

/// Why things in these tests do not fail.
const SOUND: &str = "the server answers a sound host";

impl Queue {
    fn connect(address: &str, qid: u16, cntlid: u16) -> (Self, u16) {
        let stream = TcpStream::connect(address).expect("somebody listens");
        let mut queue = Self { stream, host: Host::new(false, true) };
        queue.send(&queue.host.hello());
        assert!(matches!(queue.answer(), Answer::Hello { .. }));
        let connect = Connect { recfmt: 0, qid, sqsize: 31, no_flow_control: false, kato_ms: 0 };
        let (subnqn, hostnqn) = ("nqn.2014-08.org.nvmexpress:test".to_owned(), "nqn.host".to_owned());
        let data = ConnectData { hostid: [1; 16], cntlid, subnqn, hostnqn };
        queue.send(&queue.host.connect(0, connect, &data));
        let cqe = queue.completion();
        assert!(cqe.status.status.is_success(), "{cqe:?}");
        (queue, u16::try_from(cqe.dw0).expect(SOUND))
    }

    /// An admin queue with its controller ready, and an I/O queue.
    pub fn both(served: &Served<'_>) -> (Self, Self) {
        Self::both_at(served.serving["nvme"]["addresses"][0].as_str().expect("it says where"))
    }

    /// As [`Self::both`], of a server at an address.
    pub fn both_at(address: &str) -> (Self, Self) {
        let (mut admin, cntlid) = Self::connect(address, 0, DYNAMIC_CNTLID);
        let enable = PropertySet { is_long: false, offset: offset::CC, value: 0x46_0061 };
        assert_eq!(admin.ask(Sqe::property_set(enable)).status.status, Status::SUCCESS);
        (admin, Self::connect(address, 1, cntlid).0)
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect(SOUND);
    }

    pub fn answer(&mut self) -> Answer {
        loop {
            if let Some(answer) = self.host.poll() {
                return answer;
            }
            let mut bytes = [0; 4096];
            let count = self.stream.read(&mut bytes).expect(SOUND);
            assert!(count > 0, "the server closed the connection");
            self.host.receive(&bytes[..count]);
        }
    }

    pub fn completion(&mut self) -> Cqe {
        match self.answer() {
            Answer::Completion(cqe) => cqe,
            other => panic!("a completion was expected, but {other:?} came"),
        }
    }

    pub fn ask(&mut self, sqe: Sqe) -> Cqe {
        self.send(&self.host.command(&transported(sqe, 0), &[]));
        self.completion()
    }

    /// With data in its capsule, or asked for if it is long.
    pub fn write(&mut self, sqe: Sqe, data: &[u8]) -> Cqe {
        if data.len() > 8192 {
            self.send(&self.host.command(&transported(sqe, data.len()), &[]));
            let Answer::Ask { cid, tag, .. } = self.answer() else { panic!("{sqe:?} was not asked for") };
            self.send(&self.host.data(cid, tag, 0, data, true));
            return self.completion();
        }
        self.send(&self.host.command(&in_capsule(sqe, data.len()), data));
        self.completion()
    }

    /// What a command brings. With flow control there is a completion behind it.
    pub fn read(&mut self, sqe: Sqe, bytes: usize) -> (Vec<u8>, Cqe) {
        self.send(&self.host.command(&transported(sqe, bytes), &[]));
        match self.answer() {
            Answer::Data { bytes, .. } => (bytes, self.completion()),
            Answer::Completion(cqe) => (Vec::new(), cqe),
            other => panic!("data was expected, but {other:?} came"),
        }
    }

    /// The zones of namespace 1, and how many there are.
    fn zones(&mut self) -> (u64, Vec<ZoneDescriptor>) {
        let (slba, action) = (Lba(0), ZoneReceiveAction::Report);
        let receive = ZoneManagementReceive { slba, dword_count: 1024, action, filter: 0, partial: false };
        let (data, cqe) = self.read(Sqe::zone_management_receive(1, receive), 4096);
        assert!(cqe.status.status.is_success(), "{cqe:?}");
        let zones = data[64..].chunks_exact(64).map_while(ZoneDescriptor::decode).collect();
        (ReportHeader::decode(&data).expect("64 bytes").zone_count, zones)
    }

    fn append(&mut self, zone: u64, fill: u8) -> Cqe {
        let append = ZoneAppend {
            zslba: Lba(zone),
            block_count: 1,
            limited_retry: false,
            force_unit_access: false,
            remaps_tag: false,
        };
        self.write(Sqe::zone_append(1, append), &[fill; 4096])
    }

    fn manage(&mut self, action: ZoneAction, zone: u64) -> Status {
        let action = ZoneSendAction::Manage(action);
        let send = ZoneManagementSend { slba: Lba(zone), action, all: false, option: false };
        self.ask(Sqe::zone_management_send(1, send)).status.status
    }

    /// Sets the descriptor extension of a zone of namespace 1.
    fn describe(&mut self, zone: u64, extension: &ZoneExtension) -> Status {
        let action = ZoneSendAction::SetExtension;
        let send = ZoneManagementSend { slba: Lba(zone), action, all: false, option: false };
        self.write(Sqe::zone_management_send(1, send), &extension.0).status.status
    }

    /// A zone of namespace 1 with the bytes behind its descriptor in an extended report.
    fn described(&mut self, zone: u64) -> (ZoneDescriptor, Vec<u8>) {
        let (slba, action) = (Lba(zone), ZoneReceiveAction::ExtendedReport);
        let receive = ZoneManagementReceive { slba, dword_count: 48, action, filter: 0, partial: true };
        let (data, cqe) = self.read(Sqe::zone_management_receive(1, receive), 192);
        assert!(cqe.status.status.is_success(), "{cqe:?}");
        let listed = ReportHeader::decode(&data).expect("64 bytes").zone_count;
        assert_eq!((data.len(), listed), (192, 1), "one zone fits the room that was given");
        (ZoneDescriptor::decode(&data[64..128]).expect("a descriptor"), data[128..].to_vec())
    }

    fn block(&mut self, lba: u64) -> Vec<u8> {
        let io = ReadWrite { slba: Lba(lba), block_count: 1, limited_retry: false, force_unit_access: false };
        self.read(Sqe::read(1, io), 4096).0
    }

    fn store(&mut self, key: &[u8], value: &[u8]) -> Status {
        let command = KeyValueCommand::new(key, u32::try_from(value.len()).expect("short"));
        self.write(Sqe::key_value(KvOpcode::STORE, 3, command), value).status.status
    }

    fn retrieve(&mut self, key: &[u8]) -> (Vec<u8>, Cqe) {
        self.read(Sqe::key_value(KvOpcode::RETRIEVE, 3, KeyValueCommand::new(key, 4096)), 4096)
    }
}

/// Makes an image with quick media.
pub fn format(program: &Program) {
    program.good(
        "format x.img --drive tiny --set payload=bytes --set groups=2 --set pus_per_group=4 --set chunks_per_pu=32 \
         --set sectors_per_chunk=64 --set media.read=2us --set media.program=5us --set media.erase=9us",
    );
}

#[test]
fn what_was_flushed_to_zones_and_keys_is_there_after_a_kill_and_after_an_end() {
    let program = Program::new();
    format(&program);
    let mut served = Served::start_at(&program, EXPORTS);
    let (mut admin, mut queue) = Queue::both(&served);
    let csi = [1, 2, 3].map(|nsid| {
        let (cns, cntid, csi) = (Cns::NAMESPACE_IDS, 0, 0);
        let ids = admin.read(Sqe::identify(nsid, Identify { cns, cntid, csi }), 4096).0;
        NamespaceIds::decode(&ids).expect("names").csi
    });
    assert_eq!(csi, [Some(2), Some(0), Some(1)]);
    let (count, zones) = queue.zones();
    let second = zones[1].start;
    assert!(count > 8 && zones[0].capacity <= second && second.is_power_of_two(), "{count}: {:?}", zones[0]);
    for at in 0..5 {
        let cqe = queue.append(second, 7);
        assert_eq!((cqe.status.status, u64::from(cqe.dw0)), (Status::SUCCESS, second + at));
    }
    assert_eq!(queue.store(b"first", b"a value"), Status::SUCCESS);
    assert_eq!(queue.ask(Sqe::flush(u32::MAX)).status.status, Status::SUCCESS);
    served.signal("-KILL");
    served.child.wait().expect("it can be waited for");

    let served = Served::start_at(&program, EXPORTS);
    let (_admin, mut queue) = Queue::both(&served);
    let zone = queue.zones().1[1];
    assert_eq!((zone.state, zone.write_pointer), (ZoneState::Closed, Some(second + 5)));
    assert_eq!(queue.block(second + 4), [7; 4096]);
    assert_eq!(queue.append(second, 8).dw0, u32::try_from(second + 5).expect("small"));
    assert_eq!(queue.manage(ZoneAction::Finish, second), Status::SUCCESS);
    let (value, cqe) = queue.retrieve(b"first");
    assert_eq!((&value[..7], cqe.dw0), (&b"a value"[..], 7));
    assert_eq!(queue.store(b"second", &[9; 4000]), Status::SUCCESS);
    let counted = served.stop();
    let targets = counted["targets"].as_array().expect("a list");
    let names: Vec<&str> = targets.iter().filter_map(|target| target["target"].as_str()).collect();
    assert_eq!(names, ["z", "m", "k"]);

    let served = Served::start_at(&program, EXPORTS);
    let (_admin, mut queue) = Queue::both(&served);
    let zone = queue.zones().1[1];
    assert_eq!((zone.state, zone.write_pointer), (ZoneState::Full, None));
    assert_eq!(queue.block(second + 5), [8; 4096]);
    assert_eq!(queue.append(second, 1).status.status, Status::ZONE_IS_FULL);
    let (value, cqe) = queue.retrieve(b"second");
    assert_eq!((&value[..4000], cqe.dw0), (&[9; 4000][..], 4000));
    assert_eq!(queue.manage(ZoneAction::Reset, second), Status::SUCCESS);
    assert_eq!(queue.zones().1[1].state, ZoneState::Empty);
    served.stop();
}

#[test]
fn an_extension_of_a_zone_is_there_after_a_kill_and_gone_after_a_reset() {
    let program = Program::new();
    format(&program);
    let mut served = Served::start_at(&program, EXPORTS);
    let (_admin, mut queue) = Queue::both(&served);
    let (first, second) = (queue.zones().1[0].start, queue.zones().1[1].start);
    let hint = ZoneExtension::with_width(WidthHint::Units(1));
    assert_eq!(queue.describe(second + 1, &hint), Status::INVALID_FIELD, "no zone starts there");
    assert_eq!(queue.describe(second, &hint), Status::SUCCESS);
    assert_eq!(queue.describe(second, &hint), Status::INVALID_ZONE_TRANSITION, "it is closed by now");
    // Nothing is flushed: what was answered is durable.
    served.signal("-KILL");
    served.child.wait().expect("it can be waited for");

    let served = Served::start_at(&program, EXPORTS);
    let (_admin, mut queue) = Queue::both(&served);
    let (zone, extension) = queue.described(second);
    assert_eq!((zone.start, zone.state, zone.has_extension), (second, ZoneState::Closed, true));
    assert_eq!((zone.write_pointer, &extension[..]), (Some(second), &hint.0[..]));
    let (zone, extension) = queue.described(first);
    assert_eq!((zone.start, zone.state, zone.has_extension), (first, ZoneState::Empty, false));
    assert_eq!(extension, [0; 64]);
    assert_eq!(queue.append(second, 7).dw0, u32::try_from(second).expect("small"));
    assert_eq!(queue.block(second), [7; 4096]);
    assert_eq!(queue.manage(ZoneAction::Reset, second), Status::SUCCESS);
    let (zone, extension) = queue.described(second);
    assert_eq!((zone.state, zone.has_extension, &extension[..]), (ZoneState::Empty, false, &[0; 64][..]));
    served.stop();
}

#[test]
fn what_was_forced_into_a_random_write_area_is_there_after_a_kill_and_the_rest_of_it_is_empty() {
    let program = Program::new();
    format(&program);
    let exports = EXPORTS.replace("z=zns@", "z=zns:area_units=2@");
    let mut served = Served::start_at(&program, &exports);
    let (_admin, mut queue) = Queue::both(&served);
    let second = queue.zones().1[1].start;
    let open = ZoneManagementSend {
        slba: Lba(second),
        action: ZoneSendAction::Manage(ZoneAction::Open),
        all: false,
        option: true,
    };
    assert_eq!(queue.ask(Sqe::zone_management_send(1, open)).status.status, Status::SUCCESS);
    for (at, force_unit_access, fill) in [(3, true, 5), (1, false, 6), (3, true, 7)] {
        let io =
            ReadWrite { slba: Lba(second + at), block_count: 1, limited_retry: false, force_unit_access };
        assert_eq!(queue.write(Sqe::write(1, io), &[fill; 4096]).status.status, Status::SUCCESS);
    }
    let zone = queue.zones().1[1];
    assert_eq!((zone.has_area, zone.write_pointer), (true, Some(second)));
    served.signal("-KILL");
    served.child.wait().expect("it can be waited for");

    let served = Served::start_at(&program, &exports);
    let (_admin, mut queue) = Queue::both(&served);
    let zone = queue.zones().1[1];
    let pointer = zone.write_pointer.expect("it is closed");
    assert!(!zone.has_area && pointer > second + 3, "what survived is committed: {zone:?}");
    let first: Vec<u8> = (0..5).map(|at| queue.block(second + at)[0]).collect();
    // A forced write makes durable what the zone took before it.
    assert_eq!(first, [0, 6, 0, 7, 0]);
    assert_eq!(queue.append(second, 8).dw0, u32::try_from(pointer).expect("small"));
    served.stop();
}

#[test]
fn an_export_that_nobody_can_reach_is_refused_before_anything_is_opened() {
    let program = Program::new();
    for (arguments, kind) in [
        ("--nbd unix:s --drive none.img --target zns", "zones"),
        ("--nbd unix:s --drive none.img --export k=kv", "keys and values"),
    ] {
        let answer = program.run(&format!("serve {arguments}"));
        assert_eq!(answer.code, 2, "{arguments}: {}", answer.err);
        assert!(answer.err.contains(kind) && answer.err.contains("--nvme-tcp"), "{}", answer.err);
    }
}
