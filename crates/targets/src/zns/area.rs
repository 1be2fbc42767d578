//! The random write area of a zone: which versions of its blocks are durable, and where in tails the newest of these lie.
//!
//! Blocks of an area stay in buffer units until they are committed. One that must be durable before goes to tails, as often as it
//! is written anew; a mount takes the youngest. A version that was written over needs not become durable itself, its successor
//! must. Deliberately not here: buffer units (`place`), pages of tails (`tails`).

use ocssd_base::SlabKey;
use ocssd_ftl::ChunkIndex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The area of a zone. Blocks are counted in the zone, versions in the instance.
#[derive(Clone, Debug, Default)]
pub struct Area {
    /// Blocks whose newest version is not durable, and the oldest version that is not.
    dirty: BTreeMap<u32, u64>,
    /// Blocks on their way to tails, and the first version written since; 0 if there is none.
    flying: BTreeMap<u32, u64>,
    /// The chunk of tails with the newest durable version of a block.
    safe: BTreeMap<u32, ChunkIndex>,
    /// Blocks whose durable version is written anew, because its chunk is wanted.
    anew: BTreeSet<u32>,
    /// Blocks before this one are on media in their place.
    in_place: u32,
    /// The newest version of all.
    newest: u64,
    /// Somebody waits for all versions up to this one.
    awaited: u64,
    /// Writes that are answered when all versions up to theirs are durable.
    pub waiters: VecDeque<(u64, SlabKey)>,
}

impl Area {
    /// An area in a zone of which the first `in_place` blocks are on media.
    pub fn new(in_place: u32) -> Self {
        Self { in_place, ..Self::default() }
    }

    /// A block was written.
    pub fn written(&mut self, block: u32, version: u64) {
        assert!(block >= self.in_place, "block {block} lies before the area, from {} on", self.in_place);
        assert!(version > self.newest, "version {version} of block {block} is older than another");
        self.newest = version;
        self.dirty.entry(block).or_insert(version);
        if let Some(since @ 0) = self.flying.get_mut(&block) {
            *since = version;
        }
    }

    /// The newest version of all.
    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// Somebody waits for all versions up to this one. True if nobody did before.
    pub fn wait_for(&mut self, version: u64) -> bool {
        assert!(version <= self.newest, "version {version} was not written");
        let is_later = version > self.awaited;
        self.awaited = self.awaited.max(version);
        is_later
    }

    /// True if every block survives a power cut in its version `until`, or a later one. Cost: the blocks that do not.
    pub fn is_durable(&self, until: u64) -> bool {
        self.dirty.values().all(|&oldest| oldest > until)
    }

    /// Runs of blocks from `pointer` on that should go to tails, none across a border of units.
    pub fn wanted(&self, pointer: u32, unit: u32) -> Vec<(u32, u32)> {
        if self.awaited == 0 && self.anew.is_empty() {
            return Vec::new();
        }
        let awaited = self.dirty.range(pointer..).filter(|&(_, &oldest)| oldest <= self.awaited);
        let mut blocks: BTreeSet<u32> = awaited.map(|(&block, _)| block).collect();
        blocks.extend(self.anew.range(pointer..));
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for block in blocks {
            match runs.last_mut() {
                Some((_, end)) if *end == block && !block.is_multiple_of(unit) => *end += 1,
                _ => runs.push((block, block + 1)),
            }
        }
        runs
    }

    /// A run goes to tails.
    pub fn sent(&mut self, from: u32, to: u32) {
        for block in from..to {
            let is_wanted = self.dirty.contains_key(&block) || self.anew.contains(&block);
            assert!(is_wanted, "block {block} goes to tails, and was not wanted");
            assert!(self.flying.insert(block, 0).is_none(), "block {block} is on its way twice");
        }
    }

    /// A block is in a chunk of tails: gives the chunk of which one block less is needed. With `lags`, what was written over it
    /// meanwhile is taken for durable, too.
    pub fn programmed(&mut self, block: u32, chunk: ChunkIndex, lags: bool) -> Option<ChunkIndex> {
        let since = self.flying.remove(&block).expect("it was on its way");
        self.anew.remove(&block);
        if block < self.in_place {
            return Some(chunk);
        }
        if since == 0 || lags {
            self.dirty.remove(&block);
        } else if let Some(oldest) = self.dirty.get_mut(&block) {
            assert!(*oldest <= since, "version {oldest} of block {block} is younger than {since}");
            *oldest = since;
        }
        self.safe.insert(block, chunk)
    }

    /// A block was not programmed.
    pub fn failed(&mut self, block: u32) {
        assert!(self.flying.remove(&block).is_some(), "block {block} was not on its way");
    }

    /// Blocks before this one are on media in their place: gives the chunks of tails of which a block less is needed, each.
    pub fn on_place(&mut self, before: u32) -> Vec<ChunkIndex> {
        if before <= self.in_place {
            return Vec::new();
        }
        self.in_place = before;
        self.dirty = self.dirty.split_off(&before);
        self.anew = self.anew.split_off(&before);
        let rest = self.safe.split_off(&before);
        std::mem::replace(&mut self.safe, rest).into_values().collect()
    }

    /// The chunks of tails that hold blocks, once for each.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkIndex> {
        self.safe.values().copied()
    }

    /// A chunk of tails is wanted: what it holds from `pointer` on is written anew.
    pub fn write_anew(&mut self, chunk: ChunkIndex, pointer: u32) {
        let in_it = self.safe.range(pointer..).filter(|&(_, &other)| other == chunk);
        self.anew.extend(in_it.map(|(&block, _)| block));
    }

    /// True while something is written anew.
    pub fn is_writing_anew(&self) -> bool {
        !self.anew.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNKS: [ChunkIndex; 2] = [ChunkIndex(7), ChunkIndex(8)];

    fn programmed(area: &mut Area, run: (u32, u32), chunk: ChunkIndex) -> Vec<ChunkIndex> {
        area.sent(run.0, run.1);
        (run.0..run.1).filter_map(|block| area.programmed(block, chunk, false)).collect()
    }

    #[test]
    fn a_block_is_durable_in_a_version_once_that_or_a_later_one_was_programmed() {
        let mut area = Area::new(8);
        for (block, version) in [(9, 1), (10, 2), (12, 3), (15, 4), (16, 5)] {
            area.written(block, version);
        }
        assert_eq!(area.wanted(8, 8), [], "nobody waits");
        area.wait_for(4);
        assert_eq!(area.wanted(8, 8), [(9, 11), (12, 13), (15, 16)], "16 is younger");
        area.wait_for(5);
        assert_eq!(area.wanted(8, 8)[2..], [(15, 16), (16, 17)], "a run ends with its unit");
        area.sent(9, 11);
        area.written(10, 6);
        assert_eq!([9, 10].map(|block| area.programmed(block, CHUNKS[0], false)), [None, None]);
        assert!(area.is_durable(2) && !area.is_durable(3), "12 is not there");
        for run in [(12, 13), (15, 16), (16, 17)] {
            programmed(&mut area, run, CHUNKS[0]);
        }
        assert!(area.is_durable(5) && !area.is_durable(6), "10 was written over under way");
        area.wait_for(6);
        assert_eq!(
            programmed(&mut area, (10, 11), CHUNKS[1]),
            [CHUNKS[0]],
            "the older version is not needed"
        );
        assert!(area.is_durable(6));
        area.written(10, 7);
        area.written(10, 8);
        assert!(!area.is_durable(7), "neither it nor its successor is durable");
    }

    #[test]
    fn what_is_in_place_needs_no_tail() {
        let mut area = Area::new(0);
        area.written(1, 1);
        area.written(8, 2);
        area.wait_for(2);
        programmed(&mut area, (1, 2), CHUNKS[0]);
        area.sent(8, 9);
        assert_eq!(area.on_place(8), [CHUNKS[0]]);
        assert!(area.on_place(8).is_empty() && !area.is_durable(2));
        assert!(area.on_place(16).is_empty() && area.is_durable(2));
        assert_eq!(area.programmed(8, CHUNKS[1], false), Some(CHUNKS[1]), "it is in place already");
        assert_eq!(area.chunks().count(), 0);
    }

    #[test]
    fn a_chunk_that_is_wanted_has_its_blocks_written_anew() {
        let mut area = Area::new(0);
        (0..3).for_each(|block| area.written(block, u64::from(block) + 1));
        area.wait_for(3);
        programmed(&mut area, (0, 2), CHUNKS[0]);
        programmed(&mut area, (2, 3), CHUNKS[1]);
        area.write_anew(CHUNKS[0], 1);
        assert!(area.is_writing_anew() && area.is_durable(3));
        assert_eq!(area.wanted(1, 8), [(1, 2)], "0 was committed and will be programmed");
        area.sent(1, 2);
        area.failed(1);
        assert_eq!(programmed(&mut area, (1, 2), CHUNKS[1]), [CHUNKS[0]]);
        assert!(!area.is_writing_anew() && area.wanted(0, 8).is_empty());
    }
}
