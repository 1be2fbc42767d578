//! The Changed Zone List (LID BFh): zones that became read only or offline, or whose attributes changed, by themselves.
//!
//! Source: ZNS 1.1 figure "Changed Zone List Log Page"; Zone Descriptor Changed is the event that announces it.

use crate::address::Lba;
use crate::wire::{ShortInput, fixed, put, u16_at, u64_at};

/// The page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangedZoneList {
    /// These zones, by their first blocks; at most [`ChangedZoneList::LEN_MAX`].
    Zones(Vec<Lba>),
    /// More than the page has room for: look at all.
    TooMany,
}

/// What stands in place of the number if there are too many.
const TOO_MANY: u16 = 0xFFFF;

impl ChangedZoneList {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;
    /// Zones that fit.
    pub const LEN_MAX: usize = 511;

    /// The page of these zones.
    #[must_use]
    pub fn of(zones: Vec<Lba>) -> Self {
        if zones.len() > Self::LEN_MAX { Self::TooMany } else { Self::Zones(zones) }
    }

    /// From the first 4096 bytes. A number beyond those that fit means too many.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("the changed zone list", bytes)?;
        let count = usize::from(u16_at(bytes, 0));
        if count > Self::LEN_MAX {
            return Ok(Self::TooMany);
        }
        Ok(Self::Zones((1..=count).map(|place| Lba(u64_at(bytes, 8 * place))).collect()))
    }

    /// The 4096 bytes.
    ///
    /// # Panics
    /// If there are more zones than fit.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        match self {
            Self::TooMany => put(&mut bytes, 0, &TOO_MANY.to_le_bytes()),
            Self::Zones(zones) => {
                assert!(zones.len() <= Self::LEN_MAX, "{} zones do not fit", zones.len());
                let count = u16::try_from(zones.len()).expect("at most 511");
                put(&mut bytes, 0, &count.to_le_bytes());
                zones
                    .iter()
                    .zip(1..)
                    .for_each(|(zone, place)| put(&mut bytes, 8 * place, &zone.0.to_le_bytes()));
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_follow_their_number_and_too_many_are_all_ones() {
        let list = ChangedZoneList::of(vec![Lba(0x40), Lba(0x1_0000)]);
        let bytes = list.encode();
        assert_eq!((bytes[0], bytes[8], bytes[18], bytes[24]), (2, 0x40, 1, 0));
        assert_eq!(ChangedZoneList::decode(&bytes), Ok(list));
        let full = ChangedZoneList::of(vec![Lba(1); 511]);
        assert_eq!(ChangedZoneList::decode(&full.encode()), Ok(full));
        let more = ChangedZoneList::of(vec![Lba(1); 512]);
        assert_eq!((more.encode()[..3].to_vec(), more), (vec![0xFF, 0xFF, 0], ChangedZoneList::TooMany));
        assert!(ChangedZoneList::decode(&bytes[1..]).is_err());
    }
}
