//! Where copies of log pages lie that the power may take: the end of each chunk of the log that is written.
//!
//! A program that the power ends may take what was programmed before it in its chunk along, for they share their cells. So a page
//! that is durable in two copies is lost with both if programs behind both are cut. Here is kept which page lies where within
//! reach of such a loss, and a place is refused while a program behind another copy is in flight. Deliberately not here: which
//! chunks there are (`AppendPoint`), what was lost (recovery).

use ocssd_ftl::log::Lsn;
use ocssd_ftl::{Append, ChunkIndex};
use std::collections::{BTreeMap, VecDeque};

/// A copy of a page at the end of a chunk.
#[derive(Clone, Copy, Debug)]
struct Copy {
    /// `None` of pages that were there when the chunk was gone on with: each may have its other copy in any of these chunks.
    lsn: Option<Lsn>,
    sector: u32,
    end: u32,
    is_in_flight: bool,
}

/// The copies within reach of a loss.
#[derive(Clone, Debug)]
pub struct LogPlaces {
    /// Sectors before a torn program that may be lost with it.
    reach: u32,
    /// By chunk, in order of sectors.
    ends: BTreeMap<ChunkIndex, VecDeque<Copy>>,
}

impl LogPlaces {
    /// No chunk is written; `reach` is in sectors.
    pub const fn new(reach: u32) -> Self {
        Self { reach, ends: BTreeMap::new() }
    }

    /// A chunk is gone on with behind `pointer`; what is before may have its other copies in others that are.
    pub fn adopted(&mut self, chunk: ChunkIndex, pointer: u32) {
        let found = Copy { lsn: None, sector: 0, end: pointer, is_in_flight: false };
        let before = self.ends.insert(chunk, VecDeque::from([found]));
        assert!(before.is_none(), "chunk {} is gone on with twice", chunk.0);
    }

    /// A copy of a page is written to `at`.
    pub fn given(&mut self, lsn: Lsn, at: Append, sectors: u32) {
        let end = self.ends.entry(at.chunk).or_default();
        assert!(end.back().is_none_or(|copy| copy.end <= at.sector), "pages of the log overlap at {at:?}");
        end.push_back(Copy {
            lsn: Some(lsn),
            sector: at.sector,
            end: at.sector + sectors,
            is_in_flight: true,
        });
    }

    /// A write is over.
    pub fn ended(&mut self, at: Append, is_written: bool) {
        let end = self.ends.get_mut(&at.chunk).expect("a page ends in a chunk of the log");
        let index = end.iter().position(|copy| copy.sector == at.sector && copy.is_in_flight);
        let index = index.expect("a page of the log ends once");
        if is_written {
            end[index].is_in_flight = false;
        } else {
            end.remove(index);
        }
        let Some(last) = end.back().map(|copy| copy.end) else { return };
        let exposed = end.iter().find(|copy| copy.is_in_flight).map_or(last, |copy| copy.sector);
        while end.pop_front_if(|copy| !copy.is_in_flight && copy.end + self.reach <= exposed).is_some() {}
    }

    /// A chunk takes no more: nothing in it is lost with what follows.
    pub fn closed(&mut self, chunk: ChunkIndex) {
        let end = self.ends.remove(&chunk);
        assert!(
            end.is_none_or(|end| end.iter().all(|copy| !copy.is_in_flight)),
            "chunk {} is closed under a write",
            chunk.0
        );
    }

    /// True if no page would lose its copies together, were the power to go while the next write to the chunk is programmed.
    pub fn is_safe(&self, chunk: ChunkIndex) -> bool {
        let Some(end) = self.ends.get(&chunk) else { return true };
        let pointer = end.back().map_or(0, |copy| copy.end);
        let mut within = end.iter().filter(|copy| copy.end + self.reach > pointer);
        !within.any(|copy| self.is_at_risk_elsewhere(copy.lsn, chunk))
    }

    /// True if another chunk has the page, and a write in flight behind it.
    fn is_at_risk_elsewhere(&self, lsn: Option<Lsn>, but: ChunkIndex) -> bool {
        let mut others = self.ends.iter().filter(|&(&chunk, _)| chunk != but);
        others.any(|(_, end)| {
            let mut copies = end.iter().filter(|copy| copy.lsn == lsn);
            copies.any(|copy| {
                let is_behind =
                    |write: &&Copy| write.sector >= copy.end && write.sector < copy.end + self.reach;
                end.iter().filter(|write| write.is_in_flight).any(|write| is_behind(&write))
            })
        })
    }

    /// Asserts what holds between calls.
    pub fn check(&self) {
        for (chunk, end) in &self.ends {
            let in_order = end.iter().zip(end.iter().skip(1)).all(|(one, next)| one.end <= next.sector);
            assert!(in_order, "pages of chunk {} are out of order", chunk.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(chunk: u32, sector: u32) -> Append {
        Append { chunk: ChunkIndex(chunk), sector }
    }

    fn is_safe(places: &LogPlaces, chunk: u32) -> bool {
        places.check();
        places.is_safe(ChunkIndex(chunk))
    }

    /// Page 1 in chunks 0 and 1.
    fn one_page() -> LogPlaces {
        let mut places = LogPlaces::new(4);
        for chunk in 0..2 {
            places.given(Lsn(1), at(chunk, 0), 2);
            places.ended(at(chunk, 0), true);
        }
        places
    }

    #[test]
    fn copies_are_not_written_behind_at_once() {
        let mut places = one_page();
        assert!(is_safe(&places, 0) && is_safe(&places, 1) && is_safe(&places, 2));
        places.given(Lsn(2), at(0, 2), 2);
        assert!(!is_safe(&places, 1), "page 1 is behind writes in both chunks");
        assert!(is_safe(&places, 0) && is_safe(&places, 2));
        places.ended(at(0, 2), true);
        assert!(is_safe(&places, 1));
    }

    #[test]
    fn a_page_out_of_reach_is_safe() {
        let mut places = one_page();
        for sector in [2, 4] {
            places.given(Lsn(2), at(0, sector), 2);
            places.ended(at(0, sector), true);
        }
        places.given(Lsn(3), at(0, 6), 2);
        assert!(is_safe(&places, 1), "page 1 ends four sectors before the write in chunk 0");
    }

    #[test]
    fn a_page_is_guarded_while_its_other_copy_is_in_flight_before_others() {
        let mut places = LogPlaces::new(4);
        places.given(Lsn(1), at(0, 0), 2);
        places.given(Lsn(1), at(1, 0), 2);
        places.given(Lsn(2), at(1, 2), 2);
        places.ended(at(0, 0), true);
        assert!(!is_safe(&places, 0), "page 1 becomes durable while page 2 is programmed behind it");
    }

    #[test]
    fn a_write_that_failed_guards_nothing_and_a_closed_chunk_is_safe() {
        let mut places = LogPlaces::new(4);
        places.given(Lsn(1), at(0, 0), 2);
        places.given(Lsn(1), at(1, 0), 2);
        places.ended(at(0, 0), false);
        places.ended(at(1, 0), true);
        places.given(Lsn(2), at(0, 2), 2);
        assert!(is_safe(&places, 1));
        places.ended(at(0, 2), true);
        places.given(Lsn(2), at(1, 2), 2);
        assert!(is_safe(&places, 0));
        places.ended(at(1, 2), true);
        places.closed(ChunkIndex(1));
        places.given(Lsn(3), at(0, 4), 2);
        assert!(is_safe(&places, 1));
    }

    #[test]
    fn chunks_gone_on_with_are_written_one_at_a_time_until_old_pages_are_out_of_reach() {
        let mut places = LogPlaces::new(4);
        places.adopted(ChunkIndex(0), 6);
        places.adopted(ChunkIndex(1), 8);
        places.given(Lsn(9), at(0, 6), 2);
        assert!(!is_safe(&places, 1));
        places.ended(at(0, 6), true);
        places.given(Lsn(10), at(0, 8), 2);
        assert!(!is_safe(&places, 1), "sector 5 is within reach of sector 8");
        places.ended(at(0, 8), true);
        places.given(Lsn(11), at(0, 10), 2);
        assert!(is_safe(&places, 1));
    }
}
