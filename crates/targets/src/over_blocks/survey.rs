//! How far each extent is written, which no block target tells: up to the last unit that does not begin with zeroes.
//!
//! A unit begins with its magic, if it is not plain content of tables, whose extents the journal names; and what was discarded
//! reads as zeroes. Of tables only extents that begin with a page are searched: one whose first page was lost has none that count.
//!
//! Writes of several units may be on media in any order when the power goes, so the search goes from the end: an extent that is
//! full is known by one read, and one that is free by reads of blocks that are nowhere, which cost the media nothing. What cannot
//! be read was written. Deliberately not here: what the units hold.

use super::above::Cut;
use super::below::Below;
use super::canary::Canary;
use super::options::BlockOptions;
use crate::mount_error::MountError;
use crate::recovery::media::Media;
use crate::recovery::page_tag::begins_page;
use ocssd_lightnvm::{ChunkId, Ppa};

/// Looks at all extents.
pub fn survey(below: &mut Below<'_>, options: &BlockOptions, cut: Cut) -> Result<(), MountError> {
    let (units, unit) = (below.extents.units(), below.extents.geometry().ws_opt);
    let mut unknown: Vec<ChunkId> = (0..below.extents.count()).map(ChunkId).collect();
    if cut.names_content {
        unknown = with_pages(below, &unknown)?;
    }
    for last in (0..units).rev() {
        let firsts: Vec<Ppa> = unknown.iter().map(|&extent| Ppa::new(extent, last * unit)).collect();
        let mut is_written = vec![false; firsts.len()];
        let mut media = Media::new(below);
        media.read_pages(&firsts, 1, |index, bytes| {
            is_written[index] = bytes.is_none_or(|bytes| bytes.iter().any(|&byte| byte != 0));
        })?;
        media.end();
        let misses_last = options.has_canary(Canary::TailForgotten) && last + 1 < units;
        let written = if misses_last { last * unit } else { (last + 1) * unit };
        for (&extent, _) in unknown.iter().zip(&is_written).filter(|&(_, &is_written)| is_written) {
            below.extents.set_written(extent, written);
        }
        let mut left = is_written.into_iter();
        unknown.retain(|_| !left.next().expect("an answer for each"));
        assert_eq!(left.next(), None, "more answers than extents that were asked about");
    }
    Ok(())
}

/// Those of the extents that begin with a page, by one read of each. What begins with anything else is content, and full for all
/// that is known here: the target says how far it goes, or discards it.
fn with_pages(below: &mut Below<'_>, extents: &[ChunkId]) -> Result<Vec<ChunkId>, MountError> {
    let firsts: Vec<Ppa> = extents.iter().map(|&extent| Ppa::new(extent, 0)).collect();
    let (mut pages, mut content) = (Vec::new(), Vec::new());
    let mut media = Media::new(below);
    media.read_pages(&firsts, 1, |index, bytes| match bytes {
        Some(bytes) if bytes.iter().all(|&byte| byte == 0) => {}
        Some(bytes) if !begins_page(bytes) => content.push(extents[index]),
        Some(_) | None => pages.push(extents[index]),
    })?;
    media.end();
    assert!(pages.len() + content.len() <= extents.len(), "an extent is of one kind");
    let all = below.extents.geometry().sectors_per_chunk;
    content.into_iter().for_each(|extent| below.extents.set_written(extent, all));
    Ok(pages)
}
