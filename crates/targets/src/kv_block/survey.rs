//! How far each extent is written, which no block target tells: up to the last unit that does not begin with zeroes.
//!
//! A unit begins with its magic, and what was discarded reads as zeroes. Writes of several units may be on media in any order when
//! the power goes, so the search goes from the end: an extent that is full is known by one read, and one that is free by reads of
//! blocks that are nowhere, which cost the media nothing. What cannot be read was written. Deliberately not here: what the units
//! hold.

use super::below::Below;
use super::canary::Canary;
use super::options::Options;
use crate::mount_error::MountError;
use crate::recovery::media::Media;
use ocssd_lightnvm::{ChunkId, Ppa};

/// Looks at all extents.
pub fn survey(below: &mut Below<'_>, options: &Options) -> Result<(), MountError> {
    let (units, unit) = (below.extents.units(), below.extents.geometry().ws_opt);
    let mut unknown: Vec<ChunkId> = (0..below.extents.count()).map(ChunkId).collect();
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
