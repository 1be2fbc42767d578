//! Commands of a namespace of zones: judged when they come, and what their jobs bring put into answers.
//!
//! Which zones there are, and what may be done with them, is the target's to judge. Deliberately not here: data.

use super::command::{Command, Transfer};
use super::plan::{self, BlockKind, BlockPlan, CommandPlan};
use crate::dispatcher::Dispatcher;
use crate::exports::{Export, ExportId, ExportKind};
use crate::job::Work;
use crate::pool::PIECE_BYTES_MAX;
use ocssd_base::usize_of;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::List;
use ocssd_lightnvm::interface::zoned::{
    DESCRIPTOR_BYTES, EXTENSION_BYTES, UnwrittenRead, ZoneAction, ZoneGeometry, ZoneScope, ZoneState,
    ZonedAnswer,
};
use ocssd_nvme::sqe::ReadWrite;
use ocssd_nvme::zns::{
    OZCS_AREAS, ReportHeader, ZnsController, ZnsNamespace, ZoneAppend, ZoneManagementReceive,
    ZoneManagementSend, ZoneReceiveAction, ZoneSendAction,
};
use ocssd_nvme::{IoOpcode, Sqe};

/// Something that only zones have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonedPlan {
    /// Which namespace.
    pub export: ExportId,
    /// What.
    pub kind: ZonedKind,
    /// The zone, by a block of it.
    pub block: u64,
}

/// What is done with zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZonedKind {
    /// Data is written where the zone's write pointer is.
    Append {
        /// How many blocks.
        count: u32,
        /// Answered when durable only.
        fua: bool,
    },
    /// A zone, or all, change their state.
    Manage {
        /// How.
        action: ZoneAction,
        /// Which.
        scope: ZoneScope,
    },
    /// A zone gets a descriptor extension.
    SetExtension,
    /// A zone is opened, with a random write area.
    OpenWithArea,
    /// A zone's area is committed up to a block.
    CommitArea,
    /// Descriptors are read.
    Report {
        /// Each with its extension behind it.
        extended: bool,
        /// Only of zones in this state.
        only: Option<ZoneState>,
        /// How many the host has room for.
        room: u32,
        /// The number of zones is of those that are sent.
        partial: bool,
    },
}

impl ZonedKind {
    /// What its job does, and with how many blocks or descriptors.
    pub(super) fn work(self, always_durable: bool) -> (Work, u32) {
        match self {
            Self::Append { count, fua } => (Work::Append { fua: fua || always_durable }, count),
            Self::Manage { action, scope } => (Work::ManageZones { action, scope }, 0),
            Self::SetExtension => (Work::SetZoneExtension, 0),
            Self::OpenWithArea => (Work::OpenZoneWithArea, 0),
            Self::CommitArea => (Work::CommitZoneArea, 0),
            // A target is asked for one at least; it counts them either way.
            Self::Report { only, room, extended: false, .. } => (Work::ReportZones { only }, room.max(1)),
            Self::Report { only, room, .. } => (Work::ReportZonesExtended { only }, room.max(1)),
        }
    }
}

/// Judges an I/O command of a namespace of zones whose data moves as `transfer` says.
///
/// # Errors
/// The status that is the answer.
pub(super) fn judge(
    sqe: &Sqe,
    id: ExportId,
    export: &Export,
    transfer: Transfer,
) -> Result<CommandPlan, Status> {
    let of = |kind, block| Ok(CommandPlan::Zoned(ZonedPlan { export: id, kind, block }));
    match sqe.io_opcode() {
        IoOpcode::READ | IoOpcode::WRITE | IoOpcode::COMPARE => content(sqe, id, export, transfer),
        IoOpcode::WRITE_ZEROES => zeroes(sqe, id, export, transfer),
        IoOpcode::DATASET_MANAGEMENT => {
            // Advice about content; blocks of zones are given up by a reset only.
            plan::block(sqe, id, export, transfer).map(|_| CommandPlan::Nothing)
        }
        IoOpcode::ZONE_APPEND => {
            let append = ZoneAppend::of(sqe);
            plan::check_write(sqe, export)?;
            if append.remaps_tag {
                return Err(Status::INVALID_FIELD);
            }
            let count = append.block_count;
            plan::check_payload(transfer, count, export)?;
            of(ZonedKind::Append { count, fua: append.force_unit_access }, append.zslba.0)
        }
        IoOpcode::ZONE_MANAGEMENT_SEND => {
            let (kind, block) = sent(sqe, export, transfer)?;
            of(kind, block)
        }
        IoOpcode::ZONE_MANAGEMENT_RECEIVE => {
            let receive = ZoneManagementReceive::of(sqe);
            let only = receive.only().map_err(|_| Status::INVALID_FIELD)?;
            let bytes =
                usize::try_from(receive.dword_count * 4).ok().filter(|bytes| *bytes <= transfer.bytes());
            let bytes = bytes.ok_or(Status::INVALID_SGL_LENGTH)?;
            let extended = match receive.action {
                ZoneReceiveAction::Report => false,
                ZoneReceiveAction::ExtendedReport => takes_extensions(export),
                ZoneReceiveAction::Reserved(_) => return Err(Status::INVALID_FIELD),
            };
            let is_there = extended || receive.action == ZoneReceiveAction::Report;
            if !is_there || bytes < ReportHeader::BYTES {
                return Err(Status::INVALID_FIELD);
            }
            let room = (bytes - ReportHeader::BYTES) / entry_bytes(extended);
            let room = u32::try_from(room).expect("a transfer is small");
            of(ZonedKind::Report { extended, only, room, partial: receive.partial }, receive.slba.0)
        }
        _ => Err(Status::INVALID_OPCODE),
    }
}

/// A Zone Management Send: what it does, and to the zone at which block.
fn sent(sqe: &Sqe, export: &Export, transfer: Transfer) -> Result<(ZonedKind, u64), Status> {
    let send = ZoneManagementSend::of(sqe);
    let (kind, bytes) = match (send.action, send.option) {
        (ZoneSendAction::Manage(action), false) => {
            let scope = if send.all { ZoneScope::All } else { ZoneScope::One };
            (ZonedKind::Manage { action, scope }, 0)
        }
        // An extension is one zone's.
        (ZoneSendAction::SetExtension, false) if takes_extensions(export) && !send.all => {
            (ZonedKind::SetExtension, EXTENSION_BYTES)
        }
        // An area is one zone's, too. Without areas the two are no fields of these commands.
        (ZoneSendAction::Manage(ZoneAction::Open), true) if takes_areas(export) && !send.all => {
            (ZonedKind::OpenWithArea, 0)
        }
        (ZoneSendAction::FlushArea, false) if takes_areas(export) && !send.all => (ZonedKind::CommitArea, 0),
        _ => return Err(Status::INVALID_FIELD),
    };
    plan::check_write(sqe, export)?;
    // Linux' passthrough sends as many bytes as it is told; more than an extension are not looked at.
    if transfer.bytes() < bytes || (bytes == 0 && transfer != Transfer::None) {
        return Err(Status::INVALID_SGL_LENGTH);
    }
    // With Select All the address means nothing.
    Ok((kind, if send.all { 0 } else { send.slba.0 }))
}

fn takes_extensions(export: &Export) -> bool {
    matches!(export.kind, ExportKind::Zoned(zones) if zones.takes_extensions)
}

fn takes_areas(export: &Export) -> bool {
    matches!(export.kind, ExportKind::Zoned(zones) if zones.area.is_some())
}

/// Bytes of a zone in a report.
const fn entry_bytes(extended: bool) -> usize {
    if extended { DESCRIPTOR_BYTES + EXTENSION_BYTES } else { DESCRIPTOR_BYTES }
}

/// A read, a write or a compare: the target says what is wrong with the place, with the statuses zones have.
fn content(sqe: &Sqe, id: ExportId, export: &Export, transfer: Transfer) -> Result<CommandPlan, Status> {
    let io = ReadWrite::of(sqe);
    let kind = match sqe.io_opcode() {
        IoOpcode::READ => BlockKind::Read,
        IoOpcode::WRITE => BlockKind::Write,
        _ => BlockKind::Compare,
    };
    if kind == BlockKind::Write {
        plan::check_write(sqe, export)?;
    }
    let (block, count) = (io.slba.0, io.block_count);
    plan::check_payload(transfer, count, export)?;
    let fua = io.force_unit_access && kind == BlockKind::Write;
    Ok(CommandPlan::Block(BlockPlan { export: id, kind, block, count, fua }))
}

/// Zeroes that the host does not send: written as any content, so no more than a command may move (WZSL).
fn zeroes(sqe: &Sqe, id: ExportId, export: &Export, transfer: Transfer) -> Result<CommandPlan, Status> {
    let io = ReadWrite::of(sqe);
    plan::check_write(sqe, export)?;
    plan::check_payload(transfer, 0, export)?;
    let bytes = u64::from(io.block_count) * u64::from(export.block_bytes);
    let bytes = u32::try_from(bytes).ok().filter(|&bytes| usize_of(bytes) <= PIECE_BYTES_MAX);
    let kind = BlockKind::ZeroesToZone { bytes: bytes.ok_or(Status::INVALID_FIELD)? };
    let (block, count, fua) = (io.slba.0, io.block_count, io.force_unit_access);
    Ok(CommandPlan::Block(BlockPlan { export: id, kind, block, count, fua }))
}

/// WZSL of a controller with zones: pages of a Write Zeroes at most, as a logarithm (NVM Command Set 1.0, section 4.1.5.2).
pub(super) fn zeroes_limit() -> u8 {
    let pages = u64::try_from(PIECE_BYTES_MAX).expect("a length") / PAGE_BYTES;
    u8::try_from(pages.ilog2()).expect("a logarithm")
}

/// Puts what a job on zones brought into its command.
pub(super) fn on_done<P>(command: &mut Command<P>, answer: ZonedAnswer, dispatcher: &mut Dispatcher) {
    match (answer, command.plan) {
        (ZonedAnswer::Appended { block }, _) => {
            let [a, b, c, d, e, f, g, h] = block.to_le_bytes();
            command.result = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        }
        (
            ZonedAnswer::Reported { listed: List { count: listed, .. }, matching },
            CommandPlan::Zoned(plan),
        )
        | (
            ZonedAnswer::ReportedExtended { listed: List { count: listed, .. }, matching },
            CommandPlan::Zoned(plan),
        ) => {
            let ZonedKind::Report { extended, room, partial, .. } = plan.kind else {
                unreachable!("{:?} was answered with a report", plan.kind)
            };
            let sent = listed.min(room);
            let zone_count = u64::from(if partial { sent } else { matching });
            let piece = command.piece.as_ref().expect("a report has room for its answer");
            let place = dispatcher.buffers.bytes_mut(piece.buffer, 0, command.transfer.bytes());
            let bytes = usize_of(sent) * entry_bytes(extended);
            // Descriptors make room for the header before them.
            place.copy_within(..bytes, ReportHeader::BYTES);
            place[..ReportHeader::BYTES].copy_from_slice(&ReportHeader { zone_count }.encode());
            place[ReportHeader::BYTES + bytes..].fill(0);
        }
        (ZonedAnswer::Reported { .. } | ZonedAnswer::ReportedExtended { .. } | ZonedAnswer::Done, _) => {}
    }
}

/// What identify says of a namespace's zones.
pub(super) fn namespace(zones: &ZoneGeometry) -> ZnsNamespace {
    let mut namespace = ZnsNamespace {
        active_max: zones.active_max,
        open_max: zones.open_max,
        ozcs: if zones.area.is_some() { OZCS_AREAS } else { 0 },
        area: zones.area,
        ..ZnsNamespace::plain(zones.zone_blocks)
    };
    // In units of 64 bytes, which is what an extension has.
    namespace.formats[0].extension_units = u8::from(zones.takes_extensions);
    namespace
}

/// Blocks behind a write pointer read as zeroes.
pub(super) fn reads_zeroes(zones: &ZoneGeometry) -> bool {
    zones.unwritten_read == UnwrittenRead::Zeroes
}

/// What identify says of appends: what every namespace of zones takes, a power of two of pages. A namespace that takes less than
/// two pages refuses what is more by itself, since 0 means as much as any command.
pub(super) fn controller<'a>(exports: impl Iterator<Item = &'a Export>) -> ZnsController {
    let limit = |export: &Export| match export.kind {
        ExportKind::Zoned(zones) => Some(u64::from(zones.append_blocks_max) * u64::from(zones.block_bytes)),
        _ => None,
    };
    let most = u64::try_from(PIECE_BYTES_MAX).expect("a length");
    let bytes = exports.filter_map(limit).min().unwrap_or(most).min(most);
    let pages = (bytes / PAGE_BYTES).max(2);
    ZnsController { zasl: u8::try_from(pages.ilog2()).expect("a logarithm") }
}

/// The smallest page, the unit of ZASL.
const PAGE_BYTES: u64 = 4096;
