//! Where the next I/O of a worker goes: its direction and length, and its place.
//!
//! Deliberately not here: when it may start, and what it costs (`worker`).

use super::sizes::Sizes;
use super::slots::Purpose;
use super::worker::{Drawn, Want, Worker};
use super::zones::{WriteStep, ZoneTable};
use crate::job::Operations;
use crate::results::Direction;
use ocssd_base::Nanos;

impl Worker {
    pub(super) fn draw(&mut self) -> Drawn {
        if let Some(drawn) = self.drawn {
            return drawn;
        }
        if let Some(&(block, count)) = self.to_write.front() {
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
        let drawn = Drawn { direction, count, block: None };
        self.drawn = Some(drawn);
        drawn
    }

    /// Where the drawn I/O goes. `None` if there is nothing it could do.
    pub(super) fn place(
        &mut self,
        id: u32,
        direction: Direction,
        count: u32,
        zones: Option<&mut ZoneTable>,
    ) -> Option<Want> {
        let request =
            |purpose, block, count| Some(Want::Request { purpose, block, count, intended: Nanos::ZERO });
        match (direction, zones) {
            (Direction::Write, Some(zones)) => {
                let draw = self.random.then_some(&mut self.prng);
                match zones.place_write(id, &mut self.open, count, self.plan.region, draw) {
                    WriteStep::Write { block, count } => request(Purpose::Write, block, count),
                    WriteStep::Reset { block } => request(Purpose::Reset, block, 0),
                    WriteStep::Blocked => Some(Want::Zone),
                    WriteStep::Gone => None,
                }
            }
            (Direction::Read, Some(zones)) if !self.read_anywhere => {
                let block = self.next_block(direction, count);
                match zones.place_read(block, count, self.plan.region, &mut self.prng) {
                    Some(block) => request(Purpose::Read, block, count),
                    None if self.operations == Operations::ReadWrite => {
                        // Nothing is readable yet: write instead, so that something will be.
                        let count =
                            self.plan.sizes.write.as_ref().map_or(count, |sizes| sizes.draw(&mut self.prng));
                        self.drawn = Some(Drawn { direction: Direction::Write, count, block: None });
                        self.place(id, Direction::Write, count, Some(zones))
                    }
                    None => None,
                }
            }
            (Direction::Read, _) => request(Purpose::Read, self.next_block(direction, count), count),
            (Direction::Write, None) => request(Purpose::Write, self.next_block(direction, count), count),
            (Direction::Trim, None) => request(Purpose::Trim, self.next_block(direction, count), count),
            (Direction::Trim, Some(_)) => unreachable!("the plan refuses trims of zones"),
        }
    }

    /// The block at which the next I/O of a direction lies within the region.
    fn next_block(&mut self, direction: Direction, count: u32) -> u64 {
        if self.strides.is_some() {
            return self.next_strided(direction, count);
        }
        let (offsets, align) = match direction {
            Direction::Read => (&mut self.reads, self.plan.align.read),
            Direction::Write => (&mut self.writes, self.plan.align.write),
            Direction::Trim => (&mut self.trims, self.plan.align.trim),
        };
        let align = u64::from(align);
        // Nearly every job has one block size and leaves nothing out: no division for those.
        let places = if u64::from(count) == align { 1 } else { u64::from(count).div_ceil(align) };
        let skip = if self.plan.skip_bytes == 0 { 0 } else { self.plan.skip_places(align) };
        let step = places + skip;
        let place = offsets.next(step, &mut self.prng).unwrap_or_else(|| {
            offsets.rewind(&mut self.prng);
            offsets.next(step, &mut self.prng).expect("a region has at least one place")
        });
        let last = self.plan.region.blocks() - u64::from(count);
        self.plan.region.first + (place * align).min(last)
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
}
