//! Commands of a namespace of keys and values: judged when they come, and what their jobs bring put into answers.
//!
//! A key is any bytes. CDW12 and CDW13 mean nothing: some hosts put a number of blocks there. A host may send more bytes than
//! the value has, to fill its last page. A value is at most one transfer (MDTS); longer ones do not go over this wire.
//! Deliberately not here: reservations, and what is stored (the target).

use super::command::{Command, Transfer};
use super::plan::Plan;
use crate::dispatcher::Dispatcher;
use crate::exports::{Export, ExportId};
use crate::job::Work;
use crate::pool::Piece;
use ocssd_base::usize_of;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::key_value::{
    AbsentKey, Key, KvAnswer, KvLimits, KvOp, KvReply, StoreCondition,
};
use ocssd_lightnvm::interface::{Content, Durability};
use ocssd_nvme::Sqe;
use ocssd_nvme::kv::{KeyValueCommand, KeyValueFormat, KvNamespace, KvOpcode, StoreOptions};

/// Something with keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvPlan {
    /// Which namespace.
    pub export: ExportId,
    /// What.
    pub kind: KvKind,
    /// The key; of a list the first.
    pub key: Key,
    /// Bytes of the value, or the host's room.
    pub bytes: u32,
}

/// What is done with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvKind {
    /// It gets a value.
    Store {
        /// If this is so.
        condition: StoreCondition,
    },
    /// Its value is read.
    Retrieve,
    /// It goes.
    Delete {
        /// What it is if there is none.
        absent: AbsentKey,
    },
    /// It is asked whether there is one.
    Exist,
    /// Keys are listed.
    List,
}

/// Judges an I/O command of a namespace of keys and values; `absent` is what it is to delete a key that does not exist.
///
/// # Errors
/// The status that is the answer.
pub(super) fn judge(
    sqe: &Sqe,
    id: ExportId,
    export: &Export,
    transfer: Transfer,
    absent: AbsentKey,
) -> Result<Plan, Status> {
    let command = KeyValueCommand::of(sqe);
    let kind = match KvOpcode(sqe.opcode) {
        KvOpcode::STORE => KvKind::Store { condition: condition(command.store_options())? },
        KvOpcode::RETRIEVE => KvKind::Retrieve,
        KvOpcode::DELETE => KvKind::Delete { absent },
        KvOpcode::EXIST => KvKind::Exist,
        KvOpcode::LIST => KvKind::List,
        _ => return Err(Status::INVALID_OPCODE),
    };
    if export.read_only && matches!(kind, KvKind::Store { .. } | KvKind::Delete { .. }) {
        return Err(Status::WRITE_TO_READ_ONLY);
    }
    let key = command.name().and_then(Key::inline).ok_or(Status::INVALID_KEY_SIZE)?;
    let moves = !matches!(kind, KvKind::Delete { .. } | KvKind::Exist);
    let fits = if moves { usize_of(command.bytes) <= transfer.bytes() } else { transfer == Transfer::None };
    if !fits {
        return Err(Status::INVALID_SGL_LENGTH);
    }
    Ok(Plan::KeyValue(KvPlan { export: id, kind, key, bytes: if moves { command.bytes } else { 0 } }))
}

/// The condition of a store.
fn condition(options: StoreOptions) -> Result<StoreCondition, Status> {
    match (options.must_exist, options.must_not_exist) {
        (false, false) => Ok(StoreCondition::Always),
        (true, false) => Ok(StoreCondition::MustExist),
        (false, true) => Ok(StoreCondition::MustNotExist),
        (true, true) => Err(Status::INVALID_FIELD),
    }
}

impl KvPlan {
    /// What its job does; payload lies in `piece`.
    pub(super) fn work(&self, piece: Option<&Piece>, durability: Durability) -> Work {
        let key = self.key;
        let content = match piece {
            Some(piece) if self.bytes > 0 => Content::Piece(piece.part(0, self.bytes)),
            _ => Content::Empty,
        };
        Work::KeyValue(match self.kind {
            KvKind::Store { condition } => KvOp::Store { key, content, condition, durability },
            KvKind::Retrieve => KvOp::Retrieve { key, offset: 0, into: content },
            KvKind::Delete { absent } => KvOp::Delete { key, absent, durability },
            KvKind::Exist => KvOp::Exist { key },
            KvKind::List => KvOp::List { from: key, prefix_bytes: 0, into: content },
        })
    }
}

/// Puts what a job on a key brought into its command: of a retrieve the length of the whole value, whatever room there was.
pub(super) fn on_done(command: &mut Command, reply: &KvReply, dispatcher: &mut Dispatcher) {
    let Plan::KeyValue(plan) = command.plan else { return };
    let filled = match (plan.kind, reply.answer) {
        (KvKind::Retrieve, KvAnswer::Value { bytes }) => {
            command.result = (bytes, 0);
            bytes.min(plan.bytes)
        }
        (KvKind::List, KvAnswer::Listed { bytes, .. }) => bytes,
        _ => return,
    };
    if let Some(piece) = &command.piece {
        // What another left in the piece is not sent.
        let place = dispatcher.buffers.bytes_mut(piece.buffer, 0, command.transfer.bytes());
        place[usize_of(filled)..].fill(0);
    }
}

/// What identify says of a namespace. How much of it is in use is not counted: it says that all may be.
pub(super) fn namespace(export: &Export, limits: &KvLimits, transfer_bytes_max: usize) -> KvNamespace {
    let transfer = u32::try_from(transfer_bytes_max).expect("a transfer is small");
    let format = KeyValueFormat {
        key_bytes_max: u16::try_from(limits.key_bytes_max.min(KEY_BYTES_MAX)).expect("at most 16"),
        value_bytes_max: limits.value_bytes_max.min(transfer),
        ..KeyValueFormat::default()
    };
    let mut found = KvNamespace {
        nsze: limits.capacity_bytes,
        nuse: limits.capacity_bytes,
        format_count: 1,
        nsattr: export.read_only.into(),
        nguid: export.uuid.0,
        eui64: if export.uuid.is_nil() { [0; 8] } else { export.uuid.eui64() },
        ..KvNamespace::default()
    };
    found.formats[0] = format;
    found
}

/// Bytes a command has for a key.
const KEY_BYTES_MAX: u32 = 16;

const _: () = assert!(ocssd_nvme::kv::KEY_BYTES_MAX == 16, "a key of a command is as long as an inline one");
