//! A checkpoint on its way to media.
//!
//! The image is made when the checkpoint begins, so that what changes meanwhile has no part in it. Deliberately not here:
//! what is done with a page that the media failed; its owner has the bytes and writes them elsewhere.

use super::SectionName;
use super::page::{CHECKPOINT_HEADER_BYTES, CheckpointPage, PageIndex, Serial};
use crate::head::InstanceId;
use crate::tag::checksum;
use ocssd_base::usize_of;

/// Bytes before the content of a section: its name and its length.
pub(super) const SECTION_HEADER_BYTES: usize = 16;

/// A checkpoint while it is written.
#[derive(Clone, Debug)]
pub struct CheckpointWriter {
    /// What every page says.
    page: CheckpointPage,
    image: Vec<u8>,
    /// Bytes of the image in a page.
    per_page: usize,
    /// Pages given out, in order.
    given: u32,
    /// Pages on media.
    written: u32,
    is_committed: bool,
}

impl CheckpointWriter {
    /// A checkpoint of these sections, in pages of `page_bytes`.
    ///
    /// # Panics
    /// If a page has no room for anything, or there are 2^32 pages.
    #[must_use]
    pub fn new(
        instance: InstanceId,
        serial: Serial,
        page_bytes: u32,
        sections: &[(SectionName, &[u8])],
    ) -> Self {
        let per_page = usize_of(page_bytes).saturating_sub(CHECKPOINT_HEADER_BYTES);
        assert!(per_page > 0, "a page of {page_bytes} bytes has no room for a checkpoint");
        assert!(!sections.is_empty(), "a checkpoint of nothing");
        let bytes = sections.iter().map(|(_, bytes)| SECTION_HEADER_BYTES + bytes.len()).sum();
        let mut image = Vec::with_capacity(bytes);
        for (name, bytes) in sections {
            image.extend_from_slice(name);
            image.extend_from_slice(&u64::try_from(bytes.len()).expect("an index").to_le_bytes());
            image.extend_from_slice(bytes);
        }
        let pages =
            u32::try_from(image.len().div_ceil(per_page)).expect("a checkpoint has fewer pages than 2^32");
        let page = CheckpointPage {
            instance,
            serial,
            index: PageIndex(0),
            pages,
            image_bytes: u64::try_from(image.len()).expect("an index"),
            image_crc: checksum(&image),
            bytes: 0,
        };
        Self { page, image, per_page, given: 0, written: 0, is_committed: false }
    }

    /// Which checkpoint it is.
    #[must_use]
    pub const fn serial(&self) -> Serial {
        self.page.serial
    }

    /// Pages of it, the commit page counted.
    #[must_use]
    pub const fn pages(&self) -> u32 {
        self.page.pages + 1
    }

    /// Pages that a checkpoint of so many sections and bytes takes, the commit page counted.
    #[must_use]
    pub fn pages_of(sections: u64, bytes: u64, page_bytes: u32) -> u64 {
        let per_page = u64::from(page_bytes) - u64::try_from(CHECKPOINT_HEADER_BYTES).expect("small");
        let headers = sections * u64::try_from(SECTION_HEADER_BYTES).expect("small");
        (bytes + headers).div_ceil(per_page) + 1
    }

    /// True if [`CheckpointWriter::take_page`] would give a page: the commit page waits for all others.
    #[must_use]
    pub const fn has_page(&self) -> bool {
        self.given < self.page.pages || self.given == self.page.pages && self.written == self.page.pages
    }

    /// Gives the next page to be written, encoded into `out`.
    pub fn take_page(&mut self, out: &mut [u8]) -> Option<PageIndex> {
        if !self.has_page() {
            return None;
        }
        let index = PageIndex(self.given);
        let from = usize_of(index.0) * self.per_page;
        let piece = if index.0 == self.page.pages {
            &[][..]
        } else {
            &self.image[from..(from + self.per_page).min(self.image.len())]
        };
        assert!(index.0 == self.page.pages || !piece.is_empty(), "page {} has nothing", index.0);
        let bytes = u32::try_from(piece.len()).expect("a page is small");
        CheckpointPage { index, bytes, ..self.page }.encode(piece, out);
        self.given += 1;
        Some(index)
    }

    /// A page is on media.
    ///
    /// # Panics
    /// If more end than were given out.
    pub fn on_written(&mut self, index: PageIndex) {
        assert!(self.written < self.given && index.0 < self.given, "page {} was not given out", index.0);
        self.written += 1;
        if index.0 == self.page.pages {
            assert_eq!(self.written, self.page.pages + 1, "a commit was written before what it names");
            self.is_committed = true;
        }
    }

    /// True once the commit page is on media: the checkpoint is true.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.is_committed
    }
}
