//! The bad block table of one lun: a 64-byte header, then one byte per block and plane.
//!
//! ```text
//! byte 0 "BBLT"   4 version   6 revision   12 total   16 factory bad   20 grown bad   24 device   28 host   64..
//! blocks
//! ```
//! Entry index is `block * planes + plane`. The text of the specification says the header has 32 bytes, its table 64;
//! every host uses 64. Source: OCSSD 1.2 section 3.3; Linux checks the magic, version 1 and the total.

use crate::wire::{ShortInput, array_at, fixed, put, u16_at, u32_at};
use std::fmt;

/// What is known about a block: bits 4:0 of its byte. 0 is a good block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockFlags(u8);

/// A block's byte has reserved bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFlagsError {
    /// The byte as found.
    pub found: u8,
}

/// A bad block table. The counters of the header follow from the blocks and are not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBlockTable {
    /// Revision: the drive's own, changes with every update.
    pub revision: u16,
    /// One entry per block and plane, at `block * planes + plane`. At most 2^32 - 1.
    pub blocks: Vec<BlockFlags>,
}

/// Why bytes are not a bad block table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BbtError {
    /// The input ends before the header does, or before the last block's byte.
    Short(ShortInput),
    /// The first four bytes are not "BBLT".
    Magic {
        /// The four bytes.
        found: [u8; 4],
    },
    /// The version is not 1.
    Version {
        /// The version.
        found: u16,
    },
    /// A block's byte has reserved bits.
    Flags {
        /// Which entry.
        index: usize,
        /// Its byte.
        error: BlockFlagsError,
    },
    /// A counter of the header disagrees with the blocks.
    Counter {
        /// Which counter.
        counter: &'static str,
        /// What the blocks say.
        expected: u32,
        /// What the header says.
        found: u32,
    },
}

const MAGIC: [u8; 4] = *b"BBLT";
/// Version, bytes 5:4 (OCSSD 1.2 section 3.3).
const VERSION: u16 = 1;
/// Where each counter of the header is, and the flag it counts (OCSSD 1.2 section 3.3).
const COUNTERS: [(usize, &str, BlockFlags); 4] = [
    (16, "factory bad blocks", BlockFlags::FACTORY_BAD),
    (20, "grown bad blocks", BlockFlags::GROWN_BAD),
    (24, "device reserved blocks", BlockFlags::DEVICE_RESERVED),
    (28, "host reserved blocks", BlockFlags::HOST_RESERVED),
];

impl BlockFlags {
    /// A usable block.
    pub const GOOD: Self = Self(0);
    /// Bit 0: bad from the factory.
    pub const FACTORY_BAD: Self = Self(1);
    /// Bit 1: went bad in use.
    pub const GROWN_BAD: Self = Self(1 << 1);
    /// Bit 2: reserved by the drive.
    pub const DEVICE_RESERVED: Self = Self(1 << 2);
    /// Bit 3: reserved by the host.
    pub const HOST_RESERVED: Self = Self(1 << 3);
    /// Bit 4: reserved by the media manager.
    pub const MEDIA_MANAGER_RESERVED: Self = Self(1 << 4);

    /// From a block's byte.
    ///
    /// # Errors
    /// [`BlockFlagsError`] if bits 7:5 are not 0.
    pub fn from_bits(bits: u8) -> Result<Self, BlockFlagsError> {
        if bits & 0xE0 == 0 { Ok(Self(bits)) } else { Err(BlockFlagsError { found: bits }) }
    }

    /// The block's byte.
    pub fn to_bits(self) -> u8 {
        self.0
    }

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Display for BlockFlagsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a block's flags should be 00h to 1Fh, but they are {:02X}h; clear bits 7:5", self.found)
    }
}

impl fmt::Display for BbtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(short) => short.fmt(f),
            Self::Magic { found } => {
                write!(
                    f,
                    "a bad block table should start with \"BBLT\", but it starts with {found:02X?}; is it one?"
                )
            }
            Self::Version { found } => {
                write!(
                    f,
                    "the bad block table's version should be {VERSION}, but it is {found}; this format is unknown"
                )
            }
            Self::Flags { index, error } => write!(f, "at entry {index} of the bad block table, {error}"),
            Self::Counter { counter, expected, found } => write!(
                f,
                "the bad block table's blocks hold {expected} {counter}, but its header says {found}; the table is damaged"
            ),
        }
    }
}

impl std::error::Error for BlockFlagsError {}
impl std::error::Error for BbtError {}

impl BadBlockTable {
    /// Size of the header, bytes.
    pub const HEADER_BYTES: usize = 64;

    /// How many entries have all bits of `flags`.
    fn count(&self, flags: BlockFlags) -> u32 {
        let count = self.blocks.iter().filter(|block| block.contains(flags)).count();
        u32::try_from(count).expect("a table has at most 2^32 - 1 entries")
    }

    /// From the header and the bytes after it.
    ///
    /// # Errors
    /// [`BbtError`], in the order of its variants. Nothing is allocated before the length is checked.
    pub fn decode(bytes: &[u8]) -> Result<Self, BbtError> {
        let header = fixed::<{ Self::HEADER_BYTES }>("the bad block table's header", bytes)
            .map_err(BbtError::Short)?;
        let magic = array_at(header, 0);
        if magic != MAGIC {
            return Err(BbtError::Magic { found: magic });
        }
        let version = u16_at(header, 4);
        if version != VERSION {
            return Err(BbtError::Version { found: version });
        }
        let total = usize::try_from(u32_at(header, 12)).expect("the project needs at least 32-bit addresses");
        let entries = bytes[Self::HEADER_BYTES..].get(..total).ok_or(BbtError::Short(ShortInput {
            structure: "the bad block table",
            expected_bytes: Self::HEADER_BYTES.saturating_add(total),
            found_bytes: bytes.len(),
        }))?;
        let flags = |(index, byte): (usize, &u8)| {
            BlockFlags::from_bits(*byte).map_err(|error| BbtError::Flags { index, error })
        };
        let blocks = entries.iter().enumerate().map(flags).collect::<Result<_, _>>()?;
        let table = Self { revision: u16_at(header, 6), blocks };
        for (offset, counter, flags) in COUNTERS {
            let (expected, found) = (table.count(flags), u32_at(header, offset));
            if expected != found {
                return Err(BbtError::Counter { counter, expected, found });
            }
        }
        Ok(table)
    }

    /// The header and one byte per entry.
    ///
    /// # Panics
    /// If there are 2^32 entries or more.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::HEADER_BYTES];
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 4, &VERSION.to_le_bytes());
        put(&mut bytes, 6, &self.revision.to_le_bytes());
        put(&mut bytes, 12, &self.count(BlockFlags::GOOD).to_le_bytes());
        for (offset, _, flags) in COUNTERS {
            put(&mut bytes, offset, &self.count(flags).to_le_bytes());
        }
        bytes.extend(self.blocks.iter().map(|block| block.to_bits()));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five blocks: good, factory bad, grown bad, host reserved, factory bad.
    fn bytes() -> Vec<u8> {
        let mut bytes = vec![0; 69];
        bytes[..8].copy_from_slice(&[b'B', b'B', b'L', b'T', 1, 0, 9, 0]);
        bytes[12] = 5;
        bytes[16] = 2;
        bytes[20] = 1;
        bytes[28] = 1;
        bytes[64..].copy_from_slice(&[0, 1, 2, 8, 1]);
        bytes
    }

    #[test]
    fn every_field_sits_where_the_table_puts_it() {
        let blocks = vec![
            BlockFlags::GOOD,
            BlockFlags::FACTORY_BAD,
            BlockFlags::GROWN_BAD,
            BlockFlags::HOST_RESERVED,
            BlockFlags::FACTORY_BAD,
        ];
        let table = BadBlockTable { revision: 9, blocks };
        assert_eq!(BadBlockTable::decode(&bytes()).as_ref(), Ok(&table));
        assert_eq!(table.encode(), bytes());
    }

    #[test]
    fn damaged_tables_are_refused_with_a_sentence() {
        let rows = [
            (0, b'X', "\"BBLT\""),
            (4, 2, "version should be 1"),
            (12, 6, "needs 70 bytes"),
            (15, 0xFF, "ends after 69"),
            (65, 0x20, "entry 1"),
            (16, 1, "2 factory bad blocks"),
            (20, 0, "1 grown bad blocks"),
            (24, 1, "0 device reserved"),
            (28, 7, "header says 7"),
        ];
        for (offset, byte, says) in rows {
            let mut bytes = bytes();
            bytes[offset] = byte;
            let error = BadBlockTable::decode(&bytes).expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(matches!(BadBlockTable::decode(&bytes()[..63]), Err(BbtError::Short(_))));
    }

    #[test]
    fn flags_combine() {
        let both = BlockFlags::GROWN_BAD.union(BlockFlags::HOST_RESERVED);
        assert!(both.contains(BlockFlags::GROWN_BAD) && !both.contains(BlockFlags::FACTORY_BAD));
        assert_eq!(both.to_bits(), 0x0A);
    }
}
