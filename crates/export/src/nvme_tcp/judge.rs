//! A command judged when it comes: what of it is this transport's, and how its data moves.
//!
//! Deliberately not here: what I/O commands come to ([`crate::nvme_subsystem`]).

use super::session::{Session, Stage};
use crate::dispatcher::Dispatcher;
use crate::nvme_subsystem::{
    Bound, Command, CommandPlan, Purpose, Refusal, Transfer, direction, transfer_bytes_max,
};
use ocssd_lightnvm::Status;
use ocssd_nvme::fabrics::FabricsType;
use ocssd_nvme::opcode::DataDirection;
use ocssd_nvme::sqe::Fuse;
use ocssd_nvme::{AdminOpcode, Sqe};

impl Session {
    /// What a command comes to, before any of its data is looked at.
    pub(super) fn judge_command(
        &self,
        sqe: &Sqe,
        carried: usize,
        dispatcher: &Dispatcher,
    ) -> Result<Command<usize>, Refusal> {
        let bytes_max = transfer_bytes_max(dispatcher);
        let transfer = Transfer::of(sqe, self.direction(sqe, dispatcher), carried, bytes_max)?;
        if sqe.fuse != Fuse::Normal {
            return Err(Status::INVALID_FIELD.into());
        }
        let plan = match self.stage {
            _ if sqe.opcode == AdminOpcode::FABRICS.0 => CommandPlan::Own,
            Stage::Bound(bound) if self.queue.qid == 0 => judge_admin(bound, dispatcher)?,
            Stage::Bound(bound) => {
                assert_eq!(bound.purpose, Purpose::Io, "only subsystems with namespaces have I/O queues");
                self.commands.judge(sqe, transfer, dispatcher)?
            }
            _ => return Err(Status::COMMAND_SEQUENCE_ERROR.into()),
        };
        Ok(Command::new(*sqe, transfer, plan, 0))
    }

    fn direction(&self, sqe: &Sqe, dispatcher: &Dispatcher) -> DataDirection {
        match sqe.opcode {
            opcode if opcode == AdminOpcode::FABRICS.0 => DataDirection::of(FabricsType::of(sqe).0),
            opcode if self.queue.qid == 0 => DataDirection::of(opcode),
            _ => direction(sqe, dispatcher),
        }
    }
}

/// Admin commands are carried out once the controller is ready.
fn judge_admin(bound: Bound, dispatcher: &Dispatcher) -> Result<CommandPlan, Refusal> {
    let subsystem = dispatcher.subsystem.as_ref().expect("an association lies in a subsystem");
    let association = subsystem.association(bound.cntlid);
    let is_ready = association.is_some_and(|association| association.is_ready());
    if is_ready { Ok(CommandPlan::Own) } else { Err(Status::COMMAND_SEQUENCE_ERROR.into()) }
}
