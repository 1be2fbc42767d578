//! NVMe/TCP over real sockets: a sound host, and those that only sockets and time can show.

use crate::client::{Both, connect};
use crate::world::{NQN, ServerOptions, World};
use ocssd_base::Nanos;
use ocssd_export::nvme_tcp::host::{Answer, Host, in_capsule, transported};
use ocssd_export::reactor::{Endpoint, Limits};
use ocssd_export::{DropReason, Stats};
use ocssd_nvme::fabrics::{Connect, ConnectData, DYNAMIC_CNTLID, PropertySet, offset};
use ocssd_nvme::sqe::ReadWrite;
use ocssd_nvme::{Lba, Sqe};

/// Why things in these tests do not fail.
const SOUND: &str = "the server answers a sound host";

/// A host's connection.
struct Queue {
    stream: Box<dyn Both>,
    host: Host,
}

fn world(limits: Limits) -> World {
    World::with(ServerOptions { nvme: true, limits, ..ServerOptions::default() })
}

fn io(slba: u64, block_count: u32) -> ReadWrite {
    ReadWrite { slba: Lba(slba), block_count, limited_retry: false, force_unit_access: false }
}

impl Queue {
    fn greet(endpoint: &Endpoint, digests: bool) -> Self {
        let host = Host::new(digests, digests);
        let mut queue = Self { stream: connect(endpoint), host };
        let hello = queue.host.hello();
        queue.send(&hello);
        assert!(matches!(queue.answer(), Answer::Hello { .. }));
        queue
    }

    fn connect(endpoint: &Endpoint, digests: bool, qid: u16, cntlid: u16, kato_ms: u32) -> (Self, u16) {
        let mut queue = Self::greet(endpoint, digests);
        let connect = Connect { recfmt: 0, qid, sqsize: 31, no_flow_control: qid > 0, kato_ms };
        let data =
            ConnectData { hostid: [1; 16], cntlid, subnqn: NQN.to_owned(), hostnqn: "nqn.host".to_owned() };
        let pdu = queue.host.connect(0, connect, &data);
        queue.send(&pdu);
        let Answer::Completion(cqe) = queue.answer() else { panic!("Connect is answered") };
        assert!(cqe.status.status.is_success(), "{cqe:?}");
        (queue, u16::try_from(cqe.dw0).expect(SOUND))
    }

    /// An admin queue with its controller ready, and an I/O queue.
    fn both(endpoint: &Endpoint, digests: bool, kato_ms: u32) -> (Self, Self) {
        let (mut admin, cntlid) = Self::connect(endpoint, digests, 0, DYNAMIC_CNTLID, kato_ms);
        let enable = PropertySet { is_long: false, offset: offset::CC, value: 0x46_0061 };
        admin.ask(Sqe::property_set(enable));
        (admin, Self::connect(endpoint, digests, 1, cntlid, 0).0)
    }

    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect(SOUND);
    }

    fn answer(&mut self) -> Answer {
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

    fn ask(&mut self, sqe: Sqe) {
        let pdu = self.host.command(&transported(sqe, 0), &[]);
        self.send(&pdu);
        let Answer::Completion(cqe) = self.answer() else { panic!("a completion was expected") };
        assert!(cqe.status.status.is_success(), "{sqe:?}: {cqe:?}");
    }

    fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0) | Err(_))
    }
}

#[test]
fn many_commands_at_once_keep_their_data_with_and_without_digests() {
    for digests in [false, true] {
        let world = world(Limits::default());
        let (_admin, mut queue) = Queue::both(&world.endpoint, digests, 0);
        let data = |cid: u16| vec![u8::try_from(cid + 1).expect("small"); 8192];
        let mut pdus = Vec::new();
        for cid in 0..30 {
            let write = Sqe::write(1, io(u64::from(cid) * 16, 16)).with_cid(cid);
            pdus.extend(queue.host.command(&in_capsule(write, 8192), &data(cid)));
        }
        queue.send(&pdus);
        for _ in 0..30 {
            let Answer::Completion(cqe) = queue.answer() else { panic!("a completion was expected") };
            assert!(cqe.status.status.is_success(), "{cqe:?}");
        }
        queue.ask(Sqe::flush(1));
        let pdus: Vec<u8> = (0..30)
            .flat_map(|cid| {
                let read = Sqe::read(1, io(u64::from(cid) * 16, 16)).with_cid(cid);
                queue.host.command(&transported(read, 8192), &[])
            })
            .collect();
        queue.send(&pdus);
        for _ in 0..30 {
            let Answer::Data { cid, bytes, is_success: true } = queue.answer() else {
                panic!("data was expected")
            };
            assert!(bytes == data(cid), "command {cid}");
        }
        let stats = world.end();
        assert_eq!((stats.writes, stats.reads, stats.errors, stats.associations), (30, 30, 0, 1));
        assert_eq!(stats.copies_per_byte().1, Some(0.0));
        assert!(stats.copies_per_byte().0 < Some(0.2), "{:?}", stats.copies_per_byte());
    }
}

#[test]
fn half_a_greeting_ends_after_a_while_and_so_does_a_connection_that_never_says_what_it_is() {
    let mut world = world(Limits { greeting: Nanos::from_millis(100), ..Limits::default() });
    let mut half = connect(&world.endpoint);
    half.write_all(&Host::new(false, false).hello()[..77]).expect(SOUND);
    let mut unbound = Queue::greet(&world.endpoint, false);
    world.until("both are dropped", |stats| stats.dropped_for(DropReason::SlowGreeting) == 2);
    assert!(unbound.is_closed());
    world.end();
}

#[test]
fn a_silent_host_loses_all_its_queues_and_another_that_speaks_keeps_them() {
    let mut world = world(Limits::default());
    let (mut admin, mut queue) = Queue::both(&world.endpoint, false, 1);
    let (_patient, mut other) = Queue::both(&world.endpoint, false, 0);
    world.until("it is dropped", |stats| stats.dropped_for(DropReason::Silent) == 1);
    assert!(admin.is_closed() && queue.is_closed());
    other.ask(Sqe::flush(1));
    world.end();
}

#[test]
fn a_crowd_is_bounded_and_garbage_is_dropped_while_a_host_is_served() {
    let mut world = world(Limits { connections: 20, ..Limits::default() });
    let (_admin, mut queue) = Queue::both(&world.endpoint, true, 0);
    let crowd: Vec<_> = (0..200).map(|_| connect(&world.endpoint)).collect();
    world.until("the others are sent away", |stats: &Stats| stats.dropped_for(DropReason::Crowded) == 182);
    drop(crowd);
    queue.ask(Sqe::flush(1));
    world.until("there is room again", |stats| stats.dropped_for(DropReason::Vanished) == 18);
    for bytes in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[0xFF; 200], &[0; 8]] {
        let mut stream = connect(&world.endpoint);
        // It may be dropped before all of it is sent.
        let _ = stream.write_all(bytes);
    }
    world.until("they are dropped", |stats| stats.dropped_for(DropReason::Garbage) == 3);
    queue.ask(Sqe::flush(1));
    world.end();
}

#[test]
fn a_host_that_does_not_read_and_one_that_owes_data_are_dropped_when_their_time_is_over() {
    let limits = Limits { stall: Nanos::from_millis(300), ..Limits::default() };
    let mut world = world(limits);
    let (_a, mut owes) = Queue::both(&world.endpoint, false, 0);
    let pdu = owes.host.command(&transported(Sqe::write(1, io(0, 8)), 4096), &[]);
    owes.send(&pdu);
    assert!(matches!(owes.answer(), Answer::Ask { .. }));
    let (_b, mut deaf) = Queue::both(&world.endpoint, false, 0);
    let pdus: Vec<u8> = (0..16)
        .flat_map(|cid| {
            deaf.host.command(&transported(Sqe::read(1, io(0, 512)).with_cid(cid), 256 << 10), &[])
        })
        .collect();
    deaf.send(&pdus);
    world.until("both are dropped", |stats| stats.dropped_for(DropReason::Stalled) == 2);
    let (_c, mut sound) = Queue::both(&world.endpoint, false, 0);
    sound.ask(Sqe::flush(1));
    world.end();
}

#[test]
fn a_stop_answers_what_was_asked() {
    let world = world(Limits::default());
    let (_admin, mut queue) = Queue::both(&world.endpoint, false, 0);
    let pdu = queue.host.command(&transported(Sqe::write(1, io(0, 8)), 4096), &[]);
    queue.send(&pdu);
    let Answer::Ask { cid, tag, .. } = queue.answer() else { panic!("it asks") };
    let pdu = queue.host.data(cid, tag, 0, &[9; 1000], false);
    queue.send(&pdu);
    let stopper = std::thread::spawn(move || world.end());
    let pdu = queue.host.data(cid, tag, 1000, &[9; 3096], true);
    queue.send(&pdu);
    let Answer::Completion(cqe) = queue.answer() else { panic!("a completion was expected") };
    assert!(cqe.status.status.is_success(), "{cqe:?}");
    assert!(queue.is_closed());
    assert_eq!(stopper.join().expect("the server ends").writes, 1);
}
