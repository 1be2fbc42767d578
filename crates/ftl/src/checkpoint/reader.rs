//! Checkpoints as they are found: which are whole, and what they hold.
//!
//! Deliberately not here: reading media. Who has many pages reads their first sectors, asks [`Checkpoints::newest`] for
//! the checkpoints worth reading, and then only the pages of one.

use super::SectionName;
use super::page::{CheckpointPage, PageIndex, Serial};
use super::writer::SECTION_HEADER_BYTES;
use crate::tag::checksum;
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
type Pages = BTreeMap<PageIndex, (CheckpointPage, Vec<u8>)>;

/// The pages that were found, by checkpoint and image: a mount that was cut may have left pages of another image under the
/// same number.
#[derive(Clone, Debug, Default)]
pub struct Checkpoints {
    found: BTreeMap<(Serial, u32), Pages>,
}

impl Checkpoints {
    /// Takes a page that was found.
    pub fn add(&mut self, page: CheckpointPage, piece: &[u8]) {
        self.found
            .entry((page.serial, page.image_crc))
            .or_default()
            .insert(page.index, (page, piece.to_vec()));
    }

    /// The checkpoints of which a page was found, newest first.
    pub fn newest(&self) -> impl Iterator<Item = Serial> + '_ {
        let mut last = None;
        self.found.keys().rev().map(|key| key.0).filter(move |&serial| last.replace(serial) != Some(serial))
    }

    /// What a checkpoint holds, if it is whole.
    ///
    /// # Errors
    /// [`CheckpointError`] if it is not: it was cut short, or the media lost a part.
    pub fn assemble(&self, serial: Serial) -> Result<Sections, CheckpointError> {
        let images = self.found.range((serial, 0)..=(serial, u32::MAX)).map(|(_, pages)| assemble(pages));
        images.reduce(Result::or).unwrap_or(Err(CheckpointError::NotCommitted))
    }

    /// The newest whole checkpoint.
    #[must_use]
    pub fn newest_whole(&self) -> Option<(Serial, Sections)> {
        self.newest().find_map(|serial| self.assemble(serial).ok().map(|sections| (serial, sections)))
    }
}

fn assemble(pages: &Pages) -> Result<Sections, CheckpointError> {
    let commit = pages.values().map(|(page, _)| *page).find(CheckpointPage::is_commit);
    let commit = commit.ok_or(CheckpointError::NotCommitted)?;
    // What the commit page says is not true of a damaged one, and a checkpoint may be as long as memory is large.
    let held = pages.values().map(|(_, piece)| piece.len()).sum();
    let mut image = Vec::with_capacity(held);
    for index in (0..commit.pages).map(PageIndex) {
        let (page, piece) = pages.get(&index).ok_or(CheckpointError::Page(index))?;
        assert_eq!(page.image_crc, commit.image_crc, "a page was filed under another image");
        image.extend_from_slice(piece);
    }
    let is_whole =
        u64::try_from(image.len()) == Ok(commit.image_bytes) && checksum(&image) == commit.image_crc;
    if !is_whole {
        return Err(CheckpointError::Image);
    }
    assert!(image.len() <= held, "more bytes than all pages have");
    let places = places(&image).ok_or(CheckpointError::Image)?;
    Ok(Sections { image, places })
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
