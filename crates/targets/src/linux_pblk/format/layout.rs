//! The shape of an instance's lines: the order in which the sectors of a line are numbered, and the sizes of its metadata.
//!
//! Line `i` is chunk `i` of every unit. Sectors are numbered in the order they are written: WS_OPT of one unit, then as
//! many of the next channel's unit, after the last channel of the next unit. On a 1.2 drive Linux makes the number of
//! bits instead; it is the same where the parts of an address fill their bits. Deliberately not here: bad chunks
//! (`parts`).

use ocssd_base::usize_of;
use ocssd_ftl::UnitIndex;
use ocssd_lightnvm::{Geometry, PuId};

/// Most units of an instance, as a comment on `PBLK_MAX_LUNS_BITMAP` has it.
const UNITS_MAX: u32 = 512;
/// Bytes of a sector: `PBLK_EXPOSED_PAGE_SIZE`.
const SECTOR_BYTES: u32 = 4096;
/// Most sectors of a line: Linux counts them in an `int` here and there.
const LINE_SECTORS_MAX: u64 = 1 << 31;
/// `struct line_emeta` without its bitmap.
pub const EMETA_STRUCTURE_BYTES: usize = 72;
/// `struct wa_counters`.
pub const WA_COUNTERS_BYTES: usize = 24;
/// `struct line_smeta` without its bitmap.
const SMETA_STRUCTURE_BYTES: usize = 64;

/// A unit of the instance by its place in the order of writing: `unit of its channel * channels + channel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u32);

/// A sector of a line by its place in the order of writing, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineOffset(pub u32);

/// The shape of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineLayout {
    /// Channels of the instance: `C`.
    pub channels: u32,
    /// Units of one channel: `L`.
    pub units_per_channel: u32,
    /// Sectors of a write unit: `W`, WS_OPT.
    pub unit: u32,
    /// Sectors of a chunk: `K`.
    pub chunk: u32,
    /// Bytes of a sector: `B`.
    pub sector_bytes: usize,
    /// Lines, good and bad.
    pub lines: u32,
    /// Sectors of the end metadata: structure, list of addresses, counts, and all together in whole write units.
    emeta: [u32; 4],
}

impl LineLayout {
    /// The lines of an instance on `units` of a drive.
    ///
    /// # Errors
    /// A sentence, if Linux makes no instance on such units: they must follow each other, and be as many of every group.
    pub fn new(geometry: &Geometry, units: &[PuId]) -> Result<Self, String> {
        if geometry.sector_bytes != SECTOR_BYTES {
            return Err(format!(
                "Linux's pblk works with sectors of {SECTOR_BYTES} bytes, but the drive has sectors of {}",
                geometry.sector_bytes
            ));
        }
        let (channels, units_per_channel) = channels_of(geometry, units)?;
        let line = u64::from(channels) * u64::from(units_per_channel) * u64::from(geometry.sectors_per_chunk);
        if line >= LINE_SECTORS_MAX {
            return Err(format!(
                "a line of Linux's pblk has fewer than {LINE_SECTORS_MAX} sectors, but here it would have {line}; use fewer \
                 parallel units"
            ));
        }
        let mut layout = Self {
            channels,
            units_per_channel,
            unit: geometry.ws_opt,
            chunk: geometry.sectors_per_chunk,
            sector_bytes: usize_of(geometry.sector_bytes),
            lines: geometry.chunks_per_pu,
            emeta: [0; 4],
        };
        layout.measure_emeta();
        let counters = EMETA_STRUCTURE_BYTES + layout.unit_bitmap_bytes() * 8 + WA_COUNTERS_BYTES;
        assert!(
            counters <= layout.list_bytes().start,
            "the counters of {} units lie in the list",
            layout.units()
        );
        assert!(
            layout.smeta_bytes() >= SMETA_STRUCTURE_BYTES + layout.unit_bitmap_bytes(),
            "a unit holds it"
        );
        if layout.chunks_min() > layout.units() {
            return Err(format!(
                "the metadata of a line of Linux's pblk need {} of its chunks, but there are {} parallel units; give it more",
                layout.chunks_min(),
                layout.units()
            ));
        }
        Ok(layout)
    }

    /// Sizes of the end metadata: the list is shorter the more sectors they take, so they are tried from one unit on.
    fn measure_emeta(&mut self) {
        let sectors =
            |bytes: usize| u32::try_from(bytes.div_ceil(self.sector_bytes)).expect("a part of a line");
        let structure = sectors(EMETA_STRUCTURE_BYTES + self.unit_bitmap_bytes() + WA_COUNTERS_BYTES);
        let counts = sectors(usize_of(self.lines) * 4);
        let mut all = self.unit;
        loop {
            let list = sectors(usize_of(self.sectors().saturating_sub(all)) * 8);
            let needed = structure + list + counts;
            if needed <= all {
                self.emeta = [structure, list, counts, all];
                return;
            }
            all += self.unit;
        }
    }

    /// Units: `U`.
    #[must_use]
    pub const fn units(&self) -> u32 {
        self.channels * self.units_per_channel
    }

    /// Sectors of a line, good and bad: `S`.
    #[must_use]
    pub const fn sectors(&self) -> u32 {
        self.units() * self.chunk
    }

    /// Bytes of a bitmap of units: whole words of 64 bits.
    #[must_use]
    pub fn unit_bitmap_bytes(&self) -> usize {
        usize_of(self.units().div_ceil(64)) * 8
    }

    /// Bytes of the start metadata, which are one unit: `M0 * B`. 64 bytes and 512 bits fit the smallest sector.
    #[must_use]
    pub fn smeta_bytes(&self) -> usize {
        usize_of(self.unit) * self.sector_bytes
    }

    /// Sectors of the end metadata: `E0`.
    #[must_use]
    pub const fn emeta_sectors(&self) -> u32 {
        self.emeta[3]
    }

    /// Bytes of the end metadata.
    #[must_use]
    pub fn emeta_bytes(&self) -> usize {
        usize_of(self.emeta[3]) * self.sector_bytes
    }

    /// Where in the end metadata the list of addresses begins, and where it ends.
    #[must_use]
    pub fn list_bytes(&self) -> std::ops::Range<usize> {
        let [structure, list, ..] = self.emeta.map(usize_of);
        structure * self.sector_bytes..(structure + list) * self.sector_bytes
    }

    /// Where in the end metadata the counts of all lines begin, and where they end.
    #[must_use]
    pub fn count_bytes(&self) -> std::ops::Range<usize> {
        let start = self.list_bytes().end;
        start..start + usize_of(self.lines) * 4
    }

    /// Good chunks a line needs to be used.
    #[must_use]
    pub const fn chunks_min(&self) -> u32 {
        if self.units() == 1 { 1 } else { 1 + (self.unit + self.emeta[3]).div_ceil(self.chunk) }
    }

    /// The unit at a position, as the lease counts it: channel by channel.
    #[must_use]
    pub fn unit_at(&self, position: Position) -> UnitIndex {
        assert!(position.0 < self.units(), "position {} of {} units", position.0, self.units());
        let (channel, unit) = (position.0 % self.channels, position.0 / self.channels);
        UnitIndex(channel * self.units_per_channel + unit)
    }

    /// The position of a unit.
    #[must_use]
    pub fn position_of(&self, unit: UnitIndex) -> Position {
        assert!(unit.0 < self.units(), "unit {} of {}", unit.0, self.units());
        let (channel, unit) = (unit.0 / self.units_per_channel, unit.0 % self.units_per_channel);
        Position(unit * self.channels + channel)
    }

    /// The unit an offset is on, by its position, and the sector of its chunk.
    #[must_use]
    pub fn split(&self, offset: LineOffset) -> (Position, u32) {
        assert!(offset.0 < self.sectors(), "offset {} of a line of {}", offset.0, self.sectors());
        let stripe = offset.0 / self.unit;
        (Position(stripe % self.units()), stripe / self.units() * self.unit + offset.0 % self.unit)
    }

    /// The offset of a sector of the chunk at a position.
    #[must_use]
    pub fn offset(&self, position: Position, sector: u32) -> LineOffset {
        assert!(position.0 < self.units() && sector < self.chunk, "sector {sector} of {position:?}");
        let stripe = sector / self.unit * self.units() + position.0;
        LineOffset(stripe * self.unit + sector % self.unit)
    }
}

/// Channels, and units of each: a part of one group, or whole groups, as LightNVM gives them to a target.
fn channels_of(geometry: &Geometry, units: &[PuId]) -> Result<(u32, u32), String> {
    let count = u32::try_from(units.len()).expect("fewer units than 2^32");
    if count == 0 || count > UNITS_MAX {
        return Err(format!("Linux's pblk takes 1 to {UNITS_MAX} parallel units, but {count} were given"));
    }
    let first = units[0];
    if !units.iter().zip(first.0..).all(|(unit, expected)| unit.0 == expected) {
        return Err(
            "Linux's pblk takes parallel units that follow each other, but these do not; name a range"
                .to_owned(),
        );
    }
    let group = geometry.pus_per_group;
    let in_one = first.0 / group == (first.0 + count - 1) / group;
    if in_one {
        return Ok((1, count));
    }
    if first.0.is_multiple_of(group) && count.is_multiple_of(group) {
        return Ok((count / group, group));
    }
    Err(format!(
        "Linux's pblk takes units of one group, or whole groups of {group} units, but {count} units from {} on were given",
        first.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(geometry: &Geometry) -> LineLayout {
        let units: Vec<PuId> = (0..geometry.pu_count()).map(PuId).collect();
        LineLayout::new(geometry, &units).expect("Linux takes it")
    }

    #[test]
    fn offsets_go_over_channels_then_units_then_up_the_chunks() {
        let layout = layout(&Geometry::example(4, 2, 64, 64, 8));
        let at = |offset| {
            let (position, sector) = layout.split(LineOffset(offset));
            (position.0, layout.unit_at(position).0, sector)
        };
        // Units of the lease: channel 0 has 0 and 1, channel 1 has 2 and 3.
        let found = [0, 7, 8, 16, 24, 32, 40, 63, 64, 71, 72, 511].map(at);
        let expected = [
            (0, 0, 0),
            (0, 0, 7),
            (1, 2, 0),
            (2, 4, 0),
            (3, 6, 0),
            (4, 1, 0),
            (5, 3, 0),
            (7, 7, 7),
            (0, 0, 8),
            (0, 0, 15),
            (1, 2, 8),
            (7, 7, 63),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn every_offset_comes_back_on_shapes_that_are_no_powers_of_two() {
        for geometry in [Geometry::example(3, 5, 7, 72, 24), Geometry::example(1, 4, 9, 48, 12)] {
            let layout = layout(&geometry);
            for offset in (0..layout.sectors()).map(LineOffset) {
                let (position, sector) = layout.split(offset);
                assert_eq!(layout.offset(position, sector), offset);
                assert_eq!(layout.position_of(layout.unit_at(position)), position);
            }
        }
    }

    #[test]
    fn the_sizes_are_those_of_linux() {
        // 128 units of 4096 sectors, 1067 lines: 1 + 1022 + 2 sectors, in units of 16.
        let westlake = layout(&Geometry::example(16, 8, 1067, 4096, 16));
        assert_eq!((westlake.sectors(), westlake.emeta), (524_288, [1, 1022, 2, 1040]));
        assert_eq!((westlake.list_bytes(), westlake.chunks_min()), (4096..1023 * 4096, 2));
        let small = layout(&Geometry::example(4, 2, 64, 64, 8));
        assert_eq!((small.emeta, small.count_bytes()), ([1, 1, 1, 8], 8192..8448));
    }

    #[test]
    fn units_that_linux_would_not_take_are_refused_with_what_would_do() {
        let geometry = Geometry::example(4, 2, 64, 64, 8);
        let of = |units: &[u32]| {
            let units: Vec<PuId> = units.iter().copied().map(PuId).collect();
            LineLayout::new(&geometry, &units).map(|layout| (layout.channels, layout.units_per_channel))
        };
        assert_eq!(of(&[2, 3, 4, 5]), Ok((2, 2)));
        assert_eq!(of(&[6, 7]), Ok((1, 2)));
        for (units, says) in [
            (&[][..], "1 to 512"),
            (&[1, 0], "follow each other"),
            (&[0, 2], "follow each other"),
            (&[1, 2], "whole groups of 2"),
            (&[0, 1, 2], "whole groups of 2"),
        ] {
            let error = of(units).expect_err(says);
            assert!(error.contains(says), "{error}");
        }
        let small = Geometry { sector_bytes: 512, ..geometry.clone() };
        let error = LineLayout::new(&small, &[PuId(0)]).expect_err("small sectors");
        assert!(error.contains("sectors of 512"), "{error}");
        let narrow = Geometry::example(1, 2, 64, 8, 8);
        let error = LineLayout::new(&narrow, &[PuId(0), PuId(1)]).expect_err("no room for metadata");
        assert!(error.contains("need 3 of its chunks"), "{error}");
    }
}
