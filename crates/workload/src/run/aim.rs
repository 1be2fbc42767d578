//! Where the next I/O of a worker goes: its direction and length, and its place.
//!
//! Deliberately not here: when it may start, and what it costs (`worker`).

use super::files::FileIo;
use super::sizes::Sizes;
use super::slots::Purpose;
use super::worker::{Drawn, Want, Worker};
use super::worker_profile::{Profile, WorkerProfile};
use super::zones::{WriteStep, ZoneTable};
use crate::job::Operations;
use crate::results::Direction;
use ocssd_base::Nanos;

/// A request whose time the caller knows.
const fn request(purpose: Purpose, block: u64, count: u32) -> Option<Want> {
    Some(Want::Request { purpose, block, count, intended: Nanos::ZERO })
}

impl Worker {
    /// What the next I/O is.
    #[inline(always)]
    pub(super) fn draw<P: Profile>(&mut self) -> Drawn {
        if P::OPTIONS
            && let Some(&(block, count)) = self.to_write.front()
        {
            return Drawn { direction: Direction::Write, count, block: Some(block) };
        }
        let direction = match self.operations {
            Operations::Read => Direction::Read,
            Operations::Write => Direction::Write,
            Operations::Trim | Operations::TrimWrite => Direction::Trim,
            Operations::ReadWrite if self.prng.below(100) < u64::from(self.read_percent) => Direction::Read,
            Operations::ReadWrite => Direction::Write,
        };
        let sizes = match direction {
            Direction::Read => &self.plan.sizes.read,
            Direction::Write => &self.plan.sizes.write,
            Direction::Trim => &self.plan.sizes.trim,
        };
        let count = sizes.as_ref().map_or(1, |sizes: &Sizes| sizes.draw(&mut self.prng));
        Drawn { direction, count, block: None }
    }

    /// Where the drawn I/O goes. `None` if there is nothing it could do. A read that finds nothing becomes a write, if the
    /// job writes.
    #[inline(always)]
    pub(super) fn place<P: Profile>(
        &mut self,
        id: u32,
        drawn: &mut Drawn,
        zones: Option<&mut ZoneTable>,
    ) -> Option<Want> {
        let Drawn { direction, count, .. } = *drawn;
        match (direction, zones) {
            (Direction::Write, Some(zones)) => self.place_write(id, count, zones),
            (Direction::Read, Some(zones)) if !self.read_anywhere => {
                let block = self.next_block::<P>(direction, count);
                match zones.place_read(block, count, self.plan.region, &mut self.prng) {
                    Some(block) => request(Purpose::Read, block, count),
                    None if self.operations == Operations::ReadWrite => {
                        // Nothing is readable yet: write instead, so that something will be.
                        let count =
                            self.plan.sizes.write.as_ref().map_or(count, |sizes| sizes.draw(&mut self.prng));
                        *drawn = Drawn { direction: Direction::Write, count, block: None };
                        self.place_write(id, count, zones)
                    }
                    None => None,
                }
            }
            (Direction::Trim, Some(_)) => unreachable!("the plan refuses trims of zones"),
            (direction, _) => {
                let purpose = match direction {
                    Direction::Read => Purpose::Read,
                    Direction::Write => Purpose::Write,
                    Direction::Trim => Purpose::Trim,
                };
                request(purpose, self.next_block::<P>(direction, count), count)
            }
        }
    }

    fn place_write(&mut self, id: u32, count: u32, zones: &mut ZoneTable) -> Option<Want> {
        let draw = self.random.then_some(&mut self.prng);
        match zones.place_write(id, &mut self.open, count, self.plan.region, draw) {
            WriteStep::Write { block, count } => request(Purpose::Write, block, count),
            WriteStep::Reset { block } => request(Purpose::Reset, block, 0),
            WriteStep::Blocked => Some(Want::Zone),
            WriteStep::Gone => None,
        }
    }

    /// The block at which the next I/O of a direction lies within the region.
    #[inline(always)]
    fn next_block<P: Profile>(&mut self, direction: Direction, count: u32) -> u64 {
        if P::OPTIONS && self.strides.is_some() {
            return self.next_strided(direction, count);
        }
        if P::OPTIONS && self.files.is_some() {
            return self.next_in_files(direction, count);
        }
        let (offsets, align) = match direction {
            Direction::Read => (&mut self.reads, self.plan.align.read),
            Direction::Write => (&mut self.writes, self.plan.align.write),
            Direction::Trim => (&mut self.trims, self.plan.align.trim),
        };
        let align = u64::from(align);
        // Nearly every job has one block size and leaves nothing out: no division for those.
        let places = if u64::from(count) == align { 1 } else { u64::from(count).div_ceil(align) };
        let skip = if !P::OPTIONS || self.plan.skip_bytes == 0 { 0 } else { self.plan.skip_places(align) };
        let step = places + skip;
        let place = offsets.next(step, &mut self.prng).unwrap_or_else(|| {
            offsets.rewind(&mut self.prng);
            offsets.next(step, &mut self.prng).expect("a region has at least one place")
        });
        let last = self.plan.region.blocks() - u64::from(count);
        self.plan.region.first + (place * align).min(last)
    }

    /// Fills `ahead` with the blocks of the next I/Os, and returns how many it could: of jobs without options that only read
    /// or only write, at random.
    pub(super) fn blocks_ahead(&self, ahead: &mut [u64]) -> usize {
        let (offsets, align) = match self.operations {
            _ if self.profile == WorkerProfile::Any => return 0,
            Operations::Read => (&self.reads, self.plan.align.read),
            Operations::Write => (&self.writes, self.plan.align.write),
            _ => return 0,
        };
        let count = offsets.ahead(&self.prng, ahead);
        for place in &mut ahead[..count] {
            *place = self.plan.region.first + *place * u64::from(align);
        }
        count
    }

    /// As [`Self::next_block`], in the part of the region whose turn it is.
    fn next_strided(&mut self, direction: Direction, count: u32) -> u64 {
        let strides = self.strides.as_mut().expect("only asked of a worker with strides");
        if strides.advance(count) {
            for offsets in [&mut self.reads, &mut self.writes, &mut self.trims] {
                offsets.rewind(&mut self.prng);
            }
        }
        let (offsets, align) = match direction {
            Direction::Read => (&mut self.reads, self.plan.align.read),
            Direction::Write => (&mut self.writes, self.plan.align.write),
            Direction::Trim => (&mut self.trims, self.plan.align.trim),
        };
        let align = u64::from(align);
        let step = u64::from(count).div_ceil(align) + self.plan.skip_places(align);
        self.plan.region.first + strides.place(offsets, align, step, count, &mut self.prng)
    }

    /// As [`Self::next_block`], in the file whose turn it is.
    fn next_in_files(&mut self, direction: Direction, count: u32) -> u64 {
        let align = u64::from(match direction {
            Direction::Read => self.plan.align.read,
            Direction::Write => self.plan.align.write,
            Direction::Trim => self.plan.align.trim,
        });
        let step = u64::from(count).div_ceil(align) + self.plan.skip_places(align);
        let files = self.files.as_mut().expect("only asked of a worker with files");
        self.plan.region.first + files.next(FileIo { direction, align, step, count }, &mut self.prng)
    }
}
