//! When the user last wrote each logical sector: the one thing SepBIT needs and no other part keeps.
//!
//! 4 bytes per sector, in shards that take memory from their first write on. A stamp counts units of `2^shift` user
//! sectors, so times are rounded down to a unit, and modulo `2^32 - 1`: with units of 64 sectors a time is ambiguous
//! after 1 PiB of 4 KiB user writes, and a sector not written for so long is then taken for a younger one. Streams are
//! a guess anyway, so nothing but write amplification depends on it. A target owns it, and makes one only if
//! [`crate::Classification::needs_last_writes`]. Deliberately not here: what follows from a time (`classify`); surviving
//! a restart (a sector's metadata on media tells the same to who moves it).

use crate::ShardSize;

/// Stamps before they repeat; zero is none.
const STAMPS: u64 = (1 << 32) - 1;

/// Largest unit: 2^32 user sectors. Chosen; beyond it 64-bit times themselves would be the limit.
pub const LAST_WRITES_SHIFT_MAX: u32 = 32;

/// When each logical sector was last written by its user.
#[derive(Clone, Debug)]
pub struct LastWrites {
    shards: Vec<Option<Box<[u32]>>>,
    sectors: u64,
    shift: u32,
    shard: ShardSize,
}

impl LastWrites {
    /// Of `sectors` logical sectors, none written yet, in units of `2^shift` user sectors.
    ///
    /// A unit should be well below the user sectors that fill a line, since lines are what lifetimes are compared with.
    ///
    /// # Panics
    /// If `shift` is above [`LAST_WRITES_SHIFT_MAX`].
    #[must_use]
    pub fn new(sectors: u64, shift: u32) -> Self {
        Self::with_shards(sectors, shift, ShardSize::default())
    }

    /// As [`Self::new`], in shards of another size.
    ///
    /// # Panics
    /// As [`Self::new`].
    #[must_use]
    pub fn with_shards(sectors: u64, shift: u32, shard: ShardSize) -> Self {
        assert!(shift <= LAST_WRITES_SHIFT_MAX, "units of 2^{shift} sectors");
        let shards = usize::try_from(sectors.div_ceil(shard.sectors())).expect("the sectors fit memory");
        Self { shards: vec![None; shards], sectors, shift, shard }
    }

    #[inline]
    fn split(&self, lba: u64) -> (usize, usize) {
        assert!(lba < self.sectors, "logical sector {lba} of {}", self.sectors);
        let lba = usize::try_from(lba).expect("the sectors fit memory");
        (lba >> self.shard.bits(), lba & ((1 << self.shard.bits()) - 1))
    }

    /// When the user last wrote a sector, rounded down to a unit; `None` if never. Cost: one cache miss.
    ///
    /// # Panics
    /// If the sector is beyond those it was made for, or if a write after `now_seq` was noted.
    #[must_use]
    #[inline]
    pub fn get(&self, lba: u64, now_seq: u64) -> Option<u64> {
        let (shard, index) = self.split(lba);
        let stamp = u64::from(*self.shards[shard].as_ref()?.get(index)?);
        if stamp == 0 {
            return None;
        }
        let now = now_seq >> self.shift;
        let ago = (now % STAMPS + STAMPS - (stamp - 1)) % STAMPS;
        assert!(ago <= now, "sector {lba} was written after {now_seq}");
        Some((now - ago) << self.shift)
    }

    /// The user wrote a sector. Cost: one cache miss; the first write of a shard fills it.
    ///
    /// # Panics
    /// If the sector is beyond those it was made for.
    #[inline]
    pub fn set(&mut self, lba: u64, now_seq: u64) {
        let (shard, index) = self.split(lba);
        let stamp = (now_seq >> self.shift) % STAMPS + 1;
        let stamp = u32::try_from(stamp).expect("stamps are 1 to 2^32 - 1");
        assert!(stamp != 0, "zero is no stamp");
        // The last shard ends with the sectors, so a small instance takes little.
        let from = lba - u64::try_from(index).expect("an index");
        let count = (self.sectors - from).min(self.shard.sectors());
        let count = usize::try_from(count).expect("a shard is small");
        self.shards[shard].get_or_insert_with(|| vec![0; count].into_boxed_slice())[index] = stamp;
    }

    /// The sector was discarded, so that its next write replaces nothing. Cost: one cache miss.
    ///
    /// # Panics
    /// If the sector is beyond those it was made for.
    pub fn forget(&mut self, lba: u64) {
        let (shard, index) = self.split(lba);
        if let Some(stamps) = &mut self.shards[shard] {
            stamps[index] = 0;
        }
    }

    /// User sectors a time is rounded down to.
    #[must_use]
    pub const fn granularity(&self) -> u64 {
        1 << self.shift
    }

    /// Memory it takes now, in bytes.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        let stamps: usize = self.shards.iter().flatten().map(|shard| shard.len()).sum();
        let shards = stamps * size_of::<u32>();
        let index = self.shards.len() * size_of::<Option<Box<[u32]>>>();
        u64::try_from(shards + index).expect("memory has fewer than 2^64 bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;
    use std::collections::BTreeMap;

    #[test]
    fn times_come_back_rounded_down_to_a_unit() {
        for (seed, shift) in [(1, 0), (2, 6), (3, 32)] {
            let sectors = 70_000;
            let (mut last, mut prng) = (LastWrites::new(sectors, shift), Prng::new(seed));
            let (mut naive, mut now) = (BTreeMap::new(), 0);
            for step in 0..30_000 {
                let lba = prng.below(sectors);
                now += prng.below(3 << shift);
                let unit = last.granularity();
                let expected = naive.get(&lba).map(|&at: &u64| at / unit * unit);
                assert_eq!(last.get(lba, now), expected, "seed {seed}, step {step}");
                if prng.below(4) == 0 {
                    last.forget(lba);
                    naive.remove(&lba);
                } else {
                    last.set(lba, now);
                    naive.insert(lba, now);
                }
            }
        }
    }

    #[test]
    fn a_time_stays_right_until_stamps_repeat() {
        let mut last = LastWrites::new(10, 0);
        for at in [0, STAMPS - 2, STAMPS - 1, STAMPS, 5 * STAMPS + 3] {
            last.set(3, at);
            for later in [0, 1, 1 << 31, STAMPS - 1] {
                assert_eq!(last.get(3, at + later), Some(at), "{later} after {at}");
            }
            // One later the same stamp is read as just written.
            assert_eq!(last.get(3, at + STAMPS), Some(at + STAMPS));
        }
    }

    #[test]
    fn what_was_never_written_takes_no_memory() {
        let mut last = LastWrites::new(488_281_250, 6);
        let empty = last.resident_bytes();
        assert_eq!(empty, 16 * 7_451, "a pointer and a length for each shard");
        last.forget(400_000_000);
        assert_eq!((last.get(400_000_000, 9), last.resident_bytes()), (None, empty));
        last.set(488_281_249, 640);
        let cut = last.resident_bytes();
        assert_eq!(cut - empty, 4 * (488_281_250 % (1 << 16)), "the last shard ends with the sectors");
        last.set(400_000_000, 640);
        assert_eq!(last.resident_bytes() - cut, 4 << 16);
        assert_eq!((last.get(488_281_249, 700), last.get(488_281_248, 700)), (Some(640), None));
    }
}
