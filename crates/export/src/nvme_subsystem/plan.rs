//! A command judged when it comes: what is to be done, or which status is the answer.
//!
//! Deliberately not here: doing it, and what is known only with the data (the ranges of a dataset management).

use super::command::Transfer;
use super::key_value::{KvKind, KvPlan};
use super::pages::{PageKind, PagePlan};
use super::staged::StageStep;
use super::tables::TablePlan;
use super::zoned::{ZonedKind, ZonedPlan};
use crate::exports::{Export, ExportId};
use crate::stats::Stats;
use ocssd_base::usize_of;
use ocssd_lightnvm::Status;
use ocssd_nvme::ocssd20::{Claim, DsmRange};
use ocssd_nvme::sqe::{DatasetManagement, ReadWrite};
use ocssd_nvme::tables::TableCommand;
use ocssd_nvme::{IoOpcode, Sqe};

/// What a command comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandPlan {
    /// The transport carries it out itself: an admin command, or one of Fabrics.
    Own,
    /// Something on a block namespace.
    Block(BlockPlan),
    /// Everything of these exports is made durable.
    Flush {
        /// The first.
        first: u32,
        /// How many.
        count: u32,
    },
    /// Something that only namespaces of zones have.
    Zoned(ZonedPlan),
    /// Something on a namespace of keys and values.
    KeyValue(KvPlan),
    /// Something on a namespace of pages.
    Pages(PagePlan),
    /// Something on a namespace of tables.
    Tables(TablePlan),
    /// A command of the raw drive; its flush too, if so.
    Raw,
    /// A namespace becomes one host's, or everybody's.
    Claim(Claim),
    /// Nothing: it is advice that is not followed.
    Nothing,
}

/// Something on a block namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPlan {
    /// Which.
    pub export: ExportId,
    /// What.
    pub kind: BlockKind,
    /// First block.
    pub block: u64,
    /// How many.
    pub count: u32,
    /// Answered when durable only.
    pub fua: bool,
}

/// What is done with blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// They are read.
    Read,
    /// They are written.
    Write,
    /// They are read, and compared with what the host sends.
    Compare,
    /// They read as zeroes.
    Zeroes,
    /// So many bytes of zeroes are written to a zone, which moves its write pointer as any write does.
    ZeroesToZone {
        /// How many.
        bytes: u32,
    },
    /// The ranges in the data are not needed any more.
    Discard {
        /// How many ranges.
        ranges: u16,
    },
}

/// Judges an I/O command of a block namespace whose data moves as `transfer` says.
///
/// # Errors
/// The status that is the answer.
pub fn block(sqe: &Sqe, id: ExportId, export: &Export, transfer: Transfer) -> Result<CommandPlan, Status> {
    let io = ReadWrite::of(sqe);
    let (kind, bytes) = match sqe.io_opcode() {
        IoOpcode::READ => (BlockKind::Read, u64::from(io.block_count) * u64::from(export.block_bytes)),
        IoOpcode::WRITE => (BlockKind::Write, u64::from(io.block_count) * u64::from(export.block_bytes)),
        IoOpcode::COMPARE => (BlockKind::Compare, u64::from(io.block_count) * u64::from(export.block_bytes)),
        IoOpcode::WRITE_ZEROES => (BlockKind::Zeroes, 0),
        IoOpcode::DATASET_MANAGEMENT => {
            let dsm = DatasetManagement::of(sqe);
            let bytes = u64::from(dsm.range_count) * u64::try_from(DsmRange::BYTES).expect("16");
            // Linux sends a whole page for a few ranges.
            check_bytes(transfer, |found| found >= bytes)?;
            if !dsm.deallocate {
                return Ok(CommandPlan::Nothing);
            }
            (BlockKind::Discard { ranges: dsm.range_count }, bytes)
        }
        _ => return Err(Status::INVALID_OPCODE),
    };
    let changes = !matches!(kind, BlockKind::Read | BlockKind::Compare);
    if changes && export.read_only {
        return Err(Status::WRITE_TO_READ_ONLY);
    }
    if let BlockKind::Discard { .. } = kind {
        return Ok(CommandPlan::Block(BlockPlan { export: id, kind, block: 0, count: 0, fua: false }));
    }
    if changes {
        check_write(sqe, export)?;
    }
    check_bytes(transfer, |found| found == bytes)?;
    let (block, count) = (io.slba.0, io.block_count);
    check_range(export, block, count)?;
    Ok(CommandPlan::Block(BlockPlan { export: id, kind, block, count, fua: io.force_unit_access && changes }))
}

/// The blocks exist.
///
/// # Errors
/// 080h.
pub fn check_range(export: &Export, block: u64, count: u32) -> Result<(), Status> {
    let end = block.checked_add(count.into());
    if end.is_some_and(|end| end <= export.block_count) { Ok(()) } else { Err(Status::LBA_OUT_OF_RANGE) }
}

/// The namespace may be changed, and no directive (DTYPE, CDW12 bits 23:20) asks for something that is not here.
///
/// # Errors
/// The status of a change that may not be.
pub fn check_write(sqe: &Sqe, export: &Export) -> Result<(), Status> {
    if export.read_only {
        return Err(Status::WRITE_TO_READ_ONLY);
    }
    if sqe.cdw12 >> 20 & 0xF != 0 { Err(Status::INVALID_FIELD) } else { Ok(()) }
}

/// So many blocks move.
///
/// # Errors
/// The status of another amount of data.
pub fn check_payload(transfer: Transfer, count: u32, export: &Export) -> Result<(), Status> {
    let bytes = u64::from(count) * u64::from(export.block_bytes);
    check_bytes(transfer, |found| found == bytes)
}

fn check_bytes(transfer: Transfer, fits: impl Fn(u64) -> bool) -> Result<(), Status> {
    let found = u64::try_from(transfer.bytes()).expect("a length");
    if fits(found) { Ok(()) } else { Err(Status::INVALID_SGL_LENGTH) }
}

/// The ranges of a dataset management.
///
/// # Errors
/// 080h, if one reaches beyond the namespace: then nothing is done.
pub fn ranges(data: &[u8], count: u16, export: &Export) -> Result<Vec<DsmRange>, Status> {
    let parts = data.chunks_exact(DsmRange::BYTES).take(count.into());
    let ranges: Vec<DsmRange> = parts.filter_map(|part| DsmRange::decode(part).ok()).collect();
    assert_eq!(ranges.len(), usize_of(u32::from(count)), "the length was judged with the command");
    for range in &ranges {
        check_range(export, range.slba.0, range.nlb)?;
    }
    Ok(ranges)
}

/// Counts a command.
pub fn count(stats: &mut Stats, plan: &CommandPlan) {
    let counter = match plan {
        CommandPlan::Own => &mut stats.admins,
        CommandPlan::Raw | CommandPlan::Claim(_) => &mut stats.raws,
        CommandPlan::Flush { .. } => &mut stats.flushes,
        CommandPlan::Nothing => &mut stats.trims,
        CommandPlan::Zoned(plan) => match plan.kind {
            ZonedKind::Append { fua, .. } => {
                stats.fuas += u64::from(fua);
                &mut stats.writes
            }
            ZonedKind::Manage { .. }
            | ZonedKind::SetExtension
            | ZonedKind::OpenWithArea
            | ZonedKind::CommitArea => &mut stats.trims,
            ZonedKind::Report { .. } => &mut stats.reads,
        },
        CommandPlan::KeyValue(plan) => match plan.kind {
            KvKind::Store { .. } => &mut stats.writes,
            KvKind::Stage { step: StageStep::Append { .. } | StageStep::Store { .. }, .. } => {
                &mut stats.writes
            }
            KvKind::Retrieve { .. } | KvKind::Exist | KvKind::List => &mut stats.reads,
            KvKind::Delete { .. } => &mut stats.trims,
            KvKind::Stage { .. } => &mut stats.admins,
        },
        CommandPlan::Pages(plan) => match plan.kind {
            PageKind::Flush { fua, .. } => {
                stats.fuas += u64::from(fua);
                &mut stats.writes
            }
            PageKind::Stage { step: StageStep::Append { .. }, .. } => &mut stats.writes,
            PageKind::Read { .. } => &mut stats.reads,
            PageKind::Stat | PageKind::Open(_) | PageKind::Close(_) | PageKind::Stage { .. } => {
                &mut stats.admins
            }
        },
        CommandPlan::Tables(plan) => match plan.command {
            TableCommand::Append(append) => {
                stats.fuas += u64::from(append.force_unit_access);
                &mut stats.writes
            }
            TableCommand::Read(_) | TableCommand::Attributes(_) | TableCommand::List(_) => &mut stats.reads,
            TableCommand::Create(_) | TableCommand::Edit(_) => &mut stats.admins,
            TableCommand::Sync(_) | TableCommand::Flush => &mut stats.flushes,
        },
        CommandPlan::Block(plan) => {
            stats.fuas += u64::from(plan.fua);
            match plan.kind {
                BlockKind::Read | BlockKind::Compare => &mut stats.reads,
                BlockKind::Write => &mut stats.writes,
                BlockKind::Zeroes | BlockKind::ZeroesToZone { .. } => &mut stats.zeroes,
                BlockKind::Discard { .. } => &mut stats.trims,
            }
        }
    };
    *counter += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_nvme::Lba;

    fn export(read_only: bool) -> Export {
        Export { read_only, ..Export::example() }
    }

    fn io(slba: u64, block_count: u32, force_unit_access: bool) -> ReadWrite {
        ReadWrite { slba: Lba(slba), block_count, limited_retry: false, force_unit_access }
    }

    fn dsm(range_count: u16, deallocate: bool) -> Sqe {
        let dsm = DatasetManagement { range_count, deallocate, integral_read: false, integral_write: false };
        Sqe::dataset_management(1, dsm)
    }

    fn zeroes(slba: u64, count: u32) -> Sqe {
        Sqe { opcode: IoOpcode::WRITE_ZEROES.0, ..Sqe::write(1, io(slba, count, true)) }
    }

    fn compare(slba: u64, count: u32) -> Sqe {
        Sqe { opcode: IoOpcode::COMPARE.0, ..Sqe::write(1, io(slba, count, true)) }
    }

    #[test]
    fn a_command_within_its_namespace_is_carried_out() {
        let plan = |kind, block, count, fua| {
            Ok(CommandPlan::Block(BlockPlan { export: ExportId(2), kind, block, count, fua }))
        };
        let to = |bytes| Transfer::ToHost { bytes };
        let from = |bytes| Transfer::FromHost { bytes };
        let cases = [
            (Sqe::read(1, io(99, 1, true)), to(512), plan(BlockKind::Read, 99, 1, false)),
            (Sqe::write(1, io(0, 8, true)), from(4096), plan(BlockKind::Write, 0, 8, true)),
            (zeroes(3, 97), Transfer::None, plan(BlockKind::Zeroes, 3, 97, true)),
            (dsm(2, true), from(4096), plan(BlockKind::Discard { ranges: 2 }, 0, 0, false)),
            (dsm(2, false), from(32), Ok(CommandPlan::Nothing)),
            (Sqe::read(1, io(100, 1, false)), to(512), Err(Status::LBA_OUT_OF_RANGE)),
            (Sqe::read(1, io(u64::MAX, 2, false)), to(1024), Err(Status::LBA_OUT_OF_RANGE)),
            (Sqe::read(1, io(0, 1, false)), to(1024), Err(Status::INVALID_SGL_LENGTH)),
            (Sqe::write(1, io(0, 1, false)), Transfer::None, Err(Status::INVALID_SGL_LENGTH)),
            (zeroes(0, 1), from(512), Err(Status::INVALID_SGL_LENGTH)),
            (zeroes(99, 2), Transfer::None, Err(Status::LBA_OUT_OF_RANGE)),
            (dsm(3, true), from(32), Err(Status::INVALID_SGL_LENGTH)),
            (Sqe { cdw12: 1 << 20, ..Sqe::write(1, io(0, 1, false)) }, from(512), Err(Status::INVALID_FIELD)),
            (compare(98, 2), from(1024), plan(BlockKind::Compare, 98, 2, false)),
            (compare(98, 2), from(512), Err(Status::INVALID_SGL_LENGTH)),
            (compare(99, 2), from(1024), Err(Status::LBA_OUT_OF_RANGE)),
            (Sqe { opcode: 0x0D, ..Sqe::default() }, Transfer::None, Err(Status::INVALID_OPCODE)),
        ];
        for (sqe, transfer, expected) in cases {
            assert_eq!(block(&sqe, ExportId(2), &export(false), transfer), expected, "{sqe:?} {transfer:?}");
        }
    }

    #[test]
    fn a_read_only_namespace_refuses_changes_and_nothing_else() {
        let found = [
            block(
                &Sqe::read(1, io(0, 1, false)),
                ExportId(0),
                &export(true),
                Transfer::ToHost { bytes: 512 },
            ),
            block(
                &Sqe::write(1, io(0, 1, false)),
                ExportId(0),
                &export(true),
                Transfer::InCapsule { bytes: 512 },
            ),
            block(&compare(0, 1), ExportId(0), &export(true), Transfer::InCapsule { bytes: 512 }),
            block(&zeroes(0, 1), ExportId(0), &export(true), Transfer::None),
            block(&dsm(1, true), ExportId(0), &export(true), Transfer::InCapsule { bytes: 16 }),
        ];
        assert_eq!(
            found.map(|plan| plan.err() == Some(Status::WRITE_TO_READ_ONLY)),
            [false, true, false, true, true]
        );
    }

    #[test]
    fn one_range_beyond_the_namespace_refuses_all() {
        let range = |slba, nlb| DsmRange { cattr: 0, nlb, slba: Lba(slba) }.encode();
        let data = [range(0, 8), range(99, 1), range(99, 2)].concat();
        assert_eq!(ranges(&data, 2, &export(false)).map(|ranges| ranges.len()), Ok(2));
        assert_eq!(ranges(&data, 3, &export(false)), Err(Status::LBA_OUT_OF_RANGE));
    }
}
