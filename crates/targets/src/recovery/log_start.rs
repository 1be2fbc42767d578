//! Where in each chunk of the log recovery must begin to read.
//!
//! A chunk of the log is freed as a whole, so most of what lies in such chunks may be older than the checkpoint. Pages are
//! written to a chunk in the order of their numbers, but for those that were in flight together or were written again: numbers
//! go back by less than [`PAGES_AHEAD_MAX`], and so a chunk can be searched by halves for a page that is as much older than
//! the start. Deliberately not here: reading the pages (`found`).

use super::found::Known;
use super::media::Media;
use crate::journal::PageKind;
use crate::mount_error::MountError;
use ocssd_ftl::log::{Lsn, PAGES_AHEAD_MAX};
use ocssd_ftl::{ChunkIndex, Kind};
use ocssd_lightnvm::Ppa;
use std::collections::BTreeMap;

/// Pages of a chunk: those before `first` are not needed, those from `end` on were not looked at or are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: u32,
    end: u32,
}

impl Span {
    /// The page to look at next, while it is not known where to begin.
    const fn middle(self) -> Option<u32> {
        if self.first < self.end { Some(self.first + (self.end - self.first) / 2) } else { None }
    }

    /// A page is old: so are all before it; or it is not, or cannot be read.
    fn saw(&mut self, page: u32, is_old: bool) {
        assert!(self.first <= page && page < self.end, "page {page} of {self:?}");
        if is_old {
            self.first = page + 1;
        } else {
            self.end = page;
        }
    }
}

/// The first sectors of all pages of the log that may be `start` or younger, in the order in which all units are busy.
///
/// # Errors
/// If the drive fails.
pub fn log_pages_from(
    media: &mut Media<'_>,
    known: &Known<'_>,
    start: Lsn,
) -> Result<Vec<(ChunkIndex, Ppa)>, MountError> {
    let Known { geometry, shape, survey, .. } = known;
    let step = geometry.ws_min;
    let mut pages = survey.pages(geometry, shape, PageKind::Log, step);
    let old_below = start.0.saturating_sub(u64::from(PAGES_AHEAD_MAX));
    if old_below == 0 {
        return Ok(pages);
    }
    let mut spans: BTreeMap<ChunkIndex, Span> = BTreeMap::new();
    for (chunk, ppa) in &pages {
        spans.entry(*chunk).or_insert(Span { first: 0, end: 0 }).end = ppa.sector / step + 1;
    }
    loop {
        let asked: Vec<(ChunkIndex, u32)> =
            spans.iter().filter_map(|(&chunk, span)| Some((chunk, span.middle()?))).collect();
        if asked.is_empty() {
            break;
        }
        let places: Vec<Ppa> =
            asked.iter().map(|&(chunk, page)| Ppa::new(shape.chunk_id(chunk), page * step)).collect();
        let tags = media.read_tags(&places)?;
        for ((chunk, page), tag) in asked.into_iter().zip(tags) {
            let is_old = tag.is_some_and(|tag| tag.kind == Kind::Log && tag.block < old_below);
            spans.get_mut(&chunk).expect("it was asked for").saw(page, is_old);
        }
    }
    assert!(spans.values().all(|span| span.first >= span.end), "a search of the log ended early");
    pages.retain(|(chunk, ppa)| ppa.sector / step >= spans[chunk].first);
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::{Prng, usize_of};

    /// Numbers as a chunk may have them: some pages later than their time, some that cannot be read.
    fn numbers(prng: &mut Prng) -> Vec<Option<u64>> {
        let mut durable = prng.below(50);
        let count = prng.below(90);
        let page = |_| {
            durable += prng.below(3);
            let number = durable + prng.below(u64::from(PAGES_AHEAD_MAX));
            (prng.below(10) > 0).then_some(number)
        };
        (0..count).map(page).collect()
    }

    #[test]
    fn a_page_that_is_needed_is_never_passed_over_and_few_are_read_in_vain() {
        let (mut needed, mut read) = (0, 0);
        for seed in 0..2_000 {
            let mut prng = Prng::new(seed);
            let numbers = numbers(&mut prng);
            let start = 16 + prng.below(150);
            let old_below = start - u64::from(PAGES_AHEAD_MAX);
            let end = u32::try_from(numbers.len()).expect("few");
            let mut span = Span { first: 0, end };
            while let Some(page) = span.middle() {
                span.saw(page, numbers[usize_of(page)].is_some_and(|number| number < old_below));
            }
            let passed = &numbers[..usize_of(span.first)];
            let is_needed = |number: &Option<u64>| number.is_some_and(|number| number >= start);
            assert!(!passed.iter().any(is_needed), "seed {seed}: {numbers:?} from {start} on: {span:?}");
            needed += numbers.iter().filter(|number| is_needed(number)).count();
            read += numbers.len() - passed.len();
        }
        assert!(needed > 10_000 && read < 3 * needed, "{needed} needed, {read} read");
    }
}
