//! Chunks whose records count more than is on the disk: they end where the last sync found their end.

use super::handle::TakenBack;
use super::opening::{Found, Reading};
use super::record::Kept;
use super::tail::{Digest, Tail};
use crate::error::DriveError;
use ocssd_flash::ChunkRecord;
use ocssd_lightnvm::{ChunkId, ChunkState};
use std::collections::BTreeMap;

impl Reading<'_> {
    /// Compares each chunk's tail with its digest, and takes back those that differ. Cost: reads what no sync has covered.
    pub(super) fn take_back(
        &self,
        kept: &mut [Kept],
        flags: &BTreeMap<ChunkId, Found>,
    ) -> Result<TakenBack, DriveError> {
        let mut taken = TakenBack::default();
        for (chunk, kept) in (0..).map(ChunkId).zip(kept) {
            let Kept { record, tail, .. } = *kept;
            if tail.first >= record.write_pointer {
                continue;
            }
            let flags = flags.get(&chunk);
            if flags.is_some_and(|flags| flags.lost.is_some()) {
                // No digest can be computed. The damage was accepted: what the lost flags cover is marked.
                kept.tail = Tail::empty(record.write_pointer);
            } else if self.tail_digest(chunk, kept, flags)? != tail.digest {
                taken.chunks += 1;
                taken.sectors += u64::from(record.write_pointer - tail.first);
                let state = if tail.first == 0 { ChunkState::Free } else { ChunkState::Open };
                kept.record = ChunkRecord { state, write_pointer: tail.first, ..record };
                kept.tail = Tail::empty(tail.first);
            }
            if kept.tail != tail && self.file.writable {
                let written = self.file.write(self.layout.record(chunk), &kept.encode(chunk));
                written.map_err(|error| self.file.failed("written", error))?;
            }
        }
        Ok(taken)
    }

    /// The digest of what the file has of a chunk's tail.
    fn tail_digest(&self, chunk: ChunkId, kept: &Kept, flags: Option<&Found>) -> Result<Digest, DriveError> {
        let is_whole = |sector: u32| {
            let word = usize::try_from(sector / 64).expect("32 bits fit an index");
            flags.is_some_and(|flags| flags.bits[word] >> (sector % 64) & 1 == 1)
        };
        let sectors = kept.tail.first..kept.record.write_pointer;
        let digest = Digest::read((self.file, self.layout), chunk, sectors, is_whole);
        digest.map_err(|(_, error)| self.file.failed("read", error))
    }
}
