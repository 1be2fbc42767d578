//! Amounts as the user gave them, in blocks of a target.

use crate::job::Amount;

/// A target's size, to resolve amounts with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) block_bytes: u32,
    pub(super) blocks: u64,
    pub(super) zone_blocks: Option<u64>,
}

impl Extent {
    /// Whole blocks of an amount, rounded down.
    ///
    /// # Errors
    /// A sentence, if zones are meant and the target has none.
    pub(super) fn blocks_of(&self, amount: Amount) -> Result<u64, String> {
        match amount {
            Amount::Bytes(bytes) => Ok(bytes / u64::from(self.block_bytes)),
            Amount::Percent(percent) => {
                let share = u128::from(self.blocks) * u128::from(percent) / 100;
                Ok(u64::try_from(share).expect("a part of the target"))
            }
            Amount::Zones(zones) => {
                let size = self
                    .zone_blocks
                    .ok_or("is given in zones, but the target has none; give bytes or percent")?;
                Ok(zones.saturating_mul(size))
            }
        }
    }
}
