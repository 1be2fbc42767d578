//! Checkpoints as they are found: which are whole, and what they hold.
//!
//! Deliberately not here: reading media. Who has many pages reads their first sectors, which say of which checkpoint each is
//! ([`CheckpointPage::claimed`]), and then only the pages of one, in their order.

use super::SectionName;
use super::page::{CheckpointPage, CheckpointPageError, PageIndex, Serial};
use super::writer::SECTION_HEADER_BYTES;
use ocssd_base::usize_of;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// What a checkpoint holds: its image, and where in it each section lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sections {
    image: Vec<u8>,
    places: Vec<(SectionName, Range<usize>)>,
}

impl Sections {
    /// The bytes of a section.
    ///
    /// # Errors
    /// [`CheckpointError::Missing`] if there is none of this name.
    pub fn get(&self, name: SectionName) -> Result<&[u8], CheckpointError> {
        let found = self.places.iter().find(|(other, _)| *other == name);
        found.map(|(_, place)| &self.image[place.clone()]).ok_or(CheckpointError::Missing(name))
    }
}

/// Why a checkpoint is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointError {
    /// Its commit page is not there.
    NotCommitted,
    /// A page is not there, or is of another image.
    Page(PageIndex),
    /// Its pages together are not what the commit page says.
    Image,
    /// There is no section of this name.
    Missing(SectionName),
}

impl fmt::Display for CheckpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCommitted => {
                f.write_str("a checkpoint ends with a commit page, but none was found: it was cut short")
            }
            Self::Page(index) => {
                write!(f, "page {} of a committed checkpoint cannot be read: the media lost it", index.0)
            }
            Self::Image => f.write_str("the checksum of a checkpoint should match its pages, but does not"),
            Self::Missing(name) => write!(
                f,
                "a checkpoint should have a section \"{}\", but has none: it was written by another program",
                name.escape_ascii()
            ),
        }
    }
}

impl std::error::Error for CheckpointError {}

/// The pages of one image.
#[derive(Clone, Debug)]
struct Pages {
    /// The image as far as its pages are there without a gap.
    image: Vec<u8>,
    /// The checksum of that.
    sum: crc32fast::Hasher,
    /// The page that goes on with it.
    next: PageIndex,
    /// Pages behind a gap, and their pieces.
    ahead: BTreeMap<PageIndex, Vec<u8>>,
    commit: Option<CheckpointPage>,
}

/// The pages that were found, by checkpoint and image: a mount that was cut may have left pages of another image under the
/// same number.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    found: BTreeMap<(Serial, u32), Pages>,
    /// Pages that there are to be found, at most.
    pages_max: usize,
}

impl Checkpoints {
    /// None yet, of so many pages at most: what a page says of its image is believed only as far as these can hold it, for a
    /// checkpoint may be as long as memory is large.
    #[must_use]
    pub const fn of_pages(pages_max: usize) -> Self {
        Self { found: BTreeMap::new(), pages_max }
    }

    /// Takes a page that was found. Pages that come in the order of their indices are copied once.
    ///
    /// # Errors
    /// [`CheckpointPageError`] if these bytes are none.
    pub fn take(&mut self, bytes: &[u8]) -> Result<CheckpointPage, CheckpointPageError> {
        let (page, piece) = CheckpointPage::decode(bytes)?;
        let room = page.image_bytes.min(u64::from(page.bytes).saturating_mul(u64_of(self.pages_max)));
        let empty = || Pages::with_room(usize::try_from(room).unwrap_or_default());
        self.found.entry((page.serial, page.image_crc)).or_insert_with(empty).take(page, piece);
        Ok(page)
    }

    /// The checkpoints of which a page was found, newest first.
    pub(super) fn newest(&self) -> impl Iterator<Item = Serial> + '_ {
        let mut last = None;
        self.found.keys().rev().map(|key| key.0).filter(move |&serial| last.replace(serial) != Some(serial))
    }

    /// What a checkpoint holds, if it is whole; its pages are forgotten.
    ///
    /// # Errors
    /// [`CheckpointError`] if it is not: it was cut short, or the media lost a part.
    pub fn assemble(&mut self, serial: Serial) -> Result<Sections, CheckpointError> {
        let mut found = Err(CheckpointError::NotCommitted);
        for (_, pages) in self.found.extract_if((serial, 0)..=(serial, u32::MAX), |_, _| true) {
            found = found.or(pages.assemble());
        }
        found
    }

    /// The newest whole checkpoint; pages of it and of newer ones are forgotten.
    pub fn newest_whole(&mut self) -> Option<(Serial, Sections)> {
        let serials: Vec<Serial> = self.newest().collect();
        serials.into_iter().find_map(|serial| self.assemble(serial).ok().map(|sections| (serial, sections)))
    }
}

impl Pages {
    fn with_room(bytes: usize) -> Self {
        Self {
            image: Vec::with_capacity(bytes),
            sum: crc32fast::Hasher::new(),
            next: PageIndex(0),
            ahead: BTreeMap::new(),
            commit: None,
        }
    }

    fn take(&mut self, page: CheckpointPage, piece: &[u8]) {
        if page.is_commit() {
            self.commit = Some(page);
        } else if page.index == self.next {
            self.append(piece);
            while let Some(piece) = self.ahead.remove(&self.next) {
                self.append(&piece);
            }
            assert!(
                self.ahead.first_key_value().is_none_or(|(&ahead, _)| ahead > self.next),
                "a page is kept back"
            );
        } else if page.index > self.next {
            self.ahead.insert(page.index, piece.to_vec());
        }
        // Else it is a second copy of a page, which was written elsewhere because its first write seemed to fail.
    }

    /// The checksum is taken while the piece is in the cache.
    fn append(&mut self, piece: &[u8]) {
        self.image.extend_from_slice(piece);
        self.sum.update(piece);
        self.next.0 += 1;
    }

    fn assemble(self) -> Result<Sections, CheckpointError> {
        let commit = self.commit.ok_or(CheckpointError::NotCommitted)?;
        if self.next.0 < commit.pages {
            return Err(CheckpointError::Page(self.next));
        }
        let has_all = self.next.0 == commit.pages && u64_of(self.image.len()) == commit.image_bytes;
        if !has_all || self.sum.finalize() != commit.image_crc {
            return Err(CheckpointError::Image);
        }
        let places = places(&self.image).ok_or(CheckpointError::Image)?;
        Ok(Sections { image: self.image, places })
    }
}

fn u64_of(length: usize) -> u64 {
    u64::try_from(length).expect("a length fits 64 bits")
}

fn places(image: &[u8]) -> Option<Vec<(SectionName, Range<usize>)>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < image.len() {
        let header = image[at..].first_chunk::<SECTION_HEADER_BYTES>()?;
        let (name, length) = header.split_first_chunk::<8>()?;
        let length = u64::from_le_bytes(length.try_into().ok()?);
        let begin = at + SECTION_HEADER_BYTES;
        let end = begin.checked_add(usize::try_from(length).ok()?)?;
        if end > image.len() {
            return None;
        }
        found.push((*name, begin..end));
        at = end;
    }
    assert!(found.len() <= usize_of(u32::MAX), "more sections than can be");
    Some(found)
}
