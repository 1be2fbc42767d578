//! How often each chunk was reset, and which chunk that nobody resets is emptied for that: for targets whose chunks wear one by
//! one (of lines of chunks `ocssd_ftl::WearLeveller` knows).
//!
//! What nobody writes again keeps its chunks from being reset, while the others take all wear. A full chunk that lags behind the
//! most worn chunk by more than a bound is *cold*; its content is moved to a worn free chunk, where it can stay, and it is
//! written by others from then on. One is moved for every [`ChunkWear::interval`] resets. Chunks are looked at again once
//! a part of them was reset, and those found are moved one after the other, the least worn first.
//!
//! Why the spread stays bounded: while every cold chunk is moved once, the others gain interval x cold / others resets on the
//! bound, and a chunk that was moved wears like the others. Counts are in checkpoints. What was reset since the newest one is
//! forgotten in a power cut, but for what the drive's wear index tells: a chunk with a larger index was reset as often as one
//! with a smaller one, at least. Without a bound nothing is counted, unless the counts are wanted for the choice of free chunks
//! alone (`lightlsm`).
//!
//! The bound is no promise while a target has no room for what it would move: it says so ([`ChunkWear::put_off`]), and resets until
//! the next move are counted apart, so that whoever judges wear knows how many there were.
//!
//! Deliberately not here: moving, which is the target's (`level` of `zns` and `kv`), and which chunks may be moved.

use ocssd_base::usize_of;
use ocssd_ftl::ChunkIndex;
use std::collections::{BTreeSet, VecDeque};

/// Moves in the time in which one would do (chosen: moves take time, and more than one chunk lags).
const MOVES_PER_BOUND: u32 = 4;
/// Chunks are looked at when as many were reset as this part of them (chosen: a look costs a pass over all of them, and wear grows
/// by less than one reset each meanwhile).
const LOOK_PART: u32 = 16;

/// A chunk that lags, and whose it was when it was found: of `zns` a zone's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lagging<O> {
    /// The owner.
    pub owner: O,
    /// The chunk.
    pub chunk: ChunkIndex,
}

/// The wear of an instance's chunks.
#[derive(Clone, Debug)]
pub struct ChunkWear<O> {
    /// Resets a chunk may lag; `None`: as many as it likes.
    bound: Option<u32>,
    /// By chunk; empty without a bound.
    resets: Vec<u32>,
    most: u32,
    /// Resets since the last move, up to the interval, and since chunks were looked at.
    since: u32,
    since_look: u32,
    /// Those that were found, the least worn first.
    found: VecDeque<Lagging<O>>,
    /// Those that could not be read.
    stuck: BTreeSet<ChunkIndex>,
    /// A move was due and there was no room for it, nor was there since.
    is_put_off: bool,
    /// Resets while that was so.
    resets_put_off: u64,
}

impl<O: PartialEq> ChunkWear<O> {
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
            is_put_off: false,
            resets_put_off: 0,
        };
        // Power cuts must not put moves off for ever.
        (new.since, new.since_look) = (new.interval(), u32::MAX);
        new
    }

    /// The same counts, for which nothing is ever moved.
    pub fn counting(saved: &[u32], wear_index: &[u8]) -> Self {
        Self { bound: None, ..Self::new(Some(u32::MAX), saved, wear_index) }
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

    /// Resets the least worn chunk lags behind the most worn one; 0 if nothing is counted. Cost: a pass over the chunks.
    pub fn lag(&self) -> u32 {
        self.lag_from(ChunkIndex(0))
    }

    /// The same of the chunks from one on, where those before it are never counted.
    pub fn lag_from(&self, first: ChunkIndex) -> u32 {
        let counted = self.resets.iter().skip(first.index());
        self.most - counted.copied().min().unwrap_or(self.most)
    }

    /// Counts as bytes, for a checkpoint: four for each chunk.
    pub fn encode(&self) -> Vec<u8> {
        self.resets.iter().flat_map(|count| count.to_le_bytes()).collect()
    }

    /// A chunk was reset.
    pub fn on_reset(&mut self, chunk: ChunkIndex) {
        let Some(count) = self.resets.get_mut(chunk.index()) else { return };
        *count = count.saturating_add(1);
        self.most = self.most.max(*count);
        (self.since, self.since_look) =
            (self.since.saturating_add(1).min(self.bound.unwrap_or(1)), self.since_look.saturating_add(1));
        self.stuck.remove(&chunk);
        self.resets_put_off += u64::from(self.is_put_off);
        assert!(self.most >= self.resets(chunk), "chunk {} is more worn than the most worn one", chunk.0);
    }

    /// A move is due, and there is no room for it now.
    pub const fn put_off(&mut self) {
        self.is_put_off = true;
    }

    /// Resets since the mount while moves were put off.
    pub const fn resets_put_off(&self) -> u64 {
        self.resets_put_off
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

    /// The next chunk to be moved: of those found before, else of `chunks`, those that may be moved. It may have changed since
    /// it was found. Cost: as a rule none, and at times a pass over `chunks` and a sort.
    ///
    /// # Panics
    /// If none is due.
    pub fn next<I>(&mut self, chunks: impl FnOnce() -> I) -> Option<Lagging<O>>
    where
        I: Iterator<Item = Lagging<O>>,
    {
        assert!(self.is_due(), "a chunk is moved out of turn: {} resets since the last", self.since);
        if self.found.is_empty() {
            self.since_look = 0;
            let mut found: Vec<Lagging<O>> = chunks()
                .filter(|lagging| self.lags(lagging.chunk) && !self.stuck.contains(&lagging.chunk))
                .collect();
            found.sort_by_key(|lagging| (self.resets(lagging.chunk), lagging.chunk));
            found.dedup();
            self.found = found.into();
            self.is_put_off &= !self.found.is_empty();
        }
        self.found.pop_front()
    }

    /// A chunk is being moved.
    pub fn moving(&mut self) {
        assert!(self.since >= self.interval(), "two chunks are moved in one interval");
        (self.since, self.is_put_off) = (0, false);
    }

    /// A chunk cannot be read: it is not moved before it was reset.
    pub fn cannot_move(&mut self, chunk: ChunkIndex) {
        self.stuck.insert(chunk);
    }
}

/// The counts in the bytes of a checkpoint.
pub fn decode(bytes: &[u8]) -> Vec<u32> {
    let (counts, _) = bytes.as_chunks::<4>();
    counts.iter().map(|count| u32::from_le_bytes(*count)).collect()
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

    fn lagging(chunks: &[u32]) -> impl Iterator<Item = Lagging<u32>> + '_ {
        chunks.iter().map(|&index| Lagging { owner: index / 10, chunk: chunk(index) })
    }

    fn reset(wear: &mut ChunkWear<u32>, index: u32, times: u32) {
        (0..times).for_each(|_| wear.on_reset(chunk(index)));
    }

    #[test]
    fn counts_are_those_of_the_checkpoint_raised_by_what_the_drive_says() {
        let wear = ChunkWear::<u32>::new(Some(4), &[5, 9, 0, 3], &[1, 2, 3, 1]);
        assert_eq!([0, 1, 2, 3].map(|index| wear.resets(chunk(index))), [5, 9, 9, 3]);
        assert_eq!((wear.lag(), wear.interval()), (6, 1));
        assert_eq!(decode(&wear.encode()), [5, 9, 9, 3]);
        let fresh = ChunkWear::<u32>::new(Some(4), &[5, 9], &[0, 2, 3, 1]);
        assert_eq!(fresh.lag(), 0, "counts of another number of chunks say nothing");
        let none = ChunkWear::<u32>::new(None, &[5, 9], &[0, 200]);
        assert!(!none.is_due() && none.lag() == 0 && none.encode().is_empty());
        let mut counting = ChunkWear::<u32>::counting(&[5, 9, 0, 3], &[1, 2, 3, 1]);
        reset(&mut counting, 1, 100);
        assert_eq!((counting.resets(chunk(1)), counting.lag()), (109, 106));
        assert!(!counting.is_due() && !counting.lags(chunk(3)), "nothing is moved");
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

    #[test]
    fn resets_are_counted_apart_from_a_move_that_was_put_off_to_the_next() {
        let mut wear = ChunkWear::new(Some(4), &[0; 16], &[0; 16]);
        reset(&mut wear, 5, 9);
        assert_eq!(wear.resets_put_off(), 0, "nothing was put off");
        assert!(wear.next(|| lagging(&[0, 1])).is_some());
        wear.put_off();
        reset(&mut wear, 5, 3);
        assert_eq!(wear.resets_put_off(), 3);
        assert!(wear.next(|| lagging(&[])).is_some(), "chunk 1 was found before");
        wear.moving();
        reset(&mut wear, 5, 2);
        assert_eq!(wear.resets_put_off(), 3, "a move began");
        wear.put_off();
        assert_eq!(wear.next(|| lagging(&[])), None, "nothing lags any more");
        reset(&mut wear, 5, 2);
        assert_eq!(wear.resets_put_off(), 3, "and so nothing is put off");
    }

    /// The least worn of those that lag, found the long way.
    fn naive(resets: &[u32], bound: u32, may: impl Fn(u32) -> bool) -> Option<u32> {
        let most = *resets.iter().max().expect("there are chunks");
        let lagging = (0..).zip(resets).filter(|&(index, &count)| most - count > bound && may(index));
        lagging.min_by_key(|&(index, &count)| (count, index)).map(|(index, _)| index)
    }

    /// Hot chunks are reset one after the other while cold ones stay, each of which is moved when it is due. The spread is the
    /// bound, what is gained while every cold chunk is moved once, and what a look comes late.
    #[test]
    fn the_spread_stays_near_the_bound_and_moves_are_those_of_a_naive_model() {
        for seed in 0..60 {
            let mut prng = ocssd_base::Prng::new(seed);
            let mut draw = |below: u32| u32::try_from(prng.below(u64::from(below))).expect("small");
            let (chunks, bound) = (24 + draw(60), 1 + draw(20));
            let cold = 1 + draw(chunks - 8);
            let label = format!("seed {seed}: {cold} of {chunks} chunks are cold, bound {bound}");
            let count = usize_of(chunks);
            let mut wear = ChunkWear::new(Some(bound), &[], &vec![0; count]);
            let (mut resets, mut holds) = (vec![0; count], VecDeque::from_iter(cold..chunks));
            let (mut moves, mut worst) = (0, 0);
            for turn in 0..6_000 {
                let hot = holds.pop_front().expect("some are hot");
                reset(&mut wear, hot, 1);
                resets[usize_of(hot)] += 1;
                holds.push_back(hot);
                if wear.is_due() {
                    let was_found = wear.found.is_empty();
                    let is_cold = |index: u32| !holds.contains(&index);
                    let all: Vec<u32> = (0..chunks).filter(|&index| is_cold(index)).collect();
                    let next = wear.next(|| lagging(&all)).map(|found| found.chunk.0);
                    if was_found {
                        assert_eq!(next, naive(&resets, bound, is_cold), "{label}, turn {turn}");
                    }
                    if let Some(found) = next.filter(|&found| wear.lags(chunk(found)) && is_cold(found)) {
                        // What it held goes to the most worn, and it is hot from then on.
                        wear.moving();
                        let worn = holds.iter().copied().max_by_key(|&hot| (resets[usize_of(hot)], hot));
                        let to = worn.expect("some are hot");
                        holds.retain(|&hot| hot != to);
                        reset(&mut wear, found, 1);
                        resets[usize_of(found)] += 1;
                        holds.push_front(found);
                        moves += 1;
                    }
                }
                let most = resets.iter().max().expect("there are chunks");
                worst = (0..chunks).map(|index| most - resets[usize_of(index)]).max().unwrap_or(0).max(worst);
                assert_eq!(wear.lag(), most - resets.iter().min().expect("there are chunks"), "{label}");
            }
            let hot = chunks - cold;
            let gained = (cold * wear.interval()).div_ceil(hot) + (chunks / LOOK_PART).div_ceil(hot);
            assert!(moves > 0 && worst <= bound + gained, "{label}: {worst}, {moves} moves");
        }
    }
}
