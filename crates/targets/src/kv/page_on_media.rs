//! Pages of the index as they lie on media, for whoever looks at media from outside and shows or harms them.
//!
//! Deliberately not here: which of several of the same keys counts; only the instance knows.

use super::index::next_entry;
use super::record::{RecordKind, UnitHeader, records};
use ocssd_base::usize_of;
use std::ops::Range;

/// A page of the index in a write unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOnMedia {
    /// Its bytes in the unit, those of its record's header among them.
    pub bytes: Range<usize>,
    /// Its first key.
    pub first: Vec<u8>,
    /// Of two pages of an instance the one with the larger number was written later.
    pub sequence: u64,
}

/// The pages in the write unit at the begin of `content`; `None` if none begins there.
#[must_use]
pub fn pages_on_media(content: &[u8]) -> Option<Vec<PageOnMedia>> {
    let header = UnitHeader::decode(content)?;
    let unit = content.get(..usize_of(header.filled))?;
    let pages = records(unit).filter(|(_, record)| record.header.kind == RecordKind::Index);
    let page = |(begin, record): (usize, super::record::Record<'_>)| {
        let (first, _) = next_entry(record.payload)?;
        let bytes = begin..begin + record.header.bytes();
        assert!(bytes.end <= unit.len(), "a page at {bytes:?} leaves its unit of {} bytes", unit.len());
        Some(PageOnMedia { bytes, first: first.to_vec(), sequence: record.header.sequence })
    };
    Some(pages.filter_map(page).collect())
}
