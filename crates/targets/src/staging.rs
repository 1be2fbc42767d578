//! Stages of requests' content, as every interface has them: begun, appended to in order, named once.
//!
//! Deliberately not here: requests, and what a stage is for.

use ocssd_base::usize_of;
use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::interface::{Content, StageId, StageLimits, StageOp, StageRefusal};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Stage {
    bytes: u32,
    content: Vec<u8>,
}

/// The stages of a target. A power cut ends all of them.
#[derive(Clone, Debug)]
pub struct Staging {
    limits: StageLimits,
    stages: BTreeMap<StageId, Stage>,
}

fn length(content: &[u8]) -> u32 {
    u32::try_from(content.len()).expect("a stage is bounded by 32 bits")
}

impl Staging {
    /// None is begun.
    pub const fn new(limits: StageLimits) -> Self {
        Self { limits, stages: BTreeMap::new() }
    }

    /// Begins, appends to, or ends a stage.
    ///
    /// # Errors
    /// Why not; nothing changed then.
    pub fn apply(&mut self, op: &StageOp, buffers: &Buffers) -> Result<(), StageRefusal> {
        let (StageOp::Open { stage, .. } | StageOp::Append { stage, .. } | StageOp::Abort { stage }) = *op;
        if stage.0 >= self.limits.stages_max {
            return Err(StageRefusal::NameOutOfRange);
        }
        let is_open = self.stages.contains_key(&stage);
        match *op {
            StageOp::Open { .. } if is_open => return Err(StageRefusal::IsOpen),
            StageOp::Open { bytes, .. } if bytes > self.limits.bytes_max => {
                return Err(StageRefusal::TooLong);
            }
            StageOp::Open { bytes, .. } => {
                self.stages.insert(stage, Stage { bytes, content: Vec::new() });
            }
            _ if !is_open => return Err(StageRefusal::NotOpen),
            StageOp::Abort { .. } => drop(self.stages.remove(&stage)),
            StageOp::Append { offset, content, .. } => {
                let of = self.stages.get_mut(&stage).expect("it was looked at");
                of.append(offset, &content, buffers)?;
            }
        }
        assert!(self.stages.len() <= usize_of(self.limits.stages_max), "more stages than names");
        Ok(())
    }

    /// The bytes of a request's content, from its buffers or from a stage. A stage stays until [`Self::end`].
    ///
    /// # Errors
    /// If a stage it names is not there or not complete, or buffers do not hold it.
    pub fn content(&self, content: &Content, buffers: &Buffers) -> Result<Vec<u8>, StageRefusal> {
        let Content::Staged { stage, bytes } = *content else {
            return if content.lies_within(buffers) {
                Ok(content.gathered(buffers))
            } else {
                Err(StageRefusal::BadContent)
            };
        };
        let of = self.stages.get(&stage).ok_or(StageRefusal::NotOpen)?;
        let staged = length(&of.content);
        if staged != of.bytes || staged != bytes {
            return Err(StageRefusal::Incomplete { staged });
        }
        Ok(of.content.clone())
    }

    /// A request that named this content succeeded: its stage is over.
    pub fn end(&mut self, content: &Content) {
        if let Content::Staged { stage, .. } = content {
            self.stages.remove(stage);
        }
    }
}

impl Stage {
    fn append(&mut self, offset: u32, content: &Content, buffers: &Buffers) -> Result<(), StageRefusal> {
        let staged = length(&self.content);
        if offset != staged {
            return Err(StageRefusal::OutOfOrder { staged });
        }
        if u64::from(staged) + u64::from(content.bytes()) > u64::from(self.bytes) {
            return Err(StageRefusal::BeyondEnd);
        }
        if matches!(content, Content::Staged { .. }) || !content.lies_within(buffers) {
            return Err(StageRefusal::BadContent);
        }
        self.content.extend(content.gathered(buffers));
        assert!(length(&self.content) <= self.bytes, "a stage of {} bytes overflows", self.bytes);
        Ok(())
    }
}
