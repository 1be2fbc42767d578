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

    /// Looks for the bytes of a request's content in its buffers or in a stage.
    ///
    /// # Errors
    /// If a stage it names is not there or not complete, or buffers do not hold it.
    pub fn look(&self, content: &Content, buffers: &Buffers) -> Result<(), StageRefusal> {
        let Content::Staged { stage, bytes } = *content else {
            return content.lies_within(buffers).then_some(()).ok_or(StageRefusal::BadContent);
        };
        let of = self.stages.get(&stage).ok_or(StageRefusal::NotOpen)?;
        let staged = length(&of.content);
        if staged != of.bytes || staged != bytes {
            return Err(StageRefusal::Incomplete { staged });
        }
        Ok(())
    }

    /// The bytes of content that was looked at. A stage gives them away and is over.
    pub fn take(&mut self, content: &Content, buffers: &Buffers) -> Vec<u8> {
        let Content::Staged { stage, bytes } = content else { return content.gathered(buffers) };
        let of = self.stages.remove(stage).expect("it was looked at");
        assert_eq!(length(&of.content), *bytes, "a stage is taken that is not complete");
        of.content
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
        // All of it at once: growing would copy it again.
        self.content.reserve_exact(usize_of(self.bytes) - self.content.len());
        content.gather(buffers, &mut self.content);
        assert!(length(&self.content) <= self.bytes, "a stage of {} bytes overflows", self.bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::interface::Piece;
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};

    #[test]
    fn a_stage_gives_its_bytes_away_once_and_only_when_it_is_complete() {
        let mut buffers = Buffers::new(PayloadFormat::new(Payload::Bytes, &Geometry::example(1, 1, 1, 8, 8)));
        let buffer = buffers.take_whole(1);
        buffers.whole_mut(buffer, 0, 1).fill(9);
        let mut staging = Staging::new(StageLimits { stages_max: 2, bytes_max: 1000 });
        let (stage, bytes) = (StageId(1), 600);
        let whole = Content::Staged { stage, bytes };
        staging.apply(&StageOp::Open { stage, bytes }, &buffers).expect("it fits");
        for offset in [0, 300] {
            assert!(staging.look(&whole, &buffers).is_err(), "{offset} of {bytes} bytes are there");
            let content = Content::Piece(Piece { buffer, first_byte: offset, bytes: 300 });
            staging.apply(&StageOp::Append { stage, offset, content }, &buffers).expect("in order");
        }
        staging.look(&whole, &buffers).expect("it is complete");
        assert_eq!(staging.take(&whole, &buffers), [9; 600]);
        assert_eq!(staging.look(&whole, &buffers), Err(StageRefusal::NotOpen));
    }
}
