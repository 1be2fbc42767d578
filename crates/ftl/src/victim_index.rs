//! Which chunks hold the least that is needed, group by group, without looking at all of them.
//!
//! Chunks that may be emptied lie in buckets by how much of them is needed; a change moves one to another bucket only if it
//! leaves its own. So a greedy choice looks at one bucket, where a search looks at every chunk: on a drive of 19 200 chunks the
//! search was half of the cost of a small write. Buckets are ranges in order, so the least of the lowest bucket is the least of
//! all. Memory: 16 bytes a chunk, and 256 heads a group.
//!
//! Deliberately not here: which of the least is chosen (`victim`), how much is needed (`valid_map`, or bytes of a target).

use crate::ChunkIndex;
use ocssd_base::usize_of;

/// Buckets of a group (chosen: one of a chunk of 4096 sectors is 16 sectors wide, so few chunks share the lowest).
const BUCKETS: u32 = 256;

/// No chunk.
const NONE: u32 = u32::MAX;

/// A chunk's place in the list of its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    group: u32,
    /// [`NONE`] of a chunk that is not listed.
    bucket: u32,
    before: u32,
    after: u32,
}

const UNLISTED: Link = Link { group: 0, bucket: NONE, before: NONE, after: NONE };

/// Chunks by how much of them is needed.
#[derive(Clone, Debug)]
pub struct VictimIndex {
    /// How much a chunk has in all.
    per_chunk: u64,
    links: Vec<Link>,
    /// The first chunk of each bucket, group by group.
    heads: Vec<u32>,
    /// By group: no bucket below this one has a chunk.
    lowest: Vec<u32>,
}

impl VictimIndex {
    /// No chunk of `chunks` in `groups` groups is listed; each has `per_chunk` of something in all.
    ///
    /// # Panics
    /// If chunks have nothing.
    #[must_use]
    pub fn new(groups: u32, chunks: u32, per_chunk: u64) -> Self {
        assert!(per_chunk > 0, "chunks of nothing");
        assert!(chunks < NONE && groups > 0, "{chunks} chunks in {groups} groups");
        Self {
            per_chunk,
            links: vec![UNLISTED; usize_of(chunks)],
            heads: vec![NONE; usize_of(groups) * usize_of(BUCKETS)],
            lowest: vec![BUCKETS; usize_of(groups)],
        }
    }

    /// The bucket of chunks of which so much is needed: in order.
    fn bucket_of(&self, needed: u64) -> u32 {
        assert!(needed <= self.per_chunk, "{needed} of {} are needed", self.per_chunk);
        let bucket = u128::from(needed) * u128::from(BUCKETS) / (u128::from(self.per_chunk) + 1);
        u32::try_from(bucket).expect("below the number of buckets")
    }

    fn head(group: u32, bucket: u32) -> usize {
        usize_of(group) * usize_of(BUCKETS) + usize_of(bucket)
    }

    /// True of a chunk that is listed.
    #[must_use]
    pub fn contains(&self, chunk: ChunkIndex) -> bool {
        self.links[chunk.index()].bucket != NONE
    }

    /// A chunk of a group may be emptied from now on; so much of it is needed.
    ///
    /// # Panics
    /// If it is listed already.
    pub fn insert(&mut self, chunk: ChunkIndex, group: u32, needed: u64) {
        assert!(!self.contains(chunk), "chunk {} is listed twice", chunk.0);
        self.link(chunk, group, self.bucket_of(needed));
    }

    /// A chunk may not be emptied any more. Nothing happens to one that is not listed.
    pub fn remove(&mut self, chunk: ChunkIndex) {
        if self.contains(chunk) {
            self.unlink(chunk);
            self.links[chunk.index()] = UNLISTED;
        }
    }

    /// So much of a chunk is needed now. Nothing happens to one that is not listed.
    #[inline]
    pub fn update(&mut self, chunk: ChunkIndex, needed: u64) {
        let Link { group, bucket, .. } = self.links[chunk.index()];
        if bucket == NONE {
            return;
        }
        let now = self.bucket_of(needed);
        if now != bucket {
            self.unlink(chunk);
            self.link(chunk, group, now);
        }
    }

    fn link(&mut self, chunk: ChunkIndex, group: u32, bucket: u32) {
        let head = &mut self.heads[Self::head(group, bucket)];
        let after = std::mem::replace(head, chunk.0);
        if after != NONE {
            assert_eq!(self.links[usize_of(after)].before, NONE, "chunk {after} was not the first");
            self.links[usize_of(after)].before = chunk.0;
        }
        self.links[chunk.index()] = Link { group, bucket, before: NONE, after };
        let lowest = &mut self.lowest[usize_of(group)];
        *lowest = (*lowest).min(bucket);
    }

    fn unlink(&mut self, chunk: ChunkIndex) {
        let Link { group, bucket, before, after } = self.links[chunk.index()];
        if before == NONE {
            let head = &mut self.heads[Self::head(group, bucket)];
            assert_eq!(*head, chunk.0, "chunk {} is in no list", chunk.0);
            *head = after;
        } else {
            self.links[usize_of(before)].after = after;
        }
        if after != NONE {
            self.links[usize_of(after)].before = before;
        }
    }

    /// Appends to `to` the chunks of a group for which `may` is true in the lowest bucket that has any: the one of which the
    /// least is needed is among them. Cost: the chunks of that bucket, and those below for which `may` is false.
    pub fn fewest(&mut self, group: u32, may: impl Fn(ChunkIndex) -> bool, to: &mut Vec<ChunkIndex>) {
        let found = to.len();
        self.skip_empty(group);
        for bucket in self.lowest[usize_of(group)]..BUCKETS {
            let mut at = self.heads[Self::head(group, bucket)];
            while at != NONE {
                let link = self.links[usize_of(at)];
                assert_eq!((link.group, link.bucket), (group, bucket), "chunk {at} is in a wrong list");
                if may(ChunkIndex(at)) {
                    to.push(ChunkIndex(at));
                }
                at = link.after;
            }
            if to.len() > found {
                return;
            }
        }
    }

    /// Passes over buckets that are empty, once for all.
    fn skip_empty(&mut self, group: u32) {
        let lowest = &mut self.lowest[usize_of(group)];
        while *lowest < BUCKETS && self.heads[Self::head(group, *lowest)] == NONE {
            *lowest += 1;
        }
    }

    /// Asserts that chunks lie in the buckets that `needed` wants them in, and those only for which it says something.
    pub fn check(&self, needed: impl Fn(ChunkIndex) -> Option<(u32, u64)>) {
        for (at, link) in (0..).zip(&self.links) {
            let is = (link.bucket != NONE).then_some((link.group, link.bucket));
            let wanted = needed(ChunkIndex(at)).map(|(group, needed)| (group, self.bucket_of(needed)));
            assert_eq!(is, wanted, "chunk {at} is in a wrong list");
            if let Some((group, bucket)) = is {
                assert!(bucket >= self.lowest[usize_of(group)], "chunk {at} is passed over");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use std::collections::BTreeMap;

    /// What is listed, by chunk: its group, and how much of it is needed.
    type Model = BTreeMap<u32, (u32, u64)>;

    fn fewest_of(model: &Model, group: u32, may: impl Fn(u32) -> bool) -> Option<u64> {
        let of_group = model.iter().filter(|&(&chunk, &(of, _))| of == group && may(chunk));
        of_group.map(|(_, &(_, needed))| needed).min()
    }

    #[test]
    fn the_least_is_always_among_those_named() {
        for seed in 0..60 {
            let mut prng = Prng::new(seed);
            let (groups, chunks) = (1 + prng.below(3), 1 + prng.below(40));
            let per_chunk = [1, 2, 7, 255, 256, 257, 4_096, 1 << 40][usize::try_from(prng.below(8)).unwrap()];
            let [groups, chunks] = [groups, chunks].map(|number| u32::try_from(number).unwrap());
            let mut index = VictimIndex::new(groups, chunks, per_chunk);
            let mut model = Model::new();
            for step in 0..400 {
                let chunk = u32::try_from(prng.below(u64::from(chunks))).unwrap();
                let group = chunk % groups;
                let needed = prng.below(per_chunk + 1);
                match prng.below(3) {
                    0 => {
                        index.remove(ChunkIndex(chunk));
                        model.remove(&chunk);
                    }
                    1 if !model.contains_key(&chunk) => {
                        index.insert(ChunkIndex(chunk), group, needed);
                        model.insert(chunk, (group, needed));
                    }
                    _ => {
                        index.update(ChunkIndex(chunk), needed);
                        model.entry(chunk).and_modify(|entry| entry.1 = needed);
                    }
                }
                index.check(|chunk| model.get(&chunk.0).copied());
                let barred = prng.below(3);
                let may = |chunk: u32| barred == 0 || u64::from(chunk) % 3 != barred;
                for group in 0..groups {
                    let mut named = vec![ChunkIndex(7)];
                    index.fewest(group, |chunk| may(chunk.0), &mut named);
                    assert!(named.remove(0) == ChunkIndex(7), "what was named before is gone");
                    assert!(named.iter().all(|chunk| model[&chunk.0].0 == group && may(chunk.0)));
                    let least = named.iter().map(|chunk| model[&chunk.0].1).min();
                    assert_eq!(least, fewest_of(&model, group, may), "seed {seed}, step {step}");
                }
            }
        }
    }

    #[test]
    fn only_one_bucket_is_named() {
        let mut index = VictimIndex::new(1, 100, 1_000);
        (0..100).for_each(|chunk| index.insert(ChunkIndex(chunk), 0, u64::from(chunk) * 10));
        let mut named = Vec::new();
        index.fewest(0, |_| true, &mut named);
        assert_eq!(named, [ChunkIndex(0)]);
        named.clear();
        index.fewest(0, |chunk| chunk.0 > 50, &mut named);
        assert_eq!(named, [ChunkIndex(51)]);
        index.update(ChunkIndex(99), 3);
        index.remove(ChunkIndex(0));
        named.clear();
        index.fewest(0, |_| true, &mut named);
        assert_eq!(named, [ChunkIndex(99)]);
    }
}
