//! Checkpoints: what the store maps and where replay begins, and when one is due.
//!
//! Deliberately not here: pages (`ocssd_ftl::checkpoint`), how they go to media (`journal`), reading them (`mount`).

use super::canary::Canary;
use super::sizes::INFO_BYTES;
use super::state::Ox;
use super::store::Store;
use crate::journal::{decode_info, encode_info};
use ocssd_ftl::checkpoint::SectionName;
use ocssd_ftl::log::Lsn;
use ocssd_lightnvm::Buffers;

/// The section about the instance.
pub(crate) const INFO: SectionName = *b"instance";
/// The layout of the section about the instance; raised when an older reader would misread it.
const VERSION: u32 = 1;

/// What a checkpoint says of the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Info {
    pub chunk: u32,
    pub units: u32,
    pub lines: u32,
    pub blocks: u64,
    /// The generation of the pages that replay begins with.
    pub generation: u64,
    /// The page that replay begins with.
    pub start: Lsn,
    /// The newest transaction that the map has.
    pub applied: u64,
    /// Blocks written so far.
    pub sequence: u64,
}

impl Info {
    pub fn encode(&self) -> [u8; INFO_BYTES] {
        let small = [self.chunk, self.units, self.lines];
        let large = [self.blocks, self.generation, self.start.0, self.applied, self.sequence];
        encode_info(VERSION, small, large)
    }

    /// # Errors
    /// A sentence, if the bytes are of another layout.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let ([chunk, units, lines], [blocks, generation, start, applied, sequence]) =
            decode_info::<INFO_BYTES, 3, 5>(bytes, VERSION, "an instance")?;
        Ok(Self { chunk, units, lines, blocks, generation, start: Lsn(start), applied, sequence })
    }
}

impl<S: Store> Ox<S> {
    pub(super) fn is_checkpoint_due(&self) -> bool {
        let Some(current) = self.journal.current() else { return true };
        let since = self.journal.log.next().0 - current.start.0;
        let waits = self.front_commit().is_some_and(|front| !self.journal.has_room(front.entries.len()));
        let is_full = waits && since > 0;
        let is_first = self.is_mounting && !self.journal.has_two();
        is_first || since >= u64::from(self.sizes.interval_pages) || is_full || self.is_last_due()
    }

    pub(super) fn begin_checkpoint(&mut self, buffers: &Buffers) {
        let start = self.replay_start();
        let info = Info {
            chunk: self.sizes.chunk,
            units: self.space.shape.units(),
            lines: self.space.shape.lines(),
            blocks: self.sizes.blocks,
            generation: self.journal.generation,
            start,
            applied: self.applied.0,
            sequence: self.sequence,
        };
        let image = S::image(self, buffers);
        let page_bytes = self.sizes.unit * self.sector_bytes;
        let info = info.encode();
        let own = image.iter().map(|(name, bytes)| (*name, bytes.as_slice()));
        let sections: Vec<(SectionName, &[u8])> = [(INFO, &info[..])].into_iter().chain(own).collect();
        self.journal.begin_checkpoint(start, page_bytes, &sections);
        if self.has_canary(Canary::TruncatedTooEarly) && !self.is_mounting {
            self.journal.cut_log(start, &mut self.space);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_the_instance_comes_back() {
        let info = Info {
            chunk: 1,
            units: 2,
            lines: 3,
            blocks: 1 << 40,
            generation: 5,
            start: Lsn(6),
            applied: 7,
            sequence: 8,
        };
        let mut bytes = info.encode();
        assert_eq!(Info::decode(&bytes), Ok(info));
        assert!(Info::decode(&bytes[1..]).is_err_and(|error| error.contains("64 bytes")));
        bytes[0] = 9;
        assert!(Info::decode(&bytes).is_err_and(|error| error.contains("newer program")));
    }
}
