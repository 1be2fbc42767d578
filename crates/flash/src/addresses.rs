//! The sectors a command names, as runs: neighbouring entries of one chunk taken together.
//!
//! Deliberately not here: whether they exist (`rules`).

use ocssd_lightnvm::Ppa;

/// The sectors of one command, typed or raw.
#[derive(Clone, Copy, Debug)]
pub enum AddressList<'a> {
    /// `count` sectors from `first` on.
    Run {
        /// The first.
        first: Ppa,
        /// How many.
        count: u32,
    },
    /// One entry per sector of a vector command, at most 64.
    List(&'a [Ppa]),
    /// One entry per sector of a scalar read whose addresses lie in several chunks, or one per chunk of a Dataset
    /// Management: may be longer than a vector command.
    Scattered(&'a [Ppa]),
}

/// Sectors that follow each other, and which entry of the command the first one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) entry: u32,
    pub(crate) first: Ppa,
    pub(crate) count: u32,
}

fn count_of(length: usize) -> u32 {
    u32::try_from(length).expect("a command names fewer than 2^32 sectors")
}

impl<'a> AddressList<'a> {
    /// How many sectors.
    #[must_use]
    pub fn count(&self) -> u32 {
        match self {
            Self::Run { count, .. } => *count,
            Self::List(list) | Self::Scattered(list) => count_of(list.len()),
        }
    }

    pub(crate) fn runs(&self) -> Runs<'a> {
        match *self {
            Self::Run { first, count } => {
                Runs { whole: Some(Run { entry: 0, first, count }), rest: &[], entry: 0 }
            }
            Self::List(list) | Self::Scattered(list) => Runs { whole: None, rest: list, entry: 0 },
        }
    }

    /// Each entry by itself.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Ppa> + 'a {
        self.runs().flat_map(|run| {
            (0..run.count).map(move |at| Ppa::new(run.first.chunk, run.first.sector.saturating_add(at)))
        })
    }
}

/// Iterator over the runs of a command.
pub(crate) struct Runs<'a> {
    whole: Option<Run>,
    rest: &'a [Ppa],
    entry: u32,
}

impl Iterator for Runs<'_> {
    type Item = Run;

    #[inline(always)]
    fn next(&mut self) -> Option<Run> {
        if let Some(whole) = self.whole.take() {
            return (whole.count > 0).then_some(whole);
        }
        let first = *self.rest.first()?;
        let follows = |pair: &[Ppa]| {
            pair[0].chunk == pair[1].chunk && pair[0].sector.checked_add(1) == Some(pair[1].sector)
        };
        let length = 1 + self.rest.windows(2).take_while(|pair| follows(pair)).count();
        let run = Run { entry: self.entry, first, count: count_of(length) };
        self.rest = &self.rest[length..];
        self.entry += run.count;
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_lightnvm::ChunkId;

    #[test]
    fn neighbours_of_one_chunk_are_one_run() {
        let at = |chunk, sector| Ppa::new(ChunkId(chunk), sector);
        let list = [at(1, 4), at(1, 5), at(2, 6), at(2, 5), at(1, 6)];
        let runs: Vec<_> =
            AddressList::List(&list).runs().map(|run| (run.entry, run.first, run.count)).collect();
        assert_eq!(runs, [(0, at(1, 4), 2), (2, at(2, 6), 1), (3, at(2, 5), 1), (4, at(1, 6), 1)]);
        let run = AddressList::Run { first: at(3, 0), count: 3 };
        assert_eq!(run.runs().count(), 1);
        assert_eq!(run.entries().collect::<Vec<_>>(), [at(3, 0), at(3, 1), at(3, 2)]);
    }
}
