//! Stages of hosts: what is longer than a command is collected in a stage of the target, under a name the host chooses.
//!
//! Values of keys and buffers of pages are collected by the same commands, and named by one that makes all of it true at once.
//! What an association had begun goes with it. Deliberately not here: which stage is whose ([`crate::stages`]), and what a
//! stage holds (the target).

use super::commands::Commands;
use super::key_value::{KvKind, KvPlan};
use super::pages::{PageKind, PagePlan};
use super::plan::CommandPlan;
use crate::dispatcher::Dispatcher;
use crate::exports::{ExportId, ExportKind};
use crate::job::{Job, Work};
use crate::stages::{Granted, NotGranted, StageOwner};
use ocssd_base::SlabKey;
use ocssd_lightnvm::Status;
use ocssd_lightnvm::interface::key_value::{KvOp, StoreCondition};
use ocssd_lightnvm::interface::log_structured::LogOp;
use ocssd_lightnvm::interface::{StageId, StageOp};
use ocssd_nvme::StatusField;

/// What is done with a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageStep {
    /// It begins.
    Open,
    /// It gets its next bytes.
    Append {
        /// Bytes that were there before.
        offset: u32,
    },
    /// It becomes a value.
    Store {
        /// If this is so.
        condition: StoreCondition,
    },
    /// It is given up.
    Abort,
}

/// The owner of jobs that nobody waits for.
pub(crate) const NOBODY: SlabKey = SlabKey(u32::MAX - 1);

/// Something about a stage, as its target is asked.
fn work(kind: &ExportKind, op: StageOp) -> Work {
    match kind {
        ExportKind::KeyValue(_) => Work::KeyValue(KvOp::Stage(op)),
        ExportKind::Log(_) => Work::Log(LogOp::Stage(op)),
        other => unreachable!("an export of {other:?} has no stages"),
    }
}

fn stages_max(kind: &ExportKind) -> u32 {
    match kind {
        ExportKind::KeyValue(limits) => limits.stages.stages_max,
        ExportKind::Log(limits) => limits.stages.stages_max,
        other => unreachable!("an export of {other:?} has no stages"),
    }
}

impl<P> Commands<P> {
    /// The stage that a command is about. One that is begun may be what another left, which is given up first: requests take
    /// effect in order.
    pub(super) fn stage(
        &mut self,
        key: SlabKey,
        export: ExportId,
        name: u32,
        is_begun: bool,
        dispatcher: &mut Dispatcher,
    ) -> Result<StageId, StatusField> {
        let owner = StageOwner { host: self.cntlid.into(), name };
        if !is_begun {
            let found = dispatcher.stages.find(export, owner);
            return found.ok_or(StatusField::rule(Status::COMMAND_SEQUENCE_ERROR));
        }
        let kind = dispatcher.exports.get(export).kind;
        let granted = dispatcher.stages.grant(export, owner, stages_max(&kind));
        let Granted { stage, is_left } = granted.map_err(|why| match why {
            NotGranted::NameTaken => StatusField::rule(Status::COMMAND_SEQUENCE_ERROR),
            NotGranted::NoneLeft => StatusField::retry(Status::NAMESPACE_NOT_READY),
        })?;
        if is_left {
            let work = work(&kind, StageOp::Abort { stage });
            let command = self.open.get_mut(key);
            command.running += 1;
            dispatcher.give(Job { owner: self.owner(key), work, ..Job::flush(export, None) });
        }
        Ok(stage)
    }

    /// Answers a command that cannot be carried out after all.
    pub(super) fn fail(&mut self, key: SlabKey, status: StatusField, dispatcher: &mut Dispatcher) -> bool {
        self.open.get_mut(key).failure = Some(status);
        self.respond(key, dispatcher);
        true
    }

    /// The association is over: what it had begun to collect is given up, at the latest when another wants the stage.
    pub fn leave_stages(&self, dispatcher: &mut Dispatcher) {
        for (export, stage) in dispatcher.stages.leave(self.cntlid.into()) {
            if dispatcher.has_room(self.client()) {
                let work = work(&dispatcher.exports.get(export).kind, StageOp::Abort { stage });
                let owner = self.owner(NOBODY);
                dispatcher.give(Job { owner, work, ..Job::flush(export, None) });
            }
        }
    }
}

/// What the end of a job means for the stage that it was about. Returns whether its failure is its command's: what another left
/// may be gone already.
pub(super) fn on_stage_done(
    plan: &CommandPlan,
    job: &Job,
    is_success: bool,
    dispatcher: &mut Dispatcher,
) -> bool {
    let (export, opens) = match *plan {
        CommandPlan::KeyValue(KvPlan { export, kind: KvKind::Stage { step, .. }, .. }) => {
            (export, step == StageStep::Open)
        }
        CommandPlan::Pages(PagePlan { export, kind: PageKind::Stage { step, .. }, .. }) => {
            (export, step == StageStep::Open)
        }
        CommandPlan::Pages(PagePlan { export, kind: PageKind::Flush { .. }, .. }) => (export, false),
        _ => return true,
    };
    match (job.work.stage_op(), job.work.staged()) {
        (Some(StageOp::Abort { .. }), _) if opens => return false,
        (Some(StageOp::Open { stage, .. }), _) if !is_success => dispatcher.stages.end(export, stage),
        (Some(StageOp::Abort { stage }), _) => dispatcher.stages.end(export, stage),
        (None, Some(stage)) if is_success => dispatcher.stages.end(export, stage),
        _ => {}
    }
    true
}
