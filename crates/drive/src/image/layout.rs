//! Where everything lies in an image, computed from the drive's settings alone.
//!
//! Regions follow each other, each from a page border: header, settings, two lease slots, records, marks of unreadable
//! sectors, metadata, data; and if data are stamps, flags of whole sectors and their bytes. Most of them are holes in a
//! fresh file.

use ocssd_flash::Config;
use ocssd_lightnvm::{ChunkId, Payload, PayloadFormat};

/// What the file is divided into: the page of the operating system, which a killed process writes whole or not at all.
pub(super) const PAGE: u64 = 4096;
/// Bytes of a chunk's record: a power of two, so that none crosses a page.
pub(super) const RECORD_BYTES: u64 = 32;
/// Bytes before the bits of a page of marks.
pub(super) const MARKS_HEADER_BYTES: u64 = 16;
/// Sectors whose marks fit one page: 4080 bytes of bits.
pub(super) const MARKS_PER_PAGE: u64 = (PAGE - MARKS_HEADER_BYTES) * 8;
/// Largest settings text. Chosen: 4096 explicit faults of 60 bytes and all settings take a quarter of it.
pub(super) const SETTINGS_BYTES_MAX: u64 = 1 << 20;
/// Largest lease slot. Chosen: 200 000 targets of one unit each.
const LEASE_SLOT_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a lease of one unit, the most a table takes per unit: two names of 31, `pu:`, ten digits, three separators.
const LEASE_BYTES_PER_UNIT: u64 = 31 + 31 + 3 + 10 + 3;

const _: () = assert!(PAGE.is_multiple_of(RECORD_BYTES), "a record must not cross a page");
const _: () = assert!(MARKS_PER_PAGE.is_multiple_of(64), "a page of marks holds whole words");

/// Sizes and offsets, in bytes from the file's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) chunks: u32,
    pub(super) sectors_per_chunk: u32,
    pub(super) data_bytes: u32,
    pub(super) oob_bytes: u32,
    /// Bytes of a whole sector beside its stamp; 0 if data are the bytes.
    pub(super) whole_bytes: u32,
    pub(super) settings_offset: u64,
    /// Length of the text; the region is padded to a page.
    pub(super) settings_bytes: u64,
    pub(super) leases_offset: u64,
    pub(super) lease_slot_bytes: u64,
    pub(super) records_offset: u64,
    pub(super) marks_offset: u64,
    /// Bytes of marks per chunk: whole pages.
    pub(super) marks_bytes: u64,
    pub(super) oob_offset: u64,
    pub(super) data_offset: u64,
    /// Flags of whole sectors: `marks_bytes` per chunk, none if data are the bytes.
    pub(super) whole_flags_offset: u64,
    pub(super) whole_offset: u64,
    pub(super) total_bytes: u64,
}

/// Up to the next page border.
pub(super) const fn padded(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(PAGE)
}

impl Layout {
    /// The layout for a sound configuration. `None` if the file would be larger than a file can be.
    pub(super) fn of(config: &Config, settings_bytes: u64) -> Option<Self> {
        let geometry = &config.geometry;
        let format = PayloadFormat::new(config.payload, geometry);
        let bytes = |count: usize| u32::try_from(count).expect("sectors are at most 65536 bytes");
        let (data_bytes, oob_bytes) = (bytes(format.data_bytes), bytes(format.oob_bytes));
        let (chunks, sectors_per_chunk) = (geometry.chunk_count(), geometry.sectors_per_chunk);
        let sectors = geometry.sector_count();

        let settings_offset = PAGE;
        let leases_offset = settings_offset + padded(settings_bytes)?;
        let table = PAGE + LEASE_BYTES_PER_UNIT * u64::from(geometry.pu_count());
        let lease_slot_bytes = padded(table)?.min(LEASE_SLOT_BYTES_MAX);
        let records_offset = leases_offset + 2 * lease_slot_bytes;
        let marks_offset = records_offset + padded(u64::from(chunks) * RECORD_BYTES)?;
        let marks_bytes = u64::from(sectors_per_chunk).div_ceil(MARKS_PER_PAGE) * PAGE;
        let oob_offset = marks_offset.checked_add(u64::from(chunks).checked_mul(marks_bytes)?)?;
        let oob_total = padded(sectors.checked_mul(oob_bytes.into())?)?;
        let data_offset = oob_offset.checked_add(oob_total)?;
        let whole_flags_offset = data_offset.checked_add(padded(sectors.checked_mul(data_bytes.into())?)?)?;
        let (whole_bytes, flags_bytes) = match config.payload {
            Payload::Bytes => (0, 0),
            Payload::Stamp => (geometry.sector_bytes, marks_bytes),
        };
        let whole_offset = whole_flags_offset.checked_add(u64::from(chunks).checked_mul(flags_bytes)?)?;
        let total_bytes = whole_offset.checked_add(padded(sectors.checked_mul(whole_bytes.into())?)?)?;
        // Offsets of files are signed.
        i64::try_from(total_bytes).ok()?;
        Some(Self {
            chunks,
            sectors_per_chunk,
            data_bytes,
            oob_bytes,
            whole_bytes,
            settings_offset,
            settings_bytes,
            leases_offset,
            lease_slot_bytes,
            records_offset,
            marks_offset,
            marks_bytes,
            oob_offset,
            data_offset,
            whole_flags_offset,
            whole_offset,
            total_bytes,
        })
    }

    /// Where a chunk's record lies.
    pub(super) fn record(&self, chunk: ChunkId) -> u64 {
        self.records_offset + u64::from(chunk.0) * RECORD_BYTES
    }

    /// Where a chunk's marks begin.
    pub(super) fn marks(&self, chunk: ChunkId) -> u64 {
        self.marks_offset + u64::from(chunk.0) * self.marks_bytes
    }

    fn sector(&self, chunk: ChunkId, first: u32) -> u64 {
        assert!(chunk.0 < self.chunks, "chunk {} is beyond the image's {}", chunk.0, self.chunks);
        u64::from(chunk.0) * u64::from(self.sectors_per_chunk) + u64::from(first)
    }

    /// Where a sector's metadata lies.
    pub(super) fn oob(&self, chunk: ChunkId, first: u32) -> u64 {
        self.oob_offset + self.sector(chunk, first) * u64::from(self.oob_bytes)
    }

    /// Where a sector's content lies.
    pub(super) fn data(&self, chunk: ChunkId, first: u32) -> u64 {
        self.data_offset + self.sector(chunk, first) * u64::from(self.data_bytes)
    }

    /// Where the flags of a chunk's whole sectors begin.
    pub(super) fn whole_flags(&self, chunk: ChunkId) -> u64 {
        assert!(self.whole_bytes > 0, "an image of real bytes has no flags of whole sectors");
        self.whole_flags_offset + u64::from(chunk.0) * self.marks_bytes
    }

    /// Where all bytes of a whole sector lie.
    pub(super) fn whole(&self, chunk: ChunkId, first: u32) -> u64 {
        assert!(self.whole_bytes > 0, "an image of real bytes has no bytes beside its data");
        self.whole_offset + self.sector(chunk, first) * u64::from(self.whole_bytes)
    }

    /// Words of a chunk's bits, one bit a sector.
    pub(super) fn words(&self) -> usize {
        usize::try_from(self.sectors_per_chunk.div_ceil(64)).expect("32 bits fit an index")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_flash::presets;
    use ocssd_lightnvm::Payload;

    #[test]
    fn regions_of_every_preset_follow_each_other_from_page_borders() {
        for preset in presets::ALL {
            let config = preset.config();
            let layout = Layout::of(&config, 3000).expect(preset.name);
            let last = ChunkId(layout.chunks - 1);
            let mut borders = vec![
                (layout.settings_offset, layout.settings_offset + 3000),
                (layout.leases_offset, layout.leases_offset + 2 * layout.lease_slot_bytes),
                (layout.records_offset, layout.record(last) + RECORD_BYTES),
                (layout.marks_offset, layout.marks(last) + layout.marks_bytes),
                (layout.oob_offset, layout.oob(last, layout.sectors_per_chunk)),
                (layout.data_offset, layout.data(last, layout.sectors_per_chunk)),
            ];
            if config.payload == Payload::Stamp {
                borders.push((layout.whole_flags_offset, layout.whole_flags(last) + layout.marks_bytes));
                borders.push((layout.whole_offset, layout.whole(last, layout.sectors_per_chunk)));
            }
            let mut end = PAGE;
            for (first, after) in borders {
                assert!(first.is_multiple_of(PAGE) && first >= end, "{}: {first} after {end}", preset.name);
                end = after;
            }
            assert!(layout.total_bytes >= end, "{}", preset.name);
        }
    }

    #[test]
    fn a_file_larger_than_files_can_be_has_no_layout() {
        let mut config = presets::find("tiny").expect("it exists").config();
        config.geometry.chunks_per_pu = 500_000_000;
        config.geometry.sectors_per_chunk = 1 << 30;
        config.payload = Payload::Bytes;
        assert_eq!(Layout::of(&config, 100), None);
    }
}
