//! A zoned namespace over NVMe/TCP as something that answers requests of zones.
//!
//! One command at a time. Deliberately not here: what is asked, and what should come. The host's side is a referee: a PDU that no
//! target may send ends the program with what was wrong with it.

use anyhow::{Context, bail, ensure};
use ocssd_base::usize_of;
use ocssd_export::nvme_tcp::host::{Answer, Host, transported};
use ocssd_lightnvm::interface::zoned::{
    DescribedZone, ZoneAction, ZoneDescriptor, ZoneScope, ZonedAnswer, ZonedOp, ZonedReply, ZonedRequest,
};
use ocssd_lightnvm::interface::{Durability, Entry, List};
use ocssd_lightnvm::{BufId, Buffers, Status};
use ocssd_nvme::fabrics::{Connect, ConnectData, DYNAMIC_CNTLID, PropertySet, offset};
use ocssd_nvme::identify::Cns;
use ocssd_nvme::sqe::{Identify, ReadWrite};
use ocssd_nvme::zns::{
    ReportHeader, ZoneAppend, ZoneManagementReceive, ZoneManagementSend, ZoneReceiveAction, ZoneSendAction,
};
use ocssd_nvme::{Cqe, Lba, Sqe};
use ocssd_sim::contract::{Answerer, Broken};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long a command may take (chosen: longer than a reset of all zones of a large drive).
const PATIENCE: Duration = Duration::from_secs(60);
/// CC: enabled, all command sets of the controller, entries of 64 and 16 bytes.
const ENABLED: u64 = 0x46_0061;

/// A queue of a host.
struct Queue {
    stream: TcpStream,
    host: Host,
}

impl Queue {
    fn connect(address: &str, nqn: &str, (qid, cntlid): (u16, u16)) -> anyhow::Result<(Self, u16)> {
        let stream = TcpStream::connect(address).with_context(|| {
            format!("{address}: expected a server of NVMe/TCP; start one, or give its HOST:PORT")
        })?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut queue = Self { stream, host: Host::new(false, false) };
        queue.send(&queue.host.hello())?;
        ensure!(matches!(queue.answer()?, Answer::Hello { .. }), "{address} does not greet as NVMe/TCP does");
        let connect = Connect { recfmt: 0, qid, sqsize: 31, no_flow_control: false, kato_ms: 0 };
        let (subnqn, hostnqn) = (nqn.to_owned(), "nqn.2014-08.org.nvmexpress:ocssd-conform".to_owned());
        let data = ConnectData { hostid: [1; 16], cntlid, subnqn, hostnqn };
        queue.send(&queue.host.connect(0, connect, &data))?;
        let cqe = queue.completion()?;
        let status = cqe.status.status;
        ensure!(
            status.is_success(),
            "{address} refuses to connect to {nqn}: {status}; give its name (--nqn)"
        );
        Ok((queue, u16::try_from(cqe.dw0).context("a controller's number has 16 bits")?))
    }

    fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(bytes).context("the server closed the connection")
    }

    fn answer(&mut self) -> anyhow::Result<Answer> {
        loop {
            if let Some(answer) = self.host.poll() {
                return Ok(answer);
            }
            let mut bytes = [0; 65_536];
            let count = self.stream.read(&mut bytes).context("no answer came in a minute")?;
            ensure!(count > 0, "the server closed the connection");
            self.host.receive(&bytes[..count]);
        }
    }

    fn completion(&mut self) -> anyhow::Result<Cqe> {
        match self.answer()? {
            Answer::Completion(cqe) => Ok(cqe),
            other => bail!("a completion was expected, but {other:?} came"),
        }
    }

    /// Sends a command with data, which the server asks for.
    fn write(&mut self, sqe: Sqe, data: &[u8]) -> anyhow::Result<Cqe> {
        self.send(&self.host.command(&transported(sqe, data.len()), &[]))?;
        loop {
            match self.answer()? {
                Answer::Completion(cqe) => return Ok(cqe),
                Answer::Ask { cid, tag, offset, bytes } => {
                    let part = data.get(offset..offset + bytes);
                    let part = part.context("the server asks for more than the command has")?;
                    self.send(&self.host.data(cid, tag, offset, part, true))?;
                }
                other => bail!("data was to be asked for, but {other:?} came"),
            }
        }
    }

    /// Sends a command that brings data.
    fn read(&mut self, sqe: Sqe, bytes: usize) -> anyhow::Result<(Vec<u8>, Cqe)> {
        self.send(&self.host.command(&transported(sqe, bytes), &[]))?;
        let mut whole = Vec::new();
        loop {
            match self.answer()? {
                Answer::Completion(cqe) => return Ok((whole, cqe)),
                Answer::Data { bytes, .. } => whole.extend(bytes),
                other => bail!("data was expected, but {other:?} came"),
            }
        }
    }
}

/// A namespace.
pub struct Namespace {
    admin: Queue,
    queue: Queue,
    nsid: u32,
    buffers: Option<Buffers>,
}

impl Namespace {
    /// Connects to a controller.
    pub fn connect(address: &str, nqn: &str, nsid: u32) -> anyhow::Result<Self> {
        let (mut admin, cntlid) = Queue::connect(address, nqn, (0, DYNAMIC_CNTLID))?;
        let enable = PropertySet { is_long: false, offset: offset::CC, value: ENABLED };
        let status = admin.write(Sqe::property_set(enable), &[])?.status.status;
        ensure!(status.is_success(), "the controller cannot be enabled: {status}");
        let (queue, _) = Queue::connect(address, nqn, (1, cntlid))?;
        Ok(Self { admin, queue, nsid, buffers: None })
    }

    /// What Identify says.
    pub fn identify(&mut self, cns: Cns, csi: u8) -> anyhow::Result<Vec<u8>> {
        let identify = Identify { cns, cntid: 0, csi };
        let nsid = if matches!(cns, Cns::CONTROLLER | Cns::COMMAND_SET_CONTROLLER) { 0 } else { self.nsid };
        let (bytes, cqe) = self.admin.read(Sqe::identify(nsid, identify), 4096)?;
        let status = cqe.status.status;
        ensure!(
            status.is_success() && bytes.len() == 4096,
            "Identify of namespace {} is refused: {status}; choose a namespace of zones (--nsid)",
            self.nsid
        );
        Ok(bytes)
    }

    /// Payload lies here from now on.
    pub fn set_buffers(&mut self, buffers: Buffers) {
        self.buffers = Some(buffers);
    }

    /// Resets every zone that can be.
    pub fn reset_all(&mut self) -> anyhow::Result<()> {
        let action = ZoneSendAction::Manage(ZoneAction::Reset);
        let send = ZoneManagementSend { slba: Lba(0), action, all: true, option: false };
        let status = self.queue.write(Sqe::zone_management_send(self.nsid, send), &[])?.status.status;
        ensure!(status.is_success(), "a reset of all zones is refused: {status}");
        Ok(())
    }

    /// Descriptors from a block on, as many as fit `bytes`.
    pub fn zones(&mut self, block: u64, bytes: usize) -> anyhow::Result<Vec<ZoneDescriptor>> {
        let (data, status) = self.report(ZoneReceiveAction::Report, (block, 0, true), bytes)?;
        ensure!(status.is_success(), "a report of zones is refused: {status}");
        let listed = ReportHeader::decode(&data).context("a report is too short")?.zone_count;
        let zones = data[64..].chunks_exact(64).take(usize::try_from(listed)?).map(ZoneDescriptor::decode);
        zones.collect::<Option<Vec<_>>>().context("a report has a zone of a kind that is not in ZNS 1.1")
    }

    fn report(
        &mut self,
        action: ZoneReceiveAction,
        (block, filter, partial): (u64, u8, bool),
        bytes: usize,
    ) -> anyhow::Result<(Vec<u8>, Status)> {
        let dword_count = u64::try_from(bytes / 4).expect("a length");
        let receive = ZoneManagementReceive { slba: Lba(block), dword_count, action, filter, partial };
        let (data, cqe) = self.queue.read(Sqe::zone_management_receive(self.nsid, receive), bytes)?;
        ensure!(!cqe.status.status.is_success() || data.len() == bytes, "a report is cut short");
        Ok((data, cqe.status.status))
    }

    /// A report into the request's buffer, whole, as entries of `T`.
    fn list<T: Entry>(
        &mut self,
        request: &ZonedRequest,
        (action, answer): (ZoneReceiveAction, impl Fn(List<T>, u32) -> ZonedAnswer),
    ) -> anyhow::Result<(Status, ZonedAnswer)> {
        let bytes = 64 + usize_of(request.count) * T::BYTES;
        let (data, status) = self.report(action, (request.block, 0, false), bytes)?;
        if !status.is_success() {
            return Ok((status, ZonedAnswer::Done));
        }
        let matching = ReportHeader::decode(&data).context("a report is too short")?.zone_count;
        let matching = u32::try_from(matching).context("fewer zones than 2^32")?;
        let listed = usize_of(matching.min(request.count));
        let entries = data[64..].chunks_exact(T::BYTES).take(listed).map(T::decode);
        let entries =
            entries.collect::<Option<Vec<T>>>().context("a report has no zone where one should be")?;
        let buffer = request.buffer.context("a report has a buffer")?;
        let list = List::write(self.buffers(), buffer, &entries);
        Ok((status, answer(list, matching)))
    }

    fn payload(&mut self, buffer: Option<BufId>, count: u32) -> anyhow::Result<Vec<u8>> {
        Ok(self.buffers().data(buffer.context("a request has a buffer")?, 0, count).to_vec())
    }

    fn send(
        &mut self,
        request: &ZonedRequest,
        action: ZoneSendAction,
        option: bool,
    ) -> anyhow::Result<Status> {
        let all = matches!(request.op, ZonedOp::Manage { scope: ZoneScope::All, .. });
        let send = ZoneManagementSend { slba: Lba(request.block), action, all, option };
        let data = match (action, request.buffer) {
            (ZoneSendAction::SetExtension, Some(buffer)) => self.buffers().whole(buffer, 0, 1)[..64].to_vec(),
            _ => Vec::new(),
        };
        Ok(self.queue.write(Sqe::zone_management_send(self.nsid, send), &data)?.status.status)
    }

    fn carry_out(&mut self, request: &ZonedRequest) -> anyhow::Result<(Status, ZonedAnswer)> {
        let (nsid, slba, block_count) = (self.nsid, Lba(request.block), request.count);
        let force_unit_access = match request.op {
            ZonedOp::Write { durability } | ZonedOp::Append { durability } => {
                durability == Durability::AtReply
            }
            _ => false,
        };
        let io = ReadWrite { slba, block_count, limited_retry: false, force_unit_access };
        let status = match request.op {
            ZonedOp::Read => {
                let block = self.buffers().format().sector_bytes;
                let bytes = usize_of(block_count) * block;
                let (data, cqe) = self.queue.read(Sqe::read(nsid, io), bytes)?;
                if cqe.status.status.is_success() {
                    ensure!(data.len() == bytes, "a read of {bytes} bytes brought {}", data.len());
                    let buffer = request.buffer.context("a read has a buffer")?;
                    self.buffers().data_mut(buffer, 0, block_count).copy_from_slice(&data);
                }
                cqe.status.status
            }
            ZonedOp::Write { .. } => {
                let data = self.payload(request.buffer, block_count)?;
                self.queue.write(Sqe::write(nsid, io), &data)?.status.status
            }
            ZonedOp::Append { .. } => {
                let data = self.payload(request.buffer, block_count)?;
                let append = ZoneAppend {
                    zslba: slba,
                    block_count,
                    limited_retry: false,
                    force_unit_access,
                    remaps_tag: false,
                };
                let cqe = self.queue.write(Sqe::zone_append(nsid, append), &data)?;
                let block = u64::from(cqe.dw0) | u64::from(cqe.dw1) << 32;
                let is_done = cqe.status.status.is_success();
                let answer = if is_done { ZonedAnswer::Appended { block } } else { ZonedAnswer::Done };
                return Ok((cqe.status.status, answer));
            }
            ZonedOp::Flush | ZonedOp::Shutdown => self.queue.write(Sqe::flush(nsid), &[])?.status.status,
            ZonedOp::Manage { action, .. } => self.send(request, ZoneSendAction::Manage(action), false)?,
            ZonedOp::SetExtension => self.send(request, ZoneSendAction::SetExtension, false)?,
            ZonedOp::OpenWithArea => self.send(request, ZoneSendAction::Manage(ZoneAction::Open), true)?,
            ZonedOp::CommitArea => self.send(request, ZoneSendAction::FlushArea, false)?,
            ZonedOp::Report { .. } => {
                let answer = |listed, matching| ZonedAnswer::Reported { listed, matching };
                return self.list::<ZoneDescriptor>(request, (ZoneReceiveAction::Report, answer));
            }
            ZonedOp::ReportExtended { .. } => {
                let answer = |listed, matching| ZonedAnswer::ReportedExtended { listed, matching };
                return self.list::<DescribedZone>(request, (ZoneReceiveAction::ExtendedReport, answer));
            }
        };
        Ok((status, ZonedAnswer::Done))
    }
}

impl Answerer<ZonedRequest, ZonedReply> for Namespace {
    fn buffers(&mut self) -> &mut Buffers {
        self.buffers.as_mut().expect("buffers were set before anything was asked")
    }

    fn ask(&mut self, request: ZonedRequest) -> Result<ZonedReply, Broken> {
        let answer = self.carry_out(&request);
        let (status, answer) =
            answer.map_err(|error| Broken::new("an answer", "one to every command", format!("{error:#}")))?;
        Ok(ZonedReply { tag: request.tag, status, answer })
    }
}
