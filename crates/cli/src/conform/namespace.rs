//! A zoned namespace as something that answers requests of zones.
//!
//! Deliberately not here: what is asked, and what should come; what carries commands.

use super::transport::Transport;
use anyhow::{Context, ensure};
use ocssd_base::usize_of;
use ocssd_lightnvm::interface::zoned::{
    DescribedZone, ZoneAction, ZoneDescriptor, ZoneScope, ZonedAnswer, ZonedOp, ZonedReply, ZonedRequest,
};
use ocssd_lightnvm::interface::{Durability, Entry, List};
use ocssd_lightnvm::{BufId, Buffers, Status};
use ocssd_nvme::identify::Cns;
use ocssd_nvme::sqe::{Identify, ReadWrite};
use ocssd_nvme::zns::{
    ReportHeader, ZoneAppend, ZoneManagementReceive, ZoneManagementSend, ZoneReceiveAction, ZoneSendAction,
};
use ocssd_nvme::{Lba, Sqe};
use ocssd_sim::contract::{Answerer, Broken};

/// A namespace.
pub struct Namespace {
    controller: Box<dyn Transport>,
    nsid: u32,
    buffers: Option<Buffers>,
}

impl Namespace {
    /// A namespace of a controller.
    pub fn new(controller: Box<dyn Transport>, nsid: u32) -> Self {
        Self { controller, nsid, buffers: None }
    }

    /// Its number.
    pub const fn nsid(&self) -> u32 {
        self.nsid
    }

    /// What Identify says.
    pub fn identify(&mut self, cns: Cns, csi: u8) -> anyhow::Result<Vec<u8>> {
        let identify = Identify { cns, cntid: 0, csi };
        let nsid = if matches!(cns, Cns::CONTROLLER | Cns::COMMAND_SET_CONTROLLER) { 0 } else { self.nsid };
        let (bytes, cqe) = self.controller.admin(Sqe::identify(nsid, identify), 4096)?;
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
        let status = self.controller.write(Sqe::zone_management_send(self.nsid, send), &[])?.status.status;
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
        let (data, cqe) = self.controller.read(Sqe::zone_management_receive(self.nsid, receive), bytes)?;
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
        Ok(self.controller.write(Sqe::zone_management_send(self.nsid, send), &data)?.status.status)
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
                let (data, cqe) = self.controller.read(Sqe::read(nsid, io), bytes)?;
                if cqe.status.status.is_success() {
                    ensure!(data.len() == bytes, "a read of {bytes} bytes brought {}", data.len());
                    let buffer = request.buffer.context("a read has a buffer")?;
                    self.buffers().data_mut(buffer, 0, block_count).copy_from_slice(&data);
                }
                cqe.status.status
            }
            ZonedOp::Write { .. } => {
                let data = self.payload(request.buffer, block_count)?;
                self.controller.write(Sqe::write(nsid, io), &data)?.status.status
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
                let cqe = self.controller.write(Sqe::zone_append(nsid, append), &data)?;
                let block = u64::from(cqe.dw0) | u64::from(cqe.dw1) << 32;
                let is_done = cqe.status.status.is_success();
                let answer = if is_done { ZonedAnswer::Appended { block } } else { ZonedAnswer::Done };
                return Ok((cqe.status.status, answer));
            }
            ZonedOp::Flush | ZonedOp::Shutdown => self.controller.write(Sqe::flush(nsid), &[])?.status.status,
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
