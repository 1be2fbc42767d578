//! Retention: what months without power do to cells.
//!
//! Charge leaks, so some sectors need a read retry afterwards (High ECC) and some are lost (281h), each until its chunk is reset
//! or, of those that need a retry, until it was read a few times. Vendors state retention for a worn drive at rest (JESD218: a
//! year at 30 degrees for client drives, three months at 40 for enterprise drives); which share of sectors fails is the caller's
//! to say. Deliberately not here: deciding when (a simulator does), and leakage while the drive has power, which controllers cure
//! themselves.

use crate::drive::Flash;
use crate::store::StoreError;
use ocssd_base::Prng;
use ocssd_lightnvm::{ChunkId, ChunkState, Ppa};

/// Reads that a weak sector needs a retry in (chosen: more than one look at a mount, fewer than nobody would see).
const WEAK_READS: u32 = 4;

/// How many sectors a time without power takes, in parts per billion of those that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shelf {
    /// Cannot be read any more.
    pub lost: u32,
    /// Need a retry.
    pub weak: u32,
}

impl Flash {
    /// The drive was without power for so long that `shelf` of its sectors were lost or weakened. Which is drawn from `prng`.
    /// Returns those that were lost, and how many were weakened. Cost: a draw for every written sector.
    ///
    /// # Errors
    /// If the backing cannot keep it.
    ///
    /// # Panics
    /// If more than a billion parts per billion are to be lost or weakened.
    pub fn lie_without_power(
        &mut self,
        shelf: Shelf,
        prng: &mut Prng,
    ) -> Result<(Vec<Ppa>, u32), StoreError> {
        let billion = 1_000_000_000;
        assert!(
            u64::from(shelf.lost) + u64::from(shelf.weak) <= billion,
            "{shelf:?} is more than all sectors"
        );
        let (mut lost, mut weak) = (Vec::new(), 0);
        for chunk in (0..self.config.geometry.chunk_count()).map(ChunkId) {
            let entry = self.chunks.get(chunk);
            if !matches!(entry.state, ChunkState::Open | ChunkState::Closed) {
                continue;
            }
            let lost_before = lost.len();
            for at in (0..entry.write_pointer).map(|sector| Ppa::new(chunk, sector)) {
                let drawn = prng.below(billion);
                if drawn < shelf.lost.into() {
                    self.chunks.mark_unreadable(at, 1);
                    lost.push(at);
                } else if drawn < u64::from(shelf.lost) + u64::from(shelf.weak) {
                    self.weaken(at);
                    weak += 1;
                }
            }
            if lost.len() > lost_before {
                self.store.keep_unreadable(chunk, self.chunks.unreadable(chunk))?;
            }
        }
        Ok((lost, weak))
    }

    /// A sector cannot be read any more (281h), until its chunk is reset.
    ///
    /// # Errors
    /// If the backing cannot keep it.
    ///
    /// # Panics
    /// If it was never written.
    pub fn lose_sector(&mut self, at: Ppa) -> Result<(), StoreError> {
        let written = self.chunks.get(at.chunk).write_pointer;
        assert!(at.sector < written, "{at:?} is lost, and {written} sectors of the chunk were written");
        self.chunks.mark_unreadable(at, 1);
        self.store.keep_unreadable(at.chunk, self.chunks.unreadable(at.chunk))
    }

    fn weaken(&mut self, at: Ppa) {
        self.chunks.flags_mut(at.chunk).has_scheduled = true;
        self.faults.weaken(at, WEAK_READS);
    }
}
