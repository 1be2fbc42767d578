//! Which write every block must hold: what verifying jobs compare against.
//!
//! Only for targets with a verifying job; four bytes a block of its regions, eight if its writers write different things.

use super::region::Region;

/// The newest write of every block of a region, by the low 32 bits of its sequence number; 0 for none.
#[derive(Clone, Debug)]
pub(super) struct Oracle {
    region: Region,
    newest: Vec<u32>,
    /// Who made it; empty if that makes no difference.
    writers: Vec<u32>,
}

fn low(sequence: u64) -> u32 {
    u32::try_from(sequence & 0xFFFF_FFFF).expect("32 bits")
}

impl Oracle {
    pub(super) fn new(region: Region, keeps_writers: bool) -> Self {
        let blocks = usize::try_from(region.blocks()).expect("a region that fits memory");
        let writers = if keeps_writers { vec![u32::MAX; blocks] } else { Vec::new() };
        Self { region, newest: vec![0; blocks], writers }
    }

    fn place(&self, block: u64) -> Option<usize> {
        let inside = block >= self.region.first && block < self.region.end;
        inside.then(|| usize::try_from(block - self.region.first).expect("within the region"))
    }

    /// A write was issued.
    pub(super) fn wrote(&mut self, block: u64, count: u32, sequence: u64, writer: u32) {
        for block in block..block + u64::from(count) {
            if let Some(place) = self.place(block) {
                self.newest[place] = low(sequence);
                if let Some(entry) = self.writers.get_mut(place) {
                    *entry = writer;
                }
            }
        }
    }

    /// The blocks hold nothing any more, or nobody knows what.
    pub(super) fn forget(&mut self, blocks: std::ops::Range<u64>) {
        let first = blocks.start.max(self.region.first);
        for block in first..blocks.end.min(self.region.end) {
            if let Some(place) = self.place(block) {
                self.newest[place] = 0;
            }
        }
    }

    /// Who wrote a block last; `None` if that is unknown, or makes no difference.
    pub(super) fn writer(&self, block: u64) -> Option<u32> {
        let writer = *self.writers.get(self.place(block)?)?;
        (writer != u32::MAX).then_some(writer)
    }

    /// The write a block must hold, with the high half of `near` that makes it complete; 0 if unknown.
    pub(super) fn newest(&self, block: u64, near: u64) -> u64 {
        let Some(place) = self.place(block) else { return 0 };
        match self.newest[place] {
            0 => 0,
            newest if newest <= low(near) => (near & !0xFFFF_FFFF) | u64::from(newest),
            newest => (near & !0xFFFF_FFFF).wrapping_sub(1 << 32) | u64::from(newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_write_is_remembered_until_it_is_forgotten() {
        let mut oracle = Oracle::new(Region { first: 10, end: 20 }, true);
        oracle.wrote(12, 3, 7, 0);
        oracle.wrote(13, 1, 8, 1);
        oracle.wrote(18, 5, 9, 0);
        assert_eq!(
            [10, 12, 13, 14, 30].map(|block| oracle.writer(block)),
            [None, Some(0), Some(1), Some(0), None]
        );
        let newest: Vec<u64> = (10..22).map(|block| oracle.newest(block, 9)).collect();
        assert_eq!(newest, [0, 0, 7, 8, 7, 0, 0, 0, 9, 9, 0, 0]);
        oracle.forget(0..13);
        assert_eq!((oracle.newest(12, 9), oracle.newest(13, 9)), (0, 8));
        let wrapped = (1 << 32) + 3;
        assert_eq!(oracle.newest(13, wrapped), 8);
    }
}
