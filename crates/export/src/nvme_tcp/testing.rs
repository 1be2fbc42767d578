//! What tests share: a target with several connections over memory, and a host that goes through the beginnings.

use super::copies::Copies;
use super::host::{Answer, Host, in_capsule, transported};
use super::session::Session;
use super::wire::IN_CAPSULE_BYTES_MAX;
use crate::dispatcher::Dispatcher;
use crate::memory_disk::MemoryDisks;
use crate::nvme_subsystem::{Subsystem, SubsystemConfig};
use crate::protocol::{Phase, Protocol, ProtocolError};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::AnyTarget;
use ocssd_nvme::fabrics::{Connect, ConnectData, DYNAMIC_CNTLID, PropertyGet, PropertySet, offset};
use ocssd_nvme::identify::Uuid;
use ocssd_nvme::{Cqe, Sqe};
use std::io::IoSlice;

/// The subsystem of the tests.
pub const NQN: &str = "nqn.2014-08.org.nvmexpress:test";
/// A host.
pub const HOST: &str = "nqn.2014-08.org.nvmexpress:host";

/// A connection.
pub struct Line {
    pub host: Host,
    pub session: Session,
    /// Why it ended, if the host was hostile.
    pub end: Option<ProtocolError>,
    closed: bool,
}

/// A target, its connections, and its disks.
pub struct World {
    pub dispatcher: Dispatcher,
    pub disks: MemoryDisks,
    pub lines: Vec<Line>,
    /// How data come on connections that begin from now on.
    pub copies: Copies,
}

impl World {
    /// Two disks and few pieces.
    pub fn new() -> Self {
        Self::with([8, 4, 4], &[])
    }

    pub fn with(pieces: [u32; 3], hosts: &[&str]) -> Self {
        Self::beside(Vec::new(), pieces, hosts)
    }

    /// With targets of other interfaces as namespaces behind the disks.
    pub fn beside(others: Vec<(&str, AnyTarget)>, pieces: [u32; 3], hosts: &[&str]) -> Self {
        Self::of_disks(&[("a", 1 << 11), ("b-ro", 64)], others, pieces, hosts)
    }

    /// Of disks of so many blocks. Of one whose name ends with `-whole` a write of 1 MiB is a transaction.
    pub fn of_disks(
        disks: &[(&str, u64)],
        others: Vec<(&str, AnyTarget)>,
        pieces: [u32; 3],
        hosts: &[&str],
    ) -> Self {
        let (mut dispatcher, disks) = MemoryDisks::beside(disks, others, pieces);
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        let config = SubsystemConfig { nqn: NQN.to_owned(), uuid: Uuid::of_seed(7), hosts, advertised: None };
        dispatcher.subsystem = Some(Subsystem::new(config).expect("sound names"));
        Self { dispatcher, disks, lines: Vec::new(), copies: Copies::InPlace }
    }

    /// A connection that has just come.
    pub fn arrive(&mut self, header_digest: bool, data_digest: bool) -> usize {
        let place = u32::try_from(self.lines.len()).expect("few");
        let local = "127.0.0.1:4420".parse().ok();
        let session = Session::new(place, 0, local).with_copies(self.copies);
        self.lines.push(Line {
            host: Host::new(header_digest, data_digest),
            session,
            end: None,
            closed: false,
        });
        self.lines.len() - 1
    }

    /// Greets.
    pub fn greeted(&mut self, header_digest: bool, data_digest: bool) -> usize {
        let line = self.arrive(header_digest, data_digest);
        let hello = self.lines[line].host.hello();
        let data_max = u32::try_from(self.copies.data_bytes_max()).expect("small");
        assert_eq!(self.say(line, &hello), [Answer::Hello { data_max }]);
        line
    }

    /// Sends bytes, lets everything happen everywhere, and gives what this connection was sent.
    pub fn say(&mut self, line: usize, bytes: &[u8]) -> Vec<Answer> {
        let mut at = 0;
        loop {
            let mut moved = self.hand_over(line, &bytes[at..]);
            at += moved;
            moved += self.work();
            moved += self.drain_all();
            // Memory may have been found for what comes next, without anything else having moved.
            let takes = !self.lines[line].closed && self.lines[line].session.payload_space().is_some();
            if moved == 0 && !(takes && at < bytes.len()) {
                break;
            }
        }
        std::iter::from_fn(|| self.lines[line].host.poll()).collect()
    }

    /// Odd numbers of bytes at a time, and data to its place.
    fn hand_over(&mut self, line: usize, bytes: &[u8]) -> usize {
        let line = &mut self.lines[line];
        if line.closed {
            return 0;
        }
        if let Some(space) = line.session.payload_space() {
            let count = space.count.min(bytes.len()).min(777);
            self.dispatcher
                .buffers
                .bytes_mut(space.buffer, space.first, count)
                .copy_from_slice(&bytes[..count]);
            if count > 0 {
                line.session.on_payload(count, &mut self.dispatcher);
            }
            return count;
        }
        let count = bytes.len().min(301).min(line.session.text_wanted());
        match line.session.on_bytes(&bytes[..count], &mut self.dispatcher) {
            Ok(count) => count,
            Err(protocol_error) => {
                line.end = Some(protocol_error);
                self.close(self.lines.len());
                0
            }
        }
    }

    /// What a reactor does with those that ended.
    fn close(&mut self, _: usize) {
        for line in &mut self.lines {
            let ended = line.end.is_some() || line.session.phase() == Phase::Leaving;
            if ended && !line.closed {
                let bytes = drain(&mut line.session, &mut self.dispatcher);
                line.host.receive(&bytes);
                line.session.release(&mut self.dispatcher);
                line.closed = true;
            }
        }
    }

    fn work(&mut self) -> usize {
        let mut moved = 0;
        self.lines.iter_mut().filter(|line| !line.closed).for_each(|line| {
            line.session.go_on(&mut self.dispatcher);
        });
        self.disks.take(&mut self.dispatcher);
        while self.disks.carry_out(0, &mut self.dispatcher) {
            moved += 1;
        }
        self.dispatcher.raw_turn();
        self.disks.tell_changed_zones(&mut self.dispatcher);
        self.disks.tell_used_bytes(&mut self.dispatcher);
        while let Some(done) = self.dispatcher.poll_done() {
            moved += 1;
            let place = usize::try_from(done.job.owner.connection).expect("small");
            let line = &mut self.lines[place];
            if line.closed {
                done.into_pieces().for_each(|piece| self.dispatcher.pool.give_back(piece));
            } else {
                line.session.on_done(done, &mut self.dispatcher);
            }
        }
        while let Some((connection, _)) = self.dispatcher.poll_call() {
            self.judge(usize::try_from(connection).expect("small"));
        }
        moved
    }

    /// A connection looks beyond itself, as now and then.
    pub fn judge(&mut self, line: usize) {
        if !self.lines[line].closed {
            self.lines[line].end = self.lines[line].session.judge(&mut self.dispatcher).err();
            self.close(line);
        }
    }

    fn drain_all(&mut self) -> usize {
        let mut moved = 0;
        for line in self.lines.iter_mut().filter(|line| !line.closed) {
            let bytes = drain(&mut line.session, &mut self.dispatcher);
            moved += bytes.len();
            line.host.receive(&bytes);
        }
        self.close(0);
        moved
    }

    /// The host's end of a connection goes.
    pub fn hang_up(&mut self, line: usize) {
        self.lines[line].session.release(&mut self.dispatcher);
        self.lines[line].closed = true;
        self.work();
        self.drain_all();
    }

    /// The connection is over.
    pub fn is_closed(&self, line: usize) -> bool {
        self.lines[line].closed
    }

    /// One command without data.
    pub fn ask(&mut self, line: usize, sqe: Sqe) -> Cqe {
        let pdu = self.lines[line].host.command(&transported(sqe, 0), &[]);
        completion(&self.say(line, &pdu))
    }

    /// One command that reads.
    pub fn read(&mut self, line: usize, sqe: Sqe, bytes: usize) -> Result<Vec<u8>, Status> {
        let pdu = self.lines[line].host.command(&transported(sqe, bytes), &[]);
        match self.say(line, &pdu).as_slice() {
            [Answer::Data { bytes, is_success: true, .. }] => Ok(bytes.clone()),
            [Answer::Data { bytes, .. }, Answer::Completion(cqe)] if cqe.status.status.is_success() => {
                Ok(bytes.clone())
            }
            [Answer::Completion(cqe)] => Err(cqe.status.status),
            other => panic!("an answer to {sqe:?} was {other:?}"),
        }
    }

    /// One command with data in its capsule, or asked for if it is too long for that.
    pub fn write(&mut self, line: usize, sqe: Sqe, data: &[u8]) -> Cqe {
        if data.len() > IN_CAPSULE_BYTES_MAX {
            let (cid, tag) = self.asked(line, sqe, data.len());
            let pdu = self.lines[line].host.data(cid, tag, 0, data, true);
            return completion(&self.say(line, &pdu));
        }
        let pdu = self.lines[line].host.command(&in_capsule(sqe, data.len()), data);
        completion(&self.say(line, &pdu))
    }

    /// Begins a command whose data is asked for: by which identifier and tag.
    pub fn asked(&mut self, line: usize, sqe: Sqe, bytes: usize) -> (u16, u16) {
        let pdu = self.lines[line].host.command(&transported(sqe, bytes), &[]);
        match self.say(line, &pdu)[..] {
            [Answer::Ask { cid, tag, offset: 0, bytes: asked }] if asked == bytes => (cid, tag),
            ref other => panic!("{bytes} bytes of {sqe:?} were to be asked for, but {other:?} came"),
        }
    }

    /// Connects a queue.
    pub fn connect(&mut self, line: usize, connect: Connect, data: &ConnectData) -> Cqe {
        let pdu = self.lines[line].host.connect(1, connect, data);
        completion(&self.say(line, &pdu))
    }

    /// An admin queue whose controller is ready: the connection, and the number of the association.
    pub fn admin(&mut self, digests: (bool, bool), subnqn: &str) -> (usize, u16) {
        let line = self.greeted(digests.0, digests.1);
        let cqe = self.connect(line, connect(0), &data(subnqn, DYNAMIC_CNTLID));
        assert!(cqe.status.status.is_success(), "{cqe:?}");
        self.set_cc(line, 0x46_0061);
        assert_eq!(self.csts(line), 1);
        (line, u16::try_from(cqe.dw0).expect("16 bits"))
    }

    /// An admin queue and an I/O queue.
    pub fn ready(&mut self, digests: (bool, bool)) -> (usize, usize, u16) {
        let (admin, cntlid) = self.admin(digests, NQN);
        let io = self.greeted(digests.0, digests.1);
        let cqe = self.connect(io, connect(1), &data(NQN, cntlid));
        assert!(cqe.status.status.is_success(), "{cqe:?}");
        (admin, io, cntlid)
    }

    pub fn set_cc(&mut self, line: usize, value: u64) {
        let set = PropertySet { is_long: false, offset: offset::CC, value };
        assert!(self.ask(line, Sqe::property_set(set)).status.status.is_success());
    }

    pub fn csts(&mut self, line: usize) -> u32 {
        self.ask(line, Sqe::property_get(PropertyGet { is_long: false, offset: offset::CSTS })).dw0
    }

    /// Nothing is kept of anybody.
    pub fn end(mut self) {
        for line in 0..self.lines.len() {
            if !self.is_closed(line) {
                self.hang_up(line);
            }
        }
        let associations = self.dispatcher.subsystem.as_ref().map(Subsystem::association_count);
        assert_eq!((self.dispatcher.open_jobs(), self.dispatcher.pool.lent(), associations), (0, 0, Some(0)));
    }
}

/// Connect of a queue, as Linux sends it.
pub fn connect(qid: u16) -> Connect {
    let sqsize = if qid == 0 { 31 } else { 127 };
    Connect { recfmt: 0, qid, sqsize, no_flow_control: qid > 0, kato_ms: if qid == 0 { 5000 } else { 0 } }
}

/// The data of Connect.
pub fn data(subnqn: &str, cntlid: u16) -> ConnectData {
    ConnectData { hostid: [3; 16], cntlid, subnqn: subnqn.to_owned(), hostnqn: HOST.to_owned() }
}

/// The one completion among answers.
pub fn completion(answers: &[Answer]) -> Cqe {
    match answers {
        [Answer::Completion(cqe)] => *cqe,
        other => panic!("one completion was expected, but {other:?} came"),
    }
}

fn drain(session: &mut Session, dispatcher: &mut Dispatcher) -> Vec<u8> {
    let mut all = Vec::new();
    while !session.send_queue().is_empty() {
        let mut slices = [IoSlice::new(&[]); 4];
        let used = session.send_queue().slices(&dispatcher.buffers, &mut slices);
        let bytes: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.iter().copied()).collect();
        session.send_queue().sent(bytes.len(), &mut dispatcher.pool);
        all.extend(bytes);
    }
    all
}
