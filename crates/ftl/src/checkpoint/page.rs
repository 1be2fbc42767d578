//! A page of a checkpoint on media: 56 bytes of header, then a piece of its image; the rest is zeroes.
//!
//! Magic 4, version 2, spare 2, instance 8, serial 8, index 4, pages 4, bytes of the image 8, CRC-32 of the image 4, bytes
//! in this page 4, CRC-32 of this page 4, spare 4. The commit page has the index after the last and no bytes. Deliberately
//! not here: when a checkpoint is whole (`reader`).

use crate::head::InstanceId;
use crate::tag::checksum_of_parts;
use ocssd_base::usize_of;
use std::fmt;

/// Bytes before the piece of the image.
pub const CHECKPOINT_HEADER_BYTES: usize = 56;
/// "OCKP" in ASCII.
const MAGIC: [u8; 4] = *b"OCKP";
/// The layout; raised when an older reader would misread it.
const VERSION: u16 = 1;

/// The number of a checkpoint, from 1: never goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial(pub u64);

impl Serial {
    /// The one after this.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A page of a checkpoint, from 0; the commit page is the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageIndex(pub u32);

/// What a page says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointPage {
    /// Whose checkpoint it is of.
    pub instance: InstanceId,
    /// Of which checkpoint.
    pub serial: Serial,
    /// Which page of it.
    pub index: PageIndex,
    /// Pages of the image, the commit page not counted.
    pub pages: u32,
    /// Bytes of the whole image.
    pub image_bytes: u64,
    /// CRC-32 of the whole image.
    pub image_crc: u32,
    /// Bytes of the image in this page.
    pub bytes: u32,
}

/// Why bytes are no page of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointPageError {
    /// They do not begin like one.
    NotACheckpointPage,
    /// They are of a layout that this program does not know.
    Version(u16),
    /// They are torn, or the media changed them.
    Corrupt,
}

impl fmt::Display for CheckpointPageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotACheckpointPage => {
                f.write_str("a page of a checkpoint was expected, but its mark is missing")
            }
            Self::Version(found) => write!(
                f,
                "a checkpoint of version {VERSION} was expected, but it has version {found}: use a newer program"
            ),
            Self::Corrupt => f.write_str(
                "the checksum of a checkpoint's page should match its content, but does not: it is torn",
            ),
        }
    }
}

impl std::error::Error for CheckpointPageError {}

impl CheckpointPage {
    /// True of the page that makes the others true.
    #[must_use]
    pub const fn is_commit(&self) -> bool {
        self.index.0 == self.pages
    }

    /// Writes the page with its piece of the image into `out`, which is a whole page.
    pub(super) fn encode(&self, piece: &[u8], out: &mut [u8]) {
        assert!(CHECKPOINT_HEADER_BYTES + piece.len() <= out.len(), "a piece larger than its page");
        assert_eq!(
            u32::try_from(piece.len()),
            Ok(self.bytes),
            "a piece of another size than its header says"
        );
        assert!(self.index.0 <= self.pages && self.serial.0 > 0, "{self:?} is no page");
        out.fill(0);
        out[..4].copy_from_slice(&MAGIC);
        out[4..6].copy_from_slice(&VERSION.to_le_bytes());
        out[8..16].copy_from_slice(&self.instance.bits().to_le_bytes());
        out[16..24].copy_from_slice(&self.serial.0.to_le_bytes());
        out[24..28].copy_from_slice(&self.index.0.to_le_bytes());
        out[28..32].copy_from_slice(&self.pages.to_le_bytes());
        out[32..40].copy_from_slice(&self.image_bytes.to_le_bytes());
        out[40..44].copy_from_slice(&self.image_crc.to_le_bytes());
        out[44..48].copy_from_slice(&self.bytes.to_le_bytes());
        let end = CHECKPOINT_HEADER_BYTES + piece.len();
        out[CHECKPOINT_HEADER_BYTES..end].copy_from_slice(piece);
        let crc = sum(out, end);
        out[48..52].copy_from_slice(&crc.to_le_bytes());
    }

    /// Of which checkpoint a page is, and which of its pages, as its first bytes say it: who has read no more of it cannot know
    /// whether it is torn.
    #[must_use]
    pub fn claimed(begin: &[u8]) -> Option<(Serial, PageIndex)> {
        let header = begin.first_chunk::<CHECKPOINT_HEADER_BYTES>()?;
        let is_page = header[..4] == MAGIC && header[4..6] == VERSION.to_le_bytes();
        let serial = Serial(u64::from_le_bytes(header[16..24].try_into().expect("eight bytes")));
        is_page
            .then(|| (serial, PageIndex(u32::from_le_bytes(header[24..28].try_into().expect("four bytes")))))
    }

    /// The page in these bytes, and its piece of the image.
    ///
    /// # Errors
    /// [`CheckpointPageError`] if there is none, or it is torn.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), CheckpointPageError> {
        let header =
            bytes.first_chunk::<CHECKPOINT_HEADER_BYTES>().ok_or(CheckpointPageError::NotACheckpointPage)?;
        if header[..4] != MAGIC {
            return Err(CheckpointPageError::NotACheckpointPage);
        }
        let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let half = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let end = usize_of(half(44)).saturating_add(CHECKPOINT_HEADER_BYTES);
        if end > bytes.len() || sum(bytes, end) != half(48) {
            return Err(CheckpointPageError::Corrupt);
        }
        let version = u16::from_le_bytes([header[4], header[5]]);
        if version != VERSION {
            return Err(CheckpointPageError::Version(version));
        }
        let page = Self {
            instance: InstanceId::new(word(8)),
            serial: Serial(word(16)),
            index: PageIndex(half(24)),
            pages: half(28),
            image_bytes: word(32),
            image_crc: half(40),
            bytes: half(44),
        };
        if page.index.0 > page.pages {
            return Err(CheckpointPageError::Corrupt);
        }
        Ok((page, &bytes[CHECKPOINT_HEADER_BYTES..end]))
    }
}

fn sum(bytes: &[u8], end: usize) -> u32 {
    checksum_of_parts(&[&bytes[..48], &bytes[52..end]])
}
