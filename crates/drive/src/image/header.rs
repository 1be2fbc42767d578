//! The first page: what the file is, and where everything lies.
//!
//! Little-endian, encoded field by field. The offsets follow from the settings; they are written so that a person with
//! a hex editor finds everything, and they are checked against the settings when an image is opened.

use super::layout::Layout;
use ocssd_nvme::identify::Uuid;

/// What an image begins with.
pub(super) const MAGIC: [u8; 8] = *b"OCSSDIMG";
/// The version of this layout. Version 1 had no regions for whole sectors, version 2 no tails in the records of chunks.
pub(super) const VERSION: u32 = 3;
/// Bytes of the page.
pub(super) const HEADER_BYTES: usize = 4096;

/// Where the fields begin.
mod at {
    pub(super) const VERSION: usize = 8;
    pub(super) const CRC: usize = 12;
    pub(super) const COUNTS: usize = 16;
    pub(super) const SETTINGS_CRC: usize = 32;
    pub(super) const OFFSETS: usize = 40;
    /// Behind the offsets.
    pub(super) const UUID: usize = 136;
}

/// A read header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) layout: Layout,
    /// Checksum of the settings region, padding included.
    pub(super) settings_crc: u32,
    /// Which drive it is, of all. Nil in images that were made before there was one.
    pub(super) uuid: Uuid,
}

fn u32_at(page: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(page: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(page[at..at + 8].try_into().expect("eight bytes"))
}

/// The checksum of a page whose checksum field counts as zero.
fn crc(page: &[u8; HEADER_BYTES]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&page[..at::CRC]);
    hasher.update(&[0; 4]);
    hasher.update(&page[at::COUNTS..]);
    hasher.finalize()
}

/// Makes the checksum of a page right; for fuzzing and tests, which would not get past it otherwise.
pub(crate) fn encode_crc(page: &mut [u8; HEADER_BYTES]) {
    let crc = crc(page);
    page[at::CRC..at::COUNTS].copy_from_slice(&crc.to_le_bytes());
}

impl Header {
    /// The page.
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut page = [0; HEADER_BYTES];
        let layout = &self.layout;
        page[..8].copy_from_slice(&MAGIC);
        page[at::VERSION..at::CRC].copy_from_slice(&VERSION.to_le_bytes());
        let counts = [
            layout.chunks,
            layout.sectors_per_chunk,
            layout.data_bytes,
            layout.oob_bytes,
            self.settings_crc,
            layout.whole_bytes,
        ];
        for (place, count) in page[at::COUNTS..].chunks_exact_mut(4).zip(counts) {
            place.copy_from_slice(&count.to_le_bytes());
        }
        let offsets = [
            layout.settings_offset,
            layout.settings_bytes,
            layout.leases_offset,
            layout.lease_slot_bytes,
            layout.records_offset,
            layout.marks_offset,
            layout.marks_bytes,
            layout.oob_offset,
            layout.data_offset,
            layout.whole_flags_offset,
            layout.whole_offset,
            layout.total_bytes,
        ];
        for (place, offset) in page[at::OFFSETS..].chunks_exact_mut(8).zip(offsets) {
            place.copy_from_slice(&offset.to_le_bytes());
        }
        const { assert!(at::UUID == at::OFFSETS + 12 * 8, "the identity lies behind the offsets") };
        assert_eq!(offsets.len(), 12, "the identity lies behind the offsets");
        page[at::UUID..at::UUID + 16].copy_from_slice(&self.uuid.0);
        encode_crc(&mut page);
        page
    }

    /// Reads a page.
    ///
    /// # Errors
    /// What is wrong with it, and what to do.
    pub(super) fn decode(page: &[u8; HEADER_BYTES]) -> Result<Self, String> {
        if page[..8] != MAGIC {
            return Err(
                "it does not begin with \"OCSSDIMG\", so it is no image, or making it was interrupted; name \
                        another file, or make the image anew"
                    .to_owned(),
            );
        }
        let version = u32_at(page, at::VERSION);
        if version != VERSION {
            let age = if version < VERSION { "older" } else { "newer" };
            return Err(format!(
                "it has format version {version}, but this program reads version {VERSION}; use the {age} program that \
                 made it, or make the image anew"
            ));
        }
        let (found, expected) = (u32_at(page, at::CRC), crc(page));
        if found != expected {
            return Err(format!(
                "the checksum of its header is {found:08x}, but its bytes give {expected:08x}, so the first 4096 \
                 bytes are damaged; restore them from a copy"
            ));
        }
        let offset = |index: usize| u64_at(page, at::OFFSETS + 8 * index);
        let layout = Layout {
            chunks: u32_at(page, at::COUNTS),
            sectors_per_chunk: u32_at(page, at::COUNTS + 4),
            data_bytes: u32_at(page, at::COUNTS + 8),
            oob_bytes: u32_at(page, at::COUNTS + 12),
            whole_bytes: u32_at(page, at::COUNTS + 20),
            settings_offset: offset(0),
            settings_bytes: offset(1),
            leases_offset: offset(2),
            lease_slot_bytes: offset(3),
            records_offset: offset(4),
            marks_offset: offset(5),
            marks_bytes: offset(6),
            oob_offset: offset(7),
            data_offset: offset(8),
            whole_flags_offset: offset(9),
            whole_offset: offset(10),
            total_bytes: offset(11),
        };
        let uuid = Uuid(page[at::UUID..at::UUID + 16].try_into().expect("sixteen bytes"));
        Ok(Self { layout, settings_crc: u32_at(page, at::SETTINGS_CRC), uuid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocssd_flash::presets;

    fn page() -> [u8; HEADER_BYTES] {
        let config = presets::find("odd").expect("it exists").config();
        let layout = Layout::of(&config, 777).expect("it fits");
        Header { layout, settings_crc: 0xDEAD_BEEF, uuid: Uuid::of_seed(5) }.encode()
    }

    #[test]
    fn a_header_is_read_back_as_it_was_written() {
        let decoded = Header::decode(&page()).expect("it is sound");
        assert_eq!(decoded.encode(), page());
        assert_eq!(
            (decoded.layout.settings_bytes, decoded.settings_crc, decoded.uuid),
            (777, 0xDEAD_BEEF, Uuid::of_seed(5))
        );
    }

    #[test]
    fn every_flipped_bit_is_refused_with_its_cause() {
        for index in 0..HEADER_BYTES {
            for bit in 0..8 {
                let mut page = page();
                page[index] ^= 1 << bit;
                let error = Header::decode(&page).expect_err("a bit was flipped");
                let cause = match index {
                    0..8 => "does not begin with",
                    8..12 => "format version",
                    _ => "checksum of its header",
                };
                assert!(error.contains(cause), "byte {index}: {error}");
            }
        }
    }
}
