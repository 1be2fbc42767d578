//! Extents: runs of blocks of one size, which stand in for chunks of one parallel unit.
//!
//! A block target stripes what it is given by itself, so one unit is enough: a stream has as many units in flight as its owner
//! likes. Deliberately not here: what lies in an extent.

use super::above::Cut;
use ocssd_lightnvm::{Addresses, Capabilities, ChunkDescriptor, ChunkId, ChunkState, Geometry, Ppa};

/// Where extents lie, and how far each was written when it was looked at.
#[derive(Clone, Debug)]
pub struct Extents {
    /// What is taken for a drive.
    geometry: Geometry,
    /// Blocks written of each, from its start.
    written: Vec<u32>,
}

impl Extents {
    /// Extents of a target of `blocks` blocks, as large as a sector of the drive below; one write is a write unit
    /// of that drive.
    ///
    /// # Errors
    /// A sentence, if `bytes` is no size of an extent, or there is no room for any.
    pub fn new(drive: &Geometry, blocks: u64, bytes: Option<u64>, cut: Cut) -> Result<Self, String> {
        let (unit, least) = (drive.ws_opt, cut.units_min);
        let most = u64::from(drive.sectors_per_chunk.max(least * unit));
        let unit_bytes = u64::from(unit) * u64::from(drive.sector_bytes);
        let size = match bytes {
            None => {
                (blocks / cut.extents).clamp(u64::from(least * unit), most) / u64::from(unit)
                    * u64::from(unit)
            }
            Some(bytes) => {
                let is_whole = bytes.is_multiple_of(unit_bytes) && bytes / unit_bytes >= u64::from(least);
                if !is_whole {
                    return Err(format!(
                        "extent_bytes must be a multiple of the drive's write unit of {unit_bytes} bytes, {least} of them at \
                         least, but is {bytes}"
                    ));
                }
                bytes / u64::from(drive.sector_bytes)
            }
        };
        let count = u32::try_from(blocks / size).unwrap_or(u32::MAX - 1);
        let (Ok(size), true) = (u32::try_from(size), count > 0) else {
            return Err(format!(
                "an extent has {size} blocks, but the block target has {blocks}: ask for fewer extent_bytes"
            ));
        };
        let geometry = Geometry {
            sector_bytes: drive.sector_bytes,
            oob_bytes: drive.oob_bytes,
            ws_min: if cut.writes_blocks { 1 } else { unit },
            // An extent can be discarded at any time.
            capabilities: Capabilities { early_reset: true, ..Capabilities::default() },
            ..Geometry::example(1, 1, count, size, unit)
        };
        let count = usize::try_from(count).expect("32 bits fit an index");
        Ok(Self { geometry, written: vec![0; count] })
    }

    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub fn count(&self) -> u32 {
        self.geometry.chunks_per_pu
    }

    /// Units of an extent.
    pub const fn units(&self) -> u32 {
        self.geometry.sectors_per_chunk / self.geometry.ws_opt
    }

    /// An extent was found to be written so far, or was written.
    pub fn set_written(&mut self, extent: ChunkId, blocks: u32) {
        assert!(
            blocks <= self.geometry.sectors_per_chunk,
            "{blocks} blocks of extent {} are written",
            extent.0
        );
        self.written[index(extent)] = blocks;
    }

    /// What a drive would report of it.
    pub fn descriptor(&self, extent: ChunkId) -> ChunkDescriptor {
        let (written, all) = (self.written[index(extent)], self.geometry.sectors_per_chunk);
        let state = match written {
            0 => ChunkState::Free,
            _ if written == all => ChunkState::Closed,
            _ => ChunkState::Open,
        };
        let first = self.geometry.lba_of(Ppa::new(extent, 0));
        ChunkDescriptor { state, wear_index: 0, first, sectors: all, write_pointer: Some(written) }
    }

    /// The extent that a run lies in, its first block on the block target, and its blocks.
    ///
    /// # Panics
    /// If it is no run within one extent.
    pub fn blocks_of(&self, addresses: &Addresses) -> (ChunkId, u64, u32) {
        let &Addresses::Run { first, count } = addresses else {
            unreachable!("what stands on extents names runs, not {addresses:?}")
        };
        let all = self.geometry.sectors_per_chunk;
        assert!(
            first.sector + count <= all,
            "{count} blocks from {} leave extent {}",
            first.sector,
            first.chunk.0
        );
        (first.chunk, u64::from(first.chunk.0) * u64::from(all) + u64::from(first.sector), count)
    }

    /// The first block of an extent, and its blocks.
    pub fn whole(&self, extent: ChunkId) -> (u64, u32) {
        assert!(extent.0 < self.count(), "extent {} of {}", extent.0, self.count());
        let all = self.geometry.sectors_per_chunk;
        (u64::from(extent.0) * u64::from(all), all)
    }
}

fn index(extent: ChunkId) -> usize {
    usize::try_from(extent.0).expect("32 bits fit an index")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUT: Cut = Cut { extents: 512, units_min: 4, writes_blocks: false, names_content: false };

    #[test]
    fn extents_fill_a_block_target_and_are_named_as_chunks_are() {
        let drive = Geometry::example(1, 4, 100, 48, 4);
        let mut extents = Extents::new(&drive, 1000, None, CUT).expect("it fits");
        assert_eq!((extents.count(), extents.units()), (62, 4));
        let run = Addresses::Run { first: Ppa::new(ChunkId(2), 4), count: 8 };
        assert_eq!(extents.blocks_of(&run), (ChunkId(2), 36, 8));
        for (written, state) in [(0, ChunkState::Free), (4, ChunkState::Open), (16, ChunkState::Closed)] {
            extents.set_written(ChunkId(61), written);
            assert_eq!(extents.descriptor(ChunkId(61)).state, state);
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_refused_with_what_would_fit() {
        let drive = Geometry::example(1, 4, 100, 48, 4);
        for (bytes, says) in
            [(5000, "multiple of the drive's write unit of 16384"), (32_768, "4 of them"), (1 << 30, "fewer")]
        {
            let error = Extents::new(&drive, 1000, Some(bytes), CUT).expect_err("no size");
            assert!(error.contains(says), "{error}");
        }
        assert_eq!(Extents::new(&drive, 1000, Some(1 << 17), CUT).expect("it fits").count(), 31);
    }
}
