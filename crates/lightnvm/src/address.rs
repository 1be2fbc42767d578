//! Addresses: generic (group, parallel unit, chunk, sector), flat (a chunk's index and a sector), and the device's own
//! packed LBA (OCSSD 2.0 section 3.1; see `docs/ppa.md`).
//!
//! Deliberately not here: OCSSD 1.2's planes and pages, which live with the 1.2 wire format.

use crate::geometry::Geometry;
use std::fmt;

/// A group: parallel units that share a channel. Counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// A parallel unit counted through the whole drive: `group * pus_per_group + pu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PuId(pub u32);

/// A chunk counted through the whole drive, in the order of the chunk information log page:
/// `(group * pus_per_group + pu) * chunks_per_pu + chunk` (OCSSD 2.0 section 3.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId(pub u32);

impl PuId {
    /// As an index.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        usize::try_from(self.0).expect("32 bits fit an index")
    }
}

impl ChunkId {
    /// As an index.
    #[must_use]
    #[inline]
    pub fn index(self) -> usize {
        usize::try_from(self.0).expect("32 bits fit an index")
    }
}

/// A physical sector: a chunk and a sector in it. Cheap to copy; may name a place that does not exist, because
/// commands from outside may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppa {
    /// The chunk.
    pub chunk: ChunkId,
    /// The sector in the chunk, from 0.
    pub sector: u32,
}

impl Ppa {
    /// What an LBA decodes to that names nothing: no chunk has this index.
    pub const NOWHERE: Self = Self { chunk: ChunkId(u32::MAX), sector: 0 };

    /// The sector at `sector` of `chunk`.
    #[must_use]
    pub const fn new(chunk: ChunkId, sector: u32) -> Self {
        Self { chunk, sector }
    }
}

/// An address by its parts, as people write it: `g1/p2/c3/s4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GenericAddress {
    /// Group.
    pub group: u32,
    /// Parallel unit in the group.
    pub pu: u32,
    /// Chunk in the parallel unit.
    pub chunk: u32,
    /// Sector in the chunk.
    pub sector: u32,
}

impl fmt::Display for GenericAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "g{}/p{}/c{}/s{}", self.group, self.pu, self.chunk, self.sector)
    }
}

impl std::str::FromStr for GenericAddress {
    type Err = String;

    /// Reads `g1/p2/c3/s4`; the sector may be left out and is then 0.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut values = [0u32; 4];
        let parts: Vec<&str> = text.split('/').collect();
        let fits = (3..=4).contains(&parts.len())
            && parts.iter().zip(["g", "p", "c", "s"]).zip(&mut values).all(|((part, prefix), value)| {
                part.strip_prefix(prefix).and_then(|digits| digits.parse().ok()).is_some_and(|parsed| {
                    *value = parsed;
                    true
                })
            });
        if !fits {
            return Err(format!(
                "an address is written g<group>/p<pu>/c<chunk>, with /s<sector> if one sector is meant; found \"{text}\""
            ));
        }
        let [group, pu, chunk, sector] = values;
        Ok(Self { group, pu, chunk, sector })
    }
}

/// An address as the device packs it: group, pu, chunk, sector from the most significant bit down (OCSSD 2.0 section
/// 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LBA {:#x}", self.0)
    }
}

/// How many bits each part of an [`Lba`] has (OCSSD 2.0 figure 8, LBAF). The parts touch, the sector starts at bit 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LbaFormat {
    /// Bits for the group.
    pub group_bits: u8,
    /// Bits for the parallel unit.
    pub pu_bits: u8,
    /// Bits for the chunk.
    pub chunk_bits: u8,
    /// Bits for the sector in the chunk.
    pub sector_bits: u8,
}

/// Four lengths that no address can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LbaFormatError {
    /// The lengths found.
    pub format: LbaFormat,
}

impl fmt::Display for LbaFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LbaFormat { group_bits, pu_bits, chunk_bits, sector_bits } = self.format;
        write!(
            f,
            "the LBA format's parts must have at most {PART_BITS_MAX} bits each and {ADDRESS_BITS_MAX} together, but group \
             {group_bits}, parallel unit {pu_bits}, chunk {chunk_bits} and sector {sector_bits} sum to {}; shorten one",
            self.format.total_bits()
        )
    }
}

impl std::error::Error for LbaFormatError {}

/// Most bits of one part: parts are 32-bit numbers everywhere.
const PART_BITS_MAX: u8 = 32;
/// Most bits of an address: NSZE is 2 to their number and must fit 64 bits.
pub(crate) const ADDRESS_BITS_MAX: u32 = 63;

/// The fewest bits that count `count` values.
fn bits_for(count: u32) -> u8 {
    let bits = u32::BITS - count.saturating_sub(1).leading_zeros();
    u8::try_from(bits).expect("at most 32 bits")
}

impl LbaFormat {
    /// The smallest format for these counts.
    #[must_use]
    pub fn smallest(groups: u32, pus: u32, chunks: u32, sectors: u32) -> Self {
        Self {
            group_bits: bits_for(groups),
            pu_bits: bits_for(pus),
            chunk_bits: bits_for(chunks),
            sector_bits: bits_for(sectors),
        }
    }

    /// The format itself, if an address can have these parts: for formats that come from outside.
    ///
    /// # Errors
    /// [`LbaFormatError`] if a part has more than 32 bits, or all together more than 63.
    pub fn checked(self) -> Result<Self, LbaFormatError> {
        let parts = [self.group_bits, self.pu_bits, self.chunk_bits, self.sector_bits];
        let fits = parts.iter().all(|&bits| bits <= PART_BITS_MAX) && self.total_bits() <= ADDRESS_BITS_MAX;
        if fits { Ok(self) } else { Err(LbaFormatError { format: self }) }
    }

    /// Where the group starts: the bits of the parts below it.
    #[must_use]
    pub fn group_offset(&self) -> u32 {
        self.total_bits() - u32::from(self.group_bits)
    }

    /// Bits of a whole address.
    #[must_use]
    pub fn total_bits(&self) -> u32 {
        [self.group_bits, self.pu_bits, self.chunk_bits, self.sector_bits].iter().map(|&b| u32::from(b)).sum()
    }

    /// How many LBAs the format can name, holes included: what Identify Namespace reports as NSZE.
    #[must_use]
    pub fn span(&self) -> u64 {
        1u64.checked_shl(self.total_bits()).unwrap_or(u64::MAX)
    }

    /// Packs an address. Parts that overflow their bits would name another place, so they must fit.
    ///
    /// # Panics
    /// If a part needs more bits than the format has for it.
    #[must_use]
    pub fn pack(&self, address: GenericAddress) -> Lba {
        let parts = [
            (address.group, self.group_bits),
            (address.pu, self.pu_bits),
            (address.chunk, self.chunk_bits),
            (address.sector, self.sector_bits),
        ];
        let packed = parts.iter().fold(0u64, |lba, &(value, bits)| {
            assert!(u64::from(value) >> bits == 0, "{value} does not fit {bits} bits of {address}");
            (lba << bits) | u64::from(value)
        });
        Lba(packed)
    }

    /// Unpacks an address. The group is everything above the other parts, unmasked: masking it would make addresses
    /// beyond the last group alias onto the first ones. `None` if the group does not fit 32 bits.
    #[must_use]
    pub fn unpack(&self, lba: Lba) -> Option<GenericAddress> {
        let field = |offset: u8, bits: u8| {
            let value = (lba.0 >> offset) & ((1u64 << bits) - 1);
            u32::try_from(value).expect("a field has at most 32 bits")
        };
        let pu_offset = self.chunk_bits + self.sector_bits;
        let group = u32::try_from(lba.0 >> (pu_offset + self.pu_bits)).ok()?;
        Some(GenericAddress {
            group,
            pu: field(pu_offset, self.pu_bits),
            chunk: field(self.sector_bits, self.chunk_bits),
            sector: field(0, self.sector_bits),
        })
    }
}

impl Geometry {
    /// The chunk of an address, or `None` if its group, unit or chunk does not exist. The sector is not looked at.
    #[must_use]
    pub fn chunk_at(&self, address: GenericAddress) -> Option<ChunkId> {
        let exists = address.group < self.groups
            && address.pu < self.pus_per_group
            && address.chunk < self.chunks_per_pu;
        exists.then(|| {
            ChunkId((address.group * self.pus_per_group + address.pu) * self.chunks_per_pu + address.chunk)
        })
    }

    /// The flat form of a device address. An address outside the geometry becomes one that names nothing.
    #[must_use]
    pub fn ppa_of(&self, lba: Lba) -> Ppa {
        let Some(address) = self.lba_format.unpack(lba) else { return Ppa::NOWHERE };
        self.chunk_at(address).map_or(Ppa::NOWHERE, |chunk| Ppa::new(chunk, address.sector))
    }

    /// The parts of a flat address. A place that does not exist gives the parts it would have.
    #[must_use]
    pub fn generic(&self, ppa: Ppa) -> GenericAddress {
        let pu = ppa.chunk.0 / self.chunks_per_pu;
        GenericAddress {
            group: pu / self.pus_per_group,
            pu: pu % self.pus_per_group,
            chunk: ppa.chunk.0 % self.chunks_per_pu,
            sector: ppa.sector,
        }
    }

    /// The device form of an existing flat address.
    ///
    /// # Panics
    /// If the address does not exist.
    #[must_use]
    pub fn lba_of(&self, ppa: Ppa) -> Lba {
        assert!(ppa.chunk.0 < self.chunk_count(), "chunk {} is beyond the drive", ppa.chunk.0);
        self.lba_format.pack(self.generic(ppa))
    }

    /// The parallel unit of an existing chunk.
    #[must_use]
    pub fn pu_of(&self, chunk: ChunkId) -> PuId {
        PuId(chunk.0 / self.chunks_per_pu)
    }

    /// The group of an existing parallel unit.
    #[must_use]
    pub fn group_of(&self, pu: PuId) -> GroupId {
        GroupId(pu.0 / self.pus_per_group)
    }

    /// Chunk `index` of a parallel unit.
    ///
    /// # Panics
    /// If the unit has no such chunk.
    #[must_use]
    pub fn chunk_of(&self, pu: PuId, index: u32) -> ChunkId {
        assert!(
            pu.0 < self.pu_count() && index < self.chunks_per_pu,
            "chunk {index} of unit {} does not exist",
            pu.0
        );
        ChunkId(pu.0 * self.chunks_per_pu + index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odd() -> Geometry {
        // Counts that are no powers of two, so that the address space has holes.
        Geometry::example(3, 5, 7, 24, 24)
    }

    #[test]
    fn the_specifications_example_packs_into_its_bits() {
        let format = LbaFormat::smallest(16, 4, 1004, 4096);
        assert_eq!(
            (format.group_bits, format.pu_bits, format.chunk_bits, format.sector_bits),
            (4, 2, 10, 12)
        );
        let lba = format.pack(GenericAddress { group: 15, pu: 3, chunk: 1003, sector: 4095 });
        assert_eq!(lba.0, (15 << 24) | (3 << 22) | (1003 << 12) | 4095);
        assert_eq!(format.span(), 1 << 28);
    }

    #[test]
    fn a_format_from_outside_is_judged() {
        let format = LbaFormat { group_bits: 31, pu_bits: 0, chunk_bits: 0, sector_bits: 32 };
        assert_eq!((format.checked(), format.group_offset()), (Ok(format), 32));
        let wide = LbaFormat { group_bits: 33, ..LbaFormat::default() };
        let long = LbaFormat { group_bits: 255, pu_bits: 255, chunk_bits: 255, sector_bits: 255 };
        for (wrong, says) in
            [(wide, "group 33"), (LbaFormat { pu_bits: 1, ..format }, "sum to 64"), (long, "sum to 1020")]
        {
            let error = wrong.checked().expect_err(says).to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn every_existing_address_survives_all_three_forms() {
        let geometry = odd();
        for chunk in (0..geometry.chunk_count()).map(ChunkId) {
            for sector in 0..geometry.sectors_per_chunk {
                let ppa = Ppa::new(chunk, sector);
                assert_eq!(geometry.ppa_of(geometry.lba_of(ppa)), ppa);
            }
        }
    }

    #[test]
    fn a_hole_or_a_group_beyond_the_last_names_nothing() {
        let geometry = odd();
        let format = geometry.lba_format;
        let hole = format.pack(GenericAddress { group: 0, pu: 6, chunk: 0, sector: 0 });
        assert_eq!(geometry.ppa_of(hole), Ppa::NOWHERE);
        // One past the two group bits: a masked decode would alias this onto group 0.
        let beyond = Lba(4 << (format.pu_bits + format.chunk_bits + format.sector_bits));
        assert_eq!(geometry.ppa_of(beyond), Ppa::NOWHERE);
        assert_eq!(geometry.ppa_of(Lba(u64::MAX)), Ppa::NOWHERE);
    }

    #[test]
    fn an_address_is_read_as_it_is_written() {
        let address = GenericAddress { group: 1, pu: 2, chunk: 3, sector: 4 };
        assert_eq!("g1/p2/c3/s4".parse(), Ok(address));
        assert_eq!("g1/p2/c3".parse(), Ok(GenericAddress { sector: 0, ..address }));
        for bad in ["", "g1", "1/2/3/4", "g1/p2/c3/s4/x5", "g1/p2/c-3", "p1/g2/c3"] {
            assert!(bad.parse::<GenericAddress>().is_err(), "{bad}");
        }
    }
}
