//! The LBA format: how group, parallel unit, chunk and block are packed into 64 bits.
//!
//! ```text
//! bit  63                                                    0
//!      | 0 ... | Group | PU     | Chunk   | Logical block |
//!                grp_len  pu_len   chk_len    lbk_len
//! ```
//! No gaps between the fields. Counts need not be powers of two, so most formats have holes: addresses that no chunk has.
//! Source: OCSSD 2.0 section 2 and the LBAF field of the geometry.

use crate::address::Lba;
use std::fmt;

/// The four lengths in bits, as the geometry lists them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LbaFormatLengths {
    /// Bits of the group.
    pub grp_len: u8,
    /// Bits of the parallel unit.
    pub pu_len: u8,
    /// Bits of the chunk.
    pub chk_len: u8,
    /// Bits of the logical block within its chunk.
    pub lbk_len: u8,
}

/// A usable LBA format: its lengths sum to at most 63 bits, so that the size of the address space fits in 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LbaFormat(LbaFormatLengths);

/// Most bits the four fields may have together. Chosen: NSZE is 2 to the sum of the lengths and must fit in 64 bits.
const BITS_MAX: u32 = 63;

/// One field of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressField {
    /// The group.
    Group,
    /// The parallel unit in its group.
    ParallelUnit,
    /// The chunk in its parallel unit.
    Chunk,
    /// The logical block in its chunk.
    LogicalBlock,
}

impl fmt::Display for AddressField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Group => "group",
            Self::ParallelUnit => "parallel unit",
            Self::Chunk => "chunk",
            Self::LogicalBlock => "logical block",
        })
    }
}

/// An address taken apart. Whether the drive has it is for the drive to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockAddress {
    /// Group; everything above the other fields.
    pub grp: u64,
    /// Parallel unit in the group.
    pub pu: u64,
    /// Chunk in the parallel unit.
    pub chk: u64,
    /// Logical block in the chunk.
    pub lbk: u64,
}

/// The four lengths do not fit into an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LbaFormatError {
    /// The lengths found.
    pub lengths: LbaFormatLengths,
}

impl fmt::Display for LbaFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LbaFormatLengths { grp_len, pu_len, chk_len, lbk_len } = self.lengths;
        write!(
            f,
            "the LBA format's lengths must sum to at most {BITS_MAX} bits, but group {grp_len}, parallel unit {pu_len}, \
             chunk {chk_len} and block {lbk_len} sum to {}; shorten one",
            self.lengths.bits()
        )
    }
}

impl std::error::Error for LbaFormatError {}

/// A value does not fit into its field of the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldOverflow {
    /// Which field.
    pub field: AddressField,
    /// The value found.
    pub value: u64,
    /// Bits the field has. For the group these are all bits above the other fields.
    pub bits: u32,
}

impl fmt::Display for FieldOverflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, bits } = self;
        write!(
            f,
            "the {field} has {bits} bits in this LBA format, but {value} needs more; use a smaller {field}"
        )
    }
}

impl std::error::Error for FieldOverflow {}

impl LbaFormatLengths {
    /// The sum of the lengths.
    pub fn bits(&self) -> u32 {
        [self.grp_len, self.pu_len, self.chk_len, self.lbk_len].into_iter().map(u32::from).sum()
    }
}

impl LbaFormat {
    /// The format with these lengths.
    ///
    /// # Errors
    /// [`LbaFormatError`] if they sum to more than 63 bits.
    pub fn new(lengths: LbaFormatLengths) -> Result<Self, LbaFormatError> {
        if lengths.bits() > BITS_MAX { Err(LbaFormatError { lengths }) } else { Ok(Self(lengths)) }
    }

    /// The lengths.
    pub fn lengths(&self) -> LbaFormatLengths {
        self.0
    }

    /// Where the group starts: the sum of the lower lengths, at most 63.
    pub fn group_offset(&self) -> u32 {
        u32::from(self.0.pu_len) + u32::from(self.0.chk_len) + u32::from(self.0.lbk_len)
    }

    /// Size of the address space, holes included: what a drive must report as NSZE.
    pub fn address_count(&self) -> u64 {
        1 << self.0.bits()
    }

    /// Takes an address apart.
    ///
    /// The group is everything above the other fields and is not masked to its length. A mask would make an address with
    /// stray high bits look like a valid one, and a read or write would hit another group's data. Cost: O(1).
    pub fn decode(&self, lba: Lba) -> BlockAddress {
        let (pu_len, chk_len, lbk_len) =
            (u32::from(self.0.pu_len), u32::from(self.0.chk_len), u32::from(self.0.lbk_len));
        BlockAddress {
            grp: lba.0 >> self.group_offset(),
            pu: low_bits(lba.0 >> (lbk_len + chk_len), pu_len),
            chk: low_bits(lba.0 >> lbk_len, chk_len),
            lbk: low_bits(lba.0, lbk_len),
        }
    }

    /// Puts an address together. Inverse of [`LbaFormat::decode`]. Cost: O(1).
    ///
    /// # Errors
    /// [`FieldOverflow`] if a part does not fit into its field, as it would change the field above. The group may use all
    /// bits above the others.
    pub fn encode(&self, address: BlockAddress) -> Result<Lba, FieldOverflow> {
        let parts = [
            (AddressField::LogicalBlock, address.lbk, u32::from(self.0.lbk_len)),
            (AddressField::Chunk, address.chk, u32::from(self.0.chk_len)),
            (AddressField::ParallelUnit, address.pu, u32::from(self.0.pu_len)),
            (AddressField::Group, address.grp, 64 - self.group_offset()),
        ];
        let (mut lba, mut offset) = (0, 0);
        for (field, value, bits) in parts {
            if low_bits(value, bits) != value {
                return Err(FieldOverflow { field, value, bits });
            }
            // A zero-width field above bit 63 cannot be: the lengths sum to at most 63.
            lba |= value << offset;
            offset += if field == AddressField::Group { 0 } else { bits };
        }
        Ok(Lba(lba))
    }
}

/// The low `bits` bits of `value`, 0 to 64.
fn low_bits(value: u64, bits: u32) -> u64 {
    if bits == 64 { value } else { value & ((1 << bits) - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification: 16 groups, 4 PUs, 1004 chunks, 4096 blocks.
    fn example() -> LbaFormat {
        let lengths = LbaFormatLengths { grp_len: 4, pu_len: 2, chk_len: 10, lbk_len: 12 };
        LbaFormat::new(lengths).expect("28 bits")
    }

    #[test]
    fn the_example_of_the_specification() {
        let lba = Lba(0b1010 << 24 | 0b11 << 22 | 1003 << 12 | 4095);
        let address = BlockAddress { grp: 10, pu: 3, chk: 1003, lbk: 4095 };
        assert_eq!(example().decode(lba), address);
        assert_eq!(example().encode(address), Ok(lba));
        assert_eq!((example().group_offset(), example().address_count()), (24, 1 << 28));
    }

    #[test]
    fn a_group_out_of_range_does_not_alias_a_valid_one() {
        let beyond = example().decode(Lba(16 << 24));
        assert_eq!(beyond, BlockAddress { grp: 16, ..BlockAddress::default() });
        assert_eq!(example().encode(beyond), Ok(Lba(16 << 24)));
        assert_eq!(example().decode(Lba(u64::MAX)).grp, u64::MAX >> 24);
    }

    #[test]
    fn a_part_that_would_change_the_field_above_is_refused() {
        let rows = [
            (AddressField::LogicalBlock, BlockAddress { lbk: 4096, ..BlockAddress::default() }, 12),
            (AddressField::Chunk, BlockAddress { chk: 1024, ..BlockAddress::default() }, 10),
            (AddressField::ParallelUnit, BlockAddress { pu: 4, ..BlockAddress::default() }, 2),
            (AddressField::Group, BlockAddress { grp: 1 << 40, ..BlockAddress::default() }, 40),
        ];
        for (field, address, bits) in rows {
            let error = example().encode(address).expect_err("does not fit");
            assert_eq!((error.field, error.bits), (field, bits));
            assert!(error.to_string().contains("needs more"), "{error}");
        }
    }

    #[test]
    fn the_extreme_formats_work_and_a_longer_one_is_refused() {
        let empty = LbaFormat::new(LbaFormatLengths::default()).expect("0 bits");
        let all = BlockAddress { grp: u64::MAX, ..BlockAddress::default() };
        assert_eq!((empty.decode(Lba(u64::MAX)), empty.encode(all)), (all, Ok(Lba(u64::MAX))));
        let block_only = LbaFormatLengths { lbk_len: 63, ..LbaFormatLengths::default() };
        let format = LbaFormat::new(block_only).expect("63 bits");
        let address = format.decode(Lba(u64::MAX));
        assert_eq!((address.grp, address.lbk), (1, u64::MAX >> 1));
        assert_eq!(format.encode(address), Ok(Lba(u64::MAX)));
        let long = LbaFormatLengths { grp_len: 255, pu_len: 255, chk_len: 255, lbk_len: 255 };
        let error = LbaFormat::new(long).expect_err("1020 bits");
        assert!(error.to_string().contains("sum to 1020"), "{error}");
    }
}
