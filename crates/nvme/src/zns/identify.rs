//! Identify of the Zoned Namespace Command Set: a namespace's zones (CNS 05h) and a controller's append limit (CNS 06h).
//!
//! Source: ZNS 1.1 sections 4.1.5.1 and 4.1.5.2.

use crate::wire::{ShortInput, fixed, put, u16_at, u32_at, u64_at};
use ocssd_lightnvm::interface::zoned::ZoneArea;

/// Where the list of format extensions begins.
const EXTENSIONS_AT: usize = 2816;
/// How many there are.
const EXTENSIONS: usize = 64;

/// OZCS, bit 1: zones take random write areas (ZRWASUP).
pub const OZCS_AREAS: u16 = 1 << 1;

/// ZRWACAP, bit 0: an area is committed when the host asks for it, too (EXPFLUSHSUP).
const COMMITS_WHEN_ASKED: u8 = 1;

/// What a namespace says about its zones. Fields of delays are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZnsNamespace {
    /// ZOC, bit 0: zone capacities may change; bit 1: zones are finished by the controller. Linux takes neither.
    pub zoc: u16,
    /// OZCS, bit 0: reads may cross from one zone into the next; bit 1: zone random write areas.
    pub ozcs: u16,
    /// MAR + 1: most zones active at once; `None` is no limit.
    pub active_max: Option<u32>,
    /// MOR + 1: most zones open at once; `None` is no limit.
    pub open_max: Option<u32>,
    /// NUMZRWA, ZRWASZ and ZRWAFG: its zone random write areas, which a host may commit; `None` if it has none.
    pub area: Option<ZoneArea>,
    /// LBAFE: the zones with each LBA format.
    pub formats: Box<[LbaFormatExtension; EXTENSIONS]>,
}

/// The zones with one LBA format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LbaFormatExtension {
    /// ZSZE: blocks from the start of a zone to that of the next.
    pub zone_size: u64,
    /// ZDES: bytes of a zone's descriptor extension, in units of 64.
    pub extension_units: u8,
}

impl LbaFormatExtension {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 16;

    fn decode(bytes: &[u8]) -> Self {
        Self { zone_size: u64_at(bytes, 0), extension_units: bytes[8] }
    }
}

const _: () = assert!(
    EXTENSIONS_AT + EXTENSIONS * LbaFormatExtension::BYTES == 3840,
    "the list ends where the vendor's bytes begin"
);

/// A limit, 0-based on the wire, where all ones is none.
fn limit(bits: u32) -> Option<u32> {
    bits.checked_add(1)
}

fn limit_bits(limit: Option<u32>) -> u32 {
    limit.map_or(u32::MAX, |count| count.saturating_sub(1))
}

impl ZnsNamespace {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;

    /// Zones of `zone_size` blocks with the first LBA format, without limits.
    #[must_use]
    pub fn plain(zone_size: u64) -> Self {
        let mut formats = Box::new([LbaFormatExtension::default(); EXTENSIONS]);
        formats[0].zone_size = zone_size;
        Self { zoc: 0, ozcs: 0, active_max: None, open_max: None, area: None, formats }
    }

    /// From the first 4096 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("the zoned Identify Namespace", bytes)?;
        let mut formats = Box::new([LbaFormatExtension::default(); EXTENSIONS]);
        let places = bytes[EXTENSIONS_AT..].chunks_exact(LbaFormatExtension::BYTES);
        formats
            .iter_mut()
            .zip(places)
            .for_each(|(format, place)| *format = LbaFormatExtension::decode(place));
        let area = ZoneArea {
            areas_max: u32_at(bytes, 44),
            granularity: u16_at(bytes, 48),
            blocks: u16_at(bytes, 50),
        };
        Ok(Self {
            zoc: u16_at(bytes, 0),
            ozcs: u16_at(bytes, 2),
            active_max: limit(u32_at(bytes, 4)),
            open_max: limit(u32_at(bytes, 8)),
            area: Some(area).filter(|area| area.blocks > 0),
            formats,
        })
    }

    /// The 4096 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        put(&mut bytes, 0, &self.zoc.to_le_bytes());
        put(&mut bytes, 2, &self.ozcs.to_le_bytes());
        put(&mut bytes, 4, &limit_bits(self.active_max).to_le_bytes());
        put(&mut bytes, 8, &limit_bits(self.open_max).to_le_bytes());
        if let Some(ZoneArea { blocks, granularity, areas_max }) = self.area {
            put(&mut bytes, 44, &areas_max.to_le_bytes());
            put(&mut bytes, 48, &granularity.to_le_bytes());
            put(&mut bytes, 50, &blocks.to_le_bytes());
            bytes[52] = COMMITS_WHEN_ASKED;
        }
        for (place, format) in self.formats.iter().enumerate() {
            let at = EXTENSIONS_AT + place * LbaFormatExtension::BYTES;
            put(&mut bytes, at, &format.zone_size.to_le_bytes());
            bytes[at + 8] = format.extension_units;
        }
        bytes
    }
}

/// What a controller says about zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZnsController {
    /// ZASL: an append carries at most 2^zasl pages of the smallest size; 0 is as much as any command (MDTS).
    pub zasl: u8,
}

impl ZnsController {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 4096;

    /// From the first 4096 bytes.
    ///
    /// # Errors
    /// [`ShortInput`] if there are fewer.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShortInput> {
        let bytes = fixed::<{ Self::BYTES }>("the zoned Identify Controller", bytes)?;
        Ok(Self { zasl: bytes[0] })
    }

    /// The 4096 bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = self.zasl;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let mut bytes = [0; 4096];
        bytes[..12].copy_from_slice(&[1, 0, 2, 0, 13, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
        bytes[44..53].copy_from_slice(&[7, 0, 0, 0, 2, 0, 16, 0, 1]);
        bytes[2816 + 16..2816 + 25].copy_from_slice(&[0, 0, 4, 0, 0, 0, 0, 0, 3]);
        let namespace = ZnsNamespace::decode(&bytes).expect("4096 bytes");
        assert_eq!((namespace.zoc, namespace.ozcs), (1, OZCS_AREAS));
        assert_eq!(namespace.area, Some(ZoneArea { areas_max: 7, granularity: 2, blocks: 16 }));
        assert_eq!((namespace.active_max, namespace.open_max), (Some(14), None));
        assert_eq!(namespace.formats[1], LbaFormatExtension { zone_size: 1 << 18, extension_units: 3 });
        assert_eq!(namespace.encode(), bytes);
        assert!(ZnsNamespace::decode(&bytes[1..]).is_err() && ZnsController::decode(&bytes[1..]).is_err());
    }

    #[test]
    fn zones_without_limits_say_so_with_all_ones() {
        let bytes = ZnsNamespace::plain(7).encode();
        assert_eq!((&bytes[4..12], bytes[2816]), (&[0xFF; 8][..], 7));
        assert_eq!(ZnsController { zasl: 5 }.encode()[..2], [5, 0]);
    }
}
