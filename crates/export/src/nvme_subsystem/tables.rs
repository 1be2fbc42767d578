//! Commands of a namespace of tables: judged when they come, and what their jobs bring put into answers.
//!
//! An edit is one command: its data is the rows, and behind them the attributes; both are used where they lie. A command whose
//! connection dies is carried out as a whole or not at all. Tables that a host began and did not publish are given up when the
//! next host claims the namespace. Deliberately not here: what is stored (the target).

use super::command::{Command, Transfer};
use super::commands::Commands;
use super::plan::CommandPlan;
use crate::as_request;
use crate::dispatcher::Dispatcher;
use crate::exports::{Export, ExportId};
use crate::job::{Job, Work};
use crate::pool::PoolPiece;
use ocssd_base::{SlabKey, usize_of};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::table::{
    EditOp, TableAnswer, TableEdit, TableEntry, TableHint, TableId, TableKind, TableLimits, TableOp,
    TableReply,
};
use ocssd_lightnvm::interface::{Content, Entry, List};
use ocssd_nvme::ocssd20::Claim;
use ocssd_nvme::tables::{TableCommand, TableNamespace, TableOpcode, refusal_number};
use ocssd_nvme::{IoOpcode, Sqe, StatusField};

/// Something with tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TablePlan {
    /// Which namespace.
    pub export: ExportId,
    /// What.
    pub command: TableCommand,
}

/// Bytes that a command moves; what an edit moves is rows and attributes.
fn moved(command: TableCommand) -> u64 {
    let rows = |rows: u32, bytes: usize| u64::from(rows) * u64::try_from(bytes).expect("24");
    match command {
        TableCommand::Append(append) => append.bytes.into(),
        TableCommand::Read(read) | TableCommand::Attributes(read) => read.bytes.into(),
        TableCommand::Edit(edit) => rows(edit.rows, TableEdit::BYTES) + u64::from(edit.attributes_bytes),
        TableCommand::List(list) => rows(list.rows, TableEntry::BYTES),
        TableCommand::Flush | TableCommand::Create(_) | TableCommand::Sync(_) => 0,
    }
}

/// Bytes that an entry moves by its own fields; 0 of one that is not known.
pub(super) fn data_bytes(sqe: &Sqe) -> u64 {
    TableCommand::of(sqe).map_or(0, moved)
}

/// Judges an I/O command of a namespace of tables.
///
/// # Errors
/// The status that is the answer.
pub(super) fn judge(
    sqe: &Sqe,
    id: ExportId,
    export: &Export,
    transfer: Transfer,
) -> Result<CommandPlan, Status> {
    if sqe.opcode == IoOpcode::CLAIM_DRIVE.0 && transfer == Transfer::None {
        return Claim::of(sqe).map(CommandPlan::Claim).ok_or(Status::INVALID_FIELD);
    }
    let command = TableCommand::of(sqe).ok_or(Status::INVALID_OPCODE)?;
    let changes = matches!(
        TableOpcode(sqe.opcode),
        TableOpcode::CREATE | TableOpcode::APPEND | TableOpcode::SYNC | TableOpcode::EDIT
    );
    if changes && export.read_only {
        return Err(Status::WRITE_TO_READ_ONLY);
    }
    let found = u64::try_from(transfer.bytes()).expect("a length");
    if found != moved(command) {
        return Err(Status::INVALID_SGL_LENGTH);
    }
    Ok(CommandPlan::Tables(TablePlan { export: id, command }))
}

impl TablePlan {
    /// What its job does, with what it moves in `piece`.
    fn work(&self, piece: Option<&PoolPiece>, always_durable: bool) -> Work {
        let content = |first: u32, bytes: u32| match piece {
            Some(piece) if bytes > 0 => Content::Piece(piece.part(first, bytes)),
            _ => Content::Empty,
        };
        let list_of = |piece: Option<&PoolPiece>| piece.expect("rows lie in a piece").buffer;
        Work::Table(match self.command {
            TableCommand::Create(create) => TableOp::Create {
                table: TableId(create.table),
                kind: if create.is_log { TableKind::Log } else { TableKind::Table },
                hint: TableHint { level: create.level, stream: create.stream },
                bytes_expected: create.bytes_expected,
            },
            TableCommand::Append(append) => TableOp::Append {
                table: TableId(append.table),
                content: content(0, append.bytes),
                durability: as_request::durability(always_durable || append.force_unit_access),
            },
            TableCommand::Read(read) => TableOp::Read {
                table: TableId(read.table),
                offset: read.offset,
                into: content(0, read.bytes),
            },
            TableCommand::Attributes(read) => {
                TableOp::Attributes { table: TableId(read.table), into: content(0, read.bytes) }
            }
            TableCommand::Sync(table) => TableOp::Sync { table: TableId(table) },
            TableCommand::Edit(edit) => TableOp::Edit {
                edits: List::new(list_of(piece), edit.rows),
                attributes: content(
                    edit.rows * u32::try_from(TableEdit::BYTES).expect("24"),
                    edit.attributes_bytes,
                ),
            },
            TableCommand::List(list) => {
                TableOp::List { from: TableId(list.from), into: List::new(list_of(piece), list.rows) }
            }
            TableCommand::Flush => TableOp::Flush,
        })
    }

    /// It names rows, of which there are none: nothing lies in no piece.
    const fn is_empty(&self) -> bool {
        match self.command {
            TableCommand::Edit(edit) => edit.rows == 0,
            TableCommand::List(list) => list.rows == 0,
            _ => false,
        }
    }
}

impl<P> Commands<P> {
    /// Gives the job of a command on tables; false if there is no room.
    pub(super) fn give_tables(&mut self, key: SlabKey, plan: TablePlan, dispatcher: &mut Dispatcher) -> bool {
        if plan.is_empty() {
            return self.fail(key, StatusField::rule(Status::INVALID_FIELD), dispatcher);
        }
        let always_durable = self.always_durable;
        self.give_one(key, dispatcher, |piece| {
            let work = plan.work(piece.as_ref(), always_durable);
            Job { work, ..Job::flush(plan.export, piece) }
        })
    }

    /// A host claims tables: those that another began and did not publish are given up first, one after the other; false if
    /// there is no room for the next.
    pub(super) fn claim_tables(
        &mut self,
        key: SlabKey,
        export: ExportId,
        claim: Claim,
        dispatcher: &mut Dispatcher,
    ) -> bool {
        if !dispatcher.has_room(self.client()) {
            return false;
        }
        let (nsid, is_begun) = (self.open.get(key).sqe.nsid, self.open.get(key).given > 0);
        let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
        // Who claims once more goes on with what it has.
        let is_new = is_begun || subsystem.claim(nsid) != Some(self.cntlid);
        if let Err(status) = subsystem.set_claim(nsid, self.cntlid, claim) {
            return self.fail(key, StatusField::rule(status), dispatcher);
        }
        let left = if is_new && claim == Claim::Take { subsystem.take_unpublished(nsid) } else { None };
        let Some(table) = left else {
            self.answer(key, Ok((0, 0)), dispatcher);
            return true;
        };
        self.give_one(key, dispatcher, |piece| {
            let work = Work::Table(TableOp::Delete { table: TableId(table) });
            Job { work, ..Job::flush(export, piece) }
        })
    }
}

/// Puts what a job on tables brought into its command, and notes what is not published.
pub(super) fn on_done<P>(command: &mut Command<P>, reply: &TableReply, dispatcher: &mut Dispatcher) {
    let CommandPlan::Tables(plan) = command.plan else { return };
    if let Some(refusal) = reply.refusal {
        command.result = (reply.row.unwrap_or(0), refusal_number(refusal));
    }
    if reply.status.is_success() {
        note(command, plan, dispatcher);
    }
    let filled = match reply.answer {
        TableAnswer::Read { bytes } | TableAnswer::Attributes { bytes } => {
            command.result = (bytes, 0);
            usize_of(bytes)
        }
        TableAnswer::Listed { listed, matching } => {
            command.result = (listed.count, matching);
            usize_of(listed.count) * TableEntry::BYTES
        }
        TableAnswer::Done | TableAnswer::Appended { .. } => return,
    };
    if let Some(piece) = &command.piece {
        // What another left in the piece is not sent.
        let bytes = command.transfer.bytes();
        dispatcher.buffers.bytes_mut(piece.buffer, 0, bytes)[filled.min(bytes)..].fill(0);
    }
}

/// Takes down which tables nobody sees yet.
fn note<P>(command: &Command<P>, plan: TablePlan, dispatcher: &mut Dispatcher) {
    let subsystem = dispatcher.subsystem.as_mut().expect("an association lies in a subsystem");
    let nsid = command.sqe.nsid;
    match (plan.command, &command.piece) {
        (TableCommand::Create(create), _) if !create.is_log => subsystem.note_begun(nsid, create.table),
        (TableCommand::Edit(edit), Some(piece)) => {
            let bytes = usize_of(edit.rows) * TableEdit::BYTES;
            for row in dispatcher.buffers.bytes(piece.buffer, 0, bytes).chunks_exact(TableEdit::BYTES) {
                let row = TableEdit::decode(row).expect("the target carried the row out");
                if row.op != EditOp::Describe {
                    subsystem.note_over(nsid, row.table.0);
                }
            }
        }
        _ => {}
    }
}

/// What identify says of a namespace.
pub(super) fn namespace(export: &Export, limits: &TableLimits) -> TableNamespace {
    TableNamespace {
        nsze: limits.capacity_bytes,
        nsattr: export.read_only.into(),
        nguid: export.uuid.0,
        eui64: if export.uuid.is_nil() { [0; 8] } else { export.uuid.eui64() },
        table_bytes_max: limits.table_bytes_max,
        tables_max: limits.tables_max,
        attributes_bytes_max: limits.attributes_bytes_max,
        edits_max: limits.edits_max,
    }
}
