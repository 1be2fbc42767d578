//! How 1.2 addresses map to chunks and sectors.

use crate::config::{CellType, Config};
use ocssd_lightnvm::{ChunkId, Geometry, Lba, Ppa};
use ocssd_nvme::ocssd12::{self, BitField, PageAddress, PpaFields, PpaFormat};

/// The drive in pages.
#[derive(Clone, Copy, Debug)]
pub(in crate::controller) struct PageShape {
    pub(super) planes: u32,
    pub(super) sectors_per_page: u32,
    pub(super) pages: u32,
    pub(super) format: PpaFormat,
}

/// A 1.2 address that exists: which chunk, and which plane of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) ppa: Ppa,
    pub(super) plane: u32,
}

/// The fewest bits that count to `count`.
fn bits_for(count: u32) -> u8 {
    u8::try_from(u32::BITS - (count - 1).leading_zeros()).expect("at most 32")
}

impl PageShape {
    /// Pages and planes of a drive, or the sentence that says why 1.2 cannot describe it.
    pub(super) fn new(config: &Config) -> Result<Self, String> {
        let (geometry, media) = (&config.geometry, &config.media);
        let row = config.row_sectors();
        assert!(geometry.sectors_per_chunk.is_multiple_of(row), "a checked drive has whole rows of pages");
        let pages = geometry.sectors_per_chunk / row;
        let page_bytes = u64::from(media.sectors_per_page) * u64::from(geometry.sector_bytes);
        let resets = geometry.capabilities.multiple_resets && geometry.capabilities.early_reset;
        let requirements = [
            (geometry.groups <= 255, "at most 255 groups (NUM_CH has 8 bits)"),
            (geometry.pus_per_group <= 255, "at most 255 parallel units in a group (NUM_LUN has 8 bits)"),
            (
                geometry.chunks_per_pu <= 65_535,
                "at most 65535 chunks in a parallel unit (NUM_BLK has 16 bits)",
            ),
            (pages <= 65_535, "at most 65535 pages in a block (NUM_PG has 16 bits)"),
            (geometry.sector_bytes <= 32_768, "sectors of at most 32768 bytes (CSECS has 16 bits)"),
            (page_bytes <= 65_535, "pages below 65536 bytes (FPG_SZ has 16 bits)"),
            (matches!(media.planes, 1 | 2 | 4), "1, 2 or 4 planes (its plane modes)"),
            (media.cell != CellType::Qlc, "SLC, MLC or TLC media (FMTYPE has no code for QLC)"),
            (resets, "multiple_resets and early_reset, as a 1.2 host erases blocks in any state"),
        ];
        if let Some((_, wanted)) = requirements.iter().find(|(holds, _)| !holds) {
            let model = &config.model;
            return Err(format!(
                "an OCSSD 1.2 drive needs {wanted}, but \"{model}\" has not; change it or use revision 2.0"
            ));
        }
        let (planes, sectors_per_page) = (media.planes, media.sectors_per_page);
        Ok(Self {
            planes,
            sectors_per_page,
            pages,
            format: ppa_format(geometry, planes, pages, sectors_per_page),
        })
    }

    /// Sectors of a page on all planes.
    pub(super) const fn row_sectors(&self) -> u32 {
        self.planes * self.sectors_per_page
    }

    pub(super) fn address_count(&self) -> u64 {
        let fields = self.format.fields();
        let all = [fields.ch, fields.lun, fields.blk, fields.pg, fields.pl, fields.sec];
        1 << all.iter().map(|field| u32::from(field.len)).sum::<u32>()
    }

    /// The place of a sector, or `None` if a part is beyond the drive or a bit belongs to no part.
    pub(super) fn place(&self, geometry: &Geometry, ppa: ocssd12::Ppa) -> Option<Place> {
        let address = self.format.address(ppa).ok()?;
        let page = below(address.pg, self.pages)?;
        let sector = below(address.sec, self.sectors_per_page)?;
        let Place { ppa, plane } = self.block(geometry, &address)?;
        let in_chunk = (page * self.planes + plane) * self.sectors_per_page + sector;
        assert!(in_chunk < geometry.sectors_per_chunk, "sector {in_chunk} is beyond the chunk");
        Some(Place { ppa: Ppa::new(ppa.chunk, in_chunk), plane })
    }

    /// The place of a block on one plane; page and sector are not looked at.
    pub(super) fn block_place(&self, geometry: &Geometry, ppa: ocssd12::Ppa) -> Option<Place> {
        self.block(geometry, &self.format.address(ppa).ok()?)
    }

    fn block(&self, geometry: &Geometry, address: &PageAddress) -> Option<Place> {
        let chunk = self.lun_first_chunk(geometry, address)?.0 + below(address.blk, geometry.chunks_per_pu)?;
        Some(Place { ppa: Ppa::new(ChunkId(chunk), 0), plane: below(address.pl, self.planes)? })
    }

    /// The first chunk of the lun an address lies in; only channel and lun are looked at.
    pub(super) fn lun_chunks(&self, geometry: &Geometry, ppa: ocssd12::Ppa) -> Option<ChunkId> {
        self.lun_first_chunk(geometry, &self.format.address(ppa).ok()?)
    }

    fn lun_first_chunk(&self, geometry: &Geometry, address: &PageAddress) -> Option<ChunkId> {
        let channel = below(address.ch, geometry.groups)?;
        let lun = below(address.lun, geometry.pus_per_group)?;
        Some(ChunkId((channel * geometry.pus_per_group + lun) * geometry.chunks_per_pu))
    }
}

/// `value` if it is below `count`.
fn below(value: u64, count: u32) -> Option<u32> {
    u32::try_from(value).ok().filter(|&value| value < count)
}

/// Channel, lun, block, page, plane, sector from the top down, without gaps, as the Westlake drive packs them.
fn ppa_format(geometry: &Geometry, planes: u32, pages: u32, sectors_per_page: u32) -> PpaFormat {
    let counts =
        [sectors_per_page, planes, pages, geometry.chunks_per_pu, geometry.pus_per_group, geometry.groups];
    let mut offset = 0;
    let [sec, pl, pg, blk, lun, ch] = counts.map(|count| {
        let field = BitField { offset, len: bits_for(count) };
        offset += field.len;
        field
    });
    assert!(offset <= 63, "an address of {offset} bits");
    PpaFormat::new(PpaFields { ch, lun, pl, blk, pg, sec }).expect("fields side by side do not overlap")
}

/// An address as the error log holds it: its bits.
pub(super) const fn log_form(ppa: ocssd12::Ppa) -> Lba {
    Lba(ppa.0)
}
