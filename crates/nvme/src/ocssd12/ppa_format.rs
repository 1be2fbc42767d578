//! The 1.2 address format: six fields anywhere in 64 bits, each with a start bit and a length.
//!
//! ```text
//! byte  0        2         4           6           8          10           12
//!       ch s,l   lun s,l   plane s,l   block s,l   page s,l   sector s,l   reserved (4)
//! ```
//! Fields may lie in any order. Source: OCSSD 1.2 section 3.1, field PPAF.

use crate::address::WireAddress;
use std::fmt;

/// A physical page address in the drive's format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppa(pub u64);

impl WireAddress for Ppa {
    fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    fn to_bits(self) -> u64 {
        self.0
    }
}

/// Where one field lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BitField {
    /// First bit.
    pub offset: u8,
    /// Bits.
    pub len: u8,
}

/// The six fields, in the order of the specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PpaFields {
    /// Channel.
    pub ch: BitField,
    /// Lun in its channel.
    pub lun: BitField,
    /// Plane in its lun.
    pub pl: BitField,
    /// Block in its plane.
    pub blk: BitField,
    /// Page in its block.
    pub pg: BitField,
    /// Sector in its page.
    pub sec: BitField,
}

/// A usable format: every field lies in 64 bits and no two overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PpaFormat(PpaFields);

/// An address taken apart. Whether the drive has it is for the drive to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageAddress {
    /// Channel.
    pub ch: u64,
    /// Lun in its channel.
    pub lun: u64,
    /// Plane in its lun.
    pub pl: u64,
    /// Block in its plane.
    pub blk: u64,
    /// Page in its block.
    pub pg: u64,
    /// Sector in its page.
    pub sec: u64,
}

/// One field of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PpaField {
    /// Channel.
    Channel,
    /// Lun.
    Lun,
    /// Plane.
    Plane,
    /// Block.
    Block,
    /// Page.
    Page,
    /// Sector.
    Sector,
}

/// Why six bit fields are not a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PpaFormatError {
    /// A field reaches beyond bit 63.
    Beyond {
        /// Which.
        field: PpaField,
        /// Where it should lie.
        bits: BitField,
    },
    /// A field overlaps one before it in the list.
    Overlap {
        /// Which.
        field: PpaField,
        /// Where it lies.
        bits: BitField,
    },
}

/// Why an address cannot be put together or taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PpaError {
    /// A part does not fit into its field.
    Overflow {
        /// Which.
        field: PpaField,
        /// The part.
        value: u64,
        /// Bits its field has.
        len: u8,
    },
    /// Bits are set that belong to no field. Ignoring them would make two addresses mean the same sector.
    Stray {
        /// Those bits.
        bits: u64,
    },
}

impl fmt::Display for PpaField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Channel => "channel",
            Self::Lun => "lun",
            Self::Plane => "plane",
            Self::Block => "block",
            Self::Page => "page",
            Self::Sector => "sector",
        })
    }
}

impl fmt::Display for PpaFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beyond { field, bits } => write!(
                f,
                "the {field} of the PPA format should lie in bits 63:0, but {} bits from bit {} on do not; move or \
                 shorten it",
                bits.len, bits.offset
            ),
            Self::Overlap { field, bits } => write!(
                f,
                "the fields of the PPA format should not overlap, but the {field} ({} bits from bit {} on) does; move it",
                bits.len, bits.offset
            ),
        }
    }
}

impl fmt::Display for PpaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow { field, value, len } => {
                write!(
                    f,
                    "the {field} has {len} bits in this PPA format, but {value} needs more; use a smaller {field}"
                )
            }
            Self::Stray { bits } => {
                write!(f, "a PPA should have no bits outside its fields, but {bits:#x} are set; clear them")
            }
        }
    }
}

impl std::error::Error for PpaFormatError {}
impl std::error::Error for PpaError {}

impl BitField {
    /// The bits of the field, or `None` if some lie beyond bit 63.
    fn mask(self) -> Option<u64> {
        if u32::from(self.offset) + u32::from(self.len) > 64 {
            return None;
        }
        let low = if self.len == 64 { u64::MAX } else { (1 << self.len) - 1 };
        // An empty field may claim to start at bit 64.
        Some(low.checked_shl(u32::from(self.offset)).unwrap_or(0))
    }

    /// The field's value in `ppa`. The format has been checked.
    fn extract(self, ppa: u64) -> u64 {
        let mask = self.mask().expect("a format's fields were checked to lie in 64 bits");
        (ppa & mask).checked_shr(u32::from(self.offset)).unwrap_or(0)
    }
}

impl PpaFormat {
    /// Size on the wire, bytes.
    pub const BYTES: usize = 16;

    /// The format with these fields.
    ///
    /// # Errors
    /// [`PpaFormatError`] if a field leaves the 64 bits or two overlap.
    pub fn new(fields: PpaFields) -> Result<Self, PpaFormatError> {
        let mut taken = 0;
        for (field, bits) in in_order(&fields) {
            let mask = bits.mask().ok_or(PpaFormatError::Beyond { field, bits })?;
            if taken & mask != 0 {
                return Err(PpaFormatError::Overlap { field, bits });
            }
            taken |= mask;
        }
        Ok(Self(fields))
    }

    /// The fields.
    pub fn fields(&self) -> PpaFields {
        self.0
    }

    /// Takes an address apart. Cost: O(1).
    ///
    /// # Errors
    /// [`PpaError::Stray`] if bits outside all fields are set.
    pub fn address(&self, ppa: Ppa) -> Result<PageAddress, PpaError> {
        let fields = &self.0;
        let taken = in_order(fields).into_iter().filter_map(|(_, bits)| bits.mask()).fold(0, |a, b| a | b);
        if ppa.0 & !taken != 0 {
            return Err(PpaError::Stray { bits: ppa.0 & !taken });
        }
        Ok(PageAddress {
            ch: fields.ch.extract(ppa.0),
            lun: fields.lun.extract(ppa.0),
            pl: fields.pl.extract(ppa.0),
            blk: fields.blk.extract(ppa.0),
            pg: fields.pg.extract(ppa.0),
            sec: fields.sec.extract(ppa.0),
        })
    }

    /// Puts an address together. Inverse of [`PpaFormat::address`]. Cost: O(1).
    ///
    /// # Errors
    /// [`PpaError::Overflow`] if a part does not fit into its field.
    pub fn ppa(&self, address: PageAddress) -> Result<Ppa, PpaError> {
        let PageAddress { ch, lun, pl, blk, pg, sec } = address;
        let mut ppa = 0;
        for ((field, bits), value) in in_order(&self.0).into_iter().zip([ch, lun, pl, blk, pg, sec]) {
            let placed = value.checked_shl(u32::from(bits.offset)).unwrap_or(0);
            if bits.extract(placed) != value {
                return Err(PpaError::Overflow { field, value, len: bits.len });
            }
            ppa |= placed;
        }
        Ok(Ppa(ppa))
    }

    /// From the 16 bytes.
    ///
    /// # Errors
    /// [`PpaFormatError`] if they are not a format.
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, PpaFormatError> {
        let at = |index: usize| BitField { offset: bytes[2 * index], len: bytes[2 * index + 1] };
        Self::new(PpaFields { ch: at(0), lun: at(1), pl: at(2), blk: at(3), pg: at(4), sec: at(5) })
    }

    /// The 16 bytes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (index, (_, bits)) in in_order(&self.0).into_iter().enumerate() {
            bytes[2 * index] = bits.offset;
            bytes[2 * index + 1] = bits.len;
        }
        bytes
    }
}

/// The fields with their names, in the order of the specification.
fn in_order(fields: &PpaFields) -> [(PpaField, BitField); 6] {
    [
        (PpaField::Channel, fields.ch),
        (PpaField::Lun, fields.lun),
        (PpaField::Plane, fields.pl),
        (PpaField::Block, fields.blk),
        (PpaField::Page, fields.pg),
        (PpaField::Sector, fields.sec),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Westlake drive of liblightnvm's tutorial.
    const WESTLAKE: [u8; 16] = [25, 4, 22, 3, 2, 1, 12, 10, 3, 9, 0, 2, 0, 0, 0, 0];

    #[test]
    fn the_westlake_format_places_every_field() {
        let format = PpaFormat::decode(&WESTLAKE).expect("29 bits, no overlap");
        assert_eq!(format.encode(), WESTLAKE);
        let address = PageAddress { ch: 15, lun: 7, pl: 1, blk: 1019, pg: 511, sec: 3 };
        let ppa = Ppa(15 << 25 | 7 << 22 | 1019 << 12 | 511 << 3 | 1 << 2 | 3);
        assert_eq!(format.ppa(address), Ok(ppa));
        assert_eq!(format.address(ppa), Ok(address));
    }

    #[test]
    fn stray_bits_and_large_parts_are_refused() {
        let format = PpaFormat::decode(&WESTLAKE).expect("a valid format");
        assert_eq!(format.address(Ppa(1 << 29)), Err(PpaError::Stray { bits: 1 << 29 }));
        let error = format.ppa(PageAddress { pg: 512, ..PageAddress::default() }).expect_err("9 bits");
        assert!(error.to_string().contains("page has 9 bits"), "{error}");
        let huge = format.ppa(PageAddress { ch: 1 << 60, ..PageAddress::default() });
        assert!(huge.is_err());
    }

    #[test]
    fn overlapping_and_overlong_fields_are_refused() {
        let mut bytes = WESTLAKE;
        bytes[2] = 25;
        let error = PpaFormat::decode(&bytes).expect_err("lun over channel").to_string();
        assert!(error.contains("lun"), "{error}");
        bytes[0] = 61;
        let error = PpaFormat::decode(&bytes).expect_err("channel over bit 64").to_string();
        assert!(error.contains("channel"), "{error}");
        bytes[..2].copy_from_slice(&[255, 255]);
        assert!(PpaFormat::decode(&bytes).is_err());
    }

    #[test]
    fn a_field_may_fill_all_bits_or_none() {
        let all = PpaFields { sec: BitField { offset: 0, len: 64 }, ..PpaFields::default() };
        let format = PpaFormat::new(all).expect("one field of 64 bits");
        let address = PageAddress { sec: u64::MAX, ..PageAddress::default() };
        assert_eq!((format.address(Ppa(u64::MAX)), format.ppa(address)), (Ok(address), Ok(Ppa(u64::MAX))));
        let empty_at_the_end = PpaFields { ch: BitField { offset: 64, len: 0 }, ..PpaFields::default() };
        let format = PpaFormat::new(empty_at_the_end).expect("an empty field takes no bits");
        assert_eq!(format.address(Ppa(0)), Ok(PageAddress::default()));
        assert!(format.ppa(PageAddress { ch: 1, ..PageAddress::default() }).is_err());
    }
}
