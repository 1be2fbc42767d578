//! When a page of the log goes out that is not full: transactions that are about to be ready share it.
//!
//! A transaction that is logged while buffer units of users are on their way waits for those buffer units: what they carry is
//! logged in the same page, and its writers and this one's go on together from then on. So a page waits for one write of data at
//! most, and writers at depth 64 fill one page where each buffer unit that was programmed had one of its own. Transactions that
//! are large beside a page wait for nobody. Deliberately not here: who else waits for a page (`pages`).

use super::write_buffer::BufferUnitId;
use ocssd_base::usize_of;
use std::collections::BTreeSet;

/// A page goes out as soon as so many times its own sectors of data wait for it (chosen: the log takes a 64th of what is written
/// then, within the 2 % that are aimed at for transactions of 1 MiB).
const DATA_PER_PAGE: u64 = 64;

/// The buffer units of users on their way, and which of them the page that is being filled waits for.
#[derive(Clone, Debug)]
pub(crate) struct GroupCommit {
    /// Sectors that a page of the log takes on media, all copies together.
    page_sectors: u64,
    /// Buffer units given out so far: the number of the next.
    next: u64,
    /// By buffer unit: its number.
    numbers: Vec<u64>,
    flying: BTreeSet<u64>,
    /// The page waits for buffer units before this one.
    until: u64,
    /// Sectors of data that wait for the page.
    waiting: u64,
    is_begun: bool,
}

impl GroupCommit {
    /// Nothing is on its way; pages of so many sectors are written so many times, and there are so many buffer units.
    pub fn new(page_sectors: u32, copies: u32, buffer_units: u32) -> Self {
        assert!(page_sectors > 0 && copies > 0, "{copies} copies of pages of {page_sectors} sectors");
        Self {
            page_sectors: u64::from(page_sectors) * u64::from(copies),
            next: 0,
            numbers: vec![0; usize_of(buffer_units)],
            flying: BTreeSet::new(),
            until: 0,
            waiting: 0,
            is_begun: false,
        }
    }

    /// A buffer unit of users goes to media.
    pub fn buffer_unit_given_out(&mut self, buffer_unit: BufferUnitId) {
        self.numbers[usize_of(buffer_unit.0)] = self.next;
        assert!(self.flying.insert(self.next), "{buffer_unit:?} is given out twice");
        self.next += 1;
    }

    /// A buffer unit of users was programmed, or failed.
    pub fn buffer_unit_ended(&mut self, buffer_unit: BufferUnitId) {
        let was_flying = self.flying.remove(&self.numbers[usize_of(buffer_unit.0)]);
        assert!(was_flying, "{buffer_unit:?} ended and was not given out");
    }

    /// A transaction of so many sectors waits for the page that is being filled.
    pub fn logged(&mut self, sectors: u32) {
        if !self.is_begun {
            (self.is_begun, self.until) = (true, self.next);
        }
        self.waiting += u64::from(sectors);
    }

    /// The page that was being filled goes out.
    pub fn page_given_out(&mut self) {
        (self.is_begun, self.waiting) = (false, 0);
    }

    /// True while the page that is being filled waits for buffer units.
    pub fn is_waiting(&self) -> bool {
        assert!(self.until <= self.next, "a page waits for buffer units to come");
        let is_small = self.waiting < DATA_PER_PAGE * self.page_sectors;
        self.is_begun && is_small && self.flying.first().is_some_and(|&first| first < self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_waits_for_the_buffer_units_that_were_on_their_way_and_no_others() {
        let mut group = GroupCommit::new(4, 1, 8);
        group.logged(1);
        assert!(!group.is_waiting(), "nothing is on its way");
        group.page_given_out();
        group.buffer_unit_given_out(BufferUnitId(3));
        group.buffer_unit_given_out(BufferUnitId(5));
        assert!(!group.is_waiting(), "nobody waits");
        group.buffer_unit_ended(BufferUnitId(3));
        group.logged(1);
        group.buffer_unit_given_out(BufferUnitId(3));
        assert!(group.is_waiting(), "buffer unit 5 brings more");
        group.logged(1);
        group.buffer_unit_ended(BufferUnitId(5));
        assert!(!group.is_waiting(), "buffer unit 3 was given out later");
        group.page_given_out();
        group.logged(255);
        assert!(group.is_waiting());
        group.logged(1);
        assert!(!group.is_waiting(), "256 sectors of data are enough for a page of 4");
    }

    #[test]
    fn more_data_waits_for_a_page_that_is_written_twice() {
        let mut group = GroupCommit::new(4, 2, 8);
        group.buffer_unit_given_out(BufferUnitId(0));
        group.logged(511);
        assert!(group.is_waiting());
        group.logged(1);
        assert!(!group.is_waiting(), "512 sectors of data are enough for two copies of a page of 4");
    }

    #[test]
    fn a_buffer_unit_that_failed_and_goes_out_again_is_another() {
        let mut group = GroupCommit::new(1, 1, 1);
        group.buffer_unit_given_out(BufferUnitId(0));
        group.logged(1);
        group.buffer_unit_ended(BufferUnitId(0));
        group.buffer_unit_given_out(BufferUnitId(0));
        assert!(!group.is_waiting());
        group.buffer_unit_ended(BufferUnitId(0));
    }
}
