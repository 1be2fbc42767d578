//! A page of the log on media: 40 bytes of header, then entries; the rest is zeroes.
//!
//! Magic 4, version 2, pages behind 2, instance 8, generation 8, number 8, entries 4, CRC-32 of all before it and the entries 4.
//! Pages behind: how many before this one were not durable when it was written, and 1 more; 0 of a program that did not say.
//! Deliberately not here: the order of pages (`replay`).

use super::entry::{ENTRY_BYTES, LogEntry, Record};
use crate::head::InstanceId;
use crate::tag::checksum_of_parts;
use ocssd_base::usize_of;
use std::fmt;

/// Bytes before the entries.
pub const HEADER_BYTES: usize = 40;
/// "OLOG" in ASCII.
const MAGIC: [u8; 4] = *b"OLOG";
/// The layout; raised when an older reader would misread it.
const VERSION: u16 = 1;

/// The number of a page, from 1: never goes back, whatever the clock does (defect 8 of docs/ox-block.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

/// Which mount wrote a page, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

impl Lsn {
    /// The page after this.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A page and what it says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPage<E = LogEntry> {
    /// Whose it is.
    pub instance: InstanceId,
    /// Which mount wrote it.
    pub generation: Generation,
    /// Its number.
    pub lsn: Lsn,
    /// Every page before this one was durable when it was written; `None` of a program that did not say. Where the log that is
    /// found ends before it, the media lost pages.
    pub durable: Option<Lsn>,
    /// What it holds, in order.
    pub entries: Vec<E>,
}

/// Why bytes are no page of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageError {
    /// They do not begin like one.
    NotALogPage,
    /// They are of a layout that this program does not know.
    Version(u16),
    /// They are torn, or the media changed them.
    Corrupt,
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotALogPage => f.write_str("a log page was expected, but its mark is missing"),
            Self::Version(found) => {
                write!(
                    f,
                    "a log page of version {VERSION} was expected, but it has version {found}: use a newer program"
                )
            }
            Self::Corrupt => {
                f.write_str("a log page's checksum should match its content, but does not: it is torn")
            }
        }
    }
}

impl std::error::Error for PageError {}

/// Writes a page into `out`, which is a whole page.
///
/// # Panics
/// If it does not fit.
pub(super) fn encode<E: Record>(page: &LogPage<E>, out: &mut [u8]) {
    let used = HEADER_BYTES + page.entries.len() * ENTRY_BYTES;
    assert!(used <= out.len(), "{} entries do not fit a page of {} bytes", page.entries.len(), out.len());
    assert!(page.generation.0 > 0 && page.lsn.0 > 0, "pages and generations count from 1");
    out.fill(0);
    let count = u32::try_from(page.entries.len()).expect("a page has few entries");
    let behind = page.durable.map_or(0, |durable| page.lsn.0 - durable.0 + 1);
    let behind = u16::try_from(behind).expect("few pages are ahead of what is durable");
    out[..4].copy_from_slice(&MAGIC);
    out[4..6].copy_from_slice(&VERSION.to_le_bytes());
    out[6..8].copy_from_slice(&behind.to_le_bytes());
    out[8..16].copy_from_slice(&page.instance.bits().to_le_bytes());
    out[16..24].copy_from_slice(&page.generation.0.to_le_bytes());
    out[24..32].copy_from_slice(&page.lsn.0.to_le_bytes());
    out[32..36].copy_from_slice(&count.to_le_bytes());
    for (place, entry) in out[HEADER_BYTES..].chunks_exact_mut(ENTRY_BYTES).zip(&page.entries) {
        place.copy_from_slice(&entry.encode());
    }
    let crc = sum(out, used);
    out[36..40].copy_from_slice(&crc.to_le_bytes());
}

/// Bytes that a page takes up, header and entries, as its first bytes say; `None` if they begin no page. No checksum is looked at,
/// so that a torn page may say anything: what is read by it is decoded.
#[must_use]
pub fn used_bytes(first: &[u8]) -> Option<usize> {
    let header = first.first_chunk::<HEADER_BYTES>().filter(|header| header[..4] == MAGIC)?;
    let count = u32::from_le_bytes(header[32..36].try_into().expect("four bytes"));
    Some(usize_of(count).saturating_mul(ENTRY_BYTES).saturating_add(HEADER_BYTES))
}

fn sum(bytes: &[u8], used: usize) -> u32 {
    checksum_of_parts(&[&bytes[..36], &bytes[HEADER_BYTES..used]])
}

impl<E: Record> LogPage<E> {
    /// The page in these bytes.
    ///
    /// # Errors
    /// [`PageError`] if there is none, or it is torn.
    pub fn decode(bytes: &[u8]) -> Result<Self, PageError> {
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(PageError::NotALogPage)?;
        if header[..4] != MAGIC {
            return Err(PageError::NotALogPage);
        }
        let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
        let version = u16::from_le_bytes([header[4], header[5]]);
        let found = u32::from_le_bytes(header[36..].try_into().expect("four bytes"));
        let used = used_bytes(header).ok_or(PageError::NotALogPage)?;
        if used > bytes.len() || sum(bytes, used) != found {
            return Err(PageError::Corrupt);
        }
        if version != VERSION {
            return Err(PageError::Version(version));
        }
        let (entries, _) = bytes[HEADER_BYTES..used].as_chunks::<ENTRY_BYTES>();
        let entries: Option<Vec<E>> = entries.iter().map(E::decode).collect();
        let (lsn, behind) = (Lsn(word(24)), u16::from_le_bytes([header[6], header[7]]));
        let durable = behind.checked_sub(1).map(|behind| Lsn(lsn.0.saturating_sub(u64::from(behind))));
        Ok(Self {
            instance: InstanceId::new(word(8)),
            generation: Generation(word(16)),
            lsn,
            durable,
            entries: entries.ok_or(PageError::Corrupt)?,
        })
    }
}
