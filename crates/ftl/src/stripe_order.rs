//! The order in which a line is emptied: stripe by stripe over its units, as it was written.
//!
//! Chunk by chunk a few reads would meet the units of one group only, and collection be as fast as that group's channel. Read in
//! the order in which it was written, what moves also keeps its order. Deliberately not here: which sectors of a piece are
//! valid (`ValidMap`), and how reads are sent (the owner).

use crate::instance_geometry::UnitIndex;
use ocssd_base::usize_of;

/// How far reading a line came. It only grows; what it means, [`StripeOrder`] knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadPosition(u64);

/// Sectors of a chunk that are read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripePiece {
    /// The unit of the chunk.
    pub unit: UnitIndex,
    /// The first sector of the chunk.
    pub sector: u32,
    /// How many, 1 to [`StripeOrder::SECTORS_MAX`].
    pub count: u32,
}

/// The pieces of any line of an instance.
#[derive(Clone, Debug)]
pub struct StripeOrder {
    units: Vec<UnitIndex>,
    chunk_sectors: u32,
    piece_sectors: u32,
}

impl StripeOrder {
    /// Most sectors of a piece: a word of bits says which are valid.
    pub const SECTORS_MAX: u32 = 64;

    /// Lines of chunks of `chunk_sectors` on `units`, in pieces of `piece_sectors`.
    ///
    /// # Panics
    /// If there is no unit or no sector, or a piece is longer than [`StripeOrder::SECTORS_MAX`].
    #[must_use]
    pub fn new(units: Vec<UnitIndex>, chunk_sectors: u32, piece_sectors: u32) -> Self {
        assert!(!units.is_empty() && chunk_sectors > 0, "a line without sectors is read");
        assert!(
            (1..=Self::SECTORS_MAX).contains(&piece_sectors),
            "a piece of {piece_sectors} sectors does not fit a word of bits"
        );
        Self { units, chunk_sectors, piece_sectors }
    }

    /// What is read at a position: the rest of its piece. `None` behind the end of the line.
    #[must_use]
    pub fn piece(&self, at: ReadPosition) -> Option<StripePiece> {
        let (piece, within) = (at.0 / u64::from(self.piece_sectors), at.0 % u64::from(self.piece_sectors));
        let units = u64::try_from(self.units.len()).expect("an index fits 64 bits");
        let (stripe, turn) = (piece / units, usize_of(narrow(piece % units)));
        let sector = u32::try_from(stripe).ok()?.checked_mul(self.piece_sectors)?;
        let left = self.chunk_sectors.checked_sub(sector).filter(|&left| left > 0)?;
        let (within, length) = (narrow(within), left.min(self.piece_sectors));
        // Behind the end of the last stripe's shorter pieces nothing is read.
        let within = within.min(length - 1);
        Some(StripePiece { unit: self.units[turn], sector: sector + within, count: length - within })
    }

    /// The position so many sectors on, if they do not end the piece; else the next piece's.
    ///
    /// # Panics
    /// If nothing was read.
    #[must_use]
    pub fn after(&self, at: ReadPosition, sectors: u32) -> ReadPosition {
        assert!(sectors > 0, "reading goes on where it was");
        let piece = u64::from(self.piece_sectors);
        let end = (at.0 / piece + 1) * piece;
        let left = self.piece(at).map_or(0, |piece| piece.count);
        ReadPosition(if sectors < left { at.0 + u64::from(sectors) } else { end })
    }
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).expect("less than what it was divided by")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_base::Prng;

    /// Every sector of a line comes once, whole stripes before the next, whatever was read at a time.
    #[test]
    fn every_sector_is_read_once_and_stripes_one_after_the_other() {
        for seed in 0..50 {
            let mut prng = Prng::new(seed);
            let mut draw = |most: u64| narrow(1 + prng.below(most));
            let (units, chunk, piece) = (draw(6), draw(100), draw(64));
            let order = StripeOrder::new((0..units).rev().map(UnitIndex).collect(), chunk, piece);
            let mut seen = vec![0; usize_of(units * chunk)];
            let (mut at, mut stripe) = (ReadPosition::default(), 0);
            while let Some(found) = order.piece(at) {
                assert!(found.sector / piece >= stripe, "seed {seed}: {found:?} comes after stripe {stripe}");
                stripe = found.sector / piece;
                let count = draw(u64::from(found.count));
                for sector in found.sector..found.sector + count {
                    seen[usize_of(found.unit.0 * chunk + sector)] += 1;
                }
                let next = order.after(at, count);
                assert!(next > at, "seed {seed}: reading goes back from {at:?}");
                at = next;
            }
            assert!(seen.iter().all(|&times| times == 1), "seed {seed}: {seen:?}");
        }
    }

    #[test]
    fn units_come_in_the_order_that_was_told() {
        let order = StripeOrder::new([2, 0, 1].map(UnitIndex).to_vec(), 8, 4);
        let (mut at, mut turns) = (ReadPosition::default(), Vec::new());
        while let Some(piece) = order.piece(at) {
            turns.push((piece.unit.0, piece.sector));
            at = order.after(at, piece.count);
        }
        assert_eq!(turns, [(2, 0), (0, 0), (1, 0), (2, 4), (0, 4), (1, 4)]);
    }
}
