//! Who has which stage of a target: values longer than a request are collected there, piece by piece.
//!
//! A target has few stages, and clients name theirs as they like; here a name becomes a stage. What a client that went away had
//! begun is given up before the stage is another's, and only once the target is done with all that was asked about it.
//! Deliberately not here: what a stage holds (the target).

use crate::exports::ExportId;
use crate::job::Work;
use ocssd_lightnvm::interface::{StageId, StageOp};
use std::collections::BTreeMap;

/// Who has a stage, and what it is called there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageOwner {
    /// The client, by any number that no other has.
    pub host: u32,
    /// Its name for the stage.
    pub name: u32,
}

/// A stage that is or was begun.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Whose it is; `None` once that one is gone.
    owner: Option<StageOwner>,
    /// Jobs about it that have not ended.
    running: u32,
}

/// A stage that a client may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Which.
    pub stage: StageId,
    /// Another left something in it, which is to be given up first.
    pub is_left: bool,
}

/// Why a client gets none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotGranted {
    /// It has one of this name.
    NameTaken,
    /// All are others'; later there may be one.
    NoneLeft,
}

/// All stages of all exports.
#[derive(Debug, Default)]
pub struct Stages(BTreeMap<(ExportId, StageId), Slot>);

impl Stages {
    /// A stage for a client, of an export that has `count`.
    ///
    /// # Errors
    /// If it has one of this name, or all are others'.
    pub fn grant(&mut self, export: ExportId, owner: StageOwner, count: u32) -> Result<Granted, NotGranted> {
        if self.find(export, owner).is_some() {
            return Err(NotGranted::NameTaken);
        }
        let free = |id: &StageId| {
            self.0.get(&(export, *id)).is_none_or(|slot| slot.owner.is_none() && slot.running == 0)
        };
        let stage = (0..count).map(StageId).find(free).ok_or(NotGranted::NoneLeft)?;
        let before = self.0.insert((export, stage), Slot { owner: Some(owner), running: 0 });
        Ok(Granted { stage, is_left: before.is_some() })
    }

    /// The stage of a client by its name.
    #[must_use]
    pub fn find(&self, export: ExportId, owner: StageOwner) -> Option<StageId> {
        let mut of_export = self.0.iter().filter(|((id, _), _)| *id == export);
        of_export.find(|(_, slot)| slot.owner == Some(owner)).map(|((_, stage), _)| *stage)
    }

    /// A stage is over: nothing is in it any more.
    pub fn end(&mut self, export: ExportId, stage: StageId) {
        let Some(slot) = self.0.get_mut(&(export, stage)) else { return };
        slot.owner = None;
        if slot.running == 0 {
            self.0.remove(&(export, stage));
        }
    }

    /// A client is gone: the stages that it had.
    pub fn leave(&mut self, host: u32) -> Vec<(ExportId, StageId)> {
        let its = |slot: &Slot| slot.owner.is_some_and(|owner| owner.host == host);
        let left = self.0.iter_mut().filter(|(_, slot)| its(slot));
        left.map(|(place, slot)| {
            slot.owner = None;
            *place
        })
        .collect()
    }

    /// A job goes to its target.
    pub(crate) fn on_given(&mut self, export: ExportId, work: &Work) {
        let slot = stage_of(work).and_then(|stage| self.0.get_mut(&(export, stage)));
        slot.into_iter().for_each(|slot| slot.running += 1);
    }

    /// It has ended.
    pub(crate) fn on_ended(&mut self, export: ExportId, work: &Work) {
        let slot = stage_of(work).and_then(|stage| self.0.get_mut(&(export, stage)));
        // One that was given before the stage was granted did not count.
        slot.into_iter().for_each(|slot| slot.running = slot.running.saturating_sub(1));
    }
}

/// The stage that a job is about.
fn stage_of(work: &Work) -> Option<StageId> {
    match work.stage_op() {
        Some(StageOp::Open { stage, .. } | StageOp::Append { stage, .. } | StageOp::Abort { stage }) => {
            Some(stage)
        }
        None => work.staged(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::interface::key_value::KvOp;

    const EXPORT: ExportId = ExportId(3);

    fn owner(host: u32, name: u32) -> StageOwner {
        StageOwner { host, name }
    }

    fn abort(stage: StageId) -> Work {
        Work::KeyValue(KvOp::Stage(StageOp::Abort { stage }))
    }

    #[test]
    fn clients_have_stages_under_their_own_names() {
        let mut stages = Stages::default();
        let grant = |stages: &mut Stages, host, name| stages.grant(EXPORT, owner(host, name), 2);
        let first = Granted { stage: StageId(0), is_left: false };
        assert_eq!(grant(&mut stages, 1, 7), Ok(first));
        assert_eq!(grant(&mut stages, 1, 7), Err(NotGranted::NameTaken));
        assert_eq!(grant(&mut stages, 2, 7).map(|granted| granted.stage), Ok(StageId(1)));
        assert_eq!(grant(&mut stages, 3, 7), Err(NotGranted::NoneLeft));
        assert_eq!(stages.grant(ExportId(4), owner(3, 7), 2), Ok(first), "another export has its own");
        assert_eq!(stages.find(EXPORT, owner(2, 7)), Some(StageId(1)));
        assert_eq!((stages.find(EXPORT, owner(2, 8)), stages.find(EXPORT, owner(4, 7))), (None, None));
        stages.end(EXPORT, StageId(0));
        assert_eq!(grant(&mut stages, 3, 1), Ok(first), "nothing was left in it");
    }

    #[test]
    fn what_a_lost_client_left_is_granted_once_its_jobs_have_ended() {
        let mut stages = Stages::default();
        let granted = stages.grant(EXPORT, owner(1, 7), 1).expect("it is the first");
        stages.on_given(EXPORT, &abort(granted.stage));
        assert_eq!(stages.leave(1), [(EXPORT, granted.stage)]);
        assert_eq!(stages.leave(1), []);
        assert_eq!(stages.grant(EXPORT, owner(2, 7), 1), Err(NotGranted::NoneLeft));
        stages.on_ended(EXPORT, &abort(granted.stage));
        let next = stages.grant(EXPORT, owner(2, 7), 1);
        assert_eq!(next, Ok(Granted { stage: granted.stage, is_left: true }));
        stages.on_ended(EXPORT, &abort(granted.stage));
        stages.on_given(EXPORT, &Work::Flush);
        stages.end(EXPORT, granted.stage);
        assert_eq!(stages.find(EXPORT, owner(2, 7)), None);
    }
}
