//! Static wear levelling: a chunk that lags in wear is emptied like a victim, though that gives no space.
//!
//! One chunk is emptied so at a time, by garbage collection's own procedure: what lives in it goes to the cold stream, whose
//! next chunk is the most worn one that is free, for what was moved already may stay there. The emptied chunk is reset and wears
//! like the others. It begins only while users have chunks to spare, and takes the place of a victim: collection for space that
//! begins meanwhile has one victim less. Chunks of checkpoints are reset by the next checkpoints, and open ones fill or stay
//! open: neither is moved. Deliberately not here: which chunk lags, and how often one is moved (`chunk_wear`); how records move
//! (`collect`).

use super::canary::Canary;
use super::space::Role;
use super::state::Kv;
use crate::chunk_wear::Lagging;
use ocssd_ftl::{ChunkIndex, ChunkUse};

/// Chunks that users must have to spare: what was packed tight may take one more where it goes, and the last buffer unit's is
/// padded.
const SPARE_MIN: u32 = 2;

impl Kv {
    /// The chunk to be emptied now for its wear, if one is due and there is room.
    pub(super) fn lagging(&mut self) -> Option<ChunkIndex> {
        // Dead chunks wait for a checkpoint, where pages of the index are written all the time: space is short then, and nothing
        // is to be collected.
        if !self.wear.is_due() || self.has_canary(Canary::WearIgnored) || self.refuses_changes().is_some() {
            return None;
        }
        let needs_space = self.is_short() && !self.brings_enough();
        if needs_space || self.space.spare() <= SPARE_MIN {
            self.wear.put_off();
            return None;
        }
        // What was found may have changed since.
        while self.wear.is_due() {
            let Self { wear, space, .. } = self;
            let closed = || space.pool.iter().filter(|&(_, of)| of == ChunkUse::Closed);
            let chunks = || {
                let records = closed().filter(|&(chunk, _)| space.role(chunk) == Role::Records);
                records.map(|(chunk, _)| Lagging { owner: (), chunk })
            };
            let Lagging { chunk, .. } = wear.next(chunks)?;
            if self.wear.lags(chunk) && self.may_empty(chunk) {
                return Some(chunk);
            }
        }
        None
    }

    /// True of a closed chunk of records that nobody is emptying, in which something lives beyond the next checkpoint.
    fn may_empty(&self, chunk: ChunkIndex) -> bool {
        let is_of_records =
            self.space.pool.get(chunk) == ChunkUse::Closed && self.space.role(chunk) == Role::Records;
        let dying = self.pages.dying_in(chunk);
        is_of_records && dying < self.space.live(chunk) && !self.gc.is_emptying(chunk)
    }

    /// A chunk begins to be emptied for its wear.
    pub(super) fn levels(&mut self, chunk: ChunkIndex) {
        let bytes = self.space.live(chunk) - self.pages.dying_in(chunk);
        assert!(bytes > 0, "chunk {} is moved but holds nothing", chunk.0);
        assert!(self.wear.lags(chunk), "chunk {} is moved and does not lag", chunk.0);
        self.wear.moving();
        self.stats.wear_moves += 1;
        self.stats.wear_moved_bytes += bytes;
    }
}
