//! What transactions do to pages and sessions, while the instance runs and in replay; and how these lie in a checkpoint.
//!
//! A move of garbage collection is applied only where the page still has what was moved; replay decides the same, because it
//! meets the same order. Deliberately not here: when a transaction is true (`ox::commit`).

use super::change::What;
use super::entry::Entry;
use super::extent::{Extent, GRAIN_BYTES, Grid, Spot, grains};
use super::live::LiveGrains;
use super::page_map::PageMap;
use super::sizes::{MAP_ENTRY_BYTES, SESSION_BYTES};
use super::store::Eleos;
use crate::ox::store::Image;
use ocssd_ftl::checkpoint::{SectionName, Sections};
use ocssd_ftl::{Place, Shape};
use ocssd_lightnvm::interface::log_structured::{PageId, SessionId, Wsn};
use std::collections::BTreeMap;

/// The section of pages: name and part, in order; a page with several parts has as many rows.
const PAGES: SectionName = *b"pages   ";
/// The section of sessions: name and how far each is.
const SESSIONS: SectionName = *b"sessions";

/// What recovery knows of pages and sessions.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    pub pages: PageMap,
    pub sessions: BTreeMap<SessionId, Wsn>,
    /// Bytes of a sector; 0 of a new instance.
    sector_bytes: u32,
}

/// Pages and sessions as a checkpoint has them.
pub fn encode(pages: &PageMap, sessions: &BTreeMap<SessionId, Wsn>) -> Image {
    let bytes = usize::try_from(pages.pages() * MAP_ENTRY_BYTES).expect("the map fits memory");
    let mut of_pages = Vec::with_capacity(bytes);
    pages.for_each(|page, parts| {
        for part in parts {
            of_pages.extend_from_slice(&page.0.to_le_bytes());
            of_pages.extend_from_slice(&(part.spot.0 << 24 | u64::from(part.bytes)).to_le_bytes());
        }
    });
    let row = |(session, wsn): (&SessionId, &Wsn)| [session.0.to_le_bytes(), wsn.0.to_le_bytes()].concat();
    vec![(PAGES, of_pages), (SESSIONS, sessions.iter().flat_map(row).collect())]
}

fn pairs(bytes: &[u8], what: &str) -> Result<Vec<(u64, u64)>, String> {
    assert_eq!(MAP_ENTRY_BYTES, SESSION_BYTES, "both kinds of rows are pairs");
    let (rows, rest) = bytes.as_chunks::<16>();
    if !rest.is_empty() {
        return Err(format!("rows of {what} of 16 bytes were expected, but {} bytes were found", bytes.len()));
    }
    let half = |row: &[u8; 16], at: usize| u64::from_le_bytes(row[at..at + 8].try_into().expect("eight bytes"));
    Ok(rows.iter().map(|row| (half(row, 0), half(row, 8))).collect())
}

/// Pages and sessions out of a checkpoint.
///
/// # Errors
/// A sentence, if there are none, or a page lies beyond the instance.
pub fn decode(sections: &Sections, shape: &Shape) -> Result<Recovered, String> {
    let of = |name| sections.get(name).map_err(|error| error.to_string());
    let mut recovered = Recovered::default();
    let mut last = None;
    for (page, part) in pairs(of(PAGES)?, "pages")? {
        let bytes = u32::try_from(part & 0xFF_FFFF).expect("24 bits");
        let (page, extent) = (PageId(page), Extent { spot: Spot(part >> 24), bytes });
        if bytes == 0 || extent.end().0 > shape.places() << 16 {
            return Err(format!("page {} lies at {extent:?}, which is no place of the instance", page.0));
        }
        if last == Some(page) {
            recovered.pages.append(page, extent);
        } else {
            recovered.pages.begin(page, extent, &mut |_| {});
        }
        last = Some(page);
    }
    let sessions = pairs(of(SESSIONS)?, "sessions")?;
    recovered.sessions = sessions.into_iter().map(|(name, wsn)| (SessionId(name), Wsn(wsn))).collect();
    Ok(recovered)
}
