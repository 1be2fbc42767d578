//! Reset: empties chunks, each by itself (OCSSD 2.0 sections 2.2.3 and 3.4.1).
//!
//! Until the media are really erased the old content is set aside, so that a power cut before the erase began gives it
//! back. A write to the chunk makes the reset final: it was accepted after it.

use super::PartList;
use crate::addresses::{AddressList, Run};
use crate::chunk_notifications::NotificationKind;
use crate::chunks::ChunkRecord;
use crate::drive::Flash;
use crate::media::PartKind;
use crate::rules;
use crate::store::SavedBlock;
use ocssd_lightnvm::{ChunkId, Ppa, Status};

/// A chunk as it was before a reset that is not on media yet.
#[derive(Clone, Debug)]
pub(crate) struct SavedChunk {
    pub(crate) chunk: ChunkId,
    /// Cycles of the life that follows the reset.
    pub(crate) cycles: u32,
    pub(crate) record: ChunkRecord,
    pub(crate) unreadable: Vec<u64>,
    pub(crate) block: SavedBlock,
}

impl Flash {
    pub(super) fn reset(&mut self, addresses: &AddressList<'_>, parts: &mut PartList) {
        let mut refused = false;
        for (entry, ppa) in (0..).zip(addresses.entries()) {
            if self.is_too_late(parts.command, Run { entry, first: ppa, count: 1 }) {
                continue;
            }
            match rules::check_reset(&self.config.geometry, &self.chunks, ppa, entry) {
                Err(refusal) => {
                    refused = true;
                    let command = self.flow.command_mut(parts.command);
                    command.fail(refusal.status, entry, 1, Some(refusal.violation));
                }
                Ok(()) => self.reset_chunk(Run { entry, first: ppa, count: 1 }, parts),
            }
        }
        self.counters.refused += u64::from(refused);
    }

    fn reset_chunk(&mut self, run: Run, parts: &mut PartList) {
        let (chunk, entry) = (run.first.chunk, run.entry);
        self.commit_reset(chunk);
        let worn_out = self.chunks.get(chunk).cycles >= self.config.wear.endurance;
        if worn_out || self.faults.reset_fails(chunk) {
            self.chunks.take_offline(chunk);
            let block = self.store.set_aside(chunk);
            self.store.recycle(block);
            self.flow.command_mut(parts.command).fail(Status::OFFLINE_CHUNK, entry, 1, None);
        } else {
            self.save_chunk(chunk);
            self.chunks.reset(chunk);
            if self.chunks.get(chunk).has_scheduled {
                self.faults.chunk_reset(chunk);
            }
            self.chunks.flags_mut(chunk).resetting = true;
            self.counters.resets += 1;
            self.add_part(parts, PartKind::Erase, chunk, 0, 0);
            self.notice_wear(chunk);
        }
        self.keep_marks(parts, run);
        self.keep_chunk(parts, run);
    }

    fn save_chunk(&mut self, chunk: ChunkId) {
        let record = self.chunks.record(chunk);
        assert!(!self.chunks.get(chunk).resetting, "a chunk's old content is kept once");
        let saved = SavedChunk {
            chunk,
            cycles: record.cycles + 1,
            record,
            unreadable: self.chunks.unreadable(chunk).to_vec(),
            block: self.store.set_aside(chunk),
        };
        self.saved.push(saved);
    }

    fn notice_wear(&mut self, chunk: ChunkId) {
        let (index, average) = (self.chunks.wear_index(chunk), self.chunks.wear_average());
        if index.abs_diff(average) > self.config.geometry.wear_index_threshold {
            self.chunk_notifications.push(NotificationKind::WearOutside, Ppa::new(chunk, 0), None);
        }
    }

    /// Makes a reset in progress final, if there is one: what came before it will not come back.
    pub(crate) fn commit_reset(&mut self, chunk: ChunkId) {
        let entry = self.chunks.get(chunk);
        if entry.resetting {
            let cycles = entry.cycles;
            self.forget_saved(chunk, cycles);
        }
    }

    /// The content of the life before `cycles` is gone for good.
    pub(crate) fn forget_saved(&mut self, chunk: ChunkId, cycles: u32) {
        let saved = self.saved.iter().position(|saved| saved.chunk == chunk && saved.cycles == cycles);
        if let Some(index) = saved {
            let saved = self.saved.swap_remove(index);
            self.store.recycle(saved.block);
            self.chunks.flags_mut(chunk).resetting = false;
        }
    }
}
