//! Which chunks make which zone, where a block lies, and how far each zone is written.

use crate::plane_reads::PlaneRule;
use crate::registry::Parts;
use ocssd_base::Divisor;
use ocssd_lightnvm::block::{BlockOp, BlockRequest, Zones};
use ocssd_lightnvm::{ChunkDescriptor, ChunkId, ChunkState, Geometry, Op, PlaneMode, Ppa, PuId, VECTOR_MAX};

/// How blocks lie on the units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// A zone is one chunk of every unit, WS_OPT sectors to each in turn.
    #[default]
    Striped,
    /// A zone is one chunk.
    Chunk,
}

#[derive(Clone, Copy, Debug)]
struct Zone {
    /// The chunk's index in its unit, the same for every unit of a striped zone; and, for single chunks, the unit's place.
    chunk: u32,
    unit: u32,
    written: u64,
}

/// The zones of a window.
#[derive(Clone, Debug)]
pub(super) struct ZoneMap {
    /// The units, in stripe order: next group first.
    units: Vec<PuId>,
    chunks_per_pu: u32,
    width: u64,
    ws_opt: u64,
    ws_min: u32,
    /// Most sectors of a write: one of 64 would end inside a unit where WS_OPT does not divide 64 (24: TLC), and be
    /// refused.
    write_max: u32,
    mw_cunits: u64,
    planes: PlaneRule,
    early_reset: bool,
    zone_blocks: u64,
    by_zone: Divisor,
    by_unit: Divisor,
    by_width: Divisor,
    zones: Vec<Zone>,
    /// Blocks of all zones.
    block_count: u64,
}

impl ZoneMap {
    pub(super) fn new(parts: &Parts<'_>) -> Result<Self, String> {
        let geometry = parts.geometry;
        assert!(!parts.units.is_empty(), "a lease has at least one unit");
        let mut units = parts.units.to_vec();
        units.sort_by_key(|unit| (unit.0 % geometry.pus_per_group, unit.0));
        let width = match parts.layout {
            Layout::Striped => units.len(),
            Layout::Chunk => 1,
        };
        let width = u64::try_from(width).expect("a length fits 64 bits");
        let mut map = Self {
            units,
            chunks_per_pu: geometry.chunks_per_pu,
            width,
            ws_opt: u64::from(geometry.ws_opt),
            ws_min: geometry.ws_min,
            write_max: VECTOR_MAX - VECTOR_MAX % geometry.ws_opt,
            mw_cunits: u64::from(geometry.mw_cunits),
            planes: PlaneRule::new(parts.plane_reads, geometry.ws_opt),
            early_reset: geometry.capabilities.early_reset,
            zone_blocks: u64::from(geometry.sectors_per_chunk) * width,
            by_zone: Divisor::new(u64::from(geometry.sectors_per_chunk) * width),
            by_unit: Divisor::new(u64::from(geometry.ws_opt)),
            by_width: Divisor::new(width),
            zones: Vec::new(),
            block_count: 0,
        };
        let unit_places = if width == 1 { u32::try_from(map.units.len()).expect("32-bit units") } else { 1 };
        for chunk in 0..geometry.chunks_per_pu {
            for unit in 0..unit_places {
                let zone = Zone { chunk, unit, written: 0 };
                if let Some(written) = map.measure(zone, parts, geometry) {
                    map.zones.push(Zone { written, ..zone });
                }
            }
        }
        if map.zones.is_empty() {
            return Err(format!(
                "no zone of the window is usable: every one of its {} has a chunk that is offline or was written in \
                 another order; reset the chunks or choose other units",
                geometry.chunks_per_pu
            ));
        }
        map.block_count = map.zones.len() as u64 * map.zone_blocks;
        Ok(map)
    }

    /// How far a zone is written, or `None` if it cannot be used.
    fn measure(&self, zone: Zone, parts: &Parts<'_>, geometry: &Geometry) -> Option<u64> {
        let chunks: Vec<ChunkDescriptor> = self.chunks_of(zone).map(parts.report).collect();
        if chunks.iter().any(|chunk| chunk.state == ChunkState::Offline) {
            return None;
        }
        let pointer = |chunk: &ChunkDescriptor| u64::from(chunk.write_pointer.unwrap_or_default());
        let written: u64 = chunks.iter().map(pointer).sum();
        let early = chunks.iter().any(|chunk| {
            chunk.state == ChunkState::Closed && pointer(chunk) < u64::from(geometry.sectors_per_chunk)
        });
        // Written in stripe order: the pointers are exactly what `written` blocks in order make.
        let in_order =
            chunks.iter().zip(0..).all(|(chunk, place)| pointer(chunk) == self.share(written, place));
        (in_order && !early).then_some(written)
    }

    /// Sectors of unit `place` after `written` blocks of a zone.
    fn share(&self, written: u64, place: u64) -> u64 {
        let stripe = self.ws_opt * self.width;
        let rest = (written % stripe).saturating_sub(place * self.ws_opt).min(self.ws_opt);
        written / stripe * self.ws_opt + rest
    }

    fn chunks_of(&self, zone: Zone) -> impl Iterator<Item = ChunkId> + '_ {
        let first = usize::try_from(zone.unit).expect("32 bits fit an index");
        let width = usize::try_from(self.width).expect("as many units as an index counts");
        self.units[first..first + width]
            .iter()
            .map(move |unit| ChunkId(unit.0 * self.chunks_per_pu + zone.chunk))
    }

    /// How a read of `count` sectors drives the planes.
    #[inline(always)]
    pub(super) const fn plane_mode(&self, count: u32) -> PlaneMode {
        self.planes.of(count)
    }

    /// Where a block lies, and how many blocks follow it there in one run.
    #[inline(always)]
    pub(super) fn locate(&self, block: u64) -> (Ppa, u32) {
        assert!(block < self.block_count, "block {block} is beyond the window");
        let (zone, within) = self.by_zone.div_rem(block);
        let zone = self.zones[usize::try_from(zone).expect("a zone is an index")];
        let (stripe, offset) = self.by_unit.div_rem(within);
        let (row, place) = self.by_width.div_rem(stripe);
        let place = usize::try_from(place).expect("a unit is an index")
            + usize::try_from(zone.unit).expect("32 bits fit an index");
        let sector = row * self.ws_opt + offset;
        let chunk = ChunkId(self.units[place].0 * self.chunks_per_pu + zone.chunk);
        let run = if self.width == 1 { self.zone_blocks - within } else { self.ws_opt - offset };
        let sector = u32::try_from(sector).expect("a sector of a chunk fits 32 bits");
        (Ppa::new(chunk, sector), u32::try_from(run).expect("a run is within a chunk"))
    }

    /// The chunks of the zone at `block` that hold something, from place `from` on: those a reset must name.
    pub(super) fn chunks_to_reset(
        &self,
        block: u64,
        written: u64,
        from: u64,
    ) -> impl Iterator<Item = ChunkId> + '_ {
        let zone = self.zones[usize::try_from(block / self.zone_blocks).expect("a zone is an index")];
        let skip = usize::try_from(from).expect("a unit is an index");
        let touched =
            usize::try_from(written.div_ceil(self.ws_opt).min(self.width)).expect("a unit is an index");
        self.chunks_of(zone).take(touched).skip(skip)
    }

    /// Notes what a taken request does to its zone's write pointer, and tells where it was.
    pub(super) fn on_accepted(&mut self, request: &BlockRequest) -> u64 {
        if !matches!(request.op, BlockOp::Write { .. } | BlockOp::ResetZone) {
            return 0;
        }
        let (zone, within) = self.by_zone.div_rem(request.block);
        let zone = usize::try_from(zone).expect("a zone is an index");
        let before = self.zones[zone].written;
        match request.op {
            // The drive refuses any other write: it must not move what the target believes.
            BlockOp::Write { .. } if within == before && request.count.is_multiple_of(self.ws_min) => {
                self.zones[zone].written += u64::from(request.count);
                assert!(self.zones[zone].written <= self.zone_blocks, "a write beyond its zone was taken");
            }
            BlockOp::ResetZone => self.zones[zone].written = 0,
            _ => {}
        }
        before
    }

    /// True if the drive resets every chunk of the zone at `block` that holds something: all are CLOSED, or it takes OPEN
    /// ones. Otherwise a reset would empty some chunks and fail at the others.
    pub(super) fn can_reset(&self, block: u64) -> bool {
        let zone = self.zones[usize::try_from(block / self.zone_blocks).expect("a zone is an index")];
        self.early_reset || zone.written == 0 || zone.written == self.zone_blocks
    }

    /// Most sectors of one command.
    pub(super) fn transfer_max(&self, op: Op) -> u32 {
        if op == Op::Read { VECTOR_MAX } else { self.write_max }
    }

    pub(super) const fn is_zone_start(&self, block: u64) -> bool {
        block.is_multiple_of(self.zone_blocks) && block < self.block_count()
    }

    pub(super) fn fits_zone(&self, block: u64, count: u32) -> bool {
        self.by_zone.div_rem(block).1 + u64::from(count) <= self.zone_blocks
    }

    pub(super) const fn block_count(&self) -> u64 {
        self.block_count
    }

    pub(super) const fn zones(&self) -> Zones {
        Zones { blocks: self.zone_blocks, count: self.zones.len() as u64 }
    }

    pub(super) fn written(&self, zone: u64) -> u64 {
        self.zones[usize::try_from(zone).expect("a zone is an index")].written
    }

    pub(super) const fn write_unit(&self) -> u32 {
        self.ws_min
    }

    /// After `n` blocks of a striped zone every unit has at least `n / width` less a stripe's worth, so a block is
    /// readable once this many follow it.
    pub(super) const fn unreadable_tail(&self) -> u64 {
        if self.mw_cunits == 0 { 0 } else { (self.mw_cunits + self.ws_opt) * self.width }
    }

    pub(super) fn check(&self) {
        assert!(!self.zones.is_empty(), "a window has at least one zone");
        assert_eq!(
            self.block_count,
            self.zones.len() as u64 * self.zone_blocks,
            "the window's size is wrong"
        );
        assert!(self.zone_blocks.is_multiple_of(self.width), "every unit has the same share of a zone");
        for zone in &self.zones {
            assert!(zone.written <= self.zone_blocks, "a zone is written beyond its end");
            assert!(zone.chunk < self.chunks_per_pu, "a zone lies beyond its units");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plane_reads::PlaneReads;
    use ocssd_lightnvm::Lba;

    impl ZoneMap {
        /// Zones over all units of a drive on which nothing is written.
        pub(in super::super) fn of_free_chunks(geometry: &Geometry) -> Self {
            let units: Vec<PuId> = (0..geometry.pu_count()).map(PuId).collect();
            let (state, sectors) = (ChunkState::Free, geometry.sectors_per_chunk);
            let free =
                ChunkDescriptor { state, wear_index: 0, first: Lba(0), sectors, write_pointer: Some(0) };
            let (layout, plane_reads) = (Layout::Striped, PlaneReads::Aligned);
            let report = &|_: ChunkId| free;
            let map = Self::new(&Parts { geometry, units: &units, report, layout, plane_reads });
            map.expect("all chunks are free")
        }
    }

    #[test]
    fn a_block_can_be_read_once_every_unit_has_the_window_and_a_write_unit_behind_it() {
        let tail = |mw_cunits| {
            let geometry = Geometry { mw_cunits, ..Geometry::example(1, 3, 2, 128, 4) };
            ZoneMap::of_free_chunks(&geometry).unreadable_tail()
        };
        assert_eq!([tail(0), tail(4), tail(12)], [0, 3 * (4 + 4), 3 * (12 + 4)]);
    }
}
