//! Who is at a parallel unit when a write unit of stream 0 is sent there: a flush that waits behind a compaction.
//!
//! The host says by [`TableHint`](ocssd_lightnvm::interface::table::TableHint) which stream writes a table. Deliberately not here:
//! how long it waits, which is the drive's.

use super::change::Number;
use ocssd_base::usize_of;
use ocssd_ftl::UnitIndex;
use std::collections::BTreeMap;

/// What is in flight at a unit.
#[derive(Clone, Debug, Default)]
struct Unit {
    /// Writes by table.
    writes: BTreeMap<Number, u32>,
    /// Parts of reads.
    reads: u32,
}

/// Commands in flight by unit, and what writes of stream 0 met.
#[derive(Clone, Debug)]
pub struct Meetings {
    units: Vec<Unit>,
    /// Write units of stream 0 sent.
    pub sent: u64,
    /// Of these, where a write of another table was in flight at the same unit.
    pub behind_writes: u64,
    /// Of these, where a read was in flight at the same unit.
    pub behind_reads: u64,
    /// Of these, where either was.
    pub behind_any: u64,
}

impl Meetings {
    /// Nothing is in flight at so many units.
    pub fn new(units: u32) -> Self {
        let units = vec![Unit::default(); usize_of(units)];
        Self { units, sent: 0, behind_writes: 0, behind_reads: 0, behind_any: 0 }
    }

    /// A write unit of a table goes to a unit.
    pub fn write(&mut self, unit: UnitIndex, number: Number, stream: u8) {
        let at = &mut self.units[unit.index()];
        if stream == 0 {
            let meets_write = at.writes.keys().any(|&other| other != number);
            self.sent += 1;
            self.behind_writes += u64::from(meets_write);
            self.behind_reads += u64::from(at.reads > 0);
            self.behind_any += u64::from(meets_write || at.reads > 0);
        }
        *at.writes.entry(number).or_default() += 1;
    }

    /// It ended.
    pub fn written(&mut self, unit: UnitIndex, number: Number) {
        let writes = &mut self.units[unit.index()].writes;
        let count = writes.get_mut(&number).expect("a write ended that was not sent");
        assert!(*count > 0, "writes of number {} are counted wrong", number.0);
        *count -= 1;
        if *count == 0 {
            writes.remove(&number);
        }
    }

    /// A part of a read goes to a unit.
    pub fn read(&mut self, unit: UnitIndex) {
        self.units[unit.index()].reads += 1;
    }

    /// It is over.
    pub fn was_read(&mut self, unit: UnitIndex) {
        let reads = &mut self.units[unit.index()].reads;
        assert!(*reads > 0, "a part of a read ended that was not sent");
        *reads -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_meets_other_tables_and_reads_at_its_own_unit_only() {
        let (here, there) = (UnitIndex(0), UnitIndex(1));
        let (flush, other) = (Number(1), Number(2));
        let mut meetings = Meetings::new(2);
        meetings.write(here, flush, 0);
        meetings.write(here, flush, 0);
        assert_eq!((meetings.sent, meetings.behind_any), (2, 0), "its own writes do not count");
        meetings.write(there, other, 1);
        meetings.write(here, flush, 0);
        meetings.write(there, flush, 0);
        assert_eq!((meetings.sent, meetings.behind_writes, meetings.behind_reads), (4, 1, 0));
        meetings.written(there, other);
        meetings.read(there);
        meetings.write(there, flush, 0);
        assert_eq!((meetings.behind_writes, meetings.behind_reads, meetings.behind_any), (1, 1, 2));
        meetings.was_read(there);
        meetings.write(there, flush, 0);
        assert_eq!((meetings.sent, meetings.behind_any), (6, 2));
    }
}
