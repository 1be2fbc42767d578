//! Which compaction is due: RocksDB's levelled style.
//!
//! A level's score is its bytes over what it may have; level 0's is its tables over the trigger, if that is more. Of the level
//! with the highest score the largest table is taken that nothing prevents (`kByCompensatedSize`), of level 0 the oldest, with
//! all that overlap it there. It meets all tables it overlaps one level below, and if there are none it moves. One compaction
//! at a time leaves level 0. Deliberately not here, and in RocksDB: inputs that grow for free, and limits of the overlap with
//! the level below the next.

use super::options::LsmOptions;
use super::tree::{Span, Tree};
use std::cmp::Reverse;

/// A compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pick {
    /// Tables of the level.
    pub(super) from: Vec<u64>,
    /// Tables of the level below.
    pub(super) into: Vec<u64>,
    /// The level below.
    pub(super) level: usize,
    pub(super) smallest: u64,
    pub(super) largest: u64,
}

impl Pick {
    /// They overlap nothing: their level changes, and nothing is read or written.
    pub(super) fn is_move(&self) -> bool {
        self.into.is_empty() && self.from.len() == 1
    }

    pub(super) const fn span(&self) -> Span {
        Span { level: self.level, smallest: self.smallest, largest: self.largest }
    }
}

/// Over as much as it may have, in 1,024ths.
fn score(tree: &Tree, level: usize, options: &LsmOptions) -> u64 {
    let free = tree.levels[level].iter().filter(|name| !tree.tables[name].is_taken);
    let (mut count, mut bytes) = (0, 0);
    for name in free {
        count += 1;
        bytes += tree.tables[name].bytes;
    }
    if level > 0 {
        return bytes.saturating_mul(1_024) / options.level_bytes_max(level);
    }
    let by_count = count * 1_024 / options.level0_trigger as u64;
    by_count.max(bytes.saturating_mul(1_024) / options.level_base_bytes)
}

/// The compaction that is most needed and can begin.
pub(super) fn pick(tree: &Tree, options: &LsmOptions) -> Option<Pick> {
    let last = tree.levels.len() - 1;
    let mut scores: Vec<(u64, usize)> = (0..last).map(|level| (score(tree, level, options), level)).collect();
    scores.sort_by_key(|&(score, level)| (Reverse(score), level));
    let due = scores.into_iter().filter(|&(score, _)| score >= 1_024);
    due.filter_map(|(_, level)| pick_of(tree, level)).next()
}

fn pick_of(tree: &Tree, level: usize) -> Option<Pick> {
    if level == 0 {
        // Outputs of one would overlap those of another.
        if tree.levels[0].iter().any(|name| tree.tables[name].is_taken) {
            return None;
        }
        return with_overlaps(tree, 0, overlapping_level0(tree));
    }
    let mut names = tree.levels[level].clone();
    names.retain(|name| !tree.tables[name].is_taken);
    names.sort_by_key(|name| (Reverse(tree.tables[name].bytes), *name));
    names.into_iter().find_map(|name| with_overlaps(tree, level, vec![name]))
}

/// The oldest table of level 0, and all that overlap it, or one of them.
fn overlapping_level0(tree: &Tree) -> Vec<u64> {
    let mut rest = tree.levels[0].clone();
    let mut taken: Vec<u64> = rest.pop().into_iter().collect();
    let mut grows = true;
    while std::mem::take(&mut grows) {
        let (smallest, largest) = span(tree, &taken);
        rest.retain(|&name| {
            let overlaps = tree.run(name).has_in(smallest, largest);
            if overlaps {
                taken.push(name);
                grows = true;
            }
            !overlaps
        });
    }
    taken
}

fn span(tree: &Tree, names: &[u64]) -> (u64, u64) {
    let smallest = names.iter().map(|&name| tree.run(name).smallest()).min();
    let largest = names.iter().map(|&name| tree.run(name).largest()).max();
    smallest.zip(largest).expect("a compaction has an input")
}

/// With what they overlap one level below; none, if somebody else is at it.
fn with_overlaps(tree: &Tree, level: usize, from: Vec<u64>) -> Option<Pick> {
    if from.is_empty() {
        return None;
    }
    let (smallest, largest) = span(tree, &from);
    let below = level + 1;
    let into = tree.levels[below].iter().copied();
    let into: Vec<u64> = into.filter(|&name| tree.run(name).has_in(smallest, largest)).collect();
    let (all_smallest, all_largest) = span(tree, &[from.as_slice(), &into].concat());
    let meets =
        |other: &Span| other.level == below && other.smallest <= all_largest && all_smallest <= other.largest;
    let is_free = !into.iter().any(|name| tree.tables[name].is_taken) && !tree.running.values().any(meets);
    is_free.then_some(Pick { from, into, level: below, smallest: all_smallest, largest: all_largest })
}

/// Bytes that compactions have yet to read until no level is too large, as RocksDB estimates them.
pub(super) fn pending_bytes(tree: &Tree, options: &LsmOptions) -> u64 {
    let level0 = tree.level_bytes(0);
    let is_due = tree.levels[0].len() >= options.level0_trigger || level0 >= options.level_base_bytes;
    let mut moving = if is_due { level0 } else { 0 };
    let mut pending = if is_due { level0 + tree.level_bytes(1) } else { 0 };
    for level in 1..tree.levels.len() - 1 {
        let size = tree.level_bytes(level) + moving;
        moving = size.saturating_sub(options.level_bytes_max(level));
        let below = tree.level_bytes(level + 1);
        if moving > 0 && below > 0 {
            // Each byte that moves meets as many of the level below as there are for it.
            let met = u128::from(moving) * u128::from(below) / u128::from(size);
            pending += moving + u64::try_from(met).expect("no more than the level below");
        }
    }
    pending
}
