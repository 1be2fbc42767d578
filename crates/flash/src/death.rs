//! Death of a parallel unit: its chunks go offline, all at once, with everything that was written to them.
//!
//! That is what a die that answers no more looks like through the interface: the chunk report says OFFLINE, writes and resets end
//! with the statuses of such chunks, and reads find nothing. Commands under way end as they would have: they were carried out
//! when they were submitted. Deliberately not here: deciding when (a simulator does), and a channel's death, which is that of all
//! its units.

use crate::drive::Flash;
use crate::store::StoreError;
use ocssd_lightnvm::{Buffers, ChunkId, ChunkState, PuId};

impl Flash {
    /// The unit dies now. Returns how many chunks that took.
    ///
    /// # Errors
    /// If the backing cannot keep it.
    ///
    /// # Panics
    /// If there is no such unit.
    pub fn kill_unit(&mut self, pu: PuId, buffers: &mut Buffers) -> Result<u32, StoreError> {
        let geometry = &self.config.geometry;
        assert!(pu.0 < geometry.pu_count(), "unit {} of {} dies", pu.0, geometry.pu_count());
        let chunks = geometry.chunks_per_pu;
        // Reads that were answered in time have their content.
        self.copy_deferred(buffers);
        let mut lost = 0;
        for chunk in (pu.0 * chunks..(pu.0 + 1) * chunks).map(ChunkId) {
            if self.chunks.get(chunk).state == ChunkState::Offline {
                continue;
            }
            self.commit_reset(chunk);
            self.chunks.take_offline(chunk);
            let block = self.store.set_aside(chunk);
            self.store.recycle(block);
            self.store.keep(chunk, &self.chunks.record(chunk))?;
            lost += 1;
        }
        assert_eq!(self.chunks.open_count_of(ChunkId(pu.0 * chunks)), 0, "a dead unit has open chunks");
        Ok(lost)
    }
}
