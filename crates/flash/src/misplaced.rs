//! Writes that did not reach their places, though the drive said that they were written: lost and misdirected writes.
//!
//! The two silent faults of disks beside flipped bits (Bairavasundaram et al., FAST 2008): afterwards one place, or two, hold
//! what nobody wrote there, and reads succeed. Only a tag that says whose a sector is finds it. Deliberately not here: deciding
//! when (a simulator does), writes that land in another chunk (erase blocks are programmed in order, so it could not have taken
//! them), and misdirected reads (`config::FaultConfig::misdirected_read`), which leave the media as they are.

use crate::drive::Flash;
use ocssd_lightnvm::{ChunkState, Ppa};

impl Flash {
    /// What a sector was written with lies at another written place of its chunk instead of what that held, or nowhere. The sector
    /// itself is blank: it reads as zeroes, out-of-band bytes too, with success. False if one of them was not written, or the
    /// content is not in memory. Cost: a sector's copy.
    ///
    /// # Panics
    /// If there is no such chunk, or the other place is of another chunk, or the same.
    pub fn misplace_write(&mut self, from: Ppa, to: Option<Ppa>) -> bool {
        let is_other = |to: Ppa| to.chunk == from.chunk && to.sector != from.sector;
        assert!(to.is_none_or(is_other), "a write of {from:?} goes astray to {to:?}");
        let is_written = |at: Ppa| {
            let entry = self.chunks.get(at.chunk);
            entry.state != ChunkState::Offline && at.sector < entry.write_pointer
        };
        is_written(from) && to.is_none_or(is_written) && self.store.misplace(from, to)
    }
}
