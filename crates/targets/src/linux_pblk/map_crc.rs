//! The checksum of the map as Linux prints it ("L2P CRC"), when it is made with `CONFIG_NVM_PBLK_DEBUG`: of all entries in
//! order, 4 bytes each, in its own packing of addresses. Two programs that print the same have the same map.

use super::format::{LineLayout, LineOffset};
use super::options::Revision;
use ocssd_ftl::{InstanceGeometry, L2p, Mapped};
use ocssd_lightnvm::Geometry;

/// The checksum; `None` if addresses have 32 bits or more, of which Linux makes entries of another kind.
pub fn map_crc(
    l2p: &L2p,
    shape: &InstanceGeometry,
    layout: &LineLayout,
    geometry: &Geometry,
    revision: Revision,
) -> Option<u32> {
    let bits = |count: u32| count.next_power_of_two().trailing_zeros();
    let format = geometry.lba_format;
    let (sector, channel, unit) =
        (u32::from(format.sector_bits), bits(layout.channels), bits(layout.units_per_channel));
    let line_at = sector + channel + unit;
    if line_at + u32::from(format.chunk_bits) >= u32::BITS {
        return None;
    }
    assert_eq!(shape.units(), layout.units(), "one instance has two shapes");
    let mut bytes = Vec::with_capacity(usize::try_from(l2p.sectors() * 4).ok()?);
    for lba in 0..l2p.sectors() {
        let entry = match l2p.get(lba) {
            Mapped::Media(place) => {
                let (line, on, at) = shape.split(place);
                let position = layout.position_of(on);
                line.0 << line_at
                    | match revision {
                        Revision::V1_2 => {
                            let LineOffset(offset) = layout.offset(position, at);
                            offset
                        }
                        Revision::V2_0 => {
                            let (group, pu) = (position.0 % layout.channels, position.0 / layout.channels);
                            pu << (sector + channel) | group << sector | at
                        }
                    }
            }
            Mapped::Nowhere | Mapped::Buffer(_) => u32::MAX,
        };
        bytes.extend_from_slice(&entry.to_le_bytes());
    }
    Some(super::format::crc_of(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_ftl::{LineId, UnitIndex};
    use ocssd_lightnvm::PuId;

    #[test]
    fn entries_are_packed_as_linux_packs_them() {
        let geometry = Geometry::example(4, 2, 64, 64, 8);
        let units: Vec<PuId> = (0..8).map(PuId).collect();
        let (shape, layout) = (
            InstanceGeometry::new(&geometry, &units),
            LineLayout::new(&geometry, &units).expect("Linux takes it"),
        );
        let mut l2p = L2p::new(2, shape.places(), 0);
        // Line 5, unit 3 of the lease (channel 1, its unit 1), sector 9.
        let place = ocssd_ftl::PhysicalAddress(shape.chunk_start(LineId(5), UnitIndex(3)).0 + 9);
        l2p.set(1, Mapped::Media(place));
        let sum = |entry: u32| {
            let bytes: Vec<u8> = [u32::MAX, entry].iter().flat_map(|entry| entry.to_le_bytes()).collect();
            Some(super::super::format::crc_of(&bytes))
        };
        let crc = |revision| map_crc(&l2p, &shape, &layout, &geometry, revision);
        // 6 bits of sector, 2 of channel, 1 of unit.
        assert_eq!(crc(Revision::V2_0), sum(5 << 9 | 1 << 8 | 1 << 6 | 9));
        assert_eq!(crc(Revision::V1_2), sum((5 << 9) | (64 + 5 * 8 + 1)));
    }
}
