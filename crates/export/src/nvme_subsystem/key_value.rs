//! Commands of a namespace of keys and values: judged when they come, and what their jobs bring put into answers.
//!
//! A key is any bytes. CDW12 and CDW13 mean nothing: some hosts put a number of blocks there. A host may send more bytes than
//! the value has, to fill its last page. A value in one command is at most one transfer (MDTS). Longer ones are collected in a
//! stage of the target by commands of this server's own, under a name the host chooses, and become the value of a key all at
//! once; what an association had begun goes with it. Deliberately not here: reservations, and what is stored (the target).

use super::command::{Command, Transfer};
use super::commands::Commands;
use super::plan::CommandPlan;
use super::staged::StageStep;
use crate::as_request;
use crate::dispatcher::Dispatcher;
use crate::exports::{Export, ExportId};
use crate::job::{Job, Work};
use crate::pool::PoolPiece;
use ocssd_base::{SlabKey, usize_of};
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::key_value::{
    AbsentKey, Key, KvAnswer, KvLimits, KvOp, KvReply, StoreCondition,
};
use ocssd_lightnvm::interface::{Content, Durability, StageId, StageOp};
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
    Retrieve {
        /// From this byte on.
        offset: u32,
    },
    /// It goes.
    Delete {
        /// What it is if there is none.
        absent: AbsentKey,
    },
    /// It is asked whether there is one.
    Exist,
    /// Keys are listed.
    List,
    /// Something about a stage; the key means something to a store only.
    Stage {
        /// The host's name for it.
        name: u32,
        /// What.
        step: StageStep,
    },
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
) -> Result<CommandPlan, Status> {
    let command = KeyValueCommand::of(sqe);
    let kind = match KvOpcode(sqe.opcode) {
        KvOpcode::STORE => KvKind::Store { condition: condition(command.store_options())? },
        KvOpcode::RETRIEVE => KvKind::Retrieve { offset: 0 },
        KvOpcode::RETRIEVE_PART => KvKind::Retrieve { offset: command.offset },
        KvOpcode::DELETE => KvKind::Delete { absent },
        KvOpcode::EXIST => KvKind::Exist,
        KvOpcode::LIST => KvKind::List,
        KvOpcode::STAGE_OPEN => stage(&command, StageStep::Open),
        KvOpcode::STAGE_APPEND => stage(&command, StageStep::Append { offset: command.offset }),
        KvOpcode::STORE_STAGED => {
            stage(&command, StageStep::Store { condition: condition(command.store_options())? })
        }
        KvOpcode::STAGE_ABORT => stage(&command, StageStep::Abort),
        _ => return Err(Status::INVALID_OPCODE),
    };
    if export.read_only && matches!(kind, KvKind::Store { .. } | KvKind::Delete { .. } | KvKind::Stage { .. })
    {
        return Err(Status::WRITE_TO_READ_ONLY);
    }
    let key = command.name().and_then(Key::inline).ok_or(Status::INVALID_KEY_SIZE)?;
    // What moves data is seen at the opcode; what does not may still say how long a value is.
    let moves = sqe.opcode & 3 != 0;
    let fits = if moves { usize_of(command.bytes) <= transfer.bytes() } else { transfer == Transfer::None };
    if !fits {
        return Err(Status::INVALID_SGL_LENGTH);
    }
    Ok(CommandPlan::KeyValue(KvPlan { export: id, kind, key, bytes: command.bytes }))
}

/// Something about the stage that a command names.
const fn stage(command: &KeyValueCommand, step: StageStep) -> KvKind {
    KvKind::Stage { name: command.stage, step }
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
    /// What its job does; payload lies in `piece`, and what it is about in a stage of the target, if it is about one.
    pub(super) fn work(&self, piece: Option<&PoolPiece>, stage: StageId, durability: Durability) -> Work {
        let (key, bytes) = (self.key, self.bytes);
        let content = match piece {
            Some(piece) if self.bytes > 0 => Content::Piece(piece.part(0, self.bytes)),
            _ => Content::Empty,
        };
        Work::KeyValue(match self.kind {
            KvKind::Store { condition } => KvOp::Store { key, content, condition, durability },
            KvKind::Retrieve { offset } => KvOp::Retrieve { key, offset, into: content },
            KvKind::Delete { absent } => KvOp::Delete { key, absent, durability },
            KvKind::Exist => KvOp::Exist { key },
            KvKind::List => KvOp::List { from: key, prefix_bytes: 0, into: content },
            KvKind::Stage { step: StageStep::Open, .. } => KvOp::Stage(StageOp::Open { stage, bytes }),
            KvKind::Stage { step: StageStep::Append { offset }, .. } => {
                KvOp::Stage(StageOp::Append { stage, offset, content })
            }
            KvKind::Stage { step: StageStep::Abort, .. } => KvOp::Stage(StageOp::Abort { stage }),
            KvKind::Stage { step: StageStep::Store { condition }, .. } => {
                let content = Content::Staged { stage, bytes };
                KvOp::Store { key, content, condition, durability }
            }
        })
    }
}

impl<P> Commands<P> {
    /// Gives the job of a command on keys; false if there is no room.
    pub(super) fn give_key_value(&mut self, key: SlabKey, plan: KvPlan, dispatcher: &mut Dispatcher) -> bool {
        // A stage that another left takes a job more.
        if dispatcher.room(self.client()) < 2 {
            return false;
        }
        let stage = match plan.kind {
            KvKind::Stage { name, step } => {
                let is_begun = step == StageStep::Open;
                match self.stage(key, plan.export, name, is_begun, dispatcher) {
                    Ok(stage) => stage,
                    Err(status) => return self.fail(key, status, dispatcher),
                }
            }
            _ => StageId(0),
        };
        let durability = as_request::durability(self.always_durable);
        self.give_one(key, dispatcher, |piece| {
            let work = plan.work(piece.as_ref(), stage, durability);
            Job { work, ..Job::flush(plan.export, piece) }
        })
    }
}

/// Puts what a job on a key brought into its command: of a retrieve the length of the whole value, whatever room there was.
pub(super) fn on_done<P>(command: &mut Command<P>, reply: &KvReply, dispatcher: &mut Dispatcher) {
    let CommandPlan::KeyValue(plan) = command.plan else { return };
    let filled = match (plan.kind, reply.answer) {
        (KvKind::Retrieve { offset }, KvAnswer::Value { bytes }) => {
            command.result = (bytes, 0);
            bytes.saturating_sub(offset).min(plan.bytes)
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

/// What identify says of a namespace, of which so many bytes are in use.
pub(super) fn namespace(
    (export, used_bytes): (&Export, u64),
    limits: &KvLimits,
    transfer_bytes_max: usize,
) -> KvNamespace {
    let transfer = u32::try_from(transfer_bytes_max).expect("a transfer is small");
    let format = KeyValueFormat {
        key_bytes_max: u16::try_from(limits.key_bytes_max.min(KEY_BYTES_MAX)).expect("at most 16"),
        value_bytes_max: limits.value_bytes_max.min(transfer),
        ..KeyValueFormat::default()
    };
    let mut found = KvNamespace {
        nsze: limits.capacity_bytes,
        nuse: used_bytes,
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
