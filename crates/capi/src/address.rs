//! The drive's shape as a C struct, and addresses of sectors (OCSSD 2.0 section 2.1.1 and 3.2.1).

use crate::boundary::{call, put, shared};
use crate::failure::Failure;
use ocssd_flash::Config;
use ocssd_flash::config::Revision;
use ocssd_lightnvm::{GenericAddress, Lba, LbaFormat};
use std::ffi::c_int;

/// The drive's shape and rules. Names are those of the geometry page of OCSSD 2.0 in docs/ppa.md; counts of sectors unless
/// another unit is in the name.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// What the controller speaks: 0x20 for OCSSD 2.0, 0x12 for 1.2.
    pub revision: u32,
    /// Groups.
    pub groups: u32,
    /// Parallel units of a group.
    pub pus_per_group: u32,
    /// Chunks of a parallel unit.
    pub chunks_per_pu: u32,
    /// Sectors of a chunk.
    pub sectors_per_chunk: u32,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Bytes of metadata beside a sector; 0 for none.
    pub oob_bytes: u32,
    /// Sectors a write is a multiple of, and begins at a multiple of.
    pub ws_min: u32,
    /// Sectors of a whole write unit.
    pub ws_opt: u32,
    /// Sectors that must be written after one before it can be read; 0 for none.
    pub mw_cunits: u32,
    /// Chunks open at once in the drive; 0 for no limit.
    pub max_open_chunks: u32,
    /// Chunks open at once in a parallel unit; 0 for no limit.
    pub max_open_chunks_per_pu: u32,
    /// Commands in progress at once in the drive.
    pub queue_depth: u32,
    /// MCCAP: bit 0 vector copy, bit 1 a free chunk may be reset again, bit 2 an open chunk may be reset.
    pub capabilities: u32,
    /// Most bytes of data of one command (MDTS).
    pub transfer_bytes_max: u64,
    /// Bits of the group in an address.
    pub group_bits: u8,
    /// Bits of the parallel unit in an address.
    pub pu_bits: u8,
    /// Bits of the chunk in an address.
    pub chunk_bits: u8,
    /// Bits of the sector in an address.
    pub sector_bits: u8,
    /// Zero.
    pub reserved: u32,
}

/// Where a sector lies.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The group.
    pub group: u32,
    /// The parallel unit in the group.
    pub pu: u32,
    /// The chunk in the parallel unit.
    pub chunk: u32,
    /// The sector in the chunk.
    pub sector: u32,
}

impl Geometry {
    /// As a drive has it.
    pub fn of(config: &Config, transfer_bytes_max: u64) -> Self {
        let geometry = &config.geometry;
        let format = geometry.lba_format;
        let has = geometry.capabilities;
        let bit = |is_set: bool, number: u32| u32::from(is_set) << number;
        Self {
            revision: match config.revision {
                Revision::V12 => 0x12,
                Revision::V20 => 0x20,
            },
            groups: geometry.groups,
            pus_per_group: geometry.pus_per_group,
            chunks_per_pu: geometry.chunks_per_pu,
            sectors_per_chunk: geometry.sectors_per_chunk,
            sector_bytes: geometry.sector_bytes,
            oob_bytes: geometry.oob_bytes,
            ws_min: geometry.ws_min,
            ws_opt: geometry.ws_opt,
            mw_cunits: geometry.mw_cunits,
            max_open_chunks: geometry.max_open_chunks,
            max_open_chunks_per_pu: geometry.max_open_chunks_per_pu,
            queue_depth: config.queue_depth,
            capabilities: bit(has.vector_copy, 0) | bit(has.multiple_resets, 1) | bit(has.early_reset, 2),
            transfer_bytes_max,
            group_bits: format.group_bits,
            pu_bits: format.pu_bits,
            chunk_bits: format.chunk_bits,
            sector_bits: format.sector_bits,
            reserved: 0,
        }
    }

    fn format(&self) -> Result<LbaFormat, Failure> {
        let Self { group_bits, pu_bits, chunk_bits, sector_bits, .. } = *self;
        let format = LbaFormat { group_bits, pu_bits, chunk_bits, sector_bits };
        format.checked().map_err(|error| Failure::invalid(error.to_string()))
    }

    /// The limits of an address, in the order of its parts.
    fn has(&self, address: &Address) -> bool {
        address.group < self.groups
            && address.pu < self.pus_per_group
            && address.chunk < self.chunks_per_pu
            && address.sector < self.sectors_per_chunk
    }
}

/// The LBA of a sector of an OCSSD 2.0 drive.
///
/// Errors: -EINVAL if the drive has no such sector.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_address_pack(
    geometry: *const Geometry,
    address: *const Address,
    lba: *mut u64,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for pointers to structs of these types.
        let (geometry, address) = unsafe { (shared(geometry, "geometry")?, shared(address, "address")?) };
        let format = geometry.format()?;
        if !geometry.has(address) {
            let Address { group, pu, chunk, sector } = *address;
            return Err(Failure::invalid(format!(
                "the drive has no sector at group {group}, unit {pu}, chunk {chunk}, sector {sector}"
            )));
        }
        let Address { group, pu, chunk, sector } = *address;
        let packed = format.pack(GenericAddress { group, pu, chunk, sector });
        // SAFETY: the header asks for room for a number.
        unsafe { put(lba, "lba", packed.0)? };
        Ok(0)
    })
}

/// Where the sector of an LBA of an OCSSD 2.0 drive lies.
///
/// Errors: -EINVAL if the drive has no such LBA.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ocssd_address_unpack(
    geometry: *const Geometry,
    lba: u64,
    address: *mut Address,
) -> c_int {
    call(|| {
        // SAFETY: the header asks for a pointer to a struct of this type.
        let geometry = unsafe { shared(geometry, "geometry")? };
        let found = geometry.format()?.unpack(Lba(lba));
        let found =
            found.map(|GenericAddress { group, pu, chunk, sector }| Address { group, pu, chunk, sector });
        let found = found.filter(|address| geometry.has(address));
        let found = found.ok_or_else(|| Failure::invalid(format!("the drive has no sector {lba:#x}")))?;
        // SAFETY: the header asks for room for such a struct.
        unsafe { put(address, "address", found)? };
        Ok(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_flash::presets;

    #[test]
    fn every_corner_of_a_drive_packs_and_unpacks_and_what_lies_outside_does_not() {
        let geometry = Geometry::of(&presets::find("odd").unwrap().config(), 1 << 18);
        let last = Address {
            group: geometry.groups - 1,
            pu: geometry.pus_per_group - 1,
            chunk: geometry.chunks_per_pu - 1,
            sector: geometry.sectors_per_chunk - 1,
        };
        for address in [Address::default(), last, Address { chunk: 1, ..last }] {
            let (mut lba, mut back) = (u64::MAX, Address::default());
            // SAFETY: all pointers are to variables of this function.
            let ends = unsafe {
                let packed = ocssd_address_pack(&raw const geometry, &raw const address, &raw mut lba);
                (packed, ocssd_address_unpack(&raw const geometry, lba, &raw mut back))
            };
            assert_eq!((ends, back), ((0, 0), address));
        }
        for outside in [
            Address { group: last.group + 1, ..last },
            Address { pu: last.pu + 1, ..last },
            Address { chunk: u32::MAX, ..last },
            Address { sector: last.sector + 1, ..last },
        ] {
            let mut lba = 5;
            // SAFETY: all pointers are to variables of this function.
            let end = unsafe { ocssd_address_pack(&raw const geometry, &raw const outside, &raw mut lba) };
            assert_eq!((end, lba), (-libc::EINVAL, 5), "{outside:?}");
        }
        let wrong = Geometry { group_bits: 60, ..geometry };
        let mut back = last;
        for (geometry, lba) in [(geometry, u64::MAX), (wrong, 0)] {
            // SAFETY: all pointers are to variables of this function.
            let end = unsafe { ocssd_address_unpack(&raw const geometry, lba, &raw mut back) };
            assert_eq!((end, back), (-libc::EINVAL, last));
        }
    }
}
