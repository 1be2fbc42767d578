//! Stages as every interface has them: content that one later request names.

use ocssd_lightnvm::Buffers;
use ocssd_lightnvm::interface::{Content, StageId, StageLimits, StageOp, StageRefusal};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Stage {
    bytes: u32,
    content: Vec<u8>,
}

/// All stages of a target. They do not survive a power cut.
#[derive(Clone, Debug)]
pub struct Staging {
    limits: StageLimits,
    stages: BTreeMap<StageId, Stage>,
}

fn length(content: &[u8]) -> u32 {
    u32::try_from(content.len()).expect("a stage has at most 2^32 bytes")
}

impl Staging {
    /// None yet.
    #[must_use]
    pub const fn new(limits: StageLimits) -> Self {
        Self { limits, stages: BTreeMap::new() }
    }

    /// Carries out what is done to a stage.
    ///
    /// # Errors
    /// Why not; nothing changed then.
    pub fn apply(&mut self, op: &StageOp, buffers: &Buffers) -> Result<(), StageRefusal> {
        match *op {
            StageOp::Open { stage, .. } | StageOp::Append { stage, .. } | StageOp::Abort { stage }
                if stage.0 >= self.limits.stages_max =>
            {
                Err(StageRefusal::NameOutOfRange)
            }
            StageOp::Open { stage, .. } if self.stages.contains_key(&stage) => Err(StageRefusal::IsOpen),
            StageOp::Open { bytes, .. } if bytes > self.limits.bytes_max => Err(StageRefusal::TooLong),
            StageOp::Open { stage, bytes } => {
                self.stages.insert(stage, Stage { bytes, content: Vec::new() });
                Ok(())
            }
            StageOp::Append { stage, offset, content } => self.append(stage, offset, &content, buffers),
            StageOp::Abort { stage } => self.stages.remove(&stage).map(|_| ()).ok_or(StageRefusal::NotOpen),
        }
    }

    fn append(
        &mut self,
        stage: StageId,
        offset: u32,
        content: &Content,
        buffers: &Buffers,
    ) -> Result<(), StageRefusal> {
        let stage = self.stages.get_mut(&stage).ok_or(StageRefusal::NotOpen)?;
        let staged = length(&stage.content);
        if offset != staged {
            return Err(StageRefusal::OutOfOrder { staged });
        }
        if u64::from(staged) + u64::from(content.bytes()) > u64::from(stage.bytes) {
            return Err(StageRefusal::BeyondEnd);
        }
        if matches!(content, Content::Staged { .. }) || !content.lies_within(buffers) {
            return Err(StageRefusal::BadContent);
        }
        stage.content.extend(content.gathered(buffers));
        Ok(())
    }

    /// The bytes of a request's content, from buffers or from a stage.
    ///
    /// # Errors
    /// If a stage it names is not there, or not complete, or if buffers do not hold it.
    pub fn content(&self, content: &Content, buffers: &Buffers) -> Result<Vec<u8>, StageRefusal> {
        let Content::Staged { stage, bytes } = *content else {
            let fits = content.lies_within(buffers);
            return fits.then(|| content.gathered(buffers)).ok_or(StageRefusal::BadContent);
        };
        let stage = self.stages.get(&stage).ok_or(StageRefusal::NotOpen)?;
        let staged = length(&stage.content);
        let is_whole = staged == stage.bytes && staged == bytes;
        is_whole.then(|| stage.content.clone()).ok_or(StageRefusal::Incomplete { staged })
    }

    /// A request that named this content succeeded: its stage is over.
    pub fn end(&mut self, content: &Content) {
        if let Content::Staged { stage, .. } = content {
            self.stages.remove(stage);
        }
    }

    /// The power went: all stages are over.
    pub fn clear(&mut self) {
        self.stages.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::interface::Piece;
    use ocssd_lightnvm::{Geometry, Payload, PayloadFormat};

    const STAGE: StageId = StageId(1);

    #[test]
    fn a_stage_takes_its_pieces_in_order_and_gives_them_once_complete() {
        let mut buffers =
            Buffers::new(PayloadFormat::new(Payload::Bytes, &Geometry::example(1, 1, 4, 24, 24)));
        let buffer = buffers.take(1);
        buffers.data_mut(buffer, 0, 1)[..4].copy_from_slice(&[1, 2, 3, 4]);
        let piece = |first_byte, bytes| Content::Piece(Piece { buffer, first_byte, bytes });
        let append = |offset, content| StageOp::Append { stage: STAGE, offset, content };
        let whole = Content::Staged { stage: STAGE, bytes: 4 };
        let mut staging = Staging::new(StageLimits { stages_max: 2, bytes_max: 10 });
        for (op, verdict) in [
            (append(0, piece(0, 1)), Err(StageRefusal::NotOpen)),
            (StageOp::Open { stage: StageId(2), bytes: 4 }, Err(StageRefusal::NameOutOfRange)),
            (StageOp::Open { stage: STAGE, bytes: 11 }, Err(StageRefusal::TooLong)),
            (StageOp::Open { stage: STAGE, bytes: 4 }, Ok(())),
            (StageOp::Open { stage: STAGE, bytes: 4 }, Err(StageRefusal::IsOpen)),
            (append(0, piece(0, 3)), Ok(())),
            (append(0, piece(0, 3)), Err(StageRefusal::OutOfOrder { staged: 3 })),
            (append(3, piece(0, 2)), Err(StageRefusal::BeyondEnd)),
            (append(3, whole), Err(StageRefusal::BeyondEnd)),
            (append(3, Content::Staged { stage: STAGE, bytes: 1 }), Err(StageRefusal::BadContent)),
            (append(3, piece(4_096, 1)), Err(StageRefusal::BadContent)),
        ] {
            assert_eq!(staging.apply(&op, &buffers), verdict, "{op:?}");
        }
        assert_eq!(staging.content(&whole, &buffers), Err(StageRefusal::Incomplete { staged: 3 }));
        assert_eq!(staging.apply(&append(3, piece(3, 1)), &buffers), Ok(()));
        assert_eq!(staging.content(&whole, &buffers), Ok(vec![1, 2, 3, 4]));
        staging.end(&whole);
        assert_eq!(staging.content(&whole, &buffers), Err(StageRefusal::NotOpen));
        assert_eq!(staging.apply(&StageOp::Abort { stage: STAGE }, &buffers), Err(StageRefusal::NotOpen));
    }
}
