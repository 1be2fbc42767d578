//! Firmware slot information (LID 03h), 512 bytes.
//!
//! Source: NVMe base 1.4 figure 195.

use crate::identify::Text;
use crate::wire::{ShortInput, array_at, fixed, put};

/// Firmware revisions by slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirmwareSlots {
    /// AFI bits 2:0: the slot that runs, 1 to 7; 0 when nothing is known.
    pub active_slot: u8,
    /// AFI bits 6:4: the slot that will run after the next reset; 0 is no change.
    pub next_slot: u8,
    /// Revision in slots 1 to 7; `None` is an empty slot (eight zero bytes).
    pub revisions: [Option<Text<8>>; 7],
}

impl FirmwareSlots {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 512;

    /// From the first 512 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("the firmware slot log page", bytes)?;
        let mut revisions = [None; 7];
        for (index, revision) in revisions.iter_mut().enumerate() {
            let text = array_at(bytes, 8 + 8 * index);
            *revision = (text != [0; 8]).then(|| Text::from_bytes(text));
        }
        Ok(Self { active_slot: bytes[0] & 7, next_slot: bytes[0] >> 4 & 7, revisions })
    }

    /// The 512 bytes.
    ///
    /// # Panics
    /// If a slot is not 0 to 7.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let (active, next) = (self.active_slot, self.next_slot);
        assert!(active < 8 && next < 8, "firmware slots are 1 to 7, not {active} and {next}");
        let mut bytes = [0; Self::BYTES];
        bytes[0] = next << 4 | active;
        for (index, revision) in self.revisions.iter().enumerate() {
            if let Some(text) = revision {
                put(&mut bytes, 8 + 8 * index, &text.to_bytes());
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let mut bytes = [0; 512];
        bytes[0] = 0x21;
        bytes[8..16].copy_from_slice(b"1.0     ");
        bytes[56..64].copy_from_slice(b"7.0     ");
        let slots = FirmwareSlots::decode(&bytes).expect("512 bytes");
        assert_eq!((slots.active_slot, slots.next_slot), (1, 2));
        assert_eq!(slots.revisions[0], Text::new("1.0").ok());
        assert_eq!(slots.revisions[6], Text::new("7.0").ok());
        assert_eq!(slots.revisions[1], None);
        assert_eq!(slots.encode(), bytes);
        assert!(FirmwareSlots::decode(&bytes[..100]).is_err());
    }
}
