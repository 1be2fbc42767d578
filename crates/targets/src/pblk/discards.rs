//! Discards that a checkpoint does not cover yet: their records must outlive garbage collection.
//!
//! pblk forgot discards at a power cut (Linux `pblk-recovery.c`). Here each is a sector in the stream of writes; once a checkpoint
//! taken after it was durable is complete, the sector is worthless. Deliberately not here: who reads the records
//! (`mount`).

use ocssd_ftl::{Corrupt, PhysicalAddress, Sequence};
use std::collections::{BTreeMap, BTreeSet};

/// The blocks of one discard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscardRange {
    /// The first.
    pub block: u64,
    /// How many.
    pub count: u32,
}

impl DiscardRange {
    /// Fills the content of a record; it fits a stamp.
    pub fn encode(self, content: &mut [u8]) {
        assert!(self.count > 0, "nothing was discarded");
        assert!(content.len() >= 12, "a record of a discard takes 12 bytes, not {}", content.len());
        content.fill(0);
        content[..8].copy_from_slice(&self.block.to_le_bytes());
        content[8..12].copy_from_slice(&self.count.to_le_bytes());
    }

    /// The range in a record's content.
    pub fn decode(content: &[u8]) -> Result<Self, Corrupt> {
        let block = content.get(..8).and_then(|bytes| bytes.try_into().ok()).ok_or(Corrupt)?;
        let count = content.get(8..12).and_then(|bytes| bytes.try_into().ok()).ok_or(Corrupt)?;
        Ok(Self { block: u64::from_le_bytes(block), count: u32::from_le_bytes(count) })
    }
}

#[derive(Clone, Copy, Debug)]
struct Record {
    range: DiscardRange,
    /// Where it is, once it is durable.
    place: Option<PhysicalAddress>,
}

/// The records, by when they were made.
#[derive(Clone, Debug)]
pub struct Discards {
    /// Records kept before a checkpoint is asked for and further discards wait.
    most: usize,
    records: BTreeMap<Sequence, Record>,
    /// Those that are not durable yet.
    pending: BTreeSet<Sequence>,
}

impl Discards {
    /// No records; room for `most`.
    pub fn new(most: usize) -> Self {
        assert!(most > 0, "no discard could be written down");
        Self { most, records: BTreeMap::new(), pending: BTreeSet::new() }
    }

    /// True if more discards must wait for a checkpoint.
    pub fn is_full(&self) -> bool {
        self.records.len() >= self.most
    }

    /// A discard was put into the buffer.
    pub fn add(&mut self, sequence: Sequence, block: u64, count: u32) {
        let record = Record { range: DiscardRange { block, count }, place: None };
        let before = self.records.insert(sequence, record);
        assert!(before.is_none(), "two discards have sequence {}", sequence.0);
        self.pending.insert(sequence);
        assert!(self.pending.len() <= self.records.len(), "a discard waits that was not recorded");
    }

    /// The oldest record that is not durable yet. What it discarded looks dead already, but a power cut would need it: the
    /// version before may be older still.
    pub fn oldest_pending(&self) -> Option<Sequence> {
        self.pending.first().copied()
    }

    /// The newest record that is not durable yet.
    pub fn newest_pending(&self) -> Option<Sequence> {
        self.pending.last().copied()
    }

    /// A record was found at mount.
    pub fn restore(&mut self, sequence: Sequence, range: DiscardRange, place: PhysicalAddress) {
        self.records.insert(sequence, Record { range, place: Some(place) });
    }

    /// A record is durable at `place`; false if nobody needs it any more. A copy takes the place of `previous`, its original;
    /// a second copy of it is not needed.
    pub fn commit_mapping(
        &mut self,
        sequence: Sequence,
        place: PhysicalAddress,
        previous: Option<PhysicalAddress>,
    ) -> bool {
        let Some(record) = self.records.get_mut(&sequence).filter(|record| record.place == previous) else {
            return false;
        };
        record.place = Some(place);
        self.pending.remove(&sequence);
        true
    }

    /// The record that is at `place` and still needed.
    pub fn at(&self, place: PhysicalAddress) -> Option<(Sequence, DiscardRange)> {
        let found = self.records.iter().find(|(_, record)| record.place == Some(place));
        found.map(|(&sequence, record)| (sequence, record.range))
    }

    /// True if the record of `sequence` is needed, and is the one at `place`.
    pub fn needs(&self, sequence: Sequence, place: PhysicalAddress) -> bool {
        self.records.get(&sequence).is_some_and(|record| record.place == Some(place))
    }

    /// True if the discard that made `block` nowhere after `sequence` is on media, or covered by a checkpoint.
    pub fn is_durable(&self, block: u64, sequence: Sequence) -> bool {
        let covers =
            |range: DiscardRange| (range.block..range.block + u64::from(range.count)).contains(&block);
        let mut later = self.records.range(sequence..).filter(|(_, record)| covers(record.range)).peekable();
        later.peek().is_none() || later.any(|(_, record)| record.place.is_some())
    }

    /// True if a checkpoint begun now would cover a record. Cost: a pass over the records that are not durable.
    pub fn has_durable(&self) -> bool {
        self.records.values().any(|record| record.place.is_some())
    }

    /// The records that are durable now: a checkpoint begun now will cover them.
    pub fn durable(&self) -> Vec<Sequence> {
        self.records
            .iter()
            .filter(|(_, record)| record.place.is_some())
            .map(|(&sequence, _)| sequence)
            .collect()
    }

    /// Where the records are that are durable now, in order.
    pub fn places(&self) -> Vec<PhysicalAddress> {
        let mut places: Vec<PhysicalAddress> =
            self.records.values().filter_map(|record| record.place).collect();
        places.sort_unstable();
        assert!(places.len() <= self.records.len(), "a record is in two places");
        places
    }

    /// Lets go of a record, and says where it was.
    pub fn remove(&mut self, sequence: Sequence) -> Option<PhysicalAddress> {
        self.pending.remove(&sequence);
        self.records.remove(&sequence).and_then(|record| record.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records a table of these tests takes.
    const MOST: usize = 40;

    #[test]
    fn a_record_is_needed_until_it_is_let_go_and_only_where_it_lies() {
        let mut discards = Discards::new(3);
        discards.add(Sequence(5), 100, 8);
        assert!(discards.durable().is_empty());
        assert_eq!(discards.oldest_pending(), Some(Sequence(5)));
        assert!(discards.commit_mapping(Sequence(5), PhysicalAddress(7), None));
        assert_eq!(discards.oldest_pending(), None);
        assert_eq!(discards.places(), [PhysicalAddress(7)]);
        assert!(
            discards.needs(Sequence(5), PhysicalAddress(7))
                && !discards.needs(Sequence(5), PhysicalAddress(8))
        );
        assert!(discards.commit_mapping(Sequence(5), PhysicalAddress(9), Some(PhysicalAddress(7))), "moved");
        assert!(
            !discards.commit_mapping(Sequence(5), PhysicalAddress(11), Some(PhysicalAddress(7))),
            "moved twice"
        );
        assert_eq!(
            discards.at(PhysicalAddress(9)),
            Some((Sequence(5), DiscardRange { block: 100, count: 8 }))
        );
        assert_eq!(discards.remove(Sequence(5)), Some(PhysicalAddress(9)));
        assert!(!discards.commit_mapping(Sequence(5), PhysicalAddress(1), Some(PhysicalAddress(9))));
    }

    #[test]
    fn a_range_fits_a_stamp() {
        let range = DiscardRange { block: 1 << 39, count: u32::MAX };
        let mut content = [1; 16];
        range.encode(&mut content);
        assert_eq!(DiscardRange::decode(&content), Ok(range));
        assert_eq!(DiscardRange::decode(&content[..10]), Err(Corrupt));
    }

    #[test]
    fn discards_that_are_not_durable_wait_and_those_that_are_can_be_covered() {
        let mut discards = Discards::new(MOST);
        let range = |block, count| DiscardRange { block, count };
        for (sequence, block) in [(5, 100), (9, 200), (7, 104)] {
            discards.add(Sequence(sequence), block, 8);
        }
        assert!(!discards.has_durable() && discards.durable().is_empty() && discards.places().is_empty());
        assert_eq!(
            (discards.oldest_pending(), discards.newest_pending()),
            (Some(Sequence(5)), Some(Sequence(9)))
        );
        discards.restore(Sequence(3), range(0, 4), PhysicalAddress(50));
        assert!(discards.commit_mapping(Sequence(7), PhysicalAddress(40), None));
        assert_eq!((discards.has_durable(), discards.durable()), (true, vec![Sequence(3), Sequence(7)]));
        assert_eq!(discards.places(), [PhysicalAddress(40), PhysicalAddress(50)]);
        assert_eq!(
            (discards.oldest_pending(), discards.newest_pending()),
            (Some(Sequence(5)), Some(Sequence(9)))
        );
        assert!(discards.commit_mapping(Sequence(9), PhysicalAddress(60), None));
        assert_eq!(
            (discards.oldest_pending(), discards.newest_pending()),
            (Some(Sequence(5)), Some(Sequence(5)))
        );
        assert_eq!(
            (discards.at(PhysicalAddress(40)), discards.at(PhysicalAddress(41))),
            (Some((Sequence(7), range(104, 8))), None)
        );
        assert_eq!(
            (discards.remove(Sequence(5)), discards.newest_pending()),
            (None, None),
            "it was not durable"
        );
        assert_eq!(
            (discards.remove(Sequence(3)), discards.at(PhysicalAddress(50))),
            (Some(PhysicalAddress(50)), None)
        );
    }

    #[test]
    fn a_block_is_nowhere_for_good_once_a_discard_since_is_on_media() {
        let mut discards = Discards::new(MOST);
        discards.add(Sequence(5), 100, 8);
        // Not discarded since: by another range, or before.
        for (block, sequence, is_durable) in
            [(99, 5, true), (100, 5, false), (107, 5, false), (108, 5, true), (100, 6, true), (100, 0, false)]
        {
            assert_eq!(
                discards.is_durable(block, Sequence(sequence)),
                is_durable,
                "block {block}, {sequence}"
            );
        }
        discards.add(Sequence(8), 107, 1);
        assert!(!discards.is_durable(107, Sequence(5)));
        assert!(discards.commit_mapping(Sequence(8), PhysicalAddress(1), None));
        assert!(discards.is_durable(107, Sequence(5)), "a later one is");
        assert!(!discards.is_durable(100, Sequence(5)), "but not of this block");
    }

    #[test]
    fn discards_wait_for_a_checkpoint_once_the_table_is_full() {
        let mut discards = Discards::new(MOST);
        for sequence in 0..MOST {
            assert!(!discards.is_full(), "{sequence} records");
            discards.add(Sequence(u64::try_from(sequence).unwrap()), 0, 1);
        }
        assert!(discards.is_full());
        discards.remove(Sequence(0));
        assert!(!discards.is_full());
    }
}
