//! Zone descriptor extensions: 64 bytes that the host keeps with a zone, and what a target reads in them.
//!
//! The bytes are the host's own, but for a *width hint* in the first eight: so a host says for one zone over how many parallel
//! units it is striped, in the only place the command set has for what belongs to a zone. Deliberately not here: what a
//! target makes of a hint.

use super::super::list::{Entry, u32_at};
use super::descriptor::{DESCRIPTOR_BYTES, ZoneDescriptor};

/// Bytes of a zone descriptor extension: one unit of ZDES, which counts in 64 bytes (ZNS 1.1, LBA Format Extension).
pub const EXTENSION_BYTES: usize = 64;

/// What an extension with a width hint begins with (chosen: unlikely in bytes that mean something else).
const HINT: [u8; 4] = *b"ZwDt";
/// As many units as the instance allows.
const ALL: u32 = 0;
/// The units of one group.
const GROUP: u32 = u32::MAX;

/// The extension of a zone's descriptor. It is set while the zone is empty, and gone once that is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ZoneExtension(pub [u8; EXTENSION_BYTES]);

/// Over how many units a host wants one zone striped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WidthHint {
    /// As many as the instance allows.
    All,
    /// The units of one group, if the instance allows as many.
    Group,
    /// As many units, at least one.
    Units(u32),
}

impl ZoneExtension {
    /// An extension of zeroes, which hints at nothing.
    pub const ZERO: Self = Self([0; EXTENSION_BYTES]);

    /// An extension that hints at a width: four bytes `ZwDt`, then 32 bits little-endian: 0 is all, all ones one group, else
    /// the units. The rest is zero, and the host's to use.
    ///
    /// # Panics
    /// If the hint is for no unit, or for 2^32 - 1.
    #[must_use]
    pub fn with_width(hint: WidthHint) -> Self {
        let mut bytes = [0; EXTENSION_BYTES];
        bytes[..4].copy_from_slice(&HINT);
        let units = match hint {
            WidthHint::All => ALL,
            WidthHint::Group => GROUP,
            WidthHint::Units(units) => units,
        };
        assert!(
            !matches!(hint, WidthHint::Units(ALL | GROUP)),
            "a zone is striped over one unit or more, not {units}"
        );
        bytes[4..8].copy_from_slice(&units.to_le_bytes());
        Self(bytes)
    }

    /// The width it hints at; `None` of bytes that hint at none.
    #[must_use]
    pub fn width(&self) -> Option<WidthHint> {
        if self.0[..4] != HINT {
            return None;
        }
        Some(match u32_at(&self.0, 4) {
            ALL => WidthHint::All,
            GROUP => WidthHint::Group,
            units => WidthHint::Units(units),
        })
    }
}

impl Entry for ZoneExtension {
    const BYTES: usize = EXTENSION_BYTES;

    fn encode(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// A zone as an extended report shows it: its descriptor, and its extension behind that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescribedZone {
    /// The zone.
    pub zone: ZoneDescriptor,
    /// Its extension; zeroes if it has none.
    pub extension: ZoneExtension,
}

impl Entry for DescribedZone {
    const BYTES: usize = DESCRIPTOR_BYTES + EXTENSION_BYTES;

    fn encode(&self, bytes: &mut [u8]) {
        let (zone, extension) = bytes.split_at_mut(DESCRIPTOR_BYTES);
        self.zone.encode(zone);
        self.extension.encode(extension);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (zone, extension) = bytes.split_at(DESCRIPTOR_BYTES);
        Some(Self { zone: ZoneDescriptor::decode(zone)?, extension: ZoneExtension::decode(extension)? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::ZoneState;
    use super::*;

    #[test]
    fn a_width_comes_back_and_other_bytes_hint_at_none() {
        for hint in [WidthHint::All, WidthHint::Group, WidthHint::Units(1), WidthHint::Units(1 << 31)] {
            let mut extension = ZoneExtension::with_width(hint);
            assert_eq!(extension.width(), Some(hint));
            extension.0[8..].fill(0xA5);
            assert_eq!(extension.width(), Some(hint), "the rest is the host's");
            extension.0[0] ^= 1;
            assert_eq!(extension.width(), None);
        }
        assert_eq!(ZoneExtension::ZERO.width(), None);
        assert_eq!(ZoneExtension::with_width(WidthHint::Units(3)).0[..9], *b"ZwDt\x03\0\0\0\0");
    }

    #[test]
    fn a_described_zone_is_its_descriptor_and_the_extension_behind() {
        let zone = ZoneDescriptor {
            state: ZoneState::Closed,
            capacity: 9,
            start: 16,
            write_pointer: Some(16),
            has_extension: true,
            has_area: false,
        };
        let described = DescribedZone { zone, extension: ZoneExtension([7; EXTENSION_BYTES]) };
        let mut bytes = [0; DescribedZone::BYTES];
        described.encode(&mut bytes);
        assert_eq!((bytes[1], bytes[2], bytes[64], bytes[127]), (0x40, 0x80, 7, 7));
        assert_eq!(DescribedZone::decode(&bytes), Some(described));
        bytes[0] = 1;
        assert_eq!(DescribedZone::decode(&bytes), None, "no descriptor, no zone");
    }
}
