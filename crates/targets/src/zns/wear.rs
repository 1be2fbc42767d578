//! How often each chunk was reset, and which chunk of a full zone is moved for that.
//!
//! What nobody writes again keeps its chunks from being reset, while the others take all wear. A chunk of a full zone that lags
//! behind the most worn chunk by more than a bound is *cold*; its content is moved to a worn free chunk, where it can stay, and
//! it is written by others from then on. One is moved for every [`ChunkWear::interval`] resets. Chunks are looked at again once
//! a part of them was reset, and those found are moved one after the other, the least worn first.
//!
//! Why the spread stays bounded: while every cold chunk is moved once, the others gain interval x cold / others resets on the
//! bound, and a chunk that was moved wears like the others. Counts are in checkpoints. What was reset since the newest one is
//! forgotten in a power cut, but for what the drive's wear index tells: a chunk with a larger index was reset as often as one
//! with a smaller one, at least. Without a bound nothing is counted.
//!
//! Deliberately not here: moving (`level`).

use ocssd_base::usize_of;
use ocssd_ftl::ChunkIndex;
use std::collections::{BTreeSet, VecDeque};

/// Moves in the time in which one would do (chosen: moves take time, and more than one chunk lags).
const MOVES_PER_BOUND: u32 = 4;
/// Chunks are looked at when as many were reset as this part of them (chosen: a look costs a pass over all of them, and wear grows
/// by less than one reset each meanwhile).
const LOOK_PART: u32 = 16;

/// A chunk that lags, and the zone it was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagging {
    /// The zone.
    pub zone: u32,
    /// The chunk.
    pub chunk: ChunkIndex,
}

/// The wear of an instance's chunks.
#[derive(Clone, Debug)]
pub struct ChunkWear {
    /// Resets a chunk may lag; `None`: as many as it likes.
    bound: Option<u32>,
    /// By chunk; empty without a bound.
    resets: Vec<u32>,
    most: u32,
    /// Resets since the last move, up to the interval, and since chunks were looked at.
    since: u32,
    since_look: u32,
    /// Those that were found, the least worn first.
    found: VecDeque<Lagging>,
    /// Those that could not be read.
    stuck: BTreeSet<ChunkIndex>,
}

impl ChunkWear {
    /// The wear of as many chunks as `wear_index` has, which are what the drive says of each; `saved` is what the checkpoint
    /// has, if it has anything of them.
    pub fn new(bound: Option<u32>, saved: &[u32], wear_index: &[u8]) -> Self {
        assert!(bound != Some(0), "a chunk cannot lag by nothing");
        let resets = match bound {
            None => Vec::new(),
            Some(_) => {
                let saved =
                    if saved.len() == wear_index.len() { saved.to_vec() } else { vec![0; wear_index.len()] };
                raised(saved, wear_index)
            }
        };
        let most = resets.iter().copied().max().unwrap_or(0);
        let mut new = Self {
            bound,
            resets,
            most,
            since: 0,
            since_look: 0,
            found: VecDeque::new(),
            stuck: BTreeSet::new(),
        };
        // Power cuts must not put moves off for ever.
        (new.since, new.since_look) = (new.interval(), u32::MAX);
        new
    }

    /// The bound.
    pub const fn bound(&self) -> Option<u32> {
        self.bound
    }

    /// Resets for each move: moves then cost a chunk written for each of so many resets.
    pub fn interval(&self) -> u32 {
        self.bound.map_or(u32::MAX, |bound| (bound / MOVES_PER_BOUND).max(1))
    }

    /// How often a chunk was reset, as far as is known.
    pub fn resets(&self, chunk: ChunkIndex) -> u32 {
        self.resets.get(chunk.index()).copied().unwrap_or(0)
    }

    /// Resets the least worn chunk lags behind the most worn one; 0 without a bound. Cost: a pass over the chunks.
    pub fn lag(&self) -> u32 {
        self.most - self.resets.iter().copied().min().unwrap_or(0)
    }

    /// Counts as bytes, for a checkpoint: four for each chunk.
    pub fn encode(&self) -> Vec<u8> {
        self.resets.iter().flat_map(|count| count.to_le_bytes()).collect()
    }

    /// The counts in the bytes of a checkpoint.
    pub fn decode(bytes: &[u8]) -> Vec<u32> {
        let (counts, _) = bytes.as_chunks::<4>();
        counts.iter().map(|count| u32::from_le_bytes(*count)).collect()
    }

    /// A chunk was reset.
    pub fn on_reset(&mut self, chunk: ChunkIndex) {
        let Some(count) = self.resets.get_mut(chunk.index()) else { return };
        *count = count.saturating_add(1);
        self.most = self.most.max(*count);
        (self.since, self.since_look) =
            (self.since.saturating_add(1).min(self.bound.unwrap_or(1)), self.since_look.saturating_add(1));
        self.stuck.remove(&chunk);
    }

    /// True if a chunk lags by more than the bound.
    pub fn lags(&self, chunk: ChunkIndex) -> bool {
        self.bound.is_some_and(|bound| self.most - self.resets(chunk) > bound)
    }

    /// True if [`Self::next`] may find a chunk.
    pub fn is_due(&self) -> bool {
        self.bound.is_some()
            && self.since >= self.interval()
            && (!self.found.is_empty() || self.is_look_due())
    }

    fn is_look_due(&self) -> bool {
        let chunks = u32::try_from(self.resets.len()).expect("fewer chunks than 2^32");
        self.bound.is_some_and(|bound| self.most > bound) && self.since_look >= (chunks / LOOK_PART).max(1)
    }

    /// The next chunk to be moved: of those found before, else of `chunks`, the chunks of full zones. It may have changed since
    /// it was found. Cost: as a rule none, and at times a pass over `chunks` and a sort.
    ///
    /// # Panics
    /// If none is due.
    pub fn next<I: Iterator<Item = Lagging>>(&mut self, chunks: impl FnOnce() -> I) -> Option<Lagging> {
        assert!(self.is_due(), "a chunk is moved out of turn: {} resets since the last", self.since);
        if self.found.is_empty() {
            self.since_look = 0;
            let mut found: Vec<Lagging> = chunks()
                .filter(|lagging| self.lags(lagging.chunk) && !self.stuck.contains(&lagging.chunk))
                .collect();
            found.sort_by_key(|lagging| (self.resets(lagging.chunk), lagging.chunk));
            found.dedup();
            self.found = found.into();
        }
        self.found.pop_front()
    }

    /// A chunk is being moved.
    pub fn moving(&mut self) {
        assert!(self.since >= self.interval(), "two chunks are moved in one interval");
        self.since = 0;
    }

    /// A chunk cannot be read: it is not moved before it was reset.
    pub fn cannot_move(&mut self, chunk: ChunkIndex) {
        self.stuck.insert(chunk);
    }
}

/// Counts, raised to the most that a chunk of a smaller wear index has.
fn raised(mut counts: Vec<u32>, wear_index: &[u8]) -> Vec<u32> {
    let mut most = [0; 256];
    for (&count, &index) in counts.iter().zip(wear_index) {
        let at = &mut most[usize::from(index)];
        *at = count.max(*at);
    }
    let mut below = [0; 256];
    for index in 1..below.len() {
        below[index] = most[index - 1].max(below[index - 1]);
    }
    assert!(below.is_sorted(), "a larger index means less wear");
    counts
        .iter_mut()
        .zip(wear_index)
        .for_each(|(count, &index)| *count = below[usize::from(index)].max(*count));
    assert_eq!(counts.len(), usize_of(u32::try_from(wear_index.len()).expect("fewer chunks than 2^32")));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(index: u32) -> ChunkIndex {
        ChunkIndex(index)
    }

    fn lagging(chunks: &[u32]) -> impl Iterator<Item = Lagging> + '_ {
        chunks.iter().map(|&index| Lagging { zone: index / 10, chunk: chunk(index) })
    }

    fn reset(wear: &mut ChunkWear, index: u32, times: u32) {
        (0..times).for_each(|_| wear.on_reset(chunk(index)));
    }

    #[test]
    fn counts_are_those_of_the_checkpoint_raised_by_what_the_drive_says() {
        let wear = ChunkWear::new(Some(4), &[5, 9, 0, 3], &[1, 2, 3, 1]);
        assert_eq!([0, 1, 2, 3].map(|index| wear.resets(chunk(index))), [5, 9, 9, 3]);
        assert_eq!((wear.lag(), wear.interval()), (6, 1));
        assert_eq!(ChunkWear::decode(&wear.encode()), [5, 9, 9, 3]);
        let fresh = ChunkWear::new(Some(4), &[5, 9], &[0, 2, 3, 1]);
        assert_eq!(fresh.lag(), 0, "counts of another number of chunks say nothing");
        let none = ChunkWear::new(None, &[5, 9], &[0, 200]);
        assert!(!none.is_due() && none.lag() == 0 && none.encode().is_empty());
    }

    #[test]
    fn the_least_worn_is_moved_first_and_one_in_an_interval() {
        let mut wear = ChunkWear::new(Some(8), &[0; 16], &[0; 16]);
        assert!(!wear.is_due(), "nothing lags");
        reset(&mut wear, 3, 1);
        reset(&mut wear, 5, 20);
        assert!(wear.is_due() && wear.lags(chunk(0)) && !wear.lags(chunk(5)));
        assert_eq!(wear.next(|| lagging(&[3, 5, 0, 11])).map(|found| found.chunk), Some(chunk(0)));
        wear.moving();
        assert!(!wear.is_due(), "a move comes right after another");
        reset(&mut wear, 5, 2);
        assert_eq!(
            wear.next(|| lagging(&[])).map(|found| found.chunk),
            Some(chunk(11)),
            "it was found before"
        );
        assert_eq!(wear.next(|| lagging(&[])).map(|found| found.chunk), Some(chunk(3)));
        wear.cannot_move(chunk(3));
        assert_eq!(wear.next(|| lagging(&[3, 5])), None, "it cannot be read, and 5 does not lag");
    }
}
