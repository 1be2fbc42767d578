//! A region as files of the same length, side by side: fio's `nrfiles`, `openfiles` and `file_service_type`.
//!
//! ```text
//!   region  |  file 0  |  file 1  |  file 2  |rest|     each with a walk, or a random map, of its own
//! ```
//! A file that was gone through is closed, and the next that was not open yet is opened; when all were, all are opened anew.
//! Source: HOWTO, "Target file/device". Unlike fio's, the files share one random map or walk a direction each, as a
//! job's region does. Deliberately not here: names, which the drive does not have.

use super::offsets::Offsets;
use super::region::Region;
use crate::job::{FileOrder, FileSet};
use crate::results::Direction;
use ocssd_base::Prng;

/// How a region is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilePlan {
    set: FileSet,
    /// Length of each file.
    pub(super) blocks: u64,
}

impl FilePlan {
    /// The files of a region, each of whole I/Os of `largest` blocks or more; `None` for a single one.
    ///
    /// # Errors
    /// If a file would be shorter than one I/O, or zones divide the region already.
    pub(super) fn new(
        set: FileSet,
        region: Region,
        largest: u32,
        is_zoned: bool,
    ) -> Result<Option<Self>, String> {
        if set.count == 1 {
            return Ok(None);
        }
        if is_zoned {
            return Err(
                "has several files, but its target's zones divide it already; leave nrfiles out".to_owned()
            );
        }
        let largest = u64::from(largest);
        let blocks = region.blocks() / u64::from(set.count) / largest * largest;
        if blocks == 0 {
            return Err(format!(
                "has {} files in a region of {} target blocks, so that none holds one I/O of {largest}; lower nrfiles or raise size",
                set.count,
                region.blocks()
            ));
        }
        Ok(Some(Self { set, blocks }))
    }

    /// Blocks of all files.
    pub(super) const fn all_blocks(&self) -> u64 {
        self.blocks * self.set.count as u64
    }
}

/// The next I/O, as a file must know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileIo {
    pub(super) direction: Direction,
    /// Blocks that offsets are multiples of.
    pub(super) align: u64,
    /// Multiples of that which it takes, with what is left out behind it.
    pub(super) step: u64,
    /// Its blocks.
    pub(super) count: u32,
}

/// Where a worker is in its files.
#[derive(Clone, Debug)]
pub(super) struct Files {
    plan: FilePlan,
    /// Reads, writes and trims of each file.
    places: Vec<[Offsets; 3]>,
    /// Files in use.
    open: Vec<u32>,
    /// The file that is opened next.
    unopened: u32,
    /// Which of the open ones is in use, and for how many I/Os more.
    current: usize,
    left: u32,
}

impl Files {
    /// All files at their start; `places` makes the three of one.
    pub(super) fn new(plan: FilePlan, mut places: impl FnMut() -> [Offsets; 3]) -> Self {
        let open = (0..plan.set.open).collect();
        let places = (0..plan.set.count).map(|_| places()).collect();
        let left = plan.set.ios_per_file;
        Self { plan, places, open, unopened: plan.set.open, current: 0, left }
    }

    /// Where the next I/O lies, from the region's start.
    pub(super) fn next(&mut self, io: FileIo, prng: &mut Prng) -> u64 {
        if self.left == 0 {
            self.choose(prng);
        }
        loop {
            let file = self.open[self.current];
            let at = usize::try_from(file).expect("32 bits fit an index");
            let place = self.places[at][usize::from(io.direction.number())].next(io.step, prng);
            if let Some(place) = place {
                self.left -= 1;
                let last = self.plan.blocks - u64::from(io.count);
                return u64::from(file) * self.plan.blocks + (place * io.align).min(last);
            }
            self.close(at, prng);
        }
    }

    /// Goes to the next open file.
    fn choose(&mut self, prng: &mut Prng) {
        self.left = self.plan.set.ios_per_file;
        self.current = match self.plan.set.order {
            FileOrder::RoundRobin => (self.current + 1) % self.open.len(),
            FileOrder::Random => {
                let open = u64::try_from(self.open.len()).expect("a length fits 64 bits");
                usize::try_from(prng.below(open)).expect("below a length")
            }
            FileOrder::Sequential => self.current,
        };
    }

    /// The current file was gone through: another takes its place.
    fn close(&mut self, at: usize, prng: &mut Prng) {
        for offsets in &mut self.places[at] {
            offsets.rewind(prng);
        }
        if self.unopened < self.plan.set.count {
            self.open[self.current] = self.unopened;
            self.unopened += 1;
        } else {
            self.open.remove(self.current);
            self.current = if self.current == self.open.len() { 0 } else { self.current };
        }
        if self.open.is_empty() {
            self.open.extend(0..self.plan.set.open);
            (self.unopened, self.current) = (self.plan.set.open, 0);
        }
        self.left = self.plan.set.ios_per_file;
        assert!(self.current < self.open.len(), "one file is in use");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: FileIo = FileIo { direction: Direction::Read, align: 1, step: 1, count: 1 };

    fn files(count: u32, open: u32, order: FileOrder, ios_per_file: u32) -> Files {
        let set = FileSet { count, open, order, ios_per_file };
        let plan =
            FilePlan::new(set, Region { first: 0, end: 12 }, 1, false).expect("it fits").expect("several");
        let blocks = plan.blocks;
        Files::new(plan, || [0, 1, 2].map(|_| Offsets::sequential(blocks)))
    }

    fn walk(mut files: Files, ios: usize) -> Vec<u64> {
        let mut prng = Prng::new(7);
        (0..ios).map(|_| files.next(READ, &mut prng)).collect()
    }

    #[test]
    fn files_are_served_in_turns_and_started_again_when_all_are_done() {
        let round = [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11];
        let twice = [round, round].concat();
        assert_eq!(walk(files(3, 3, FileOrder::RoundRobin, 1), 24), twice);
        assert_eq!(walk(files(3, 3, FileOrder::RoundRobin, 2), 12), [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11]);
        assert_eq!(walk(files(3, 3, FileOrder::Sequential, 1), 13), (0..12).chain([0]).collect::<Vec<_>>());
    }

    #[test]
    fn no_more_files_than_asked_are_open_at_a_time() {
        assert_eq!(
            walk(files(3, 2, FileOrder::RoundRobin, 1), 13),
            [0, 4, 1, 5, 2, 6, 3, 7, 8, 9, 10, 11, 0]
        );
        assert_eq!(walk(files(3, 1, FileOrder::RoundRobin, 1), 12), (0..12).collect::<Vec<_>>());
    }

    #[test]
    fn each_block_comes_once_in_any_order() {
        for seed in 0..20 {
            for (order, ios) in [(FileOrder::Random, 1), (FileOrder::Random, 3), (FileOrder::RoundRobin, 5)] {
                let (mut files, mut prng) = (files(4, 3, order, ios), Prng::new(seed));
                for pass in 0..3 {
                    let mut seen: Vec<u64> = (0..12).map(|_| files.next(READ, &mut prng)).collect();
                    seen.sort_unstable();
                    assert_eq!(
                        seen,
                        (0..12).collect::<Vec<_>>(),
                        "seed {seed}, {order:?}:{ios}, pass {pass}"
                    );
                }
            }
        }
    }

    #[test]
    fn files_hold_whole_ios_and_at_least_one() {
        let set = |count| FileSet { count, open: count, ..FileSet::default() };
        let region = Region { first: 5, end: 55 };
        let plan = FilePlan::new(set(3), region, 8, false).expect("it fits").expect("several");
        assert_eq!((plan.blocks, plan.all_blocks()), (16, 48));
        assert_eq!(FilePlan::new(set(1), region, 64, true), Ok(None));
        let refused = FilePlan::new(set(7), region, 8, false).expect_err("seven files of seven blocks");
        assert!(refused.contains("lower nrfiles or raise size"), "{refused}");
        let refused = FilePlan::new(set(3), region, 8, true).expect_err("zones and files");
        assert!(refused.contains("leave nrfiles out"), "{refused}");
    }
}
