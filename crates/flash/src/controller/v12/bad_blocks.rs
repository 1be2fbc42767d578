//! The bad block table (F1h, F2h): what the drive knows of its blocks, and what hosts noted beside it.
//!
//! A chunk that is OFFLINE is bad on all its planes, from the factory or grown. Marks that a host sets are notes:
//! they are told back to every host, and do not change what the drive does with the block.

use super::Compat12;
use crate::config::Config;
use crate::controller::admin::put_reply;
use crate::controller::completion::SHORT_BUFFER;
use crate::controller::completion::{INVALID_FIELD, Refused};
use crate::controller::front_end::{Controller, NSID};
use crate::faults::is_factory_bad;
use ocssd_base::Prng;
use ocssd_lightnvm::{ChunkId, ChunkState, Status};
use ocssd_nvme::Sqe;
use ocssd_nvme::ocssd12::{BadBlockTable, BlockFlags, Ppa as WirePpa};
use ocssd_nvme::sqe::{GetBbt, SetBbt};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of blocks beyond the drive's own chunk states.
#[derive(Clone, Debug)]
pub(in crate::controller) struct BadBlocks {
    /// Chunks that left the factory bad: a fact of the configuration and its seed.
    factory: BTreeSet<ChunkId>,
    /// What hosts noted, by chunk and plane; at most one per block.
    marks: BTreeMap<(ChunkId, u32), BlockFlags>,
    /// Counts changes of the marks, modulo 2^16.
    revision: u16,
}

impl BadBlocks {
    pub(super) fn new(config: &Config) -> Self {
        let mut prng = Prng::new(config.seed).split("factory bad");
        let chunks = (0..config.geometry.chunk_count()).map(ChunkId);
        let factory = chunks.filter(|_| is_factory_bad(config, &mut prng)).collect();
        Self { factory, marks: BTreeMap::new(), revision: 0 }
    }

    fn flags(&self, chunk: ChunkId, plane: u32, state: ChunkState) -> BlockFlags {
        let own = match state {
            ChunkState::Offline if self.factory.contains(&chunk) => BlockFlags::FACTORY_BAD,
            ChunkState::Offline => BlockFlags::GROWN_BAD,
            ChunkState::Free | ChunkState::Open | ChunkState::Closed => BlockFlags::GOOD,
        };
        own.union(self.marks.get(&(chunk, plane)).copied().unwrap_or_default())
    }

    fn mark(&mut self, blocks: &[(ChunkId, u32)], value: BlockFlags) {
        assert!(!blocks.is_empty(), "a command marks at least one block");
        for &block in blocks {
            if value == BlockFlags::GOOD {
                self.marks.remove(&block);
            } else {
                self.marks.insert(block, value);
            }
        }
        self.revision = self.revision.wrapping_add(1);
    }
}

fn check_namespace(sqe: &Sqe) -> Result<(), Refused> {
    if sqe.nsid == NSID { Ok(()) } else { Err(Refused(Status::INVALID_NAMESPACE)) }
}

impl Controller {
    fn compat(&self) -> &Compat12 {
        self.v12.as_ref().expect("1.2 commands are dispatched on 1.2 drives")
    }

    /// Get Bad Block Table: the table of the lun an address lies in.
    pub(in crate::controller) fn get_bad_blocks(&self, sqe: &Sqe, data: &mut [u8]) -> Result<(), Refused> {
        check_namespace(sqe)?;
        let (compat, geometry) = (self.compat(), self.geometry());
        let first = compat.shape.lun_chunks(geometry, GetBbt::of(sqe).lun).ok_or(INVALID_FIELD)?;
        let chunks = (first.0..first.0 + geometry.chunks_per_pu).map(ChunkId);
        let blocks = chunks.flat_map(|chunk| {
            let state = self.flash.chunk(chunk).state;
            (0..compat.shape.planes).map(move |plane| compat.bad_blocks.flags(chunk, plane, state))
        });
        let first_of_next = u64::from(first.0) + u64::from(geometry.chunks_per_pu);
        assert!(first_of_next <= u64::from(geometry.chunk_count()), "the lun is inside the drive");
        let table = BadBlockTable { revision: compat.bad_blocks.revision, blocks: blocks.collect() };
        put_reply(data, &table.encode())
    }

    /// Set Bad Block Table. One address is in the command; a list of several is what `data` holds.
    pub(in crate::controller) fn set_bad_blocks(&mut self, sqe: &Sqe, data: &[u8]) -> Result<(), Refused> {
        check_namespace(sqe)?;
        let set = SetBbt::of(sqe).map_err(|_| INVALID_FIELD)?;
        let count = usize::try_from(set.block_count).expect("32 bits fit an index");
        let list = match set.one() {
            Some(ppa) => vec![ppa.0],
            None => {
                let bytes = data.get(..count * 8).ok_or(SHORT_BUFFER)?;
                bytes.as_chunks::<8>().0.iter().map(|entry| u64::from_le_bytes(*entry)).collect()
            }
        };
        assert_eq!(list.len(), count, "an address per block");
        let (shape, geometry) = (self.compat().shape, self.geometry());
        let block = |&bits: &u64| {
            let place = shape.block_place(geometry, WirePpa(bits)).ok_or(INVALID_FIELD)?;
            Ok((place.ppa.chunk, place.plane))
        };
        let blocks = list.iter().map(block).collect::<Result<Vec<_>, Refused>>()?;
        let compat = self.v12.as_mut().expect("1.2 commands are dispatched on 1.2 drives");
        compat.bad_blocks.mark(&blocks, set.value);
        Ok(())
    }
}
